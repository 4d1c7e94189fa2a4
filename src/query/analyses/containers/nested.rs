//! Elements of the elements: what is in the lists of a map, in the shards of a cache, in the segments of a table.
//!
//! A container of collections is one accumulation to its user, who counts what is in the collections. These are found by
//! the dominator tree below the container: its elements, or what its elements dominate immediately.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;

use super::known::{CollectionContents, CollectionReader};
use super::{Container, MIN_ELEMENTS, is_primitive, is_queue, simple_name};
use hprof_base::naming::stable_names::stem;
use hprof_base::parallel;
use hprof_model::objects::collections::CollectionKind;

/// Number of elements below which a container may be the parts of one collection that have more than it as fields: shards,
/// segments, stripes.
const FEW_PARTS: u64 = 200;
/// Words in the names of classes that are parts of one collection.
const PARTS: [&str; 6] = ["Bucket", "Partition", "Segment", "Shard", "Slot", "Stripe"];
/// Minimum part of what a container retains that is in its elements, as a percentage, if these are collections.
const MIN_IN_ELEMENTS: u128 = 50;
/// The same of what is in collections in fields of its elements.
const MIN_IN_FIELDS: u128 = 80;
/// Maximum number of elements whose classes are counted; beyond that, elements are counted as collections store them.
const MAX_COUNTED: u64 = 1 << 22;
/// Collections per chunk.
const CHUNK: usize = 1 << 10;

/// Elements of the collections that are elements of a container, or that its elements have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedElements {
    /// Number of collections that are not empty.
    pub collections: u64,
    /// Number of their elements; of entries in maps.
    pub elements: u64,
    /// `false` if there may be more elements.
    pub is_exact: bool,
    /// Class of the elements, as that of a container.
    pub element_class: Option<String>,
    /// `true` if `element_class` is only that of most.
    pub is_mostly: bool,
    /// Number of elements of the largest collection.
    pub largest: u64,
    /// Number of collections that have as many.
    pub of_largest: u64,
    /// `true` if they are queues.
    pub are_queues: bool,
    /// `true` if they are arrays.
    pub are_arrays: bool,
    /// `true` if the container's elements are parts of one collection, rather than objects that have one each.
    pub are_parts: bool,
}

/// A collection below a container.
#[derive(Clone, Copy)]
struct InnerCollection {
    object: ObjectIndex,
    position: TreePosition,
}

/// What was read of the collections in a container.
#[derive(Default)]
struct InnerContents {
    contents: CollectionContents,
    /// Number of collections that are not empty.
    collections: u64,
    /// Number of elements.
    elements: u64,
    /// Number of those that were not looked at.
    unread: u64,
    /// Number of elements of the largest collection.
    largest: u64,
    /// Number of collections that have as many.
    of_largest: u64,
}

impl InnerContents {
    fn from_collection(contents: CollectionContents, elements: u64) -> Self {
        let of_largest = u64::from(elements > 0);
        Self { contents, collections: of_largest, elements, unread: 0, largest: elements, of_largest }
    }

    fn merge(self, other: Self) -> Self {
        let largest = self.largest.max(other.largest);
        let of_largest = |part: (u64, u64)| if part.0 == largest { part.1 } else { 0 };
        let each = [(self.largest, self.of_largest), (other.largest, other.of_largest)];
        Self {
            largest,
            of_largest: each.into_iter().map(of_largest).sum(),
            contents: self.contents.with(other.contents),
            collections: self.collections + other.collections,
            elements: self.elements.saturating_add(other.elements),
            unread: self.unread.saturating_add(other.unread),
        }
    }
}

/// Classes by name, without the parts that a JVM generates.
type ClassesByName<'s> = FxHashMap<Cow<'s, str>, Vec<ClassNumber>>;

impl CollectionReader<'_, '_> {
    /// Finds the elements of the collections in each of the containers. An object is visited for the nearest of them only.
    pub(super) fn add_nested(&self, all: &mut [Container]) {
        let summary = self.objects.summary;
        let wanted: FxHashSet<&str> =
            all.iter().flat_map(|one| &one.element_classes).map(|row| row.class.as_str()).collect();
        let mut by_name = ClassesByName::default();
        for (class, row) in summary.numbered_classes() {
            let name = stem(summary.class_name(row));
            if wanted.contains(name.as_ref()) {
                by_name.entry(name).or_default().push(class);
            }
        }
        let tops: FxHashSet<TreePosition> = all.iter().flat_map(|one| one.tops.iter().copied()).collect();
        let counted = AtomicU64::new(MAX_COUNTED);
        let of_one = |one: &Container| self.find_nested(one, &by_name, &tops, &counted);
        let found: Vec<Option<NestedElements>> = all.iter().map(of_one).collect();
        for (one, nested) in all.iter_mut().zip(found) {
            one.nested = nested;
        }
    }

