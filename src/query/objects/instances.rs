//! The objects of some classes: which there are, in order, the first of them.

use std::ops::Range;

use rayon::prelude::*;

use crate::index::ObjectGraph;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::objects::object_table::BLOCK;

use super::condition::Filter;
use super::label::Labels;
use super::largest::largest;
use super::selection::{Selection, What};
use crate::query::dominators::preorder::chunks;

/// Objects that one thread takes at a time.
const CHUNK: u32 = 1 << 16;

/// Some classes, by class number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSet {
    of_class: Vec<bool>,
    /// The selections, by number, that no class matches.
    pub unmatched: Vec<usize>,
}

impl ClassSet {
    /// The classes that match: by pattern, or by the object id of their class object. With `subclasses` also all that
    /// extend them.
    pub fn new(summary: &Summary, graph: &ObjectGraph, selections: &[Selection], subclasses: bool) -> Self {
        let mut set = Self { of_class: vec![false; summary.classes().len()], unmatched: Vec::new() };
        for (at, selection) in selections.iter().enumerate() {
            let mut any = false;
            let mut add = |class: ClassNumber| {
                if let Some(place) = set.of_class.get_mut(class.0 as usize) {
                    (*place, any) = (true, true);
                }
            };
            match &selection.what {
                What::Object(id) => {
                    let object = graph.objects.addresses.index_of(*id);
                    object
                        .and_then(|object| graph.class_of_class_object(object))
                        .into_iter()
                        .for_each(&mut add);
                }
                What::Classes(pattern) => {
                    let all = summary.numbered_classes();
                    let found = all.filter(|(_, class)| pattern.matches(summary.class_name(class)));
                    found.for_each(|(number, _)| add(number));
                }
            }
            if !any {
                set.unmatched.push(at);
            }
        }
        if subclasses {
            summary.class_table().add_subclasses(&mut set.of_class);
        }
        set
    }

    /// The subclasses of the class of this name, and the class itself: all classes of that name.
    pub fn of_name_and_below(summary: &Summary, name: &str) -> Self {
        let named = summary.classes().iter().map(|class| summary.class_name(class) == name);
        let mut of_class: Vec<bool> = named.collect();
        summary.class_table().add_subclasses(&mut of_class);
        Self { of_class, unmatched: Vec::new() }
    }

    /// Whether a class is in the set.
    #[inline]
    pub fn contains(&self, class: ClassNumber) -> bool {
        self.of_class.get(class.0 as usize).copied().unwrap_or(false)
    }

    /// Whether no class is in the set.
    pub fn is_empty(&self) -> bool {
        !self.of_class.contains(&true)
    }

    /// The classes of the set, ascending.
    pub fn classes(&self) -> impl Iterator<Item = ClassNumber> + '_ {
        (0u32..).zip(&self.of_class).filter(|(_, is_in)| **is_in).map(|(class, _)| ClassNumber(class))
    }

    /// The objects of these classes in a chunk of all objects, ascending.
    pub fn objects<'s>(
        &'s self,
        graph: &'s ObjectGraph,
        chunk: Range<u32>,
    ) -> impl Iterator<Item = u32> + use<'s> {
        let classes = graph.objects.classes(chunk.clone());
        chunk
            .zip(classes)
            .filter(|(_, class)| class.is_some_and(|class| self.contains(class)))
            .map(|(object, _)| object)
    }

    /// All objects of these classes, ascending.
    pub fn all_objects(&self, graph: &ObjectGraph) -> Vec<u32> {
        let chunks = chunks(0..graph.objects.len(), CHUNK);
        let objects = chunks.into_par_iter().map(|chunk| self.objects(graph, chunk).collect::<Vec<u32>>());
        objects.collect::<Vec<_>>().concat()
    }
}

/// The order of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Those that retain most first, unreachable ones last.
    #[default]
    Retained,
    /// The largest first.
    Shallow,
    /// By address.
    Address,
}

/// What is asked of objects.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Of which classes.
    pub classes: &'a ClassSet,
    /// Which of them.
    pub filter: Option<&'a Filter<'a>>,
    /// Only those that a root leads to.
    pub live: bool,
    /// Their order; of those that are alike by address.
    pub sort_by: SortBy,
    /// How many are kept; all by default.
    pub top: Option<usize>,
}

/// The objects that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The objects that are kept, in order.
    pub objects: Vec<u32>,
    /// How many there are.
    pub total: u64,
}

/// Finds the objects asked for.
pub fn find(graph: &ObjectGraph, question: &Question<'_>) -> Found {
    if let (SortBy::Retained, None, Some(top)) = (question.sort_by, question.filter, question.top) {
        return largest(graph, question.classes, top, question.live);
    }
    let none = || Best::new(question.top);
    let found = (chunks(0..graph.objects.len(), CHUNK).into_par_iter())
        .fold(none, |mut best, chunk| {
            find_in_chunk(graph, question, chunk, &mut best);
            best
        })
        .reduce(none, Best::merge);
    found.finish()
}

