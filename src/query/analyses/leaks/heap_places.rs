//! Places that explain a heap, in the terms of its frameworks. The overview and the leak suspects share them.

use std::cmp::Reverse;
use std::{io, mem};

use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::{Dump, ObjectGraph};

use crate::compare::places::{DumpPlaces, ExplainedHeap, ExplainedPlace, OneHeap, PlaceElements};
use crate::containers::Containers;
use crate::frameworks::{FrameworkDescription, FrameworkVerdict, Frameworks, KnownFrameworks};
use hprof_model::dominators::retained_of_set::{retained, retained_set, tops};

use super::contents;
use super::positions::{common_bytes, retained_bytes};

/// Minimum retained size of an examined object, as a fraction of the heap, 1/N.
const PART: u64 = 1000;
/// Minimum retained size of a described object or an explaining place, in percent of the heap.
const TOLD_PERCENT: u8 = 2;
/// Maximum number of objects described by frameworks' rules; those that retain the most are used.
const MAX_DESCRIBED: usize = 256;
/// Maximum number of leaks by frameworks' rules whose sizes are computed.
const MAX_LEAKS: usize = 16;
/// Maximum number of objects, none of which dominates another, that a leak by a framework's rule explains.
const MAX_TOPS: usize = 1 << 18;
/// Maximum number of dominators that are searched for a described object.
const MAX_STEPS: usize = 1 << 12;

/// Places of a heap, and descriptions of objects by frameworks' rules.
#[derive(Debug, Clone, Default)]
pub struct HeapPlaces {
    /// Places of large objects.
    pub heap: OneHeap,
    /// Places that explain the heap, and the size of the largest other place.
    pub explained: ExplainedHeap,
    /// Containers and their elements.
    pub containers: Containers,
    /// Rules that describe objects.
    pub(super) frameworks: Frameworks,
    described: Vec<DescribedObject>,
    /// Index in `described`, by object and by collection of an object's entries.
    numbers: FxHashMap<u32, usize>,
}

/// An object and its description by a framework's rule.
#[derive(Debug, Clone)]
struct DescribedObject {
    object: ObjectIndex,
    description: FrameworkDescription,
}

/// A leak that a framework's rule reports.
pub(super) struct FrameworkLeak<'h> {
    pub(super) object: ObjectIndex,
    pub(super) description: &'h FrameworkDescription,
    /// Positions of the objects whose retained size the leak explains, ascending; objects that others dominate are omitted.
    pub(super) positions: Vec<TreePosition>,
    pub(super) retained_bytes: u64,
}

/// Stores in the index of a heap the places of its large objects, by the built-in rules, and its containers.
///
/// # Errors
/// The errors of [`DumpPlaces::of_large`] and [`Containers::find`].
pub fn store_places(dump: &Dump<'_>) -> io::Result<()> {
    large(dump, &Frameworks::builtin())?;
    Containers::find(dump).map(drop)
}

fn large(dump: &Dump<'_>, frameworks: &Frameworks) -> io::Result<DumpPlaces> {
    DumpPlaces::of_large(dump, frameworks, dump.graph.tree.reachable_bytes() / PART)
}

impl HeapPlaces {
    /// Finds the places of the large objects of a heap, and the places that explain the heap and retain at least 2 percent (or
    /// `threshold` percent, if that is less), and describes objects of frameworks.
    ///
    /// # Errors
    /// The errors of [`DumpPlaces::of_large`] and [`Containers::find`].
    pub fn new(dump: &Dump<'_>, frameworks: &Frameworks, threshold: u8) -> io::Result<Self> {
        let all = dump.graph.tree.reachable_bytes();
        let places = OneHeap::new(large(dump, frameworks)?);
        let told = all / 100 * u64::from(threshold.min(TOLD_PERCENT));
        let containers = Containers::find(dump)?;
        let by_object = containers.by_object();
        let is_store = |object| by_object.get(&object).is_some_and(|container| container.accumulates());
        let explained = places.explain(told, is_store);
        let known = KnownFrameworks::new(dump, frameworks);
        let titles = places.titles();
        let title = |object: ObjectIndex| titles.get(&dump.graph.objects.addresses.id_of(object)?).cloned();
        let is_told = |object: &ObjectIndex| {
            known.is_always_described(*object)
                || dump.graph.tree.retained_bytes_of(*object) >= Some(told)
                || title(*object).is_some()
        };
        let mut instances = known.instances(told);
        instances.retain(is_told);
        instances.sort_by_key(|object| Reverse(dump.graph.tree.retained_bytes_of(*object)));
        instances.truncate(MAX_DESCRIBED);
        // One of many objects that share a name represents them all.
        let many = explained.places.iter().filter_map(|one| one.elements);
        let many = many.filter(|elements| places.name_of_elements(elements).is_some());
        let example = |elements: PlaceElements| places.aligned.figures(0, elements.place).example;
        instances
            .extend(many.filter_map(|elements| dump.graph.objects.addresses.index_of(example(elements))));
        let frameworks = frameworks.clone();
        let mut found = Self { heap: places, explained, containers, frameworks, ..Self::default() };
        for object in instances {
            let Some(mut description) = known.describe(object) else { continue };
            description.called = title(object).or(description.called);
            let number = found.described.len();
            found.numbers.insert(object.0, number);
            if let Some((entries, _)) = known.entries(object) {
                found.numbers.entry(entries.0).or_insert(number);
            }
            found.described.push(DescribedObject { object, description });
        }
        Ok(found)
    }

