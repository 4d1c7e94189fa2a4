//! Construction of the summary of a dump, in steps. Each step creates a value that the next does not change: [`Contents`] (the
//! top level) → [`ScanResult`] (counts of the heap dump) → the class table ([`class_rows::ClassRowBuilder`]) → [`SummaryParts`]
//! → [`Summary`].
//!
//! The last step needs the class table to read objects by the names of their fields.

use hprof_input::file::Compression;
use hprof_parser::record::tag;
use hprof_parser::{Header, Version};

use super::class_rows;
use super::completeness::{self, Completeness};
use super::find_objects::Lookup;
use super::flat_objects::FlatTables;
use super::scan_dump::{CollectedIds, scan_dump};
use super::stated_sizes;
use super::system_properties;
use super::tallies::{ChunkIds, ScanResult};
use crate::model::problem::{Problem, ProblemKind, Severity};
use crate::model::summary::{Summary, Tables};
use crate::model::tables::*;
use crate::model::text_pool::TextPool;
use crate::records::chunks::Plan;
use crate::records::error::ScanError;
use crate::records::record_walk;
use crate::records::source::DumpBytes;
use crate::records::top_level::{Contents, HeapDump, RecordLocation};
use crate::storage::allowance::{Allowance, bytes};
use crate::storage::human_bytes::plural;
use crate::storage::memory::NoMemory;
use hprof_input::progress::Progress;

/// Result of building a summary.
pub(crate) struct BuiltSummary {
    pub(crate) summary: Summary,
    /// Set of all IDs, if it was requested or needed.
    pub(crate) ids: CollectedIds,
    /// Chunks of the heap dump.
    pub(crate) plan: Plan,
}

/// Reads a dump. `heap_dump` selects one of several, from 1; the last is the default.
pub(crate) fn build(
    source: &DumpBytes<'_>,
    heap_dump: Option<u32>,
    collect_ids: bool,
    progress: &dyn Progress,
) -> Result<BuiltSummary, ScanError> {
    let allowance = Allowance::new(source.memory);
    let mut contents = record_walk::read(source.bytes, &source.header, &allowance)?;
    let number = contents.heap_dump_number(heap_dump)?;
    allowance.take(contents.narrow_bytes())?;
    contents.narrow(number);
    let none = HeapDump::default();
    let dump = number.checked_sub(1).and_then(|at| contents.dumps.get(at)).unwrap_or(&none);
    let (scan, ids, plan) = scan_dump(source, &contents, dump, &allowance, collect_ids, progress)?;
    let parts = SummaryParts::new(source, &contents, dump, number, scan, &plan, &allowance)?;
    Ok(BuiltSummary { summary: parts.finish(source, &plan), ids, plan })
}

/// A summary without data read from single objects, which requires the class table.
struct SummaryParts {
    tables: Tables,
    facts: FactsRow,
    texts: TextPool,
    /// Data for finding objects.
    chunk_ids: Vec<ChunkIds>,
    /// IDs of objects that several records have, ascending.
    repeated: Vec<u64>,
}

impl SummaryParts {
    /// Assembles the tables of heap dump `number`, from 1, from the counts of a scan.
    ///
    /// # Errors
    /// [`NoMemory`] if the tables do not fit into memory.
    fn new(
        source: &DumpBytes<'_>,
        contents: &Contents,
        dump: &HeapDump,
        number: usize,
        mut scan: ScanResult,
        plan: &Plan,
        allowance: &Allowance,
    ) -> Result<Self, NoMemory> {
        let DumpBytes { bytes, header, packed_error, .. } = *source;
        let mut classes = class_rows::ClassRowBuilder::new(bytes, header.id_size, contents);
        classes.add_classes(&scan, allowance)?;
        let Completeness { damaged, cut_open } = Completeness::new(source, contents, number, dump, &scan);
        if damaged {
            completeness::assume_threads(source, &classes, &mut scan, plan, allowance)?;
        }
        allowance.take(record_bytes(contents, dump, &scan))?;
        let problems = problems(source, contents, &scan, &classes, cut_open);
        let facts = facts(source, contents, dump, number, &scan, &classes);
        let end_unknown =
            contents.end_unknown || packed_error.is_some() && !contents.is_from_text() || cut_open;
        let account = AccountRow {
            expected_bytes: match contents.expected_end {
                Some(end) => end,
                None if end_unknown => u64::MAX,
                None => bytes.len() as u64,
            }
            .into(),
            skipped_bytes: (contents.skipped_bytes + scan.skipped_bytes).into(),
            lost_records: contents.lost_records.into(),
            lost_places: scan.damaged_regions.into(),
            empty_segments: contents.empty_segments.into(),
            cut_object_arrays: scan.cut_object_arrays.into(),
            cut_primitive_arrays: scan.cut_primitive_arrays.into(),
            heap_damaged: u8::from(damaged),
        };
        let mut tables = classes.tables(&scan);
        tables.facts = vec![facts].into();
        tables.account = vec![account].into();
        tables.stated_sizes = stated_sizes::rows(bytes, contents, number, allowance)?.into();
        fill_records(&mut tables, contents, dump, &scan);
        let mut texts = classes.into_texts();
        tables.heaps = (heaps(bytes, &header, contents, &scan).iter())
            .map(|(heap, name)| PairRow { key: (*heap).into(), value: texts.add(name).into() })
            .collect::<Vec<_>>()
            .into();
        tables.problems = (problems.iter())
            .map(|problem| ProblemRow {
                offset: problem.offset.unwrap_or(u64::MAX).into(),
                skipped_bytes: problem.skipped_bytes.into(),
                text: texts.add(&problem.text).into(),
                severity: u8::from(problem.severity == Severity::Damage),
                kind: problem.kind as u8,
            })
            .collect::<Vec<_>>()
            .into();
        tables.text_ends = texts.ends.clone().into();
        tables.text_bytes = texts.bytes.clone().into();
        Ok(Self { tables, facts, texts, chunk_ids: scan.chunk_ids, repeated: scan.repeated })
    }

