//! The scan: visits every sub-record of a heap dump once, on all cores.
//!
//! Threads take chunks in file order. Each has its own tallies ([`Worker`]), which are merged at the end:
//! sums, minima and lists sorted by offset, so that the result does not depend on which thread took which
//! chunk.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::tallies::{Prev, PreviousObject, ScanResult};
use super::task::{Mode, Task, classes_between};
use super::worker::Worker;
use crate::objects::id_set::Misfit;
use crate::records::chunks::{self, MAX_PROBLEMS, RecordChunk};

/// Reason for repeating a scan with other settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// A guessed boundary was wrong.
    Boundaries,
    /// The address set cannot contain the IDs.
    Misfit(Misfit),
    /// IDs do not ascend.
    Unordered,
}

/// Scans all chunks.
///
/// # Errors
/// [`Retry`] states the reason.
pub(crate) fn scan(task: &Task<'_>, mode: Mode<'_>) -> Result<ScanResult, Retry> {
    let next = AtomicUsize::new(0);
    let misfit = AtomicBool::new(false);
    let retry = Mutex::new(None);
    let done = Mutex::new(ScanResult::default());
    let stop = |why: Retry| {
        misfit.store(true, Ordering::Relaxed);
        retry.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    };
    rayon::broadcast(|_| {
        let mut worker = Worker::new(task, mode);
        while !misfit.load(Ordering::Relaxed) {
            let Some(chunk) = task.chunks.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let whole = scan_chunk(task, &mut worker, chunk);
            // A worker that had to stop has not reached the end of its chunk either.
            match worker.misfit() {
                Some(why) => stop(Retry::Misfit(why)),
                None if worker.is_unordered() => stop(Retry::Unordered),
                None if !whole && !task.exact => stop(Retry::Boundaries),
                None => {}
            }
            task.progress.advance((chunk.end - chunk.start) as u64);
        }
        let counted = worker.finish();
        if let Some(why) = counted.misfit {
            stop(Retry::Misfit(why));
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.merge(counted, task.allowance).is_err() {
            stop(Retry::Misfit(Misfit::Memory));
        }
    });
    if let Some(why) = retry.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(why);
    }
    let mut scan = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    scan.class_dumps.sort_unstable();
    scan.roots.sort_unstable_by_key(|(offset, _)| offset.get());
    scan.heaps.sort_unstable();
    scan.stack_chunks.sort_unstable();
    scan.chunk_ids.sort_unstable_by_key(|ids| ids.chunk.start);
    scan.problems.sort_by_key(|problem| problem.offset);
    // Each thread keeps its first ones, so the overall first ones are included, whichever thread found
    // them.
    scan.problems.truncate(MAX_PROBLEMS);
    if scan.damaged_regions > scan.problems.len() as u64 {
        scan.problems.push(chunks::more_regions(scan.damaged_regions));
    }
    scan.repeated.sort_unstable();
    scan.repeated.dedup();
    stitch(&mut scan, task);
    Ok(scan)
}

/// Scans one chunk; `false` if it did not end where the next one starts.
fn scan_chunk<'a>(task: &Task<'a>, worker: &mut Worker<'a>, chunk: &RecordChunk) -> bool {
    worker.begin_chunk();
    let Task { bytes, id_size, known, .. } = *task;
    let end = chunks::walk(bytes, id_size, known, chunk, worker, |worker, skip| {
        worker.problem(skip.problem(bytes));
        worker.break_run();
    });
    worker.end_chunk(chunk);
    end == chunk.end
}

/// Adds the distances between the last object of each run and the first of the next, and finds
/// overlapping runs.
fn stitch(scan: &mut ScanResult, task: &Task<'_>) {
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

/// Adds the distance from `prev` (or from the class object at `at`) to `next`.
fn settle(scan: &mut ScanResult, prev: &mut Option<Prev>, at: u64, next: u64) {
    let bytes = next - at;
    match prev.take() {
        None => scan.class_distances.push((at, bytes)),
        Some(Prev { what: PreviousObject::Instance { class, .. }, .. }) => {
            if let Some(tally) = scan.tallies.get_mut(&class) {
                tally.distance.see(bytes);
            }
        }
        Some(Prev { what: PreviousObject::Array { kind, length }, .. }) => {
            scan.short.record(usize::from(kind), length, bytes);
        }
        // A chunk at the end of a run has no distance: similar ones do.
        Some(_) => {}
    }
}
