//! ThreadLocals under which threads hold much memory, and the static fields that hold their keys.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::tables::ClassKind;
use hprof_index::{Dump, ObjectGraph};
use hprof_model::dominators::holder_field;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{CollectionKind, Collections, Forms};
use hprof_model::objects::label::{Labels, THREAD_LOCAL_ENTRY};
use hprof_model::objects::reader::ObjectReader;
use hprof_model::objects::reference_names::Edges;
use hprof_values::ObjectId;

use super::contents;

/// Maximum number of ThreadLocals reported.
const TOLD: usize = 3;
/// Maximum total number of elements of the values whose classes are examined.
const MAX_ELEMENTS: usize = 1 << 16;
/// Maximum number of objects between a value and its array of primitives.
const MAX_DOWN: usize = 64;

/// Values that threads hold under one ThreadLocal, or under the ThreadLocals of one field, of which each loading of the class
/// creates a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadLocalUse {
    /// ID of the ThreadLocal; of several, the one whose values retain the most. Null if all of them were collected and only
    /// values are left.
    pub key: ObjectId,
    /// Number of ThreadLocals: more than one if classes of several loaders have a field of that name.
    pub keys: u64,
    /// Field that holds the ThreadLocal: `gateway.RequestParser.SCRATCH`.
    pub field: Option<String>,
    /// Number of threads that hold a value.
    pub threads: u64,
    /// Number of values: one per thread, unless keys were collected.
    pub values: u64,
    /// Class of most values.
    pub value_class: Option<String>,
    /// Number of elements in all values, if these are collections.
    pub elements: Option<u64>,
    /// Class of the elements, if they have only one.
    pub element_class: Option<String>,
    /// Retained size of the values and their entries.
    pub retained_bytes: u64,
    /// Value with the largest retained size, including its entry.
    pub largest: Option<ObjectIndex>,
    /// Shallow size of the array of primitives that makes up most of each value; `None` if the sizes differ.
    pub buffer_bytes: Option<u64>,
    /// Threads that hold a value, ascending.
    pub(super) owners: Vec<TreePosition>,
}

impl ThreadLocalUse {
    /// Returns whether the values are at least half of the threads' retained size, which is `retained_bytes`.
    pub fn is_most_of(&self, retained_bytes: u64) -> bool {
        self.retained_bytes >= retained_bytes / 2
    }
}

/// Search for values that threads hold under ThreadLocals.
pub(super) struct ThreadLocals<'a> {
    dump: Dump<'a>,
    labels: Labels<'a>,
    edges: Edges<'a>,
    forms: Arc<Forms>,
    /// Entries of all threads by position, ascending.
    entries: OnceLock<Vec<(TreePosition, ObjectIndex)>>,
}

/// Sum of the values that the examined threads hold under one or several keys.
#[derive(Default)]
struct ThreadLocalSum<'a> {
    keys: u64,
    threads: FxHashSet<TreePosition>,
    values: u64,
    classes: FxHashMap<&'a str, u64>,
    /// Object indices of the values.
    objects: Vec<ObjectIndex>,
    retained_bytes: u64,
    largest: Option<(u64, ObjectIndex)>,
    /// Size of the buffers found so far; the inner `None` if they differ.
    buffers: Option<Option<u64>>,
}

impl ThreadLocalSum<'_> {
    /// Adds another sum, whose values retain less.
    fn add(&mut self, other: Self) {
        self.keys += other.keys;
        self.threads.extend(other.threads);
        self.values += other.values;
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
        self.objects.extend(other.objects);
        self.retained_bytes = self.retained_bytes.saturating_add(other.retained_bytes);
        self.add_buffer(other.buffers.flatten());
    }

    fn add_buffer(&mut self, bytes: Option<u64>) {
        self.buffers = Some(self.buffers.unwrap_or(bytes).filter(|known| bytes == Some(*known)));
    }
}

impl<'a> ThreadLocals<'a> {
    pub(super) fn new(dump: &Dump<'a>) -> Self {
        let summary = dump.summary;
        Self {
            dump: *dump,
            labels: Labels::new(dump),
            edges: Edges::new(dump),
            forms: Forms::for_summary(summary),
            entries: OnceLock::new(),
        }
    }

    fn entries(&self) -> &[(TreePosition, ObjectIndex)] {
        self.entries.get_or_init(|| {
            let classes = ClassSet::of_name_and_below(self.dump.summary, THREAD_LOCAL_ENTRY);
            let has_objects = |class| self.dump.summary.class(class).is_some_and(|row| row.objects.get() > 0);
            if !classes.classes().any(has_objects) {
                return Vec::new();
            }
            let tree = &self.dump.graph.tree;
            let all = classes.all_objects(self.dump.graph).into_iter();
            let mut entries: Vec<(TreePosition, ObjectIndex)> =
                all.filter_map(|entry| Some((tree.reachable_position(entry)?, entry))).collect();
            entries.sort_unstable();
            entries
        })
    }

