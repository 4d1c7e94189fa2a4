//! Totals over several kinds in which each byte counts once.
//!
//! Kinds are processed in order. An object that an earlier kind freed frees nothing more; an object that an earlier kind shrank
//! frees its remaining size.

use super::WasteSearch;
use super::findings::{Findings, NO_OBJECT, Saving};
use super::kind::{KindFindings, WasteEffect};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::objects::object_set::Bits;

/// Returns the bytes that each kind frees in addition to the kinds before it.
pub(super) fn add(search: &WasteSearch<'_>, all: &[KindFindings]) -> Vec<u64> {
    let freed = Bits::new(search.dump.graph.objects.len());
    let mut union = SavingsUnion { search, freed, shrinks: &[] };
    let mut added = Vec::with_capacity(all.len());
    for (at, found) in all.iter().enumerate() {
        added.push(union.take(found, all.get(..at).unwrap_or_default()));
    }
    added
}

/// Objects freed by the kinds processed so far, and the shrinkage of instances.
struct SavingsUnion<'u, 'a> {
    search: &'u WasteSearch<'a>,
    freed: Bits,
    /// Number of bytes by which instances shrink, by class.
    shrinks: &'u [u64],
}

impl<'u> SavingsUnion<'u, '_> {
    fn take(&mut self, KindFindings { kind, findings }: &'u KindFindings, before: &[KindFindings]) -> u64 {
        let tree = &self.search.dump.graph.tree;
        // An object that shrinks by one kind may be freed by a later one.
        let parts = || {
            before.iter().filter(|found| found.kind.frees == WasteEffect::Part).map(|found| &found.findings)
        };
        let was_freed = if parts().next().is_some() { self.freed.clone() } else { Bits::default() };
        let mut added = match kind.frees {
            WasteEffect::Objects => findings.all().map(|saving| self.objects(saving)).sum(),
            WasteEffect::Unboxed => findings.all().map(|saving| self.free_single(saving)).sum(),
            WasteEffect::Listed => {
                let objects = findings.freed.iter().flat_map(|list| list.iter());
                objects.map(|object| self.object(ObjectIndex(*object))).sum()
            }
            WasteEffect::Retained => {
                let positions = findings.all().filter(|saving| saving.bytes > 0);
                let positions =
                    positions.filter_map(|saving| tree.reachable_position(ObjectIndex(saving.object)));
                let objects = positions.flat_map(|position| tree.objects_at(position..tree.end(position)));
                objects.map(|object| self.object(object)).sum()
            }
            WasteEffect::Part => {
                let is_there = |saving: &&Saving| !self.freed.contains(saving.smaller());
                findings.all().filter(is_there).map(|saving| to_signed(saving.bytes)).sum()
            }
            WasteEffect::OfClass => {
                self.shrinks = &findings.shrinks;
                to_signed(findings.bytes) - self.freed_of_classes(&findings.shrinks)
            }
            WasteEffect::Unreachable => to_signed(findings.bytes),
        };
        if !matches!(kind.frees, WasteEffect::Part | WasteEffect::OfClass | WasteEffect::Unreachable) {
            for saving in parts().flat_map(Findings::all) {
                let object = saving.smaller();
                if self.freed.contains(object) && !was_freed.contains(object) {
                    added -= to_signed(saving.bytes);
                }
            }
        }
        u64::try_from(added).unwrap_or(0)
    }

    /// Returns the bytes of an object and of the objects freed with it.
    fn objects(&mut self, saving: &Saving) -> i64 {
        let both = [saving.object, saving.other].map(ObjectIndex);
        if saving.other == NO_OBJECT && self.shrinks.is_empty() {
            return self.free_single(saving);
        }
        if self.shrinks.is_empty() && !both.iter().any(|object| self.freed.contains(*object)) {
            both.iter().for_each(|object| {
                self.freed.insert(*object);
            });
            return to_signed(saving.bytes);
        }
        both.into_iter().map(|object| self.object(object)).sum()
    }

    /// Returns the bytes saved by freeing an object after the earlier savings.
    fn free_single(&mut self, saving: &Saving) -> i64 {
        if self.freed.insert(ObjectIndex(saving.object)) { to_signed(saving.bytes) } else { 0 }
    }

    /// Returns the bytes freed with an object.
    fn object(&mut self, object: ObjectIndex) -> i64 {
        // Objects outside of a sample do not count.
        if !self.search.reachable.contains(object) || !self.freed.insert(object) {
            return 0;
        }
        let class = self.search.class(object).filter(|_| !self.shrinks.is_empty());
        let shrink = class.and_then(|class| self.shrinks.get(class.0 as usize)).copied().unwrap_or(0);
        to_signed(self.search.shallow_bytes(object)) - to_signed(shrink)
    }

    /// Returns the total shrinkage of instances that were already freed.
    fn freed_of_classes(&self, shrinks: &[u64]) -> i64 {
        if shrinks.iter().all(|shrink| *shrink == 0) {
            return 0;
        }
        let graph = self.search.dump.graph;
        let mut sum = 0;
        for (object, class) in
            ObjectIndex::range(graph.objects.indices()).zip(graph.objects.classes(graph.objects.indices()))
        {
            let shrink = class.and_then(|class| shrinks.get(class.0 as usize)).copied().unwrap_or(0);
            if shrink > 0 && self.freed.contains(object) {
                sum += to_signed(shrink);
            }
        }
        sum
    }
}

fn to_signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
