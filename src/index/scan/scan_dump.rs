//! Scanning a heap dump in the mode that suits its IDs: in their order if they ascend, otherwise with a
//! set or a list of them.

use std::sync::atomic::AtomicUsize;

use rayon::prelude::*;

use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::{BasicType, ObjectId};

use super::class_rows;
use super::parallel::{self, Retry};
use super::tallies::{FlatIds, IdRun, ScanResult};
use super::task::{Mode, Task};
use crate::model::problem::{Problem, ProblemKind};
use crate::objects::id_set::{AddressSet, Misfit};
use crate::records::chunks::{self, AscendingRun, Plan, RecordChunk};
use crate::records::preview::Preview;
use crate::records::source::DumpBytes;
use crate::records::top_level::{Contents, HeapDump};
use crate::storage::allowance::{Allowance, bytes as bytes_of, map_bytes};
use crate::storage::human_bytes::plural;
use crate::storage::id_map::IdMap;
use crate::storage::memory::{self, NoMemory};
use hprof_input::progress::Progress;

/// IDs of all objects, in the form that suits them.
pub(crate) enum CollectedIds {
    /// Not collected: not requested.
    Unknown,
    /// A set with one bit per alignment unit.
    Set(AddressSet),
    /// A list, ascending without duplicates.
    List(Vec<u64>),
}

/// Mode of a scan attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanForm {
    Ordered,
    /// Ordered, with IDs that no bit set can contain.
    OrderedList,
    Bits {
        shift: u32,
    },
    List,
}

/// Scans heap dump `dump`.
pub(crate) fn scan_dump(
    source: &DumpBytes<'_>,
    contents: &Contents,
    dump: &HeapDump,
    allowance: &Allowance,
    collect_ids: bool,
    progress: &dyn Progress,
) -> Result<(ScanResult, CollectedIds, Plan), NoMemory> {
    let DumpBytes { bytes, header, .. } = *source;
    let preview = Preview::read(bytes, header.id_size, contents, dump);
    let mut class_ids = contents.loaded_before_end_of(dump);
    class_ids.sort_unstable();
    class_ids.dedup();
    let stack_chunk = contents.class_loads.iter().find(|load| {
        class_rows::raw_bytes(bytes, header.id_size, contents, load.name) == b"jdk/internal/vm/StackChunk"
    });
    let mut exact = false;
    allowance.take(bytes_of::<RecordChunk>(dump.segments.len()))?;
    // Memory taken by a failed attempt is free again.
    let taken = allowance.taken();
    let mut cut = chunks::guess(bytes, header.id_size, dump, &preview);
    let shift = if preview.id_bits.trailing_zeros() >= 3 { 3 } else { 0 };
    // If IDs are not addresses, neither their order nor their neighbors mean anything.
    let mut form =
        if preview.is_unordered() || shift == 0 { ScanForm::Bits { shift } } else { ScanForm::Ordered };
    // A set may take up to 16 bytes for each of the smallest objects that can fill the dump.
    let max_bytes = (64 << 20) + dump.bytes() / 2;
    let new_set = |shift| {
        AddressSet::new(shift, max_bytes).with_max_bytes(allowance.remaining_bytes().unwrap_or(u64::MAX))
    };
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
            last_flat: 0,
            progress,
        };
        progress.begin("reading objects", dump.bytes());
        let set = match form {
            ScanForm::Ordered if collect_ids => Some(new_set(shift)),
            ScanForm::Bits { shift } => Some(new_set(shift)),
            ScanForm::Ordered | ScanForm::OrderedList | ScanForm::List => None,
        };
        let mode = match (form, &set) {
            (ScanForm::Ordered, Some(set)) => Mode::Collect(set),
            (ScanForm::Bits { .. }, Some(set)) => Mode::Unordered(set),
            (ScanForm::Ordered, None) => Mode::Ordered,
            (ScanForm::OrderedList, _) => Mode::OrderedList,
            (ScanForm::List | ScanForm::Bits { .. }, _) => Mode::List,
        };
        let scanned = parallel::scan(&task, mode);
        progress.end();
        match scanned {
            Ok(scan) if form == ScanForm::Ordered && scan.unordered => form = ScanForm::Bits { shift },
            Ok(scan) if form == ScanForm::OrderedList && scan.unordered => form = ScanForm::List,
            // Classes without a LOAD CLASS: their class objects too are neighbors of objects.
            Ok(scan) if is_ordered(form) && has_unnamed(&scan, &class_ids) => {
                class_ids.extend(scan.class_dumps.iter().map(|(_, id)| id.0));
                class_ids.sort_unstable();
                class_ids.dedup();
            }
            // Without a set, no single IDs were examined.
            Ok(scan) if form == ScanForm::Ordered && scan.id_bits.trailing_zeros() < shift => {
                form = ScanForm::Bits { shift: 0 };
            }
            Ok(mut scan) => {
                scan.flat = FlatIds::find(&task, &scan)?;
                if let (ScanForm::Bits { .. }, Some(set)) = (form, &set) {
                    measure(&task, set, &mut scan)?;
                }
                let mut ids = match set {
                    Some(set) => CollectedIds::Set(set),
                    None => CollectedIds::Unknown,
                };
                if matches!(form, ScanForm::List | ScanForm::OrderedList) {
                    ids = CollectedIds::List(sort_list(&mut scan, allowance)?);
                }
                keep_last_of_repeated(&task, &mut scan)?;
                // Short runs are of no use: nearly all objects would be stored separately.
                let are_long = scan.runs.len() as u64 <= 1024 + dump.bytes() / RUN_BYTES;
                let order = (is_ordered(form) && are_long && scan.repeated.is_empty()).then(|| {
                    let run = |run: &IdRun| AscendingRun { first: run.first, start: run.start, end: run.end };
                    scan.runs.iter().map(run).collect()
                });
                return Ok((scan, ids, Plan { chunks: cut, preview, order }));
            }
            Err(Retry::Boundaries) => {
                cut = chunks::exactly(bytes, header.id_size, dump);
                exact = true;
            }
            Err(Retry::Unordered) if form == ScanForm::OrderedList => form = ScanForm::List,
            Err(Retry::Unordered) => form = ScanForm::Bits { shift },
            Err(Retry::Misfit(Misfit::Memory)) => {
                // Either a table could not grow, or the set.
                if let Some(refused) = allowance.refusal() {
                    return Err(refused);
                }
                let Some(available) = source.memory else { continue };
                let set_bytes = set.map_or(0, |set| set.bytes()).saturating_add(1);
                let needed_bytes =
                    memory::working_memory(1).saturating_add(allowance.taken()).saturating_add(set_bytes);
                return Err(NoMemory { needed_bytes, available });
            }
            Err(Retry::Misfit(Misfit::Unaligned)) => form = ScanForm::Bits { shift: 0 },
            Err(Retry::Misfit(Misfit::Scattered)) if form == ScanForm::Ordered => {
                form = ScanForm::OrderedList
            }
            Err(Retry::Misfit(Misfit::Scattered)) => form = ScanForm::List,
        }
    }
}

