//! What each object is, by object index: its class, its shallow size, and the objects it refers to.
//!
//! The reference model is Eclipse MAT's. An object refers to its class object; that edge is not listed, as the class of
//! each object is known. An instance refers to what its reference fields hold, an array to its elements, a class object
//! to its superclass, its loader and what its static fields hold. A thread also refers to its locals. Signers,
//! protection domains and constant pools do not count.

use std::io;

use rayon::prelude::*;

use super::address_index::{AddressIndex, Finder};
use super::object_table::{BLOCK, Places, width};
use super::record_plan::RecordPlans;
use crate::hprof::class_dump::ClassDump;
use crate::hprof::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{BasicType, IdSize, ObjectId, be_id, be_ids};
use crate::index::graph::adjacency::{Encoded, Encoder};
use crate::index::graph::numbers::ObjectIndex;
use crate::index::graph::order::Weights;
use crate::index::layout::sizes::Sizes;
use crate::index::model::dangling::{MissingCounter, MissingObjects};
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::{ClassKind, NONE};
use crate::index::scan::source::Source;
use crate::index::storage::scratch::{Array, ScratchArena};
use crate::progress::Progress;

/// Objects that one thread describes in one go: whole blocks and whole groups of rows.
const CHUNK: u32 = 1 << 15;
/// Chunks for each thread that are described before they are written.
const WAVE: u32 = 4;

/// Elements of an array whose ids are kept in one list, and of which longer ones are looked up at a time.
const LONG: usize = 1 << 16;
const PART: usize = 1 << 12;

/// Classes and weights of all objects.
pub(crate) struct Described {
    /// Class numbers, `class_bytes` bytes each, little-endian.
    pub(crate) classes: Array<u8>,
    pub(crate) class_bytes: u8,
    pub(crate) weights: Weights,
    /// References to objects that are not in the dump, if references were read.
    pub(crate) missing: MissingObjects,
}

/// What describing needs.
pub(crate) struct Describe<'a> {
    pub(crate) room: &'a ScratchArena,
    pub(crate) source: &'a Source<'a>,
    pub(crate) summary: &'a Summary,
    pub(crate) sizes: &'a Sizes,
    pub(crate) addresses: &'a AddressIndex,
    pub(crate) places: &'a Places,
    /// Thread and local, ascending.
    pub(crate) locals: &'a [(ObjectIndex, ObjectIndex)],
}

impl Describe<'_> {
    /// Describes all objects. Rows are handed to `rows` in order, if they are wanted.
    ///
    /// # Errors
    /// What `rows` returns.
    pub(crate) fn run(
        &self,
        mut rows: Option<&mut (dyn FnMut(Encoded) -> io::Result<()> + Send)>,
        progress: &dyn Progress,
    ) -> io::Result<Described> {
        let objects = self.addresses.objects();
        let class_bytes = width(self.summary.classes().len() as u64);
        let shared = Shared::new(self, class_bytes, rows.is_some());
        let mut described = Described {
            classes: self.room.array(objects as usize * usize::from(class_bytes))?,
            class_bytes,
            weights: Weights {
                codes: self.room.array(objects as usize)?,
                apart: Vec::new(),
                unit: 1 << shared.unit_bits,
            },
            missing: MissingObjects::default(),
        };
        let mut missing = MissingCounter::default();
        progress.begin("reading references", u64::from(objects));
        let chunks = objects.div_ceil(CHUNK);
        let wave = WAVE * u32::try_from(rayon::current_num_threads()).unwrap_or(1);
        let mut ready: Vec<Chunk> = Vec::new();
        let mut first = 0;
        // Where the next classes and weights go.
        let mut at = (0, 0);
        while first < chunks || !ready.is_empty() {
            let next = first..first.saturating_add(wave).min(chunks);
            first = next.end;
            // What is ready is written while the next wave is made.
            let (written, made) = rayon::join(
                || {
                    ready.drain(..).try_for_each(|chunk| {
                        put(&mut described.classes, &mut at.0, &chunk.classes)?;
                        put(&mut described.weights.codes, &mut at.1, &chunk.codes)?;
                        described.weights.apart.extend_from_slice(&chunk.apart);
                        missing.merge(chunk.missing);
                        match (&mut rows, chunk.rows) {
                            (Some(take), Some(rows)) => take(rows),
                            _ => Ok(()),
                        }
                    })
                },
                || next.into_par_iter().map(|chunk| shared.chunk(chunk, progress)).collect::<io::Result<_>>(),
            );
            written?;
            ready = made?;
        }
        progress.end();
        described.missing = missing.finish();
        Ok(described)
    }
}

/// Puts bytes into a column, at `at`, which moves on.
fn put(column: &mut [u8], at: &mut usize, bytes: &[u8]) -> io::Result<()> {
    let place = column.get_mut(*at..*at + bytes.len());
    place.ok_or_else(|| io::Error::other("more rows than objects"))?.copy_from_slice(bytes);
    *at += bytes.len();
    Ok(())
}

/// What all threads know.
struct Shared<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
    what: &'a Describe<'a>,
    finder: Finder<'a>,
    plans: RecordPlans<'a>,
    java_lang_class: u32,
    class_bytes: u8,
    /// All sizes are multiples of `1 << unit_bits`.
    unit_bits: u32,
    wants_rows: bool,
}

/// What is known of some objects.
struct Chunk {
    classes: Vec<u8>,
    codes: Vec<u8>,
    apart: Vec<(u32, u64)>,
    /// What refers to objects that are not in the dump.
    missing: MissingCounter,
    rows: Option<Encoded>,
}

