//! The stage `objects`: for each object, by object index, its class and the place of its record.
//!
//! Objects that follow one another in address order mostly follow one another in the file too. So the offset is kept
//! once for 64 objects, if their records are contiguous: the others are found by hopping over records. Blocks of
//! objects that lie apart (a segment ends, a class object stands between them, ids are in no order) list the offset of
//! each.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use roaring::RoaringBitmap;
use zerocopy::little_endian::U64;

use crate::hprof::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{IdSize, ObjectId};

use super::address_index::AddressIndex;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::model::summary::{ClassNumber, Summary};
use crate::index::scan::chunks::Plan;
use crate::index::scan::source::Source;
use crate::index::storage::checked_column::CheckedColumn;
use crate::index::storage::scratch::{ScratchArena, atomic_u64};
use crate::progress::Progress;

/// Objects that share an entry of the block table.
pub(crate) const BLOCK: u32 = 64;

/// For each object its class and the place of its record.
#[derive(Debug)]
pub struct Objects {
    /// Object id -> object index.
    pub addresses: AddressIndex,
    /// Class numbers, `class_bytes` bytes each, little-endian.
    pub(crate) classes: CheckedColumn<u8>,
    pub(crate) class_bytes: u8,
    pub(crate) places: Places,
    /// The object indices of class objects.
    pub(crate) class_objects: RoaringBitmap,
}

/// The places of all objects' records.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Per block: the offset of its first record shifted left by one; or, with bit 0 set, the number of its row in
    /// `offsets`.
    pub(crate) blocks: CheckedColumn<U64>,
    /// Offsets of the objects of irregular blocks, 64 to a row, `offset_bytes` bytes each, little-endian.
    pub(crate) offsets: CheckedColumn<u8>,
    pub(crate) offset_bytes: u8,
}

impl Places {
    fn block(&self, block: u32) -> Option<BlockPlace> {
        let entry = self.blocks.get(block as usize)?.get();
        let place = usize::try_from(entry >> 1).ok()?;
        if entry & 1 == 0 {
            return Some(BlockPlace::Run(place));
        }
        place.checked_mul(BLOCK as usize).map(BlockPlace::Apart)
    }

    fn offset(&self, bytes: &[u8], id_size: IdSize, index: u32) -> Option<u64> {
        let within = index % BLOCK;
        match self.block(index / BLOCK)? {
            BlockPlace::Apart(row) => {
                little_endian(&self.offsets, row.checked_add(within as usize)?, self.offset_bytes)
            }
            BlockPlace::Run(mut at) => {
                for _ in 0..within {
                    at = heap::visit_one(bytes, id_size, at, bytes.len(), &mut Hop).ok()?;
                }
                Some(at as u64)
            }
        }
    }

    /// Visits the records of the first `count` objects of a block, and calls `done` after each, with its place in the
    /// block.
    pub(crate) fn visit<'a, V: HeapVisitor<'a>>(
        &self,
        bytes: &'a [u8],
        id_size: IdSize,
        block: u32,
        count: u32,
        visitor: &mut V,
        mut done: impl FnMut(&mut V),
    ) {
        let mut place = self.block(block);
        for within in 0..count {
            let at = match place {
                Some(BlockPlace::Run(at)) => Some(at),
                Some(BlockPlace::Apart(row)) => {
                    let offset = little_endian(&self.offsets, row + within as usize, self.offset_bytes);
                    offset.and_then(|offset| usize::try_from(offset).ok())
                }
                None => None,
            };
            // Places are those of records that were read; in a dump that has changed since they may be no more.
            let next = at.and_then(|at| heap::visit_one(bytes, id_size, at, bytes.len(), visitor).ok());
            if let Some(BlockPlace::Run(_)) = place {
                place = next.map(BlockPlace::Run);
            }
            done(visitor);
        }
    }
}

/// Where the records of a block are.
#[derive(Debug, Clone, Copy)]
enum BlockPlace {
    /// One after another from this offset on.
    Run(usize),
    /// At the offsets in the rows from this one on.
    Apart(usize),
}

/// Hops over records.
struct Hop;
impl HeapVisitor<'_> for Hop {}

