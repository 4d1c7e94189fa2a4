//! Collections of the JDK and of Android, whose elements are read as `show` reads them.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::address_index::AddressFinder;
use hprof_index::objects::fields::Fields;
use hprof_index::objects::reader::{Bits, ObjectReader, ObjectRecord};
use hprof_values::ObjectId;

use super::element_classes::{Classes, ElementTally};
use super::roles::{ClassRole, Roles};
use super::{Container, ContainerFamily, MAX_CONTAINERS, MIN_ELEMENTS, class_behind, retained_bytes};
use hprof_base::parallel;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{Collection, CollectionKind, Collections, Forms};

/// Maximum number of elements that are read per object of the heap.
const ENTRIES_PER_OBJECT: u64 = 4;
/// Number of entries that are buffered before their objects are looked up.
const ENTRIES: u64 = 1 << 10;
/// Objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Minimum number of elements of a collection that retains little itself.
const MIN_SHARED: u64 = 100;
/// Maximum number of elements that are stored for a collection although it does not dominate them.
const MAX_OUTSIDE: usize = 1 << 14;
/// Maximum number of elements that are examined in collections that retain little, whose elements may also be held
/// elsewhere.
const MAX_SHARED: u64 = 1 << 20;

/// Returns the collections with many elements that retain at least `least` bytes themselves, or whose elements do.
pub(super) fn collections(search: &CollectionReader<'_, '_>, roles: &Roles) -> Vec<Container> {
    let (summary, graph, objects) = (search.objects.summary, search.objects.graph, search.objects);
    let is_known = |class: &ClassNumber| {
        roles.of_class(*class) == ClassRole::Collection
            && search.forms.of_class(*class).is_some_and(|of| of.kind != CollectionKind::Holder)
    };
    let classes: Vec<ClassNumber> =
        summary.numbered_classes().map(|(class, _)| class).filter(is_known).collect();
    let classes = ClassSet::from_classes(summary, &classes);
    let find = |chunk| {
        let mut found: Vec<LargeCollection> = Vec::new();
        for (first, wanted) in classes.blocks(graph, chunk) {
            objects.records_of_block(first, wanted, |object, record| {
                // Most collections are small according to their own record.
                if !search.is_small(object, record) {
                    found.extend(search.candidate(object));
                }
            });
        }
        found
    };
    let mut found: Vec<LargeCollection> =
        parallel::map(&ObjectIndex::chunks(graph.objects.indices(), CHUNK), find).concat();
    // Largest first; collections that retain little can still share large elements.
    found.sort_by_key(|one| (!one.is_large, Reverse((one.retained_bytes, one.count)), one.position));
    let large = found.partition_point(|one| one.is_large);
    let (large, shared) = found.split_at(large);
    let large = large.iter().take(MAX_CONTAINERS);
    let mut looked_at = 0u64;
    let is_affordable = |one: &&LargeCollection| {
        let all = looked_at.saturating_add(one.count.unwrap_or(0));
        let is_affordable = all <= MAX_SHARED;
        looked_at = if is_affordable { all } else { looked_at };
        is_affordable
    };
    let mut by_count: Vec<&LargeCollection> = shared.iter().collect();
    by_count.sort_by_key(|one| (Reverse(one.count), one.position));
    let shared = by_count.into_iter().filter(is_affordable).take(MAX_CONTAINERS);
    let wanted: Vec<LargeCollection> = large.chain(shared).copied().collect();
    let read = |one: LargeCollection| search.container(&one);
    parallel::map(&wanted, read).into_iter().flatten().collect()
}

/// A collection that may be large enough for a row.
#[derive(Debug, Clone, Copy)]
struct LargeCollection {
    object: ObjectIndex,
    position: TreePosition,
    retained_bytes: u64,
    /// Number of elements, if the collection stores it.
    count: Option<u64>,
    /// `true` if the collection itself retains enough.
    is_large: bool,
}

