//! The stage `objects`: for each object, by object index, its class and the place of its record.
//!
//! Objects that follow one another in address order mostly follow one another in the file too. So the offset is kept
//! once for 64 objects, if their records are contiguous: the others are found by hopping over records. Blocks of
//! objects that lie apart (a segment ends, a class object stands between them, ids are in no order) list the offset of
//! each.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::id_map::IdMap;
use rayon::prelude::*;
use roaring::RoaringBitmap;
use zerocopy::little_endian::U64;

use crate::hprof::heap::{self, HeapVisitor, Instance, ObjectArray, PrimitiveArray};
use crate::hprof::{BasicType, IdSize};

use super::address::AddressIndex;
use super::build::{Plan, Source};
use super::lazy::Lazy;
use super::progress::Progress;
use super::summary::{ClassNumber, Summary};
use super::tables::{ClassKind, NONE};
use super::values;

/// Objects that share an entry of the block table.
pub(crate) const BLOCK: u32 = 64;

/// For each object its class and the place of its record.
#[derive(Debug)]
pub struct Objects {
    /// Object id -> object index.
    pub addresses: AddressIndex,
    /// Class numbers, `class_bytes` bytes each, little-endian.
    pub(crate) classes: Lazy<u8>,
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
    pub(crate) blocks: Lazy<U64>,
    /// Offsets of the objects of irregular blocks, 64 to a row, `offset_bytes` bytes each, little-endian.
    pub(crate) offsets: Lazy<u8>,
    pub(crate) offset_bytes: u8,
}

impl Places {
    fn offset(&self, bytes: &[u8], id_size: IdSize, index: u32) -> Option<u64> {
        let entry = self.blocks.get((index / BLOCK) as usize)?.get();
        let within = index % BLOCK;
        if entry & 1 == 1 {
            let row = usize::try_from(entry >> 1).ok()?;
            let at = row.checked_mul(BLOCK as usize)?.checked_add(within as usize)?;
            return little_endian(&self.offsets, at, self.offset_bytes);
        }
        let mut at = usize::try_from(entry >> 1).ok()?;
        for _ in 0..within {
            at = heap::visit_one(bytes, id_size, at, bytes.len(), &mut Hop).ok()?;
        }
        Some(at as u64)
    }
}

/// Hops over records.
struct Hop;
impl HeapVisitor<'_> for Hop {}

