//! Findings of one kind of waste: the objects and the saving of each.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WasteSearch;
use hprof_base::sorting::SortRows;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::scratch::{Array, ScratchArena};
use hprof_model::dominators::retained_of_set::tops;
use hprof_model::objects::object_set::Bits;
use hprof_values::ObjectId;

/// Placeholder for no object.
pub(super) const NO_OBJECT: u32 = u32::MAX;

/// An object that would be freed, or would shrink, and the saving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Saving {
    /// Saving in bytes.
    pub(super) bytes: u64,
    /// Object index.
    pub(super) object: u32,
    /// Index of a second object, or [`NO_OBJECT`]: one that is freed with `object` or, for kinds that shrink objects, the one
    /// that shrinks.
    pub(super) other: u32,
}

impl Saving {
    pub(super) fn new(object: ObjectIndex, bytes: u64) -> Self {
        Self { bytes, object: object.0, other: NO_OBJECT }
    }

    /// Returns the object that shrinks, for kinds that shrink objects.
    pub(super) fn smaller(&self) -> ObjectIndex {
        ObjectIndex(if self.other == NO_OBJECT { self.object } else { self.other })
    }
}

/// Key of a part of the findings of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum PartKey {
    /// Objects of a class.
    Class(ClassNumber),
    /// Buffers of a class that records how much of its array is used.
    Buffer(ClassNumber),
    /// Arrays of a class whose ends are zeros.
    Zeros(ClassNumber),
    /// Collections with a table.
    Table,
    /// Collections without a table.
    NoTable,
    /// Boxes that `valueOf` would share.
    Cached,
}

/// Figures of a part of the findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PartSum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// Used amount, and total amount.
    pub(super) filled: (u64, u64),
}

impl PartSum {
    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.filled.0 = self.filled.0.saturating_add(other.filled.0);
        self.filled.1 = self.filled.1.saturating_add(other.filled.1);
    }
}

pub(super) type Parts = FxHashMap<PartKey, PartSum>;

/// Objects found by one kind that have a common property.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingPart {
    /// Description of the property, such as a class.
    pub what: String,
    /// Number of objects.
    pub count: u64,
    /// Wasted bytes.
    pub wasted_bytes: u64,
    /// Fill ratio, if known: elements divided by slots; for colliding maps, the share of entries that are not the first in
    /// their bucket.
    pub ratio: Option<f64>,
}

/// An example among the findings of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Object ID.
    pub object: ObjectId,
    /// Class name.
    pub class: Option<String>,
    /// Short description that distinguishes it from others of its class.
    pub label: Option<String>,
    /// Number of equal objects; 1 if equality does not matter.
    pub count: u64,
    /// Wasted bytes.
    pub wasted_bytes: u64,
}

/// Group of equal objects: one object, the number of equal ones that can be freed, and the saving.
pub(super) type DuplicateGroup = (ObjectIndex, u64, u64);

/// Findings of one kind of waste.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) savings: Vec<Array<Saving>>,
    /// Objects that are freed with collections of one element.
    pub(super) freed: Vec<Array<u32>>,
    /// Bytes by which each instance shrinks, by class number.
    pub(super) shrinks: Vec<u64>,
    pub(super) parts: Parts,
    /// Largest groups of equal objects.
    pub(super) groups: Vec<DuplicateGroup>,
    /// Instances and bytes of wasted fields, by class and number of the field.
    pub(super) fields: FxHashMap<(ClassNumber, u32), (u64, u64)>,
}

impl Findings {
    /// Returns all objects of a kind whose parts are classes; class objects are in the part of the represented class.
    pub(super) fn by_class(
        savings: Array<Saving>,
        class: impl Fn(ObjectIndex) -> Option<ClassNumber>,
    ) -> Self {
        let mut parts = Parts::default();
        for saving in savings.iter() {
            if let Some(class) = class(ObjectIndex(saving.object)) {
                let sum = PartSum { count: 1, bytes: saving.bytes, filled: (0, 0) };
                parts.entry(PartKey::Class(class)).or_default().add(sum);
            }
        }
        let mut findings = Self::default();
        findings.take(savings, &parts);
        findings
    }

