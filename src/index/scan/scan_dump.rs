//! Scanning a heap dump in the way that fits its ids: in their order if they ascend, else with a set or a list of them.

use std::sync::atomic::AtomicUsize;

use rayon::prelude::*;

use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_parser::{BasicType, ObjectId};

use super::chunks::{self, Ascending, Chunk, Plan};
use super::class_rows;
use super::parallel::{self, Retry};
use super::preview::Preview;
use super::source::Source;
use super::tallies::{Run, Scanned};
use super::task::{Mode, Task};
use super::top_level::{Contents, HeapDump};
use crate::model::problem::{Problem, ProblemKind};
use crate::objects::id_set::{AddressSet, Misfit};
use crate::storage::allowance::{Allowance, bytes as bytes_of};
use crate::storage::id_map::{IdMap, IdSet};
use crate::storage::memory::{self, NoMemory};
use hprof_input::progress::Progress;

/// The ids of all objects, in the form that fits them.
pub(crate) enum Ids {
    /// Not collected: it was not asked for.
    Unknown,
    /// One bit per alignment unit.
    Set(AddressSet),
    /// Ascending, each once.
    List(Vec<u64>),
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

/// Scans heap dump `dump`.
pub(crate) fn scan_dump(
    source: &Source<'_>,
    contents: &Contents,
    dump: &HeapDump,
    allowance: &Allowance,
    collect_ids: bool,
    progress: &dyn Progress,
) -> Result<(Scanned, Ids, Plan), NoMemory> {
    let Source { bytes, header, .. } = *source;
    let preview = Preview::read(bytes, header.id_size, contents, dump);
    let mut class_ids = contents.loaded_before_end_of(dump);
    class_ids.sort_unstable();
    class_ids.dedup();
    let stack_chunk = contents.class_loads.iter().find(|load| {
        class_rows::raw_bytes(bytes, header.id_size, contents, load.name) == b"jdk/internal/vm/StackChunk"
    });
    let mut exact = false;
    allowance.take(bytes_of::<Chunk>(dump.segments.len()))?;
    // What a scan has taken that is tried again in another way is free again.
    let taken = allowance.taken();
    let mut cut = chunks::guess(bytes, header.id_size, dump, &preview);
    let shift = if preview.id_bits.trailing_zeros() >= 3 { 3 } else { 0 };
    // Where ids are no addresses their order means nothing, and neighbours neither.
    let mut form = if preview.is_unordered() || shift == 0 { Form::Bits { shift } } else { Form::Ordered };
    // A set may take as much as 16 bytes for each of the smallest objects that can fill the dump.
    let max_bytes = (64 << 20) + dump.bytes() / 2;
    let new_set = |shift| AddressSet::new(shift, max_bytes).within(allowance.left().unwrap_or(u64::MAX));
    loop {
        allowance.reset(taken);
        let passed = AtomicUsize::new(0);
        let task = Task {
            bytes,
            allowance,
            passed: &passed,
            id_size: header.id_size,
            chunks: &cut,
            exact,
            known: &preview,
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
                class_ids.extend(scan.class_dumps.iter().map(|(_, id)| id.0));
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
                // Of short runs nothing is gained: nearly all objects lie apart.
                let are_long = scan.runs.len() as u64 <= 1024 + dump.bytes() / RUN_BYTES;
                let order = (is_ordered(form) && are_long && scan.repeated.is_empty()).then(|| {
                    let run = |run: &Run| Ascending { first: run.first, start: run.start, end: run.end };
                    scan.runs.iter().map(run).collect()
                });
                return Ok((scan, ids, Plan { chunks: cut, preview, order }));
            }
            Err(Retry::Boundaries) => {
                cut = chunks::exactly(bytes, header.id_size, dump);
                exact = true;
            }
            Err(Retry::Unordered) if form == Form::OrderedList => form = Form::List,
            Err(Retry::Unordered) => form = Form::Bits { shift },
            Err(Retry::Misfit(Misfit::Memory)) => {
                // Either a table could not grow, or the set.
                if let Some(refused) = allowance.refused() {
                    return Err(refused);
                }
                let Some(available) = source.memory else { continue };
                let set_bytes = set.map_or(0, |set| set.bytes()).saturating_add(1);
                let needed_bytes =
                    memory::working_memory(1).saturating_add(allowance.taken()).saturating_add(set_bytes);
                return Err(NoMemory { needed_bytes, available });
            }
            Err(Retry::Misfit(Misfit::Unaligned)) => form = Form::Bits { shift: 0 },
            Err(Retry::Misfit(Misfit::Scattered)) if form == Form::Ordered => form = Form::OrderedList,
            Err(Retry::Misfit(Misfit::Scattered)) => form = Form::List,
        }
    }
}