/// Reader of collections and their elements.
pub(super) struct CollectionReader<'o, 'a> {
    pub(super) objects: &'o ObjectReader<'a>,
    pub(super) collections: Collections<'o, 'a>,
    labels: Labels<'a>,
    finder: AddressFinder<'a>,
    pub(super) forms: Arc<Forms>,
    /// `SoftReference` and its subclasses.
    soft: ClassSet,
    /// Number of elements that may still be read: a hostile dump can have one array in a million lists.
    left: AtomicU64,
    least: u64,
}

impl<'o, 'a> CollectionReader<'o, 'a> {
    /// Creates a reader that finds collections of at least `least` bytes.
    pub(super) fn new(objects: &'o ObjectReader<'a>, least: u64) -> Self {
        let (summary, graph) = (objects.summary, objects.graph);
        let forms = Forms::for_summary(summary);
        let left =
            u64::from(graph.tree.objects()).saturating_mul(ENTRIES_PER_OBJECT).saturating_add(MAX_SHARED);
        Self {
            objects,
            collections: Collections::with(objects, forms.clone()),
            labels: graph.labels(),
            finder: graph.objects.addresses.finder(),
            forms,
            soft: ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference"),
            left: AtomicU64::new(left),
            least,
        }
    }

    /// Returns whether a collection has too few elements according to its record.
    fn is_small(&self, object: ObjectIndex, record: Option<ObjectRecord<'_>>) -> bool {
        let (Some(ObjectRecord::Instance(record)), Some(class)) =
            (record, self.objects.graph.objects.class(object))
        else {
            return false;
        };
        let fields = Fields::new(self.objects.summary, class, record.fields);
        self.collections.stored_count(&fields).is_some_and(|count| count < MIN_ELEMENTS)
    }

    fn candidate(&self, object: ObjectIndex) -> Option<LargeCollection> {
        let tree = &self.objects.graph.tree;
        let position = tree.reachable_position(object)?;
        let retained_bytes = tree.retained_bytes(position);
        let is_large = retained_bytes >= self.least;
        let collection = self.collections.collection(object)?;
        let count = self.collections.count(&collection);
        // Few shared elements are not worth a row.
        let is_possible = match count {
            Some(count) => count >= MIN_ELEMENTS && (is_large || count >= MIN_SHARED),
            None => is_large,
        };
        let is_candidate = is_possible && !self.is_wrapped(object, position);
        is_candidate.then_some(LargeCollection { object, position, retained_bytes, count, is_large })
    }

    /// Returns whether a collection is only part of another one: the map of a set, or a wrapped collection.
    fn is_wrapped(&self, object: ObjectIndex, position: TreePosition) -> bool {
        let graph = self.objects.graph;
        let above = graph.tree.dominator(position).and_then(|above| graph.tree.object_at(above));
        let of_class = |above: ObjectIndex| self.forms.of_class(graph.objects.class(above)?);
        above.is_some_and(|above| {
            let field =
                of_class(above).filter(|of| of.kind != CollectionKind::Holder).and_then(|of| of.wraps);
            field.and_then(|field| self.objects.reference(above, field)) == Some(object)
        })
    }

