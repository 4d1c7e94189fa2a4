//! One thread of a scan: its tallies, and the hot path of the whole program.

use std::ops::Range;
use std::sync::atomic::Ordering;

use hprof_values::{ObjectId, TraceSerial, be_ids};
use zerocopy::little_endian::U64;

use crate::storage::allowance::{Allowance, bytes, map_bytes};
use crate::storage::id_map::IdHash;
use crate::storage::memory::NoMemory;

use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_parser::resync::KnownClasses;

use super::tallies::{ChunkIds, IdRun, LENGTHS_BYTES, Prev, PreviousObject, ScanResult, Tally};
use super::task::{Mode, Task, classes_between};
use crate::model::measurements::{Lengths, OBJECT_LENGTHS, array_kind};
use crate::model::problem::Problem;
use crate::model::tables::{NONE, RootRow};
use crate::objects::id_set::{AddressSetHandle, Misfit};
use crate::records::chunks::{MAX_PROBLEMS, RecordChunk};

/// Marker for a class whose fields are unknown.
const ANY_LENGTH: u64 = u64::MAX;
/// `id` of a [`Prev`] without an object.
const NOTHING: u64 = u64::MAX;
/// HotSpot truncates arrays so that a record's length fits u4
/// (`DumperSupport::calculate_array_max_length`).
const HOTSPOT_MAX_ARRAY_BYTES: u64 = u32::MAX as u64 - 64;

/// One thread of a scan.
pub(crate) struct Worker<'a> {
    task: Task<'a>,
    ordered: bool,
    counts: bool,
    lists: bool,
    /// `true` if IDs are collected, in a set or a list.
    collects: bool,
    cursor: Option<AddressSetHandle<'a>>,
    misfit: Option<Misfit>,
    classes: ClassSlots,
    /// By slot: the counts, and the size of an instance's fields in bytes, or [`ANY_LENGTH`].
    tallies: Vec<(Tally, u64)>,
    stack_chunk: Option<ObjectId>,
    prev: Prev,
    /// Next class object above `prev`; [`NOTHING`] if there is none.
    next_class: u64,
    run_first: u64,
    /// Offset of the run's first record; 0 without a run.
    run_start: usize,
    /// End offset of the run's last record (exclusive); 0 without a run.
    run_end: usize,
    lowest: u64,
    highest: u64,
    /// Number of objects of the chunk.
    objects: u64,
    /// Number of runs of the chunk.
    runs: u64,
    counted: ScanResult,
}

/// Appends to a table if the memory suffices.
#[inline(always)]
fn push<T>(task: &Task<'_>, misfit: &mut Option<Misfit>, table: &mut Vec<T>, row: T) {
    if task.allowance.push(table, row).is_err() {
        *misfit = Some(Misfit::Memory);
    }
}

impl<'a> Worker<'a> {
    pub(crate) fn new(task: &Task<'a>, mode: Mode<'a>) -> Self {
        let cursor = match mode {
            Mode::Collect(set) | Mode::Unordered(set) | Mode::Measure(set) => Some(set.cursor()),
            Mode::Ordered | Mode::OrderedList | Mode::List => None,
        };
        let lists = matches!(mode, Mode::List | Mode::OrderedList);
        Self {
            task: *task,
            ordered: matches!(mode, Mode::Ordered | Mode::Collect(_) | Mode::OrderedList),
            counts: !matches!(mode, Mode::Measure(_)),
            lists,
            collects: cursor.is_some() || lists,
            cursor,
            misfit: None,
            classes: ClassSlots::default(),
            tallies: Vec::new(),
            stack_chunk: task.stack_chunk,
            prev: Prev { id: NOTHING, what: PreviousObject::StackChunk },
            next_class: NOTHING,
            run_first: NOTHING,
            run_start: 0,
            run_end: 0,
            lowest: u64::MAX,
            highest: 0,
            objects: 0,
            runs: 0,
            counted: ScanResult::default(),
        }
    }

