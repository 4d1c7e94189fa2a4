//! Construction of the table of record offsets.
//!
//! A [`Placer`] receives the objects in file order and finds runs of contiguous records. Blocks that one run
//! covers need one offset; the objects of other blocks are stored separately. Where IDs ascend in the file,
//! the object indices are known; elsewhere a walk over all records looks up each ID.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use roaring::RoaringBitmap;
use zerocopy::little_endian::U64;

use hprof_parser::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use hprof_values::ObjectId;

use super::address_index::AddressIndex;
use super::object_table::{BLOCK, RecordPlaces, SkipVisitor, width};
use crate::graph::numbers::ObjectIndex;
use crate::model::summary::Summary;
use crate::records::chunks::Plan;
use crate::records::source::DumpBytes;
use crate::storage::scratch::{Array, ScratchArena, atomic_u64};
use hprof_input::progress::Progress;

/// Marker for an offset that is not set: an irregular block, or an object of a regular one. No record starts
/// at offset 0.
const APART: u64 = 0;

/// Limit of separately stored objects in a list: this share of all objects plus a constant.
const LISTED: usize = 64;
const LISTED_ANYWAY: usize = 1 << 10;

/// Returns the maximum number of listed objects of `objects` objects.
fn most_listed(objects: usize) -> usize {
    LISTED_ANYWAY + objects / LISTED
}

/// Receiver of the results of a [`Placer`].
pub(super) trait PlaceSink {
    /// Stores the offset of a block whose records are contiguous.
    fn block(&mut self, block: u32, offset: u64);
    /// Stores the offsets of objects of an irregular block, from `first` on.
    fn separate_objects(&mut self, first: u32, offsets: &[u64]);
}

/// A run of objects of one block with contiguous records.
#[derive(Debug, Clone, Copy, Default)]
struct BlockRun {
    first: u32,
    count: u32,
    offset: usize,
    /// End offset of the last record (exclusive).
    end: usize,
}

/// Receiver of objects in file order that finds runs of contiguous records.
pub(super) struct Placer<S> {
    /// Number of all objects.
    objects: u32,
    run: BlockRun,
    /// Offsets of the run's objects.
    offsets: [u64; BLOCK as usize],
    pub(super) sink: S,
}

impl<S: PlaceSink> Placer<S> {
    pub(super) fn new(objects: u32, sink: S) -> Self {
        Self { objects, run: BlockRun::default(), offsets: [0; BLOCK as usize], sink }
    }

    /// Adds an object with the start and the end of its record.
    #[inline(always)]
    pub(super) fn object(&mut self, index: u32, offset: usize, end: usize) {
        let run = self.run;
        let follows = run.count > 0
            && index == run.first + run.count
            && run.end == offset
            && !index.is_multiple_of(BLOCK);
        if !follows {
            self.end_run();
            self.run = BlockRun { first: index, count: 0, offset, end };
        }
        if let Some(place) = self.offsets.get_mut(self.run.count as usize) {
            *place = offset as u64;
        }
        self.run.count += 1;
        self.run.end = end;
    }

    /// Stores the current run: as a whole block, or as separate objects.
    pub(super) fn end_run(&mut self) {
        let BlockRun { first, count, offset, .. } = std::mem::take(&mut self.run);
        let whole = BLOCK.min(self.objects.saturating_sub(first));
        if first.is_multiple_of(BLOCK) && count == whole {
            self.sink.block(first / BLOCK, offset as u64);
        } else {
            self.sink.separate_objects(first, self.offsets.get(..count as usize).unwrap_or_default());
        }
    }
}

/// Results of a [`Placer`] for a chunk of the file.
#[derive(Debug, Default)]
pub(super) struct FoundPlaces {
    /// Blocks and their offsets.
    blocks: Vec<(u32, u64)>,
    /// Separately stored objects and their offsets.
    apart: Vec<(u32, u64)>,
}

impl PlaceSink for FoundPlaces {
    fn block(&mut self, block: u32, offset: u64) {
        self.blocks.push((block, offset));
    }

    fn separate_objects(&mut self, first: u32, offsets: &[u64]) {
        self.apart.extend((first..).zip(offsets.iter().copied()));
    }
}

/// Offsets of separately stored objects.
enum SeparateOffsets {
    /// Pairs of object index and offset, ascending.
    Listed(Vec<(u32, u64)>),
    /// Offset or [`APART`], by object index.
    All(Array<u64>),
}