impl Objects {
    /// Number of objects.
    pub fn len(&self) -> u32 {
        self.addresses.objects()
    }

    /// The indices of all objects.
    pub fn all(&self) -> Range<ObjectIndex> {
        ObjectIndex(0)..ObjectIndex(self.len())
    }

    /// Reads and checks ids and classes; what is damaged sets the mark of the file.
    pub(crate) fn check(&self) {
        self.addresses.check();
        self.classes.all();
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The class of an object; of a class object that is java.lang.Class.
    pub fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        self.known_class(little_endian(&self.classes, object.at(), self.class_bytes)?)
    }

    /// The classes of some objects, in order: faster than one by one.
    pub fn classes(&self, objects: Range<ObjectIndex>) -> impl Iterator<Item = Option<ClassNumber>> + '_ {
        let width = usize::from(self.class_bytes);
        let (start, end) = (objects.start.at() * width, objects.end.0.min(self.len()) as usize * width);
        let rows = self.classes.rows(start..end.max(start)).unwrap_or_default();
        rows.chunks_exact(width.max(1)).map(move |bytes| self.known_class(number(bytes)))
    }

    #[inline]
    fn known_class(&self, number: u64) -> Option<ClassNumber> {
        // All bits set are no class: NONE, cut to the width.
        let none = u64::MAX.checked_shr(64 - u32::from(self.class_bytes) * 8).unwrap_or(0);
        u32::try_from(number).ok().filter(|_| number != none).map(ClassNumber)
    }

    /// The object indices of all class objects.
    pub fn class_objects(&self) -> &RoaringBitmap {
        &self.class_objects
    }

    /// The offset of an object's record in `bytes`, the dump.
    pub fn offset(&self, bytes: &[u8], id_size: IdSize, object: ObjectIndex) -> Option<u64> {
        if object.0 >= self.len() {
            return None;
        }
        self.places.offset(bytes, id_size, object.0)
    }
}

/// The number at row `at` of a column of `width` bytes each.
#[inline]
fn little_endian(column: &CheckedColumn<u8>, at: usize, width: u8) -> Option<u64> {
    let start = at.checked_mul(usize::from(width))?;
    let bytes = column.rows(start..start.checked_add(usize::from(width))?)?;
    Some(number(bytes))
}

/// The number of some bytes, little-endian.
#[inline]
fn number(bytes: &[u8]) -> u64 {
    // A loop over two bytes takes longer than all the rest.
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        _ => bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)),
    }
}

/// Bytes that hold every number up to `max`.
pub(crate) fn width(max: u64) -> u8 {
    // At most eight.
    #[allow(clippy::cast_possible_truncation)]
    let bytes = (64 - max.leading_zeros()).div_ceil(8).max(1) as u8;
    bytes
}

/// A block entry that is not set: the block's objects lie apart. No record starts at offset 0.
const APART: u64 = 0;

struct Shared<'s> {
    addresses: &'s AddressIndex,
    /// By block: the offset of the first record, or [`APART`].
    blocks: &'s [AtomicU64],
    apart: ApartSink<'s>,
}

/// Takes the objects of blocks that no single run of records covers.
enum ApartSink<'s> {
    /// Object index and offset. There may be so many; one more, and all is done again in the other way.
    Listed { list: Mutex<Vec<(u32, u64)>>, count: AtomicUsize, most: usize, too_many: AtomicBool },
    /// By object index: the offset, or [`APART`]. Where ids jump about nearly all objects are here.
    All(&'s [AtomicU64]),
}

/// One of so many objects may lie apart and be listed, and so many anyway.
const LISTED: usize = 64;
const LISTED_ANYWAY: usize = 1 << 10;

