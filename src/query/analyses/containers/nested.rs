//! Elements of inner collections: the lists in a map, the shards of a cache, the segments of a table.
//!
//! A container of collections is one accumulation to its user, who counts the elements of the inner collections. These are the
//! elements of the container, or are immediately dominated by them. Which inner collections are read, and of which only the
//! stored size is used, is decided first, so the result does not depend on the order of parallel work.

use std::cmp::Reverse;
use std::sync::atomic::AtomicU64;

use hprof_base::share::is_share;
use serde::{Deserialize, Serialize};

use hprof_base::parallel;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::collections::{Collection, CollectionKind};

use super::known::{CollectionContents, CollectionReader};
use super::roles::{Roles, is_of_numbers};
use super::{Container, ContainerFamily, MIN_ELEMENTS, is_queue, simple_name};

/// Number of elements below which a container may consist of the parts of one collection: shards, segments, stripes.
const FEW_PARTS: u64 = 200;
/// Words in the names of classes that are parts of one collection.
const PARTS: [&str; 6] = ["Bucket", "Partition", "Segment", "Shard", "Slot", "Stripe"];
/// Minimum average number of elements per part, for parts that are recognized by similar sizes: hashing distributes evenly.
const MIN_OF_PART: u64 = 100;
/// Maximum size of a part in percent of the average.
const MAX_OF_PART: u64 = 120;
/// Minimum percentage of a container's retained size in its elements, if these are collections.
const MIN_IN_ELEMENTS: u64 = 50;
/// Minimum percentage of a container's retained size in collections that its elements have in fields.
const MIN_IN_FIELDS: u64 = 80;
/// Maximum number of elements of a container that are examined.
const MAX_OUTER: u64 = 1 << 24;
/// Maximum number of elements of the inner collections of a container that are read to find their class; further elements are
/// counted by stored sizes.
const MAX_READ: u64 = 1 << 22;
/// Maximum number of elements that are read per object of the heap, in all containers.
const READ_PER_OBJECT: u64 = 2;
/// Maximum number of references of an element that are followed.
const MAX_FIELDS: usize = 64;
/// Minimum size of an array slot for a reference, in bytes.
const REFERENCE_BYTES: u64 = 4;
/// Collections per chunk.
const CHUNK: usize = 1 << 10;

/// Elements of the inner collections of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedElements {
    /// Number of inner collections that are not empty.
    pub collections: u64,
    /// Number of elements of the inner collections; maps count entries.
    pub elements: u64,
    /// `false` if there may be more elements.
    pub is_exact: bool,
    /// Class of the elements, determined as for a container.
    pub element_class: Option<String>,
    /// `true` if only most of the elements are of `element_class`.
    pub is_mostly: bool,
    /// Number of elements of the largest inner collection.
    pub largest: u64,
    /// Number of inner collections with as many elements as the largest.
    pub of_largest: u64,
    /// `true` if the inner collections are queues.
    pub are_queues: bool,
    /// `true` if one of the inner collections is a queue whose elements wait for a thread.
    pub are_blocking: bool,
    /// `true` if the inner collections are arrays.
    pub are_arrays: bool,
    /// `true` if the container's elements are parts of one collection, rather than objects with a collection each.
    pub are_parts: bool,
}

/// An inner collection or array of references of a container.
#[derive(Clone, Copy)]
struct InnerCollection {
    object: ObjectIndex,
    position: TreePosition,
    /// The collection; `None` for an array.
    collection: Option<Collection>,
    /// Stored number of elements; for an array, its length.
    stored: Option<u64>,
    /// `true` if its elements are read.
    is_read: bool,
}

/// Contents read from the inner collections of a container.
#[derive(Default)]
struct InnerContents {
    contents: CollectionContents,
    /// Number of inner collections that are not empty.
    collections: u64,
    /// Number of elements.
    elements: u64,
    /// Number of elements that were not examined.
    unread: u64,
    /// Number of elements of the largest collection.
    largest: u64,
    /// Number of inner collections with as many elements as the largest.
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

impl CollectionReader<'_, '_> {
    /// Adds to each container the elements of its inner collections.
    pub(super) fn add_nested(&self, roles: &Roles, all: &mut [Container]) {
        let mut left = u64::from(self.objects.graph.tree.objects()).saturating_mul(READ_PER_OBJECT);
        for one in all.iter_mut().filter(|one| !one.is_shared && !one.are_nodes) {
            one.nested = self.find_nested(roles, one, &mut left);
        }
    }

