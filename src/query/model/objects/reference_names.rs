//! Names of references: the field, slot or static field, read from the record of the object that holds them.
//!
//! The graph has the information that one object references another; only the dump has the fields. Several fields may hold the
//! same object.

use rustc_hash::{FxHashMap, FxHashSet};

use std::fmt;
use std::sync::OnceLock;

use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::fields;
use hprof_index::objects::reader::{ClassObject, Instance, ObjectArray, ObjectVisitor};
use hprof_values::{BasicType, ObjectId, be_id};

use super::excluded_fields::ExcludedFields;
use super::reference_kind::ReferenceKind;
use super::strength::{Exclusions, Strength, Strengths, is_referent};
use crate::objects::root_index::RootIndex;

/// Maximum number of kinds kept for one reference; others are only counted. Two fields at once are rare, slots of an
/// array are not.
const KEPT: usize = 3;

/// Reference by which one object holds another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding<'a> {
    /// References in the order of the record; not all of them if there are many.
    pub meanings: Vec<ReferenceKind<'a>>,
    /// Number of references that are not in `meanings`.
    pub more: u64,
    /// `true` if there is a reference other than the referent of a Reference.
    beyond_referent: bool,
}

impl<'a> Holding<'a> {
    fn add(&mut self, meaning: ReferenceKind<'a>) {
        self.beyond_referent |= !is_referent(&meaning);
        if self.meanings.len() < KEPT {
            self.meanings.push(meaning);
        } else {
            self.more += 1;
        }
    }

    /// Returns whether the first reference is a static field.
    pub fn is_static(&self) -> bool {
        matches!(self.meanings.first(), Some(ReferenceKind::Static(_)))
    }

    /// Returns whether the only reference is the referent of a Reference.
    fn is_referent_only(&self) -> bool {
        !self.beyond_referent && !self.meanings.is_empty()
    }
}

/// Writes `first, last`, or `[0], [5], [7], 21 more`; nothing if the record does not contain the reference.
impl fmt::Display for Holding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, meaning) in self.meanings.iter().enumerate() {
            write!(f, "{}{meaning}", if at > 0 { ", " } else { "" })?;
        }
        if self.more > 0 { write!(f, ", {} more", self.more) } else { Ok(()) }
    }
}

/// Reader of the references of a heap.
#[derive(Debug)]
pub struct Edges<'a> {
    /// The dump.
    pub dump: Dump<'a>,
    /// The GC roots.
    pub roots: RootIndex<'a>,
    /// Classes that hold their referents weakly.
    pub strengths: Strengths,
    /// Fields that are not followed.
    excluded_fields: ExcludedFields,
    /// By class number: its reference fields, determined when the first instance is read.
    fields: Vec<OnceLock<Box<[ReferenceField<'a>]>>>,
}

/// A reference field: offset in an instance's bytes, name, and name of the class that declares it.
type ReferenceField<'a> = (u32, &'a str, &'a str);

/// Maximum size of instances whose fields are cached. Fields of larger ones, which only hostile dumps have, are
/// determined each time: all classes of a long chain would store those of all above them.
const MAX_KEPT_BYTES: u64 = 1 << 12;

impl<'a> Edges<'a> {
    /// Creates a reader of references.
    pub fn new(dump: &Dump<'a>) -> Self {
        let (roots, strengths) = (RootIndex::new(dump.graph), Strengths::new(dump.summary));
        let fields = dump.summary.classes().iter().map(|_| OnceLock::new()).collect();
        Self { dump: *dump, roots, strengths, excluded_fields: ExcludedFields::default(), fields }
    }

    /// Excludes references by these fields from those that are followed.
    pub fn exclude_fields(&mut self, fields: ExcludedFields) {
        self.excluded_fields = fields;
    }

    /// Returns whether references by some fields are not followed.
    pub fn excludes_fields(&self) -> bool {
        !self.excluded_fields.is_empty()
    }

