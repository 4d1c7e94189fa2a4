//! Rows of a table, and the lines that show them.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use super::column::{CellTarget, Schema};
use super::grid::{self, RowLine};
use super::rows::{RowCursor, table_cell};
use super::{escape, ink, tree};

/// A row with the lines below it.
#[derive(Debug, Clone, Default)]
pub(super) struct TableRow {
    pub(super) cells: Vec<String>,
    pub(super) below: Vec<RowLine>,
    /// Link targets of the cells, for a screen.
    pub(super) targets: Vec<CellTarget>,
    /// Number of the row in the result, for a screen. Rows of a tree have that of the row that they replace.
    pub(super) number: usize,
}

impl TableRow {
    /// Creates a row of the current one of a result.
    pub(super) fn current(schema: &Schema, rows: &dyn RowCursor) -> Self {
        let cells = schema.shown().map(|(at, _)| escaped(table_cell(rows, at)));
        Self { cells: cells.collect(), below: rows.below(), ..Self::default() }
    }

    /// Creates a row of the current one of a result, with its links.
    pub(super) fn linked(schema: &Schema, rows: &dyn RowCursor, number: usize) -> Self {
        Self { targets: grid::targets(schema, rows), number, ..Self::current(schema, rows) }
    }

    /// Returns the lines of a tree that lead to it.
    pub(super) fn branch(&self) -> &str {
        self.cells.last().map_or("", |cell| tree::branch_of(cell))
    }

    /// Returns its depth in a tree.
    pub(super) fn depth(&self) -> usize {
        self.cells.last().map_or(0, |cell| tree::depth_of(cell))
    }

    /// Returns whether a cell contains a text, which is in lower case.
    pub(super) fn contains(&self, text: &str) -> bool {
        text.is_empty() || self.cells.iter().any(|cell| cell.to_lowercase().contains(text))
    }
}

/// Part of a table that a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineOf {
    /// A text, or a line below a row.
    Text,
    /// Titles or totals.
    Heading,
    /// A row, by number.
    Row(usize),
}

/// Receives the lines of a table, which are escaped and fit the terminal.
pub(super) trait LineSink {
    /// Takes a line; these byte ranges are bold.
    fn line(&mut self, line: &str, bold: &[Range<usize>], of: LineOf) -> io::Result<()>;
}

/// Writes lines as text.
pub(super) struct TextSink<'o> {
    pub(super) out: &'o mut dyn Write,
    /// `true` to use colours.
    pub(super) color: bool,
}

impl LineSink for TextSink<'_> {
    fn line(&mut self, line: &str, bold: &[Range<usize>], _: LineOf) -> io::Result<()> {
        if self.color { ink::write_line(self.out, line, bold) } else { writeln!(self.out, "{line}") }
    }
}

/// Escapes a cell; most need no change.
fn escaped(cell: String) -> String {
    match escape::text(&cell) {
        Cow::Borrowed(_) => cell,
        Cow::Owned(escaped) => escaped,
    }
}
