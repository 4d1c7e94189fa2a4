//! Completeness of a heap dump, and the roots that are assumed if it is incomplete.

use rayon::prelude::*;

use hprof_parser::heap::{HeapVisitor, Instance};
use hprof_values::{ObjectId, RootKind};
use zerocopy::little_endian::U64;

use super::class_rows;
use super::tallies::ScanResult;
use crate::model::problem::{Problem, ProblemKind};
use crate::model::tables::{NONE, RootRow};
use crate::records::chunks::{Plan, RecordChunk};
use crate::records::source::DumpBytes;
use crate::records::top_level::{Contents, HeapDump};
use crate::storage::allowance::{Allowance, bytes};
use crate::storage::human_bytes::plural;
use crate::storage::id_map::IdSet;
use crate::storage::memory::NoMemory;

/// Completeness of a heap dump that was read, before roots are assumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completeness {
    /// `true` if part of the heap dump is missing.
    pub(crate) damaged: bool,
    /// `true` if the length of the heap dump was never filled in and it contains objects but no root: HotSpot writes roots
    /// last.
    pub(crate) cut_open: bool,
}

impl Completeness {
    /// Judges heap dump `number`, from 1; 0 if the file has none.
    pub(crate) fn new(
        source: &DumpBytes<'_>,
        contents: &Contents,
        number: usize,
        dump: &HeapDump,
        scan: &ScanResult,
    ) -> Self {
        let counts = scan.tallies.values().any(|tally| tally.objects > 0);
        let cut_open = dump.open && counts && scan.roots.is_empty();
        // A truncated file ends in its last heap dump, or before it.
        let is_last = number == contents.dumps.len();
        let end_missing = if number == 0 {
            contents.ends_early || contents.lost_records > 0
        } else {
            is_last && !dump.ended && !dump.open
        };
        // The gap in a compressed file may be anywhere.
        let damaged = scan.damaged_regions > 0
            || source.packed_error.is_some()
            || end_missing
            || dump.broken
            || cut_open;
        Self { damaged, cut_open }
    }
}

/// Adds roots to an incomplete heap dump without threads: HotSpot writes threads last. Without them, all
/// objects that only threads retain would count as garbage, so Thread objects are assumed to be roots.
///
/// # Errors
/// [`NoMemory`]: a file can contain millions of threads.
pub(crate) fn assume_threads(
    source: &DumpBytes<'_>,
    classes: &class_rows::ClassRowBuilder<'_>,
    scan: &mut ScanResult,
    plan: &Plan,
    allowance: &Allowance,
) -> Result<(), NoMemory> {
    if scan.roots.iter().any(|(_, root)| root.kind == RootKind::ThreadObject.tag()) {
        return Ok(());
    }
    /// Visitor that finds Thread objects.
    struct ThreadFinder<'t> {
        threads: &'t IdSet<ObjectId>,
        allowance: &'t Allowance,
        found: Result<Vec<(usize, ObjectId)>, NoMemory>,
    }
    impl<'a> HeapVisitor<'a> for ThreadFinder<'_> {
        fn instance(&mut self, record: Instance<'a>) {
            if self.threads.contains(&record.class) {
                let row = (record.offset, record.id);
                let pushed = self.found.as_mut().map(|found| self.allowance.push(found, row));
                if let Ok(Err(error)) = pushed {
                    self.found = Err(error);
                }
            }
        }
        fn go_on(&mut self) -> bool {
            self.found.is_ok()
        }
    }
    let threads = classes.with_subclasses("java.lang.Thread");
    if threads.is_empty() {
        return Ok(());
    }
    let walk = |found, chunk: &RecordChunk| {
        let mut finder = ThreadFinder { threads: &threads, allowance, found: Ok(found) };
        plan.walk(source, chunk, &mut finder, |_| {});
        finder.found
    };
    let join = |mut found, more| allowance.append(&mut found, more).map(|()| found);
    let mut found = plan.chunks.par_iter().try_fold(Vec::new, walk).try_reduce(Vec::new, join)?;
    if found.is_empty() {
        return Ok(());
    }
    // Repeated objects are added once.
    found.sort_unstable_by_key(|(offset, id)| (*id, *offset));
    found.dedup_by_key(|(_, id)| *id);
    found.sort_unstable();
    let threads =
        plural(found.len() as u64, "Thread object counts as a GC root", "Thread objects count as GC roots");
    let text = format!("the dump is incomplete and contains no thread roots: {} {threads}", found.len());
    scan.problems.push(Problem::note(ProblemKind::ThreadsAssumed, text, None));
    let root = |id: ObjectId| RootRow {
        id: id.into(),
        thread: NONE.into(),
        frame: NONE.into(),
        kind: RootKind::Unknown.tag(),
    };
    allowance.take(bytes::<(U64, RootRow)>(found.len()))?;
    scan.roots.reserve_exact(found.len());
    let found_bytes = bytes::<(usize, ObjectId)>(found.capacity());
    scan.roots.extend(found.into_iter().map(|(offset, id)| (U64::new(offset as u64), root(id))));
    allowance.give_back(found_bytes);
    Ok(())
}