    /// Returns the reason why this worker could not continue, if any.
    pub(crate) fn misfit(&self) -> Option<Misfit> {
        self.misfit
    }

    /// Returns `true` if IDs do not ascend in long runs. Decided for each chunk alone, or from a count
    /// over the whole scan, so that the result does not depend on which thread took which chunk.
    pub(crate) fn is_unordered(&self) -> bool {
        self.counted.unordered
    }

    /// Resets the state for the next chunk.
    pub(crate) fn begin_chunk(&mut self) {
        self.break_run();
        (self.objects, self.runs) = (0, 0);
        (self.lowest, self.highest) = (u64::MAX, 0);
    }

    /// Ends a chunk: stores its last run and its range of IDs.
    pub(crate) fn end_chunk(&mut self, chunk: &RecordChunk) {
        self.break_run();
        if self.lowest <= self.highest && self.counts {
            let ids = ChunkIds { chunk: *chunk, lowest: self.lowest, highest: self.highest };
            push(&self.task, &mut self.misfit, &mut self.counted.chunk_ids, ids);
        }
    }

    /// Ends the current run: the next object does not follow the previous one.
    pub(crate) fn break_run(&mut self) {
        // Not `prev.id`: the highest ID is a valid one.
        if self.run_end > 0 {
            // Runs of a few objects are not an order: the scan will be repeated in another mode.
            self.runs += 1;
            self.counted.unordered |= self.runs > 1024 + self.objects / 16;
            let Self { run_first: first, run_start: start, run_end: end, prev: last, .. } = *self;
            push(&self.task, &mut self.misfit, &mut self.counted.runs, IdRun { first, last, start, end });
            self.lowest = self.lowest.min(self.run_first);
            self.highest = self.highest.max(self.prev.id);
        }
        self.prev.id = NOTHING;
        self.run_end = 0;
    }

    /// Counts a damaged region, and stores its problem unless too many are stored.
    pub(crate) fn problem(&mut self, problem: Problem) {
        if self.counts {
            self.counted.damaged_regions += 1;
            self.counted.skipped_bytes += problem.skipped_bytes;
            if self.counted.problems.len() < MAX_PROBLEMS {
                self.counted.problems.push(problem);
            }
        }
    }

    /// Returns the counts of this worker.
    pub(crate) fn finish(mut self) -> ScanResult {
        if let (true, None, Some(cursor)) = (self.counts, self.misfit, &mut self.cursor) {
            self.misfit = cursor.flush(&mut self.counted.repeated, self.task.allowance).err();
        }
        let allowance = self.task.allowance;
        if self.misfit.is_none() && allowance.take(map_bytes::<Tally>(self.tallies.len())).is_err() {
            self.misfit = Some(Misfit::Memory);
        }
        self.counted.misfit = self.misfit;
        // The result of a scan that had to stop is not used.
        if self.misfit.is_none() {
            let freed = bytes::<(Tally, u64)>(self.tallies.capacity()).saturating_add(self.classes.bytes());
            self.counted.tallies.reserve(self.tallies.len());
            let tallies = self.tallies.into_iter().map(|(tally, _)| tally);
            self.counted.tallies.extend(self.classes.ids.into_iter().zip(tallies));
            allowance.give_back(freed);
        }
        self.counted
    }

    #[inline(always)]
    fn trace(&mut self, TraceSerial(trace): TraceSerial) {
        self.counted.max_trace = self.counted.max_trace.max(trace);
        self.counted.max_trace_complement = self.counted.max_trace_complement.max(!trace);
    }

    /// Adds an object in address order: the distance of the previous one is now known.
    #[inline(always)]
    fn object(
        &mut self,
        ObjectId(id): ObjectId,
        trace: TraceSerial,
        what: PreviousObject,
        record: Range<usize>,
    ) {
        self.objects += 1;
        self.counted.id_bits |= id;
        self.trace(trace);
        if self.ordered {
            // Without a previous object, `prev.id` is the highest number.
            if id > self.prev.id {
                if id >= self.next_class {
                    self.pass_classes(id);
                } else {
                    self.settle(id - self.prev.id);
                }
            } else {
                self.begin_run(id, record.start);
            }
            self.prev = Prev { id, what };
            self.run_end = record.end;
            if self.collects {
                self.collect(id);
            }
        } else {
            self.unordered_object(id, what);
        }
    }

