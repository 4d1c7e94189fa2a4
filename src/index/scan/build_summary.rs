//! Building the summary of a dump: hop, look, scan, and put the tables together.

use std::sync::atomic::AtomicUsize;

use rayon::prelude::*;

use crate::index::storage::id_map::{IdMap, IdSet};

use crate::hprof::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::record::tag;
use crate::hprof::{BasicType, Header};
use crate::input::file::Compression;

use super::chunks::{self, Piece};
use super::class_rows;
use super::completeness::{self, Wholeness};
use super::find_objects::Lookup;
use super::parallel::{self, Mode, Retry, Scan, Task};
use super::preview::Prelude;
use super::system_properties;
use super::top_level::{Contents, HeapDump};
use crate::index::model::problem::{Problem, ProblemKind, Severity};
use crate::index::model::summary::{Summary, Tables};
use crate::index::model::tables::*;
use crate::index::objects::id_set::{AddressSet, Misfit};
use crate::index::storage::memory::{self, Available, NoMemory};
use crate::progress::Progress;

/// A dump to be read: its bytes, unpacked.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) header: Header,
    pub(crate) compression: Option<Compression>,
    /// Memory that may be taken, if there is a limit.
    pub(crate) memory: Option<Available>,
    /// Why unpacking ended before the end of the compressed file, if it did.
    pub(crate) packed_error: Option<&'a str>,
}

/// What building brought.
pub(crate) struct Built {
    pub(crate) summary: Summary,
    /// The set of all ids, if it was asked for or needed.
    pub(crate) ids: Ids,
    /// How the heap dump was cut.
    pub(crate) plan: Plan,
}

/// How a heap dump is walked over.
pub(crate) struct Plan {
    pub(crate) pieces: Vec<Piece>,
    prelude: Prelude,
}

impl Plan {
    /// Walks over a piece, calling `skipped` for what cannot be read.
    pub(crate) fn walk<'a, V: HeapVisitor<'a>>(
        &self,
        source: &Source<'a>,
        piece: &Piece,
        visitor: &mut V,
        mut skipped: impl FnMut(&mut V),
    ) {
        let Source { bytes, header, .. } = *source;
        chunks::walk(bytes, header.id_size, &self.prelude, piece, visitor, |visitor, _| skipped(visitor));
    }
}

/// The ids of all objects, in the form that fits them.
pub(crate) enum Ids {
    /// Not collected: it was not asked for.
    Unknown,
    /// One bit per alignment unit.
    Set(AddressSet),
    /// Ascending, each once.
    List(Vec<u64>),
}

/// The heap dump asked for is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no heap dump {wanted} in the file: it holds {there}")]
pub struct NoSuchHeapDump {
    /// The one asked for, from 1.
    pub wanted: u32,
    /// How many there are.
    pub there: usize,
}

/// Why a summary cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbuilt {
    NoSuchHeapDump(NoSuchHeapDump),
    NoMemory(NoMemory),
}

/// Reads a dump. `heap_dump` selects one of several, from 1; the last is the default.
pub(crate) fn build(
    source: &Source<'_>,
    heap_dump: Option<u32>,
    collect_ids: bool,
    progress: &dyn Progress,
) -> Result<Built, Unbuilt> {
    let mut contents = Contents::read(source.bytes, &source.header);
    let number = number_of(&contents, heap_dump)?;
    contents.narrow(number);
    let none = HeapDump::default();
    let dump = number.checked_sub(1).and_then(|at| contents.dumps.get(at)).unwrap_or(&none);
    let (scan, ids, plan) =
        scan_dump(source, &contents, dump, collect_ids, progress).map_err(Unbuilt::NoMemory)?;
    let summary = put_together(source, &contents, dump, number, scan, &plan);
    Ok(Built { summary, ids, plan })
}

/// The number of the heap dump that is asked for, from 1; 0 if there is none.
pub(crate) fn number_of(contents: &Contents, heap_dump: Option<u32>) -> Result<usize, Unbuilt> {
    let there = contents.dumps.len();
    let Some(wanted) = heap_dump else { return Ok(there) };
    let number = usize::try_from(wanted).ok().filter(|number| (1..=there).contains(number));
    number.ok_or(Unbuilt::NoSuchHeapDump(NoSuchHeapDump { wanted, there }))
}

