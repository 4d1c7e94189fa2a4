//! Big-endian numbers, values and identifiers at an offset in a slice: `None` if the slice is too short.

use super::types::{BasicType, IdSize};
use crate::ids::ObjectId;

/// Reads a big-endian `u16` at `at`.
#[inline]
pub fn be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
}

/// Reads a big-endian `u32` at `at`.
#[inline]
pub fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

/// Reads a big-endian `u64` at `at`.
#[inline]
pub fn be_u64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_be_bytes(*chunk))
}

/// Reads the bits of a value of `kind` at `at`.
#[inline]
pub fn be_value(bytes: &[u8], at: usize, kind: BasicType, size: IdSize) -> Option<u64> {
    let value = bytes.get(at..)?.get(..kind.dump_bytes(size))?;
    Some(value.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte)))
}

/// Returns consecutive identifiers.
#[inline]
pub fn be_ids(bytes: &[u8], size: IdSize) -> impl ExactSizeIterator<Item = ObjectId> + use<'_> {
    bytes.chunks_exact(size.bytes()).map(move |id| ObjectId(be_id(id, 0, size).unwrap_or(0)))
}

/// Reads an identifier of `size` bytes at `at`.
#[inline]
pub fn be_id(bytes: &[u8], at: usize, size: IdSize) -> Option<u64> {
    match size {
        IdSize::Four => be_u32(bytes, at).map(u64::from),
        IdSize::Eight => be_u64(bytes, at),
    }
}
