//! The set of all object IDs, built by many threads at once: one bit per alignment unit of the address space.
//!
//! Lines of 64 bytes contain 448 bits and reserve their first word, which later stores the number of objects
//! before the line: a lookup in the finished index ([`super::address_index`]) touches one cache line. Chunks
//! of lines are allocated as addresses occur, so that a heap of scattered regions costs about 1/56 of the
//! bytes of its regions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::storage::allowance::Allowance;
use crate::storage::id_map::IdMap;

/// Number of bits in a line.
pub(crate) const LINE_BITS: u64 = 448;
/// Number of words in a line: the rank and seven words of bits.
pub(crate) const LINE_WORDS: usize = 8;
/// Number of lines in a chunk.
pub(crate) const CHUNK_LINES: u64 = 512;
/// Number of words in a chunk.
pub(crate) const CHUNK_WORDS: usize = 512 * LINE_WORDS;

type BitChunk = Box<[AtomicU64]>;

/// Position of the bit of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// Number of the chunk of the address space.
    pub(crate) key: u64,
    /// Index of the line's first word in the chunk.
    pub(crate) line: usize,
    /// Number of the bit in the line.
    pub(crate) bit: u32,
}

impl Position {
    /// Returns the position of an ID, with addresses that are multiples of `1 << shift`.
    #[inline(always)]
    pub(crate) fn new(id: u64, shift: u32) -> Self {
        let granule = id >> shift;
        let line = granule / LINE_BITS;
        Self {
            key: line / CHUNK_LINES,
            line: (line % CHUNK_LINES) as usize * LINE_WORDS,
            bit: (granule % LINE_BITS) as u32,
        }
    }

    /// Returns the index of the bit's word in the chunk.
    #[inline(always)]
    pub(crate) fn word(self) -> usize {
        self.line + 1 + (self.bit / 64) as usize
    }
}

/// A set of object IDs, shared by the threads that fill it.
#[derive(Debug)]
pub(crate) struct AddressSet {
    shift: u32,
    max_chunks: usize,
    /// Number of chunks that fit into memory.
    memory_chunks: usize,
    chunks: Mutex<IdMap<u64, Arc<BitChunk>>>,
}

/// Reason why an ID cannot be inserted: the set must be built in another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// The ID is not a multiple of the alignment.
    Unaligned,
    /// Addresses are so scattered that bits would take too much memory.
    Scattered,
    /// Memory is exhausted for more bits, or for IDs that occur again.
    Memory,
}

impl AddressSet {
    /// Creates an empty set of multiples of `1 << shift` of at most `max_bytes`.
    pub(crate) fn new(shift: u32, max_bytes: u64) -> Self {
        let max_chunks = usize::try_from(max_bytes).unwrap_or(usize::MAX) / (CHUNK_WORDS * 8);
        Self { shift, max_chunks: max_chunks.max(64), memory_chunks: usize::MAX, chunks: Mutex::default() }
    }

    /// Limits the memory of the set to `bytes`.
    pub(crate) fn with_max_bytes(mut self, bytes: u64) -> Self {
        self.memory_chunks = usize::try_from(bytes).unwrap_or(usize::MAX) / (CHUNK_WORDS * 8);
        self
    }

    /// Returns the memory that the set uses, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner).len();
        (chunks * CHUNK_WORDS * 8) as u64
    }

    /// Returns the number of IDs in the set.
    pub(crate) fn len(&self) -> u64 {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = |chunk: &BitChunk| -> u64 {
            chunk.iter().map(|word| u64::from(word.load(Ordering::Relaxed).count_ones())).sum()
        };
        chunks.values().map(|chunk| bits(chunk.as_ref())).sum()
    }

    /// Returns a handle of the set for one thread.
    pub(crate) fn cursor(&self) -> AddressSetHandle<'_> {
        AddressSetHandle {
            set: self,
            chunks: Vec::new(),
            near: vec![(0, 0); NEAR],
            far: IdMap::default(),
            batch: Vec::with_capacity(BATCH),
            places: Vec::with_capacity(BATCH),
        }
    }

    /// Returns the exponent of the alignment: addresses are multiples of `1 << shift`.
    pub(crate) fn shift(&self) -> u32 {
        self.shift
    }

    /// Returns the chunks, ascending by address. Must be called after all handles are dropped.
    pub(crate) fn into_chunks(self) -> Vec<(u64, Vec<u64>)> {
        let chunks = self.chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut chunks: Vec<_> = chunks
            .into_iter()
            .map(|(key, chunk)| {
                let words = match Arc::try_unwrap(chunk) {
                    Ok(chunk) => chunk.into_iter().map(AtomicU64::into_inner).collect(),
                    Err(shared) => shared.iter().map(|word| word.load(Ordering::Relaxed)).collect(),
                };
                (key, words)
            })
            .collect();
        chunks.sort_unstable_by_key(|(key, _)| *key);
        chunks
    }

    fn chunk(&self, key: u64) -> Option<Arc<BitChunk>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn chunk_or_new(&self, key: u64) -> Result<Arc<BitChunk>, Misfit> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(chunk) = chunks.get(&key) {
            return Ok(chunk.clone());
        }
        if chunks.len() >= self.max_chunks {
            return Err(Misfit::Scattered);
        }
        if chunks.len() >= self.memory_chunks {
            return Err(Misfit::Memory);
        }
        let chunk: Arc<BitChunk> = Arc::new((0..CHUNK_WORDS).map(|_| AtomicU64::new(0)).collect());
        chunks.insert(key, chunk.clone());
        Ok(chunk)
    }
}