    fn find_nested(
        &self,
        container: &Container,
        by_name: &ClassesByName<'_>,
        tops: &FxHashSet<TreePosition>,
        counted: &AtomicU64,
    ) -> Option<NestedElements> {
        if container.is_shared || container.are_nodes {
            return None;
        }
        let rows = container.element_classes.iter();
        let classes: FxHashSet<ClassNumber> =
            rows.filter_map(|row| by_name.get(row.class.as_str())).flatten().copied().collect();
        let first = container.element_classes.first()?;
        let of_most = by_name.get(first.class.as_str()).and_then(|classes| classes.first());
        let are_elements = of_most.is_some_and(|class| self.has_elements(*class));
        if !are_elements && container.elements >= FEW_PARTS {
            return None;
        }
        let inner = self.find_collections(container, &classes, are_elements, tops);
        let tree = &self.objects.graph.tree;
        let bytes = inner.iter().fold(0u64, |sum, one| sum.saturating_add(tree.retained_bytes(one.position)));
        let least = if are_elements { MIN_IN_ELEMENTS } else { MIN_IN_FIELDS };
        // An element with several collections is a part of the program.
        let are_too_many = !are_elements && inner.len() as u64 > container.elements;
        if are_too_many || u128::from(bytes) * 100 < u128::from(container.retained_bytes) * least {
            return None;
        }
        let read = |chunk: &[InnerCollection]| {
            let each = chunk.iter().map(|one| self.contents_of(*one, counted));
            each.reduce(InnerContents::merge).unwrap_or_default()
        };
        let chunks: Vec<&[InnerCollection]> = inner.chunks(CHUNK).collect();
        let found = parallel::map(&chunks, read);
        let InnerContents { contents, collections, elements, unread, largest, of_largest } =
            found.into_iter().reduce(InnerContents::merge).unwrap_or_default();
        let name = contents.classes().name(self.objects.summary);
        // Collections of different things are parts of a program.
        let is_alike = are_elements || name.as_ref().is_some_and(|(_, is_mostly)| !is_mostly);
        (is_alike && elements >= MIN_ELEMENTS && elements > collections).then(|| NestedElements {
            collections,
            elements,
            is_exact: contents.is_whole && unread == 0,
            is_mostly: unread > 0 || name.as_ref().is_some_and(|(_, is_mostly)| *is_mostly),
            element_class: name.map(|(name, _)| name),
            largest,
            of_largest,
            are_queues: inner.iter().all(|one| is_queue(self.class_of(one.object))),
            are_arrays: inner.iter().all(|one| self.class_of(one.object).ends_with("[]")),
            are_parts: container.elements < FEW_PARTS
                && (are_elements || PARTS.iter().any(|word| simple_name(&first.class).contains(word))),
        })
    }

    /// Returns whether the instances of a class have elements: collections, and arrays of references.
    fn has_elements(&self, class: ClassNumber) -> bool {
        let is_array =
            self.class_name(class).strip_suffix("[]").is_some_and(|element| !is_primitive(element));
        is_array || self.forms.of_class(class).is_some_and(|of| of.kind != CollectionKind::Holder)
    }

    /// Returns the outermost collections and arrays below a container that are its elements, of `classes`, or in their
    /// fields.
    fn find_collections(
        &self,
        container: &Container,
        classes: &FxHashSet<ClassNumber>,
        are_elements: bool,
        tops: &FxHashSet<TreePosition>,
    ) -> Vec<InnerCollection> {
        let graph = self.objects.graph;
        let tree = &graph.tree;
        let class_at = |at| graph.objects.class(tree.object_at(at)?);
        let is_array = |at| class_at(at).is_some_and(|class| self.class_name(class).ends_with("[]"));
        let mut found = Vec::new();
        for top in &container.tops {
            let (mut at, end) = (top.0.saturating_add(1), tree.end(*top).0);
            while at < end {
                let position = TreePosition(at);
                at = at.saturating_add(1);
                let (Some(object), Some(class)) = (tree.object_at(position), class_at(position)) else {
                    continue;
                };
                let above = tree.dominator(position);
                let is_meant = if are_elements {
                    classes.contains(&class)
                } else {
                    above.and_then(class_at).is_some_and(|class| classes.contains(&class))
                };
                // The container's own table, the map of a set.
                let is_own = above == Some(*top) && !is_array(*top) && is_array(position)
                    || self.is_wrapped(object, position);
                if is_meant && !is_own && self.has_elements(class) {
                    found.push(InnerCollection { object, position });
                    at = tree.end(position).0.max(at);
                } else if tops.contains(&position) {
                    at = tree.end(position).0.max(at);
                }
            }
        }
        found
    }

    fn class_of(&self, object: ObjectIndex) -> &str {
        self.objects.graph.objects.class(object).map_or("", |class| self.class_name(class))
    }

    fn class_name(&self, class: ClassNumber) -> &str {
        self.objects.summary.class(class).map_or("", |row| self.objects.summary.class_name(row))
    }

    /// Reads a collection or an array of references, as long as elements may be `counted`.
    fn contents_of(&self, one: InnerCollection, counted: &AtomicU64) -> InnerContents {
        let within = one.position..self.objects.graph.tree.end(one.position);
        let collection = self.collections.collection(one.object);
        let left = counted.load(Ordering::Relaxed);
        if left == 0 {
            let stored = collection.map_or_else(
                || self.objects.ids(one.object).map(|ids| ids.filter(|id| !id.is_null()).count() as u64),
                |collection| self.collections.count(&collection),
            );
            let unread = stored.unwrap_or(0);
            return InnerContents {
                unread,
                ..InnerContents::from_collection(CollectionContents::default(), unread)
            };
        }
        let (contents, elements) = match collection {
            Some(collection) => {
                let contents = self.contents(&collection, &within, &AtomicU64::new(left));
                let is_map = collection.kind == CollectionKind::Map;
                let elements = if is_map { contents.entries } else { contents.classes().count() };
                (contents, elements)
            }
            None => {
                let contents = self.array_contents(one.object, &within);
                let elements = contents.entries;
                (contents, elements)
            }
        };
        let spend = |left: u64| Some(left.saturating_sub(elements));
        let _ = counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        InnerContents::from_collection(contents, elements)
    }
}