impl SeparateOffsets {
    /// Returns the blocks of these objects, with repetitions.
    fn blocks(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Listed(list) => Box::new(list.iter().map(|(index, _)| index / BLOCK)),
            Self::All(all) => {
                let own = (0u32..).zip(all.chunks(BLOCK as usize));
                Box::new(
                    own.filter(|(_, own)| own.iter().any(|offset| *offset != APART)).map(|(block, _)| block),
                )
            }
        }
    }

    /// Copies the offsets of a block's separately stored objects to `places`.
    fn put(&self, block: u32, places: &mut [u64; BLOCK as usize]) {
        match self {
            Self::Listed(list) => {
                let from = list.partition_point(|(index, _)| index / BLOCK < block);
                let own = list.get(from..).unwrap_or_default().iter();
                for (index, offset) in own.take_while(|(index, _)| index / BLOCK == block) {
                    // Of a repeated object, the last record counts: it is the last of the pairs with its
                    // index.
                    if let Some(place) = places.get_mut((index % BLOCK) as usize) {
                        *place = *offset;
                    }
                }
            }
            Self::All(all) => {
                let first = block as usize * BLOCK as usize;
                let own = all.get(first..all.len().min(first + BLOCK as usize)).unwrap_or_default();
                places.iter_mut().zip(own).for_each(|(place, offset)| *place = *offset);
            }
        }
    }
}

/// Collects the results for the chunks of a file with ascending IDs, in file order.
pub(super) struct InOrder {
    room: ScratchArena,
    objects: usize,
    /// Offset of the first record or [`APART`], by block.
    blocks: Array<u64>,
    apart: SeparateOffsets,
}

impl InOrder {
    pub(super) fn new(room: &ScratchArena, objects: u32) -> io::Result<Self> {
        let objects = objects as usize;
        let blocks = room.zeroed_array::<u64>(objects.div_ceil(BLOCK as usize))?;
        Ok(Self { room: room.clone(), objects, blocks, apart: SeparateOffsets::Listed(Vec::new()) })
    }

    /// Adds the results of the next chunk.
    pub(super) fn take(&mut self, found: &FoundPlaces) -> io::Result<()> {
        for (block, offset) in &found.blocks {
            if let Some(place) = self.blocks.get_mut(*block as usize) {
                *place = *offset;
            }
        }
        if let SeparateOffsets::Listed(list) = &self.apart
            && list.len() + found.apart.len() > most_listed(self.objects)
        {
            // Short runs: a list would take more than a column.
            let mut all = self.room.zeroed_array::<u64>(self.objects)?;
            put_all(&mut all, list);
            self.apart = SeparateOffsets::All(all);
        }
        match &mut self.apart {
            SeparateOffsets::Listed(list) => list.extend_from_slice(&found.apart),
            SeparateOffsets::All(all) => put_all(all, &found.apart),
        }
        Ok(())
    }

    /// Makes the table of record offsets.
    pub(super) fn finish(self, what: &Placing<'_>) -> io::Result<RecordPlaces> {
        what.table(&self.blocks, &self.apart)
    }
}

fn put_all(all: &mut [u64], apart: &[(u32, u64)]) {
    for (index, offset) in apart {
        if let Some(place) = all.get_mut(*index as usize) {
            *place = *offset;
        }
    }
}

/// Input for finding the offsets of all objects' records.
pub(super) struct Placing<'a> {
    pub(super) room: &'a ScratchArena,
    pub(super) source: &'a DumpBytes<'a>,
    pub(super) addresses: &'a AddressIndex,
    /// Class objects, ascending.
    pub(super) classes: &'a [ClassObjectPlace],
}

/// Walks over all records in any order, and finds the offset of every object's record.
pub(super) fn place(what: &Placing<'_>, plan: &Plan, progress: &dyn Progress) -> io::Result<RecordPlaces> {
    let count = what.addresses.objects() as usize;
    let mut blocks = what.room.zeroed_array::<u64>(count.div_ceil(BLOCK as usize))?;
    let (list, too_many) = (Mutex::default(), AtomicBool::new(false));
    let apart =
        SharedOffsets::Listed { list, count: AtomicUsize::new(0), most: most_listed(count), too_many };
    let shared = SharedPlacing { addresses: what.addresses, blocks: atomic_u64(&mut blocks), apart };
    if walk(&shared, what.source, plan, progress)
        && let SharedOffsets::Listed { list, .. } = shared.apart
    {
        let mut apart = list.into_inner().unwrap_or_else(PoisonError::into_inner);
        apart.par_sort_unstable();
        return what.table(&blocks, &SeparateOffsets::Listed(apart));
    }
    blocks.fill(APART);
    let mut all = what.room.zeroed_array::<u64>(count)?;
    let shared = SharedPlacing {
        addresses: what.addresses,
        blocks: atomic_u64(&mut blocks),
        apart: SharedOffsets::All(atomic_u64(&mut all)),
    };
    walk(&shared, what.source, plan, progress);
    what.table(&blocks, &SeparateOffsets::All(all))
}