    /// Adds the findings of a chunk of objects, in order.
    pub(super) fn take(&mut self, savings: Array<Saving>, parts: &Parts) {
        self.count += savings.len() as u64;
        self.bytes = savings.iter().fold(self.bytes, |sum, saving| sum.saturating_add(saving.bytes));
        if !savings.is_empty() {
            self.savings.push(savings);
        }
        parts.iter().for_each(|(key, sum)| self.parts.entry(*key).or_default().add(*sum));
    }

    /// Returns findings of objects with their retained sizes. Objects that are retained only by several of them together do not
    /// count.
    pub(super) fn from_retained(
        search: &WasteSearch<'_>,
        objects: &[ObjectIndex],
        class: impl Fn(ObjectIndex) -> Option<ClassNumber>,
    ) -> io::Result<Self> {
        let tree = &search.dump.graph.tree;
        let tops: FxHashSet<TreePosition> = tops(tree, objects.iter().copied()).into_iter().collect();
        let saving = |object: &ObjectIndex| {
            // If another one retains it, it is part of that one.
            let position = tree.reachable_position(*object).filter(|position| tops.contains(position));
            Saving::new(*object, position.map_or(0, |position| tree.retained_bytes(position)))
        };
        let savings: Vec<Saving> = objects.iter().map(saving).collect();
        Ok(Self::by_class(search.room.copy(&savings)?, class))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Saving> {
        self.savings.iter().flat_map(|savings| savings.iter())
    }

    /// Returns the parts of the kind, most bytes first.
    pub(super) fn named_parts(&self, search: &WasteSearch<'_>) -> Vec<FindingPart> {
        let name = |class: ClassNumber| {
            search.dump.summary.class(class).map_or("?", |class| search.dump.summary.class_name(class))
        };
        // Classes of one name are merged, so that a long name of many is stored once.
        let mut by_name: FxHashMap<(&str, &str), PartSum> = FxHashMap::default();
        for (key, sum) in &self.parts {
            let key = match *key {
                PartKey::Class(class) => ("", name(class)),
                PartKey::Buffer(class) => ("beyond the length stored in ", name(class)),
                PartKey::Zeros(class) => ("zeros at the end of ", name(class)),
                PartKey::Table => ("with a table", ""),
                PartKey::NoTable => ("without a table", ""),
                PartKey::Cached => ("within the range of the caches", ""),
            };
            by_name.entry(key).or_default().add(*sum);
        }
        let mut parts: Vec<((&str, &str), PartSum)> = by_name.into_iter().collect();
        parts.sort_rows_by_key(|(key, sum)| (Reverse((sum.bytes, sum.count)), *key));
        #[allow(clippy::cast_precision_loss)]
        let part = |((words, name), sum): ((&str, &str), PartSum)| FindingPart {
            what: format!("{words}{name}"),
            count: sum.count,
            wasted_bytes: sum.bytes,
            ratio: (sum.filled.1 > 0).then(|| sum.filled.0 as f64 / sum.filled.1 as f64),
        };
        parts.into_iter().map(part).collect()
    }

    /// Returns the objects with the largest savings; of equal savings, the first objects.
    pub(super) fn examples(&self, search: &WasteSearch<'_>, max: usize) -> Vec<Example> {
        let example = |(object, count, wasted_bytes): DuplicateGroup| {
            // A class object is shown by the class that it represents.
            let class = search.dump.graph.class_of_class_object(object).or_else(|| search.class(object));
            let class = class.and_then(|class| search.dump.summary.class(class));
            Example {
                object: search.id(object),
                class: class.map(|class| search.dump.summary.class_name(class).to_owned()),
                label: search.labels.label(object),
                count,
                wasted_bytes,
            }
        };
        let mut largest = self.groups.clone();
        if largest.is_empty() {
            let largest_of = |savings: &Array<Saving>| {
                keep_largest(savings.iter().map(|saving| (ObjectIndex(saving.object), 1, saving.bytes)), max)
            };
            largest = self.savings.par_iter().flat_map_iter(largest_of).collect();
        }
        keep_largest(largest, max).into_iter().map(example).collect()
    }
}

/// Returns the largest groups, in order; of equal groups, those with the lowest object ID.
pub(super) fn keep_largest(all: impl IntoIterator<Item = DuplicateGroup>, max: usize) -> Vec<DuplicateGroup> {
    let order = |(object, _, bytes): &DuplicateGroup| (Reverse(*bytes), *object);
    let mut kept: Vec<DuplicateGroup> = Vec::new();
    for one in all {
        if kept.len() < max || kept.last().is_some_and(|last| order(&one) < order(last)) {
            let at = kept.partition_point(|known| order(known) < order(&one));
            kept.insert(at, one);
            kept.truncate(max);
        }
    }
    kept
}

/// Receiver of the findings of one kind in a chunk of objects.
#[derive(Debug, Default)]
pub(super) struct FindingSink {
    pub(super) savings: Vec<Saving>,
    pub(super) parts: Parts,
    /// Freed objects, if these are more than the found objects.
    pub(super) freed: Vec<u32>,
}

impl FindingSink {
    pub(super) fn push(&mut self, saving: Saving, part: Option<PartKey>, filled: (u64, u64)) {
        self.savings.push(saving);
        if let Some(part) = part {
            self.parts.entry(part).or_default().add(PartSum { count: 1, bytes: saving.bytes, filled });
        }
    }
}

/// Receivers of the findings in a chunk of objects, by position of the kind in [`super::KINDS`].
pub(super) struct Sinks(Vec<FindingSink>);

/// Findings in a chunk of objects, in the scratch arena.
pub(super) struct StoredFindings(Vec<(usize, Array<Saving>, Parts, Array<u32>)>);

impl Sinks {
    /// Creates empty sinks for a number of kinds.
    pub(super) fn new(kinds: usize) -> Self {
        Self((0..kinds).map(|_| FindingSink::default()).collect())
    }

