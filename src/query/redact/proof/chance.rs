//! Values that are unchanged by chance: a permutation may have fixed points.

use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum probability that chance alone exceeds [`bound`].
const IMPROBABLE: f64 = 2e-7;
/// Maximum number of distinct values that are stored for each class of probability.
const MAX_VALUES: usize = 1 << 20;
/// Lower bounds of the classes of probability. Values are judged within their class, so that an unchanged rare value is found
/// even if many common ones are unchanged.
const CLASSES: [f64; 4] = [1e-3, 1e-6, 1e-9, 0.0];

/// Returns the maximum number of values that chance leaves unchanged if it leaves `expected` on average. `expected` is doubled,
/// as kept texts make a permutation slightly smaller.
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
        // For a small mean, only the next term of the rest matters; 1 - below has lost it to rounding.
        let next = term * mean / (count as f64 + 1.0);
        if 1.0 - below < IMPROBABLE && next < IMPROBABLE {
            return count;
        }
        (term, count) = (next, count + 1);
    }
}

/// Counts of the unchanged values, by class of probability.
#[derive(Debug)]
pub(super) struct SameValues([SameOfClass; CLASSES.len()]);

impl SameValues {
    pub(super) fn new(is_each_alone: bool) -> Self {
        Self(CLASSES.map(|_| SameOfClass { is_each_alone, ..SameOfClass::default() }))
    }

    #[inline]
    fn class_mut(&mut self, chance: f64) -> &mut SameOfClass {
        let [first, second, third, fourth] = &mut self.0;
        match CLASSES.map(|least| chance >= least) {
            [true, ..] => first,
            [_, true, ..] => second,
            [_, _, true, _] => third,
            _ => fourth,
        }
    }

    /// Counts one of very many values: probabilities are added for each value, although equal values have the same outcome.
    #[inline]
    pub(super) fn wide(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        self.class_mut(chance).wide(chance, is_same, hash);
    }

    /// Counts a value that is unchanged with probability `chance`. Equal values are counted once if they have the same outcome.
    pub(super) fn narrow(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        self.class_mut(chance).narrow(chance, is_same, hash);
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(all, other)| all.add(other));
    }

    /// Returns, for each class of probability, the number of unchanged values, and whether there are more than chance
    /// explains.
    pub(super) fn results(&self) -> impl Iterator<Item = (u64, bool)> {
        self.0.iter().map(SameOfClass::result)
    }
}

/// Counts of the distinct values of one class of probability: equal values in one field have the same outcome.
#[derive(Debug, Default)]
struct SameOfClass {
    /// Expected number of values that are unchanged by chance, excluding those in `seen`.
    expected: f64,
    /// Probability of being unchanged, by the hash of the value.
    seen: FxHashMap<u64, f64>,
    /// Hashes of the unchanged values.
    same: FxHashSet<u64>,
    /// Number of unchanged values beyond the stored ones.
    more: u64,
    /// `true` if equal values of different objects are mapped independently.
    is_each_alone: bool,
}

impl SameOfClass {
    #[inline]
    fn wide(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        self.expected += chance;
        if is_same {
            self.add_same(hash);
        }
    }

    /// Counts a value; equal values are counted once, unless they are mapped independently or exceed the maximum of stored
    /// values.
    fn narrow(&mut self, chance: f64, is_same: bool, hash: impl FnOnce() -> u64) {
        if self.is_each_alone {
            return self.wide(chance, is_same, hash);
        }
        let hash = hash();
        self.see(hash, chance);
        if is_same {
            self.add_same(|| hash);
        }
    }

    fn see(&mut self, hash: u64, chance: f64) {
        if self.seen.len() < MAX_VALUES {
            self.seen.insert(hash, chance);
        } else if !self.seen.contains_key(&hash) {
            self.expected += chance;
        }
    }

    fn add_same(&mut self, hash: impl FnOnce() -> u64) {
        if self.is_each_alone {
            self.more += 1;
            return;
        }
        let hash = hash();
        if self.same.len() < MAX_VALUES {
            self.same.insert(hash);
        } else if !self.same.contains(&hash) {
            self.more += 1;
        }
    }

    fn add(&mut self, other: Self) {
        self.expected += other.expected;
        other.seen.into_iter().for_each(|(hash, chance)| self.see(hash, chance));
        other.same.into_iter().for_each(|hash| self.add_same(|| hash));
        self.more += other.more;
    }

    /// Returns the number of unchanged values, and whether there are more than chance explains.
    fn result(&self) -> (u64, bool) {
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
        assert_eq!(bounds, [0, 0, 1, 2, 9, 155]);
        assert_eq!(bound(1e6), 2_008_485);
    }

    #[test]
    fn equal_values_have_one_fate() {
        let failed =
            |values: &SameValues| values.results().filter(|(_, is_improbable)| *is_improbable).count();
        let same = |values: &SameValues| values.results().map(|(same, _)| same).sum::<u64>();
        let mut values = SameValues::new(false);
        (0..1000).for_each(|_| values.narrow(1.0 / 127.0, true, || 5));
        assert_eq!((same(&values), failed(&values)), (1, 0));
        (0..5).for_each(|hash| values.narrow(1.0 / 127.0, true, || hash * 7));
        assert_eq!((same(&values), failed(&values)), (6, 1));
        let mut alone = SameValues::new(true);
        (0..1270).for_each(|number| alone.narrow(1.0 / 127.0, number % 127 == 0, || 5));
        assert_eq!((same(&alone), failed(&alone)), (10, 0));
        let mut wide = SameValues::new(false);
        (0..2).for_each(|hash| wide.wide(1e-9, true, || hash));
        assert_eq!((same(&wide), failed(&wide)), (2, 1));
    }

    /// Unchanged short texts are found even if many unchanged bytes are expected.
    #[test]
    fn each_class_of_chance_has_its_own_bound() {
        let mut values = SameValues::new(false);
        (0..100_000).for_each(|hash| values.narrow(1.0 / 127.0, hash % 127 == 0, || hash));
        assert!(values.results().all(|(_, is_improbable)| !is_improbable));
        values.narrow(3e-11, true, || 1 << 40);
        assert!(values.results().any(|(_, is_improbable)| is_improbable));
    }

    #[test]
    fn no_more_values_are_remembered_than_the_maximum() {
        let half = |start: u64| {
            let mut values = SameOfClass::default();
            (start..start + MAX_VALUES as u64 / 4 * 3).for_each(|hash| values.narrow(1e-7, true, || hash));
            values
        };
        let mut values = half(0);
        values.add(half(1 << 40));
        assert_eq!((values.seen.len(), values.same.len()), (MAX_VALUES, MAX_VALUES));
        assert_eq!(values.result(), (MAX_VALUES as u64 / 2 * 3, true));
        assert!(values.expected > 0.05);
    }
}
