//! Accumulations within holders: where a bean factory, a server object or a thread holds nearly everything, each store
//! below it that retains more than the threshold is a suspect, however deep.
//!
//! They are found among the places of the heap ([`crate::compare::places`]), so many like objects whose contents
//! accumulate alike - ten results with their rows - are one suspect with the sum.

use std::cmp::Reverse;
use std::io;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::{Heap, ObjectGraph};

use crate::compare::places::{Aligned, DumpPlaces, Explained, OneHeap};
use crate::sorting::SortRows;

use super::contents::{self, Reason};
use super::loaders::common_bytes;

/// The heap is looked into down to objects that retain this fraction of it.
const PART: u64 = 1000;

/// DumpPlaces of the large objects of a heap.
///
/// # Errors
/// As of [`DumpPlaces::new`].
pub fn places(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<OneHeap> {
    let least = graph.tree.reachable_bytes() / PART;
    Ok(OneHeap::new(DumpPlaces::of_large(heap, graph, bytes, least)?))
}

/// A store within a holder.
pub(super) struct Store {
    /// Its objects, ascending.
    pub(super) positions: Vec<TreePosition>,
    /// The largest of them.
    pub(super) largest: TreePosition,
    /// Number of objects at the place.
    pub(super) objects: u64,
    /// Retained size of all of them.
    pub(super) retained_bytes: u64,
    /// What accumulates.
    pub(super) reason: Reason,
    /// The place in few words, if a name of the program is part of them.
    pub(super) named: Option<String>,
}

/// Returns the stores that retain more than `threshold` bytes and are not part of what `known` positions retain, nor
/// these part of them; largest first.
pub(super) fn stores(
    graph: &ObjectGraph,
    heap: &OneHeap,
    threshold: u64,
    known: &[Vec<TreePosition>],
) -> Vec<Store> {
    let tree = &graph.tree;
    let explained = heap.explain(threshold.saturating_add(1));
    let mut found: Vec<Store> = explained.iter().filter_map(|one| store(graph, heap, one)).collect();
    found.retain(|store| {
        let is_same = |known: &Vec<TreePosition>| {
            let bytes =
                known.iter().fold(0u64, |sum, position| sum.saturating_add(tree.retained_bytes(*position)));
            let common = common_bytes(tree, &store.positions, known);
            common > 0 && contents::is_most(common, bytes.min(store.retained_bytes))
        };
        !known.iter().any(is_same)
    });
    found.sort_rows_by_key(|store| (Reverse(store.retained_bytes), store.largest));
    found
}

fn store(graph: &ObjectGraph, heap: &OneHeap, one: &Explained) -> Option<Store> {
    let (tree, aligned) = (&graph.tree, &heap.aligned);
    let elements = one.elements.filter(|elements| elements.place != one.place)?;
    let positions = heap.members(one.place).to_vec();
    let largest = positions
        .iter()
        .copied()
        .max_by_key(|position| (tree.retained_bytes(*position), Reverse(*position)))?;
    let class = |place: u32| -> String {
        Aligned::label(aligned, place).class.as_deref().unwrap_or_default().to_owned()
    };
    let title = aligned.title(one.place);
    Some(Store {
        largest,
        objects: aligned.figures(0, one.place).objects,
        retained_bytes: one.retained_bytes,
        reason: Reason::Children {
            class: class(elements.place),
            objects: elements.objects,
            retained_bytes: elements.retained_bytes,
        },
        named: Some(title.text).filter(|_| title.is_named),
        positions,
    })
}
