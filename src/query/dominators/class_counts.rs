//! Counts over the graph: reachable and unreachable objects of each class, and what classes retain.

use std::ops::Range;

use rayon::prelude::*;

use hprof_index::ObjectGraph;
use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::NONE;

use super::preorder;

/// Positions that are looked up before the pass over them.
const BATCH: u32 = 1 << 18;
/// Positions that one thread takes at a time.
const CHUNK: u32 = 1 << 14;
/// Prefetch distance in objects.
const AHEAD: usize = 16;
/// Parts of the tree that are not worth another thread.
const FEW: usize = 64;
/// Superclasses of a class that count what it retains. The JVM's own chains are of a few dozen; a hostile dump has others.
const MAX_SUPERCLASSES: usize = 64;

/// Objects and their shallow bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of objects.
    pub objects: u64,
    /// Their shallow size.
    pub shallow_bytes: u64,
}

/// Counts the objects of a range of positions, by class number. Objects of no known class are left out.
pub fn count(graph: &ObjectGraph, positions: Range<TreePosition>, classes: usize) -> Vec<Counts> {
    count_if(graph, positions, classes, |_| true)
}

/// Like [`count`], for some objects only.
pub(crate) fn count_if(
    graph: &ObjectGraph,
    positions: Range<TreePosition>,
    classes: usize,
    is_meant: impl Fn(ObjectIndex) -> bool + Sync,
) -> Vec<Counts> {
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
    let chunk = (u64::from(positions.end.0.saturating_sub(positions.start.0)) / u64::from(threads) / 4 + 1)
        .clamp(u64::from(CHUNK), u64::from(u32::MAX));
    let count_chunk = |mut counts: Vec<Counts>, chunk: Range<TreePosition>| {
        add_objects(graph, chunk, &mut counts, &is_meant);
        counts
    };
    let none = || vec![Counts::default(); classes];
    let chunks = TreePosition::chunks(positions, u32::try_from(chunk).unwrap_or(u32::MAX));
    chunks
        .into_par_iter()
        .with_min_len(1)
        .fold(none, count_chunk)
        .reduce(none, |counts, others| add(counts, &others))
}

/// Counts what some objects dominate, themselves included; none of them dominates another.
pub fn count_below(graph: &ObjectGraph, tops: &[TreePosition], classes: usize) -> Vec<Counts> {
    if let [top] = tops {
        return count(graph, *top..graph.tree.end(*top), classes);
    }
    // Many small parts: each thread counts its share of them.
    let share = (tops.len() / rayon::current_num_threads() / 4).max(FEW);
    let none = || vec![Counts::default(); classes];
    let shares = tops.par_chunks(share).map(|tops| {
        tops.iter().fold(none(), |mut counts, top| {
            add_objects(graph, *top..graph.tree.end(*top), &mut counts, &|_| true);
            counts
        })
    });
    shares.reduce(none, |counts, others| add(counts, &others))
}

/// Counts the objects at some positions.
fn add_objects(
    graph: &ObjectGraph,
    positions: Range<TreePosition>,
    counts: &mut [Counts],
    is_meant: &impl Fn(ObjectIndex) -> bool,
) {
    let (tree, labels) = (&graph.tree, graph.labels());
    let mut sizes = tree.shallow_sizes(positions.clone());
    for chunk in TreePosition::chunks(positions, CHUNK) {
        each_class(tree, &labels, chunk, |object, class| {
            let (Some(bytes), true) = (sizes.next(), is_meant(object)) else { return };
            if let Some(count) = counts.get_mut(class as usize) {
                count.objects += 1;
                count.shallow_bytes = count.shallow_bytes.saturating_add(bytes);
            }
        });
    }
}

/// Calls `visit` with the objects at some positions, in order, and the numbers of their classes; [`NONE`] if unknown.
/// Classes are scattered over memory, so they are prefetched.
fn each_class(
    tree: &Tree,
    labels: &Labels<'_>,
    positions: Range<TreePosition>,
    mut visit: impl FnMut(ObjectIndex, u32),
) {
    let objects: Vec<ObjectIndex> = tree.objects_at(positions).collect();
    for (at, object) in objects.iter().enumerate() {
        if let Some(ahead) = objects.get(at + AHEAD) {
            labels.prefetch(ahead.0);
        }
        let class = labels.known(object.0).and_then(|class| u32::try_from(class).ok());
        visit(*object, class.unwrap_or(NONE));
    }
}

/// Adds figures, class by class.
pub(crate) fn add(mut counts: Vec<Counts>, others: &[Counts]) -> Vec<Counts> {
    for (count, other) in counts.iter_mut().zip(others) {
        count.objects += other.objects;
        count.shallow_bytes = count.shallow_bytes.saturating_add(other.shallow_bytes);
    }
    counts
}

/// Retained size of each group of objects. `of_class` maps a class number to the group of the class, or [`NONE`].
///
/// Whatever an object dominates belongs to the object. So the retained size of a group is the sum over those of its
/// objects that no other object of the group dominates.
pub fn retained(graph: &ObjectGraph, of_class: &[u32], groups: usize) -> Vec<u64> {
    let mut pass = ClassPass::new(groups);
    let group = |_, class: u32| of_class.get(class as usize).copied().unwrap_or(NONE);
    self::pass(graph, graph.tree.all(), group, |_, depth, group, bytes| pass.object(depth, [group], bytes));
    pass.close(0);
    pass.retained
}

