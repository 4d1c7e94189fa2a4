//! General facts about a dump: format, JVM, contents, layout, problems.

use hprof_index::Heap;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::array_contents::MissingContents;
use hprof_index::model::problem::Problem;
use hprof_index::model::record_counts::RecordCounts;
use hprof_values::RootKind;

use super::doctor::Extent;
use super::writer::Writer;
use crate::histogram::{all_bytes, objects_by_kind};

/// General facts about a dump.
#[derive(Debug, Clone)]
pub struct DumpInfo {
    /// Name of the format, with its version.
    pub format: &'static str,
    /// Program that wrote the dump.
    pub writer: Writer,
    /// Contents of primitive arrays that the dump lacks.
    pub missing_contents: MissingContents,
    /// Size of an identifier in bytes.
    pub id_bytes: u8,
    /// Creation time in milliseconds since 1970; 0 if the writer did not record it.
    pub created_ms: u64,
    /// Length of the file on disk.
    pub file_bytes: u64,
    /// Length of the unpacked dump.
    pub dump_bytes: u64,
    /// Name of the compression, if the file is compressed.
    pub compression: Option<&'static str>,
    /// Number of heap dumps in the file.
    pub heap_dumps: u32,
    /// Number of the heap dump that was read, starting at 1; 0 if there is none.
    pub heap_dump: u32,
    /// The first thousand heap dumps of the file.
    pub heap_dump_list: Vec<HeapDumpInfo>,
    /// Numbers of instances, object arrays, primitive arrays and class objects.
    pub objects: [u64; 4],
    /// Shallow size of all objects.
    pub shallow_bytes: u64,
    /// Number and size of the reachable objects, if they are in the index.
    pub reachable: Option<(u64, u64)>,
    /// Number of roots of each kind that occurs.
    pub roots: Vec<(RootKind, u64)>,
    /// System properties that identify the JVM, sorted by key.
    pub properties: Vec<(String, String)>,
    /// `true` if objects carry allocation traces.
    pub has_allocation_traces: bool,
    /// Numbers of top-level records by kind.
    pub records: RecordCounts,
    /// Android's heaps: number and name.
    pub heaps: Vec<(u32, String)>,
    /// Number of classes with instances by the source of their size: the model alone, the model confirmed by a
    /// distance, a distance alone, a size in the file.
    pub size_sources: [u64; 4],
    /// Completeness of the dump.
    pub extent: Extent,
    /// Damage and irregularities.
    pub problems: Vec<Problem>,
}

/// A heap dump of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapDumpInfo {
    /// Start time in milliseconds since 1970; 0 if the writer did not record it.
    pub created_ms: u64,
    /// Offset of the first sub-record in the (unpacked) file.
    pub offset: u64,
    /// Length of the sub-records in bytes.
    pub bytes: u64,
    /// Number of non-empty heap dump records.
    pub segments: u32,
    /// `true` if the end of the heap dump is present.
    pub ended: bool,
}

/// Collects the general facts about a dump.
pub fn info(heap: &Heap, sizes: &Sizes) -> DumpInfo {
    let summary = heap.summary();
    let facts = summary.facts();
    DumpInfo {
        format: summary.version().name(),
        writer: Writer::from_summary(summary),
        missing_contents: summary.missing_contents(),
        id_bytes: facts.id_bytes,
        created_ms: facts.created_ms.get(),
        file_bytes: heap.file_bytes(),
        dump_bytes: facts.dump_bytes.get(),
        compression: heap.compression().map(|compression| compression.name()),
        heap_dumps: facts.heap_dumps.get(),
        heap_dump: facts.heap_dump.get(),
        heap_dump_list: (summary.heap_dumps().iter())
            .map(|row| HeapDumpInfo {
                created_ms: match facts.created_ms.get() {
                    0 => 0,
                    created => created.saturating_add(u64::from(row.time_us.get()) / 1000),
                },
                offset: row.offset.get(),
                bytes: row.bytes.get(),
                segments: row.segments.get(),
                ended: row.ended != 0,
            })
            .collect(),
        objects: objects_by_kind(summary),
        shallow_bytes: all_bytes(summary, sizes),
        reachable: heap.reachable(),
        roots: summary.root_counts(),
        properties: summary.properties().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        // HotSpot writes 0 or 1 into every object; the hprof agent numbers its traces from 300000.
        has_allocation_traces: facts.max_trace.get() > 1,
        records: summary.record_counts(),
        heaps: summary.heaps().map(|(heap, name)| (heap, name.to_owned())).collect(),
        size_sources: sizes.sources(summary),
        extent: Extent::from_heap(heap),
        problems: summary.problems(),
    }
}

impl DumpInfo {
    /// Returns the JVM on one line: name, version and vendor, if the dump contains them.
    pub fn jvm(&self) -> Option<String> {
        let get =
            |key: &str| self.properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        let version =
            get("java.runtime.version").or_else(|| get("java.version")).or_else(|| get("java.vm.version"));
        let parts: Vec<&str> = [get("java.vm.name"), version].into_iter().flatten().collect();
        let vendor = get("java.vendor").or_else(|| get("java.vm.vendor"));
        match (parts.is_empty(), vendor) {
            (true, None) => None,
            (true, Some(vendor)) => Some(vendor.to_owned()),
            (false, None) => Some(parts.join(" ")),
            (false, Some(vendor)) => Some(format!("{} ({vendor})", parts.join(" "))),
        }
    }
}
