//! The scan: every sub-record of a heap dump visited once, by all cores.
//!
//! Threads take pieces in file order. Each has its own tallies ([`Worker`]), which are merged at the end: sums, minima
//! and lists sorted by offset, so that the result does not depend on who took what.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::index::storage::id_map::IdMap;

use crate::hprof::heap::Root;
use crate::hprof::{BasicType, FormatErrorKind, IdSize};

use super::chunks::{self, Piece, Skip};
use super::preview::Prelude;
use super::worker::{MAX_PROBLEMS, Prev, Worker};
use crate::index::layout::measurements::{Distance, Lengths, OBJECT_LENGTHS, PRIMITIVE_LENGTHS, ShortArrays};
use crate::index::model::problem::{Problem, ProblemKind};
use crate::index::objects::id_set::{AddressSet, Misfit};
use crate::progress::Progress;

/// How a scan learns that ids are unique, and how it measures distances between them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode<'s> {
    /// Ids ascend in long runs: the next record is the next object.
    Ordered,
    /// As [`Mode::Ordered`], and all ids go into a set that is wanted later.
    Collect(&'s AddressSet),
    /// Ids jump about: they go into a set; distances are measured in a second pass.
    Unordered(&'s AddressSet),
    /// The second pass.
    Measure(&'s AddressSet),
    /// As [`Mode::Ordered`], and all ids go into a list that is wanted later.
    OrderedList,
    /// Ids fit no set of bits: a list is kept. Nothing is measured.
    List,
}

/// What a scan is given.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) id_size: IdSize,
    pub(crate) pieces: &'a [Piece],
    /// Whether the pieces were cut by hopping: then there is no better way to cut them.
    pub(crate) exact: bool,
    /// Class objects that objects were found to lie around, in the whole scan.
    pub(crate) passed: &'a AtomicUsize,
    pub(crate) known: &'a Prelude,
    /// Ids of class objects, ascending: those that stand between objects in address order.
    pub(crate) class_ids: &'a [u64],
    /// The class `jdk.internal.vm.StackChunk`, whose instances vary in size.
    pub(crate) stack_chunk: Option<u64>,
    pub(crate) progress: &'a dyn Progress,
}

/// What was counted of one class id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Objects of the class: instances, or object arrays.
    pub(crate) objects: u64,
    /// Lengths, if they are object arrays.
    pub(crate) lengths: Option<Box<Lengths<OBJECT_LENGTHS>>>,
    /// Distances of instances.
    pub(crate) distance: Distance,
    /// Instances with another number of bytes than the class's fields take.
    pub(crate) deviant: u64,
}

impl Tally {
    pub(crate) fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.deviant += other.deviant;
        self.distance.merge(&other.distance);
        match (&mut self.lengths, other.lengths) {
            (Some(lengths), Some(more)) => lengths.merge(&more),
            (lengths @ None, more) => *lengths = more,
            _ => {}
        }
    }
}

/// A run of ascending ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) last: Prev,
}

/// The ids in a piece, for finding an object without an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PieceIds {
    pub(crate) piece: Piece,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
}

/// What a scan brought.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) tallies: IdMap<u64, Tally>,
    /// Primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    pub(crate) primitive: [Lengths<PRIMITIVE_LENGTHS>; 8],
    pub(crate) short: ShortArrays,
    /// CLASS DUMPs: offset and id, in file order.
    pub(crate) class_dumps: Vec<(usize, u64)>,
    /// Roots, in file order.
    pub(crate) roots: Vec<(usize, Root)>,
    /// Distances of class objects: id and bytes.
    pub(crate) class_distances: Vec<(u64, u64)>,
    /// Instances of StackChunk: offset, and distance if there is one.
    pub(crate) chunks: Vec<(usize, Option<u64>)>,
    /// Android's heaps: offset, heap number, string id of its name.
    pub(crate) heaps: Vec<(usize, u32, u64)>,
    pub(crate) piece_ids: Vec<PieceIds>,
    /// All object ids or'ed.
    pub(crate) id_bits: u64,
    /// The highest allocation trace serial number of an object, class objects included.
    pub(crate) max_trace: u32,
    /// The complement of the lowest: it starts at 0, as all that is counted here.
    pub(crate) max_trace_complement: u32,
    /// Objects whose id was met before.
    pub(crate) repeated: Vec<u64>,
    /// Objects that another record with the same id replaces.
    pub(crate) replaced: u64,
    /// All ids, in [`Mode::List`].
    pub(crate) ids: Vec<u64>,
    pub(crate) runs: Vec<Run>,
    /// Ids do not ascend in long runs, or runs overlap.
    pub(crate) unordered: bool,
    /// Arrays as long as HotSpot lets them be in a dump: probably cut by it.
    pub(crate) cut_object_arrays: u64,
    /// The same of primitive arrays.
    pub(crate) cut_primitive_arrays: u64,
    pub(crate) problems: Vec<Problem>,
    /// Places that could not be read, those not listed in `problems` too.
    pub(crate) damaged_places: u64,
    /// Bytes of the heap dump that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Why a worker could not take in all ids.
    pub(crate) misfit: Option<Misfit>,
}

