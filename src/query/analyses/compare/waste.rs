//! Comparison of waste by kind.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::waste::{Waste, WasteKind};
use hprof_base::sorting::SortRows;

use hprof_base::change::{Change, Status};

/// Figures of one kind of waste in one dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WasteFigures {
    count: u64,
    wasted_bytes: u64,
}

/// Waste of one dump, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WasteCensus {
    kinds: FxHashMap<&'static WasteKind, WasteFigures>,
    /// Size freed if all kinds were fixed; each byte counts once.
    pub wasted_bytes: u64,
}

/// Row of a comparison of waste: a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WasteChange {
    /// Kind of waste.
    pub kind: &'static WasteKind,
    /// Status of the row: new, gone, changed or the same.
    pub status: Status,
    /// Number of objects.
    pub count: Change,
    /// Size freed if only this kind were fixed.
    pub wasted_bytes: Change,
}

impl WasteCensus {
    /// Extracts the figures from the waste of a dump.
    pub fn new(waste: &Waste) -> Self {
        let figures = waste
            .rows
            .iter()
            .map(|row| (row.kind, WasteFigures { count: row.count, wasted_bytes: row.wasted_bytes }));
        Self { kinds: figures.collect(), wasted_bytes: waste.wasted_bytes }
    }

    /// Matches an old dump and a new one; largest growth of waste first.
    pub fn compare(old: &Self, new: &Self) -> Vec<WasteChange> {
        let mut rows: Vec<WasteChange> = super::join_by_key(&old.kinds, &new.kinds)
            .map(|(kind, before, after)| WasteChange::new(kind, before, after))
            .collect();
        rows.sort_rows_by_key(|row| (Reverse((row.wasted_bytes.delta(), row.count.delta())), row.kind));
        rows
    }
}

impl WasteChange {
    fn new(kind: &'static WasteKind, old: Option<&WasteFigures>, new: Option<&WasteFigures>) -> Self {
        let change = |figure| Change::from_rows(old, new, figure);
        Self {
            kind,
            status: Status::from_presence(old.is_some(), new.is_some(), old == new),
            count: change(|figures| figures.count),
            wasted_bytes: change(|figures| figures.wasted_bytes),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn census(kinds: &[(&str, u64, u64)]) -> WasteCensus {
        let figures = |(kind, count, wasted_bytes): &(&str, u64, u64)| {
            (WasteKind::from_name(kind).unwrap(), WasteFigures { count: *count, wasted_bytes: *wasted_bytes })
        };
        WasteCensus { kinds: kinds.iter().map(figures).collect(), wasted_bytes: 0 }
    }

    #[test]
    fn kinds_that_waste_more_come_first() {
        let old =
            census(&[("boxed_numbers", 5, 80), ("duplicate_strings", 10, 500), ("linked_lists", 2, 100)]);
        let new = census(&[("boxed_numbers", 5, 80), ("duplicate_strings", 30, 900), ("unreachable", 1, 16)]);
        let told: Vec<_> = WasteCensus::compare(&old, &new)
            .iter()
            .map(|row| (row.kind.name, row.status, row.count.delta(), row.wasted_bytes.delta()))
            .collect();
        assert_eq!(
            told,
            [
                ("duplicate_strings", Status::Changed, 20, 400),
                ("unreachable", Status::New, 1, 16),
                ("boxed_numbers", Status::Same, 0, 0),
                ("linked_lists", Status::Gone, -2, -100),
            ]
        );
    }
}