impl<'a> Shared<'a> {
    fn new(what: &'a Describe<'a>, class_bytes: u8, wants_rows: bool) -> Self {
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
        }
    }

    fn chunk(&self, number: u32, progress: &dyn Progress) -> io::Result<Chunk> {
        let objects = self.what.addresses.objects();
        let first = number * CHUNK;
        let end = first.saturating_add(CHUNK).min(objects);
        let mut describer = Describer {
            shared: self,
            ids: Vec::new(),
            long: Vec::new(),
            row: 0,
            class: NONE,
            units: 0,
            last: (ObjectId::NULL, NONE),
        };
        // Where the ids of each object of a block end, and what is found for them.
        let mut ends = Vec::with_capacity(BLOCK as usize);
        let mut targets = Vec::new();
        let mut encoder = Encoder::new(first, if self.wants_rows { CHUNK as usize * 8 } else { 0 });
        let mut chunk = Chunk {
            classes: Vec::with_capacity(CHUNK as usize * usize::from(self.class_bytes)),
            codes: Vec::with_capacity(CHUNK as usize),
            apart: Vec::new(),
            missing: MissingCounter::default(),
            rows: None,
        };
        let from = self.what.locals.partition_point(|(thread, _)| thread.0 < first);
        let mut locals = self.what.locals.get(from..).unwrap_or_default().iter().peekable();
        let mut index = first;
        let mut failed = None;
        let mut long_missing = MissingCounter::default();
        for block in first / BLOCK..end.div_ceil(BLOCK) {
            let count = BLOCK.min(end - block * BLOCK);
            self.what.places.visit(self.bytes, self.id_size, block, count, &mut describer, |object| {
                let class = object.class.to_le_bytes();
                chunk.classes.extend_from_slice(class.get(..usize::from(self.class_bytes)).unwrap_or(&class));
                chunk.codes.push(u8::try_from(object.units).unwrap_or(u8::MAX));
                if object.units >= u64::from(u8::MAX) {
                    chunk.apart.push((index, object.units));
                }
                ends.push(object.ids.len());
                (object.class, object.units) = (NONE, 0);
                object.row += 1;
                index += 1;
            });
            if self.wants_rows {
                let mut object = index - count;
                let mut at = 0;
                let mut long = describer.long.iter().peekable();
                let block_first = object;
                let mut end_row = |targets: &mut Vec<u32>| {
                    while let Some((_, local)) = locals.next_if(|(thread, _)| thread.0 == object) {
                        targets.push(local.0);
                    }
                    match long.next_if(|(row, _)| *row == object - block_first) {
                        Some((_, elements)) => {
                            if let Err(error) = self.long_row(elements, &mut encoder, &mut long_missing) {
                                failed = failed.take().or(Some(error));
                            }
                        }
                        None => encoder.push(targets),
                    }
                    targets.clear();
                    object += 1;
                };
                let mut row_ends = ends.iter().peekable();
                self.finder.find(&describer.ids, |found| {
                    while row_ends.next_if(|end| **end == at).is_some() {
                        end_row(&mut targets);
                    }
                    match found {
                        Some(target) => targets.push(target.0),
                        None => chunk.missing.add(describer.ids.get(at)),
                    }
                    at += 1;
                });
                row_ends.for_each(|_| end_row(&mut targets));
            }
            describer.ids.clear();
            describer.long.clear();
            describer.row = 0;
            ends.clear();
        }
        chunk.missing.merge(long_missing);
        if self.wants_rows {
            chunk.rows = Some(encoder.finish());
        }
        progress.advance(u64::from(end - first));
        failed.map_or(Ok(chunk), Err)
    }

    /// The row of a long array: its elements are looked up part by part, into the room.
    fn long_row(
        &self,
        elements: &[u8],
        encoder: &mut Encoder,
        missing: &mut MissingCounter,
    ) -> io::Result<()> {
        let width = self.id_size.bytes();
        let mut targets = self.what.room.array::<u32>(elements.len() / width)?;
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
        let targets = targets.get_mut(..count).unwrap_or_default();
        targets.sort_unstable();
        encoder.push_ascending(targets);
        Ok(())
    }
}

/// Describes one object after another.
struct Describer<'s> {
    shared: &'s Shared<'s>,
    /// What the objects of the block refer to, in the order of the records.
    ids: Vec<ObjectId>,
    /// Long arrays of the block: which object, and its elements.
    long: Vec<(u32, &'s [u8])>,
    /// The object's place in its block.
    row: u32,
    class: u32,
    units: u64,
    /// The class met last: id and number.
    last: (ObjectId, u32),
}

impl Describer<'_> {
    #[inline(always)]
    fn class_number(&mut self, id: ObjectId) -> u32 {
        if self.last.0 != id || self.last.1 == NONE {
            self.last = (id, self.shared.plans.class(id).map_or(NONE, |class| class.0));
        }
        self.last.1
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
        self.units = shared.plans.instance(plan, record.fields) >> shared.unit_bits;
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
        self.class = self.class_number(record.class);
        self.units = self.shared.plans.array(BasicType::Object, record.length) >> self.shared.unit_bits;
        if self.shared.wants_rows {
            let id_size = self.shared.id_size;
            if record.elements.len() > LONG * id_size.bytes() {
                self.long.push((self.row, record.elements));
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
        self.units = plans.array(record.element, record.length) >> self.shared.unit_bits;
    }

    fn class(&mut self, record: ClassDump<'a>) {
        let shared = self.shared;
        let Some(number) = shared.plans.class(record.id) else { return };
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
}
