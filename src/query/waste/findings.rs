//! What was found of a kind: the objects and what each would save.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::Search;
use super::kind::WasteKind;
use super::kinds::KINDS;
use crate::dominators::retained::tops;
use crate::objects::object_set::Bits;
use crate::sorting::SortRows;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::scratch::{Array, ScratchArena};
use hprof_parser::ObjectId;

/// No object.
pub(super) const NO_OBJECT: u32 = u32::MAX;

/// An object that would be freed, or shrink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Saving {
    /// What is saved with it, in bytes.
    pub(super) bytes: u64,
    /// The object.
    pub(super) object: u32,
    /// Another one that is freed with it, or [`NO_OBJECT`].
    pub(super) other: u32,
}

impl Saving {
    pub(super) fn of(object: ObjectIndex, bytes: u64) -> Self {
        Self { bytes, object: object.0, other: NO_OBJECT }
    }

    /// Of a kind that makes something smaller: what that is.
    pub(super) fn smaller(&self) -> ObjectIndex {
        ObjectIndex(if self.other == NO_OBJECT { self.object } else { self.other })
    }
}

/// What a kind consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum PartKey {
    /// Objects of a class.
    Class(ClassNumber),
    /// Buffers in the field of a class that says how much is used.
    Buffer(ClassNumber),
    /// Arrays of a class that end in zeros.
    Zeros(ClassNumber),
    /// Collections that hold a table.
    Table,
    /// Collections that hold nothing.
    NoTable,
    /// Boxes that `valueOf` would share.
    Cached,
}

/// How much of a part there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PartSum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// What is used, and of how much.
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

/// Objects of a kind, put together by what they consist of.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is, in words: a class.
    pub what: String,
    /// How many objects.
    pub count: u64,
    /// What would be freed of it.
    pub wasted_bytes: u64,
    /// How much is used, where that is known: elements by slots; of maps that collide, entries that stand behind others, by entries.
    pub ratio: Option<f64>,
}

/// An object of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The object.
    pub object: ObjectId,
    /// Its class.
    pub class: Option<String>,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// How many like it there are; 1 where that is not what counts.
    pub count: u64,
    /// What would be freed.
    pub wasted_bytes: u64,
}

/// An object, how many like it can go, and what that saves.
pub(super) type Largest = (ObjectIndex, u64, u64);

/// What was found of a kind.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) kind: &'static WasteKind,
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) savings: Vec<Array<Saving>>,
    /// What goes with collections of one element.
    pub(super) freed: Vec<Array<u32>>,
    /// By class number: how many bytes its instances get smaller by.
    pub(super) shrinks: Vec<u64>,
    pub(super) parts: Parts,
    /// The largest groups of equal objects: the first, how many can go, and what that saves.
    pub(super) groups: Vec<Largest>,
    /// Fields, where they are what is wasted, by class and number: instances, bytes.
    pub(super) fields: FxHashMap<(ClassNumber, u32), (u64, u64)>,
}

impl Findings {
    pub(super) fn new(kind: &'static WasteKind) -> Self {
        Self {
            kind,
            count: 0,
            bytes: 0,
            savings: Vec::new(),
            freed: Vec::new(),
            shrinks: Vec::new(),
            parts: Parts::default(),
            groups: Vec::new(),
            fields: FxHashMap::default(),
        }
    }

    /// All objects of a kind, which consists of their classes, or of those of what they stand for.
    pub(super) fn by_class(
        kind: &'static WasteKind,
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
        let mut findings = Self::new(kind);
        findings.take(savings, &parts);
        findings
    }

    /// Takes what was found in a chunk of objects, after all before.
    pub(super) fn take(&mut self, savings: Array<Saving>, parts: &Parts) {
        self.count += savings.len() as u64;
        self.bytes = savings.iter().fold(self.bytes, |sum, saving| sum.saturating_add(saving.bytes));
        if !savings.is_empty() {
            self.savings.push(savings);
        }
        parts.iter().for_each(|(key, sum)| self.parts.entry(*key).or_default().add(*sum));
    }

