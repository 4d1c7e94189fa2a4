//! Text report of the HPROF agent (`java.hprof.txt`) for a binary dump or a Flight Recorder recording.
//!
//! Order, columns and words are those of the JDK 8 agent (`hprof_io.c`), so that programs that read its files can read these,
//! too. Facts that a dump does not contain, such as the trace of a JNI global reference, are left out or 0. Names are escaped
//! as in all output, so that no name can look like a record.

mod date;
mod heap;
mod sections;

use std::io::{self, Write};

use hprof_index::Progress;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::Summary;
use hprof_query::recordings::profile::{Profile, ThreadEvent};

/// Sections of the text report to write in addition to the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    /// THREAD START and THREAD END lines.
    pub threads: bool,
    /// TRACE sections.
    pub traces: bool,
    /// HEAP DUMP.
    pub heap: bool,
    /// SITES.
    pub sites: bool,
    /// CPU SAMPLES.
    pub cpu: bool,
}

/// Input of a text report.
#[derive(Debug)]
pub struct ReportInput<'a> {
    /// Heap dump, if the file is a dump.
    pub heap: Option<ReportHeap<'a>>,
    /// Recorded facts other than the heap.
    pub profile: &'a Profile,
    /// Starts and ends of threads.
    pub thread_events: &'a [ThreadEvent],
}

/// Heap dump of a text report.
#[derive(Debug, Clone, Copy)]
pub struct ReportHeap<'a> {
    /// Summary of the dump.
    pub summary: &'a Summary,
    /// Bytes of the dump.
    pub bytes: &'a [u8],
    /// Sizes of objects.
    pub sizes: &'a Sizes,
}

impl ReportInput<'_> {
    /// Writes the text report. The heap dump is streamed: each thread holds about a megabyte of text.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(
        &self,
        out: &mut (dyn Write + Send),
        sections: Sections,
        progress: &dyn Progress,
    ) -> io::Result<()> {
        let profile = self.profile;
        let mut head = io::BufWriter::with_capacity(1 << 16, &mut *out);
        sections::header(&mut head, profile)?;
        if sections.threads {
            sections::threads(&mut head, profile, self.thread_events)?;
        }
        if sections.traces {
            sections::traces(&mut head, profile)?;
        }
        head.flush()?;
        drop(head);
        let heap = self.heap.filter(|heap| sections.heap && heap.summary.facts().heap_dump.get() != 0);
        if let Some(heap) = &heap {
            heap::write(heap, out, progress)?;
        }
        let mut tail = io::BufWriter::with_capacity(1 << 16, &mut *out);
        if let (true, Some(sites)) = (sections.sites, &profile.sites) {
            sections::sites(&mut tail, sites)?;
        }
        if let (true, Some(samples)) = (sections.cpu, &profile.samples) {
            sections::samples(&mut tail, profile, samples)?;
        }
        tail.flush()
    }
}