    /// Sets the distance of the previous object.
    #[inline(always)]
    fn settle(&mut self, bytes: u64) {
        match self.prev.what {
            PreviousObject::Instance { slot, .. } => {
                if let Some((tally, _)) = self.tallies.get_mut(slot as usize) {
                    tally.distance.see(bytes);
                }
            }
            PreviousObject::Array { kind, length } => {
                self.counted.short.record(usize::from(kind), length, bytes)
            }
            PreviousObject::StackChunk => {
                if let Some((_, distance)) = self.counted.stack_chunks.last_mut() {
                    *distance = Some(bytes);
                }
            }
        }
    }

    /// Handles class objects between the previous object and `id`: they are its neighbors.
    #[cold]
    fn pass_classes(&mut self, id: u64) {
        let between = classes_between(self.task.class_ids, self.prev.id, id);
        // Ascending runs that do not overlap pass each class once. The count is over the whole scan, so
        // whether it grows too high does not depend on which thread counts.
        let passed = self.task.passed.fetch_add(between.len(), Ordering::Relaxed) + between.len();
        self.counted.unordered |= passed > 1024 + 2 * self.task.class_ids.len();
        if let Some((first, rest)) = between.split_first() {
            self.settle(first - self.prev.id);
            let mut at = *first;
            for next in rest.iter().chain([&id]) {
                push(&self.task, &mut self.misfit, &mut self.counted.class_distances, (at, next - at));
                at = *next;
            }
        } else {
            self.settle(id - self.prev.id);
        }
        self.watch_above(id);
    }

    #[cold]
    fn begin_run(&mut self, id: u64, start: usize) {
        self.break_run();
        (self.run_first, self.run_start) = (id, start);
        self.watch_above(id);
    }

    fn watch_above(&mut self, id: u64) {
        let at = self.task.class_ids.partition_point(|class| *class <= id);
        if at.checked_sub(1).and_then(|at| self.task.class_ids.get(at)) == Some(&id) && self.counts {
            // An object with the ID of a class object; whether that class is dumped is determined later.
            push(&self.task, &mut self.misfit, &mut self.counted.repeated, id);
        }
        self.next_class = self.task.class_ids.get(at).copied().unwrap_or(NOTHING);
    }

    #[inline]
    fn collect(&mut self, id: u64) {
        if self.lists {
            push(&self.task, &mut self.misfit, &mut self.counted.ids, id);
        } else if let Some(cursor) = &mut self.cursor
            && let Err(why) = cursor.insert(id, &mut self.counted.repeated, self.task.allowance)
        {
            self.misfit = Some(why);
        }
    }

    #[inline(never)]
    fn unordered_object(&mut self, id: u64, what: PreviousObject) {
        if self.counts {
            self.lowest = self.lowest.min(id);
            self.highest = self.highest.max(id);
            self.collect(id);
        } else if let Some(bytes) = self.cursor.as_mut().and_then(|cursor| cursor.distance_to_next(id))
            // Numbers of flattened objects are not addresses.
            && (id | bytes).trailing_zeros() >= 3
        {
            self.prev = Prev { id, what };
            self.settle(bytes);
        }
    }

    /// Returns the slot of a class in this thread's tables.
    #[inline(always)]
    fn slot(&mut self, class: ObjectId) -> u32 {
        match self.classes.find(class) {
            Some(slot) => slot,
            None => self.new_slot(class),
        }
    }

