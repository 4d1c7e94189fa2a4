//! What building an index needs: memory, room on the disk, time.
//!
//! What is refused is refused by lower bounds, so that nothing is refused that would have worked; what is told is told
//! as a range.

use std::fmt;
use std::path::PathBuf;

use crate::storage::human_bytes::HumanBytes;
use crate::storage::memory::{self, Available, Limit};

/// Memory that large arrays take for each object if they may, and for small dumps anyway.
const ARRAYS_OF_AN_OBJECT: u64 = 28;
const ARRAYS_ANYWAY: u64 = 24 << 20;
/// What is there of arrays at once, in the last steps, for certain: four numbers and two bytes for each object.
const ARRAYS_AT_LEAST: u64 = 18;
/// What arrays take at most, with what is rounded up and not used again.
const ARRAYS_AT_MOST: u64 = 36;

/// Small columns take half a byte an object, in no array.
pub(crate) fn small_columns(objects: u64) -> u64 {
    objects / 2
}

/// What large arrays would best have.
pub(crate) fn arrays(objects: u64) -> u64 {
    objects.saturating_mul(ARRAYS_OF_AN_OBJECT).saturating_add(ARRAYS_ANYWAY)
}

/// Bytes that an index takes at least: the index of ids, class numbers and places of records, and the tables of groups.
pub(crate) fn index_at_least(objects: u64, ids_bytes: u64) -> u64 {
    objects.saturating_mul(2).saturating_add(ids_bytes)
}

/// Bytes that scratch files take at least and at most, if arrays have so much memory.
pub(crate) fn scratch(objects: u64, memory: u64) -> (u64, u64) {
    let beyond = |bytes: u64| objects.saturating_mul(bytes).saturating_sub(memory);
    let most =
        if memory >= arrays(objects) { 0 } else { beyond(ARRAYS_AT_MOST).saturating_add(ARRAYS_ANYWAY) };
    (beyond(ARRAYS_AT_LEAST), most)
}

/// Addresses that building takes at least once objects were counted, whether arrays lie in memory or in files.
pub(crate) fn addresses(objects: u64, ids_bytes: u64) -> u64 {
    let index = index_at_least(objects, ids_bytes);
    small_columns(objects).saturating_add(index).saturating_add(scratch(objects, 0).0)
}

/// There is no room for an index on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoDisk {
    /// Bytes of index and scratch files at least.
    pub needed_bytes: u64,
    /// Bytes that are free.
    pub free_bytes: u64,
}

impl fmt::Display for NoDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed_bytes, free_bytes } = self;
        let (needed, free) = (HumanBytes(*needed_bytes), HumanBytes(*free_bytes));
        write!(f, "building it needs at least {needed} on the disk, which has {free} free")
    }
}

/// What building an index will take, before anything is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// How many objects there are, about, if `objects_exact` is not set.
    pub objects: u64,
    /// Whether objects were counted, not estimated from samples.
    pub objects_exact: bool,
    /// Length of the dump, unpacked.
    pub dump_bytes: u64,
    /// Threads that would work.
    pub threads: usize,
    /// Milliseconds, from and to: those of the machine it was measured on, halved and doubled, and more where arrays lie in
    /// files.
    pub time_ms: (u64, u64),
    /// Private memory: without it nothing works; with it no array lies in a file.
    pub memory_bytes: (u64, u64),
    /// Memory that may be taken; `None` if nothing limits it, or nobody knows.
    pub memory_available: Option<Available>,
    /// The index, and scratch files while it is built, from and to.
    pub index_bytes: (u64, u64),
    /// Scratch files while it is built, from and to.
    pub scratch_bytes: (u64, u64),
    /// Free bytes on the disk; `None` if nobody knows.
    pub disk_free_bytes: Option<u64>,
    /// Where the index would lie.
    pub dir: PathBuf,
    /// Whether the whole index is there already: then nothing is to be done.
    pub is_built: bool,
}

/// What is known of a dump whose needs are asked for.
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

/// One of so many bytes of a heap is a bit of the index of ids, and a dump is about as long as the heap.
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
        // Two threads took 300 ns an object and 0.2 ns a byte with arrays in memory, three times as long with all of them
        // in files on a disk that keeps up. Half of the work is one thread's.
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

    /// Whether there is enough of everything, as far as is known: what is missing for certain.
    pub fn fits(&self) -> bool {
        let memory = self.memory_available.is_none_or(|there| {
            let files = if there.limit == Limit::Addresses { addresses(self.objects, 0) } else { 0 };
            !there.refuses() || there.bytes >= self.memory_bytes.0.max(files)
        });
        let disk = self.index_bytes.0.saturating_add(self.scratch_bytes.0);
        self.is_built || (memory && self.disk_free_bytes.is_none_or(|free| free >= disk))
    }
}