fn find_in_chunk(graph: &ObjectGraph, question: &Question<'_>, chunk: Range<u32>, best: &mut Best) {
    let mut take = |object: u32| {
        let tree = &graph.tree;
        if question.live && tree.reachable_position(object).is_none() {
            return;
        }
        best.total += 1;
        // Smaller keys are better.
        match question.sort_by {
            SortBy::Address => best.add((0, object)),
            SortBy::Shallow => {
                let bytes = tree.position(object).map_or(0, |position| tree.shallow_bytes(position));
                best.add((u64::MAX - bytes, object));
            }
            SortBy::Retained => {
                let Some(position) = tree.reachable_position(object) else {
                    best.add((u64::MAX, object));
                    return;
                };
                // Most objects hold nothing that is theirs alone: what they take says it all, and is found faster.
                let dominates = tree.ends_behind(position) == 0;
                let bytes =
                    if dominates { tree.retained_bytes(position) } else { tree.shallow_bytes(position) };
                best.add((u64::MAX - bytes, object));
            }
        }
    };
    let Some(filter) = question.filter else {
        question.classes.objects(graph, chunk).for_each(take);
        return;
    };
    for block in chunks(chunk, BLOCK) {
        let mut wanted = 0u64;
        for object in question.classes.objects(graph, block.clone()) {
            wanted |= 1 << (object - block.start);
        }
        filter.matching(block.start, wanted, &mut take);
    }
}

/// The first of many objects, without sorting them all.
#[derive(Debug, Clone)]
pub(crate) struct Best {
    most: usize,
    kept: Vec<(u64, u32)>,
    /// The last of those that are surely better than all others.
    worst: Option<(u64, u32)>,
    total: u64,
}

impl Best {
    pub(crate) fn new(top: Option<usize>) -> Self {
        Self { most: top.unwrap_or(usize::MAX).max(1), kept: Vec::new(), worst: None, total: 0 }
    }

    /// The worst key that can still be among the best of all.
    pub(crate) fn worst(&self) -> Option<u64> {
        self.worst.map(|(key, _)| key)
    }

    #[inline]
    pub(crate) fn add(&mut self, key: (u64, u32)) {
        if self.worst.is_some_and(|worst| key > worst) {
            return;
        }
        self.kept.push(key);
        if self.kept.len() >= self.most.saturating_mul(2) {
            self.cut();
        }
    }

    /// Keeps the best only. Half of what is there goes, so that it costs little an object.
    fn cut(&mut self) {
        if self.kept.len() > self.most {
            let (_, worst, _) = self.kept.select_nth_unstable(self.most - 1);
            self.worst = Some(*worst);
            self.kept.truncate(self.most);
        }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.total += other.total;
        other.kept.into_iter().for_each(|key| self.add(key));
        self
    }

    pub(crate) fn finish(mut self) -> Found {
        self.cut();
        self.kept.par_sort_unstable();
        Found { objects: self.kept.into_iter().map(|(_, object)| object).collect(), total: self.total }
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Object id.
    pub id: u64,
    /// Its class, if the dump tells.
    pub class: Option<ClassNumber>,
    /// A few words that tell it from others.
    pub label: Option<String>,
    /// What it takes itself.
    pub shallow_bytes: u64,
    /// What would be freed with it; `None` if no root leads to it.
    pub retained_bytes: Option<u64>,
}

/// What is known of an object.
pub fn row(graph: &ObjectGraph, labels: &Labels<'_>, object: u32) -> Row {
    let tree = &graph.tree;
    Row {
        id: graph.objects.addresses.id_of(object).unwrap_or(0),
        class: graph.objects.class(object),
        label: labels.label(object),
        shallow_bytes: tree.position(object).map_or(0, |position| tree.shallow_bytes(position)),
        retained_bytes: tree.reachable_position(object).map(|position| tree.retained_bytes(position)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_whatever_the_order() {
        let keys: Vec<(u64, u32)> = (0..10_000u32).map(|at| (u64::from(at * 7919 % 1000), at)).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        for top in [None, Some(1), Some(7), Some(5000), Some(20_000)] {
            let mut halves = [Best::new(top), Best::new(top)];
            for (at, key) in keys.iter().enumerate() {
                if let Some(half) = halves.get_mut(at % 2) {
                    half.total += 1;
                    half.add(*key);
                }
            }
            let [a, b] = halves;
            let found = a.merge(b).finish();
            let kept = top.unwrap_or(usize::MAX).min(keys.len());
            let expected: Vec<u32> = sorted.iter().take(kept).map(|(_, object)| *object).collect();
            assert_eq!((found.objects, found.total), (expected, 10_000), "{top:?}");
        }
    }
}
