//! Description of all objects, by object index: class, shallow size, and referenced objects.
//!
//! The reference model is that of Eclipse MAT. An object refers to its class object; that edge is not
//! listed, as the class of each object is known. An instance refers to the objects in its reference
//! fields, an array to its elements, a class object to its superclass, its loader and the objects in its
//! static fields. A thread also refers to its locals. Signers, protection domains and constant pools do
//! not count.

use std::io;
use std::ops::Range;

use rayon::prelude::*;

use super::address_index::AddressIndex;
use super::describer::{CHUNK, ChunkDescriptions, Describe, Describer, DescriberInput};
use super::object_table::{BLOCK, RecordPlaces, width};
use super::placing::{self, ClassObjectPlace, FoundPlaces, InOrder, Placer, Placing};
use crate::graph::adjacency::EncodedLists;
use crate::graph::numbers;
use crate::graph::order::Weights;
use crate::model::dangling::{MissingCounter, MissingObjects};
use crate::records::chunks::{AscendingRun, Plan};
use crate::storage::scratch::Array;
use hprof_input::progress::Progress;
use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::ObjectId;

/// Chunks per thread that are described before they are written.
const WAVE: u32 = 4;

/// Class and weight of each object, and counts of dangling references.
pub(crate) struct ObjectDescriptions {
    /// Class numbers, `class_bytes` bytes each, little-endian.
    pub(crate) classes: Array<u8>,
    pub(crate) class_bytes: u8,
    pub(crate) weights: Weights,
    /// Dangling references, if references were read.
    pub(crate) missing: MissingObjects,
}

type TakeRows<'r> = Option<&'r mut (dyn FnMut(EncodedLists) -> io::Result<()> + Send)>;

