//! Totals of all reachable objects: JSON keys in addition to the rows, and shares of rows as percentages and bars.

use hprof_index::ObjectGraph;
use hprof_index::graph::tree::Tree;
use hprof_report::tree;

use crate::cli::prelude::*;
use crate::cli::shared::output;

/// Minimum width of a terminal for bars; in a narrower one, names need the space.
const ROOM_FOR_BARS: u16 = 100;

/// Returns the keys in addition to the rows.
pub(in crate::cli::retention) fn summary_columns() -> Columns<'static, Tree> {
    Columns::new([
        Column::new(names::REACHABLE.dot(names::OBJECTS), |tree: &Tree| tree.reachable().into()),
        Column::new(names::REACHABLE.dot(names::SHALLOW_BYTES), |tree: &Tree| tree.reachable_bytes().into()),
    ])
}

/// Total size of all reachable objects, of which retained sizes are a share.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::cli::retention) struct ReachableTotal {
    /// Total size of all reachable objects in bytes.
    pub(in crate::cli::retention) bytes: u64,
    /// `true` if the terminal is wide enough for bars.
    has_bars: bool,
}

impl ReachableTotal {
    pub(in crate::cli::retention) fn new(cx: &RunContext, graph: &ObjectGraph, output: &Output) -> Self {
        let width = output::style(cx, output).width;
        Self {
            bytes: graph.tree.reachable_bytes(),
            has_bars: width.is_none_or(|width| width >= ROOM_FOR_BARS),
        }
    }

    /// Formats `part` as a percentage of the total.
    pub(in crate::cli::retention) fn percent(self, part: u64) -> String {
        percent(part, self.bytes)
    }

    /// Formats `part` of the total as a bar.
    pub(in crate::cli::retention) fn bar(self, part: u64) -> String {
        if self.has_bars { tree::bar(part, self.bytes) } else { String::new() }
    }

    /// Returns the table columns with the percentage and the bar, to follow the column of the size.
    pub(in crate::cli::retention) fn columns<'c, R: 'c>(
        self,
        retained_bytes: fn(&R) -> u64,
    ) -> [TableColumn<'c, R>; 2] {
        [
            TableColumn::table_only("%", Align::Right, move |row| self.percent(retained_bytes(row))),
            TableColumn::table_only("", Align::Left, move |row| self.bar(retained_bytes(row)))
                .drawn()
                .fit(Fit::Secondary { priority: 0 }),
        ]
    }
}