    #[cold]
    fn new_slot(&mut self, class: ObjectId) -> u32 {
        let expected = self.task.known.class(class).flatten().unwrap_or(ANY_LENGTH);
        let row = (Tally::default(), expected);
        let added = self.task.allowance.push(&mut self.tallies, row);
        match added.and_then(|()| self.classes.add(class, self.task.allowance)) {
            Ok(slot) => slot,
            Err(_) => {
                self.misfit = Some(Misfit::Memory);
                // Without a slot, nothing is counted any more.
                u32::MAX
            }
        }
    }

    /// Returns empty lengths for an array class.
    #[cold]
    fn new_lengths(task: &Task<'_>, misfit: &mut Option<Misfit>) -> Box<Lengths<OBJECT_LENGTHS>> {
        if task.allowance.take(LENGTHS_BYTES).is_err() {
            *misfit = Some(Misfit::Memory);
        }
        Box::default()
    }
}

impl<'a> HeapVisitor<'a> for Worker<'a> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        let slot = self.slot(record.class);
        let mut what = PreviousObject::Instance { class: record.class, slot };
        if self.counts
            && let Some((tally, expected)) = self.tallies.get_mut(slot as usize)
        {
            tally.objects += 1;
            tally.mismatched += u64::from(record.fields.len() as u64 != *expected && *expected != ANY_LENGTH);
        }
        if Some(record.class) == self.stack_chunk {
            what = PreviousObject::StackChunk;
        }
        self.object(record.id, record.trace, what, record.offset..record.end);
        if matches!(what, PreviousObject::StackChunk) {
            // After `object`, which sets the distance of the previous stack chunk.
            push(&self.task, &mut self.misfit, &mut self.counted.stack_chunks, (record.offset, None));
            if let (false, false, Some(cursor)) = (self.ordered, self.counts, &mut self.cursor) {
                let distance = cursor.distance_to_next(record.id.0);
                if let Some((_, last)) = self.counted.stack_chunks.last_mut() {
                    *last = distance;
                }
            }
        }
    }

    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        if self.counts {
            let slot = self.slot(record.class);
            if let Some((tally, _)) = self.tallies.get_mut(slot as usize) {
                tally.objects += 1;
                let lengths = || Self::new_lengths(&self.task, &mut self.misfit);
                tally.lengths.get_or_insert_with(lengths).see(record.length);
            }
            if record.elements.len() as u64 > HOTSPOT_MAX_ARRAY_BYTES {
                self.counted.cut_object_arrays += 1;
            }
        }
        // The size of an array of flattened objects says nothing about the layout.
        let is_flat = self.task.last_flat > 0
            && be_ids(record.elements, self.task.id_size)
                .find(|id| !id.is_null())
                .is_some_and(|id| id.0 <= self.task.last_flat);
        let length = if is_flat { u32::MAX } else { record.length };
        let what = PreviousObject::Array { kind: 0, length };
        self.object(record.id, record.trace, what, record.offset..record.end);
    }

    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let kind = array_kind(record.element);
        if self.counts {
            if let Some(lengths) = self.counted.primitive.get_mut(kind.wrapping_sub(1)) {
                lengths.see(record.length);
            }
            if let Some(elements) = record.elements {
                self.counted.cut_primitive_arrays +=
                    u64::from(elements.len() as u64 > HOTSPOT_MAX_ARRAY_BYTES);
                if let Some(fill) = self.counted.fills.get_mut(kind.wrapping_sub(1)) {
                    fill.see(record.element, record.length, elements);
                }
            }
        }
        // There are nine kinds.
        #[allow(clippy::cast_possible_truncation)]
        let kind = kind as u8;
        let what = PreviousObject::Array { kind, length: record.length };
        self.object(record.id, record.trace, what, record.offset..record.end);
    }

    fn class(&mut self, record: ClassDump<'a>) {
        self.trace(record.trace);
        if self.counts {
            push(&self.task, &mut self.misfit, &mut self.counted.class_dumps, (record.offset, record.id));
            self.counted.id_bits |= record.id.0;
            // A class that is dumped again is found and subtracted later: the class table contains one.
            // In list mode, classes are added at the end.
            if !self.lists {
                self.collect(record.id.0);
            }
        }
        // Distances of class objects need no second pass: `scan_dump` has their list.
    }

    fn root(&mut self, offset: usize, root: RootRecord) {
        if self.counts {
            let row = RootRow {
                id: root.id.into(),
                thread: root.thread.unwrap_or(NONE).into(),
                frame: root.frame.unwrap_or(NONE).into(),
                kind: root.kind.tag(),
            };
            push(&self.task, &mut self.misfit, &mut self.counted.roots, (U64::new(offset as u64), row));
        }
    }

    fn heap_info(&mut self, offset: usize, heap: u32, name: u64) {
        if self.counts {
            push(&self.task, &mut self.misfit, &mut self.counted.heaps, (offset, heap, name));
        }
    }

    #[inline(always)]
    fn go_on(&mut self) -> bool {
        self.misfit.is_none() && !self.counted.unordered
    }
}