    fn container(&self, one: &LargeCollection) -> Option<Container> {
        let (graph, summary, tree) = (self.objects.graph, self.objects.summary, &self.objects.graph.tree);
        let collection = self.collections.collection(one.object)?;
        let limit = self.left.load(Ordering::Relaxed);
        let left = AtomicU64::new(limit);
        let within = one.position..tree.end(one.position);
        let read = |part| self.contents(&part, &within, &left);
        let parts = parallel::map(&self.collections.split(&collection), read);
        let contents = parts.into_iter().reduce(CollectionContents::with).unwrap_or_default();
        let spend = |left: u64| Some(left.saturating_sub(contents.entries));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        let (count, has_values) = (contents.count(collection.kind), contents.has_values());
        let is_map = collection.kind == CollectionKind::Map;
        let CollectionContents { values, keys, entries, shared, is_whole, .. } = contents;
        let (mut elements, keys) = if has_values { (values, is_map.then_some(keys)) } else { (keys, None) };
        let retained_bytes = tree.retained_bytes(one.position);
        let held_bytes = retained_bytes.saturating_add(shared.bytes);
        if held_bytes < self.least || count < MIN_ELEMENTS {
            return None;
        }
        let class = graph.objects.class(one.object).and_then(|class| summary.class(class));
        let class = class.map_or("", |row| summary.class_name(row)).to_owned();
        let name = elements.name(summary);
        let is_of_one = name.as_ref().is_some_and(|(_, is_mostly)| !is_mostly);
        let is_shared = held_bytes > retained_bytes.saturating_mul(2);
        let outside = Some(shared.outside).filter(|_| is_shared && is_of_one);
        let tops = outside.and_then(|outside| self.shared_tops(one.position, outside));
        let tops = tops.unwrap_or_else(|| vec![one.position]);
        // Elements that it shares with another collection also belong to it.
        for top in tops.iter().copied().filter(|top| *top != one.position) {
            let bytes = tree.retained_bytes(top);
            let class = tree.object_at(top).and_then(|object| class_behind(self.objects, &self.soft, object));
            elements.add(class, ElementTally { count: 0, bytes, largest_bytes: bytes });
        }
        let all_bytes = tops.iter().fold(0u64, |sum, top| sum.saturating_add(tree.retained_bytes(*top)));
        Some(Container {
            object: graph.objects.addresses.id_of(one.object).unwrap_or_default(),
            family: ContainerFamily::of_collection(collection.kind, &class),
            class,
            elements: count,
            is_exact: is_whole && entries < limit,
            is_mostly: name.as_ref().is_some_and(|(_, is_mostly)| *is_mostly),
            element_class: name.map(|(name, _)| name),
            element_classes: elements.rows(summary),
            classes: elements.classes(summary),
            keys: keys.map(|keys| keys.rows(summary)).unwrap_or_default(),
            nodes: 0,
            parts: Vec::new(),
            are_nodes: false,
            is_shared: is_shared && tops.len() == 1,
            retained_bytes: all_bytes,
            largest_bytes: elements.largest_bytes(),
            nested: None,
            tops,
        })
    }

    /// Returns a collection together with `outside`, the elements that it does not dominate, if all of these have the same
    /// dominator, above the collection. This is the case if two collections of one object share their elements, for example by
    /// name and by number.
    fn shared_tops(
        &self,
        collection: TreePosition,
        mut outside: Vec<TreePosition>,
    ) -> Option<Vec<TreePosition>> {
        let tree = &self.objects.graph.tree;
        // There may be more, which were not stored.
        if outside.len() > MAX_OUTSIDE {
            return None;
        }
        outside.sort_unstable();
        outside.dedup();
        if (outside.len() as u64) < MIN_SHARED {
            return None;
        }
        let dominator = tree.dominator(*outside.first()?);
        let is_below = |above: TreePosition| above != collection && tree.dominates(above, collection);
        let are_alike = outside.iter().all(|element| tree.dominator(*element) == dominator);
        if !are_alike || !dominator.is_none_or(is_below) {
            return None;
        }
        outside.push(collection);
        outside.sort_unstable();
        Some(outside)
    }

    /// Reads the elements of an array of references that dominates the objects `within`.
    pub(super) fn array_contents(
        &self,
        array: ObjectIndex,
        within: &Range<TreePosition>,
    ) -> CollectionContents {
        let mut contents = CollectionContents { is_whole: true, ..CollectionContents::default() };
        let mut ids: Vec<ObjectId> =
            self.objects.ids(array).into_iter().flatten().filter(|id| !id.is_null()).collect();
        contents.entries = ids.len() as u64;
        self.add(&mut ids, within, &mut contents.values, &mut contents.shared);
        contents
    }