/// Number of IDs inserted at a time: enough cache misses to overlap, few enough to stay in the first-level
/// cache.
const BATCH: usize = 128;
/// Number of slots in a handle's table of chunks: as many as a heap of 7 GiB has chunks.
const NEAR: usize = 4096;

/// Handle of one thread on an [`AddressSet`], with a cache of the chunks used so far.
#[derive(Debug)]
pub(crate) struct AddressSetHandle<'s> {
    set: &'s AddressSet,
    chunks: Vec<Arc<BitChunk>>,
    /// Key of a chunk and its position in `chunks` plus one, at the key modulo [`NEAR`].
    near: Vec<(u64, u32)>,
    far: IdMap<u64, u32>,
    batch: Vec<u64>,
    /// Chunk and word of each ID of the batch.
    places: Vec<(u32, u32)>,
}

impl AddressSetHandle<'_> {
    /// Inserts an ID, immediately or with the rest of the batch; IDs that already exist are appended to
    /// `repeated`.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        id: u64,
        repeated: &mut Vec<u64>,
        allowance: &Allowance,
    ) -> Result<(), Misfit> {
        self.batch.push(id);
        if self.batch.len() == BATCH { self.flush(repeated, allowance) } else { Ok(()) }
    }

    /// Inserts all IDs of the batch.
    pub(crate) fn flush(&mut self, repeated: &mut Vec<u64>, allowance: &Allowance) -> Result<(), Misfit> {
        // Reads the words first, so that the cache misses overlap: the locked instructions that follow
        // would wait for one after another.
        let shift = self.set.shift;
        let mut batch = std::mem::take(&mut self.batch);
        self.places.clear();
        let mut seen = 0;
        for id in &batch {
            if id & ((1 << shift) - 1) != 0 {
                return Err(Misfit::Unaligned);
            }
            let position = Position::new(*id, shift);
            let chunk = self.chunk(position.key, true)?;
            // A chunk has 4096 words.
            let word = u32::try_from(position.word()).unwrap_or(u32::MAX);
            self.places.push((chunk, word));
            seen ^= self.word(chunk, word).map_or(0, |word| word.load(Ordering::Relaxed));
        }
        std::hint::black_box(seen);
        let bit = |id: &u64| 1u64 << (Position::new(*id, shift).bit % 64);
        let mut repeat = |id| allowance.push(repeated, id).map_err(|_| Misfit::Memory);
        let mut left = &*batch;
        // Neighbors are bits of one word.
        for same in self.places.chunk_by(|one, other| one == other) {
            let (ids, rest) = left.split_at_checked(same.len()).unwrap_or_default();
            left = rest;
            let mut mask = 0;
            for id in ids {
                if mask & bit(id) != 0 {
                    repeat(*id)?;
                }
                mask |= bit(id);
            }
            let word = same.first().and_then(|(chunk, word)| self.word(*chunk, *word));
            let Some(word) = word else { return Err(Misfit::Scattered) };
            let before = word.fetch_or(mask, Ordering::Relaxed);
            if before & mask != 0 {
                ids.iter().filter(|id| before & bit(id) != 0).try_for_each(|id| repeat(*id))?;
            }
        }
        batch.clear();
        self.batch = batch;
        Ok(())
    }

    fn word(&self, chunk: u32, word: u32) -> Option<&AtomicU64> {
        self.chunks.get(chunk as usize)?.get(word as usize)
    }

    /// Returns the distance from `id` to the next ID in the set, if it is in the same or the next chunk.
    pub(crate) fn distance_to_next(&mut self, id: u64) -> Option<u64> {
        let shift = self.set.shift;
        let from = Position::new(id, shift);
        let mut granules = 0u64;
        // The rest of the bit's own word, then the following words.
        let (mut word, mut bit) = (from.word(), from.bit % 64 + 1);
        for key in [from.key, from.key + 1] {
            let chunk = self.chunk(key, false).ok()?;
            while let Some(bits) = self.chunks.get(chunk as usize)?.get(word) {
                // The first word of a line contains no bits.
                if word % LINE_WORDS != 0 {
                    let bits = bits.load(Ordering::Relaxed).checked_shr(bit).unwrap_or(0);
                    if bits != 0 {
                        return Some((granules + u64::from(bits.trailing_zeros()) + 1) << shift);
                    }
                    granules += u64::from(64 - bit);
                }
                bit = 0;
                word += 1;
            }
            word = 0;
        }
        None
    }

    /// Returns the position of a chunk in `chunks`.
    #[inline(always)]
    fn chunk(&mut self, key: u64, create: bool) -> Result<u32, Misfit> {
        #[allow(clippy::cast_possible_truncation)]
        let home = key as usize % NEAR;
        match self.near.get(home) {
            Some((near, place)) if *near == key && *place != 0 => Ok(place - 1),
            _ => self.fetch(key, home, create),
        }
    }

    #[cold]
    fn fetch(&mut self, key: u64, home: usize, create: bool) -> Result<u32, Misfit> {
        let place = match self.far.get(&key) {
            Some(place) => *place,
            None => {
                let known = || self.set.chunk(key).ok_or(Misfit::Scattered);
                let chunk = if create { self.set.chunk_or_new(key) } else { known() }?;
                let place = u32::try_from(self.chunks.len()).map_err(|_| Misfit::Scattered)?;
                self.chunks.push(chunk);
                self.far.insert(key, place);
                place
            }
        };
        if let Some(near) = self.near.get_mut(home) {
            *near = (key, place + 1);
        }
        Ok(place)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_a_sorted_list() {
        for shift in [0, 3, 4] {
            let set = AddressSet::new(shift, 1 << 30);
            let mut cursor = set.cursor();
            let mut state = 1u64;
            let mut ids: Vec<u64> = (0..5000)
                .map(|i| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    ((0x7000 + i / 100 * 40_000 + (state >> 33) % 30_000) << shift) + (1 << 40)
                })
                .collect();
            ids.sort_unstable();
            ids.dedup();
            let mut repeated = Vec::new();
            let allowance = Allowance::new(None);
            for id in &ids {
                assert_eq!(cursor.insert(*id, &mut repeated, &allowance), Ok(()));
                assert_eq!(cursor.insert(*id, &mut repeated, &allowance), Ok(()));
            }
            assert_eq!(cursor.flush(&mut repeated, &allowance), Ok(()));
            assert_eq!(repeated, ids);
            for pair in ids.windows(2) {
                assert_eq!(cursor.distance_to_next(pair[0]), Some(pair[1] - pair[0]), "shift {shift}");
            }
            assert_eq!(cursor.distance_to_next(*ids.last().unwrap()), None);
            let bits: u32 = set
                .chunks
                .lock()
                .unwrap()
                .values()
                .flat_map(|c| c.iter())
                .map(|w| w.load(Ordering::Relaxed).count_ones())
                .sum();
            assert_eq!(bits as usize, ids.len());
        }
    }

    #[test]
    fn misfits_are_told() {
        let set = AddressSet::new(3, 0);
        let free = Allowance::new(None);
        let insert = |id| {
            let mut cursor = set.cursor();
            let inserted = cursor.insert(id, &mut Vec::new(), &free);
            inserted.and_then(|()| cursor.flush(&mut Vec::new(), &free))
        };
        assert_eq!(insert(9), Err(Misfit::Unaligned));
        let scattered = (0..100u64).map(|i| insert(i << 40)).find(Result::is_err);
        assert_eq!(scattered, Some(Err(Misfit::Scattered)));
        assert_eq!(insert(u64::MAX - 7), Err(Misfit::Scattered));
        let short = AddressSet::new(3, 1 << 30).with_max_bytes(2 * CHUNK_WORDS as u64 * 8);
        let mut cursor = short.cursor();
        let ids = (0..3u64).map(|chunk| chunk * CHUNK_LINES * LINE_BITS * 8);
        ids.for_each(|id| cursor.insert(id, &mut Vec::new(), &free).unwrap());
        assert_eq!(cursor.flush(&mut Vec::new(), &free), Err(Misfit::Memory));
        assert_eq!((short.bytes(), short.len()), (2 * CHUNK_WORDS as u64 * 8, 0));
    }
}
