//! Collections of the JDK and of Android: their elements are read as `show` reads them.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::reader::Bits;
use hprof_index::objects::reader::ObjectReader;

use super::element_classes::{Classes, ElementTally};
use super::roles::{ClassRole, Roles};
use super::{Container, ContainerFamily, MAX_CONTAINERS, MIN_ELEMENTS, retained_bytes};
use crate::objects::class_set::ClassSet;
use crate::objects::collections::{CollectionKind, Collections, Forms};
use crate::parallel;

/// Maximum number of elements that are read for each object of the heap: more are read again and again.
const ENTRIES_PER_OBJECT: u64 = 4;
/// Objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Minimum number of elements of a collection that retains little.
const MIN_SHARED: u64 = 100;
/// Maximum number of elements that a collection does not dominate itself and that are kept with it.
const MAX_OUTSIDE: usize = 1 << 14;
/// Maximum number of elements that are looked at in collections that retain little: their elements may be held elsewhere,
/// too.
const MAX_SHARED: u64 = 1 << 20;

/// Returns the collections with many elements that retain at least `least` bytes, or whose elements do.
pub(super) fn collections(objects: &ObjectReader<'_>, roles: &Roles, least: u64) -> Vec<Container> {
    let (summary, graph) = (objects.summary, objects.graph);
    let forms = Forms::of(summary);
    let is_known = |class: &ClassNumber| {
        roles.of_class(*class) == ClassRole::Collection
            && forms.of_class(*class).is_some_and(|of| of.kind != CollectionKind::Holder)
    };
    let classes: Vec<ClassNumber> =
        summary.numbered_classes().map(|(class, _)| class).filter(is_known).collect();
    let classes = ClassSet::of(summary, &classes);
    let search = CollectionReader {
        objects,
        collections: Collections::with(objects, forms.clone()),
        forms: &forms,
        soft: ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference"),
        left: AtomicU64::new(
            u64::from(graph.tree.objects()).saturating_mul(ENTRIES_PER_OBJECT).saturating_add(MAX_SHARED),
        ),
        least,
    };
    let find = |chunk| {
        let all = classes.objects(graph, chunk);
        all.filter_map(|object| search.candidate(object)).collect::<Vec<LargeCollection>>()
    };
    let mut found: Vec<LargeCollection> =
        parallel::map(&ObjectIndex::chunks(graph.objects.all(), CHUNK), find).concat();
    // The largest first; what retains little can still share much.
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

/// A collection that may be large.
#[derive(Debug, Clone, Copy)]
struct LargeCollection {
    object: ObjectIndex,
    position: TreePosition,
    retained_bytes: u64,
    /// Number of elements by the collection itself; `None` if it does not say.
    count: Option<u64>,
    /// `true` if it retains enough itself.
    is_large: bool,
}

struct CollectionReader<'s, 'o, 'a> {
    objects: &'o ObjectReader<'a>,
    collections: Collections<'o, 'a>,
    forms: &'s Forms,
    /// `SoftReference` and its subclasses.
    soft: ClassSet,
    /// Number of elements that may still be read: a hostile dump has one array in a million lists.
    left: AtomicU64,
    least: u64,
}