    /// Creates the summary, and adds data read from objects: class loaders and the JVM's system
    /// properties.
    fn finish(self, source: &DumpBytes<'_>, plan: &Plan) -> Summary {
        let Self { tables, facts, mut texts, chunk_ids, repeated } = self;
        let summary = Summary::from_tables(tables, facts);
        let lookup = Lookup { source, plan, chunks: &chunk_ids, budget: LOOKUP_BYTES };
        let class_ids = summary.class_ids();
        let last_flat = facts.last_flat_id.get();
        let flat = (last_flat > 0).then(|| FlatTables::new(source, plan, &summary, &class_ids, last_flat));
        let loaders = class_rows::loaders(&summary, &lookup, &class_ids, &mut texts);
        let properties = (system_properties::properties(&summary, &lookup, &class_ids).iter())
            .map(|(key, value)| PairRow { key: texts.add(key).into(), value: texts.add(value).into() })
            .collect();
        let FlatTables { classes, fields, arrays } = flat.unwrap_or_default();
        let totals = if summary.is_from_text() {
            stated_sizes::totals(source, plan, &summary, &class_ids, &repeated)
        } else {
            Vec::new()
        };
        let summary = summary.with_stated_totals(totals);
        summary.with_objects(loaders, properties, texts).with_flat_objects(classes, fields, arrays)
    }
}

/// Returns all problems, the severe ones first; within these, causes before effects.
fn problems(
    source: &DumpBytes<'_>,
    contents: &Contents,
    scan: &ScanResult,
    classes: &class_rows::ClassRowBuilder<'_>,
    cut_open: bool,
) -> Vec<Problem> {
    let packed = source.packed_error.map(|error| match contents.is_from_text() {
        true => Problem::damage(ProblemKind::BadRecord, error.to_owned(), None),
        false => Problem::of_packed(error),
    });
    let open = cut_open.then(|| {
        let text =
            "the heap dump contains no GC roots and does not state its length: its writer was interrupted";
        Problem::damage(ProblemKind::NoEnd, text, None)
    });
    let many = (contents.more_heap_dumps > 0).then(|| {
        let text = format!(
            "the file contains too many heap dumps: {} before the last one {} skipped",
            contents.more_heap_dumps,
            plural(contents.more_heap_dumps, "was", "were")
        );
        Problem::damage(ProblemKind::MorePlaces, text, None)
    });
    let found = contents.problems.iter().chain(&scan.problems).cloned().chain(open).chain(many);
    let mut problems: Vec<Problem> = packed.into_iter().chain(found).collect();
    problems.extend(classes.problems(scan));
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
    problems
}

/// Returns the scalar values of the summary.
fn facts(
    source: &DumpBytes<'_>,
    contents: &Contents,
    dump: &HeapDump,
    number: usize,
    scan: &ScanResult,
    classes: &class_rows::ClassRowBuilder<'_>,
) -> FactsRow {
    let DumpBytes { bytes, header, compression, .. } = *source;
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    FactsRow {
        created_ms: header.created_ms.into(),
        dump_bytes: (bytes.len() as u64).into(),
        id_bits: scan.flat.map_or(scan.id_bits, |flat| flat.other_bits).into(),
        // Which of several records with one ID counts is not known here: nothing is flattened then.
        last_flat_id: scan.flat.filter(|_| scan.replaced == 0).map_or(0, |flat| flat.last).into(),
        class_objects: classes.class_objects().into(),
        repeated_objects: scan.replaced.into(),
        heap_dumps: small(contents.dumps.len()).into(),
        heap_dump: small(number).into(),
        max_trace: scan.max_trace.into(),
        min_trace: (!scan.max_trace_complement).into(),
        time_us: dump.time_us.into(),
        java_lang_class: classes.java_lang_class().into(),
        id_bytes: if header.id_size.bytes() == 4 { 4 } else { 8 },
        version: match header.version {
            Version::V1_0 => 0,
            Version::V1_0_1 => 1,
            Version::V1_0_2 => 2,
            Version::V1_0_3 => 3,
        },
        compression: match compression {
            None => 0,
            Some(Compression::Gzip) => 1,
            Some(Compression::Zstd) => 2,
            Some(Compression::Tar) => 3,
            Some(Compression::TarGzip) => 4,
            Some(Compression::TarZstd) => 5,
            Some(Compression::Zip) => 6,
        },
        is_from_text: u8::from(contents.is_from_text()),
    }
}

