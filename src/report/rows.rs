//! Type-erased rows, so that renderers are compiled only once, not for each type of rows.

use super::column::{CellTarget, Columns, plain};
use super::tree::Branch;
use super::value::Value;

/// Line below a row of a table, such as a frame of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLine {
    /// Indentation in columns.
    pub indent: usize,
    /// Unescaped text.
    pub text: String,
}

/// Cells of a row, accessed by index of the column.
pub(super) trait Cells {
    /// Returns the value of a column.
    fn value(&self, at: usize) -> Value<'_>;

    /// Returns the CSV value of a column, which equals the value unless the column sets another.
    fn csv_value(&self, at: usize) -> Value<'_>;

    /// Returns the unescaped text that tables show instead of the value, if the column sets it.
    fn own_cell(&self, at: usize) -> Option<String>;

    /// Returns the position of the row in the tree that the column shows, if it shows a tree.
    fn own_branch(&self, at: usize) -> Option<&Branch>;

    /// Returns the link target of the cell on a page, if the column sets it.
    fn own_target(&self, at: usize) -> Option<Option<CellTarget>>;
}

/// Returns the unescaped text of a cell in a table.
pub(super) fn table_cell(row: &dyn Cells, at: usize) -> String {
    let cell = row.own_cell(at).unwrap_or_else(|| plain(&row.value(at)));
    match row.own_branch(at) {
        Some(branch) => format!("{}{cell}", branch.lines),
        None => cell,
    }
}

/// Cursor over rows, which are generated as they are written.
pub(super) trait RowCursor: Cells {
    /// Generates the next row, to which the methods of [`Cells`] refer from then on. Returns `false` after the last row.
    fn advance(&mut self) -> bool;

    /// Skips `count` rows, without generating them where possible. Returns `false` if fewer rows are left.
    fn skip(&mut self, count: usize) -> bool {
        (0..count).all(|_| self.advance())
    }

    /// Returns the number of rows that are left, if it is known.
    fn remaining_rows(&self) -> Option<usize> {
        None
    }

    /// Returns whether there are more rows than the requested ones.
    fn has_more(&mut self) -> bool;

    /// Returns the lines below the current row in a table.
    fn lines_below(&self) -> Vec<RowLine>;
}

/// Function that returns the lines below a row of a table.
pub(super) type LinesBelow<'m, R> = dyn Fn(&R) -> Vec<RowLine> + 'm;

/// Cursor over rows with declared columns.
pub(super) struct ColumnRows<'m, 'c, R, I> {
    columns: &'m Columns<'c, R>,
    below: Option<&'m LinesBelow<'m, R>>,
    rows: I,
    row: Option<R>,
    /// Number of rows that may still be generated.
    left: usize,
}

impl<'m, 'c, R, I> ColumnRows<'m, 'c, R, I> {
    /// Creates a cursor positioned before the first row.
    pub(super) fn new(columns: &'m Columns<'c, R>, rows: I, below: Option<&'m LinesBelow<'m, R>>) -> Self {
        Self { columns, below, rows, row: None, left: usize::MAX }
    }

    /// Limits the number of rows.
    pub(super) fn first_of(self, most: usize) -> Self {
        Self { left: most, ..self }
    }
}

impl<R, I> Cells for ColumnRows<'_, '_, R, I> {
    fn value(&self, at: usize) -> Value<'_> {
        match &self.row {
            Some(row) => self.columns.value(at, row),
            None => Value::Null,
        }
    }

    fn csv_value(&self, at: usize) -> Value<'_> {
        match &self.row {
            Some(row) => self.columns.csv_value(at, row),
            None => Value::Null,
        }
    }

    fn own_cell(&self, at: usize) -> Option<String> {
        self.columns.cell(at, self.row.as_ref()?)
    }

    fn own_branch(&self, at: usize) -> Option<&Branch> {
        self.columns.branch(at, self.row.as_ref()?)
    }

    fn own_target(&self, at: usize) -> Option<Option<CellTarget>> {
        self.columns.target(at, self.row.as_ref()?)
    }
}

impl<R, I: Iterator<Item = R>> RowCursor for ColumnRows<'_, '_, R, I> {
    fn advance(&mut self) -> bool {
        let left = self.left.checked_sub(1);
        self.row = left.and_then(|left| {
            self.left = left;
            self.rows.next()
        });
        self.row.is_some()
    }

    fn skip(&mut self, count: usize) -> bool {
        let Some(last) = count.checked_sub(1) else { return true };
        let Some(left) = self.left.checked_sub(count) else { return false };
        self.left = left;
        self.rows.nth(last).is_some()
    }

    fn remaining_rows(&self) -> Option<usize> {
        let (least, most) = self.rows.size_hint();
        (most == Some(least)).then(|| least.min(self.left))
    }

    fn has_more(&mut self) -> bool {
        self.left == 0 && self.rows.next().is_some()
    }

    fn lines_below(&self) -> Vec<RowLine> {
        match (self.below, &self.row) {
            (Some(below), Some(row)) => below(row),
            _ => Vec::new(),
        }
    }
}
