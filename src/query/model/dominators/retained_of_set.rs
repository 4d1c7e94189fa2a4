//! Joint retained size of objects: the size that would be freed if all of them were.
//!
//! For a single object it is in the dominator tree. For several it is not: two maps that share their values retain them
//! together, though neither does alone. Usually the difference is small, and is found from the objects that they dominate
//! (`joint_retained_set`). Otherwise the graph is walked from the roots without stepping on the objects (`walk`); whatever is
//! not visited is freed with them.

use std::ops::Range;

use roaring::RoaringBitmap;

use hprof_base::parallel;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;

use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;

use super::avoiding_walk::{Marks, walk, walk_along};
use super::preorder::Start;
use super::retained_of_set_search::{WalkLimits, joint_retained_set};

/// Number of objects of a set listed at a time.
const LISTED: usize = 1 << 18;
/// Number of positions per chunk.
const CHUNK: u32 = 1 << 16;

/// Numbers and sizes of a set of objects and of the objects that they retain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetainedTotals {
    /// Number of objects.
    pub objects: u64,
    /// Number of unreachable objects in the set, which are freed anyway.
    pub unreachable_objects: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
    /// Retained size of the reachable objects.
    pub retained_bytes: u64,
    /// Number of objects that would be freed with the reachable ones, including themselves.
    pub retained_objects: u64,
}

/// Returns the joint retained size of a set of objects.
pub fn retained(graph: &ObjectGraph, set: &RoaringBitmap) -> RetainedTotals {
    retained_within(graph, set, WalkLimits::for_tree(&graph.tree))
}

/// Returns the joint retained size of a set of objects, with explicit limits, which only affect the time.
pub fn retained_within(graph: &ObjectGraph, set: &RoaringBitmap, limits: WalkLimits) -> RetainedTotals {
    let tree = &graph.tree;
    let members = Marks::new(tree.reachable());
    let places = SetPositions::mark_members(tree, set, &members);
    let mut answer = RetainedTotals {
        objects: set.len(),
        unreachable_objects: set.len() - places.reachable,
        shallow_bytes: places.bytes,
        ..RetainedTotals::default()
    };
    let Some((first, last)) = places.span else { return answer };
    let start = common_dominator(tree, first, last);
    if start == Start::Object(first) {
        // It dominates all the others.
        answer.retained_bytes = tree.retained_bytes(first);
        answer.retained_objects = u64::from(tree.retained_objects(first));
        return answer;
    }
    if let Some(jointly) = joint_retained_set(graph, start, &members, [first, last], limits) {
        (answer.retained_objects, answer.retained_bytes) = (jointly.objects, jointly.bytes);
        return answer;
    }
    let visited = walk(graph, start, set);
    let (below, _) = start.dominated_range(tree);
    let unmet = parallel::map(&TreePosition::chunks(below, CHUNK), |chunk| {
        let sizes = tree.shallow_sizes(chunk.clone());
        let unmet = tree.objects_at(chunk).zip(sizes).filter(|(object, _)| !visited.contains(*object));
        unmet.fold((0u64, 0u64), |sum, (_, size)| (sum.0 + 1, sum.1.saturating_add(size)))
    });
    let (unmet_objects, unmet_bytes) =
        unmet.into_iter().fold((0, 0u64), |a, b| (a.0 + b.0, a.1.saturating_add(b.1)));
    // The objects themselves are marked as visited.
    answer.retained_objects = unmet_objects + places.reachable;
    answer.retained_bytes = unmet_bytes.saturating_add(places.reachable_bytes);
    answer
}

/// Objects that an object retains by strong references alone: weak references to them do not keep them alive.
pub struct StronglyRetained {
    /// Objects that are strongly reachable from a dominator of the object.
    with: Marks,
    /// Objects that are strongly reachable from that dominator without the object.
    without: Marks,
    /// Size of the retained objects, including the object.
    pub bytes: u64,
}

impl StronglyRetained {
    /// Computes the retained objects by two walks from `above`, which dominates the object.
    pub fn new(edges: &Edges<'_>, above: TreePosition, object: ObjectIndex) -> Self {
        let graph = edges.dump.graph;
        let is_strong = |from, to| edges.is_followed(from, to, Exclusions::all_but_strong());
        let start = Start::Object(above);
        let with = walk_along(graph, start, &RoaringBitmap::new(), is_strong);
        let mut without = walk_along(graph, start, &RoaringBitmap::from_iter([object.0]), is_strong);
        without.unmark(object);
        let mut found = Self { with, without, bytes: 0 };
        let (below, _) = start.dominated_range(&graph.tree);
        let freed = parallel::map(&TreePosition::chunks(below, CHUNK), |chunk| {
            let objects = graph.tree.objects_at(chunk.clone()).zip(graph.tree.shallow_sizes(chunk));
            let freed = objects.filter(|(one, _)| found.contains(*one));
            freed.fold(0u64, |sum, (_, size)| sum.saturating_add(size))
        });
        found.bytes = freed.into_iter().fold(0, u64::saturating_add);
        found
    }

    /// Returns whether an object would be freed with this one.
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.with.contains(object) && !self.without.contains(object)
    }
}

/// Returns the objects that these objects retain together, including themselves; an unreachable one retains itself.
pub fn retained_set(graph: &ObjectGraph, set: &RoaringBitmap) -> RoaringBitmap {
    retained_set_within(graph, set, WalkLimits::for_tree(&graph.tree))
}