/// Maximum number of bytes that the search for one level of objects walks over, where IDs do not locate
/// objects.
const LOOKUP_BYTES: u64 = 2 << 30;

/// Maximum number of listed heap dumps: a hostile file can contain millions.
const LISTED_HEAP_DUMPS: usize = 1000;

/// Returns the memory that [`fill_records`] allocates, in bytes.
fn record_bytes(contents: &Contents, dump: &HeapDump, scan: &ScanResult) -> u64 {
    let places = contents.strings.len() + contents.frames.len() + contents.traces.len();
    let records =
        [&contents.alloc_sites, &contents.cpu_samples, &contents.heap_summaries, &contents.control_settings];
    let records = records.iter().map(|offsets| offsets.len()).sum::<usize>()
        + contents.unloads.len()
        + contents.ended_threads.len();
    [
        bytes::<PlaceRow>(places),
        bytes::<LoadRow>(contents.loads.len()),
        bytes::<ThreadRow>(contents.threads.len()),
        bytes::<SegmentRow>(dump.segments.len()),
        bytes::<RecordRow>(records),
        bytes::<RootRow>(scan.roots.len()),
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

/// Fills the tables of top-level records.
fn fill_records(tables: &mut Tables, contents: &Contents, dump: &HeapDump, scan: &ScanResult) {
    let places = |places: &[RecordLocation]| -> Vec<PlaceRow> {
        places.iter().map(|place| PlaceRow::from(*place)).collect()
    };
    tables.strings = places(&contents.strings).into();
    tables.frames = places(&contents.frames).into();
    tables.traces = places(&contents.traces).into();
    let loads = contents.loads.iter().map(|load| LoadRow {
        id: load.id.into(),
        name: load.name.into(),
        serial: load.serial.into(),
        trace: load.trace.into(),
    });
    tables.loads = loads.collect::<Vec<_>>().into();
    let threads = contents.threads.iter().map(|thread| ThreadRow {
        id: thread.id.into(),
        name: thread.name.into(),
        group: thread.group.into(),
        parent_group: thread.parent_group.into(),
        serial: thread.serial.into(),
        trace: thread.trace.into(),
    });
    tables.threads = threads.collect::<Vec<_>>().into();
    let segments = (dump.segments.iter())
        .map(|segment| SegmentRow { start: (segment.start as u64).into(), end: (segment.end as u64).into() });
    tables.segments = segments.collect::<Vec<_>>().into();
    let dumps = contents.dumps.iter().take(LISTED_HEAP_DUMPS).map(|dump| HeapDumpRow {
        offset: dump.segments.first().map_or(0, |first| first.start as u64).into(),
        bytes: dump.bytes().into(),
        segments: u32::try_from(dump.segments.len()).unwrap_or(u32::MAX).into(),
        time_us: dump.time_us.into(),
        ended: u8::from(dump.ended),
    });
    tables.heap_dumps = dumps.collect::<Vec<_>>().into();
    let mut records = Vec::new();
    let mut add = |tag: u8, values: &mut dyn Iterator<Item = u64>| {
        records.extend(values.map(|value| RecordRow { value: value.into(), tag }));
    };
    add(tag::UNLOAD_CLASS, &mut contents.unloads.iter().map(|serial| u64::from(*serial)));
    add(tag::ALLOC_SITES, &mut contents.alloc_sites.iter().copied());
    add(tag::HEAP_SUMMARY, &mut contents.heap_summaries.iter().copied());
    add(tag::END_THREAD, &mut contents.ended_threads.iter().map(|serial| u64::from(*serial)));
    add(tag::CPU_SAMPLES, &mut contents.cpu_samples.iter().copied());
    add(tag::CONTROL_SETTINGS, &mut contents.control_settings.iter().copied());
    tables.records = records.into();
    tables.roots = scan.roots.iter().map(|(_, root)| *root).collect::<Vec<_>>().into();
}

/// Returns Android's heaps without duplicates: number and name.
fn heaps(bytes: &[u8], header: &Header, contents: &Contents, scan: &ScanResult) -> Vec<(u32, String)> {
    let mut heaps: Vec<(u32, String)> = Vec::new();
    for (_, heap, name) in &scan.heaps {
        if !heaps.iter().any(|(known, _)| known == heap) && heaps.len() < 256 {
            let name = class_rows::raw_name(bytes, header.id_size, contents, *name);
            heaps.push((*heap, name.into_owned()));
        }
    }
    heaps
}