    /// Reads entries of a part of a collection that dominates the objects `within`, at most `left`.
    pub(super) fn contents(
        &self,
        collection: &Collection,
        within: &Range<TreePosition>,
        left: &AtomicU64,
    ) -> CollectionContents {
        let mut contents = CollectionContents { is_whole: true, ..CollectionContents::default() };
        let (mut values, mut keys): (Vec<ObjectId>, Vec<ObjectId>) = (Vec::new(), Vec::new());
        let mut entries = self.collections.entries(collection);
        loop {
            let spend = |left: u64| Some(left.saturating_sub(ENTRIES));
            let granted =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).unwrap_or(0).min(ENTRIES);
            let before = contents.entries;
            for entry in entries.by_ref().take(usize::try_from(granted).unwrap_or(usize::MAX)) {
                contents.entries += 1;
                values.extend(entry.value.reference());
                keys.extend(entry.key.and_then(Bits::reference));
            }
            self.add(&mut values, within, &mut contents.values, &mut contents.shared);
            // Keys are often shared with their values.
            let mut of_keys = SharedObjects::default();
            self.add(&mut keys, within, &mut contents.keys, &mut of_keys);
            contents.shared.bytes = contents.shared.bytes.saturating_add(of_keys.bytes);
            let read = contents.entries - before;
            left.fetch_add(granted - read, Ordering::Relaxed);
            if granted == 0 || read < granted {
                contents.is_whole = granted > 0;
                return contents;
            }
        }
    }

    /// Adds the objects with these IDs to the counts. Their data are anywhere in memory, and prefetched.
    fn add(
        &self,
        ids: &mut Vec<ObjectId>,
        within: &Range<TreePosition>,
        classes: &mut Classes,
        shared: &mut SharedObjects,
    ) {
        let tree = &self.objects.graph.tree;
        let mut found: Vec<(ObjectIndex, Option<TreePosition>)> = Vec::with_capacity(ids.len());
        self.finder.find(ids, |object| {
            if let Some(object) = object {
                self.labels.prefetch(object.0);
                tree.prefetch_position(object);
                found.push((object, None));
            }
        });
        for (object, position) in &mut found {
            *position = tree.reachable_position(*object);
            position.iter().for_each(|position| tree.prefetch(*position));
        }
        for (object, at) in found {
            let bytes = at.map_or(0, |at| retained_bytes(tree, at));
            let is_within = at.is_some_and(|at| within.contains(&at));
            // Sizes of elements that it dominates, and of shared ones.
            if !is_within {
                shared.bytes = shared.bytes.saturating_add(bytes);
                shared.outside.extend(at.filter(|_| shared.outside.len() <= MAX_OUTSIDE));
            }
            let bytes = if is_within { bytes } else { 0 };
            classes.add(
                class_behind(self.objects, &self.soft, object),
                ElementTally { count: 1, bytes, largest_bytes: bytes },
            );
        }
        ids.clear();
    }
}

/// Keys and values of a collection that the collection does not dominate.
#[derive(Debug, Default)]
struct SharedObjects {
    /// Total retained size of the objects.
    bytes: u64,
    /// Positions of the first objects.
    outside: Vec<TreePosition>,
}

/// Contents read from a collection.
#[derive(Debug, Default)]
pub(super) struct CollectionContents {
    values: Classes,
    keys: Classes,
    entries: u64,
    shared: SharedObjects,
    /// `false` if there may be more entries.
    pub(super) is_whole: bool,
}

impl CollectionContents {
    /// Returns whether the values of a map are its elements. If most values are null or numbers, the keys are.
    fn has_values(&self) -> bool {
        self.values.count() * 2 >= self.entries || self.keys.count() == 0
    }

    /// Returns the number of elements; for a map, the number of entries.
    pub(super) fn count(&self, kind: CollectionKind) -> u64 {
        if kind == CollectionKind::Map { self.entries } else { self.classes().count() }
    }

    /// Returns the classes of the elements.
    pub(super) fn classes(&self) -> &Classes {
        if self.has_values() { &self.values } else { &self.keys }
    }

    /// Returns the contents of both collections.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.values.add_all(other.values);
        self.keys.add_all(other.keys);
        self.entries += other.entries;
        self.shared.bytes = self.shared.bytes.saturating_add(other.shared.bytes);
        let room = (MAX_OUTSIDE + 1).saturating_sub(self.shared.outside.len());
        self.shared.outside.extend(other.shared.outside.into_iter().take(room));
        self.is_whole &= other.is_whole;
        self
    }
}
