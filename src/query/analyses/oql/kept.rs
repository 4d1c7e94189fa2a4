//! Memory for rows that a query stores: in the scratch arena where possible, and otherwise counted.
//!
//! DISTINCT, GROUP BY and IN store a hash of 128 bits instead of values. Hashes are keyed with random numbers unknown to the
//! author of a dump, so values of a dump cannot be chosen to collide: for a billion values the probability of a collision is
//! below 10^-20.

use std::hash::{BuildHasher, Hash, RandomState};
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use hprof_index::ObjectGraph;
use hprof_index::storage::human_bytes::HumanBytes;
use hprof_index::storage::scratch::{ReservedMemory, ScratchArena};

use super::error::OqlError;

/// Memory for rows that a query stores.
#[derive(Debug, Default)]
pub(super) struct RowMemory {
    room: OnceLock<ScratchArena>,
    hashers: [RandomState; 2],
    /// Memory reserved for values outside of the arena.
    reserved: Mutex<Option<ReservedMemory>>,
    /// Error in a step that cannot return an error itself.
    failed: OnceLock<OqlError>,
}

impl RowMemory {
    /// Returns the scratch arena that all queries of an evaluator share.
    pub(super) fn room(&self, graph: &ObjectGraph) -> &ScratchArena {
        self.room.get_or_init(|| graph.room())
    }

    /// Reserves memory for values outside of the arena, before they are allocated. Returns `false` if there is too little.
    pub(super) fn take(&self, graph: &ObjectGraph, bytes: u64) -> bool {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.get_or_insert_with(|| self.room(graph).reserve()).take(bytes)
    }

    /// Returns the hash of a key.
    pub(super) fn hash<K: Hash + ?Sized>(&self, key: &K) -> u128 {
        let [upper, lower] = &self.hashers;
        u128::from(upper.hash_one(key)) << 64 | u128::from(lower.hash_one(key))
    }

    /// Records an error of a step that cannot return one.
    pub(super) fn record_error(&self, error: &io::Error) {
        self.record(OqlError::new(0, error.to_string()));
    }

    /// Records the first error of a step that cannot return one.
    pub(super) fn record(&self, error: OqlError) {
        let _ = self.failed.set(error);
    }

    /// Returns whether an error was recorded.
    pub(super) fn is_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Returns the error that was recorded, if any.
    pub(super) fn check(&self) -> Result<(), OqlError> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

/// Minimum size of a share of the memory in bytes.
const MIN_SHARE: u64 = 1 << 20;

/// Returns the size in bytes of a share of the remaining memory, which is divided into `of` shares.
pub(super) fn share(room: &ScratchArena, of: u64) -> u64 {
    (room.remaining_bytes() / of.max(1)).max(MIN_SHARE)
}

/// Returns the number of chunks to evaluate before their results are merged, if the results of one chunk take about `bytes`.
pub(super) fn batch(room: &ScratchArena, bytes: u64) -> usize {
    let threads = rayon::current_num_threads().max(1);
    let fitting = usize::try_from(room.remaining_bytes() / 4 / bytes.max(1)).unwrap_or(usize::MAX);
    fitting.clamp(threads, threads.saturating_mul(16))
}

/// Returns the error of a query that exceeds the remaining memory budget.
pub(super) fn too_much(at: usize, what: &str, room: &ScratchArena) -> OqlError {
    let left = HumanBytes(room.remaining_bytes());
    OqlError::memory(
        at,
        format!("{what} do not fit into the rest of the memory budget ({left}); select less"),
    )
}

/// Returns a function that converts an error of the scratch arena to an error at an offset of a query.
pub(super) fn scratch_error(at: usize) -> impl Fn(io::Error) -> OqlError {
    move |error| OqlError::new(at, error.to_string())
}