/// How a scan is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Ordered,
    /// Ordered, with ids that fit no set of bits.
    OrderedList,
    Bits {
        shift: u32,
    },
    List,
}

fn scan_dump(
    source: &Source<'_>,
    contents: &Contents,
    dump: &HeapDump,
    collect_ids: bool,
    progress: &dyn Progress,
) -> Result<(Scan, Ids, Plan), NoMemory> {
    let Source { bytes, header, .. } = *source;
    let prelude = Prelude::read(bytes, header.id_size, contents, dump);
    let mut class_ids = contents.loaded_before_end_of(dump);
    class_ids.sort_unstable();
    class_ids.dedup();
    let stack_chunk = contents.class_loads.iter().find(|load| {
        class_rows::raw_bytes(bytes, header.id_size, contents, load.name) == b"jdk/internal/vm/StackChunk"
    });
    let mut exact = false;
    let mut cut = chunks::guess(bytes, header.id_size, dump, &prelude);
    let shift = if prelude.id_bits.trailing_zeros() >= 3 { 3 } else { 0 };
    // Where ids are no addresses their order means nothing, and neighbours neither.
    let mut form = if prelude.is_unordered() || shift == 0 { Form::Bits { shift } } else { Form::Ordered };
    // A set may take as much as 16 bytes for each of the smallest objects that can fill the dump.
    let max_bytes = (64 << 20) + dump.bytes() / 2;
    let in_hand = memory::in_hand(1);
    let hard = source.memory.filter(|memory| memory.refuses());
    let memory_bytes = hard.map_or(u64::MAX, |memory| memory.bytes.saturating_sub(in_hand));
    let new_set = |shift| AddressSet::new(shift, max_bytes).within(memory_bytes);
    loop {
        let passed = AtomicUsize::new(0);
        let task = Task {
            bytes,
            passed: &passed,
            id_size: header.id_size,
            pieces: &cut,
            exact,
            known: &prelude,
            class_ids: &class_ids,
            stack_chunk: stack_chunk.map(|load| load.id),
            progress,
        };
        progress.begin("reading objects", dump.bytes());
        let set = match form {
            Form::Ordered if collect_ids => Some(new_set(shift)),
            Form::Bits { shift } => Some(new_set(shift)),
            Form::Ordered | Form::OrderedList | Form::List => None,
        };
        let mode = match (form, &set) {
            (Form::Ordered, Some(set)) => Mode::Collect(set),
            (Form::Bits { .. }, Some(set)) => Mode::Unordered(set),
            (Form::Ordered, None) => Mode::Ordered,
            (Form::OrderedList, _) => Mode::OrderedList,
            (Form::List | Form::Bits { .. }, _) => Mode::List,
        };
        let scanned = parallel::scan(&task, mode);
        progress.end();
        match scanned {
            Ok(scan) if form == Form::Ordered && scan.unordered => form = Form::Bits { shift },
            Ok(scan) if form == Form::OrderedList && scan.unordered => form = Form::List,
            // Classes that no LOAD CLASS has named: their class objects too are neighbours of objects.
            Ok(scan) if is_ordered(form) && has_unnamed(&scan, &class_ids) => {
                class_ids.extend(scan.class_dumps.iter().map(|(_, id)| *id));
                class_ids.sort_unstable();
                class_ids.dedup();
            }
            // Without a set nobody has looked at single ids.
            Ok(scan) if form == Form::Ordered && scan.id_bits.trailing_zeros() < shift => {
                form = Form::Bits { shift: 0 };
            }
            Ok(mut scan) => {
                if let (Form::Bits { .. }, Some(set)) = (form, &set) {
                    measure(&task, set, &mut scan);
                }
                let mut ids = match set {
                    Some(set) => Ids::Set(set),
                    None => Ids::Unknown,
                };
                if matches!(form, Form::List | Form::OrderedList) {
                    ids = Ids::List(sort_list(&mut scan));
                }
                keep_last_of_repeated(&task, &mut scan);
                return Ok((scan, ids, Plan { pieces: cut, prelude }));
            }
            Err(Retry::Boundaries) => {
                cut = chunks::exactly(bytes, header.id_size, dump);
                exact = true;
            }
            Err(Retry::Unordered) if form == Form::OrderedList => form = Form::List,
            Err(Retry::Unordered) => form = Form::Bits { shift },
            Err(Retry::Misfit(Misfit::Memory)) => {
                let needed_bytes = in_hand.saturating_add(set.map_or(0, |set| set.bytes())).saturating_add(1);
                let Some(available) = source.memory else { continue };
                return Err(NoMemory { needed_bytes, available });
            }
            Err(Retry::Misfit(Misfit::Unaligned)) => form = Form::Bits { shift: 0 },
            Err(Retry::Misfit(Misfit::Scattered)) if form == Form::Ordered => form = Form::OrderedList,
            Err(Retry::Misfit(Misfit::Scattered)) => form = Form::List,
        }
    }
}

