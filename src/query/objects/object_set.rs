//! A set of object indices, one bit each.

use crate::index::graph::numbers::ObjectIndex;

/// A set of object indices below a limit. Its memory is not touched before something is put in.
#[derive(Debug, Clone, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// An empty set of object indices below `limit`.
    pub(crate) fn new(limit: u32) -> Self {
        Self(vec![0; limit.div_ceil(64) as usize])
    }

    /// Whether it holds an object.
    #[inline]
    pub(crate) fn contains(&self, ObjectIndex(number): ObjectIndex) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Which of 64 objects it holds, a bit each.
    #[inline]
    pub(crate) fn word(&self, number: u32) -> u64 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }

    /// Puts an object in: whether it was not there. An object beyond the limit never is.
    #[inline]
    pub(crate) fn insert(&mut self, ObjectIndex(number): ObjectIndex) -> bool {
        let Some(word) = self.0.get_mut((number / 64) as usize) else { return false };
        let bit = 1 << (number % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in_once() {
        let mut bits = Bits::new(65);
        assert!(bits.insert(ObjectIndex(0)) && bits.insert(ObjectIndex(64)) && !bits.insert(ObjectIndex(64)));
        assert!(
            bits.contains(ObjectIndex(0))
                && bits.contains(ObjectIndex(64))
                && !bits.contains(ObjectIndex(63))
                && !bits.contains(ObjectIndex(1 << 20))
        );
        assert!(!bits.insert(ObjectIndex(1 << 20)));
    }
}