/// Finds the place of every object.
pub(crate) fn place(
    room: &ScratchArena,
    source: &Source<'_>,
    summary: &Summary,
    addresses: &AddressIndex,
    plan: &Plan,
    progress: &dyn Progress,
) -> io::Result<Places> {
    let count = addresses.objects() as usize;
    let class_places = class_places(summary, addresses);
    let mut blocks = room.zeroed::<u64>(count.div_ceil(BLOCK as usize))?;
    let most = LISTED_ANYWAY + count / LISTED;
    let (list, too_many) = (Mutex::default(), AtomicBool::new(false));
    let apart = ApartSink::Listed { list, count: AtomicUsize::new(0), most, too_many };
    let shared = Shared { addresses, blocks: atomic_u64(&mut blocks), apart };
    if walk(&shared, source, plan, progress)
        && let ApartSink::Listed { list, .. } = shared.apart
    {
        let mut apart = list.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Of a repeated object the last record counts: it is the last of the pairs with its index.
        apart.par_sort_unstable();
        let from = |block: u32| apart.partition_point(|(index, _)| index / BLOCK < block);
        let apart = |block: u32, places: &mut [u64; BLOCK as usize]| {
            let mut any = false;
            let own = apart.get(from(block)..).unwrap_or_default().iter();
            for (index, offset) in own.take_while(|(index, _)| index / BLOCK == block) {
                if let Some(place) = places.get_mut((index % BLOCK) as usize) {
                    (*place, any) = (*offset, true);
                }
            }
            any
        };
        return block_table(room, source, count, &blocks, &apart, &class_places);
    }
    blocks.fill(APART);
    let mut all = room.zeroed::<u64>(count)?;
    let shared =
        Shared { addresses, blocks: atomic_u64(&mut blocks), apart: ApartSink::All(atomic_u64(&mut all)) };
    walk(&shared, source, plan, progress);
    let apart = |block: u32, places: &mut [u64; BLOCK as usize]| {
        let first = block as usize * BLOCK as usize;
        let own = all.get(first..count.min(first + BLOCK as usize)).unwrap_or_default();
        places.iter_mut().zip(own).for_each(|(place, offset)| *place = *offset);
        own.iter().any(|offset| *offset != APART)
    };
    block_table(room, source, count, &blocks, &apart, &class_places)
}

/// Walks over all records. Tells whether all objects that lie apart were taken.
fn walk(shared: &Shared<'_>, source: &Source<'_>, plan: &Plan, progress: &dyn Progress) -> bool {
    let is_over = || match &shared.apart {
        ApartSink::Listed { too_many, .. } => too_many.load(Ordering::Relaxed),
        ApartSink::All(_) => false,
    };
    progress.begin("placing objects", plan.chunks.iter().map(|chunk| (chunk.end - chunk.start) as u64).sum());
    plan.chunks.par_iter().for_each(|chunk| {
        if is_over() {
            return;
        }
        let mut placer =
            Placer { shared, run: Run::default(), offsets: [0; BLOCK as usize], apart: Vec::new() };
        plan.walk(source, chunk, &mut placer, Placer::end_run);
        placer.end_run();
        if let ApartSink::Listed { list, count, most, too_many } = &shared.apart {
            let before = count.fetch_add(placer.apart.len(), Ordering::Relaxed);
            if before + placer.apart.len() > *most {
                too_many.store(true, Ordering::Relaxed);
            } else {
                list.lock().unwrap_or_else(PoisonError::into_inner).append(&mut placer.apart);
            }
        }
        progress.advance((chunk.end - chunk.start) as u64);
    });
    progress.end();
    !is_over()
}

/// The object indices of all class objects.
pub(crate) fn class_objects(summary: &Summary, addresses: &AddressIndex) -> RoaringBitmap {
    class_places(summary, addresses).into_iter().map(|(index, _)| index).collect()
}

/// The places of class objects, ascending by object index: each is where its CLASS DUMP is, whatever else has its id.
fn class_places(summary: &Summary, addresses: &AddressIndex) -> Vec<(u32, u64)> {
    let dumped = summary.classes().iter().filter(|class| class.is_dumped());
    let mut places: Vec<(u32, u64)> = dumped
        .filter_map(|class| Some((addresses.index_of(class.id.into())?.0, class.offset.get())))
        .collect();
    places.sort_unstable();
    places
}

