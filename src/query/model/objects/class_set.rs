//! A set of classes, and their objects.

use std::ops::Range;

use super::selection::{Selection, SelectionKind};
use hprof_base::parallel;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::object_table::BLOCK;
use hprof_index::{DumpGraph, ObjectGraph};

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 16;

/// A set of classes, by class number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassSet {
    of_class: Vec<bool>,
    /// Indices of the selections that match no class.
    pub unmatched: Vec<usize>,
}

impl ClassSet {
    /// Selects the classes that match: by pattern, or by the ID of their class object, or of any of their objects. With
    /// `subclasses`, all classes that extend them are selected as well.
    pub fn new(dump: &DumpGraph<'_>, selections: &[Selection], subclasses: bool) -> Self {
        let mut set = Self { of_class: vec![false; dump.summary.classes().len()], unmatched: Vec::new() };
        for (at, selection) in selections.iter().enumerate() {
            let mut any = false;
            let mut add = |class: ClassNumber| {
                if let Some(place) = set.of_class.get_mut(class.0 as usize) {
                    (*place, any) = (true, true);
                }
            };
            match &selection.what {
                SelectionKind::Object(id) => {
                    let object = dump.graph.objects.addresses.index_of(*id);
                    object
                        .and_then(|object| {
                            dump.graph
                                .class_of_class_object(object)
                                .or_else(|| dump.graph.objects.class(object))
                        })
                        .into_iter()
                        .for_each(&mut add);
                }
                SelectionKind::Classes(pattern) => {
                    let all = dump.summary.numbered_classes();
                    let found = all.filter(|(_, class)| pattern.matches(dump.summary.class_name(class)));
                    found.for_each(|(number, _)| add(number));
                }
            }
            if !any {
                set.unmatched.push(at);
            }
        }
        if subclasses {
            dump.summary.class_table().add_subclasses(&mut set.of_class);
        }
        set
    }

    /// Creates a set of these classes.
    pub fn from_classes(summary: &Summary, classes: &[ClassNumber]) -> Self {
        let mut of_class = vec![false; summary.classes().len()];
        for class in classes {
            if let Some(place) = of_class.get_mut(class.0 as usize) {
                *place = true;
            }
        }
        Self { of_class, unmatched: Vec::new() }
    }

    /// Creates a set of all classes with this name and their subclasses.
    pub fn of_name_and_below(summary: &Summary, name: &str) -> Self {
        let named = summary.classes().iter().map(|class| summary.is_named(class, name));
        let mut of_class: Vec<bool> = named.collect();
        summary.class_table().add_subclasses(&mut of_class);
        Self { of_class, unmatched: Vec::new() }
    }

    /// Returns whether a class is in the set.
    #[inline]
    pub fn contains(&self, class: ClassNumber) -> bool {
        self.of_class.get(class.0 as usize).copied().unwrap_or(false)
    }

    /// Returns whether no class is in the set.
    pub fn is_empty(&self) -> bool {
        !self.of_class.contains(&true)
    }

    /// Returns the classes of the set, ascending.
    pub fn classes(&self) -> impl Iterator<Item = ClassNumber> + '_ {
        (0u32..).zip(&self.of_class).filter(|(_, is_in)| **is_in).map(|(class, _)| ClassNumber(class))
    }

    /// Returns the objects of these classes in a range of all objects, ascending.
    pub fn objects<'s>(
        &'s self,
        graph: &'s ObjectGraph,
        part: Range<ObjectIndex>,
    ) -> impl Iterator<Item = ObjectIndex> + use<'s> {
        let classes = graph.objects.classes(part.clone());
        ObjectIndex::range(part)
            .zip(classes)
            .filter(|(_, class)| class.is_some_and(|class| self.contains(class)))
            .map(|(object, _)| object)
    }

    /// Returns the objects of these classes in a range of all objects as bits: the first object of each block that has any, and
    /// one bit for each of its objects.
    pub fn blocks<'s>(
        &'s self,
        graph: &'s ObjectGraph,
        part: Range<ObjectIndex>,
    ) -> impl Iterator<Item = (ObjectIndex, u64)> + use<'s> {
        let wanted = |block: Range<ObjectIndex>| {
            let objects = self.objects(graph, block.clone());
            (block.start, objects.fold(0, |wanted, object| wanted | 1 << (object.0 - block.start.0)))
        };
        ObjectIndex::chunks(part, BLOCK).into_iter().map(wanted).filter(|(_, wanted)| *wanted != 0)
    }

    /// Returns all objects of these classes, ascending.
    pub fn all_objects(&self, graph: &ObjectGraph) -> Vec<ObjectIndex> {
        if self.is_empty() {
            return Vec::new();
        }
        let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
        parallel::map(&chunks, |chunk| self.objects(graph, chunk).collect::<Vec<_>>()).concat()
    }
}