impl Objects {
    /// Number of objects.
    pub fn len(&self) -> u32 {
        self.addresses.objects()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The class of an object; of a class object that is java.lang.Class.
    pub fn class(&self, index: u32) -> Option<ClassNumber> {
        let number = little_endian(&self.classes, index as usize, self.class_bytes)?;
        // All bits set are no class: NONE, cut to the width.
        let none = u64::MAX.checked_shr(64 - u32::from(self.class_bytes) * 8).unwrap_or(0);
        u32::try_from(number).ok().filter(|_| number != none).map(ClassNumber)
    }

    /// The object indices of all class objects.
    pub fn class_objects(&self) -> &RoaringBitmap {
        &self.class_objects
    }

    /// The offset of an object's record in `bytes`, the dump.
    pub fn offset(&self, bytes: &[u8], id_size: IdSize, index: u32) -> Option<u64> {
        if index >= self.len() {
            return None;
        }
        self.places.offset(bytes, id_size, index)
    }
}

/// The number at row `at` of a column of `width` bytes each.
#[inline]
fn little_endian(column: &Lazy<u8>, at: usize, width: u8) -> Option<u64> {
    let start = at.checked_mul(usize::from(width))?;
    let bytes = column.rows(start..start.checked_add(usize::from(width))?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// Bytes that hold every number up to `max`.
fn width(max: u64) -> u8 {
    // At most eight.
    #[allow(clippy::cast_possible_truncation)]
    let bytes = (64 - max.leading_zeros()).div_ceil(8).max(1) as u8;
    bytes
}

/// A block entry that is not set: the block's objects lie apart. No record starts at offset 0.
const APART: u64 = 0;

struct Shared<'s> {
    addresses: &'s AddressIndex,
    numbers: IdMap<u64, u32>,
    /// Class numbers of primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    primitive: [u32; 8],
    /// By object index: the class number.
    classes: Vec<AtomicU32>,
    /// By block: the offset of the first record, or [`APART`].
    blocks: Vec<AtomicU64>,
    /// Objects of blocks that no single run of records covers: object index and offset.
    apart: Mutex<Vec<(u32, u64)>>,
}

/// Finds class and place of every object.
pub(crate) fn build(
    source: &Source<'_>,
    summary: &Summary,
    addresses: AddressIndex,
    plan: &Plan,
    progress: &dyn Progress,
) -> Objects {
    let count = addresses.objects() as usize;
    let shared = Shared {
        addresses: &addresses,
        numbers: values::class_ids(summary).into_iter().map(|(id, number)| (id, number.0)).collect(),
        primitive: primitive_classes(summary),
        classes: (0..count).map(|_| AtomicU32::new(NONE)).collect(),
        blocks: (0..count.div_ceil(BLOCK as usize)).map(|_| AtomicU64::new(APART)).collect(),
        apart: Mutex::default(),
    };
    progress.begin("placing objects", plan.pieces.iter().map(|piece| (piece.end - piece.start) as u64).sum());
    plan.pieces.par_iter().for_each(|piece| {
        let mut placer = Placer { shared: &shared, run: Vec::new(), apart: Vec::new(), last: (0, NONE) };
        plan.walk(source, piece, &mut placer, Placer::end_run);
        placer.end_run();
        shared.apart.lock().unwrap_or_else(PoisonError::into_inner).append(&mut placer.apart);
        progress.advance((piece.end - piece.start) as u64);
    });
    progress.end();
    let class_places = class_places(summary, &addresses);
    let mut apart = std::mem::take(&mut *shared.apart.lock().unwrap_or_else(PoisonError::into_inner));
    // Of a repeated object the last record counts: it is the last of the pairs with its index.
    apart.par_sort_unstable();
    let (blocks, offsets, offset_bytes) = block_table(source, count, &shared.blocks, apart, &class_places);
    let class_bytes = width(summary.classes().len() as u64);
    let places = Places { blocks: blocks.into(), offsets: offsets.into(), offset_bytes };
    settle_repeated(source, plan, &shared, &places);
    let java_lang_class = summary.java_lang_class().map_or(NONE, |number| number.0);
    for (index, _) in &class_places {
        if let Some(place) = shared.classes.get(*index as usize) {
            place.store(java_lang_class, Ordering::Relaxed);
        }
    }
    let mut class_column = Vec::with_capacity(count * usize::from(class_bytes));
    for class in &shared.classes {
        let number = class.load(Ordering::Relaxed).to_le_bytes();
        class_column.extend_from_slice(number.get(..usize::from(class_bytes)).unwrap_or(&number));
    }
    let class_objects = class_places.iter().map(|(index, _)| *index).collect();
    Objects { addresses, classes: class_column.into(), class_bytes, places, class_objects }
}

fn primitive_classes(summary: &Summary) -> [u32; 8] {
    BasicType::PRIMITIVES.map(|element| {
        let mut classes = summary.numbered_classes();
        let found = classes
            .find(|(_, class)| class.kind() == ClassKind::PrimitiveArray(element) && class.objects.get() > 0);
        found.map_or(NONE, |(number, _)| number.0)
    })
}

/// The places of class objects, ascending by object index: each is where its CLASS DUMP is, whatever else has its id.
fn class_places(summary: &Summary, addresses: &AddressIndex) -> Vec<(u32, u64)> {
    let dumped = summary.classes().iter().filter(|class| class.is_dumped());
    let mut places: Vec<(u32, u64)> =
        dumped.filter_map(|class| Some((addresses.index_of(class.id.get())?, class.offset.get()))).collect();
    places.sort_unstable();
    places
}

/// Gives repeated objects the class of their last record, whichever was met last.
fn settle_repeated(source: &Source<'_>, plan: &Plan, shared: &Shared<'_>, places: &Places) {
    let id_size = source.header.id_size;
    for id in &plan.repeated {
        let Some(index) = shared.addresses.index_of(*id) else {
            continue;
        };
        let Some(offset) = places.offset(source.bytes, id_size, index) else {
            continue;
        };
        let mut placer = Placer { shared, run: Vec::new(), apart: Vec::new(), last: (0, NONE) };
        let at = usize::try_from(offset).unwrap_or(usize::MAX);
        // Places are those of records that were read.
        let _ = heap::visit_one(source.bytes, id_size, at, source.bytes.len(), &mut placer);
    }
}

/// Makes the block table, and the offsets of blocks whose objects lie apart.
fn block_table(
    source: &Source<'_>,
    count: usize,
    blocks: &[AtomicU64],
    apart: Vec<(u32, u64)>,
    class_places: &[(u32, u64)],
) -> (Vec<U64>, Vec<u8>, u8) {
    let offset_bytes = width(source.bytes.len() as u64);
    let id_size = source.header.id_size;
    let mut offsets = Vec::new();
    let mut rows = 0u64;
    let mut apart = apart.into_iter().peekable();
    let mut class_places = class_places.iter().peekable();
    let mut table = Vec::with_capacity(blocks.len());
    for (block, start) in (0u32..).zip(blocks) {
        let first = block * BLOCK;
        let start = start.load(Ordering::Relaxed);
        let mut places = [0u64; BLOCK as usize];
        let mut any = false;
        while let Some((index, offset)) = apart.next_if(|(index, _)| *index / BLOCK == block) {
            if let Some(place) = places.get_mut((index % BLOCK) as usize) {
                *place = offset;
                any = true;
            }
        }
        let mut classes = [0u64; BLOCK as usize];
        while let Some((index, offset)) = class_places.next_if(|(index, _)| *index / BLOCK == block) {
            if let Some(place) = classes.get_mut((index % BLOCK) as usize) {
                *place = *offset;
                any = true;
            }
        }
        if !any && start != APART {
            table.push(U64::new(start << 1));
            continue;
        }
        if start != APART {
            // A run covers the block and something of it lies apart too: a repeated object. The last record counts.
            let mut at = usize::try_from(start).unwrap_or(usize::MAX);
            for place in places.iter_mut().take(count - first as usize) {
                *place = (*place).max(at as u64);
                at = heap::visit_one(source.bytes, id_size, at, source.bytes.len(), &mut Hop).unwrap_or(at);
            }
        }
        for (place, class) in places.into_iter().zip(classes) {
            let place = if class != 0 { class } else { place }.to_le_bytes();
            offsets.extend_from_slice(place.get(..usize::from(offset_bytes)).unwrap_or(&place));
        }
        table.push(U64::new((rows << 1) | 1));
        rows += 1;
    }
    (table, offsets, offset_bytes)
}

/// One thread's walk over a piece.
struct Placer<'s> {
    shared: &'s Shared<'s>,
    /// Objects of one block whose records follow one another: object index, offset, offset of the next record.
    run: Vec<(u32, u64, u64)>,
    apart: Vec<(u32, u64)>,
    /// The class met last: id and number.
    last: (u64, u32),
}

impl Placer<'_> {
    fn class_number(&mut self, id: u64) -> u32 {
        if self.last.0 != id || self.last.1 == NONE {
            self.last = (id, self.shared.numbers.get(&id).copied().unwrap_or(NONE));
        }
        self.last.1
    }

