//! Fields by which dominators refer to the objects that they dominate.
//!
//! The dominator tree contains which object dominates another, but not by which field it refers to it: that is in the
//! dominator's record in the dump. Reading that record for each dominated object would take one search each. Therefore the
//! records of all objects that dominate others are read once, in file order, and for each of their references it is checked
//! whether the holder immediately dominates the target. The first such field of a record counts.
//!
//! Arrays are not read, since indices mean nothing across dumps. Neither are instances of classes with a single reference
//! field: only that field can hold the objects that they dominate.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_base::parallel;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::fields;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::objects::reader::{FieldSlot, ObjectReader, ObjectRecord};
use hprof_index::storage::prefetch::prefetch;
use hprof_index::storage::scratch::{Array, atomic_u64};
use hprof_model::dominators::preorder::Preorder;
use hprof_values::{BasicType, ObjectId};

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of fields of a class that are examined, including inherited ones.
const MAX_FIELDS: usize = 1 << 10;
/// Maximum total number of fields of all classes. In a chain of a hundred thousand superclasses, the last classes inherit the
/// fields of all others.
const MAX_ALL_FIELDS: usize = 1 << 20;
/// Prefetch distance, in cells.
const AHEAD: usize = 16;

/// Flag of an object that dominates others.
const HAS_CHILDREN: u64 = 1 << 31;
/// Code for a thread's stack in place of a field.
const BY_STACK: u32 = (1 << 31) - 1;

/// The reference by which a dominator holds an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum HeldBy {
    /// Unknown: the dominator does not refer to the object or is an array, or only roots dominate the object.
    Unknown,
    /// Index of the reference field. For an instance, it counts all reference fields in the order of the record
    /// ([`ReferenceFields`]); for a class object, all static fields.
    Field(u32),
    /// A thread holds it on its stack.
    Stack,
}

/// Reference fields of the instances of each class.
#[derive(Debug)]
pub(super) struct ReferenceFields<'a> {
    /// By class number: start of its fields in `all`, and their number.
    of_class: Vec<(u32, u32)>,
    all: Vec<FieldSlot<'a>>,
}

impl<'a> ReferenceFields<'a> {
    pub(super) fn new(summary: &'a Summary) -> Self {
        let mut slots = Self { of_class: Vec::with_capacity(summary.classes().len()), all: Vec::new() };
        for (number, class) in summary.numbered_classes() {
            let start = slots.all.len();
            if class.objects.get() > 0 && start < MAX_ALL_FIELDS {
                let fields = fields::slots(summary, number).take(MAX_FIELDS);
                slots.all.extend(fields.filter(|slot| slot.kind == BasicType::Object));
            }
            let (start, count) = (u32::try_from(start), u32::try_from(slots.all.len() - start));
            slots.of_class.push((start.unwrap_or(u32::MAX), count.unwrap_or(0)));
        }
        slots
    }

    /// Returns the fields of the instances of a class.
    #[inline]
    pub(super) fn slots_of(&self, class: ClassNumber) -> &[FieldSlot<'a>] {
        let (start, count) = self.of_class.get(class.0 as usize).copied().unwrap_or_default();
        let start = start as usize;
        self.all.get(start..start.saturating_add(count as usize)).unwrap_or_default()
    }
}

/// References that hold the objects of a dump, from their immediate dominators.
pub(super) struct HoldingReferences {
    /// By object: the upper half is the object index of the dominator plus 1. The lower half has a flag for dominating others,
    /// and the code of the holding reference: 0, the index of the field plus 1, or [`BY_STACK`].
    cells: Array<u64>,
}

impl HoldingReferences {
    /// Examines all references between dominators and the objects that they dominate.
    ///
    /// # Errors
    /// If neither memory nor disk has space for a number per object.
    pub(super) fn new(objects: &ObjectReader<'_>, slots: &ReferenceFields<'_>) -> io::Result<Self> {
        let graph = objects.graph;
        let mut holders = Self { cells: graph.room().zeroed_array::<u64>(graph.objects.len() as usize)? };
        let cells = Cells(atomic_u64(&mut holders.cells));
        let chunks = TreePosition::chunks(graph.tree.positions(), CHUNK);
        parallel::for_each(&chunks, |chunk| cells.take_dominators(graph, chunk));
        let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
        parallel::for_each(&chunks, |chunk| cells.take_fields(objects, slots, chunk));
        cells.take_statics(objects);
        for root in graph.roots.rows.iter().filter(|root| root.is_local) {
            if let Some(thread) = root.thread {
                cells.hold(thread, root.object, BY_STACK);
            }
        }
        Ok(holders)
    }

    /// Returns the reference by which an object is held by its dominator.
    #[inline]
    pub(super) fn held_by(&self, object: ObjectIndex) -> HeldBy {
        match self.cells.get(object.at()).map_or(0, |cell| low(*cell)) {
            0 => HeldBy::Unknown,
            BY_STACK => HeldBy::Stack,
            number => HeldBy::Field(number - 1),
        }
    }
}

/// Returns the lower half of a cell: the encoded reference.
#[inline]
fn low(cell: u64) -> u32 {
    (cell & (HAS_CHILDREN - 1)) as u32
}

