//! Changes between two files: numbers, and the status of a row.

/// A number in an old and a new dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Number in the old dump.
    pub old: u64,
    /// Number in the new dump.
    pub new: u64,
}

impl Change {
    /// Creates a change from the figures of a row that may exist in only one of the dumps.
    pub fn from_rows<R>(old: Option<&R>, new: Option<&R>, figure: fn(&R) -> u64) -> Self {
        Self { old: old.map_or(0, figure), new: new.map_or(0, figure) }
    }

    /// Returns the sum of two changes.
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
    /// The row is only in the new dump.
    New,
    /// The row is only in the old dump.
    Gone,
    /// The row is in both dumps, with different values.
    Changed,
    /// The row is the same in both dumps.
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
    pub fn from_presence(is_in_old: bool, is_in_new: bool, is_same: bool) -> Self {
        match (is_in_old, is_in_new) {
            (false, true) => Self::New,
            (true, false) => Self::Gone,
            _ if is_same => Self::Same,
            _ => Self::Changed,
        }
    }
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