/// Makes the block table, and the offsets of blocks whose objects lie apart. `apart` puts the offsets of a block's objects
/// that lie apart into their places, and tells whether there are any.
fn block_table(
    room: &ScratchArena,
    source: &Source<'_>,
    count: usize,
    blocks: &[u64],
    apart: &(dyn Fn(u32, &mut [u64; BLOCK as usize]) -> bool + Sync),
    class_places: &[(u32, u64)],
) -> io::Result<Places> {
    let offset_bytes = width(source.bytes.len() as u64);
    let id_size = source.header.id_size;
    let own_classes = |block: u32| {
        let from = class_places.partition_point(|(index, _)| index / BLOCK < block);
        let own = class_places.get(from..).unwrap_or_default().iter();
        own.take_while(move |(index, _)| index / BLOCK == block)
    };
    // How many rows of offsets there are is known when all blocks were looked at.
    let is_apart = |(block, start): (u32, &u64)| {
        *start == APART || apart(block, &mut [0; BLOCK as usize]) || own_classes(block).next().is_some()
    };
    let mut table = room.array::<U64>(blocks.len())?;
    let mut rows = 0u64;
    for ((block, start), entry) in (0u32..).zip(blocks).zip(table.iter_mut()) {
        *entry = U64::new(start << 1);
        if is_apart((block, start)) {
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
        apart(block, &mut places);
        if *start != APART {
            // A run covers the block and something of it lies apart too: a repeated object. The last record counts.
            let first = block as usize * BLOCK as usize;
            let mut at = usize::try_from(*start).unwrap_or(usize::MAX);
            for place in places.iter_mut().take(count - first) {
                *place = (*place).max(at as u64);
                at = heap::visit_one(source.bytes, id_size, at, source.bytes.len(), &mut Hop).unwrap_or(at);
            }
        }
        for (index, class) in own_classes(block) {
            if let Some(place) = places.get_mut((index % BLOCK) as usize) {
                *place = *class;
            }
        }
        let row = free.next().unwrap_or_default();
        for (place, bytes) in places.into_iter().zip(row.chunks_exact_mut(usize::from(offset_bytes))) {
            let place = place.to_le_bytes();
            bytes.copy_from_slice(place.get(..usize::from(offset_bytes)).unwrap_or(&place));
        }
    }
    Ok(Places { blocks: table.into(), offsets: offsets.into(), offset_bytes })
}

/// Objects of one block whose records follow one another.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u32,
    count: u32,
    offset: usize,
    /// Offset of the record behind.
    end: usize,
}

/// One thread's walk over a chunk.
struct Placer<'s> {
    shared: &'s Shared<'s>,
    run: Run,
    /// The offsets of the run's objects.
    offsets: [usize; BLOCK as usize],
    apart: Vec<(u32, u64)>,
}

impl Placer<'_> {
    #[inline]
    fn object(&mut self, id: ObjectId, offset: usize, end: usize) {
        let Some(ObjectIndex(index)) = self.shared.addresses.index_of(id) else {
            return;
        };
        let run = self.run;
        let follows = run.count > 0
            && index == run.first + run.count
            && run.end == offset
            && !index.is_multiple_of(BLOCK);
        if !follows {
            self.end_run();
            self.run = Run { first: index, count: 0, offset, end };
        }
        if let Some(place) = self.offsets.get_mut(self.run.count as usize) {
            *place = offset;
        }
        self.run.count += 1;
        self.run.end = end;
    }

    /// Notes the run: as a whole block, or as objects that lie apart.
    fn end_run(&mut self) {
        let Run { first, count, offset, .. } = std::mem::take(&mut self.run);
        let whole = BLOCK.min(self.shared.addresses.objects() - first);
        if first.is_multiple_of(BLOCK) && count == whole {
            if let Some(block) = self.shared.blocks.get((first / BLOCK) as usize) {
                // Of two runs over repeated objects the last counts.
                block.fetch_max(offset as u64, Ordering::Relaxed);
            }
        } else {
            let offsets = self.offsets.iter().take(count as usize).map(|offset| *offset as u64);
            match self.shared.apart {
                ApartSink::Listed { .. } => self.apart.extend((first..).zip(offsets)),
                // Of a repeated object the last record counts.
                ApartSink::All(all) => {
                    for (place, offset) in all.iter().skip(first as usize).zip(offsets) {
                        place.fetch_max(offset, Ordering::Relaxed);
                    }
                }
            }
        }
    }
}

impl<'a> HeapVisitor<'a> for Placer<'_> {
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