    /// Returns the elements of a container's inner collections, of which at most `left` elements are read.
    fn find_nested(&self, roles: &Roles, container: &Container, left: &mut u64) -> Option<NestedElements> {
        let (mut inner, are_elements) = self.find_collections(roles, container, left)?;
        let tree = &self.objects.graph.tree;
        let bytes = inner.iter().fold(0u64, |sum, one| sum.saturating_add(tree.retained_bytes(one.position)));
        let least = if are_elements { MIN_IN_ELEMENTS } else { MIN_IN_FIELDS };
        if !is_share(bytes, container.retained_bytes, least) {
            return None;
        }
        choose_read(&mut inner, left);
        let read = |chunk: &[InnerCollection]| {
            let each = chunk.iter().map(|one| self.contents_of(one));
            each.reduce(InnerContents::merge).unwrap_or_default()
        };
        let chunks: Vec<&[InnerCollection]> = inner.chunks(CHUNK).collect();
        let found = parallel::map(&chunks, read).into_iter().reduce(InnerContents::merge).unwrap_or_default();
        let InnerContents { contents, collections, elements, unread, largest, of_largest } = found;
        let name = contents.classes().name(self.objects.summary);
        let is_of_one = name.as_ref().is_some_and(|(_, is_mostly)| !is_mostly);
        // Collections in only some elements, or with elements of different classes, are program state.
        let is_alike = are_elements || is_of_one && collections * 2 >= container.elements;
        if !is_alike || elements < MIN_ELEMENTS || elements <= collections {
            return None;
        }
        let are_arrays = inner.iter().all(|one| one.collection.is_none());
        let average = elements / collections.max(1);
        let is_spread = !are_arrays
            && collections == container.elements
            && average >= MIN_OF_PART
            && largest.saturating_mul(100) <= average.saturating_mul(MAX_OF_PART);
        let named = container.element_classes.first().map_or("", |row| simple_name(&row.class));
        let are_named = PARTS.iter().any(|word| named.starts_with(word) || named.ends_with(word));
        Some(NestedElements {
            collections,
            elements,
            is_exact: contents.is_whole && unread == 0 && container.is_exact,
            is_mostly: name.is_some() && (unread > 0 || !is_of_one),
            element_class: name.map(|(name, _)| name),
            largest,
            of_largest,
            are_queues: inner.iter().all(|one| is_queue(self.class_of(one.object))),
            are_blocking: inner.iter().any(|one| is_blocking(self.class_of(one.object))),
            are_arrays,
            are_parts: container.elements < FEW_PARTS && (are_elements || are_named || is_spread),
        })
    }

    /// Returns the inner collections of a container, and whether they are its elements; otherwise each element has one in a
    /// field.
    fn find_collections(
        &self,
        roles: &Roles,
        container: &Container,
        left: &mut u64,
    ) -> Option<(Vec<InnerCollection>, bool)> {
        let elements = self.elements_of(container, left)?;
        let class_of = |object: ObjectIndex| self.objects.graph.objects.class(object);
        let has_elements =
            |object: &ObjectIndex| class_of(*object).is_some_and(|class| self.has_elements(class));
        let collections: Vec<ObjectIndex> = elements.iter().copied().filter(has_elements).collect();
        let inner = |objects: Vec<ObjectIndex>| {
            objects.into_iter().filter_map(|object| self.inner(object)).collect::<Vec<InnerCollection>>()
        };
        if collections.len() * 2 > elements.len() {
            return Some((inner(collections), true));
        }
        let is_of_runtime =
            |object: &ObjectIndex| class_of(*object).is_none_or(|class| roles.is_of_runtime(class));
        if container.elements >= FEW_PARTS || elements.iter().any(is_of_runtime) {
            return None;
        }
        Some((inner(elements.into_iter().filter_map(|element| self.in_field(element)).collect()), false))
    }

