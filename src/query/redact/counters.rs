//! Counters that are kept: those held by certain fields, such as the sizes of queues.

use std::ops::Range;

use hprof_index::storage::id_map::IdSet;
use hprof_parser::heap::{self, HeapVisitor, Instance};
use hprof_values::{IdSize, ObjectId, be_id};

use hprof_base::parallel;

/// Maximum number of kept counters; if there are more, the sizes of some queues are lost.
const MAX_COUNTERS: usize = 1 << 20;

/// Classes and static fields that hold kept counters.
pub(super) trait CounterHolders: Sync {
    fn id_size(&self) -> IdSize;
    /// Returns the counters to which static fields refer.
    fn static_counters(&self) -> &[ObjectId];
    /// Returns the parts of the file with instances that hold counters.
    fn counter_ranges(&self) -> &[Range<u64>];
    fn has_holders(&self) -> bool;
    /// Returns whether instances of a class hold counters.
    fn is_holder(&self, class: ObjectId) -> bool;
    /// Returns the fields that a class declares.
    fn counter_fields(&self, class: ObjectId) -> Option<CounterFields<'_>>;
}

/// Fields of one class that hold counters.
pub(super) struct CounterFields<'p> {
    /// Offsets of references to counters.
    pub(super) counters: &'p [u32],
    /// Total size of the fields in bytes.
    pub(super) bytes: u32,
    pub(super) above: Option<ObjectId>,
}

/// IDs of the counter objects whose values are kept.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptCounters {
    ids: IdSet<ObjectId>,
    /// `true` if other counters may also be sizes of collections.
    pub(super) has_more: bool,
}

impl KeptCounters {
    /// Finds the counters of a dump.
    pub(super) fn of_dump(plan: &impl CounterHolders, bytes: &[u8]) -> Self {
        let mut counters = Self::default();
        counters.ids.extend(plan.static_counters());
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let ranges = plan.counter_ranges().iter();
        let ranges: Vec<_> = ranges.map(|range| at(range.start)..at(range.end)).collect();
        counters.add(plan, bytes, &ranges);
        counters
    }

    /// Adds the counters that objects in parts of the bytes hold.
    pub(super) fn add(&mut self, plan: &impl CounterHolders, bytes: &[u8], pieces: &[Range<usize>]) {
        if !plan.has_holders() {
            return;
        }
        let found = parallel::map(pieces, |piece| {
            let mut finder = CounterFinder { plan, found: Vec::new() };
            heap::walk(bytes, plan.id_size(), piece.start, piece.end, piece.end, &mut finder);
            finder.found
        });
        for id in found.into_iter().flatten().filter(|id| !id.is_null()) {
            if self.ids.len() < MAX_COUNTERS {
                self.ids.insert(id);
            } else {
                self.has_more = true;
            }
        }
    }

    /// Returns whether the value of this object is kept.
    pub(super) fn contains(&self, id: ObjectId) -> bool {
        self.ids.contains(&id)
    }
}

/// Finds references to counters.
struct CounterFinder<'p, P> {
    plan: &'p P,
    found: Vec<ObjectId>,
}

impl<'a, P: CounterHolders> HeapVisitor<'a> for CounterFinder<'_, P> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        if !self.plan.is_holder(record.class) {
            return;
        }
        let (mut class, mut at) = (self.plan.counter_fields(record.class), 0);
        while let Some(fields) =
            class.filter(|_| at < record.fields.len() && self.found.len() <= MAX_COUNTERS)
        {
            let starts = fields.counters.iter().map(|start| at + *start as usize);
            self.found
                .extend(starts.filter_map(|at| be_id(record.fields, at, self.plan.id_size()).map(ObjectId)));
            at += fields.bytes as usize;
            class = fields.above.and_then(|above| self.plan.counter_fields(above));
        }
    }
}