    fn object(&mut self, id: u64, offset: usize, end: usize, class: u32) {
        let Some(index) = self.shared.addresses.index_of(id) else {
            return;
        };
        if let Some(place) = self.shared.classes.get(index as usize) {
            place.store(class, Ordering::Relaxed);
        }
        let (offset, end) = (offset as u64, end as u64);
        let follows = self.run.last().is_some_and(|(before, _, next)| {
            index == before + 1 && *next == offset && !index.is_multiple_of(BLOCK)
        });
        if !follows {
            self.end_run();
        }
        self.run.push((index, offset, end));
    }

    /// Notes the run: as a whole block, or as objects that lie apart.
    fn end_run(&mut self) {
        let count = self.shared.classes.len();
        if let Some((first, offset, _)) = self.run.first() {
            let whole = (BLOCK as usize).min(count - *first as usize);
            if first.is_multiple_of(BLOCK) && self.run.len() == whole {
                if let Some(block) = self.shared.blocks.get((first / BLOCK) as usize) {
                    // Of two runs over repeated objects the last counts.
                    block.fetch_max(*offset, Ordering::Relaxed);
                }
            } else {
                self.apart.extend(self.run.iter().map(|(index, offset, _)| (*index, *offset)));
            }
        }
        self.run.clear();
    }
}

impl<'a> HeapVisitor<'a> for Placer<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        let class = self.class_number(record.class);
        self.object(record.id, record.offset, record.end, class);
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        let class = self.class_number(record.class);
        self.object(record.id, record.offset, record.end, class);
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        let kind = BasicType::PRIMITIVES.iter().position(|kind| *kind == record.element);
        let class = kind.and_then(|kind| self.shared.primitive.get(kind)).copied().unwrap_or(NONE);
        self.object(record.id, record.offset, record.end, class);
    }
}