fn is_ordered(form: Form) -> bool {
    matches!(form, Form::Ordered | Form::OrderedList)
}

/// Whether a class was dumped whose id is not among `class_ids`, which ascend.
fn has_unnamed(scan: &Scan, class_ids: &[u64]) -> bool {
    scan.class_dumps.iter().any(|(_, id)| class_ids.binary_search(id).is_err())
}

/// Bytes of a dump over which distances are measured when ids jump about.
const MEASURED_BYTES: usize = 64 << 20;

/// Measures distances in a second pass, over a part of the dump spread evenly.
fn measure(task: &Task<'_>, set: &AddressSet, scan: &mut Scan) {
    if set.shift() < 3 {
        return;
    }
    let all: usize = task.pieces.iter().map(|piece| piece.end - piece.start).sum();
    let every = all.div_ceil(MEASURED_BYTES).max(1);
    let sample: Vec<_> = task.pieces.iter().copied().step_by(every).collect();
    let task = Task { pieces: &sample, progress: &crate::progress::Quiet, ..*task };
    let Ok(measured) = parallel::scan(&task, Mode::Measure(set)) else {
        return;
    };
    for (id, tally) in measured.tallies {
        if let Some(counted) = scan.tallies.get_mut(&id) {
            counted.distance.merge(&tally.distance);
        }
    }
    scan.short.merge(&measured.short);
    let mut distances: IdMap<usize, u64> = IdMap::default();
    distances.extend(measured.chunks.iter().filter_map(|(offset, bytes)| Some((*offset, (*bytes)?))));
    for (offset, distance) in &mut scan.chunks {
        *distance = distances.get(offset).copied();
    }
    let mut cursor = set.cursor();
    let classes = scan.class_dumps.iter().map(|(_, id)| *id);
    scan.class_distances = classes.filter_map(|id| Some((id, cursor.distance_to_next(id)?))).collect();
}

/// Sorts the list of ids and notes those that occur again.
fn sort_list(scan: &mut Scan) -> Vec<u64> {
    let mut ids = std::mem::take(&mut scan.ids);
    ids.par_sort_unstable();
    let again = ids.iter().zip(ids.iter().skip(1)).filter(|(a, b)| a == b).map(|(id, _)| *id);
    scan.repeated = again.collect();
    let classes = scan.class_dumps.iter().map(|(_, id)| *id);
    scan.repeated.extend(classes.filter(|id| ids.binary_search(id).is_ok()));
    scan.repeated.sort_unstable();
    scan.repeated.dedup();
    ids.extend(scan.class_dumps.iter().map(|(_, id)| *id));
    ids.par_sort_unstable();
    ids.dedup();
    ids
}

