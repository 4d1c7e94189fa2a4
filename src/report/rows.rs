//! Rows without their type: renderers are compiled once, not once for each type of rows.

use super::column::{CellTarget, Columns, plain};
use super::value::Value;

/// A line below a row of a table, such as a frame of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLine {
    /// Columns of space before it.
    pub indent: usize,
    /// Its text, not escaped yet.
    pub text: String,
}

/// What the columns of a row say, by number of the column.
pub(super) trait Cells {
    /// The value.
    fn value(&self, at: usize) -> Value<'_>;

    /// What CSV has, which is the value unless the column says otherwise.
    fn csv_value(&self, at: usize) -> Value<'_>;

    /// What tables show instead of the value, not escaped yet.
    fn own_cell(&self, at: usize) -> Option<String>;

    /// What the cell leads to on a page, if the column says it.
    fn own_target(&self, at: usize) -> Option<Option<CellTarget>>;
}

/// The cell of a table, not escaped yet.
pub(super) fn table_cell(row: &dyn Cells, at: usize) -> String {
    row.own_cell(at).unwrap_or_else(|| plain(&row.value(at)))
}

/// Rows, one at a time: they are made while they are written.
pub(super) trait RowCursor: Cells {
    /// Makes the next row, of which [`Cells`] are from then on; `false` behind the last.
    fn advance(&mut self) -> bool;

    /// Looks, behind the last row that is wanted, whether there is another.
    fn has_more(&mut self) -> bool;

    /// The lines below the row in a table.
    fn below(&self) -> Vec<RowLine>;
}

/// The lines below a row of a table.
pub(super) type Below<'m, R> = dyn Fn(&R) -> Vec<RowLine> + 'm;

/// Rows by declared columns.
pub(super) struct ColumnRows<'m, 'c, R, I> {
    columns: &'m Columns<'c, R>,
    below: Option<&'m Below<'m, R>>,
    rows: I,
    row: Option<R>,
    /// Rows that are still wanted.
    left: usize,
}

impl<'m, 'c, R, I> ColumnRows<'m, 'c, R, I> {
    /// Before the first of these rows.
    pub(super) fn new(columns: &'m Columns<'c, R>, rows: I, below: Option<&'m Below<'m, R>>) -> Self {
        Self { columns, below, rows, row: None, left: usize::MAX }
    }

    /// No more than so many rows.
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

    fn has_more(&mut self) -> bool {
        self.left == 0 && self.rows.next().is_some()
    }

    fn below(&self) -> Vec<RowLine> {
        match (self.below, &self.row) {
            (Some(below), Some(row)) => below(row),
            _ => Vec::new(),
        }
    }
}