/// Minimum average number of bytes of a dump per run, so that the list of runs is small.
const RUN_BYTES: u64 = 4096;

fn is_ordered(form: ScanForm) -> bool {
    matches!(form, ScanForm::Ordered | ScanForm::OrderedList)
}

/// Returns `true` if a dumped class has an ID that is not among `class_ids`, which ascend.
fn has_unnamed(scan: &ScanResult, class_ids: &[u64]) -> bool {
    scan.class_dumps.iter().any(|(_, id)| class_ids.binary_search(&id.0).is_err())
}

/// Number of bytes over which distances are measured when IDs are unordered.
const MEASURED_BYTES: usize = 64 << 20;

/// Measures distances in a second pass, over a part of the dump spread evenly.
fn measure(task: &Task<'_>, set: &AddressSet, scan: &mut ScanResult) -> Result<(), NoMemory> {
    // Where objects are flattened, all others have addresses.
    if set.shift() < 3 && scan.flat.is_none() {
        return Ok(());
    }
    let taken = task.allowance.taken();
    let all: usize = task.chunks.iter().map(|chunk| chunk.end - chunk.start).sum();
    let every = all.div_ceil(MEASURED_BYTES).max(1);
    let sample: Vec<_> = task.chunks.iter().copied().step_by(every).collect();
    let last_flat = scan.flat.map_or(0, |flat| flat.last);
    let task = Task { chunks: &sample, progress: &hprof_input::progress::Quiet, last_flat, ..*task };
    let Ok(measured) = parallel::scan(&task, Mode::Measure(set)) else {
        // The result must not depend on the available memory.
        return task.allowance.refusal().map_or(Ok(()), Err);
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
    // The memory of the measurements is free again.
    task.allowance.reset(taken);
    let mut cursor = set.cursor();
    let mut classes = scan.class_dumps.iter().map(|(_, id)| id.0);
    let mut distances = Vec::new();
    classes.try_for_each(|id| match cursor.distance_to_next(id) {
        Some(bytes) => task.allowance.push(&mut distances, (id, bytes)),
        None => Ok(()),
    })?;
    scan.class_distances = distances;
    Ok(())
}

/// Sorts the list of IDs and collects the repeated ones.
fn sort_list(scan: &mut ScanResult, allowance: &Allowance) -> Result<Vec<u64>, NoMemory> {
    let mut ids = std::mem::take(&mut scan.ids);
    ids.par_sort_unstable();
    let again = ids.iter().zip(ids.iter().skip(1)).filter(|(a, b)| a == b).map(|(id, _)| *id);
    let classes = scan.class_dumps.iter().map(|(_, id)| id.0);
    let mut again = again.chain(classes.clone().filter(|id| ids.binary_search(id).is_ok()));
    let mut repeated = Vec::new();
    again.try_for_each(|id| allowance.push(&mut repeated, id))?;
    repeated.sort_unstable();
    repeated.dedup();
    classes.into_iter().try_for_each(|id| allowance.push(&mut ids, id))?;
    scan.repeated = repeated;
    ids.par_sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Resolves objects dumped again under the same ID: the last one in the file counts, as if it had
/// overwritten the others. A class object takes precedence over all of them.
fn keep_last_of_repeated(task: &Task<'_>, scan: &mut ScanResult) -> Result<(), NoMemory> {
    if scan.repeated.is_empty() {
        return Ok(());
    }
    /// Record that counts as the object with an ID.
    #[derive(Clone, Copy)]
    enum Holder {
        Nothing,
        ClassObject,
        /// Offset, class, element type and, of arrays, length of a record.
        Object(usize, Option<ObjectId>, Option<BasicType>, Option<u32>),
    }
    /// Visitor that finds the record that counts for each repeated ID.
    struct HolderFinder<'s> {
        allowance: &'s Allowance,
        scan: &'s mut ScanResult,
        holders: IdMap<ObjectId, Holder>,
        /// Offsets of replaced instances of StackChunk.
        gone: Vec<usize>,
        replaced: u64,
        failed: Option<NoMemory>,
    }
    impl HolderFinder<'_> {
        fn see(&mut self, id: ObjectId, this: Holder) {
            let Some(holder) = self.holders.get_mut(&id) else { return };
            // Records come in file order.
            let replaced = match holder {
                Holder::ClassObject => this,
                Holder::Nothing | Holder::Object(..) => std::mem::replace(holder, this),
            };
            if let Holder::Object(offset, class, element, length) = replaced {
                self.scan.forget(class, element, length);
                self.replaced += 1;
                if self.scan.stack_chunks.binary_search_by_key(&offset, |(offset, _)| *offset).is_ok() {
                    self.failed = self.allowance.push(&mut self.gone, offset).err();
                }
            }
        }
    }
    impl<'a> HeapVisitor<'a> for HolderFinder<'_> {
        fn instance(&mut self, record: Instance<'a>) {
            self.see(record.id, Holder::Object(record.offset, Some(record.class), None, None));
        }
        fn object_array(&mut self, record: ObjectArray<'a>) {
            self.see(record.id, Holder::Object(record.offset, Some(record.class), None, Some(record.length)));
        }
        fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
            self.see(
                record.id,
                Holder::Object(record.offset, None, Some(record.element), Some(record.length)),
            );
        }
        fn go_on(&mut self) -> bool {
            self.failed.is_none()
        }
    }
    let allowance = task.allowance;
    let holder_bytes = map_bytes::<Holder>(scan.repeated.len());
    allowance.take(holder_bytes)?;
    let mut holders: IdMap<ObjectId, Holder> =
        scan.repeated.iter().map(|id| (ObjectId(*id), Holder::Nothing)).collect();
    for (_, id) in &scan.class_dumps {
        holders.entry(*id).and_modify(|holder| *holder = Holder::ClassObject);
    }
    let mut finder = HolderFinder { allowance, scan, holders, gone: Vec::new(), replaced: 0, failed: None };
    for chunk in task.chunks {
        chunks::walk(task.bytes, task.id_size, task.known, chunk, &mut finder, |_, _| {});
    }
    let HolderFinder { scan, holders, mut gone, replaced, failed, .. } = finder;
    if let Some(failed) = failed {
        return Err(failed);
    }
    drop(holders);
    allowance.give_back(holder_bytes);
    gone.sort_unstable();
    scan.stack_chunks.retain(|(offset, _)| gone.binary_search(offset).is_err());
    if replaced > 0 {
        let occur = plural(replaced, "object occurs", "objects occur");
        let text = format!("{replaced} {occur} more than once; the last record is used");
        scan.problems.push(Problem::note(ProblemKind::RepeatedObjects, text, None));
    }
    scan.replaced = replaced;
    Ok(())
}