/// Data shared by the threads of a walk.
struct SharedPlacing<'s> {
    addresses: &'s AddressIndex,
    /// Offset of the first record or [`APART`], by block.
    blocks: &'s [AtomicU64],
    apart: SharedOffsets<'s>,
}

/// Collects the objects of irregular blocks from all threads.
enum SharedOffsets<'s> {
    /// Pairs of object index and offset, up to `most`; with more, the walk is repeated with the other
    /// variant.
    Listed { list: Mutex<Vec<(u32, u64)>>, count: AtomicUsize, most: usize, too_many: AtomicBool },
    /// Offset or [`APART`], by object index. With unordered IDs nearly all objects are here.
    All(&'s [AtomicU64]),
}

/// Walks over all records. Returns `true` if all separate objects were stored.
fn walk(shared: &SharedPlacing<'_>, source: &DumpBytes<'_>, plan: &Plan, progress: &dyn Progress) -> bool {
    let is_over = || match &shared.apart {
        SharedOffsets::Listed { too_many, .. } => too_many.load(Ordering::Relaxed),
        SharedOffsets::All(_) => false,
    };
    progress
        .begin("locating objects", plan.chunks.iter().map(|chunk| (chunk.end - chunk.start) as u64).sum());
    plan.chunks.par_iter().for_each(|chunk| {
        if is_over() {
            return;
        }
        let sink = SharedSink { shared, apart: Vec::new() };
        let mut walker = Walker(Placer::new(shared.addresses.objects(), sink));
        plan.walk(source, chunk, &mut walker, |walker| walker.0.end_run());
        walker.0.end_run();
        let mut apart = walker.0.sink.apart;
        if let SharedOffsets::Listed { list, count, most, too_many } = &shared.apart {
            let before = count.fetch_add(apart.len(), Ordering::Relaxed);
            if before + apart.len() > *most {
                too_many.store(true, Ordering::Relaxed);
            } else {
                list.lock().unwrap_or_else(PoisonError::into_inner).append(&mut apart);
            }
        }
        progress.advance((chunk.end - chunk.start) as u64);
    });
    progress.end();
    !is_over()
}

/// Sink of one thread that stores its results in the shared tables.
struct SharedSink<'s> {
    shared: &'s SharedPlacing<'s>,
    apart: Vec<(u32, u64)>,
}

impl PlaceSink for SharedSink<'_> {
    fn block(&mut self, block: u32, offset: u64) {
        if let Some(block) = self.shared.blocks.get(block as usize) {
            // Of several runs over repeated objects, the last counts.
            block.fetch_max(offset, Ordering::Relaxed);
        }
    }

    fn separate_objects(&mut self, first: u32, offsets: &[u64]) {
        match self.shared.apart {
            SharedOffsets::Listed { .. } => self.apart.extend((first..).zip(offsets.iter().copied())),
            // Of a repeated object, the last record counts.
            SharedOffsets::All(all) => {
                for (place, offset) in all.iter().skip(first as usize).zip(offsets) {
                    place.fetch_max(*offset, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Walk of one thread over a chunk: looks up each object.
struct Walker<'s>(Placer<SharedSink<'s>>);

impl Walker<'_> {
    #[inline]
    fn object(&mut self, id: ObjectId, offset: usize, end: usize) {
        if let Some(ObjectIndex(index)) = self.0.sink.shared.addresses.index_of(id) {
            self.0.object(index, offset, end);
        }
    }
}

impl<'a> HeapVisitor<'a> for Walker<'_> {
    #[inline(always)]
    fn instance(&mut self, record: Instance<'a>) {
        self.object(record.id, record.offset, record.end);
    }
    #[inline(always)]
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.object(record.id, record.offset, record.end);
    }
    #[inline(always)]
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.object(record.id, record.offset, record.end);
    }
}

