//! Pass over the instances: their use of arrays, boxes, and fields with equal values.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WasteSearch;
use super::boxes::{BoxClass, cached_boxes};
use super::findings::{FindingSink, NO_OBJECT, Parts, Saving};
use super::plan::{BufferClass, Plan, Plans};
use super::votes::Votes;
use hprof_base::parallel;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::scratch::Array;
use hprof_model::objects::collections::Collections;
use hprof_model::objects::collections::usage::{Count, Usage};
use hprof_model::objects::reader::{Bits, Instance, ObjectVisitor};
use hprof_values::ObjectId;

/// An instance that uses an array, and the used part.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct ArrayHolder {
    /// Object index of the array.
    pub(super) array: u32,
    /// Object index of the instance.
    pub(super) holder: u32,
    /// Use of the array, depending on the class of the instance: the part of a String, the number of elements, or the ends of a
    /// ring.
    pub(super) says: [u32; 2],
}

/// A collection with at most one element, or whose size is known only after examining it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(super) struct LooseCollection {
    pub(super) object: u32,
    /// Number of elements, or [`UNKNOWN`].
    pub(super) elements: u32,
}

/// Number of elements that is unknown.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A wrapper, and the collection in it.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Wrapper {
    pub(super) object: u32,
    pub(super) inner: u32,
}

/// Results of the pass over instances.
pub(super) struct InstanceFindings {
    /// Uses of arrays by chunk, ascending by array within each chunk.
    pub(super) held: Vec<Array<ArrayHolder>>,
    /// Collections of few elements.
    pub(super) loose: Vec<Array<LooseCollection>>,
    /// Wrappers of collections, and the collection in each.
    pub(super) wrappers: Vec<Array<Wrapper>>,
    /// Boxes, ascending.
    pub(super) boxes: Vec<(Array<Saving>, Parts)>,
    pub(super) votes: Votes,
}

/// Reads the instances.
pub(super) fn read(search: &WasteSearch<'_>, plans: &Plans) -> io::Result<InstanceFindings> {
    let pool: Mutex<Vec<Votes>> = Mutex::default();
    let cached = cached_boxes(search);
    let chunk = |chunk: Range<u32>| {
        let votes = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut pass = InstancePass {
            search,
            plans,
            cached: &cached,
            collections: Collections::with(&search.dump.objects, search.forms.clone()),
            object: ObjectIndex(0),
            held: Vec::new(),
            ids: Vec::new(),
            loose: Vec::new(),
            wrappers: Vec::new(),
            wrapped: Vec::new(),
            boxes: FindingSink::default(),
            votes: votes.unwrap_or_else(|| Votes::new(plans)),
        };
        search.walk(chunk, &plans.is_read, &mut pass);
        let (held, wrappers) = pass.looked_up();
        let InstancePass { loose, boxes, votes, .. } = pass;
        pool.lock().unwrap_or_else(PoisonError::into_inner).push(votes);
        let room = &search.room;
        Ok((
            room.copy(&held)?,
            room.copy(&loose)?,
            room.copy(&wrappers)?,
            (room.copy(&boxes.savings)?, boxes.parts),
        ))
    };
    let chunks: Vec<_> = parallel::try_map(&search.chunks(), chunk)?;
    let mut found = InstanceFindings {
        held: Vec::with_capacity(chunks.len()),
        loose: Vec::new(),
        wrappers: Vec::new(),
        boxes: Vec::new(),
        votes: Votes::new(plans),
    };
    for (held, loose, wrappers, boxes) in chunks {
        found.held.push(held);
        found.loose.push(loose);
        found.wrappers.push(wrappers);
        found.boxes.push(boxes);
    }
    for votes in pool.into_inner().unwrap_or_else(PoisonError::into_inner) {
        found.votes.add(&votes);
    }
    Ok(found)
}

/// Visitor of instances.
struct InstancePass<'v, 'a> {
    search: &'v WasteSearch<'a>,
    plans: &'v Plans,
    cached: &'v IdSet<u32>,
    collections: Collections<'v, 'a>,
    /// The visited object.
    object: ObjectIndex,
    held: Vec<ArrayHolder>,
    /// IDs of the arrays that instances use.
    ids: Vec<ObjectId>,
    loose: Vec<LooseCollection>,
    wrappers: Vec<u32>,
    /// IDs of the wrapped collections.
    wrapped: Vec<ObjectId>,
    boxes: FindingSink,
    votes: Votes,
}

impl InstancePass<'_, '_> {
    /// Replaces the IDs of arrays and wrapped collections by their objects, and removes those that are not in the dump.
    fn looked_up(&mut self) -> (Vec<ArrayHolder>, Vec<Wrapper>) {
        let finder = self.search.dump.graph.objects.addresses.finder();
        let mut held = std::mem::take(&mut self.held);
        let mut arrays = held.iter_mut();
        finder.find(&self.ids, |array| {
            if let Some(held) = arrays.next() {
                held.array = array.map_or(NO_OBJECT, |array| array.0);
            }
        });
        held.retain(|held| held.array != NO_OBJECT);
        held.sort_unstable_by_key(|held| (held.array, held.holder));
        let mut pairs = Vec::with_capacity(self.wrappers.len());
        let mut wrappers = self.wrappers.iter();
        finder.find(&self.wrapped, |inner| {
            if let (Some(wrapper), Some(inner)) = (wrappers.next(), inner) {
                pairs.push(Wrapper { object: *wrapper, inner: inner.0 });
            }
        });
        (held, pairs)
    }