    /// Returns the ThreadLocals whose values `owners` dominate, largest retained size first.
    pub(super) fn uses_of(&self, owners: &[TreePosition]) -> Vec<ThreadLocalUse> {
        let (tree, entries) = (&self.dump.graph.tree, self.entries());
        let mut sums: FxHashMap<ObjectId, ThreadLocalSum<'a>> = FxHashMap::default();
        for owner in owners {
            let range: Range<TreePosition> = *owner..tree.end(*owner);
            let start = entries.partition_point(|(position, _)| *position < range.start);
            let own = entries.get(start..).unwrap_or_default().iter();
            for (position, entry) in own.take_while(|(position, _)| *position < range.end) {
                let reference =
                    |name| self.dump.objects.field(*entry, name).and_then(|value| value.reference());
                let sum = sums.entry(reference("referent").unwrap_or_default()).or_default();
                sum.threads.insert(*owner);
                sum.values += 1;
                let bytes = tree.retained_bytes(*position);
                sum.retained_bytes = sum.retained_bytes.saturating_add(bytes);
                sum.add_buffer(buffer_bytes(self.dump.graph, &self.dump.objects, *position));
                let value = reference("value").and_then(|id| self.dump.graph.objects.addresses.index_of(id));
                if let Some(value) = value
                    && sum.largest.is_none_or(|(most, _)| most < bytes)
                {
                    sum.largest = Some((bytes, value));
                }
                if let Some(class) = value.and_then(|value| self.class_name(value)) {
                    *sum.classes.entry(class).or_default() += 1;
                }
                sum.objects.extend(value);
            }
        }
        let mut sums: Vec<(ObjectId, ThreadLocalSum<'a>)> = sums.into_iter().collect();
        sums.sort_rows_by_key(|(key, sum)| (Reverse(sum.retained_bytes), *key));
        let mut fields: Vec<(ObjectId, Option<String>, ThreadLocalSum<'a>)> = Vec::new();
        let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
        // Takes all keys: a class that is loaded often has an unlimited number of ThreadLocals.
        for (key, sum) in sums {
            let sum = ThreadLocalSum { keys: 1, ..sum };
            let field = self.field(key);
            let known = field.as_ref().and_then(|field| numbers.get(field));
            match known.and_then(|number| fields.get_mut(*number)) {
                Some((_, _, known)) => known.add(sum),
                None => {
                    numbers.extend(field.clone().map(|field| (field, fields.len())));
                    fields.push((key, field, sum));
                }
            }
        }
        fields.sort_rows_by_key(|(key, _, sum)| (Reverse(sum.retained_bytes), *key));
        fields.truncate(TOLD);
        let most = |classes: FxHashMap<&str, u64>| {
            let most = classes.into_iter().max_by_key(|(class, count)| (*count, Reverse(*class)));
            most.map(|(class, _)| class.to_owned())
        };
        fields
            .into_iter()
            .map(|(key, field, sum)| {
                let elements = self.elements_of(&sum.objects);
                let mut owners: Vec<TreePosition> = sum.threads.into_iter().collect();
                owners.sort_unstable();
                ThreadLocalUse {
                    key,
                    keys: sum.keys,
                    field,
                    threads: owners.len() as u64,
                    values: sum.values,
                    value_class: most(sum.classes),
                    elements: elements.as_ref().map(|(count, _)| *count),
                    element_class: elements.and_then(|(_, class)| class),
                    retained_bytes: sum.retained_bytes,
                    largest: sum.largest.map(|(_, value)| value),
                    buffer_bytes: sum.buffers.flatten(),
                    owners,
                }
            })
            .collect()
    }

    fn class_name(&self, object: ObjectIndex) -> Option<&'a str> {
        let row = self.dump.summary.class(self.dump.graph.objects.class(object)?)?;
        Some(self.dump.summary.class_name(row))
    }

    /// Returns the total number of elements of the values, and the class of the elements if they have only one; `None` unless
    /// all values are collections that store their number of elements.
    fn elements_of(&self, values: &[ObjectIndex]) -> Option<(u64, Option<String>)> {
        let collections = Collections::with(&self.dump.objects, self.forms.clone());
        let (mut count, mut classes, mut left) = (0u64, FxHashSet::default(), MAX_ELEMENTS);
        for value in values {
            let collection = collections.collection(*value)?;
            if collection.kind == CollectionKind::Holder {
                return None;
            }
            count = count.saturating_add(collections.count(&collection)?);
            for entry in collections.entries(&collection).take(left) {
                left -= 1;
                let class =
                    self.dump.objects.object(entry.value).and_then(|element| self.class_name(element));
                classes.insert(class.unwrap_or_default());
            }
        }
        let class = classes.iter().next().filter(|class| classes.len() == 1 && !class.is_empty());
        Some((count, class.map(|class| (*class).to_owned())))
    }

    /// Returns the static field that holds a ThreadLocal, or else the application's field.
    fn field(&self, key: ObjectId) -> Option<String> {
        let object = self.dump.graph.objects.addresses.index_of(key).filter(|_| !key.is_null())?;
        self.labels.static_of_thread_local(key).or_else(|| holder_field::field(&self.edges, object))
    }
}

/// Returns the shallow size of the array of primitives that makes up most of an object's retained size; `None` if
/// there is none.
fn buffer_bytes(graph: &ObjectGraph, objects: &ObjectReader<'_>, top: TreePosition) -> Option<u64> {
    let tree = &graph.tree;
    let all = tree.retained_bytes(top);
    let is_most = |position: &TreePosition| contents::is_most(tree.retained_bytes(*position), all);
    let down = std::iter::successors(Some(top), |above| tree.children(*above).next().filter(is_most));
    let bottom = down.take(MAX_DOWN).last()?;
    let class = graph.objects.class(tree.object_at(bottom)?)?;
    let is_buffer = matches!(objects.summary.class(class)?.kind(), ClassKind::PrimitiveArray(_));
    let bytes = tree.shallow_bytes(bottom);
    (is_buffer && contents::is_most(bytes, all)).then_some(bytes)
}
