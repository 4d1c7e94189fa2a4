//! Places of some objects and of those that they dominate: a walk over parts of the dominator tree.
//!
//! The walk reads the records of the objects into which it descends, one at a time. It need not descend into objects that
//! retain little; of a collection that retains much, it visits all elements, however small they are.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::{Children, Tree};
use hprof_index::model::tables::NONE;
use hprof_index::objects::fields::FieldPlace;
use hprof_index::objects::reader::{ObjectReader, Record};
use hprof_parser::{BasicType, ObjectId};

use super::held_by::{HeldBy, Slots};
use super::traits::Role;
use super::tree::{LookedUp, PlaceBuilder, VisitedBytes};

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
        let first = to.len();
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
        // Stable: of several references to an object the first counts.
        if let Some(own) = to.get_mut(first..) {
            own.sort_by_key(|(id, _)| *id);
        }
    }

    /// Returns the reference by which its dominator holds an object.
    pub(super) fn held_by(&self, dominator: ObjectIndex, object: ObjectIndex) -> HeldBy {
        let mut references = Vec::new();
        self.of(dominator, &mut references);
        self.find(&references, object)
    }

    /// Returns the first reference to an object among those of its dominator, which are in the order of IDs.
    fn find(&self, references: &[(ObjectId, HeldBy)], object: ObjectIndex) -> HeldBy {
        let Some(id) = self.objects.graph.objects.addresses.id_of(object) else { return HeldBy::Unknown };
        let at = references.partition_point(|(other, _)| *other < id);
        references.get(at).filter(|(other, _)| *other == id).map_or(HeldBy::Unknown, |(_, by)| *by)
    }
}

/// Maximum number of objects of a place that are kept, and of all.
const MAX_MEMBERS: usize = 1 << 16;
const MAX_KEPT: usize = 1 << 20;
/// Maximum number of small parts of collections into which a walk descends.
const MAX_PARTS: usize = 1 << 22;

/// Visits some objects and those below them. Descends into those that retain at least `least` bytes, and into the parts of
/// collections. Returns, by place, those of the first that no other one of the place dominates, and objects at the top and
/// those that have a name together.
pub(super) fn walk(
    builder: &mut PlaceBuilder<'_>,
    references: &References<'_, '_>,
    tops: impl Iterator<Item = TreePosition>,
    least: u64,
) -> Vec<Vec<TreePosition>> {
    let graph = builder.graph;
    let mut walk = Walk {
        builder,
        references,
        least,
        parts: MAX_PARTS,
        held: Vec::new(),
        levels: Vec::new(),
        members: Vec::new(),
        kept: 0,
    };
    tops.for_each(|top| walk.below(&graph.tree, top));
    walk.members
}

/// State of a walk.
struct Walk<'w, 'b, 'o, 'a, 't> {
    builder: &'w mut PlaceBuilder<'b>,
    references: &'w References<'o, 'a>,
    least: u64,
    /// Number of small parts that can still be followed.
    parts: usize,
    /// References of the objects on the current path, those of each object in the order of IDs.
    held: Vec<(ObjectId, HeldBy)>,
    levels: Vec<Level<'t>>,
    members: Vec<Vec<TreePosition>>,
    /// Number of all members.
    kept: usize,
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
        let (shallow, retained) = (tree.shallow_bytes(position), tree.retained_bytes(position));
        let is_large = retained >= self.least;
        let mut is_followed = false;
        let parts = &mut self.parts;
        let bytes = |role| {
            let is_part = !is_large && role == Role::Part && *parts > 0;
            *parts -= usize::from(is_part && !is_leaf);
            is_followed = is_large || is_part;
            VisitedBytes { own: shallow, all: if is_followed { shallow } else { retained } }
        };
        // Positions have 32 bits.
        let depth = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let outermost = self.builder.object(depth, LookedUp { object: object.0, class, by }, bytes);
        if let Some(place) = outermost.filter(|_| self.least > 0)
            && (is_large || self.levels.is_empty() || self.builder.is_of_many(place))
        {
            self.keep(place, position);
        }
        if is_followed && !is_leaf {
            self.levels.push(Level { children, references: self.held.len() });
            self.references.of(object, &mut self.held);
        }
    }

    fn keep(&mut self, place: u32, position: TreePosition) {
        let at = place as usize;
        if self.members.len() <= at {
            self.members.resize_with(at + 1, Vec::new);
        }
        let members = self.members.get_mut(at).filter(|members| members.len() < MAX_MEMBERS);
        if let Some(members) = members.filter(|_| self.kept < MAX_KEPT) {
            members.push(position);
            self.kept += 1;
        }
    }
}
