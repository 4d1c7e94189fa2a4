//! Objects of given classes: filtered, sorted and truncated.

use std::ops::Range;

use rayon::prelude::*;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_values::ObjectId;

use super::best::{Best, BestObjects};
use super::class_set::ClassSet;
use super::condition::Filter;
use super::condition::order::{FieldKey, FieldOrder};
use super::label::Labels;
use super::largest::largest;

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 16;

/// Order of the objects in a list of instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InstanceOrder {
    /// Largest retained size first, unreachable objects last.
    #[default]
    Retained,
    /// Largest shallow size first.
    Shallow,
    /// By address.
    Address,
}

/// Filter, order and limit of instances.
#[derive(Debug, Clone, Copy)]
pub struct InstanceQuery<'a> {
    /// Classes of the objects.
    pub classes: &'a ClassSet,
    /// Condition on the objects.
    pub filter: Option<&'a Filter<'a>>,
    /// `true` for reachable objects only.
    pub live: bool,
    /// Order of the objects; ties are by address.
    pub sort_by: InstanceOrder,
    /// Maximum number of objects; all by default.
    pub top: Option<usize>,
}

/// Finds the objects that match the query.
pub fn find(graph: &ObjectGraph, question: &InstanceQuery<'_>) -> BestObjects {
    if let (InstanceOrder::Retained, None, Some(top)) = (question.sort_by, question.filter, question.top) {
        return largest(graph, question.classes, top, question.live);
    }
    let none = || Best::new(question.top);
    let found = (ObjectIndex::chunks(graph.objects.indices(), CHUNK).into_par_iter())
        .fold(none, |mut best, chunk| {
            find_in_chunk(graph, question, chunk, &mut best);
            best
        })
        .reduce(none, Best::merge);
    found.finish()
}

/// Finds the matching objects, in the order of a field instead of the order of the query.
pub fn find_by_field(
    graph: &ObjectGraph,
    question: &InstanceQuery<'_>,
    order: &FieldOrder<'_>,
) -> BestObjects {
    let none = || Best::<FieldKey>::new(question.top);
    let found = (ObjectIndex::chunks(graph.objects.indices(), CHUNK).into_par_iter())
        .fold(none, |mut best, chunk| {
            for (first, wanted) in question.classes.blocks(graph, chunk) {
                order.objects.records_of_block(first, wanted, |object, record| {
                    let is_live = || !question.live || graph.tree.reachable_position(object).is_some();
                    let matches =
                        |record| question.filter.is_none_or(|filter| filter.matches(object, record));
                    match &record {
                        Some(record) if matches(record) && is_live() => {
                            best.total += 1;
                            best.add((order.key(object, record), object));
                        }
                        // Without a filter, all objects of the classes match.
                        None if question.filter.is_none() && is_live() => {
                            best.total += 1;
                            best.add((FieldKey::NoField, object));
                        }
                        _ => {}
                    }
                });
            }
            best
        })
        .reduce(none, Best::merge);
    found.finish()
}

fn find_in_chunk(
    graph: &ObjectGraph,
    question: &InstanceQuery<'_>,
    chunk: Range<ObjectIndex>,
    best: &mut Best,
) {
    let mut take = |object: ObjectIndex| {
        let tree = &graph.tree;
        if question.live && tree.reachable_position(object).is_none() {
            return;
        }
        best.total += 1;
        // Smaller keys are better.
        match question.sort_by {
            InstanceOrder::Address => best.add((0, object)),
            InstanceOrder::Shallow => {
                let bytes = tree.position(object).map_or(0, |position| tree.shallow_bytes(position));
                best.add((u64::MAX - bytes, object));
            }
            InstanceOrder::Retained => {
                let Some(position) = tree.reachable_position(object) else {
                    best.add((u64::MAX, object));
                    return;
                };
                // Most objects dominate no other: their shallow size is their retained size, and is found faster.
                let dominates = tree.ends_after(position) == 0;
                let bytes =
                    if dominates { tree.retained_bytes(position) } else { tree.shallow_bytes(position) };
                best.add((u64::MAX - bytes, object));
            }
        }
    };
    let Some(filter) = question.filter else {
        question.classes.objects(graph, chunk).for_each(take);
        return;
    };
    for (first, wanted) in question.classes.blocks(graph, chunk) {
        filter.matching(first, wanted, &mut take);
    }
}

/// An object with its class, label and sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRow {
    /// Object ID.
    pub id: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// Short text that identifies the object.
    pub label: Option<String>,
    /// Shallow size.
    pub shallow_bytes: u64,
    /// Retained size; `None` if the object is unreachable.
    pub retained_bytes: Option<u64>,
}

/// Returns the row of an object.
pub fn row(graph: &ObjectGraph, labels: &Labels<'_>, object: ObjectIndex) -> InstanceRow {
    let tree = &graph.tree;
    InstanceRow {
        id: graph.objects.addresses.id_of(object).unwrap_or_default(),
        class: graph.objects.class(object),
        label: labels.label(object),
        shallow_bytes: tree.position(object).map_or(0, |position| tree.shallow_bytes(position)),
        retained_bytes: tree.retained_bytes_of(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_whatever_the_order() {
        let keys: Vec<(u64, ObjectIndex)> =
            (0..10_000u32).map(|at| (u64::from(at * 7919 % 1000), ObjectIndex(at))).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for top in [None, Some(1), Some(7), Some(5000), Some(20_000)] {
            let mut halves = [Best::new(top), Best::new(top)];
            for (at, key) in keys.iter().enumerate() {
                if let Some(half) = halves.get_mut(at % 2) {
                    half.total += 1;
                    half.add(*key);
                }
            }
            let [a, b] = halves;
            let found = a.merge(b).finish();
            let kept = top.unwrap_or(usize::MAX).min(keys.len());
            let expected: Vec<ObjectIndex> = sorted.iter().take(kept).map(|(_, object)| *object).collect();
            assert_eq!((found.objects, found.total), (expected, 10_000), "{top:?}");
        }
    }
}