impl CollectionReader<'_, '_, '_> {
    fn candidate(&self, object: ObjectIndex) -> Option<LargeCollection> {
        let tree = &self.objects.graph.tree;
        let position = tree.reachable_position(object)?;
        let retained_bytes = tree.retained_bytes(position);
        let is_large = retained_bytes >= self.least;
        let collection = self.collections.collection(object)?;
        let count = self.collections.count(&collection);
        // What few elements share cannot be much.
        let is_possible = match count {
            Some(count) => count >= MIN_ELEMENTS && (is_large || count >= MIN_SHARED),
            None => is_large,
        };
        let is_candidate = is_possible && !self.is_wrapped(object, position);
        is_candidate.then_some(LargeCollection { object, position, retained_bytes, count, is_large })
    }

    /// Returns whether a collection is only the inside of another: the map of a set, what a wrapper wraps.
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

    /// Returns the class of an object; for a soft reference, that of its referent, unless that was cleared.
    fn class_behind(&self, object: ObjectIndex) -> Option<ClassNumber> {
        let own = self.objects.graph.objects.class(object)?;
        let referent = || self.objects.graph.objects.class(self.objects.reference(object, "referent")?);
        if self.soft.contains(own) { referent().or(Some(own)) } else { Some(own) }
    }

    fn container(&self, one: &LargeCollection) -> Option<Container> {
        let (graph, summary, tree) = (self.objects.graph, self.objects.summary, &self.objects.graph.tree);
        let collection = self.collections.collection(one.object)?;
        let (mut values, mut keys) = (Classes::default(), Classes::default());
        let end = tree.end(one.position);
        // Bytes of what it dominates, and of what it shares.
        let (mut shared_bytes, mut outside) = (0u64, Vec::new());
        let mut add = |classes: &mut Classes, value: Bits| {
            let Some(object) = self.objects.object(value) else { return };
            let at = tree.reachable_position(object);
            let bytes = at.map_or(0, |at| retained_bytes(tree, at));
            let is_within = at.is_some_and(|at| at >= one.position && at < end);
            if !is_within {
                shared_bytes = shared_bytes.saturating_add(bytes);
                outside.extend(at.filter(|_| outside.len() <= MAX_OUTSIDE));
            }
            let own_bytes = if is_within { bytes } else { 0 };
            classes.add(
                self.class_behind(object),
                ElementTally { count: 1, bytes: own_bytes, largest_bytes: own_bytes },
            );
        };
        let mut entries = 0u64;
        let left = self.left.load(Ordering::Relaxed);
        for entry in self.collections.entries(&collection).take(usize::try_from(left).unwrap_or(usize::MAX)) {
            entries += 1;
            add(&mut values, entry.value);
            if let Some(key) = entry.key {
                add(&mut keys, key);
            }
        }
        let spend = |left: u64| Some(left.saturating_sub(entries));
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend);
        let is_map = collection.kind == CollectionKind::Map;
        // Most values of a map are null or numbers: keys are what is in it.
        let has_values = values.count() * 2 >= entries || keys.count() == 0;
        let (mut elements, keys) = if has_values { (values, is_map.then_some(keys)) } else { (keys, None) };
        let count = if is_map { entries } else { elements.count() };
        let retained_bytes = tree.retained_bytes(one.position);
        let held_bytes = retained_bytes.saturating_add(shared_bytes);
        if held_bytes < self.least || count < MIN_ELEMENTS {
            return None;
        }
        let class = graph.objects.class(one.object).and_then(|class| summary.class(class));
        let class = class.map_or("", |row| summary.class_name(row)).to_owned();
        let name = elements.name(summary);
        let is_of_one = name.as_ref().is_some_and(|(_, is_mostly)| !is_mostly);
        let is_shared = held_bytes > retained_bytes.saturating_mul(2);
        let shared = self.shared_tops(one.position, outside).filter(|_| is_shared && is_of_one);
        let tops = shared.unwrap_or_else(|| vec![one.position]);
        // What it has in common with another collection is its own, too.
        for top in tops.iter().copied().filter(|top| *top != one.position) {
            let bytes = tree.retained_bytes(top);
            let class = tree.object_at(top).and_then(|object| self.class_behind(object));
            elements.add(class, ElementTally { count: 0, bytes, largest_bytes: bytes });
        }
        let all_bytes = tops.iter().fold(0u64, |sum, top| sum.saturating_add(tree.retained_bytes(*top)));
        Some(Container {
            object: graph.objects.addresses.id_of(one.object).unwrap_or_default(),
            family: ContainerFamily::of_collection(collection.kind, &class),
            class,
            elements: count,
            is_exact: entries < left,
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
            tops,
        })
    }

    /// Returns a collection and the elements that it does not dominate, of which none dominates another, if all of them have
    /// the same dominator, which is above the collection: two collections of one object have them, by name and by number.
    fn shared_tops(
        &self,
        collection: TreePosition,
        mut outside: Vec<TreePosition>,
    ) -> Option<Vec<TreePosition>> {
        let tree = &self.objects.graph.tree;
        outside.sort_unstable();
        outside.dedup();
        if outside.len() > MAX_OUTSIDE || (outside.len() as u64) < MIN_SHARED {
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
}