/// Cells while all threads fill them. Only the thread that examines the dominator changes a cell, so the result does not depend
/// on the order.
struct Cells<'a>(&'a [AtomicU64]);

impl Cells<'_> {
    fn put(&self, object: ObjectIndex, bits: u64) {
        if let Some(cell) = self.0.get(object.at()) {
            cell.fetch_or(bits, Ordering::Relaxed);
        }
    }

    fn get(&self, object: ObjectIndex) -> u64 {
        self.0.get(object.at()).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Records the reference that holds an object, if `holder` is the object's dominator and no reference was recorded before.
    fn hold(&self, holder: ObjectIndex, object: ObjectIndex, by: u32) {
        let cell = self.get(object);
        if cell >> 32 == u64::from(holder.0) + 1 && low(cell) == 0 {
            self.put(object, u64::from(by));
        }
    }

    /// Records the dominators of the objects at some positions.
    fn take_dominators(&self, graph: &ObjectGraph, chunk: Range<TreePosition>) {
        let tree = &graph.tree;
        // Dominators of the current position that are in the chunk: depth and object.
        let mut open: Vec<(u32, ObjectIndex)> = Vec::new();
        // The dominator outside of the chunk that was looked up last: siblings share it.
        let mut before: Option<(u32, Option<ObjectIndex>)> = None;
        let objects = tree.objects_at(chunk.clone());
        for ((position, depth), object) in Preorder::new(tree, chunk).zip(objects) {
            while open.pop_if(|(other, _)| *other >= depth).is_some() {}
            let above = depth.checked_sub(1);
            let dominator = match (above, open.last()) {
                (None, _) => None,
                (Some(above), Some((other, dominator))) if *other == above => Some(*dominator),
                (Some(above), _) => match before {
                    Some((depth, dominator)) if depth == above => dominator,
                    _ => {
                        let found = tree.dominator(position).and_then(|position| tree.object_at(position));
                        before = Some((above, found));
                        found
                    }
                },
            };
            if let Some(dominator) = dominator {
                self.put(object, (u64::from(dominator.0) + 1) << 32);
                self.mark(dominator);
            }
            open.push((depth, object));
        }
    }

    fn mark(&self, dominator: ObjectIndex) {
        if self.get(dominator) & HAS_CHILDREN == 0 {
            self.put(dominator, HAS_CHILDREN);
        }
    }

    /// Examines the fields in the records of a chunk of objects.
    fn take_fields(
        &self,
        objects: &ObjectReader<'_>,
        slots: &ReferenceFields<'_>,
        chunk: Range<ObjectIndex>,
    ) {
        let (graph, id_size) = (objects.graph, objects.summary.id_size());
        let mut ids: Vec<ObjectId> = Vec::new();
        let mut by: Vec<(ObjectIndex, u32)> = Vec::new();
        for block in chunk.start.0 / BLOCK..chunk.end.0.div_ceil(BLOCK) {
            let first = ObjectIndex(block.saturating_mul(BLOCK));
            let range = first..ObjectIndex(first.0.saturating_add(BLOCK).min(chunk.end.0));
            let mut wanted = 0;
            for (bit, (object, class)) in
                ObjectIndex::range(range.clone()).zip(graph.objects.classes(range)).enumerate()
            {
                let is_read = class.is_some_and(|class| slots.slots_of(class).len() > 1);
                wanted |= u64::from(is_read && self.get(object) & HAS_CHILDREN != 0) << bit;
            }
            if wanted == 0 {
                continue;
            }
            objects.records_of_block(first, wanted, |object, record| {
                let (Some(ObjectRecord::Instance(record)), Some(class)) =
                    (record, graph.objects.class(object))
                else {
                    return;
                };
                for (number, slot) in (1u32..).zip(slots.slots_of(class)) {
                    let value = slot.place.value(record.fields, id_size);
                    if let Some(id) = value.and_then(|value| value.reference()) {
                        ids.push(id);
                        by.push((object, number));
                    }
                }
            });
        }
        let mut targets: Vec<Option<ObjectIndex>> = Vec::with_capacity(ids.len());
        graph.objects.addresses.finder().find(&ids, |target| targets.push(target));
        for (at, (target, (holder, number))) in targets.iter().zip(by).enumerate() {
            if let Some(Some(ahead)) = targets.get(at + AHEAD) {
                prefetch(self.0, ahead.at());
            }
            if let Some(target) = target {
                self.hold(holder, *target, number);
            }
        }
    }

    /// Examines the static fields of all classes.
    fn take_statics(&self, objects: &ObjectReader<'_>) {
        let (summary, graph) = (objects.summary, objects.graph);
        for (number, class) in summary.numbered_classes() {
            let Some(class_object) = graph.class_object(number) else { continue };
            for (at, (_, kind, value)) in (1u32..).zip(summary.statics(class)) {
                if kind == BasicType::Object
                    && let Some(target) = graph.objects.addresses.index_of(ObjectId(value))
                {
                    self.hold(class_object, target, at);
                }
            }
        }
    }
}
