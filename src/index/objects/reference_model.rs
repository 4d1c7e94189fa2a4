//! What each object is, by object index: its class, its shallow size, and the objects it refers to.
//!
//! The reference model is Eclipse MAT's. An object refers to its class object; that edge is not listed, as the class of
//! each object is known. An instance refers to what its reference fields hold, an array to its elements, a class object
//! to its superclass, its loader and what its static fields hold. A thread also refers to its locals. Signers,
//! protection domains and constant pools do not count.

use std::io;
use std::ops::Range;

use rayon::prelude::*;

use super::address_index::{AddressIndex, Finder};
use super::object_table::{BLOCK, Places, width};
use super::placing::{self, ClassObject, Found, InOrder, Placer, Placing};
use super::record_plan::RecordPlans;
use crate::hprof::class_dump::ClassDump;
use crate::hprof::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{BasicType, IdSize, ObjectId, be_id, be_ids};
use crate::index::graph::adjacency::{Encoded, Encoder};
use crate::index::graph::numbers::ObjectIndex;
use crate::index::graph::order::Weights;
use crate::index::layout::sizes::Sizes;
use crate::index::model::dangling::{MissingCounter, MissingObjects};
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::model::tables::{ClassKind, NONE};
use crate::index::scan::chunks::{Ascending, Plan};
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
    /// Class objects, ascending.
    pub(crate) classes: &'a [ClassObject],
    /// Thread and local, ascending.
    pub(crate) locals: &'a [(ObjectIndex, ObjectIndex)],
}

type TakeRows<'r> = Option<&'r mut (dyn FnMut(Encoded) -> io::Result<()> + Send)>;

impl Describe<'_> {
    /// Describes all objects and finds the places of their records. Rows are handed to `rows` in order.
    ///
    /// Where ids ascend in the file, all is found in one walk over it.
    ///
    /// # Errors
    /// What `rows` returns.
    pub(crate) fn place(
        &self,
        plan: &Plan,
        rows: &mut (dyn FnMut(Encoded) -> io::Result<()> + Send),
        progress: &dyn Progress,
    ) -> io::Result<(Described, Places)> {
        let Self { room, source, addresses, classes, .. } = *self;
        let placing = Placing { room, source, addresses, classes };
        let Some(order) = &plan.order else {
            let places = placing::place(&placing, plan, progress)?;
            let described = self.of_places(&places, Some(rows), progress)?;
            return Ok((described, places));
        };
        let parts = Part::all(order, addresses);
        let mut in_order = InOrder::new(room, addresses.objects())?;
        let mut take = |found: &Found| in_order.take(found);
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let make = |shared: &Shared<'_>, part: u32| shared.part(order, parts.get(part as usize));
        let described = self.run(count, make, &mut take, Some(rows), progress)?;
        Ok((described, in_order.finish(&placing)?))
    }

    /// Describes all objects, whose places are known.
    ///
    /// # Errors
    /// What `rows` returns.
    pub(crate) fn of_places(
        &self,
        places: &Places,
        rows: TakeRows<'_>,
        progress: &dyn Progress,
    ) -> io::Result<Described> {
        let chunks = self.addresses.objects().div_ceil(CHUNK);
        self.run(chunks, |shared, chunk| shared.chunk(places, chunk), &mut |_| Ok(()), rows, progress)
    }

    /// Describes all objects, chunk by chunk.
    fn run(
        &self,
        chunks: u32,
        make: impl Fn(&Shared<'_>, u32) -> io::Result<Chunk> + Sync,
        found: &mut (dyn FnMut(&Found) -> io::Result<()> + Send),
        mut rows: TakeRows<'_>,
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
                        found(&chunk.found)?;
                        match (&mut rows, chunk.rows) {
                            (Some(take), Some(rows)) => take(rows),
                            _ => Ok(()),
                        }
                    })
                },
                || {
                    let made = next.into_par_iter().map(|chunk| {
                        let made = make(&shared, chunk)?;
                        progress.advance(made.codes.len() as u64);
                        Ok(made)
                    });
                    made.collect::<io::Result<_>>()
                },
            );
            written?;
            ready = made?;
        }
        progress.end();
        if at.1 != objects as usize {
            return Err(out_of_order());
        }
        described.missing = missing.finish();
        Ok(described)
    }
}