/// Why a scan has to be done again in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// A guessed boundary was none.
    Boundaries,
    /// The address set cannot hold the ids.
    Misfit(Misfit),
    /// Ids do not ascend.
    Unordered,
}

/// Scans all pieces.
///
/// # Errors
/// [`Retry`] says what to change.
pub(crate) fn scan(task: &Task<'_>, mode: Mode<'_>) -> Result<Scan, Retry> {
    let next = AtomicUsize::new(0);
    let misfit = AtomicBool::new(false);
    let retry = Mutex::new(None);
    let done = Mutex::new(Scan::default());
    let stop = |why: Retry| {
        misfit.store(true, Ordering::Relaxed);
        retry.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    };
    rayon::broadcast(|_| {
        let mut worker = Worker::new(task, mode);
        while !misfit.load(Ordering::Relaxed) {
            let Some(piece) = task.pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let whole = scan_piece(task, &mut worker, piece);
            // A worker that could not go on has not reached the end of its piece either.
            match worker.misfit() {
                Some(why) => stop(Retry::Misfit(why)),
                None if worker.is_unordered() => stop(Retry::Unordered),
                None if !whole && !task.exact => stop(Retry::Boundaries),
                None => {}
            }
            task.progress.advance((piece.end - piece.start) as u64);
        }
        let part = worker.finish();
        if let Some(why) = part.misfit {
            stop(Retry::Misfit(why));
        }
        merge(&mut done.lock().unwrap_or_else(PoisonError::into_inner), part);
    });
    if let Some(why) = retry.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(why);
    }
    let mut scan = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    scan.class_dumps.sort_unstable();
    scan.roots.sort_unstable_by_key(|(offset, _)| *offset);
    scan.heaps.sort_unstable();
    scan.chunks.sort_unstable();
    scan.piece_ids.sort_unstable_by_key(|ids| ids.piece.start);
    scan.problems.sort_by_key(|problem| problem.offset);
    // Each thread has kept its first ones, so the first ones of all are there, whoever took what.
    scan.problems.truncate(MAX_PROBLEMS);
    if scan.damaged_places > scan.problems.len() as u64 {
        let text = format!(
            "{} places in the heap dump could not be read; the first are listed",
            scan.damaged_places
        );
        scan.problems.push(Problem::damage(ProblemKind::MorePlaces, text, None));
    }
    scan.repeated.sort_unstable();
    scan.repeated.dedup();
    stitch(&mut scan, task);
    Ok(scan)
}

/// Scans one piece; `false` if it did not end where the next one starts.
fn scan_piece<'a>(task: &Task<'a>, worker: &mut Worker<'a>, piece: &Piece) -> bool {
    worker.begin_piece();
    let Task { bytes, id_size, known, .. } = *task;
    let end = chunks::walk(bytes, id_size, known, piece, worker, |worker, skip| {
        worker.problem(describe(bytes, &skip));
        worker.break_run();
    });
    worker.end_piece(piece);
    end == piece.end
}

/// What is wrong where a walk had to skip bytes, and what was done.
fn describe(bytes: &[u8], skip: &Skip) -> Problem {
    let (kind, what) = match skip.error.kind() {
        FormatErrorKind::RecordCut { .. } if !skip.found && skip.to == bytes.len() => (
            ProblemKind::CutSubRecord,
            format!("the file is cut inside sub-record {}", tag_at(bytes, skip.from)),
        ),
        FormatErrorKind::UnknownSubRecord(tag) => {
            (ProblemKind::UnknownSubRecord, format!("unknown heap sub-record {tag:#04x}"))
        }
        FormatErrorKind::BasicType { found, tag } => {
            (ProblemKind::BadSubRecord, format!("no basic type {found} (in sub-record {tag:#04x})"))
        }
        _ => (
            ProblemKind::BadSubRecord,
            format!("sub-record {} does not fit its record", tag_at(bytes, skip.from)),
        ),
    };
    let to = if skip.found { "the next object that could be found" } else { "the end of the record" };
    let skipped = skip.to - skip.from;
    let text = format!("{what}; skipped {skipped} bytes, to {to}");
    Problem::damage(kind, text, Some(skip.from as u64)).skipping(skipped)
}

