//! Numbers of records in a dump.

use hprof_parser::record::tag;

use super::summary::Summary;

/// Numbers of top-level records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordCounts {
    /// STRING records.
    pub strings: usize,
    /// LOAD CLASS records.
    pub load_classes: usize,
    /// UNLOAD CLASS records.
    pub unload_classes: usize,
    /// STACK FRAME records.
    pub frames: usize,
    /// STACK TRACE records.
    pub traces: usize,
    /// START THREAD records.
    pub start_threads: usize,
    /// END THREAD records.
    pub end_threads: usize,
    /// ALLOC SITES records.
    pub alloc_sites: usize,
    /// CPU SAMPLES records.
    pub cpu_samples: usize,
    /// HEAP SUMMARY records.
    pub heap_summaries: usize,
    /// CONTROL SETTINGS records.
    pub control_settings: usize,
    /// HEAP DUMP and HEAP DUMP SEGMENT records of the heap dump that was read.
    pub heap_segments: usize,
}

impl Summary {
    /// Returns the numbers of top-level records in the dump, by tag.
    pub fn record_counts(&self) -> RecordCounts {
        let tables = &self.tables;
        RecordCounts {
            strings: tables.strings.len(),
            load_classes: tables.loads.len(),
            unload_classes: self.record_count(tag::UNLOAD_CLASS),
            frames: tables.frames.len(),
            traces: tables.traces.len(),
            start_threads: tables.threads.len(),
            end_threads: self.record_count(tag::END_THREAD),
            alloc_sites: self.record_count(tag::ALLOC_SITES),
            cpu_samples: self.record_count(tag::CPU_SAMPLES),
            heap_summaries: self.record_count(tag::HEAP_SUMMARY),
            control_settings: self.record_count(tag::CONTROL_SETTINGS),
            heap_segments: tables.segments.len(),
        }
    }
}
