//! Description of consecutive objects: class, size, and the list of referenced objects.

use std::io;

use super::address_index::{AddressFinder, AddressIndex};
use super::placing::{ClassObjectPlace, FoundPlaces};
use super::record_plan::RecordPlans;
use crate::graph::adjacency::{EncodedLists, Encoder};
use crate::graph::numbers::ObjectIndex;
use crate::layout::sizes::Sizes;
use crate::model::dangling::MissingCounter;
use crate::model::summary::{ClassNumber, Summary};
use crate::model::tables::{ClassKind, NONE};
use crate::records::source::DumpBytes;
use crate::storage::scratch::ScratchArena;
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::{BasicType, IdSize, ObjectId, be_id, be_ids};

/// Objects that a thread describes at a time: a whole number of blocks and of groups of lists.
pub(super) const CHUNK: u32 = 1 << 15;

/// Number of elements above which an array's IDs are looked up in parts.
const LONG: usize = 1 << 16;
/// Number of elements of a long array that are looked up at a time.
const PART: usize = 1 << 12;

/// Input for describing objects: class, size and referenced objects of each.
pub(crate) struct Describe<'a> {
    pub(crate) room: &'a ScratchArena,
    pub(crate) source: &'a DumpBytes<'a>,
    pub(crate) summary: &'a Summary,
    pub(crate) sizes: &'a Sizes,
    pub(crate) addresses: &'a AddressIndex,
    /// Class objects, ascending.
    pub(crate) classes: &'a [ClassObjectPlace],
    /// Pairs of thread and local, ascending.
    pub(crate) locals: &'a [(ObjectIndex, ObjectIndex)],
}

/// Input for describing objects and data derived from it, shared by all threads.
pub(super) struct DescriberInput<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) id_size: IdSize,
    pub(super) what: &'a Describe<'a>,
    finder: AddressFinder<'a>,
    plans: RecordPlans<'a>,
    java_lang_class: u32,
    class_bytes: u8,
    /// Exponent of the unit of sizes: all sizes are multiples of `1 << unit_bits`.
    pub(super) unit_bits: u32,
    wants_rows: bool,
    /// Highest ID of a flattened object; 0 if there are none.
    last_flat: u64,
}

/// Descriptions of the objects of a chunk: classes, sizes and adjacency lists.
pub(super) struct ChunkDescriptions {
    pub(super) classes: Vec<u8>,
    pub(super) codes: Vec<u8>,
    pub(super) apart: Vec<(u32, u64)>,
    /// Dangling references.
    pub(super) missing: MissingCounter,
    pub(super) rows: Option<EncodedLists>,
    /// Offsets of records, if they were not known.
    pub(super) found: FoundPlaces,
}

impl<'a> DescriberInput<'a> {
    pub(super) fn new(what: &'a Describe<'a>, class_bytes: u8, wants_rows: bool) -> Self {
        let Describe { source, summary, sizes, .. } = what;
        let mut bits = u64::from(sizes.layout().alignment_bytes);
        for (number, class) in summary.numbered_classes() {
            bits |= sizes.class_object(number);
            if class.objects.get() > 0 && class.kind() == ClassKind::Instance {
                bits |= sizes.instance(number).0;
            }
        }
        Self {
            bytes: source.bytes,
            id_size: source.header.id_size,
            what,
            finder: what.addresses.finder(),
            plans: RecordPlans::new(summary, sizes),
            java_lang_class: summary.java_lang_class().map_or(NONE, |number| number.0),
            class_bytes,
            // The largest power of two of which all sizes are multiples.
            unit_bits: bits.trailing_zeros().min(12),
            wants_rows,
            last_flat: summary.facts().last_flat_id.get(),
        }
    }

    /// Encodes the list of a long array: its elements are looked up part by part, into the scratch arena. In
    /// a damaged file, an array can be a thread and have locals.
    fn long_row(
        &self,
        elements: &[u8],
        locals: &[(ObjectIndex, ObjectIndex)],
        encoder: &mut Encoder,
        missing: &mut MissingCounter,
    ) -> io::Result<()> {
        let width = self.id_size.bytes();
        let mut targets = self.what.room.array::<u32>(elements.len() / width + locals.len())?;
        let mut count = 0;
        let mut ids = Vec::with_capacity(PART);
        for part in elements.chunks(PART * width) {
            ids.clear();
            ids.extend(be_ids(part, self.id_size).filter(|id| !id.is_null()));
            let mut places = targets.iter_mut().skip(count);
            let mut at = 0;
            self.finder.find(&ids, |found| {
                match found {
                    Some(target) => {
                        if let Some(place) = places.next() {
                            *place = target.0;
                            count += 1;
                        }
                    }
                    None => missing.add(ids.get(at)),
                }
                at += 1;
            });
        }
        for (place, (_, local)) in targets.iter_mut().skip(count).zip(locals) {
            *place = local.0;
        }
        let targets = targets.get_mut(..count + locals.len()).unwrap_or_default();
        targets.sort_unstable();
        encoder.push_ascending(targets);
        Ok(())
    }
}

