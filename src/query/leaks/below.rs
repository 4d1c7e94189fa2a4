//! Accumulations within holders: where a bean factory, a server object or a thread holds nearly everything, each store
//! below it that retains more than the threshold is a suspect, however deep.
//!
//! They are found among the places of the heap ([`crate::compare::places`]), so many like objects whose contents
//! accumulate alike - ten results with their rows - are one suspect with the sum.

use std::cmp::Reverse;
use std::io;

use roaring::RoaringBitmap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::{Heap, ObjectGraph};

use crate::compare::places::{Aligned, DumpPlaces, Explained, OneHeap};
use crate::dominators::retained_of_set::{retained, tops};
use crate::frameworks::{FrameworkDescription, FrameworkVerdict, Frameworks, KnownFrameworks};
use crate::objects::reader::ObjectReader;
use crate::sorting::SortRows;

use super::contents::{self, Reason};
use super::loaders::common_bytes;

/// Objects are described that retain this fraction of the heap.
const PART_DESCRIBED: u64 = 100;
/// The heap is looked into down to objects that retain this fraction of it.
const PART: u64 = 1000;

/// Objects that a framework's rules describe, those that retain most.
const MAX_DESCRIBED: usize = 256;
/// Dominators examined for one that is described.
const MAX_STEPS: usize = 64;

/// The places of a heap, and what frameworks' rules say of objects.
#[derive(Debug, Clone, Default)]
pub struct HeapPlaces {
    /// The places of large objects.
    pub places: OneHeap,
    described: Vec<Described>,
}

/// What a rule says of an object.
#[derive(Debug, Clone)]
struct Described {
    object: ObjectIndex,
    /// The collection of its entries.
    entries: Option<ObjectIndex>,
    description: FrameworkDescription,
}

impl HeapPlaces {
    /// Finds the places of the large objects of a heap, and describes objects of frameworks.
    ///
    /// # Errors
    /// As of [`DumpPlaces::new`].
    pub fn new(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<Self> {
        let least = graph.tree.reachable_bytes() / PART;
        let places = OneHeap::new(DumpPlaces::of_large(heap, graph, bytes, least)?);
        let objects = ObjectReader::new(heap.summary(), graph, bytes);
        let known = KnownFrameworks::new(heap, &objects, &Frameworks::bundled());
        let mut all = known.instances(graph.tree.reachable_bytes() / PART_DESCRIBED);
        all.sort_by_key(|object| Reverse(graph.tree.retained_bytes_of(*object)));
        all.truncate(MAX_DESCRIBED);
        let describe = |object: ObjectIndex| {
            let mut description = known.describe(object)?;
            let id = graph.objects.addresses.id_of(object).unwrap_or_default();
            description.called = places.title_of(id).or(description.called);
            let entries = known.entries(object).map(|(entries, _)| entries);
            Some(Described { object, entries, description })
        };
        let described = all.into_iter().filter_map(describe).collect();
        Ok(Self { places, described })
    }

    /// Returns what a rule says of an object, or of one that dominates it and retains little more.
    pub(super) fn description(
        &self,
        graph: &ObjectGraph,
        base: TreePosition,
    ) -> Option<&FrameworkDescription> {
        let tree = &graph.tree;
        let bytes = tree.retained_bytes(base);
        let chain = std::iter::successors(Some(base), |position| tree.dominator(*position)).take(MAX_STEPS);
        let near = chain.take_while(|above| contents::is_half(bytes, tree.retained_bytes(*above)));
        near.filter_map(|position| tree.object_at(position)).find_map(|object| {
            let is_it = |known: &&Described| known.object == object || known.entries == Some(object);
            Some(&self.described.iter().find(is_it)?.description)
        })
    }

    /// Returns what a rule says of an object.
    pub fn description_of(&self, object: ObjectIndex) -> Option<&FrameworkDescription> {
        Some(&self.described.iter().find(|known| known.object == object)?.description)
    }

    /// Returns the leaks that rules find by themselves, with the objects that they are about.
    pub(super) fn leaks<'h>(
        &'h self,
        graph: &'h ObjectGraph,
    ) -> impl Iterator<Item = (Store, &'h FrameworkDescription)> {
        let leaks = self.described.iter().map(|known| (known.object, &known.description));
        let leaks = leaks.filter(|(_, description)| description.verdict == Some(FrameworkVerdict::Leak));
        leaks.filter_map(|(object, description)| {
            let tree = &graph.tree;
            let set: RoaringBitmap = description.retains.iter().map(|object| object.0).collect();
            let positions = tops(tree, description.retains.iter().copied());
            let largest = positions
                .iter()
                .copied()
                .max_by_key(|position| (tree.retained_bytes(*position), Reverse(*position)))?;
            let retained_bytes = retained(graph, &set).retained_bytes;
            let store = Store {
                largest: tree.reachable_position(object).unwrap_or(largest),
                objects: 1,
                retained_bytes,
                reason: Reason::Children { class: String::new(), objects: set.len(), retained_bytes },
                named: description.called.clone(),
                positions,
            };
            Some((store, description))
        })
    }
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
    found.retain(|store| !known.iter().any(|known| is_same(tree, &store.positions, known)));
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

/// Returns whether most of what some objects retain is most of what others do, or a part of it; both ascending.
pub(super) fn is_same(tree: &Tree, some: &[TreePosition], others: &[TreePosition]) -> bool {
    let sum = |positions: &[TreePosition]| {
        positions.iter().fold(0u64, |sum, position| sum.saturating_add(tree.retained_bytes(*position)))
    };
    let common = common_bytes(tree, some, others);
    common > 0 && contents::is_most(common, sum(some).min(sum(others)))
}
