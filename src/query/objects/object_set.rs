//! A set of object indices, one bit each.

/// A set of numbers below a limit. Its memory is not touched before something is put in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// An empty set of numbers below `limit`.
    pub(crate) fn new(limit: u32) -> Self {
        Self(vec![0; limit.div_ceil(64) as usize])
    }

    /// Whether it holds a number.
    #[inline]
    pub(crate) fn contains(&self, number: u32) -> bool {
        self.0.get((number / 64) as usize).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Puts a number in: whether it was not there. A number beyond the limit never is.
    #[inline]
    pub(crate) fn insert(&mut self, number: u32) -> bool {
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
        assert!(bits.insert(0) && bits.insert(64) && !bits.insert(64));
        assert!(bits.contains(0) && bits.contains(64) && !bits.contains(63) && !bits.contains(1 << 20));
        assert!(!bits.insert(1 << 20));
    }
}