/// Initial capacity of a thread's table of classes.
const FIRST_PLACES: usize = 1024;

/// Class ID -> slot: open addressing with linear probing, at most half full.
///
/// The order of slots does not affect the result, so the hash may be seeded: no file can choose IDs that
/// collide.
#[derive(Debug)]
struct ClassSlots {
    hash: IdHash,
    /// Class ID and slot + 1; 0 marks a free entry.
    table: Vec<(ObjectId, u32)>,
    ids: Vec<ObjectId>,
    last: (ObjectId, u32),
}

impl Default for ClassSlots {
    fn default() -> Self {
        Self {
            hash: IdHash::default(),
            table: vec![(ObjectId::NULL, 0); FIRST_PLACES],
            ids: Vec::new(),
            last: (ObjectId::NULL, u32::MAX),
        }
    }
}

impl ClassSlots {
    /// Returns the memory that [`ClassSlots::add`] has taken, in bytes.
    fn bytes(&self) -> u64 {
        let table = if self.table.len() > FIRST_PLACES { self.table.len() } else { 0 };
        bytes::<(ObjectId, u32)>(table).saturating_add(bytes::<ObjectId>(self.ids.capacity()))
    }

    /// Returns the index at which the search for `class` starts.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn home(&self, class: ObjectId) -> usize {
        self.hash.mix(class.0) as usize & (self.table.len() - 1)
    }

    #[inline(always)]
    fn find(&mut self, class: ObjectId) -> Option<u32> {
        if self.last.0 == class && self.last.1 != u32::MAX {
            return Some(self.last.1);
        }
        let mut at = self.home(class);
        loop {
            match self.table.get(at) {
                Some((id, slot)) if *slot != 0 && *id == class => {
                    self.last = (class, slot - 1);
                    return Some(slot - 1);
                }
                Some((_, 0)) | None => return None,
                Some(_) => at = (at + 1) & (self.table.len() - 1),
            }
        }
    }

    fn add(&mut self, class: ObjectId, allowance: &Allowance) -> Result<u32, NoMemory> {
        if (self.ids.len() + 1) * 2 > self.table.len() {
            let len = self.table.len() * 4;
            allowance.take(bytes::<(ObjectId, u32)>(len))?;
            let old = std::mem::replace(&mut self.table, vec![(ObjectId::NULL, 0); len]);
            for (id, slot) in old.into_iter().filter(|(_, slot)| *slot != 0) {
                self.place(id, slot);
            }
            if len / 4 > FIRST_PLACES {
                allowance.give_back(bytes::<(ObjectId, u32)>(len / 4));
            }
        }
        allowance.push(&mut self.ids, class)?;
        // A dump of 2^32 classes would contain over 100 GB of classes alone.
        let slot = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.place(class, slot);
        Ok(slot - 1)
    }

    fn place(&mut self, class: ObjectId, slot: u32) {
        let mut at = self.home(class);
        while self.table.get(at).is_some_and(|(_, taken)| *taken != 0) {
            at = (at + 1) & (self.table.len() - 1);
        }
        if let Some(free) = self.table.get_mut(at) {
            *free = (class, slot);
        }
    }
}
