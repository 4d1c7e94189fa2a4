//! Rows of a table, and the lines that show them.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use super::column::{CellTarget, Declaration, Schema};
use super::grid::{self, RowLine};
use super::rows::{RowCursor, table_cell};
use super::tree::Branch;
use super::{escape, ink};

/// A row with the lines below it.
#[derive(Debug, Clone, Default)]
pub(super) struct TableRow {
    pub(super) cells: Vec<String>,
    pub(super) below: Vec<RowLine>,
    /// Position in a tree; `None` in other tables.
    pub(super) branch: Option<RowBranch>,
    /// Link targets of the cells, for a screen.
    pub(super) targets: Vec<CellTarget>,
    /// Number of the row in the result, for a screen. Rows of a tree have that of the row that they replace.
    pub(super) number: usize,
}

/// Position of a row in a tree, which one of its cells shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowBranch {
    /// Number of the cell.
    cell: usize,
    /// Length of the lines at its start, in bytes.
    length: usize,
    /// Depth of the row.
    depth: u32,
}

impl TableRow {
    /// Creates a row from the current one of a result.
    pub(super) fn current(schema: &Schema, rows: &dyn RowCursor) -> Self {
        let cells = schema.table_columns().map(|(at, _)| escaped(table_cell(rows, at)));
        let branch = |(cell, (at, _)): (usize, (usize, &Declaration))| {
            let Branch { depth, lines } = rows.own_branch(at)?;
            Some(RowBranch { cell, length: lines.len(), depth: *depth })
        };
        let mut trees = schema.table_columns().enumerate().filter(|(_, (_, column))| column.is_tree);
        let branch = trees.next().and_then(branch);
        Self { cells: cells.collect(), below: rows.lines_below(), branch, ..Self::default() }
    }

    /// Creates a row from the current one of a result, with its links.
    pub(super) fn with_links(schema: &Schema, rows: &dyn RowCursor, number: usize) -> Self {
        Self { targets: grid::targets(schema, rows), number, ..Self::current(schema, rows) }
    }

    /// Returns its position in a tree.
    pub(super) fn branch(&self) -> Branch {
        let Some(RowBranch { cell, length, depth }) = self.branch else { return Branch::default() };
        let lines = self.cells.get(cell).and_then(|cell| cell.get(..length)).unwrap_or_default();
        Branch { depth, lines: lines.to_owned() }
    }

    /// Changes its position in a tree. Rows of other tables have none.
    pub(super) fn set_branch(&mut self, branch: &Branch) {
        let Some(RowBranch { cell, length, depth }) = &mut self.branch else { return };
        if let Some(cell) = self.cells.get_mut(*cell)
            && cell.is_char_boundary(*length)
        {
            cell.replace_range(..*length, &branch.lines);
            (*length, *depth) = (branch.lines.len(), branch.depth);
        }
    }

    /// Returns its depth in a tree; 0 in other tables.
    pub(super) fn depth(&self) -> usize {
        self.branch.map_or(0, |branch| branch.depth as usize)
    }

    /// Returns its size in bytes.
    pub(super) fn byte_count(&self) -> usize {
        let cells = self.cells.iter().map(|cell| size_of::<String>() + cell.len());
        let below = self.below.iter().map(|line| size_of::<RowLine>() + line.text.len());
        let targets = self.targets.iter().map(|target| size_of::<CellTarget>() + target.text_length());
        size_of::<Self>() + cells.chain(below).chain(targets).sum::<usize>()
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