/// Object index and record offset of a class object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassObjectPlace {
    /// Object index.
    pub(crate) index: u32,
    /// Offset of the CLASS DUMP that is used, even if other objects have its ID.
    pub(super) offset: u64,
    pub(super) id: ObjectId,
}

/// Returns all dumped class objects, ascending by object index.
pub(crate) fn class_objects(summary: &Summary, addresses: &AddressIndex) -> Vec<ClassObjectPlace> {
    let dumped = summary.classes().iter().filter(|row| row.is_dumped());
    let mut objects: Vec<ClassObjectPlace> = dumped
        .filter_map(|row| {
            let id = row.id.into();
            Some(ClassObjectPlace { index: addresses.index_of(id)?.0, offset: row.offset.get(), id })
        })
        .collect();
    objects.sort_unstable();
    // In a malformed file: the last one counts.
    objects.dedup_by(|later, kept| {
        let is_same = later.index == kept.index;
        if is_same {
            *kept = *later;
        }
        is_same
    });
    objects
}

/// Returns the object indices of class objects.
pub(crate) fn indices(classes: &[ClassObjectPlace]) -> RoaringBitmap {
    classes.iter().map(|class| class.index).collect()
}

impl Placing<'_> {
    /// Makes the block table and the offsets of irregular blocks.
    fn table(&self, blocks: &[u64], apart: &SeparateOffsets) -> io::Result<RecordPlaces> {
        let Self { room, source, addresses, classes } = *self;
        let count = addresses.objects() as usize;
        let offset_bytes = width(source.bytes.len() as u64);
        let id_size = source.header.id_size;
        let own_classes = |block: u32| {
            let from = classes.partition_point(|class| class.index / BLOCK < block);
            let own = classes.get(from..).unwrap_or_default().iter();
            own.take_while(move |class| class.index / BLOCK == block)
        };
        // The number of rows of offsets is known once all blocks are looked up.
        let mut marks = vec![0u64; blocks.len().div_ceil(64)];
        let mut mark = |block: u32| {
            if let Some(word) = marks.get_mut((block / 64) as usize) {
                *word |= 1 << (block % 64);
            }
        };
        apart.blocks().chain(classes.iter().map(|class| class.index / BLOCK)).for_each(&mut mark);
        let mut table = room.array::<U64>(blocks.len())?;
        let mut rows = 0u64;
        for ((block, start), entry) in (0usize..).zip(blocks).zip(table.iter_mut()) {
            let is_marked = marks.get(block / 64).is_some_and(|word| word >> (block % 64) & 1 != 0);
            *entry = U64::new(start << 1);
            if *start == APART || is_marked {
                *entry = U64::new((rows << 1) | 1);
                rows += 1;
            }
        }
        let row_bytes = BLOCK as usize * usize::from(offset_bytes);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let mut offsets = room.array::<u8>(rows.checked_mul(row_bytes).ok_or(io::ErrorKind::OutOfMemory)?)?;
        let mut free = offsets.chunks_exact_mut(row_bytes);
        for ((block, start), entry) in (0u32..).zip(blocks).zip(table.iter()) {
            if entry.get() & 1 == 0 {
                continue;
            }
            let mut places = [0u64; BLOCK as usize];
            apart.put(block, &mut places);
            if *start != APART {
                // A block covered by a run with some objects stored separately: a repeated object. The
                // last record counts.
                let first = block as usize * BLOCK as usize;
                let mut at = usize::try_from(*start).unwrap_or(usize::MAX);
                for place in places.iter_mut().take(count - first) {
                    *place = (*place).max(at as u64);
                    at = heap::visit_one(source.bytes, id_size, at, source.bytes.len(), &mut SkipVisitor)
                        .unwrap_or(at);
                }
            }
            for class in own_classes(block) {
                if let Some(place) = places.get_mut((class.index % BLOCK) as usize) {
                    *place = class.offset;
                }
            }
            let row = free.next().unwrap_or_default();
            for (place, bytes) in places.into_iter().zip(row.chunks_exact_mut(usize::from(offset_bytes))) {
                let place = place.to_le_bytes();
                bytes.copy_from_slice(place.get(..usize::from(offset_bytes)).unwrap_or(&place));
            }
        }
        Ok(RecordPlaces { blocks: table.into(), offsets: offsets.into(), offset_bytes })
    }
}