    /// Calls the functions of kinds, each with the sink of its kind.
    #[inline(always)]
    pub(super) fn visit<H: Copy>(&mut self, hooks: &[(usize, H)], mut call: impl FnMut(H, &mut FindingSink)) {
        for (rank, hook) in hooks {
            if let Some(sink) = self.0.get_mut(*rank) {
                call(*hook, sink);
            }
        }
    }

    /// Moves the findings to the scratch arena.
    pub(super) fn into_room(self, room: &ScratchArena) -> io::Result<StoredFindings> {
        let found = self.0.into_iter().enumerate().filter(|(_, sink)| !sink.savings.is_empty());
        let stored = found.map(|(rank, FindingSink { savings, parts, freed })| {
            Ok((rank, room.copy(&savings)?, parts, room.copy(&freed)?))
        });
        Ok(StoredFindings(stored.collect::<io::Result<_>>()?))
    }
}

impl StoredFindings {
    /// Adds the findings of a chunk to the findings of all kinds.
    pub(super) fn add_to(self, all: &mut [Findings]) {
        for (rank, savings, parts, freed) in self.0 {
            if let Some(findings) = all.get_mut(rank) {
                findings.take(savings, &parts);
                findings.freed.push(freed);
            }
        }
    }
}

/// Set of the reachable objects, one bit each. The dominator tree would need lookups in two columns.
#[derive(Debug)]
pub(super) struct Reachable(Bits);

impl Reachable {
    pub(super) fn new(graph: &ObjectGraph) -> Self {
        let mut unreachable = Bits::new(graph.objects.len());
        let positions = TreePosition(graph.tree.reachable())..TreePosition(graph.tree.objects());
        for object in graph.tree.objects_at(positions) {
            unreachable.insert(object);
        }
        Self(unreachable)
    }

    /// Returns a set of only the objects at the positions in `windows` that are at most `most_bytes` large.
    pub(super) fn sample(graph: &ObjectGraph, windows: &[Range<TreePosition>], most_bytes: u64) -> Self {
        let tree = &graph.tree;
        let mut others = Bits::new(graph.objects.len());
        others.insert_range(graph.objects.indices());
        for window in windows {
            for (object, bytes) in tree.objects_at(window.clone()).zip(tree.shallow_sizes(window.clone())) {
                if bytes <= most_bytes {
                    others.remove(object);
                }
            }
        }
        Self(others)
    }

    /// Returns whether an object is in the set.
    #[inline]
    pub(super) fn contains(&self, object: ObjectIndex) -> bool {
        !self.0.contains(object)
    }

    /// Returns the reachable objects of a block of 64, one bit each.
    pub(super) fn of_block(&self, block: u32) -> u64 {
        !self.0.word(block)
    }
}
