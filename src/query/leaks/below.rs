//! Accumulations within holders: where a bean factory, a server object or a thread holds nearly everything, each store
//! below it that retains more than the threshold is a suspect, however deep.
//!
//! They are found among the places of the heap ([`crate::compare::places`]), so many like objects whose contents
//! accumulate alike (ten results with their rows, for example) are one suspect with the sum.

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

/// Minimum fraction of the heap, as 1/N, that a described object retains.
const PART_DESCRIBED: u64 = 100;
/// Minimum fraction of the heap, as 1/N, that an examined object retains.
const PART: u64 = 1000;

/// Maximum number of objects described by frameworks' rules; those that retain most are kept.
const MAX_DESCRIBED: usize = 256;
/// Maximum number of dominators searched for a described object.
const MAX_STEPS: usize = 64;

/// Places of a heap, and descriptions of objects by frameworks' rules.
#[derive(Debug, Clone, Default)]
pub struct HeapPlaces {
    /// Places of large objects.
    pub places: OneHeap,
    described: Vec<Described>,
}

/// An object and its description by a rule.
#[derive(Debug, Clone)]
struct Described {
    object: ObjectIndex,
    /// Collection of its entries.
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

    /// Returns the description of an object, or of one that dominates it and retains little more.
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

    /// Returns the description of an object by a rule.
    pub fn description_of(&self, object: ObjectIndex) -> Option<&FrameworkDescription> {
        Some(&self.described.iter().find(|known| known.object == object)?.description)
    }

    /// Returns the leaks that rules report on their own, with the objects concerned.
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
    /// Objects, ascending.
    pub(super) positions: Vec<TreePosition>,
    /// Largest object.
    pub(super) largest: TreePosition,
    /// Number of objects at the place; can exceed the number of positions.
    pub(super) objects: u64,
    /// Retained size of all objects.
    pub(super) retained_bytes: u64,
    /// Form of accumulation.
    pub(super) reason: Reason,
    /// Short description of the place, if it contains a name from the program.
    pub(super) named: Option<String>,
}

/// Returns the stores that retain more than `threshold` bytes, largest first, except those that retain mostly the same as
/// one of `known`.
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

/// Returns `true` if two sets of objects, both ascending, have most of the smaller retained size in common.
pub(super) fn is_same(tree: &Tree, some: &[TreePosition], others: &[TreePosition]) -> bool {
    let sum = |positions: &[TreePosition]| {
        positions.iter().fold(0u64, |sum, position| sum.saturating_add(tree.retained_bytes(*position)))
    };
    let common = common_bytes(tree, some, others);
    common > 0 && contents::is_most(common, sum(some).min(sum(others)))
}
