//! Comparison of two or more dumps, by names that mean the same in each of them.
//!
//! Object IDs, object indices and class numbers mean nothing in another dump. The data to compare is extracted from each
//! dump separately, as plain data under names ([`classes`], [`places`]), and then matched: only one dump has to be open at a
//! time. Texts are not copied: [`strings`] compares them in place, in both dumps.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use crate::strings::contents;

pub mod classes;
mod growth;
pub mod places;
pub mod properties;
pub mod root_counts;
pub mod stable_names;
pub mod strings;
pub mod threads;
pub mod trend;
pub mod waste;

pub use growth::Growth;

/// A number in an old and a new dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// In the old dump.
    pub old: u64,
    /// In the new dump.
    pub new: u64,
}

impl Change {
    /// Creates it from the figures of a row, which a dump may lack.
    pub(crate) fn of<R>(old: Option<&R>, new: Option<&R>, figure: fn(&R) -> u64) -> Self {
        Self { old: old.map_or(0, figure), new: new.map_or(0, figure) }
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self { old: self.old.saturating_add(other.old), new: self.new.saturating_add(other.new) }
    }

    /// Returns the growth, negative if it shrank; saturates.
    pub fn delta(self) -> i64 {
        let size = i64::try_from(self.new.abs_diff(self.old)).unwrap_or(i64::MAX);
        if self.new >= self.old { size } else { -size }
    }
}

/// Status of a row of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Only in the new dump.
    New,
    /// Only in the old dump.
    Gone,
    /// In both, but different.
    Changed,
    /// The same in both.
    Same,
}

impl Status {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Same => "same",
        }
    }

    /// Returns the status of a row that is in the old dump, the new one or both.
    pub fn of(is_in_old: bool, is_in_new: bool, is_same: bool) -> Self {
        match (is_in_old, is_in_new) {
            (false, true) => Self::New,
            (true, false) => Self::Gone,
            _ if is_same => Self::Same,
            _ => Self::Changed,
        }
    }
}

/// Returns a random seed for hashes by which two dumps are compared.
pub fn random_seed() -> u64 {
    contents::random_seed()
}

/// Joins the maps of an old and a new dump by key, each key once, in no particular order.
fn matched<'m, K: Eq + Hash, V, S: BuildHasher>(
    old: &'m HashMap<K, V, S>,
    new: &'m HashMap<K, V, S>,
) -> impl Iterator<Item = (&'m K, Option<&'m V>, Option<&'m V>)> {
    let in_new = new.iter().map(|(key, after)| (key, old.get(key), Some(after)));
    let only_old = old.iter().filter(|(key, _)| !new.contains_key(*key));
    in_new.chain(only_old.map(|(key, before)| (key, Some(before), None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_have_signs() {
        let delta = |old, new| Change { old, new }.delta();
        assert_eq!([delta(1, 3), delta(3, 1), delta(2, 2)], [2, -2, 0]);
        assert_eq!([delta(0, u64::MAX), delta(u64::MAX, 0)], [i64::MAX, -i64::MAX]);
    }
}