fn tag_at(bytes: &[u8], at: usize) -> String {
    bytes.get(at).map_or_else(|| "?".to_owned(), |tag| format!("{tag:#04x}"))
}

fn merge(into: &mut Scan, part: Scan) {
    for (id, tally) in part.tallies {
        into.tallies.entry(id).or_default().merge(tally);
    }
    for (lengths, more) in into.primitive.iter_mut().zip(&part.primitive) {
        lengths.merge(more);
    }
    into.short.merge(&part.short);
    into.class_dumps.extend(part.class_dumps);
    into.roots.extend(part.roots);
    into.class_distances.extend(part.class_distances);
    into.chunks.extend(part.chunks);
    into.heaps.extend(part.heaps);
    into.piece_ids.extend(part.piece_ids);
    into.id_bits |= part.id_bits;
    into.max_trace = into.max_trace.max(part.max_trace);
    into.max_trace_complement = into.max_trace_complement.max(part.max_trace_complement);
    into.repeated.extend(part.repeated);
    into.ids.extend(part.ids);
    into.runs.extend(part.runs);
    into.unordered |= part.unordered;
    into.cut_object_arrays += part.cut_object_arrays;
    into.cut_primitive_arrays += part.cut_primitive_arrays;
    into.problems.extend(part.problems);
    into.damaged_places += part.damaged_places;
    into.skipped_bytes += part.skipped_bytes;
}

/// Measures from the last object of each run to the first of the next, and finds runs that overlap.
fn stitch(scan: &mut Scan, task: &Task<'_>) {
    scan.runs.sort_unstable_by_key(|run| run.first);
    let runs = std::mem::take(&mut scan.runs);
    for (run, next) in runs.iter().zip(runs.iter().skip(1)) {
        if next.first <= run.last.id {
            scan.unordered = true;
            continue;
        }
        let between = classes_between(task.class_ids, run.last.id, next.first);
        let mut at = run.last.id;
        let mut prev = Some(run.last);
        for &class in between {
            settle(scan, &mut prev, at, class);
            at = class;
        }
        settle(scan, &mut prev, at, next.first);
    }
    scan.runs = runs;
}

/// Notes the distance from `prev` (or from the class object at `at`) to `next`.
fn settle(scan: &mut Scan, prev: &mut Option<Prev>, at: u64, next: u64) {
    let bytes = next - at;
    match prev.take() {
        None => scan.class_distances.push((at, bytes)),
        Some(Prev { what: super::worker::What::Instance { class, .. }, .. }) => {
            if let Some(tally) = scan.tallies.get_mut(&class) {
                tally.distance.see(bytes);
            }
        }
        Some(Prev { what: super::worker::What::Array { kind, length }, .. }) => {
            scan.short.see(usize::from(kind), length, bytes);
        }
        // A chunk at the end of a run keeps no distance: others like it have one.
        Some(_) => {}
    }
}

/// The class objects that lie strictly between two addresses.
pub(crate) fn classes_between(class_ids: &[u64], low: u64, high: u64) -> &[u64] {
    let from = class_ids.partition_point(|id| *id <= low);
    let to = class_ids.partition_point(|id| *id < high);
    class_ids.get(from..to).unwrap_or_default()
}

/// Takes back what was counted of a record that another one with the same id replaces.
pub(crate) fn forget(scan: &mut Scan, class: Option<u64>, element: Option<BasicType>, length: u32) {
    match (class, element) {
        (Some(class), _) => {
            if let Some(tally) = scan.tallies.get_mut(&class) {
                tally.objects = tally.objects.saturating_sub(1);
                if let Some(lengths) = &mut tally.lengths {
                    lengths.forget(length);
                }
            }
        }
        (None, Some(element)) => {
            let at = BasicType::PRIMITIVES.iter().position(|kind| *kind == element);
            if let Some(lengths) = at.and_then(|at| scan.primitive.get_mut(at)) {
                lengths.forget(length);
            }
        }
        (None, None) => {}
    }
}
