//! Counts over the graph: reachable and unreachable objects of each class, and retained sizes of classes.

use std::ops::Range;

use rayon::prelude::*;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

use super::class_pass::{CHUNK, each_class};

/// Number of parts of the tree that are not worth another thread.
const FEW: usize = 64;

/// Number and shallow size of a set of objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of objects.
    pub objects: u64,
    /// Shallow size of the objects.
    pub shallow_bytes: u64,
}

/// Counts the objects of a range of positions, by class number. Objects of unknown class are omitted.
pub fn count(graph: &ObjectGraph, positions: Range<TreePosition>, classes: usize) -> Vec<Counts> {
    count_if(graph, positions, classes, |_| true)
}

/// Counts the objects of a range of positions that satisfy a condition, by class number.
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

/// Counts the objects that the given objects dominate, including themselves; none of the given objects may dominate another.
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

/// Counts the objects at the given positions.
fn add_objects(
    graph: &ObjectGraph,
    positions: Range<TreePosition>,
    counts: &mut [Counts],
    is_meant: &impl Fn(ObjectIndex) -> bool,
) {
    let (tree, labels) = (&graph.tree, graph.labels());
    let mut sizes = Vec::new();
    for chunk in TreePosition::chunks(positions, CHUNK) {
        sizes.clear();
        tree.visit_sizes(chunk.clone(), |bytes| sizes.push(bytes));
        let mut sizes = sizes.iter();
        each_class(tree, &labels, chunk, |object, class| {
            let (Some(bytes), true) = (sizes.next(), is_meant(object)) else { return };
            if let Some(count) = counts.get_mut(class as usize) {
                count.objects += 1;
                count.shallow_bytes = count.shallow_bytes.saturating_add(*bytes);
            }
        });
    }
}

/// Adds counts by class number, and returns the sums.
pub fn add(mut counts: Vec<Counts>, others: &[Counts]) -> Vec<Counts> {
    for (count, other) in counts.iter_mut().zip(others) {
        count.objects += other.objects;
        count.shallow_bytes = count.shallow_bytes.saturating_add(other.shallow_bytes);
    }
    counts
}
