//! Containers that explain suspects.

use std::cmp::Reverse;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::Tree;

use crate::containers::Container;

use super::contents::is_most;
use super::heap_places::HeapPlaces;
use super::loaders::{common_bytes, retained_bytes};

/// Returns the container that explains most of what some objects retain, of which none dominates another. Of several, one in
/// the other, it is that with the most elements.
pub(super) fn explaining<'p>(
    tree: &Tree,
    places: &'p HeapPlaces,
    positions: &[TreePosition],
) -> Option<&'p Container> {
    let all = retained_bytes(tree, positions);
    let is_explaining = |one: &&Container| {
        // What it holds and they do not would be another suspect.
        one.accumulates()
            && is_most(one.retained_bytes, all)
            && is_most(all, one.retained_bytes)
            && is_most(common_bytes(tree, &one.tops, positions), all)
    };
    let found = places.containers.all.iter().filter(is_explaining);
    found.max_by_key(|one| (one.elements, Reverse(one.object)))
}

/// Returns the containers that retain more than `threshold` bytes in their elements, largest first; they can hold one
/// another.
pub(super) fn accumulating(places: &HeapPlaces, threshold: u64) -> impl Iterator<Item = &Container> {
    places.containers.all.iter().filter(move |one| one.retained_bytes > threshold && one.accumulates())
}