    /// Adds the instance's use of its array.
    fn hold(&mut self, array: ObjectId, says: [u32; 2]) {
        self.ids.push(array);
        self.held.push(ArrayHolder { array: 0, holder: self.object.0, says });
    }

    fn visit_box(&mut self, boxed: &BoxClass, class: ClassNumber, fields: &[u8]) {
        let Some(value) = self.search.dump.objects.value_at(fields, boxed.value) else { return };
        if self.cached.contains(&self.object.0) {
            return;
        }
        boxed.look(self.search, (self.object, class), value, &mut self.boxes);
    }

    fn buffer(&mut self, buffer: &BufferClass, fields: &[u8]) {
        let objects = &self.search.dump.objects;
        let number = |place| objects.value_at(fields, place)?.integer();
        let used = number(buffer.used).and_then(|used| u32::try_from(used).ok());
        let wide = u32::from(buffer.coder.and_then(number) == Some(1));
        let array = objects.value_at(fields, buffer.array).and_then(Bits::reference);
        if let (Some(array), Some(used)) = (array, used) {
            self.hold(array, [used.saturating_mul(1 + wide), 0]);
        }
    }

    fn collection(&mut self, usage: &Usage, fields: &[u8]) {
        let objects = &self.search.dump.objects;
        let value = |place| objects.value_at(fields, place);
        // Negative numbers are invalid.
        let number = |place| value(place)?.integer().and_then(|number| u32::try_from(number).ok());
        if let Some(wraps) = usage.wraps {
            if let Some(id) = value(wraps).and_then(Bits::reference).filter(|_| usage.is_counted) {
                self.wrappers.push(self.object.0);
                self.wrapped.push(id);
            }
            return;
        }
        let mut ring = None;
        let elements = match usage.count {
            Count::Number(place) => number(place),
            Count::Between(head, tail) => {
                ring = number(head).zip(number(tail));
                ring.filter(|(head, tail)| head == tail).map(|_| 0)
            }
            Count::Cells(base, cells) => match value(cells).and_then(Bits::reference) {
                None => number(base),
                Some(cells) => self.counted_in_cells(cells),
            },
            Count::Length | Count::Entries => None,
        };
        let array = usage.array.and_then(value).and_then(Bits::reference);
        if let Some(array) = array {
            let says = match (ring, elements) {
                (Some((head, tail)), _) => [head, tail],
                (None, elements) => {
                    let load = usage.load_factor(objects, fields).map_or(0, f32::to_bits);
                    [elements.unwrap_or(UNKNOWN), load]
                }
            };
            self.hold(array, says);
        }
        if !usage.is_counted {
            return;
        }
        let is_unknown = matches!(usage.count, Count::Entries) || usage.array.is_some() && array.is_none();
        match elements {
            // Plain lists of one element are found by their arrays.
            Some(1) if usage.is_plain && array.is_some() => {}
            Some(elements) if elements <= 1 || usage.is_linked => {
                self.loose.push(LooseCollection { object: self.object.0, elements });
            }
            None if is_unknown => {
                self.loose.push(LooseCollection { object: self.object.0, elements: UNKNOWN })
            }
            _ => {}
        }
    }

    /// Returns the number of entries of a ConcurrentHashMap that many threads have written to; `None` if the map does not
    /// dominate its cells, which another map may share.
    fn counted_in_cells(&self, cells: ObjectId) -> Option<u32> {
        let (graph, map) = (self.search.dump.graph, self.object);
        let cells = graph.objects.addresses.index_of(cells)?;
        self.search.is_dominated_by(cells, map).then_some(())?;
        let collection = self.collections.collection(map)?;
        u32::try_from(self.collections.count(&collection)?).ok()
    }
}

impl<'a> ObjectVisitor<'a> for InstancePass<'_, 'a> {
    #[inline(always)]
    fn instance(&mut self, object: ObjectIndex, record: Instance<'a>) {
        self.object = object;
        let plans = self.plans;
        let Some(class) = self.search.class(object) else { return };
        self.votes.vote(plans, self.search.dump.summary, class, record.fields);
        match plans.plan_of(Some(class)) {
            Plan::Nothing => {}
            Plan::String(fields) => {
                if let Some((id, part)) = fields.read(record.fields, self.search.dump.summary.id_size()) {
                    self.hold(id, part.words());
                }
            }
            Plan::Boxed(boxed) => self.visit_box(boxed, class, record.fields),
            Plan::Buffer(buffer) => self.buffer(buffer, record.fields),
            Plan::Collection(usage) => self.collection(usage, record.fields),
        }
    }
}
