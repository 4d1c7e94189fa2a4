//! Places of given objects and of the objects that they dominate: a walk over parts of the dominator tree.
//!
//! The walk reads the records of the objects that it visits, one at a time.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::{Children, Tree};
use hprof_index::model::tables::NONE;
use hprof_index::objects::fields::FieldPlace;
use hprof_index::objects::reader::{ObjectReader, ObjectRecord};
use hprof_values::{BasicType, ObjectId};

use super::held_by::{HeldBy, ReferenceFields};
use super::nodes::{PrefetchedObject, VisitedBytes};
use super::tree::PlaceBuilder;

/// References of single objects to the objects that they dominate.
pub(super) struct References<'o, 'a> {
    objects: &'o ObjectReader<'a>,
    slots: &'o ReferenceFields<'a>,
    /// By thread: objects that the thread's stack references.
    locals: FxHashMap<u32, Vec<ObjectId>>,
}

/// An object whose children the walk visits.
struct WalkLevel<'t> {
    children: Children<'t>,
    /// Index of the object's first reference among the references of all levels.
    references: usize,
}

impl<'o, 'a> References<'o, 'a> {
    pub(super) fn new(objects: &'o ObjectReader<'a>, slots: &'o ReferenceFields<'a>) -> Self {
        let mut locals: FxHashMap<u32, Vec<ObjectId>> = FxHashMap::default();
        let graph = objects.graph;
        for root in graph.roots.rows.iter().filter(|root| root.is_local) {
            if let (Some(thread), Some(id)) = (root.thread, graph.objects.addresses.id_of(root.object)) {
                locals.entry(thread.0).or_default().push(id);
            }
        }
        Self { objects, slots, locals }
    }

    /// Appends the references of an object, in the order in which [`super::held_by::HoldingReferences`] processes
    /// them.
    pub(super) fn append_references(&self, holder: ObjectIndex, to: &mut Vec<(ObjectId, HeldBy)>) {
        let first = to.len();
        let (graph, summary) = (self.objects.graph, self.objects.summary);
        if let Some(class) = graph.class_of_class_object(holder) {
            let statics = summary.class(class).into_iter().flat_map(|row| summary.statics(row));
            let statics = (0u32..).zip(statics).filter(|(_, (_, kind, _))| *kind == BasicType::Object);
            to.extend(statics.map(|(at, (.., id))| (ObjectId(id), HeldBy::Field(at))));
        } else if let Some(class) = graph.objects.class(holder)
            && let slots @ [_, _, ..] = self.slots.slots_of(class)
            && let Some(ObjectRecord::Instance(record)) = self.objects.record(holder)
        {
            let id = |place: FieldPlace| place.value(record.fields, summary.id_size())?.reference();
            let fields =
                (0u32..).zip(slots).filter_map(|(at, slot)| Some((id(slot.place)?, HeldBy::Field(at))));
            to.extend(fields);
        }
        if let Some(locals) = self.locals.get(&holder.0) {
            to.extend(locals.iter().map(|id| (*id, HeldBy::Stack)));
        }
        // Stable: of several references to an object the first counts.
        if let Some(own) = to.get_mut(first..) {
            own.sort_by_key(|(id, _)| *id);
        }
    }

    /// Returns the reference by which an object's dominator holds the object.
    pub(super) fn held_by(&self, dominator: ObjectIndex, object: ObjectIndex) -> HeldBy {
        let mut references = Vec::new();
        self.append_references(dominator, &mut references);
        self.find(&references, object)
    }

    /// Returns the first reference to an object in `references` of its dominator, which are in the order of IDs.
    pub(super) fn find(&self, references: &[(ObjectId, HeldBy)], object: ObjectIndex) -> HeldBy {
        if references.is_empty() {
            return HeldBy::Unknown;
        }
        let Some(id) = self.objects.graph.objects.addresses.id_of(object) else { return HeldBy::Unknown };
        let at = references.partition_point(|(other, _)| *other < id);
        references.get(at).filter(|(other, _)| *other == id).map_or(HeldBy::Unknown, |(_, by)| *by)
    }
}

/// Visits the objects at these positions and all objects that they dominate.
pub(super) fn walk(builder: &mut PlaceBuilder<'_>, references: &References<'_, '_>, tops: &[TreePosition]) {
    let graph = builder.graph;
    let mut walk = Walk { builder, references, held: Vec::new(), levels: Vec::new() };
    tops.iter().for_each(|top| walk.visit_subtree(&graph.tree, *top));
}

/// State of a walk over parts of the dominator tree.
struct Walk<'w, 'b, 'o, 'a, 't> {
    builder: &'w mut PlaceBuilder<'b>,
    references: &'w References<'o, 'a>,
    /// References of the objects on the current path; the references of each object are in the order of IDs.
    held: Vec<(ObjectId, HeldBy)>,
    levels: Vec<WalkLevel<'t>>,
}

impl<'t> Walk<'_, '_, '_, '_, 't> {
    /// Visits a top object and the objects below it.
    fn visit_subtree(&mut self, tree: &'t Tree, top: TreePosition) {
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
        // Positions have 32 bits.
        let depth = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let found = PrefetchedObject { object: object.0, class, by };
        self.builder.object(depth, found, VisitedBytes::from_shallow(tree.shallow_bytes(position)));
        let children = tree.children(position);
        if children.clone().next().is_some() {
            self.levels.push(WalkLevel { children, references: self.held.len() });
            self.references.append_references(object, &mut self.held);
        }
    }
}
