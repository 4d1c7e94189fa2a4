//! Counts of a scan: each thread has its own; they are merged at the end.

use hprof_values::{BasicType, ObjectId};
use zerocopy::little_endian::U64;

use crate::model::array_contents::ArrayFill;
use crate::model::measurements::{
    Distance, Lengths, OBJECT_LENGTHS, PRIMITIVE_LENGTHS, ShortArrays, array_kind,
};
use crate::model::problem::Problem;
use crate::model::tables::RootRow;
use crate::objects::id_set::Misfit;
use crate::records::chunks::RecordChunk;
use crate::storage::allowance::{Allowance, map_bytes};
use crate::storage::id_map::IdMap;
use crate::storage::memory::NoMemory;

/// Previous object, whose distance is known at the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prev {
    pub(crate) id: u64,
    pub(crate) what: PreviousObject,
}

/// Kind of the previous object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PreviousObject {
    /// An instance; `slot` is the index of its class in this thread's table.
    Instance { class: ObjectId, slot: u32 },
    /// An array of this kind and length.
    Array { kind: u8, length: u32 },
    /// An instance of StackChunk, the last in the list.
    StackChunk,
}

/// Counts for one class ID.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Number of objects of the class: instances, or object arrays.
    pub(crate) objects: u64,
    /// Lengths, if the class is an object array class.
    pub(crate) lengths: Option<Box<Lengths<OBJECT_LENGTHS>>>,
    /// Distances of instances.
    pub(crate) distance: Distance,
    /// Number of instances whose size differs from that of the class's fields.
    pub(crate) mismatched: u64,
}

/// Size of the lengths of one class in bytes.
pub(crate) const LENGTHS_BYTES: u64 = size_of::<Lengths<OBJECT_LENGTHS>>() as u64;

impl Tally {
    /// Adds the counts of `other`.
    pub(crate) fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.mismatched += other.mismatched;
        self.distance.merge(&other.distance);
        match (&mut self.lengths, other.lengths) {
            (Some(lengths), Some(more)) => lengths.merge(&more),
            (lengths @ None, more) => *lengths = more,
            _ => {}
        }
    }
}

/// A run of ascending IDs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRun {
    pub(crate) first: u64,
    pub(crate) last: Prev,
    /// Offset of the first object's record.
    pub(crate) start: usize,
    /// End offset of the last object's record (exclusive).
    pub(crate) end: usize,
}

/// Range of the IDs in a chunk, for finding an object without an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkIds {
    pub(crate) chunk: RecordChunk,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
}

/// IDs of the flattened objects of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlatIds {
    /// Highest ID; all other objects have higher ones.
    pub(crate) last: u64,
    /// Bitwise OR of the IDs of all other objects.
    pub(crate) other_bits: u64,
}

/// Result of a scan of a heap dump: counts, and the rows of some tables.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    pub(crate) tallies: IdMap<ObjectId, Tally>,
    /// Primitive arrays, in the order of [`BasicType::PRIMITIVES`].
    pub(crate) primitive: [Lengths<PRIMITIVE_LENGTHS>; 8],
    /// How far primitive arrays are filled, in the same order.
    pub(crate) fills: [ArrayFill; 8],
    pub(crate) short: ShortArrays,
    /// CLASS DUMPs, in file order: offset and ID.
    pub(crate) class_dumps: Vec<(usize, ObjectId)>,
    /// Roots, in file order: offset and row.
    pub(crate) roots: Vec<(U64, RootRow)>,
    /// Distances of class objects: ID and bytes.
    pub(crate) class_distances: Vec<(u64, u64)>,
    /// Instances of StackChunk: offset, and distance if known.
    pub(crate) stack_chunks: Vec<(usize, Option<u64>)>,
    /// Android's heaps: offset, heap number, string ID of the name.
    pub(crate) heaps: Vec<(usize, u32, u64)>,
    pub(crate) chunk_ids: Vec<ChunkIds>,
    /// IDs of flattened objects, if there are any.
    pub(crate) flat: Option<FlatIds>,
    /// Bitwise OR of all object IDs.
    pub(crate) id_bits: u64,
    /// Highest allocation trace serial number of an object, including class objects.
    pub(crate) max_trace: u32,
    /// Complement of the lowest allocation trace serial number, so that it starts at 0 like all other counts.
    pub(crate) max_trace_complement: u32,
    /// IDs that occurred before.
    pub(crate) repeated: Vec<u64>,
    /// Number of objects that another record with the same ID replaces.
    pub(crate) replaced: u64,
    /// All IDs, in list mode.
    pub(crate) ids: Vec<u64>,
    pub(crate) runs: Vec<IdRun>,
    /// `true` if IDs do not ascend in long runs, or runs overlap.
    pub(crate) unordered: bool,
    /// Number of object arrays of the maximum length that HotSpot dumps: probably truncated.
    pub(crate) cut_object_arrays: u64,
    /// Number of primitive arrays of the maximum length that HotSpot dumps: probably truncated.
    pub(crate) cut_primitive_arrays: u64,
    pub(crate) problems: Vec<Problem>,
    /// Number of damaged regions, including those not listed in `problems`.
    pub(crate) damaged_regions: u64,
    /// Number of bytes of the heap dump that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Reason why a worker could not collect all IDs.
    pub(crate) misfit: Option<Misfit>,
}

