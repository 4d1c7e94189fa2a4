//! Comparison of GC roots by kind.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_base::sorting::SortRows;
use hprof_index::ObjectGraph;
use hprof_model::paths::root_report::{self, KindRow};
use hprof_values::RootKind;

use hprof_base::change::{Change, Status};

/// Counts of the GC roots of one dump, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootCensus(FxHashMap<RootKind, KindRow>);

/// Row of a comparison of GC roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootChange {
    /// Kind of root.
    pub kind: RootKind,
    /// Status of the row: new, gone, changed or the same.
    pub status: Status,
    /// Number of roots.
    pub roots: Change,
    /// Number of objects; one object can be a root more than once.
    pub objects: Change,
    /// Retained size of the objects, by the dominator tree: an object that several roots dominate counts once.
    pub retained_bytes: Change,
}

impl RootCensus {
    /// Counts the roots of a dump.
    pub fn new(graph: &ObjectGraph) -> Self {
        root_report::by_kind(graph).into_iter().collect()
    }

    /// Matches an old dump and a new one; largest growth of retained size first.
    pub fn compare(old: &Self, new: &Self) -> Vec<RootChange> {
        let mut rows: Vec<RootChange> = super::join_by_key(&old.0, &new.0)
            .map(|(kind, before, after)| RootChange::new(*kind, before, after))
            .collect();
        rows.sort_rows_by_key(|row| {
            let growth = (row.retained_bytes.delta(), row.objects.delta(), row.roots.delta());
            (Reverse(growth), row.kind)
        });
        rows
    }
}

impl FromIterator<KindRow> for RootCensus {
    fn from_iter<I: IntoIterator<Item = KindRow>>(rows: I) -> Self {
        Self(rows.into_iter().map(|row| (row.kind, row)).collect())
    }
}

impl RootChange {
    fn new(kind: RootKind, old: Option<&KindRow>, new: Option<&KindRow>) -> Self {
        let change = |figure| Change::from_rows(old, new, figure);
        Self {
            kind,
            status: Status::from_presence(old.is_some(), new.is_some(), old == new),
            roots: change(|row| row.roots),
            objects: change(|row| row.objects),
            retained_bytes: change(|row| row.retained_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn census(rows: &[(RootKind, u64, u64, u64)]) -> RootCensus {
        let row = |(kind, roots, objects, retained_bytes): &(RootKind, u64, u64, u64)| KindRow {
            kind: *kind,
            roots: *roots,
            objects: *objects,
            retained_bytes: *retained_bytes,
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn kinds_that_retain_more_come_first() {
        use RootKind::{JavaFrame, JniGlobal, StickyClass, ThreadObject};
        let old = census(&[(JniGlobal, 2, 2, 50), (StickyClass, 9, 9, 900), (JavaFrame, 4, 3, 10)]);
        let new = census(&[(JniGlobal, 7, 5, 80), (StickyClass, 9, 9, 900), (ThreadObject, 1, 1, 40)]);
        let rows = RootCensus::compare(&old, &new);
        let told: Vec<_> = rows
            .iter()
            .map(|row| (row.kind, row.status, row.roots.delta(), row.retained_bytes.delta()))
            .collect();
        assert_eq!(
            told,
            [
                (ThreadObject, Status::New, 1, 40),
                (JniGlobal, Status::Changed, 5, 30),
                (StickyClass, Status::Same, 0, 0),
                (JavaFrame, Status::Gone, -4, -10),
            ]
        );
        assert!(RootCensus::compare(&old, &old).iter().all(|row| row.status == Status::Same));
    }
}
