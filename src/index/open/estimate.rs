//! Estimates of the resources for building an index: memory, disk space, time.
//!
//! Builds are refused by lower bounds only, so that none is refused that would have succeeded; estimates
//! shown to the user are ranges.

use std::fmt;
use std::path::PathBuf;

use crate::storage::human_bytes::HumanBytes;
use crate::storage::memory::{self, Available, Limit};

/// Preferred memory for large arrays per object, in bytes.
const ARRAYS_OF_AN_OBJECT: u64 = 28;
/// Preferred memory for large arrays in addition, in bytes, for small dumps.
const ARRAYS_ANYWAY: u64 = 24 << 20;
/// Lower bound of the memory for arrays that exist at the same time, in the last steps: four numbers and
/// two bytes per object.
const ARRAYS_AT_LEAST: u64 = 18;
/// Upper bound of the memory for arrays, including rounding and memory that is not reused.
const ARRAYS_AT_MOST: u64 = 36;

/// Returns the memory for small columns, which are not arrays: half a byte per object.
pub(crate) fn small_columns(objects: u64) -> u64 {
    objects / 2
}

/// Returns the preferred memory for large arrays.
pub(crate) fn arrays(objects: u64) -> u64 {
    objects.saturating_mul(ARRAYS_OF_AN_OBJECT).saturating_add(ARRAYS_ANYWAY)
}

/// Returns a lower bound of the size of an index, in bytes: address index, class numbers, record offsets, and the tables of
/// groups.
pub(crate) fn index_at_least(objects: u64, ids_bytes: u64) -> u64 {
    objects.saturating_mul(2).saturating_add(ids_bytes)
}

/// Returns the minimum and maximum size of scratch files in bytes, if arrays have `memory` bytes.
pub(crate) fn scratch(objects: u64, memory: u64) -> (u64, u64) {
    let beyond = |bytes: u64| objects.saturating_mul(bytes).saturating_sub(memory);
    let most =
        if memory >= arrays(objects) { 0 } else { beyond(ARRAYS_AT_MOST).saturating_add(ARRAYS_ANYWAY) };
    (beyond(ARRAYS_AT_LEAST), most)
}

/// Returns a lower bound of the address space for building once objects are counted, whether arrays are
/// in memory or in files.
pub(crate) fn addresses(objects: u64, ids_bytes: u64) -> u64 {
    let index = index_at_least(objects, ids_bytes);
    small_columns(objects).saturating_add(index).saturating_add(scratch(objects, 0).0)
}

/// Error for too little disk space for an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoDisk {
    /// Minimum size of index and scratch files in bytes.
    pub needed_bytes: u64,
    /// Free disk space in bytes.
    pub free_bytes: u64,
}

impl fmt::Display for NoDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed_bytes, free_bytes } = self;
        let (needed, free) = (HumanBytes(*needed_bytes), HumanBytes(*free_bytes));
        write!(f, "building it needs at least {needed} of disk space, but only {free} is free")
    }
}

/// Estimate of the resources for building an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Number of objects; approximate unless `objects_exact` is set.
    pub objects: u64,
    /// `true` if objects were counted, not estimated from samples.
    pub objects_exact: bool,
    /// Size of the unpacked dump in bytes.
    pub dump_bytes: u64,
    /// Number of threads.
    pub threads: usize,
    /// Minimum and maximum time in milliseconds: half and twice the time of the reference machine, and
    /// more where arrays are in files.
    pub time_ms: (u64, u64),
    /// Private memory in bytes: the minimum, and the amount with which no array is in a file.
    pub memory_bytes: (u64, u64),
    /// Available memory; `None` if there is no known limit.
    pub memory_available: Option<Available>,
    /// Minimum and maximum size in bytes of the index with the scratch files for building it.
    pub index_bytes: (u64, u64),
    /// Minimum and maximum size in bytes of the scratch files.
    pub scratch_bytes: (u64, u64),
    /// Free disk space in bytes; `None` if unknown.
    pub disk_free_bytes: Option<u64>,
    /// Directory of the index.
    pub dir: PathBuf,
    /// `true` if the complete index already exists, so that nothing needs to be built.
    pub is_built: bool,
}

/// Facts about a dump on which an estimate is based.
#[derive(Debug, Clone)]
pub(crate) struct DumpFacts {
    pub(crate) objects: u64,
    pub(crate) objects_exact: bool,
    pub(crate) dump_bytes: u64,
    pub(crate) memory_available: Option<Available>,
    pub(crate) disk_free_bytes: Option<u64>,
    pub(crate) dir: PathBuf,
    pub(crate) is_built: bool,
}

/// Bytes of heap per byte of the address index; the size of a dump is about that of the heap.
const HEAP_BYTES_OF_AN_ID_BYTE: u64 = 56;

impl Estimate {
    pub(crate) fn new(facts: DumpFacts) -> Self {
        let DumpFacts {
            objects,
            objects_exact,
            dump_bytes,
            memory_available,
            disk_free_bytes,
            dir,
            is_built,
        } = facts;
        let threads = rayon::current_num_threads();
        let ids = dump_bytes / HEAP_BYTES_OF_AN_ID_BYTE;
        let always = memory::working_memory(1) + small_columns(objects) + ids;
        let room = memory_available.map_or(u64::MAX, |there| there.bytes.saturating_sub(always));
        let scratch_bytes = scratch(objects, room);
        // Two threads took 300 ns per object and 0.2 ns per byte with arrays in memory, three times as
        // long with all of them in files on a fast disk. Half of the work is single-threaded.
        let work = objects.saturating_mul(300) + dump_bytes / 5;
        let time = work / 2 + work / u64::try_from(threads.max(1)).unwrap_or(1);
        let files = if scratch_bytes.1 > 0 { 3 } else { 1 };
        Self {
            objects,
            objects_exact,
            dump_bytes,
            threads,
            time_ms: (time / 2_000_000, time.saturating_mul(2 * files) / 1_000_000),
            memory_bytes: (always, always.saturating_add(arrays(objects))),
            memory_available,
            index_bytes: (index_at_least(objects, ids / 2), objects.saturating_mul(24) + ids * 2),
            scratch_bytes,
            disk_free_bytes,
            dir,
            is_built,
        }
    }

    /// Returns `true` if nothing is known to be insufficient.
    pub fn fits(&self) -> bool {
        let memory = self.memory_available.is_none_or(|there| {
            let files = if there.limit == Limit::Addresses { addresses(self.objects, 0) } else { 0 };
            !there.is_hard_limit() || there.bytes >= self.memory_bytes.0.max(files)
        });
        let disk = self.index_bytes.0.saturating_add(self.scratch_bytes.0);
        self.is_built || (memory && self.disk_free_bytes.is_none_or(|free| free >= disk))
    }
}
