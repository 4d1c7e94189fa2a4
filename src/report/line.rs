//! Rows of a table, and the lines that show them.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use super::column::{CellTarget, Declaration, Schema};
use super::grid::{self, RowLine};
use super::rows::{RowCursor, table_cell};
use super::tree::Branch;
use super::{escape, ink};

/// Row of a table, with the lines below it.
#[derive(Debug, Clone, Default)]
pub(super) struct TableRow {
    pub(super) cells: Vec<String>,
    pub(super) below: Vec<RowLine>,
    /// Position in a tree; `None` in tables that are not trees.
    pub(super) branch: Option<RowBranch>,
    /// Link targets of the cells, for a screen.
    pub(super) targets: Vec<CellTarget>,
    /// Number of the row in the result, for a screen. Rows of an inserted tree have the number of the row that they replace.
    pub(super) number: usize,
}

/// Position of a row in a tree whose lines are drawn in one of the row's cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowBranch {
    /// Index of the cell with the lines of the tree.
    cell: usize,
    /// Length in bytes of the tree's lines at the start of the cell.
    length: usize,
    /// Depth of the row in the tree.
    depth: u32,
}

impl TableRow {
    /// Creates a row from the current row of a result.
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

    /// Creates a row from the current row of a result, including its link targets.
    pub(super) fn with_links(schema: &Schema, rows: &dyn RowCursor, number: usize) -> Self {
        Self { targets: grid::targets(schema, rows), number, ..Self::current(schema, rows) }
    }

    /// Returns the position of the row in its tree; the default in tables that are not trees.
    pub(super) fn branch(&self) -> Branch {
        let Some(RowBranch { cell, length, depth }) = self.branch else { return Branch::default() };
        let lines = self.cells.get(cell).and_then(|cell| cell.get(..length)).unwrap_or_default();
        Branch { depth, lines: lines.to_owned() }
    }

    /// Changes the position of the row in its tree. Rows of tables that are not trees are unchanged.
    pub(super) fn set_branch(&mut self, branch: &Branch) {
        let Some(RowBranch { cell, length, depth }) = &mut self.branch else { return };
        if let Some(cell) = self.cells.get_mut(*cell)
            && cell.is_char_boundary(*length)
        {
            cell.replace_range(..*length, &branch.lines);
            (*length, *depth) = (branch.lines.len(), branch.depth);
        }
    }

    /// Returns the depth of the row in its tree; 0 in tables that are not trees.
    pub(super) fn depth(&self) -> usize {
        self.branch.map_or(0, |branch| branch.depth as usize)
    }

    /// Returns the size of the row in memory in bytes.
    pub(super) fn byte_count(&self) -> usize {
        let cells = self.cells.iter().map(|cell| size_of::<String>() + cell.len());
        let below = self.below.iter().map(|line| size_of::<RowLine>() + line.text.len());
        let targets = self.targets.iter().map(|target| size_of::<CellTarget>() + target.text_length());
        size_of::<Self>() + cells.chain(below).chain(targets).sum::<usize>()
    }

    /// Returns whether a cell contains a text, ignoring case. The text must be in lower case.
    pub(super) fn contains(&self, text: &str) -> bool {
        text.is_empty() || self.cells.iter().any(|cell| cell.to_lowercase().contains(text))
    }
}

/// Part of a table to which a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineOf {
    /// Text, or line below a row.
    Text,
    /// Line of titles or totals.
    Heading,
    /// Line of the row with this number.
    Row(usize),
}

/// Receiver of the lines of a table, which are escaped and fit the terminal.
pub(super) trait LineSink {
    /// Takes a line, with the byte ranges that are bold and the part of the table.
    fn line(&mut self, line: &str, bold: &[Range<usize>], of: LineOf) -> io::Result<()>;
}

/// Receiver that writes lines as text.
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