    /// Returns the elements of a container without duplicates: the values of a collection, or the targets of an array. `None`
    /// for other structures, and if there are too many elements.
    fn elements_of(&self, container: &Container, left: &mut u64) -> Option<Vec<ObjectIndex>> {
        let addresses = &self.objects.graph.objects.addresses;
        if container.elements > MAX_OUTER.min(*left) {
            return None;
        }
        *left -= container.elements;
        let object = addresses.index_of(container.object)?;
        let most = usize::try_from(container.elements).ok()?;
        let mut found: Vec<ObjectIndex> = match self.collections.collection(object) {
            Some(collection) => {
                let entries = self.collections.entries(&collection).take(most);
                entries.filter_map(|entry| addresses.index_of(entry.value.reference()?)).collect()
            }
            None if container.family == ContainerFamily::Array => {
                let ids = self.objects.ids(object)?.filter(|id| !id.is_null());
                ids.take(most).filter_map(|id| addresses.index_of(id)).collect()
            }
            None => return None,
        };
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Returns the largest collection or array of references that an element immediately dominates.
    fn in_field(&self, element: ObjectIndex) -> Option<ObjectIndex> {
        let (graph, tree) = (self.objects.graph, &self.objects.graph.tree);
        let position = tree.reachable_position(element)?;
        let held = graph.references(element).take(MAX_FIELDS).filter_map(|object| {
            let at = tree.reachable_position(object)?;
            let is_meant = tree.dominator(at) == Some(position)
                && graph.objects.class(object).is_some_and(|class| self.has_elements(class));
            is_meant.then(|| (tree.retained_bytes(at), Reverse(object)))
        });
        held.max().map(|(_, Reverse(object))| object)
    }

    /// Returns a collection or array as an inner collection, with its stored size.
    fn inner(&self, object: ObjectIndex) -> Option<InnerCollection> {
        let position = self.objects.graph.tree.reachable_position(object)?;
        let collection = self.collections.collection(object);
        let stored = match &collection {
            Some(collection) => self.collections.count(collection),
            None => self.objects.ids(object).map(|ids| ids.len() as u64),
        };
        // An array is always read: it retains its slots.
        let is_read = collection.as_ref().is_none_or(|collection| self.has_own(position, collection));
        Some(InnerCollection { object, position, collection, stored, is_read })
    }

    /// Returns whether a collection has elements of its own to read: it is neither a view of another one, nor does it use a
    /// shared array. Its retained size bounds the amount that is read.
    fn has_own(&self, position: TreePosition, collection: &Collection) -> bool {
        let tree = &self.objects.graph.tree;
        let retained = tree.retained_bytes(position);
        let places = self.collections.array_length(collection).unwrap_or(0) as u64;
        retained > tree.shallow_bytes(position) && places.saturating_mul(REFERENCE_BYTES) <= retained
    }

    /// Returns whether the instances of a class have elements: collections, and arrays of references.
    fn has_elements(&self, class: ClassNumber) -> bool {
        let name = self.class_name(class);
        name.ends_with("[]") && !is_of_numbers(name)
            || self.forms.of_class(class).is_some_and(|of| of.kind != CollectionKind::Holder)
    }

    fn class_of(&self, object: ObjectIndex) -> &str {
        self.objects.graph.objects.class(object).map_or("", |class| self.class_name(class))
    }

    fn class_name(&self, class: ClassNumber) -> &str {
        self.objects.summary.class(class).map_or("", |row| self.objects.summary.class_name(row))
    }

    /// Reads an inner collection, or uses its stored size.
    fn contents_of(&self, one: &InnerCollection) -> InnerContents {
        if !one.is_read {
            let unread = one.stored.unwrap_or(0);
            return InnerContents {
                unread,
                ..InnerContents::from_collection(CollectionContents::default(), unread)
            };
        }
        let within = one.position..self.objects.graph.tree.end(one.position);
        let Some(collection) = &one.collection else {
            let contents = self.array_contents(one.object, &within);
            let elements = contents.count(CollectionKind::List);
            return InnerContents::from_collection(contents, elements);
        };
        let contents = self.contents(collection, &within, &AtomicU64::new(MAX_READ));
        let read = contents.count(collection.kind);
        let elements = if contents.is_whole { read } else { read.max(one.stored.unwrap_or(0)) };
        InnerContents::from_collection(contents, elements)
    }
}

/// Selects the inner collections to read, in order, as long as they have at most `left` elements together.
fn choose_read(inner: &mut [InnerCollection], left: &mut u64) {
    let mut of_container = MAX_READ.min(*left);
    for one in inner.iter_mut() {
        let cost = one.stored.unwrap_or(0).saturating_add(1);
        one.is_read &= cost <= of_container;
        if one.is_read {
            of_container -= cost;
            *left = left.saturating_sub(cost);
        }
    }
}

/// Returns whether a class name indicates a queue whose elements wait for a thread.
fn is_blocking(class: &str) -> bool {
    let name = simple_name(class);
    name.contains("Blocking") || name.contains("Transfer")
}
