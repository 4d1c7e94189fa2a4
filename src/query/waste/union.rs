//! Adding up what kinds free, so that nothing counts twice.
//!
//! Kinds are taken in order. An object that a kind before has freed frees nothing more; one that a kind before has made
//! smaller frees what is left of it.

use super::findings::{Findings, Frees, NO_OBJECT, Saving};
use super::{Kind, Search};
use crate::index::graph::numbers::{ObjectIndex, TreePosition};
use crate::index::storage::id_map::IdMap;
use crate::query::objects::object_set::Bits;

/// By kind: what it frees beyond those before it.
pub(super) fn add(search: &Search<'_>, all: &[Findings]) -> Vec<u64> {
    let mut union = Union {
        search,
        freed: Bits::new(search.graph.objects.len()),
        smaller: IdMap::default(),
        shrinks: &[],
        needs_rest: 0,
    };
    // An object is only remembered to be smaller if a later kind may free it.
    union.needs_rest = all
        .iter()
        .rposition(|findings| matches!(findings.frees, Frees::Objects | Frees::Listed(_) | Frees::Retained))
        .map_or(0, |at| at + 1);
    (0..).zip(all).map(|(at, findings)| union.take(at, findings)).collect()
}

struct Union<'u, 'a> {
    search: &'u Search<'a>,
    freed: Bits,
    /// Objects that are smaller, and by how many bytes.
    smaller: IdMap<u32, u64>,
    /// By class: what its instances have shrunk by.
    shrinks: &'u [u64],
    /// Kinds from which on no object is freed any more.
    needs_rest: usize,
}

impl<'u> Union<'u, '_> {
    fn take(&mut self, at: usize, findings: &'u Findings) -> u64 {
        let tree = &self.search.graph.tree;
        let mut added = 0i64;
        match &findings.frees {
            Frees::Objects => {
                added = findings.all().map(|saving| self.objects(findings.kind, saving)).sum();
            }
            Frees::Listed(lists) => {
                let objects = lists.iter().flat_map(|list| list.iter());
                added = objects.map(|object| self.object(ObjectIndex(*object))).sum();
            }
            Frees::Retained => {
                for saving in findings.all().filter(|saving| saving.bytes > 0) {
                    let Some(position) = tree.reachable_position(ObjectIndex(saving.object)) else {
                        continue;
                    };
                    let below = position..tree.end(position);
                    let objects = TreePosition::range(below.clone()).zip(tree.objects_at(below));
                    added += objects.map(|(_, object)| self.object(object)).sum::<i64>();
                }
            }
            Frees::Part => {
                for saving in findings.all().filter(|saving| saving.bytes > 0) {
                    let object = if saving.other == NO_OBJECT { saving.object } else { saving.other };
                    if !self.freed.contains(ObjectIndex(object)) {
                        added += signed(saving.bytes);
                        if at + 1 < self.needs_rest {
                            *self.smaller.entry(object).or_default() += saving.bytes;
                        }
                    }
                }
            }
            Frees::OfClass(shrinks) => {
                added = signed(findings.bytes) - self.freed_of_classes(shrinks);
                self.shrinks = shrinks;
            }
            Frees::Unreachable => added = signed(findings.bytes),
        }
        u64::try_from(added).unwrap_or(0)
    }

    /// What an object frees that is freed now, and what is freed with it.
    fn objects(&mut self, kind: Kind, saving: &Saving) -> i64 {
        let object = ObjectIndex(saving.object);
        let both = [object, ObjectIndex(saving.other)];
        let is_simple = self.smaller.is_empty() && self.shrinks.is_empty();
        // What a box saves is less than what it takes: its value moves.
        if saving.other == NO_OBJECT && (is_simple || kind == Kind::BoxedNumbers) {
            return if self.freed.insert(object) { signed(saving.bytes) } else { 0 };
        }
        if is_simple && !both.iter().any(|object| self.freed.contains(*object)) {
            both.iter().for_each(|object| {
                self.freed.insert(*object);
            });
            return signed(saving.bytes);
        }
        both.into_iter().map(|object| self.object(object)).sum()
    }

    /// What an object frees that is freed now.
    fn object(&mut self, object: ObjectIndex) -> i64 {
        if !self.freed.insert(object) {
            return 0;
        }
        let class = self.search.class(object).filter(|_| !self.shrinks.is_empty());
        let shrink = class.and_then(|class| self.shrinks.get(class.0 as usize)).copied().unwrap_or(0);
        let smaller = self.smaller.get(&object.0).copied().unwrap_or(0);
        signed(self.search.shallow_bytes(object)) - signed(smaller) - signed(shrink)
    }

    /// What the instances of classes would shrink by that are freed already.
    fn freed_of_classes(&self, shrinks: &[u64]) -> i64 {
        if shrinks.iter().all(|shrink| *shrink == 0) {
            return 0;
        }
        let graph = self.search.graph;
        let mut sum = 0;
        for (object, class) in
            ObjectIndex::range(graph.objects.all()).zip(graph.objects.classes(graph.objects.all()))
        {
            let shrink = class.and_then(|class| shrinks.get(class.0 as usize)).copied().unwrap_or(0);
            if shrink > 0 && self.freed.contains(object) {
                sum += signed(shrink);
            }
        }
        sum
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