/// Bytes of a dump for which there may be one run at most, on average, so that the list of them is small.
const RUN_BYTES: u64 = 4096;

fn is_ordered(form: Form) -> bool {
    matches!(form, Form::Ordered | Form::OrderedList)
}

/// Whether a class was dumped whose id is not among `class_ids`, which ascend.
fn has_unnamed(scan: &Scanned, class_ids: &[u64]) -> bool {
    scan.class_dumps.iter().any(|(_, id)| class_ids.binary_search(&id.0).is_err())
}

/// Bytes of a dump over which distances are measured when ids jump about.
const MEASURED_BYTES: usize = 64 << 20;

/// Measures distances in a second pass, over a part of the dump spread evenly.
fn measure(task: &Task<'_>, set: &AddressSet, scan: &mut Scanned) {
    if set.shift() < 3 {
        return;
    }
    let all: usize = task.chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
    let every = all.div_ceil(MEASURED_BYTES).max(1);
    let sample: Vec<_> = task.chunks.iter().copied().step_by(every).collect();
    let task = Task { chunks: &sample, progress: &hprof_input::progress::Quiet, ..*task };
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
    distances.extend(measured.stack_chunks.iter().filter_map(|(offset, bytes)| Some((*offset, (*bytes)?))));
    for (offset, distance) in &mut scan.stack_chunks {
        *distance = distances.get(offset).copied();
    }
    let mut cursor = set.cursor();
    let classes = scan.class_dumps.iter().map(|(_, id)| id.0);
    scan.class_distances = classes.filter_map(|id| Some((id, cursor.distance_to_next(id)?))).collect();
}

/// Sorts the list of ids and notes those that occur again.
fn sort_list(scan: &mut Scanned) -> Vec<u64> {
    let mut ids = std::mem::take(&mut scan.ids);
    ids.par_sort_unstable();
    let again = ids.iter().zip(ids.iter().skip(1)).filter(|(a, b)| a == b).map(|(id, _)| *id);
    scan.repeated = again.collect();
    let classes = scan.class_dumps.iter().map(|(_, id)| id.0);
    scan.repeated.extend(classes.filter(|id| ids.binary_search(id).is_ok()));
    scan.repeated.sort_unstable();
    scan.repeated.dedup();
    ids.extend(scan.class_dumps.iter().map(|(_, id)| id.0));
    ids.par_sort_unstable();
    ids.dedup();
    ids
}

/// Objects dumped again under the same id: the last one in the file counts, as if it had overwritten the others. A class
/// object counts before all of them.
fn keep_last_of_repeated(task: &Task<'_>, scan: &mut Scanned) {
    if scan.repeated.is_empty() {
        return;
    }
    type Found = (ObjectId, usize, Option<ObjectId>, Option<BasicType>, u32);
    struct Finder<'s> {
        ids: &'s IdSet<ObjectId>,
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
    let ids: IdSet<ObjectId> = scan.repeated.iter().copied().map(ObjectId).collect();
    let mut finder = Finder { ids: &ids, found: Vec::new() };
    for chunk in task.chunks {
        chunks::walk(task.bytes, task.id_size, task.known, chunk, &mut finder, |_, _| {});
    }
    let mut found = finder.found;
    found.sort_unstable_by_key(|(id, offset, ..)| (*id, *offset));
    let mut replaced = 0u64;
    let mut gone = IdSet::default();
    let classes: IdSet<ObjectId> = scan.class_dumps.iter().map(|(_, id)| *id).collect();
    let next_ids = found.iter().skip(1).map(|next| Some(next.0)).chain([None]);
    for (this, next) in found.iter().zip(next_ids) {
        if Some(this.0) == next || classes.contains(&this.0) {
            scan.forget(this.2, this.3, this.4);
            gone.insert(this.1);
            replaced += 1;
        }
    }
    scan.stack_chunks.retain(|(offset, _)| !gone.contains(offset));
    if replaced > 0 {
        let text = format!("{replaced} objects are dumped again with the same ID; the last of each is read");
        scan.problems.push(Problem::note(ProblemKind::RepeatedObjects, text, None));
    }
    scan.replaced = replaced;
}