    /// Returns the reference fields of the instances of a class, in the order of the record.
    fn reference_fields(&self, class: ClassNumber) -> Option<&[ReferenceField<'a>]> {
        if self.dump.summary.class_table().bytes(class) > MAX_KEPT_BYTES {
            return None;
        }
        let make = || {
            let slots = fields::slots(self.dump.summary, class).filter(|slot| slot.kind == BasicType::Object);
            let owner =
                |class| self.dump.summary.class(class).map_or("", |row| self.dump.summary.class_name(row));
            slots.map(|slot| (slot.place.start(), slot.name, owner(slot.class))).collect()
        };
        Some(self.fields.get(class.0 as usize)?.get_or_init(make))
    }

    /// Returns the class that an object is the class object of.
    pub fn class_of_class_object(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.dump.graph.class_of_class_object(object)
    }

    /// Returns the class that an object is the class object of, if objects of that class are in the dump.
    pub fn class_with_objects(&self, object: ObjectIndex) -> Option<ClassNumber> {
        let class = self.class_of_class_object(object)?;
        let objects = self.dump.summary.class(class)?.objects.get();
        (objects > 0 || self.dump.summary.java_lang_class() == Some(class)).then_some(class)
    }

    /// Calls `visit` with each non-null reference of an object: its kind, and the object ID.
    pub fn for_each_reference(&self, from: ObjectIndex, mut visit: impl FnMut(ReferenceKind<'a>, ObjectId)) {
        let mut reader =
            ReferenceReader { edges: self, with_locals: true, visit: |_, kind, id| visit(kind, id) };
        self.dump.objects.visit_object(from, &mut reader);
        if let Some(id) = self.class_id_of(from) {
            visit(ReferenceKind::Class, id);
        }
    }

    /// Calls `visit` with each object on the stack of a thread: the kind of the reference, and the object ID.
    pub fn for_each_local(&self, thread: ObjectIndex, mut visit: impl FnMut(ReferenceKind<'a>, ObjectId)) {
        for root in self.roots.locals_of(thread) {
            if let Some(id) =
                self.dump.graph.objects.addresses.id_of(root.object).and_then(ObjectId::non_null)
            {
                visit(ReferenceKind::Local { kind: root.kind, frame: root.frame }, id);
            }
        }
    }

    /// Returns the object ID of the class object of an object's class.
    pub fn class_id_of(&self, object: ObjectIndex) -> Option<ObjectId> {
        self.dump.graph.objects.addresses.id_of(self.dump.graph.class_object_of(object)?)
    }

    /// Calls `visit` with each non-null reference of the objects of a block whose bits are set, except references to their
    /// class objects. Bit 0 is `first`, the first object of the block. Faster than reading the objects one by one.
    pub fn for_each_in_block(
        &self,
        first: ObjectIndex,
        wanted: u64,
        visit: impl FnMut(ObjectIndex, ReferenceKind<'a>, ObjectId),
    ) {
        let mut reader = ReferenceReader { edges: self, with_locals: true, visit };
        self.dump.objects.visit_block(first, wanted, &mut reader);
    }

    /// Returns the references by which one object holds others, reading its record once. `targets` must ascend; results
    /// are in their order.
    pub fn holdings(&self, from: ObjectIndex, targets: &[ObjectIndex]) -> Vec<Holding<'a>> {
        // IDs are in ascending order of indices.
        let id = |target: &ObjectIndex| self.dump.graph.objects.addresses.id_of(*target).unwrap_or_default();
        let ids: Vec<ObjectId> = targets.iter().map(id).collect();
        let mut holdings = vec![Holding::default(); ids.len()];
        self.for_each_reference(from, |meaning, id| {
            let holding = ids.binary_search(&id).ok().and_then(|at| holdings.get_mut(at));
            if let Some(holding) = holding {
                holding.add(meaning);
            }
        });
        holdings
    }

    /// Returns the reference by which one object holds another.
    pub fn holding(&self, from: ObjectIndex, to: ObjectIndex) -> Holding<'a> {
        self.holdings(from, &[to]).pop().unwrap_or_default()
    }

    /// Returns the kinds of all references from one object to another, up to `most`.
    pub fn meanings(&self, from: ObjectIndex, to: ObjectIndex, most: usize) -> Vec<ReferenceKind<'a>> {
        let to = self.dump.graph.objects.addresses.id_of(to);
        let mut meanings = Vec::new();
        self.for_each_reference(from, |meaning, id| {
            if Some(id) == to && meanings.len() < most {
                meanings.push(meaning);
            }
        });
        meanings
    }