/// Objects dumped again under the same id: the last one in the file counts, as if it had overwritten the others. A class
/// object counts before all of them.
fn keep_last_of_repeated(task: &Task<'_>, scan: &mut Scan) {
    if scan.repeated.is_empty() {
        return;
    }
    type Found = (u64, usize, Option<u64>, Option<BasicType>, u32);
    struct Finder<'s> {
        ids: &'s IdSet<u64>,
        found: Vec<Found>,
    }
    impl<'a> HeapVisitor<'a> for Finder<'_> {
        fn instance(&mut self, record: Instance<'a>) {
            if self.ids.contains(&record.id) {
                self.found.push((record.id, record.offset, Some(record.class), None, 0));
            }
        }
        fn object_array(&mut self, record: ObjectArray<'a>) {
            if self.ids.contains(&record.id) {
                self.found.push((record.id, record.offset, Some(record.class), None, record.length));
            }
        }
        fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
            if self.ids.contains(&record.id) {
                self.found.push((record.id, record.offset, None, Some(record.element), record.length));
            }
        }
    }
    let ids: IdSet<u64> = scan.repeated.iter().copied().collect();
    let mut finder = Finder { ids: &ids, found: Vec::new() };
    for piece in task.pieces {
        chunks::walk(task.bytes, task.id_size, task.known, piece, &mut finder, |_, _| {});
    }
    let mut found = finder.found;
    found.sort_unstable_by_key(|(id, offset, ..)| (*id, *offset));
    let mut replaced = 0u64;
    let mut gone = IdSet::default();
    let classes: IdSet<u64> = scan.class_dumps.iter().map(|(_, id)| *id).collect();
    let next_ids = found.iter().skip(1).map(|next| Some(next.0)).chain([None]);
    for (this, next) in found.iter().zip(next_ids) {
        if Some(this.0) == next || classes.contains(&this.0) {
            parallel::forget(scan, this.2, this.3, this.4);
            gone.insert(this.1);
            replaced += 1;
        }
    }
    scan.chunks.retain(|(offset, _)| !gone.contains(offset));
    if replaced > 0 {
        let text = format!("{replaced} objects are dumped again under the same id; the last of each counts");
        scan.problems.push(Problem::note(ProblemKind::RepeatedObjects, text, None));
    }
    scan.replaced = replaced;
}