/// Describes consecutive objects, one by one: class, size and referenced objects.
pub(super) struct Describer<'s> {
    shared: &'s DescriberInput<'s>,
    chunk: ChunkDescriptions,
    encoder: Encoder,
    /// Locals of threads, from the current object on.
    locals: &'s [(ObjectIndex, ObjectIndex)],
    /// Referenced IDs of the batch, in the order of the records.
    ids: Vec<ObjectId>,
    /// End of each object's IDs in `ids`.
    ends: Vec<usize>,
    /// Long arrays of the batch: object and elements.
    long: Vec<(u32, &'s [u8])>,
    /// Object indices of `ids`; [`NONE`] for dangling references.
    targets: Vec<u32>,
    /// Index of the current object.
    pub(super) index: u32,
    class: u32,
    units: u64,
    /// Cache of recently used classes: class object ID and class number, in a slot computed from the ID.
    recent: Vec<(ObjectId, u32)>,
    failed: Option<io::Error>,
}

/// Number of objects whose references are looked up together.
const BATCH: usize = 64;
/// Number of slots in the cache of classes.
const RECENT: usize = 256;

impl<'s> Describer<'s> {
    pub(super) fn new(shared: &'s DescriberInput<'s>, first: u32) -> Self {
        let chunk = ChunkDescriptions {
            classes: Vec::with_capacity(CHUNK as usize * usize::from(shared.class_bytes)),
            codes: Vec::with_capacity(CHUNK as usize),
            apart: Vec::new(),
            missing: MissingCounter::default(),
            rows: None,
            found: FoundPlaces::default(),
        };
        let locals = shared.what.locals;
        let from = locals.partition_point(|(thread, _)| thread.0 < first);
        Self {
            shared,
            chunk,
            encoder: Encoder::new(first, if shared.wants_rows { CHUNK as usize * 8 } else { 0 }),
            locals: locals.get(from..).unwrap_or_default(),
            ids: Vec::new(),
            ends: Vec::with_capacity(BATCH),
            long: Vec::new(),
            targets: Vec::new(),
            index: first,
            class: NONE,
            units: 0,
            recent: vec![(ObjectId::NULL, NONE); RECENT],
            failed: None,
        }
    }

    /// Completes the description of the current object.
    #[inline(always)]
    pub(super) fn end_object(&mut self) {
        let class = self.class.to_le_bytes();
        let width = usize::from(self.shared.class_bytes);
        self.chunk.classes.extend_from_slice(class.get(..width).unwrap_or(&class));
        self.chunk.codes.push(u8::try_from(self.units).unwrap_or(u8::MAX));
        if self.units >= u64::from(u8::MAX) {
            self.chunk.apart.push((self.index, self.units));
        }
        (self.class, self.units) = (NONE, 0);
        self.index += 1;
        self.ends.push(self.ids.len());
        if self.ends.len() == BATCH {
            self.end_batch();
        }
    }

    /// Looks up the references of the current batch, and encodes their lists.
    fn end_batch(&mut self) {
        if self.shared.wants_rows {
            self.rows();
        }
        self.ids.clear();
        self.long.clear();
        self.ends.clear();
    }

    fn rows(&mut self) {
        let Self { shared, chunk, encoder, locals, ids, ends, long, targets, failed, .. } = self;
        targets.clear();
        shared.finder.find(ids, |found| match found {
            Some(target) => targets.push(target.0),
            None => {
                chunk.missing.add(ids.get(targets.len()));
                targets.push(NONE);
            }
        });
        // Fewer objects than 32 bits can count.
        #[allow(clippy::cast_possible_truncation)]
        let first = self.index - ends.len() as u32;
        let mut long = long.iter().peekable();
        let mut start = 0;
        for (object, end) in (first..).zip(ends) {
            let row = targets.get_mut(start..*end).unwrap_or_default();
            start = *end;
            let own = locals.iter().take_while(|(thread, _)| thread.0 <= object).count();
            let (own, rest) = locals.split_at_checked(own).unwrap_or_default();
            *locals = rest;
            if let Some((_, elements)) = long.next_if(|(array, _)| *array == object) {
                if let Err(error) = shared.long_row(elements, own, encoder, &mut chunk.missing) {
                    *failed = failed.take().or(Some(error));
                }
            } else if own.is_empty() {
                encoder.push(row);
            } else {
                let mut row = row.to_vec();
                row.extend(own.iter().map(|(_, local)| local.0));
                encoder.push(&mut row);
            }
        }
    }

