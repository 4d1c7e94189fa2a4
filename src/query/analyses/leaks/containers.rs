//! Containers that explain suspects.

use std::cmp::Reverse;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;

use crate::containers::{Container, ContainerFamily, ElementClass};

use super::contents::is_most;
use super::heap_places::HeapPlaces;
use super::positions::{common_bytes, is_within, retained_bytes};

/// Returns the container that explains most of the retained size of the given objects; none of the objects may dominate
/// another. Of several nested containers, returns the one with the most elements; instead of nodes that are themselves
/// elements, a collection that contains them.
pub(super) fn explaining(
    graph: &ObjectGraph,
    places: &HeapPlaces,
    positions: &[TreePosition],
) -> Option<Container> {
    let tree = &graph.tree;
    let all = retained_bytes(tree, positions);
    let is_explaining = |one: &&Container| {
        // Memory that it retains beyond these objects would be another suspect.
        one.accumulates()
            && is_most(one.retained_bytes, all)
            && is_most(all, one.retained_bytes)
            && is_most(common_bytes(tree, &one.tops, positions), all)
    };
    let found = places.containers.all.iter().filter(is_explaining);
    let found = found.max_by_key(|one| (one.elements, Reverse(one.object)))?;
    let listed = collection_of_nodes(graph, places, found);
    let retained_bytes = found.retained_bytes;
    Some(listed.map_or_else(
        || found.clone(),
        |listed| Container { retained_bytes, is_shared: false, ..listed.clone() },
    ))
}

/// Returns the collection below the nodes' owner whose elements are the nodes of the largest class. The nodes belong to several
/// lists and indexes of their owner, so that none of these dominates them.
fn collection_of_nodes<'p>(
    graph: &ObjectGraph,
    places: &'p HeapPlaces,
    nodes: &Container,
) -> Option<&'p Container> {
    let sizes = nodes.element_classes.iter().map(|row| row.retained_bytes);
    let largest = sizes.max().filter(|_| nodes.are_nodes)?;
    let tree = &graph.tree;
    let is_below = |one: &&Container| {
        let object = graph.objects.addresses.index_of(one.object);
        let position = object.and_then(|object| tree.reachable_position(object));
        position.is_some_and(|position| is_within(tree, position, &nodes.tops))
    };
    let is_largest = |class: &ElementClass| {
        let mut of_nodes = nodes.element_classes.iter().filter(|row| row.retained_bytes == largest);
        of_nodes.any(|row| row.class == class.class && row.elements == class.elements)
    };
    let holds = |one: &&Container| one.nodes == 0 && one.element_classes.iter().any(is_largest);
    let found = places.containers.all.iter().filter(holds).filter(is_below);
    // A list rather than an index.
    found.max_by_key(|one| (one.family == ContainerFamily::List, Reverse(one.object)))
}

/// Returns the containers that retain more than `threshold` bytes in their elements, largest first; they can contain one
/// another.
pub(super) fn accumulating(places: &HeapPlaces, threshold: u64) -> impl Iterator<Item = &Container> {
    places.containers.all.iter().filter(move |one| one.retained_bytes > threshold && one.accumulates())
}