/// Returns the objects that these objects retain together, with explicit limits, which only affect the time.
pub fn retained_set_within(graph: &ObjectGraph, set: &RoaringBitmap, limits: WalkLimits) -> RoaringBitmap {
    let tree = &graph.tree;
    let members = Marks::new(tree.reachable());
    let Some((first, last)) = SetPositions::mark_members(tree, set, &members).span else {
        return set.clone();
    };
    let start = common_dominator(tree, first, last);
    if start != Start::Object(first)
        && let Some(jointly) = joint_retained_set(graph, start, &members, [first, last], limits)
    {
        let dominated = |chunk: Range<ObjectIndex>| {
            let dominated = ObjectIndex::range(chunk).filter(|object| jointly.dominated.contains(*object));
            dominated.map(|object| object.0).collect()
        };
        let others: RoaringBitmap = jointly.others.iter().map(|object| object.0).collect();
        let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
        return parallel::union(&chunks, dominated) | others | set;
    }
    let visited = (start != Start::Object(first)).then(|| walk(graph, start, set));
    let (below, _) = start.dominated_range(tree);
    let unmet = parallel::union(&TreePosition::chunks(below, CHUNK), |chunk| {
        let objects = tree.objects_at(chunk);
        let unmet =
            objects.filter(|object| visited.as_ref().is_none_or(|visited| !visited.contains(*object)));
        unmet.map(|object| object.0).collect()
    });
    unmet | set
}

/// Sizes and span of positions of the objects of a set.
#[derive(Debug, Clone, Copy, Default)]
struct SetPositions {
    /// Shallow size of all objects.
    bytes: u64,
    /// Shallow size of the reachable objects.
    reachable_bytes: u64,
    reachable: u64,
    /// First and last position of the reachable objects.
    span: Option<(TreePosition, TreePosition)>,
}

impl SetPositions {
    /// Marks the positions of the reachable objects of a set. There may be tens of millions: they are never listed as a
    /// whole.
    fn mark_members(tree: &Tree, set: &RoaringBitmap, members: &Marks<TreePosition>) -> Self {
        let mut all = Self::default();
        let mut objects = set.iter();
        loop {
            let some: Vec<ObjectIndex> = objects.by_ref().take(LISTED).map(ObjectIndex).collect();
            if some.is_empty() {
                break;
            }
            let chunks: Vec<&[ObjectIndex]> = some.chunks(LISTED / 64).collect();
            let sums = parallel::map(&chunks, |chunk| {
                let mut sum = Self::default();
                tree.positions_of(chunk.iter().copied(), |_, position| {
                    if position.0 < tree.reachable() {
                        members.mark(position);
                        sum.reachable += 1;
                        sum.span = Some(sum.span.map_or((position, position), |(first, last)| {
                            (first.min(position), last.max(position))
                        }));
                    } else {
                        sum.bytes = sum.bytes.saturating_add(tree.shallow_bytes(position));
                    }
                });
                sum
            });
            all = sums.into_iter().fold(all, Self::and);
        }
        // Looking up a single size takes longer than those of a whole frame.
        if let Some((first, last)) = all.span {
            all.reachable_bytes = bytes_at(tree, first, last, members);
            all.bytes = all.bytes.saturating_add(all.reachable_bytes);
        }
        all
    }

    fn and(self, other: Self) -> Self {
        let join = |one: (TreePosition, TreePosition), other: (TreePosition, TreePosition)| {
            (one.0.min(other.0), one.1.max(other.1))
        };
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            reachable_bytes: self.reachable_bytes.saturating_add(other.reachable_bytes),
            reachable: self.reachable + other.reachable,
            span: self.span.into_iter().chain(other.span).reduce(join),
        }
    }
}

/// Returns the size of the objects at the marked positions between `first` and `last`.
fn bytes_at(tree: &Tree, first: TreePosition, last: TreePosition, meant: &Marks<TreePosition>) -> u64 {
    let chunks = TreePosition::chunks(first..TreePosition(last.0.saturating_add(1)), CHUNK);
    let bytes = parallel::map(&chunks, |chunk| {
        let sizes = TreePosition::range(chunk.clone()).zip(tree.shallow_sizes(chunk));
        sizes
            .filter(|(position, _)| meant.contains(*position))
            .fold(0, |sum: u64, (_, size)| sum.saturating_add(size))
    });
    bytes.into_iter().fold(0, u64::saturating_add)
}

/// Returns the common dominator of the objects at two positions, which dominates all objects between them.
///
/// The objects retain nothing that it does not dominate, and a path from it to an object that it dominates contains only such
/// objects. Therefore a walk can start here.
fn common_dominator(tree: &Tree, first: TreePosition, last: TreePosition) -> Start {
    tree.common_dominator(first, last).map_or(Start::Roots, Start::Object)
}

/// Returns the positions of the reachable ones of `objects` that no other of `objects` dominates, ascending.
pub fn tops(tree: &Tree, objects: impl IntoIterator<Item = ObjectIndex>) -> Vec<TreePosition> {
    let positions = objects.into_iter().filter_map(|object| tree.reachable_position(object));
    tops_of_positions(tree, positions.collect())
}

/// Returns those of `positions` whose objects no object at another of `positions` dominates, ascending.
pub fn tops_of_positions(tree: &Tree, mut positions: Vec<TreePosition>) -> Vec<TreePosition> {
    positions.sort_unstable();
    let mut end = TreePosition(0);
    positions.retain(|position| {
        let is_top = *position >= end;
        if is_top {
            end = tree.end(*position);
        }
        is_top
    });
    positions
}

/// Returns the retained size of objects by the dominator tree alone: objects that several of them dominate count once;
/// objects that only several of them together retain do not count.
pub fn retained_by_tree(tree: &Tree, objects: impl IntoIterator<Item = ObjectIndex>) -> u64 {
    let tops = tops(tree, objects).into_iter();
    tops.fold(0, |sum, position| sum.saturating_add(tree.retained_bytes(position)))
}