    /// What some objects retain by the dominator tree; what several of them hold together does not count.
    pub(super) fn retained(
        kind: &'static WasteKind,
        search: &Search<'_>,
        objects: &[ObjectIndex],
        class: impl Fn(ObjectIndex) -> Option<ClassNumber>,
    ) -> io::Result<Self> {
        let tree = &search.graph.tree;
        let tops: FxHashSet<TreePosition> = tops(tree, objects.iter().copied()).into_iter().collect();
        let saving = |object: &ObjectIndex| {
            // What another of them retains counts there.
            let position = tree.reachable_position(*object).filter(|position| tops.contains(position));
            Saving::of(*object, position.map_or(0, |position| tree.retained_bytes(position)))
        };
        let savings: Vec<Saving> = objects.iter().map(saving).collect();
        Ok(Self::by_class(kind, search.room.copy(&savings)?, class))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Saving> {
        self.savings.iter().flat_map(|savings| savings.iter())
    }

    /// What the kind consists of, most bytes first.
    pub(super) fn named_parts(&self, search: &Search<'_>) -> Vec<Part> {
        let name = |class: ClassNumber| {
            search.summary.class(class).map_or("?", |class| search.summary.class_name(class))
        };
        // Classes of one name are told together: a long name of many is kept once.
        let mut by_name: FxHashMap<(&str, &str), PartSum> = FxHashMap::default();
        for (key, sum) in &self.parts {
            let key = match *key {
                PartKey::Class(class) => ("", name(class)),
                PartKey::Buffer(class) => ("by the count of ", name(class)),
                PartKey::Zeros(class) => ("zeros at the end of ", name(class)),
                PartKey::Table => ("with a table", ""),
                PartKey::NoTable => ("without a table", ""),
                PartKey::Cached => ("in the range of the caches", ""),
            };
            by_name.entry(key).or_default().add(*sum);
        }
        let mut parts: Vec<((&str, &str), PartSum)> = by_name.into_iter().collect();
        parts.sort_rows_by_key(|(key, sum)| (Reverse((sum.bytes, sum.count)), *key));
        #[allow(clippy::cast_precision_loss)]
        let part = |((words, name), sum): ((&str, &str), PartSum)| Part {
            what: format!("{words}{name}"),
            count: sum.count,
            wasted_bytes: sum.bytes,
            ratio: (sum.filled.1 > 0).then(|| sum.filled.0 as f64 / sum.filled.1 as f64),
        };
        parts.into_iter().map(part).collect()
    }

    /// The objects that would save most, the first ones of equal ones.
    pub(super) fn examples(&self, search: &Search<'_>, max: usize) -> Vec<Example> {
        let example = |(object, count, wasted_bytes): Largest| {
            // A class object is known by the class it stands for.
            let class = search.graph.class_of_class_object(object).or_else(|| search.class(object));
            let class = class.and_then(|class| search.summary.class(class));
            Example {
                object: search.id(object),
                class: class.map(|class| search.summary.class_name(class).to_owned()),
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

/// The largest, in order; of equal ones those with the lowest object ID.
pub(super) fn keep_largest(all: impl IntoIterator<Item = Largest>, max: usize) -> Vec<Largest> {
    let order = |(object, _, bytes): &Largest| (Reverse(*bytes), *object);
    let mut kept: Vec<Largest> = Vec::new();
    for one in all {
        if kept.len() < max || kept.last().is_some_and(|last| order(&one) < order(last)) {
            let at = kept.partition_point(|known| order(known) < order(&one));
            kept.insert(at, one);
            kept.truncate(max);
        }
    }
    kept
}

/// What is found in a chunk of objects, of one kind.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) savings: Vec<Saving>,
    pub(super) parts: Parts,
    /// What is freed, where it is more than the objects themselves.
    pub(super) freed: Vec<u32>,
}

impl Sink {
    pub(super) fn push(&mut self, saving: Saving, part: Option<PartKey>, filled: (u64, u64)) {
        self.savings.push(saving);
        if let Some(part) = part {
            self.parts.entry(part).or_default().add(PartSum { count: 1, bytes: saving.bytes, filled });
        }
    }
}

/// What is found in a chunk of objects, by the place of the kind in [`KINDS`].
#[derive(Default)]
pub(super) struct Sinks([Sink; KINDS.len()]);

/// What was found in a chunk of objects, in the scratch arena.
pub(super) struct StoredSinks(Vec<(usize, Array<Saving>, Parts, Array<u32>)>);

impl Sinks {
    /// Calls functions of kinds with their sinks.
    #[inline(always)]
    pub(super) fn visit<H: Copy>(&mut self, hooks: &[(usize, H)], mut call: impl FnMut(H, &mut Sink)) {
        for (rank, hook) in hooks {
            if let Some(sink) = self.0.get_mut(*rank) {
                call(*hook, sink);
            }
        }
    }

    /// Moves what was found to the room.
    pub(super) fn into_room(self, room: &ScratchArena) -> io::Result<StoredSinks> {
        let found = self.0.into_iter().enumerate().filter(|(_, sink)| !sink.savings.is_empty());
        let stored = found.map(|(rank, Sink { savings, parts, freed })| {
            Ok((rank, room.copy(&savings)?, parts, room.copy(&freed)?))
        });
        Ok(StoredSinks(stored.collect::<io::Result<_>>()?))
    }
}

impl StoredSinks {
    /// Adds what was found to the findings of all kinds.
    pub(super) fn add_to(self, all: &mut [Findings]) {
        for (rank, savings, parts, freed) in self.0 {
            if let Some(findings) = all.get_mut(rank) {
                findings.take(savings, &parts);
                findings.freed.push(freed);
            }
        }
    }
}

/// Which objects are reachable: one bit each, where the tree takes a look into two columns.
#[derive(Debug)]
pub(super) struct Reachable(Bits);

impl Reachable {
    pub(super) fn of(graph: &ObjectGraph) -> Self {
        let mut unreachable = Bits::new(graph.objects.len());
        let positions = TreePosition(graph.tree.reachable())..TreePosition(graph.tree.objects());
        for object in graph.tree.objects_at(positions) {
            unreachable.insert(object);
        }
        Self(unreachable)
    }

    /// Only those of some positions of the tree, which take no more than `most_bytes`.
    pub(super) fn sample(graph: &ObjectGraph, windows: &[Range<TreePosition>], most_bytes: u64) -> Self {
        let tree = &graph.tree;
        let mut others = Bits::new(graph.objects.len());
        others.insert_range(graph.objects.all());
        for window in windows {
            for (object, bytes) in tree.objects_at(window.clone()).zip(tree.shallow_sizes(window.clone())) {
                if bytes <= most_bytes {
                    others.remove(object);
                }
            }
        }
        Self(others)
    }

    #[inline]
    pub(super) fn contains(&self, object: ObjectIndex) -> bool {
        !self.0.contains(object)
    }

    /// The reachable objects among 64, a bit each.
    pub(super) fn of_block(&self, block: u32) -> u64 {
        !self.0.word(block)
    }
}
