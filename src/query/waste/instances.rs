//! The pass over instances: what they say of their arrays, which are boxes, which fields are the same everywhere.

use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::findings::{NO_OBJECT, Parts, Saving, Sink};
use super::kinds::boxed_numbers::{Boxed, cached};
use super::kinds::constant_fields::Votes;
use super::plan::{Buffer, Plan, Plans};
use super::{Cursor, Search, Walk};
use crate::objects::collections::Collections;
use crate::objects::collections::usage::{Count, Usage};
use crate::objects::reader::Bits;
use crate::parallel;
use hprof_index::storage::id_map::IdSet;
use hprof_index::storage::scratch::Array;
use hprof_parser::ObjectId;
use hprof_parser::heap::{HeapVisitor, Instance};

/// An instance, and what it says of its array.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Held {
    /// The array.
    pub(super) array: u32,
    /// The instance.
    pub(super) holder: u32,
    /// What it says, by its class: the part of a String, the number of elements, the ends of a ring.
    pub(super) says: [u32; 2],
}

/// A collection of at most one element, or of which only a look at it tells how many there are.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(super) struct Loose {
    pub(super) object: u32,
    /// The number of elements, or [`UNKNOWN`].
    pub(super) elements: u32,
}

/// Not known.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A wrapper, and what it wraps.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Wrapper {
    pub(super) object: u32,
    pub(super) inner: u32,
}

/// What the pass found.
pub(super) struct Found {
    /// By chunk, ascending by array within.
    pub(super) held: Vec<Array<Held>>,
    /// Collections of few elements.
    pub(super) loose: Vec<Array<Loose>>,
    /// Wrappers of collections, and what they wrap.
    pub(super) wrappers: Vec<Array<Wrapper>>,
    /// Boxes, ascending.
    pub(super) boxes: Vec<(Array<Saving>, Parts)>,
    pub(super) votes: Votes,
}

/// Reads the instances.
pub(super) fn read(search: &Search<'_>, plans: &Plans) -> io::Result<Found> {
    let pool: Mutex<Vec<Votes>> = Mutex::default();
    let cached = cached(search);
    let chunk = |chunk: Range<u32>| {
        let votes = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut pass = Pass {
            search,
            plans,
            cached: &cached,
            collections: Collections::with(&search.objects, search.forms.clone()),
            cursor: Cursor::NONE,
            held: Vec::new(),
            ids: Vec::new(),
            loose: Vec::new(),
            wrappers: Vec::new(),
            wrapped: Vec::new(),
            boxes: Sink::default(),
            votes: votes.unwrap_or_else(|| Votes::new(plans)),
        };
        search.walk(chunk, &plans.is_read, &mut pass);
        let (held, wrappers) = pass.looked_up();
        let Pass { loose, boxes, votes, .. } = pass;
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
    let mut found = Found {
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

/// Reads instances.
struct Pass<'v, 'a> {
    search: &'v Search<'a>,
    plans: &'v Plans,
    cached: &'v IdSet<u32>,
    collections: Collections<'v, 'a>,
    cursor: Cursor,
    held: Vec<Held>,
    /// The IDs of their arrays.
    ids: Vec<ObjectId>,
    loose: Vec<Loose>,
    wrappers: Vec<u32>,
    /// The IDs of what they wrap.
    wrapped: Vec<ObjectId>,
    boxes: Sink,
    votes: Votes,
}

impl Pass<'_, '_> {
    /// Finds arrays and wrapped collections by their IDs. What is not in the dump goes.
    fn looked_up(&mut self) -> (Vec<Held>, Vec<Wrapper>) {
        let finder = self.search.graph.objects.addresses.finder();
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

    /// Takes what the instance says of its array.
    fn hold(&mut self, array: ObjectId, says: [u32; 2]) {
        self.ids.push(array);
        self.held.push(Held { array: 0, holder: self.cursor.object().0, says });
    }

    fn boxed(&mut self, boxed: &Boxed, fields: &[u8]) {
        let Some(value) = self.search.objects.value_at(fields, boxed.value) else { return };
        if self.cached.contains(&self.cursor.object().0) {
            return;
        }
        let box_of_class = (self.cursor.object(), self.cursor.class());
        boxed.look(self.search, box_of_class, value, &mut self.boxes);
    }

    fn buffer(&mut self, buffer: &Buffer, fields: &[u8]) {
        let objects = &self.search.objects;
        let number = |place| objects.value_at(fields, place)?.integer();
        let used = number(buffer.used).and_then(|used| u32::try_from(used).ok());
        let wide = u32::from(buffer.coder.and_then(number) == Some(1));
        let array = objects.value_at(fields, buffer.array).and_then(Bits::reference);
        if let (Some(array), Some(used)) = (array, used) {
            self.hold(array, [used.saturating_mul(1 + wide), 0]);
        }
    }

    fn collection(&mut self, usage: &Usage, fields: &[u8]) {
        let objects = &self.search.objects;
        let value = |place| objects.value_at(fields, place);
        // Negative ones are nonsense.
        let number = |place| value(place)?.integer().and_then(|number| u32::try_from(number).ok());
        if let Some(wraps) = usage.wraps {
            if let Some(id) = value(wraps).and_then(Bits::reference).filter(|_| usage.is_counted) {
                self.wrappers.push(self.cursor.object().0);
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
            // Of plain lists of one element their arrays tell.
            Some(1) if usage.is_plain && array.is_some() => {}
            Some(elements) if elements <= 1 || usage.is_linked => {
                self.loose.push(Loose { object: self.cursor.object().0, elements });
            }
            None if is_unknown => {
                self.loose.push(Loose { object: self.cursor.object().0, elements: UNKNOWN })
            }
            _ => {}
        }
    }

    /// The entries of a ConcurrentHashMap that many threads have written to. Cells that are another map's as well are not
    /// read for each.
    fn counted_in_cells(&self, cells: ObjectId) -> Option<u32> {
        let (graph, map) = (self.search.graph, self.cursor.object());
        let cells = graph.objects.addresses.index_of(cells)?;
        self.search.is_dominated_by(cells, map).then_some(())?;
        let collection = self.collections.collection(map)?;
        u32::try_from(self.collections.count(&collection)?).ok()
    }
}

impl<'a> Walk<'a> for Pass<'_, 'a> {
    fn cursor(&mut self) -> &mut Cursor {
        &mut self.cursor
    }
}

impl<'a> HeapVisitor<'a> for Pass<'_, 'a> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        if !self.cursor.is_wanted() {
            return;
        }
        let plans = self.plans;
        let class = self.cursor.class();
        self.votes.vote(plans, self.search.summary, class, record.fields);
        match plans.of(Some(class)) {
            Plan::Nothing => {}
            Plan::String(fields) => {
                if let Some((id, part)) = fields.read(record.fields, self.search.summary.id_size()) {
                    self.hold(id, part.words());
                }
            }
            Plan::Boxed(boxed) => self.boxed(boxed, record.fields),
            Plan::Buffer(buffer) => self.buffer(buffer, record.fields),
            Plan::Collection(usage) => self.collection(usage, record.fields),
        }
    }
}
