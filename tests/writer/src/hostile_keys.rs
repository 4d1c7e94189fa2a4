//! Keys that collide in unseeded hash tables, and a check that a table is seeded.

use std::collections::HashMap;
use std::hash::BuildHasher;

/// Inverse of the factor of `FxHasher` (rustc-hash 2, 64 bits), modulo 2^64.
const INVERSE: u64 = 0x7814_94a5_5daa_ed0d;

/// Returns different numbers that collide in any table of a program with `FxHasher`: its buckets are the highest bits of the
/// product with a factor, here zeros.
pub fn colliding_keys() -> impl Iterator<Item = i64> {
    (1..1 << 31).map(|number: u64| INVERSE.wrapping_mul(number).cast_signed())
}

/// Returns whether each table of this type has its own hash.
pub fn is_seeded<K, V, S: BuildHasher + Default>(_: &HashMap<K, V, S>) -> bool {
    S::default().hash_one(1u64) != S::default().hash_one(1u64)
}
