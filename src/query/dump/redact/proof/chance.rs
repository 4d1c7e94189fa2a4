//! Values that are the same before and after by chance: a permutation may leave some where they are.

use rustc_hash::{FxHashMap, FxHashSet};

/// Probability with which chance alone exceeds [`bound`].
const IMPROBABLE: f64 = 1e-6;
/// Maximum number of different values that are remembered.
const MAX_VALUES: usize = 1 << 20;

/// Returns the number of values that chance leaves the same, if it leaves `expected` on average: with more, it was not
/// chance. `expected` is doubled, as texts that stay make a permutation a little smaller.
fn bound(expected: f64) -> u64 {
    let mean = 2.0 * expected;
    if mean > 500.0 {
        // Six standard deviations.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and far below 2^64.
        return (mean + 6.0 * mean.sqrt()) as u64;
    }
    // The terms of a Poisson distribution, until what is left is improbable.
    let (mut term, mut below, mut count) = ((-mean).exp(), 0.0, 0);
    loop {
        below += term;
        // Of the rest of a small mean only the next term counts; 1 - below has lost it.
        let next = term * mean / (count as f64 + 1.0);
        if 1.0 - below < IMPROBABLE && next < IMPROBABLE {
            return count;
        }
        (term, count) = (next, count + 1);
    }
}

/// Counts the values that are the same, each once, as equal values in one place have one fate.
#[derive(Debug, Default)]
pub(super) struct SameValues {
    /// Number of values that chance leaves the same, without those in `seen`.
    expected: f64,
    /// Probability of staying by the hash of the value.
    seen: FxHashMap<u64, f64>,
    /// Hashes of those that are the same.
    same: FxHashSet<u64>,
    /// Those that are the same, beyond what is remembered.
    more: u64,
    /// Each object's values have their own fate.
    is_each_alone: bool,
}

impl SameValues {
    pub(super) fn new(is_each_alone: bool) -> Self {
        Self { is_each_alone, ..Self::default() }
    }

    /// Counts one of very many values: the chance of all is added, although equal ones have one fate.
    #[inline]
    pub(super) fn wide(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        self.expected += chance;
        if is_same {
            self.add_same(hash);
        }
    }

    /// Counts a value that stays with this probability. Those beyond the maximum are not counted.
    pub(super) fn narrow(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        if self.is_each_alone {
            return self.wide(chance, is_same, hash);
        }
        let hash = hash();
        let is_known = self.seen.contains_key(&hash);
        if !is_known && self.seen.len() < MAX_VALUES {
            self.seen.insert(hash, chance);
            if is_same {
                self.add_same(|| hash);
            }
        }
    }

    fn add_same(&mut self, hash: impl FnOnce() -> u64) {
        if self.is_each_alone || self.same.len() >= MAX_VALUES {
            self.more += 1;
        } else {
            self.same.insert(hash());
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.expected += other.expected;
        self.seen.extend(other.seen);
        self.same.extend(other.same);
        self.more += other.more;
    }

    /// Returns the number of values that are the same, and whether these are more than chance leaves.
    pub(super) fn result(&self) -> (u64, bool) {
        let same = self.same.len() as u64 + self.more;
        (same, same > bound(self.expected + self.seen.values().sum::<f64>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_has_its_bounds() {
        let bounds = [0.0, 1e-9, 1e-4, 0.005, 0.5, 50.0].map(bound);
        assert_eq!(bounds, [0, 0, 1, 2, 9, 151]);
        assert_eq!(bound(1e6), 2_008_485);
    }

    #[test]
    fn equal_values_have_one_fate() {
        let mut values = SameValues::new(false);
        (0..1000).for_each(|_| values.narrow(1.0 / 127.0, true, || 5));
        assert_eq!(values.result(), (1, false));
        (0..5).for_each(|hash| values.narrow(1.0 / 127.0, true, || hash * 7));
        assert_eq!(values.result(), (6, true));
        let mut alone = SameValues::new(true);
        (0..1270).for_each(|number| alone.narrow(1.0 / 127.0, number % 127 == 0, || 5));
        assert_eq!(alone.result(), (10, false));
        let mut wide = SameValues::new(false);
        (0..2).for_each(|hash| wide.wide(1e-9, true, || hash));
        assert_eq!(wide.result(), (2, true));
    }
}