    /// Returns the description of an object; for the collection of an object's entries, the description of that object.
    pub fn description_of(&self, object: ObjectIndex) -> Option<&FrameworkDescription> {
        Some(&self.described.get(*self.numbers.get(&object.0)?)?.description)
    }

    /// Returns the description of an object, or of its nearest dominator that retains little more.
    pub(super) fn description_near(
        &self,
        graph: &ObjectGraph,
        base: TreePosition,
    ) -> Option<&FrameworkDescription> {
        let tree = &graph.tree;
        let bytes = tree.retained_bytes(base);
        let chain = std::iter::successors(Some(base), |position| tree.dominator(*position)).take(MAX_STEPS);
        let near = chain.take_while(|above| contents::is_most(bytes, tree.retained_bytes(*above)));
        near.filter_map(|position| tree.object_at(position)).find_map(|object| self.description_of(object))
    }

    /// Returns the description that explains most of the given objects, which are ascending and of which none dominates
    /// another.
    pub(super) fn description_of_set(
        &self,
        tree: &Tree,
        positions: &[TreePosition],
    ) -> Option<&FrameworkDescription> {
        let whole = retained_bytes(tree, positions);
        let several =
            self.described.iter().map(|known| &known.description).filter(|known| known.retains.len() > 1);
        several.into_iter().find(|known| {
            let explained = tops(tree, known.retains.iter().copied());
            contents::is_most(common_bytes(tree, positions, &explained), whole)
        })
    }

    /// Returns the description of the objects at explained places, if there is one object, or if many share a name.
    pub fn description(
        &self,
        graph: &ObjectGraph,
        explained: &ExplainedPlace,
    ) -> Option<&FrameworkDescription> {
        let of = |place: u32| {
            let example = self.heap.aligned.figures(0, place).example;
            self.description_of(graph.objects.addresses.index_of(example)?)
        };
        let elements = explained.elements.filter(|elements| self.heap.name_of_elements(elements).is_some());
        match elements {
            Some(elements) => of(elements.place),
            None => of(explained.place).filter(|_| explained.objects == 1),
        }
    }

    /// Describes explained places: `session store of /shop: 12,000 sessions, timeout 24 h`.
    pub fn text(&self, graph: &ObjectGraph, explained: &ExplainedPlace) -> String {
        let text = self.heap.description(explained);
        let said = self.description(graph, explained).and_then(|known| known.text.as_deref());
        let is_many =
            explained.elements.is_some_and(|elements| self.heap.name_of_elements(&elements).is_some());
        match said {
            Some("") => text,
            Some(said) if is_many => format!("{text}, {said}"),
            Some(said) => format!("{}: {said}", self.heap.aligned.title(explained.place).text),
            None => text,
        }
    }

    /// Returns the leaks that rules report on their own, largest first; each retains more than `threshold` bytes.
    pub(super) fn leaks(&self, graph: &ObjectGraph, threshold: u64) -> Vec<FrameworkLeak<'_>> {
        let tree = &graph.tree;
        let leaks =
            self.described.iter().filter(|known| known.description.verdict == Some(FrameworkVerdict::Leak));
        let mut found: Vec<FrameworkLeak<'_>> = leaks
            .map(|DescribedObject { object, description }| {
                let positions = tops(tree, description.retains.iter().copied());
                let retained_bytes = retained_bytes(tree, &positions);
                FrameworkLeak { object: *object, description, positions, retained_bytes }
            })
            .collect();
        found.sort_by_key(|leak| (Reverse(leak.retained_bytes), leak.object));
        found.truncate(MAX_LEAKS);
        // Together they can retain more than each on its own, such as rows that a connection and its results share.
        for leak in found.iter_mut().filter(|leak| leak.positions.len() > 1) {
            let set: RoaringBitmap = leak.description.retains.iter().map(|object| object.0).collect();
            leak.retained_bytes = retained(graph, &set).retained_bytes;
            if leak.retained_bytes > threshold {
                leak.positions = tops_of_retained(graph, &set).unwrap_or(mem::take(&mut leak.positions));
            }
        }
        found.retain(|leak| leak.retained_bytes > threshold && !leak.positions.is_empty());
        found.sort_by_key(|leak| (Reverse(leak.retained_bytes), leak.object));
        found
    }
}

/// Returns the topmost objects, ascending, among all objects that a set retains together; `None` if there are too many.
fn tops_of_retained(graph: &ObjectGraph, set: &RoaringBitmap) -> Option<Vec<TreePosition>> {
    let tree = &graph.tree;
    let all = retained_set(graph, set);
    let is_top = |position: &TreePosition| {
        let above = tree.dominator(*position).and_then(|above| tree.object_at(above));
        above.is_none_or(|above| !all.contains(above.0))
    };
    let positions = all.iter().filter_map(|object| tree.reachable_position(ObjectIndex(object)));
    let mut tops: Vec<TreePosition> = positions.filter(is_top).take(MAX_TOPS + 1).collect();
    tops.sort_unstable();
    (tops.len() <= MAX_TOPS).then_some(tops)
}