    /// Completes the last batch and returns the descriptions.
    pub(super) fn finish(mut self) -> io::Result<ChunkDescriptions> {
        self.end_batch();
        let Self { shared, mut chunk, encoder, failed, .. } = self;
        chunk.rows = shared.wants_rows.then(|| encoder.finish());
        failed.map_or(Ok(chunk), Err)
    }

    /// Describes the class object with this ID.
    pub(super) fn class_dump(&mut self, id: ObjectId) {
        let shared = self.shared;
        let Some(number) = shared.plans.class(id) else { return };
        self.class = shared.java_lang_class;
        self.units = shared.what.sizes.class_object(number) >> shared.unit_bits;
        if let (true, Some(class)) = (shared.wants_rows, shared.what.summary.class(number)) {
            self.refer(class.super_id.into());
            self.refer(class.loader.into());
            for (_, kind, value) in shared.what.summary.statics(class) {
                if kind == BasicType::Object {
                    self.refer(ObjectId(value));
                }
            }
        }
    }

    #[inline(always)]
    fn class_number(&mut self, id: ObjectId) -> u32 {
        // Class objects are far apart.
        #[allow(clippy::cast_possible_truncation)]
        let at = (id.0 >> 3 ^ id.0 >> 11) as usize % RECENT;
        match self.recent.get_mut(at) {
            Some((known, number)) if *known == id && *number != NONE => *number,
            Some(place) => {
                place.0 = id;
                place.1 = self.shared.plans.class(id).map_or(NONE, |class| class.0);
                place.1
            }
            None => NONE,
        }
    }

    /// Sets the size of an array with flattened elements.
    #[cold]
    fn flat_array(&mut self, record: &ObjectArray<'_>) {
        let first = be_ids(record.elements, self.shared.id_size).find(|id| !id.is_null());
        let size = first
            .filter(|id| id.0 <= self.shared.last_flat)
            .and_then(|_| self.shared.what.sizes.flat_array(ClassNumber(self.class), record.length));
        if let Some(size) = size {
            self.units = size >> self.shared.unit_bits;
        }
    }

    #[inline(always)]
    fn refer(&mut self, id: ObjectId) {
        if !id.is_null() {
            self.ids.push(id);
        }
    }
}

impl<'a> HeapVisitor<'a> for Describer<'a> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        let shared = self.shared;
        self.class = self.class_number(record.class);
        let Some(plan) = shared.plans.plan(ClassNumber(self.class)) else { return };
        self.units = shared.plans.instance(plan, &record) >> shared.unit_bits;
        if record.id.0.wrapping_sub(1) < shared.last_flat {
            // Its bytes are part of its holder.
            self.units = 0;
        }
        if shared.wants_rows {
            for (plan, fields) in shared.plans.levels(plan, record.fields) {
                for at in &plan.references {
                    let Some(id) = be_id(fields, *at as usize, shared.id_size) else { break };
                    self.refer(ObjectId(id));
                }
            }
        }
    }

    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.class = if self.shared.plans.has_element_arrays() {
            self.shared.plans.array_class(record.class).map_or(NONE, |class| class.0)
        } else {
            self.class_number(record.class)
        };
        self.units = self.shared.plans.object_array(&record) >> self.shared.unit_bits;
        if self.shared.last_flat > 0 {
            self.flat_array(&record);
        }
        if self.shared.wants_rows {
            let id_size = self.shared.id_size;
            if record.elements.len() > LONG * id_size.bytes() {
                self.long.push((self.index, record.elements));
                return;
            }
            for element in record.elements.chunks_exact(id_size.bytes()) {
                self.refer(ObjectId(be_id(element, 0, id_size).unwrap_or(0)));
            }
        }
    }

    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let plans = &self.shared.plans;
        self.class = plans.primitive(record.element).map_or(NONE, |class| class.0);
        self.units = plans.primitive_array(&record) >> self.shared.unit_bits;
    }

    fn class(&mut self, record: ClassDump<'a>) {
        self.class_dump(record.id);
    }
}