/// What the scan has found of the order of ids is not so.
fn out_of_order() -> io::Error {
    io::Error::other("the dump has changed while it was read")
}

/// Puts bytes into a column, at `at`, which moves on.
fn put(column: &mut [u8], at: &mut usize, bytes: &[u8]) -> io::Result<()> {
    let place = column.get_mut(*at..*at + bytes.len());
    place.ok_or_else(|| io::Error::other("more rows than objects"))?.copy_from_slice(bytes);
    *at += bytes.len();
    Ok(())
}

/// Ascending runs of records that one thread describes in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// Which runs.
    runs: Range<usize>,
    /// The object indices: class objects in front of a run belong to what is before it.
    objects: Range<u32>,
}

impl Part {
    /// Parts of all runs.
    fn all(order: &[Ascending], addresses: &AddressIndex) -> Vec<Self> {
        let mut parts: Vec<Self> = Vec::new();
        for (at, run) in order.iter().enumerate() {
            let first = addresses.index_of(ObjectId(run.first)).map_or(0, |index| index.0);
            match parts.last_mut() {
                Some(part) if first.saturating_sub(part.objects.start) < CHUNK / 2 => part.runs.end = at + 1,
                Some(part) => {
                    part.objects.end = first;
                    parts.push(Self { runs: at..at + 1, objects: first..first });
                }
                None => parts.push(Self { runs: at..at + 1, objects: 0..0 }),
            }
        }
        if parts.is_empty() {
            parts.push(Self { runs: 0..0, objects: 0..0 });
        }
        if let Some(part) = parts.last_mut() {
            part.objects.end = addresses.objects();
        }
        parts
    }
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
    /// Where records are, if that was not known.
    found: Found,
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

    /// Describes a chunk of objects, by their places.
    fn chunk(&self, places: &Places, number: u32) -> io::Result<Chunk> {
        let first = number * CHUNK;
        let end = first.saturating_add(CHUNK).min(self.what.addresses.objects());
        let mut describer = Describer::new(self, first);
        for block in first / BLOCK..end.div_ceil(BLOCK) {
            let count = BLOCK.min(end - block * BLOCK);
            places.visit(self.bytes, self.id_size, block, count, &mut describer, Describer::end_object);
        }
        describer.finish()
    }

    /// Describes the objects of some runs, in the order of the file.
    fn part(&self, order: &[Ascending], part: Option<&Part>) -> io::Result<Chunk> {
        let Some(Part { runs, objects }) = part else { return Err(out_of_order()) };
        let classes = self.what.classes;
        let classes = classes.get(classes.partition_point(|class| class.index < objects.start)..);
        let mut walker = RunWalker {
            describer: Describer::new(self, objects.start),
            placer: Placer::new(self.what.addresses.objects(), Found::default()),
            classes: classes.unwrap_or_default().iter(),
            next_class: u32::MAX,
            end: objects.end,
        };
        walker.watch();
        for run in order.get(runs.clone()).unwrap_or_default() {
            // All of it was read before, so there is nothing wrong with it.
            heap::walk(self.bytes, self.id_size, run.start, run.end, run.end, &mut walker);
        }
        walker.classes();
        let RunWalker { mut placer, describer, .. } = walker;
        placer.end_run();
        if describer.index != objects.end {
            return Err(out_of_order());
        }
        Ok(Chunk { found: placer.sink, ..describer.finish()? })
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

/// Describes the objects of ascending records, and the class objects between them.
struct RunWalker<'s, 'c> {
    describer: Describer<'s>,
    placer: Placer<Found>,
    /// Class objects behind the next one.
    classes: std::slice::Iter<'c, ClassObject>,
    /// The index of the next class object.
    next_class: u32,
    /// Objects of the part end before this one.
    end: u32,
}

impl RunWalker<'_, '_> {
    fn watch(&mut self) {
        let next = self.classes.as_slice().first();
        self.next_class = next.map_or(u32::MAX, |class| class.index);
    }

    /// Describes class objects whose turn it is.
    #[cold]
    fn classes(&mut self) {
        while self.describer.index == self.next_class && self.next_class < self.end {
            if let Some(class) = self.classes.next() {
                self.describer.class_object(class.class);
                self.describer.end_object();
            }
            self.watch();
        }
    }

    /// Before an object: its index.
    #[inline(always)]
    fn begin(&mut self, offset: usize, end: usize) {
        if self.describer.index == self.next_class {
            self.classes();
        }
        self.placer.object(self.describer.index, offset, end);
    }
}

impl<'a> HeapVisitor<'a> for RunWalker<'a, '_> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        self.begin(record.offset, record.end);
        self.describer.instance(record);
        self.describer.end_object();
    }
    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.begin(record.offset, record.end);
        self.describer.object_array(record);
        self.describer.end_object();
    }
    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.begin(record.offset, record.end);
        self.describer.primitive_array(record);
        self.describer.end_object();
    }
    #[inline(always)]
    fn go_on(&mut self) -> bool {
        self.describer.index < self.end
    }
}

