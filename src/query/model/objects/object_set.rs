//! A set of dense numbers, one bit each: object indices, or others.

use std::marker::PhantomData;
use std::ops::Range;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;

/// A dense number, from 0, such as an object index: an element of [`Bits`].
pub trait Number: Copy {
    /// Returns the number.
    fn number(self) -> u32;
    /// Creates the index from a number.
    fn from_number(number: u32) -> Self;
}

macro_rules! numbers {
    ($($name:ident)*) => { $(
        impl Number for $name {
            #[inline(always)]
            fn number(self) -> u32 {
                self.0
            }

            #[inline(always)]
            fn from_number(number: u32) -> Self {
                Self(number)
            }
        }
    )* };
}

numbers!(ObjectIndex TreePosition ClassNumber);

/// A set of numbers below a limit. Its memory is not touched before a number is inserted.
#[derive(Debug, Clone)]
pub struct Bits<N = ObjectIndex>(Vec<u64>, PhantomData<fn(N)>);

impl<N> Default for Bits<N> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<N: Number> Bits<N> {
    /// Creates an empty set of numbers below `limit`.
    pub fn new(limit: u32) -> Self {
        Self(vec![0; limit.div_ceil(64) as usize], PhantomData)
    }

    /// Returns whether the set contains a number.
    #[inline]
    pub fn contains(&self, number: N) -> bool {
        let number = number.number();
        self.0.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Returns the number of elements.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the bits of 64 numbers: `number` is the index of the word.
    #[inline]
    pub fn word(&self, number: u32) -> u64 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }

    /// Inserts a number; returns `true` if it was absent. A number beyond the limit is never inserted.
    #[inline]
    pub fn insert(&mut self, number: N) -> bool {
        let number = number.number();
        let Some(word) = self.0.get_mut((number / 64) as usize) else { return false };
        let bit = 1 << (number % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    /// Removes a number.
    pub fn remove(&mut self, number: N) {
        let number = number.number();
        if let Some(word) = self.0.get_mut((number / 64) as usize) {
            *word &= !(1 << (number % 64));
        }
    }

    /// Inserts all numbers of a range, except those beyond the limit.
    pub fn insert_range(&mut self, range: Range<N>) {
        let (start, end) = (range.start.number(), range.end.number());
        let words = self.0.get_mut((start / 64) as usize..).unwrap_or_default();
        for (first, word) in (start / 64 * 64..end).step_by(64).zip(words) {
            let from = u64::MAX << start.saturating_sub(first);
            *word |= from & u64::MAX.checked_shr(64 - (end - first).min(64)).unwrap_or(0);
        }
    }

    /// Inserts numbers, 64 per word; `first` is the number of the first bit, a multiple of 64.
    pub(crate) fn insert_words(&mut self, first: N, words: &[u64]) {
        let places = self.0.get_mut((first.number() / 64) as usize..).unwrap_or_default();
        for (place, word) in places.iter_mut().zip(words) {
            *place |= word;
        }
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

    #[test]
    fn ranges_are_put_in() {
        for (start, end) in
            [(0, 0), (0, 1), (3, 64), (63, 65), (64, 128), (5, 5), (70, 199), (190, 500), (300, 400)]
        {
            let mut bits = Bits::new(200);
            bits.insert_range(TreePosition(start)..TreePosition(end));
            // The limit is rounded up to whole words.
            for number in 0..256 {
                assert_eq!(
                    bits.contains(TreePosition(number)),
                    (start..end).contains(&number),
                    "{start} {end} {number}"
                );
            }
        }
    }
}
