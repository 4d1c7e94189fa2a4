//! How much of a heap is wasted, about, in bounded time: for a first look.
//!
//! Small heaps are asked as `waste` asks them. Of a large one a sample is: windows of the dominator tree's preorder, evenly
//! spaced, so that what belongs together is in one window, such as a String and its characters. What the sample wastes counts
//! for as many times as it is smaller than the heap. That is mostly too little, never much too much: of copies the sample
//! finds only those of which another is in it, and what is large counts as used.

use std::io;
use std::ops::Range;

use super::fields::GroupBy;
use super::findings::Reachable;
use super::{KINDS, Question, Search, WasteKind, findings, union};
use crate::sorting::SortRows;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::{Heap, ObjectGraph};

/// Reachable objects of a heap that is asked as a whole.
const MAX_EXACT: u32 = 1 << 20;
/// Windows of the sample, and objects in each.
const WINDOWS: (u32, u32) = (256, 1 << 10);
/// Larger objects are not in the sample: one that stands for a hundred others would decide alone.
const LARGE: u64 = 16 << 10;

/// How much of a heap is wasted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// What each kind wastes of which something was found, most bytes first.
    pub kinds: Vec<(&'static WasteKind, u64)>,
    /// What all kinds waste together, no byte counted twice.
    pub wasted_bytes: u64,
    /// What those of reachable objects waste.
    pub reachable_wasted_bytes: u64,
    /// Shallow bytes of all objects.
    pub all_bytes: u64,
    /// Whether these are the figures of `waste`, not those of a sample.
    pub is_exact: bool,
}

/// Estimates how much is wasted; of a small heap exactly.
///
/// # Errors
/// As [`super::waste`].
pub fn estimate(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<Estimate> {
    estimate_with(heap, graph, bytes, MAX_EXACT, WINDOWS)
}

/// As [`estimate`]: of a heap with more than `most` reachable objects a sample is asked, of so many windows of so many
/// objects, which are no more than that.
pub fn estimate_with(
    heap: &Heap,
    graph: &ObjectGraph,
    bytes: &[u8],
    most: u32,
    (count, length): (u32, u32),
) -> io::Result<Estimate> {
    let tree = &graph.tree;
    let is_exact = tree.reachable() <= most;
    let windows = if is_exact { Vec::new() } else { windows(tree.reachable(), count, length) };
    let looked_at = if is_exact { Reachable::of(graph) } else { Reachable::sample(graph, &windows, LARGE) };
    let search = Search::new(heap, graph, bytes, looked_at);
    let kinds = KINDS.into_iter().filter(|kind| is_exact || kind.is_sampled).collect();
    let found = findings(&search, &Question { kinds, group_by: GroupBy::Field, examples: 0 })?;
    let scale = |bytes: u64| {
        let sampled = if is_exact { tree.reachable() } else { count.saturating_mul(length) };
        let scaled = u128::from(bytes) * u128::from(tree.reachable()) / u128::from(sampled.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    };
    let all_bytes = search.all_bytes();
    let mut kinds: Vec<(&'static WasteKind, u64)> = Vec::new();
    let mut reachable_wasted_bytes = 0u64;
    for (findings, added) in found.iter().zip(union::add(&search, &found)) {
        if findings.kind.is_of_reachable() {
            kinds.push((findings.kind, scale(findings.bytes).min(tree.reachable_bytes())));
            reachable_wasted_bytes = reachable_wasted_bytes.saturating_add(scale(added));
        }
    }
    // All unreachable objects are of one kind.
    let unreachable = all_bytes.saturating_sub(tree.reachable_bytes());
    let garbage = KINDS.into_iter().filter(|kind| unreachable > 0 && !kind.is_of_reachable());
    kinds.extend(garbage.map(|kind| (kind, unreachable)));
    kinds.sort_rows_by_key(|(kind, bytes)| (std::cmp::Reverse(*bytes), *kind));
    let reachable_wasted_bytes = reachable_wasted_bytes.min(tree.reachable_bytes());
    let wasted_bytes = reachable_wasted_bytes.saturating_add(unreachable);
    Ok(Estimate { kinds, wasted_bytes, reachable_wasted_bytes, all_bytes, is_exact })
}

/// `count` evenly spaced windows of `length` positions.
fn windows(positions: u32, count: u32, length: u32) -> Vec<Range<TreePosition>> {
    let step = positions / count.max(1);
    let before = step.saturating_sub(length) / 2;
    let window = |number: u32| {
        let start = number.saturating_mul(step).saturating_add(before);
        TreePosition(start)..TreePosition(start.saturating_add(length))
    };
    (0..count).map(window).collect()
}