/// Describes one object after another.
struct Describer<'s> {
    shared: &'s Shared<'s>,
    chunk: Chunk,
    encoder: Encoder,
    /// Locals of threads from here on.
    locals: &'s [(ObjectIndex, ObjectIndex)],
    /// What the objects of the batch refer to, in the order of the records.
    ids: Vec<ObjectId>,
    /// Where the ids of each object of the batch end.
    ends: Vec<usize>,
    /// Long arrays of the batch: which object, and its elements.
    long: Vec<(u32, &'s [u8])>,
    /// What is found for the ids; [`NONE`] for nothing.
    targets: Vec<u32>,
    /// The object.
    index: u32,
    class: u32,
    units: u64,
    /// Classes met of late, each at a place of its id: id and number.
    recent: Vec<(ObjectId, u32)>,
    failed: Option<io::Error>,
}

/// Objects whose references are looked up together.
const BATCH: usize = 64;
/// Classes of which the numbers are at hand.
const RECENT: usize = 256;

impl<'s> Describer<'s> {
    fn new(shared: &'s Shared<'s>, first: u32) -> Self {
        let chunk = Chunk {
            classes: Vec::with_capacity(CHUNK as usize * usize::from(shared.class_bytes)),
            codes: Vec::with_capacity(CHUNK as usize),
            apart: Vec::new(),
            missing: MissingCounter::default(),
            rows: None,
            found: Found::default(),
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

    /// All of the object is known.
    #[inline(always)]
    fn end_object(&mut self) {
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

    /// Looks up what the objects of the batch refer to.
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
        // Less objects than 32 bits count.
        #[allow(clippy::cast_possible_truncation)]
        let first = self.index - ends.len() as u32;
        let mut long = long.iter().peekable();
        let mut start = 0;
        for (object, end) in (first..).zip(ends) {
            let row = targets.get_mut(start..*end).unwrap_or_default();
            start = *end;
            if let Some((_, elements)) = long.next_if(|(array, _)| *array == object) {
                if let Err(error) = shared.long_row(elements, encoder, &mut chunk.missing) {
                    *failed = failed.take().or(Some(error));
                }
            } else if locals.first().is_some_and(|(thread, _)| thread.0 == object) {
                let mut row = row.to_vec();
                while let Some(((_, local), rest)) = locals.split_first().filter(|(own, _)| own.0.0 == object)
                {
                    row.push(local.0);
                    *locals = rest;
                }
                encoder.push(&mut row);
            } else {
                encoder.push(row);
            }
        }
    }

    fn finish(mut self) -> io::Result<Chunk> {
        self.end_batch();
        let Self { shared, mut chunk, encoder, failed, .. } = self;
        chunk.rows = shared.wants_rows.then(|| encoder.finish());
        failed.map_or(Ok(chunk), Err)
    }

    /// Describes a class object.
    fn class_object(&mut self, number: ClassNumber) {
        let shared = self.shared;
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
        // Class objects lie far apart.
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
        self.units = plans.array(record.element, record.length) >> self.shared.unit_bits;
    }

    fn class(&mut self, record: ClassDump<'a>) {
        let shared = self.shared;
        let Some(number) = shared.plans.class(record.id) else { return };
        self.class_object(number);
    }
}