    /// Returns the strength of a reference from `from`.
    pub fn strength(&self, from: ObjectIndex, holding: &Holding<'a>) -> Strength {
        if holding.is_referent_only() {
            self.strengths.of_object(self.dump.graph, from)
        } else {
            Strength::Strong
        }
    }

    /// Returns whether any reference from `from` to `to` is not excluded.
    #[inline]
    pub fn is_followed(&self, from: ObjectIndex, to: ObjectIndex, excluded: Exclusions) -> bool {
        if self.excludes_fields()
            && let Some(class) = self.class_with_excluded_fields(from)
        {
            return self.is_followed_beyond_fields(from, to, excluded, class);
        }
        excluded.follows_all()
            || !excluded.contains(self.strengths.of_object(self.dump.graph, from))
            || !self.holding(from, to).is_referent_only()
    }

    /// Returns the class of an object, or the class that it is the class object of, if some of its fields are excluded.
    fn class_with_excluded_fields(&self, from: ObjectIndex) -> Option<ClassNumber> {
        // Class objects have no instance fields in dumps.
        if let Some(class) = self.class_of_class_object(from) {
            return Some(class).filter(|class| self.excluded_fields.has_statics(*class));
        }
        let class = self.dump.graph.objects.class(from);
        class.filter(|class| self.excluded_fields.has_instance_fields(*class))
    }

    /// Returns whether any reference is excluded neither by its strength nor by its field.
    #[cold]
    fn is_followed_beyond_fields(
        &self,
        from: ObjectIndex,
        to: ObjectIndex,
        excluded: Exclusions,
        class: ClassNumber,
    ) -> bool {
        let is_weak = excluded.contains(self.strengths.of_object(self.dump.graph, from));
        let to = self.dump.graph.objects.addresses.id_of(to);
        let mut is_followed = false;
        self.for_each_reference(from, |kind, id| {
            // Locals are roots, not references.
            let is_excluded = matches!(kind, ReferenceKind::Local { .. })
                || is_weak && is_referent(&kind)
                || self.excluded_fields.contains(class, &kind);
            is_followed |= Some(id) == to && !is_excluded;
        });
        is_followed
    }

    /// Returns whether one object holds another only because it is a thread with the other on its stack.
    pub fn is_stack_only(&self, from: ObjectIndex, to: ObjectIndex) -> bool {
        self.roots.is_local_of(from, to) && !self.beyond_stack(from).contains(&to)
    }

    /// Returns the objects that a thread references other than by its stack; empty for objects without locals.
    pub fn beyond_stack(&self, thread: ObjectIndex) -> FxHashSet<ObjectIndex> {
        let mut beyond: FxHashSet<ObjectIndex> = FxHashSet::default();
        if self.roots.locals_of(thread).next().is_some() {
            let addresses = &self.dump.graph.objects.addresses;
            let visit =
                |_: ObjectIndex, _: ReferenceKind<'a>, id: ObjectId| beyond.extend(addresses.index_of(id));
            let mut reader = ReferenceReader { edges: self, with_locals: false, visit };
            self.dump.objects.visit_object(thread, &mut reader);
            beyond.extend(self.dump.graph.class_object_of(thread));
        }
        beyond
    }

    /// Returns the objects that an object holds only by excluded references; `is_weak` if its referent is excluded.
    pub fn excluded_targets(
        &self,
        from: ObjectIndex,
        is_weak: bool,
        excluded: Exclusions,
    ) -> FxHashSet<ObjectIndex> {
        let class = if self.excludes_fields() { self.class_with_excluded_fields(from) } else { None };
        let Some(class) = class else {
            return is_weak.then(|| self.excluded_referent(from, excluded)).flatten().into_iter().collect();
        };
        let mut targets: FxHashMap<ObjectId, bool> = FxHashMap::default();
        self.for_each_reference(from, |kind, id| {
            if !matches!(kind, ReferenceKind::Local { .. }) {
                let is_excluded =
                    is_weak && is_referent(&kind) || self.excluded_fields.contains(class, &kind);
                *targets.entry(id).or_insert(true) &= is_excluded;
            }
        });
        let only_excluded = targets.into_iter().filter(|(_, is_excluded)| *is_excluded);
        only_excluded.filter_map(|(id, _)| self.dump.graph.objects.addresses.index_of(id)).collect()
    }