impl Describe<'_> {
    /// Describes all objects and finds the offsets of their records. Passes the adjacency lists to `rows` in order.
    ///
    /// If IDs ascend in the file, a single walk over it is enough.
    ///
    /// # Errors
    /// Returns the errors of `rows`.
    pub(crate) fn place(
        &self,
        plan: &Plan,
        rows: &mut (dyn FnMut(EncodedLists) -> io::Result<()> + Send),
        progress: &dyn Progress,
    ) -> io::Result<(ObjectDescriptions, RecordPlaces)> {
        let Self { room, source, addresses, classes, .. } = *self;
        let placing = Placing { room, source, addresses, classes };
        let Some(order) = &plan.order else {
            let places = placing::place(&placing, plan, progress)?;
            let described = self.of_places(&places, Some(rows), progress)?;
            return Ok((described, places));
        };
        let parts = RunChunk::split_runs(order, addresses);
        let mut in_order = InOrder::new(room, addresses.objects())?;
        let mut take = |found: &FoundPlaces| in_order.take(found);
        let make = |shared: &DescriberInput<'_>, part: &RunChunk| shared.part(order, part);
        let described = self.run(&parts, |part| &part.objects, make, &mut take, Some(rows), progress)?;
        Ok((described, in_order.finish(&placing)?))
    }

    /// Describes all objects, given the offsets of their records.
    ///
    /// # Errors
    /// Returns the errors of `rows`.
    pub(crate) fn of_places(
        &self,
        places: &RecordPlaces,
        rows: TakeRows<'_>,
        progress: &dyn Progress,
    ) -> io::Result<ObjectDescriptions> {
        let chunks = numbers::chunks(0..self.addresses.objects(), CHUNK);
        let make = |shared: &DescriberInput<'_>, chunk: &Range<u32>| shared.chunk(places, chunk);
        self.run(&chunks, |chunk| chunk, make, &mut |_| Ok(()), rows, progress)
    }

    /// Describes all objects, chunk by chunk.
    fn run<U: Sync>(
        &self,
        mut units: &[U],
        objects_of: impl Fn(&U) -> &Range<u32>,
        make: impl Fn(&DescriberInput<'_>, &U) -> io::Result<ChunkDescriptions> + Sync,
        found: &mut (dyn FnMut(&FoundPlaces) -> io::Result<()> + Send),
        mut rows: TakeRows<'_>,
        progress: &dyn Progress,
    ) -> io::Result<ObjectDescriptions> {
        let objects = self.addresses.objects();
        let class_bytes = width(self.summary.classes().len() as u64);
        let shared = DescriberInput::new(self, class_bytes, rows.is_some());
        let mut described = ObjectDescriptions {
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
        let wave = u64::from(WAVE * CHUNK) * rayon::current_num_threads() as u64;
        let mut ready: Vec<ChunkDescriptions> = Vec::new();
        // Offsets of the next classes and weights.
        let mut at = (0, 0);
        while !units.is_empty() || !ready.is_empty() {
            let mut objects = 0;
            let is_next = |unit: &&U| {
                let before = objects;
                objects += objects_of(unit).len() as u64;
                before < wave
            };
            let (next, rest) = units.split_at(units.iter().take_while(is_next).count());
            units = rest;
            // Finished chunks are written while the next ones are described.
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
                    let made = next.par_iter().map(|unit| {
                        let made = make(&shared, unit)?;
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

/// Returns the error for IDs that are not in the order that the scan found.
fn out_of_order() -> io::Error {
    io::Error::other("the dump changed while it was read")
}

/// Copies bytes into a column at `at`, and advances `at`.
fn put(column: &mut [u8], at: &mut usize, bytes: &[u8]) -> io::Result<()> {
    let place = column.get_mut(*at..*at + bytes.len());
    place.ok_or_else(|| io::Error::other("internal error: more rows than objects"))?.copy_from_slice(bytes);
    *at += bytes.len();
    Ok(())
}

/// Ascending runs of records that one thread describes as one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunChunk {
    /// Range of the runs.
    runs: Range<usize>,
    /// Range of object indices. Class objects immediately before a run belong to the preceding chunk.
    objects: Range<u32>,
}

impl RunChunk {
    /// Divides all runs into chunks.
    fn split_runs(order: &[AscendingRun], addresses: &AddressIndex) -> Vec<Self> {
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

impl DescriberInput<'_> {
    /// Describes a chunk of objects, given the offsets of their records.
    fn chunk(&self, places: &RecordPlaces, objects: &Range<u32>) -> io::Result<ChunkDescriptions> {
        let mut describer = Describer::new(self, objects.start);
        for block in objects.start / BLOCK..objects.end.div_ceil(BLOCK) {
            let count = BLOCK.min(objects.end - block * BLOCK);
            places.visit(self.bytes, self.id_size, block, count, &mut describer, Describer::end_object);
        }
        describer.finish()
    }

    /// Describes the objects of the runs of a chunk, in file order.
    fn part(&self, order: &[AscendingRun], part: &RunChunk) -> io::Result<ChunkDescriptions> {
        let RunChunk { runs, objects } = part;
        let classes = self.what.classes;
        let classes = classes.get(classes.partition_point(|class| class.index < objects.start)..);
        let mut walker = RunWalker {
            describer: Describer::new(self, objects.start),
            placer: Placer::new(self.what.addresses.objects(), FoundPlaces::default()),
            classes: classes.unwrap_or_default().iter(),
            next_class: u32::MAX,
            end: objects.end,
        };
        walker.watch();
        for run in order.get(runs.clone()).unwrap_or_default() {
            // All of it was read before, so it is not damaged.
            heap::walk(self.bytes, self.id_size, run.start, run.end, run.end, &mut walker);
        }
        walker.classes();
        let RunWalker { mut placer, describer, .. } = walker;
        placer.end_run();
        if describer.index != objects.end {
            return Err(out_of_order());
        }
        Ok(ChunkDescriptions { found: placer.sink, ..describer.finish()? })
    }
}

/// Describes the objects of ascending records, and the class objects between them.
struct RunWalker<'s, 'c> {
    describer: Describer<'s>,
    placer: Placer<FoundPlaces>,
    /// Class objects after the next one.
    classes: std::slice::Iter<'c, ClassObjectPlace>,
    /// Object index of the next class object.
    next_class: u32,
    /// End of the chunk's object indices (exclusive).
    end: u32,
}

impl RunWalker<'_, '_> {
    fn watch(&mut self) {
        let next = self.classes.as_slice().first();
        self.next_class = next.map_or(u32::MAX, |class| class.index);
    }

    /// Describes the class objects that come before the current object.
    #[cold]
    fn classes(&mut self) {
        while self.describer.index == self.next_class && self.next_class < self.end {
            if let Some(class) = self.classes.next() {
                self.describer.class_dump(class.id);
                self.describer.end_object();
            }
            self.watch();
        }
    }

    /// Starts an object: advances its index.
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