/// Like [`retained`], where an object also belongs to the groups of all superclasses of its class.
pub fn retained_with_subclasses(
    graph: &ObjectGraph,
    summary: &Summary,
    of_class: &[u32],
    groups: usize,
) -> Vec<u64> {
    let mut pass = ClassPass::new(groups);
    // By class number: the nearest class, itself included, that has a group, and that group.
    let table = summary.class_table();
    let nearest = table.derive(|class, above: Option<&Option<(ClassNumber, u32)>>| {
        let own = of_class.get(class.0 as usize).copied().filter(|group| *group != NONE);
        own.map(|group| (class, group)).or_else(|| above.copied().flatten())
    });
    let nearest_of = |class: ClassNumber| nearest.get(class.0 as usize).copied().flatten();
    self::pass(
        graph,
        graph.tree.all(),
        |_, class| class,
        |_, depth, class, bytes| {
            let above = |(class, _): &(ClassNumber, u32)| nearest_of(table.superclass(*class)?);
            let chain = std::iter::successors(nearest_of(ClassNumber(class)), above).take(MAX_SUPERCLASSES);
            pass.object(depth, chain.map(|(_, group)| group), bytes);
        },
    );
    pass.close(0);
    pass.retained
}

/// Visits the objects at some positions in preorder: position, depth, the result of `look_up` for the object and the
/// number of its class ([`NONE`] if unknown), shallow bytes.
pub(crate) fn pass<T: Copy + Default + Send + Sync>(
    graph: &ObjectGraph,
    positions: Range<TreePosition>,
    look_up: impl Fn(ObjectIndex, u32) -> T + Sync,
    mut visit: impl FnMut(TreePosition, u32, T, u64) + Send,
) {
    let (tree, labels) = (&graph.tree, graph.labels());
    // By all threads, and ahead of the pass, which is one thread's.
    let look_up = |batch: Range<TreePosition>| -> Vec<T> {
        let mut found = vec![T::default(); (batch.end.0 - batch.start.0) as usize];
        let chunks = TreePosition::chunks(batch, CHUNK);
        chunks.into_par_iter().zip(found.par_chunks_mut(CHUNK as usize)).for_each(|(chunk, places)| {
            let mut places = places.iter_mut();
            each_class(tree, &labels, chunk, |object, class| {
                if let Some(place) = places.next() {
                    *place = look_up(object, class);
                }
            });
        });
        found
    };
    let batches = TreePosition::chunks(positions, BATCH);
    let mut here = batches.first().map(|batch| look_up(batch.clone())).unwrap_or_default();
    for (number, batch) in batches.iter().enumerate() {
        let next = batches.get(number + 1).cloned();
        let (next, ()) = rayon::join(
            || next.map(look_up).unwrap_or_default(),
            || {
                let mut here = here.iter();
                preorder::visit(tree, batch.clone(), |position, depth, bytes| {
                    if let Some(found) = here.next() {
                        visit(position, depth, *found, bytes);
                    }
                });
            },
        );
        here = next;
    }
}

/// A pass over the tree in preorder.
struct ClassPass {
    retained: Vec<u64>,
    /// Groups with an object that the current one is dominated by.
    is_open: Vec<bool>,
    /// The outermost objects of each group: depth, group, shallow bytes of all objects before.
    open: Vec<(u32, u32, u64)>,
    /// Shallow bytes of all objects so far.
    bytes: u64,
}

impl ClassPass {
    fn new(groups: usize) -> Self {
        Self { retained: vec![0; groups], is_open: vec![false; groups], open: Vec::new(), bytes: 0 }
    }

    /// The next object, of some groups.
    #[inline]
    fn object(&mut self, depth: u32, groups: impl IntoIterator<Item = u32>, shallow_bytes: u64) {
        // Mostly there is nothing to close.
        if self.open.last().is_some_and(|(open, ..)| *open >= depth) {
            self.close(depth);
        }
        for group in groups {
            if let Some(is_open) = self.is_open.get_mut(group as usize)
                && !*is_open
            {
                *is_open = true;
                self.open.push((depth, group, self.bytes));
            }
        }
        self.bytes = self.bytes.saturating_add(shallow_bytes);
    }

    /// Ends what objects of this depth and below dominate.
    fn close(&mut self, depth: u32) {
        while let Some((_, group, before)) = self.open.pop_if(|(open, ..)| *open >= depth) {
            if let Some(retained) = self.retained.get_mut(group as usize) {
                *retained = retained.saturating_add(self.bytes - before);
            }
            if let Some(is_open) = self.is_open.get_mut(group as usize) {
                *is_open = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_objects_of_a_group_count_once() {
        let mut pass = ClassPass::new(3);
        // 0: a(10) holds b(1), which holds a(2) and c(4); then b(100).
        for (depth, group, bytes) in [(0, 0, 10), (1, 1, 1), (2, 0, 2), (2, 2, 4), (0, 1, 100), (0, NONE, 5)]
        {
            pass.object(depth, [group], bytes);
        }
        pass.close(0);
        assert_eq!(pass.retained, [17, 107, 4]);
    }
}