fn put_together(
    source: &Source<'_>,
    contents: &Contents,
    dump: &HeapDump,
    number: usize,
    mut scan: Scan,
    plan: &Plan,
) -> Summary {
    let Source { bytes, header, compression, packed_error, .. } = *source;
    let mut builder = class_rows::Builder::new(bytes, header.id_size, contents);
    builder.add_classes(&scan);
    let Wholeness { damaged: heap_damaged, cut_open } = Wholeness::of(source, contents, number, dump, &scan);
    if heap_damaged {
        completeness::assume_threads(source, &builder, &mut scan, plan);
    }
    // First what explains the others.
    let packed = packed_error.map(|error| {
        let text =
            format!("the compressed file is cut or damaged ({error}): only what could be unpacked was read");
        Problem::damage(ProblemKind::PackedCut, text, None)
    });
    let open = cut_open.then(|| {
        let text = "the heap dump has no GC root: its writer was interrupted before it knew the length";
        Problem::damage(ProblemKind::NoEnd, text, None)
    });
    let many = (contents.more_heap_dumps > 0).then(|| {
        let text = format!(
            "{} heap dumps before the last one are left out: there are too many",
            contents.more_heap_dumps
        );
        Problem::damage(ProblemKind::MorePlaces, text, None)
    });
    let found = contents.problems.iter().chain(&scan.problems).cloned().chain(open).chain(many);
    let mut problems: Vec<Problem> = packed.into_iter().chain(found).collect();
    problems.extend(builder.problems(&scan));
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.severity));
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let facts = FactsRow {
        created_ms: header.created_ms.into(),
        dump_bytes: (bytes.len() as u64).into(),
        id_bits: scan.id_bits.into(),
        class_objects: builder.class_objects().into(),
        repeated_objects: scan.replaced.into(),
        heap_dumps: small(contents.dumps.len()).into(),
        heap_dump: small(number).into(),
        max_trace: scan.max_trace.into(),
        min_trace: (!scan.max_trace_complement).into(),
        time_us: dump.time_us.into(),
        java_lang_class: builder.java_lang_class().into(),
        id_bytes: if header.id_size.bytes() == 4 { 4 } else { 8 },
        version: match header.version {
            crate::hprof::Version::V1_0 => 0,
            crate::hprof::Version::V1_0_1 => 1,
            crate::hprof::Version::V1_0_2 => 2,
            crate::hprof::Version::V1_0_3 => 3,
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
    };
    let mut tables = builder.tables(&scan);
    tables.facts = vec![facts].into();
    fill_records(&mut tables, contents, dump, &scan);
    let mut pool = builder.into_texts();
    let heaps = heaps(bytes, &header, contents, &scan);
    tables.heaps = (heaps.iter())
        .map(|(heap, name)| PairRow { key: (*heap).into(), value: pool.add(name).into() })
        .collect::<Vec<_>>()
        .into();
    tables.problems = (problems.iter())
        .map(|problem| ProblemRow {
            offset: problem.offset.unwrap_or(u64::MAX).into(),
            skipped_bytes: problem.skipped_bytes.into(),
            text: pool.add(&problem.text).into(),
            severity: u8::from(problem.severity == Severity::Damage),
            kind: problem.kind as u8,
        })
        .collect::<Vec<_>>()
        .into();
    let end_unknown = contents.end_unknown || packed_error.is_some() || cut_open;
    let account = AccountRow {
        expected_bytes: match contents.expected_end {
            Some(end) => end,
            None if end_unknown => u64::MAX,
            None => bytes.len() as u64,
        }
        .into(),
        skipped_bytes: (contents.skipped_bytes + scan.skipped_bytes).into(),
        lost_records: contents.lost_records.into(),
        lost_places: scan.damaged_places.into(),
        empty_segments: contents.empty_segments.into(),
        cut_object_arrays: scan.cut_object_arrays.into(),
        cut_primitive_arrays: scan.cut_primitive_arrays.into(),
        heap_damaged: u8::from(heap_damaged),
    };
    tables.account = vec![account].into();
    tables.text_ends = pool.ends.clone().into();
    tables.text_bytes = pool.bytes.clone().into();
    // What follows reads objects by means of the class table, so it needs the summary that it completes.
    let summary = Summary::of(tables, facts);
    let lookup = Lookup { source, plan, pieces: &scan.piece_ids, budget: LOOKUP_BYTES };
    let class_ids = summary.class_ids();
    let loaders = class_rows::loaders(&summary, &lookup, &class_ids);
    let properties: Vec<PairRow> = (system_properties::properties(&summary, &lookup, &class_ids).iter())
        .map(|(key, value)| PairRow { key: pool.add(key).into(), value: pool.add(value).into() })
        .collect();
    let mut tables = summary.into_tables();
    tables.loaders = loaders.into();
    tables.properties = properties.into();
    tables.text_ends = pool.ends.into();
    tables.text_bytes = pool.bytes.into();
    Summary::of(tables, facts)
}

/// Bytes that the search for one level of objects may walk over, where ids tell little of places.
const LOOKUP_BYTES: u64 = 2 << 30;

/// Heap dumps that are listed: a hostile file can hold millions.
const LISTED_HEAP_DUMPS: usize = 1000;

/// The tables of what stands at the top level.
fn fill_records(tables: &mut Tables, contents: &Contents, dump: &HeapDump, scan: &Scan) {
    let places = |places: &[super::top_level::Place]| -> Vec<PlaceRow> {
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
    let roots = scan.roots.iter().map(|(_, root)| RootRow {
        id: root.id.into(),
        thread: root.thread.unwrap_or(NONE).into(),
        frame: root.frame.unwrap_or(NONE).into(),
        kind: root.kind.tag(),
    });
    tables.roots = roots.collect::<Vec<_>>().into();
}

/// Android's heaps, each once: number and name.
fn heaps(bytes: &[u8], header: &Header, contents: &Contents, scan: &Scan) -> Vec<(u32, String)> {
    let mut heaps: Vec<(u32, String)> = Vec::new();
    for (_, heap, name) in &scan.heaps {
        if !heaps.iter().any(|(known, _)| known == heap) && heaps.len() < 256 {
            let name = class_rows::raw_name(bytes, header.id_size, contents, *name);
            heaps.push((*heap, name.into_owned()));
        }
    }
    heaps
}
