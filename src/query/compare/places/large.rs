//! Places of large objects: a walk over the dominator tree that does not descend into objects that retain little.
//!
//! A small object counts at its place with its retained size. Parts of a collection are followed to the elements, however
//! small they are. The walk reads only the records of the objects into which it descends.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::{Children, Tree};
use hprof_index::model::tables::NONE;
use hprof_index::objects::fields::FieldPlace;
use hprof_index::objects::reader::{ObjectReader, Record};
use hprof_parser::{BasicType, ObjectId};

use super::held_by::{HeldBy, Slots};
use super::traits::Role;
use super::tree::{LookedUp, PlaceBuilder};

/// References of single objects to those that they dominate.
pub(super) struct References<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    slots: &'o Slots<'a>,
    /// By thread: objects that its stack references.
    locals: FxHashMap<u32, Vec<ObjectId>>,
}

/// An object whose children the walk visits.
struct Level<'t> {
    children: Children<'t>,
    /// Index of the object's first reference among those of all levels.
    references: usize,
}

impl<'o, 'a> References<'o, 'a> {
    pub(super) fn new(objects: &'o ObjectReader<'a>, slots: &'o Slots<'a>) -> Self {
        let mut locals: FxHashMap<u32, Vec<ObjectId>> = FxHashMap::default();
        let graph = objects.graph;
        for root in graph.roots.rows.iter().filter(|root| root.is_local) {
            if let (Some(thread), Some(id)) = (root.thread, graph.objects.addresses.id_of(root.object)) {
                locals.entry(thread.0).or_default().push(id);
            }
        }
        Self { objects, slots, locals }
    }

    /// Appends the references of an object, in the order in which [`super::held_by::Holders`] processes them.
    fn of(&self, holder: ObjectIndex, to: &mut Vec<(ObjectId, HeldBy)>) {
        let (graph, summary) = (self.objects.graph, self.objects.summary);
        if let Some(class) = graph.class_of_class_object(holder) {
            let statics = summary.class(class).into_iter().flat_map(|row| summary.statics(row));
            let statics = (0u32..).zip(statics).filter(|(_, (_, kind, _))| *kind == BasicType::Object);
            to.extend(statics.map(|(at, (.., id))| (ObjectId(id), HeldBy::Field(at))));
        } else if let Some(class) = graph.objects.class(holder)
            && let slots @ [_, _, ..] = self.slots.of(class)
            && let Some(Record::Instance(record)) = self.objects.record(holder)
        {
            let id = |place: FieldPlace| place.value(record.fields, summary.id_size())?.reference();
            let fields =
                (0u32..).zip(slots).filter_map(|(at, slot)| Some((id(slot.place)?, HeldBy::Field(at))));
            to.extend(fields);
        }
        if let Some(locals) = self.locals.get(&holder.0) {
            to.extend(locals.iter().map(|id| (*id, HeldBy::Stack)));
        }
    }

    /// Returns the reference by which its dominator holds an object.
    pub(super) fn held_by(&self, dominator: ObjectIndex, object: ObjectIndex) -> HeldBy {
        let mut references = Vec::new();
        self.of(dominator, &mut references);
        self.find(&references, object)
    }

    fn find(&self, references: &[(ObjectId, HeldBy)], object: ObjectIndex) -> HeldBy {
        let Some(first) = references.first() else { return HeldBy::Unknown };
        let id = self.objects.graph.objects.addresses.id_of(object).unwrap_or(first.0);
        references.iter().find(|(other, _)| *other == id).map_or(HeldBy::Unknown, |(_, by)| *by)
    }
}

/// Visits the objects that retain at least `least` bytes, those that they immediately dominate, and the elements of large
/// collections. Visits only objects at or below `tops`, if given.
pub(super) fn walk(
    builder: &mut PlaceBuilder<'_>,
    references: &References<'_, '_>,
    tops: Option<&[TreePosition]>,
    least: u64,
) {
    let graph = builder.graph;
    let tree = &graph.tree;
    let mut walk = Walk { builder, references, least, held: Vec::new(), levels: Vec::new() };
    match tops {
        None => tree.top().for_each(|top| walk.below(tree, top)),
        Some(tops) => tops.iter().for_each(|top| walk.below(tree, *top)),
    }
}

/// State of a walk.
struct Walk<'w, 'b, 'o, 'a, 't> {
    builder: &'w mut PlaceBuilder<'b>,
    references: &'w References<'o, 'a>,
    least: u64,
    /// References of the objects on the current path.
    held: Vec<(ObjectId, HeldBy)>,
    levels: Vec<Level<'t>>,
}

impl<'t> Walk<'_, '_, '_, '_, 't> {
    /// Visits an object at the top, and the objects below it.
    fn below(&mut self, tree: &'t Tree, top: TreePosition) {
        self.object(tree, top);
        while let Some(level) = self.levels.last_mut() {
            match level.children.next() {
                Some(position) => self.object(tree, position),
                None => {
                    self.held.truncate(level.references);
                    self.levels.pop();
                }
            }
        }
    }

    fn object(&mut self, tree: &'t Tree, position: TreePosition) {
        let Some(object) = tree.object_at(position) else { return };
        let graph = self.builder.graph;
        let first = self.levels.last().map_or(0, |level| level.references);
        let by = self.references.find(self.held.get(first..).unwrap_or_default(), object);
        let class = graph.objects.class(object).map_or(NONE, |class| class.0);
        let children = tree.children(position);
        let is_leaf = children.clone().next().is_none();
        let (least, retained) = (self.least, tree.retained_bytes(position));
        let mut is_looked_into = false;
        // Positions have 32 bits.
        let depth = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        self.builder.object(depth, LookedUp { object: object.0, class, by }, |role| {
            is_looked_into = !is_leaf && (retained >= least || role == Role::Part);
            if is_looked_into { tree.shallow_bytes(position) } else { retained }
        });
        if is_looked_into {
            if retained >= least {
                self.builder.keep(position);
            }
            self.levels.push(Level { children, references: self.held.len() });
            self.references.of(object, &mut self.held);
        }
    }
}