    /// Returns the object that a Reference holds only as its referent, if such references are excluded.
    fn excluded_referent(&self, from: ObjectIndex, excluded: Exclusions) -> Option<ObjectIndex> {
        if excluded.follows_all() || !excluded.contains(self.strengths.of_object(self.dump.graph, from)) {
            return None;
        }
        let mut referent = None;
        self.for_each_reference(from, |meaning, id| {
            if is_referent(&meaning) {
                referent = Some(id);
            }
        });
        let referent = referent.and_then(|id| self.dump.graph.objects.addresses.index_of(id))?;
        self.holding(from, referent).is_referent_only().then_some(referent)
    }
}

/// Visitor that finds the references in records.
struct ReferenceReader<'e, 'a, F> {
    edges: &'e Edges<'a>,
    /// `true` to find the objects on the stacks of threads too.
    with_locals: bool,
    visit: F,
}

impl<'a, F: FnMut(ObjectIndex, ReferenceKind<'a>, ObjectId)> ReferenceReader<'_, 'a, F> {
    fn take(&mut self, from: ObjectIndex, meaning: ReferenceKind<'a>, id: ObjectId) {
        if !id.is_null() {
            (self.visit)(from, meaning, id);
        }
    }
}

impl<'a, F: FnMut(ObjectIndex, ReferenceKind<'a>, ObjectId)> ObjectVisitor<'a>
    for ReferenceReader<'_, 'a, F>
{
    fn instance(&mut self, from: ObjectIndex, record: Instance<'a>) {
        let summary = self.edges.dump.summary;
        let id_size = summary.id_size();
        let edges = self.edges;
        let mut class = edges.dump.graph.objects.class(from);
        if let Some(fields) = class.and_then(|class| edges.reference_fields(class)) {
            for (at, name, class) in fields {
                let Some(id) = be_id(record.fields, *at as usize, id_size) else { return };
                self.take(from, ReferenceKind::Field { name, class }, ObjectId(id));
            }
            return;
        }
        let mut at = 0;
        while let Some((number, row)) = class.and_then(|class| Some((class, summary.class(class)?))) {
            for (name, kind) in summary.fields(row) {
                if at >= record.fields.len() {
                    return;
                }
                if kind == BasicType::Object {
                    let id = be_id(record.fields, at, id_size).map(ObjectId).unwrap_or_default();
                    self.take(from, ReferenceKind::Field { name, class: summary.class_name(row) }, id);
                }
                at += kind.dump_bytes(id_size);
            }
            class = summary.class_table().superclass_with_fields(number);
        }
    }

    fn object_array(&mut self, from: ObjectIndex, record: ObjectArray<'a>) {
        for (index, id) in (0u32..).zip(self.edges.dump.objects.elements(&record)) {
            self.take(from, ReferenceKind::Slot(index), id);
        }
    }

    fn class(&mut self, from: ObjectIndex, record: ClassObject<'a>) {
        self.take(from, ReferenceKind::Super, record.superclass());
        self.take(from, ReferenceKind::Loader, record.loader());
        let summary = self.edges.dump.summary;
        let class = self.edges.class_of_class_object(from).and_then(|class| summary.class(class));
        let Some(class) = class else { return };
        for (name, kind, value) in summary.statics(class) {
            if kind == BasicType::Object {
                self.take(from, ReferenceKind::Static(name), ObjectId(value));
            }
        }
    }

    fn end(&mut self, from: ObjectIndex) {
        if self.with_locals && self.edges.roots.contains(from) {
            self.edges.for_each_local(from, |kind, id| (self.visit)(from, kind, id));
        }
    }
}
