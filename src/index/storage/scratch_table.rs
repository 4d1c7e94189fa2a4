//! Tables that grow in the scratch arena: a vector, and a map of hashes to numbers.
//!
//! A query that stores something for each row that it has read does not know the total size in advance. A table that exceeds
//! the memory budget is moved to a file by the arena: it is then slower, but takes no more memory.

use std::collections::hash_map::Entry;
use std::io;

use rustc_hash::FxHashMap;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::scratch::{Array, Plain, ScratchArena};

/// Number of bytes up to which a table is not in the arena, where the smallest array takes pages of its own.
const FEW_BYTES: usize = 1 << 16;
/// Number of keys up to which a table of keys is not in the arena.
const FEW_KEYS: usize = 1 << 10;

/// A vector in the scratch arena.
#[derive(Debug)]
pub struct ScratchVec<T> {
    arena: ScratchArena,
    few: Vec<T>,
    /// All elements, once they exceed `FEW_BYTES`.
    many: Array<T>,
    len: usize,
}

impl<T: Plain + Copy> ScratchVec<T> {
    /// Returns an empty vector.
    pub fn new(arena: &ScratchArena) -> Self {
        Self { arena: arena.clone(), few: Vec::new(), many: arena.empty(), len: 0 }
    }

    /// Appends an element.
    ///
    /// # Errors
    /// The scratch arena has neither memory nor disk space.
    #[inline]
    pub fn push(&mut self, element: T) -> io::Result<()> {
        if self.len < FEW_BYTES / size_of::<T>().max(1) {
            self.few.push(element);
        } else {
            if self.len >= self.many.len() {
                self.grow()?;
            }
            if let Some(place) = self.many.get_mut(self.len) {
                *place = element;
            }
        }
        self.len += 1;
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        let mut more = self.arena.array::<T>(self.len.saturating_mul(2).max(2))?;
        if let Some(place) = more.get_mut(..self.len) {
            place.copy_from_slice(self.as_slice());
        }
        (self.few, self.many) = (Vec::new(), more);
        Ok(())
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        if self.many.is_empty() { &self.few } else { self.many.get(..self.len).unwrap_or_default() }
    }

    /// Returns the elements.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        if self.many.is_empty() { &mut self.few } else { self.many.get_mut(..self.len).unwrap_or_default() }
    }
}

/// A slot of a [`KeyTable`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct KeySlot {
    key: [u32; 4],
    /// The number, plus one; 0 for an empty slot.
    number: u32,
}

/// A map of keys to numbers. Keys are uniformly distributed hashes of 128 bits.
#[derive(Debug)]
pub struct KeyTable {
    arena: ScratchArena,
    few: FxHashMap<u128, u32>,
    /// All keys, once they exceed `FEW_KEYS`.
    many: Array<KeySlot>,
    len: usize,
}

impl KeyTable {
    /// Returns an empty table.
    pub fn new(arena: &ScratchArena) -> Self {
        Self { arena: arena.clone(), few: FxHashMap::default(), many: arena.empty(), len: 0 }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of a key.
    pub fn get(&self, key: u128) -> Option<u32> {
        let many = &*self.many;
        if many.is_empty() {
            return self.few.get(&key).copied();
        }
        many.get(place(many, key)?)?.number.checked_sub(1)
    }

    /// Inserts a key with its number, unless it already exists: then its number is returned.
    ///
    /// # Errors
    /// The scratch arena has neither memory nor disk space.
    pub fn insert(&mut self, key: u128, number: u32) -> io::Result<Option<u32>> {
        if self.len < FEW_KEYS {
            return Ok(match self.few.entry(key) {
                Entry::Occupied(known) => Some(*known.get()),
                Entry::Vacant(place) => {
                    place.insert(number);
                    self.len += 1;
                    None
                }
            });
        }
        // Three quarters full at most.
        if self.len >= self.many.len() / 4 * 3 {
            self.grow()?;
        }
        let many = &mut *self.many;
        let slot = place(many, key).and_then(|at| many.get_mut(at)).ok_or(io::ErrorKind::OutOfMemory)?;
        if let Some(known) = slot.number.checked_sub(1) {
            return Ok(Some(known));
        }
        *slot = KeySlot { key: words(key), number: number.saturating_add(1) };
        self.len += 1;
        Ok(None)
    }

    #[cold]
    fn grow(&mut self) -> io::Result<()> {
        let mut array =
            self.arena.zeroed_array::<KeySlot>(self.many.len().max(FEW_KEYS).saturating_mul(2))?;
        let more = &mut *array;
        let few = self
            .few
            .drain()
            .map(|(key, number)| KeySlot { key: words(key), number: number.saturating_add(1) });
        for slot in few.chain(self.many.iter().copied().filter(|slot| slot.number != 0)) {
            if let Some(empty) = place(more, key(slot.key)).and_then(|at| more.get_mut(at)) {
                *empty = slot;
            }
        }
        (self.few, self.many) = (FxHashMap::default(), array);
        Ok(())
    }
}

/// Returns the slot that has a key, or the empty one at which it belongs; the number of slots is a power of two.
#[inline]
fn place(slots: &[KeySlot], key: u128) -> Option<usize> {
    let mask = slots.len().checked_sub(1)?;
    let words = words(key);
    #[allow(clippy::cast_possible_truncation)] // The lower bits are as good as any.
    let mut at = key as usize & mask;
    loop {
        let slot = slots.get(at)?;
        if slot.number == 0 || slot.key == words {
            return Some(at);
        }
        at = (at + 1) & mask;
    }
}

/// Returns the words of a key: a slot of four-byte alignment is a sixth smaller.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn words(key: u128) -> [u32; 4] {
    [key as u32, (key >> 32) as u32, (key >> 64) as u32, (key >> 96) as u32]
}

#[inline]
fn key(words: [u32; 4]) -> u128 {
    words.iter().rev().fold(0, |key, word| key << 32 | u128::from(*word))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_the_same_in_memory_and_in_files() {
        let dir = tempfile::tempdir().unwrap();
        for memory in [0, 1 << 20, 1 << 30] {
            let arena = ScratchArena::new(dir.path().to_owned(), memory);
            let (mut table, mut all) = (KeyTable::new(&arena), ScratchVec::new(&arena));
            assert!(table.is_empty() && all.is_empty() && table.get(7).is_none());
            // The first differ only in their upper or lower halves, and zero is one of them; too many of such would collide.
            let keys = |at: u32| {
                let hash = u128::from(at).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                if at < 2_000 { [u128::from(at), u128::from(at + 1) << 96] } else { [hash, !hash] }
            };
            for at in 0..50_000 {
                assert!(
                    keys(at)
                        .iter()
                        .all(|key| table.insert(*key, at).unwrap().is_none() && table.get(*key) == Some(at))
                );
                all.push(u64::from(at)).unwrap();
            }
            assert_eq!((table.len(), all.len()), (100_000, 50_000));
            for at in 0..50_000 {
                assert!(keys(at).iter().all(|key| table.get(*key) == Some(at)));
                assert!(keys(at).iter().all(|key| table.insert(*key, 9).unwrap() == Some(at)));
            }
            assert_eq!((table.len(), table.get(50_000)), (100_000, None));
            assert!(all.as_slice().iter().copied().eq(0..50_000));
        }
    }
}