impl ScanResult {
    /// Merges the counts of another thread.
    ///
    /// # Errors
    /// [`NoMemory`] if tables cannot grow as needed.
    pub(crate) fn merge(&mut self, other: Self, allowance: &Allowance) -> Result<(), NoMemory> {
        if self.tallies.is_empty() {
            self.tallies = other.tallies;
        } else {
            let freed = map_bytes::<Tally>(other.tallies.capacity());
            for (id, tally) in other.tallies {
                match self.tallies.get_mut(&id) {
                    Some(known) => {
                        if known.lengths.is_some() && tally.lengths.is_some() {
                            allowance.give_back(LENGTHS_BYTES);
                        }
                        known.merge(tally);
                    }
                    None => allowance.insert(&mut self.tallies, id, tally)?,
                }
            }
            allowance.give_back(freed);
        }
        for (lengths, more) in self.primitive.iter_mut().zip(&other.primitive) {
            lengths.merge(more);
        }
        for (fill, more) in self.fills.iter_mut().zip(&other.fills) {
            fill.merge(more);
        }
        self.short.merge(&other.short);
        allowance.append(&mut self.class_dumps, other.class_dumps)?;
        allowance.append(&mut self.roots, other.roots)?;
        allowance.append(&mut self.class_distances, other.class_distances)?;
        allowance.append(&mut self.stack_chunks, other.stack_chunks)?;
        allowance.append(&mut self.heaps, other.heaps)?;
        allowance.append(&mut self.chunk_ids, other.chunk_ids)?;
        self.id_bits |= other.id_bits;
        self.max_trace = self.max_trace.max(other.max_trace);
        self.max_trace_complement = self.max_trace_complement.max(other.max_trace_complement);
        allowance.append(&mut self.repeated, other.repeated)?;
        allowance.append(&mut self.ids, other.ids)?;
        allowance.append(&mut self.runs, other.runs)?;
        self.unordered |= other.unordered;
        self.cut_object_arrays += other.cut_object_arrays;
        self.cut_primitive_arrays += other.cut_primitive_arrays;
        self.problems.extend(other.problems);
        self.damaged_regions += other.damaged_regions;
        self.skipped_bytes += other.skipped_bytes;
        Ok(())
    }

    /// Subtracts the counts of a record that another one with the same ID replaces.
    pub(crate) fn forget(
        &mut self,
        class: Option<ObjectId>,
        element: Option<BasicType>,
        length: Option<u32>,
    ) {
        match (class, element) {
            (Some(class), _) => {
                if let Some(tally) = self.tallies.get_mut(&class) {
                    tally.objects = tally.objects.saturating_sub(1);
                    if let (Some(lengths), Some(length)) = (&mut tally.lengths, length) {
                        lengths.forget(length);
                    }
                }
            }
            (None, Some(element)) => {
                let at = array_kind(element).checked_sub(1);
                if let Some(lengths) = at.and_then(|at| self.primitive.get_mut(at)) {
                    lengths.forget(length.unwrap_or(0));
                }
            }
            (None, None) => {}
        }
    }
}
