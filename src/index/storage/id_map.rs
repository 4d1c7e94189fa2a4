//! Maps and sets keyed by numbers from a file.
//!
//! The hash is a folded multiplication, fast and seeded: a file cannot choose IDs that collide. Nothing
//! may depend on the order of such a map.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map keyed by IDs, serial numbers or offsets of a file.
pub type IdMap<K, V> = HashMap<K, V, IdHash>;
/// A set of IDs.
pub type IdSet<K> = HashSet<K, IdHash>;

/// Hasher of [`IdMap`].
#[derive(Debug, Clone, Copy)]
pub struct IdHash {
    seed: u64,
}

impl Default for IdHash {
    fn default() -> Self {
        Self { seed: RandomState::new().build_hasher().finish() }
    }
}

impl IdHash {
    /// Returns the hash of a number: the two halves of a long product, which depend on all bits of number and
    /// seed.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn mix(self, number: u64) -> u64 {
        let factor = (0x9e37_79b9_7f4a_7c15 ^ self.seed.rotate_left(32)) | 1;
        let product = u128::from(number ^ self.seed) * u128::from(factor);
        (product >> 64) as u64 ^ product as u64
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { hash: *self, state: 0 }
    }
}

/// Hasher of one number, or several.
#[derive(Debug)]
pub struct IdHasher {
    hash: IdHash,
    state: u64,
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.state = self.hash.mix(self.state.rotate_left(5) ^ number);
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}
