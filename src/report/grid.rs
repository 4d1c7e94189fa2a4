//! Result as a grid for a page: the content of a table, with the link targets of its cells.

use std::borrow::Cow;

use super::column::{Align, CellTarget, Declaration, Fit, Schema};
pub use super::rows::RowLine;
use super::rows::{RowCursor, table_cell};
use super::value::Value;
use hprof_values::ObjectId;

/// Rows and columns of a result, with the blocks above and below them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// Columns.
    pub columns: Vec<GridColumn>,
    /// Rows, in order.
    pub rows: Vec<GridRow>,
    /// Rows of totals, each with one cell per column.
    pub totals: Vec<Vec<String>>,
    /// Blocks above the rows.
    pub above: Vec<GridBlock>,
    /// Blocks below the rows.
    pub under: Vec<GridBlock>,
    /// Number of omitted rows, if counted, and the noun for them, such as `classes`.
    pub more: Option<(Option<u64>, &'static str)>,
    /// Text shown instead of the columns if there are no rows.
    pub instead: Option<Cow<'static, str>>,
}

/// Column of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridColumn {
    /// Title; may be empty.
    pub title: Cow<'static, str>,
    /// `true` if the cells are numbers.
    pub is_number: bool,
    /// `true` for the most important column.
    pub is_bold: bool,
    /// `true` if the column is dispensable where there is little space.
    pub is_secondary: bool,
}

/// Row of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GridRow {
    /// Cells, one per column.
    pub cells: Vec<GridCell>,
    /// Lines below the row, such as the frames of a stack.
    pub below: Vec<RowLine>,
}

/// Cell of a grid. Its text is as in the dump, not escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GridCell {
    /// Text as in the dump.
    pub text: String,
    /// Target of the cell's link.
    pub target: Option<CellTarget>,
}

/// Text or grid above or below a grid.
#[derive(Debug, Clone, PartialEq)]
pub enum GridBlock {
    /// A paragraph.
    Line(String),
    /// Text whose line breaks are kept.
    Text(String),
    /// Shell commands that the user can enter next.
    Commands(Vec<String>),
    /// Another grid.
    Grid(Grid),
}

/// Returns the columns of a grid for a result.
pub(super) fn columns(schema: &Schema) -> Vec<GridColumn> {
    grid_columns(schema).map(|(_, column)| column.header.grid_column()).collect()
}

/// Returns the columns that tables show and that are not drawn with characters.
fn grid_columns(schema: &Schema) -> impl Iterator<Item = (usize, &Declaration)> {
    schema.table_columns().filter(|(_, column)| !column.is_drawn)
}

/// Returns the grid row for the current row of a result.
pub(super) fn row(schema: &Schema, rows: &dyn RowCursor) -> GridRow {
    let cell = |(at, column): (usize, &Declaration)| GridCell {
        text: table_cell(rows, at),
        target: target(schema, rows, at, column),
    };
    GridRow { cells: grid_columns(schema).map(cell).collect(), below: rows.lines_below() }
}

/// Returns the link targets of the current row, without duplicates.
pub(super) fn targets(schema: &Schema, rows: &dyn RowCursor) -> Vec<CellTarget> {
    let mut all = Vec::new();
    for (at, column) in grid_columns(schema) {
        all.extend(target(schema, rows, at, column).filter(|target| !all.contains(target)));
    }
    all
}

/// Returns the link target of a cell of the current row.
fn target(schema: &Schema, rows: &dyn RowCursor, at: usize, column: &Declaration) -> Option<CellTarget> {
    let of_key = |wanted: &str| {
        let (at, _) = schema.programs().find(|(_, column)| column.key() == Some(wanted))?;
        match rows.value(at) {
            Value::Id(id) => Some(id),
            _ => None,
        }
    };
    let object = || of_key("object");
    let of_value = || match (column.key(), rows.value(at)) {
        (_, Value::Id(id)) => Some(CellTarget::Object(id)),
        (Some(key), Value::Text(name)) if key == "class" || key.ends_with("_class") => {
            let class_object = if key == "class" { of_key("class_object") } else { None };
            Some(CellTarget::Class(name.into_owned(), class_object))
        }
        (Some("name"), Value::Text(_)) => object().map(CellTarget::Object),
        // A derived value describes the object of its row.
        (None, _) if column.is_text() => object().map(CellTarget::Object),
        _ => None,
    };
    let target = rows.own_target(at).unwrap_or_else(of_value);
    target.filter(|target| !target.is_null())
}

impl CellTarget {
    fn is_null(&self) -> bool {
        matches!(self, Self::Object(id) if *id == ObjectId::NULL)
    }
}

impl super::column::Header {
    pub(super) fn grid_column(&self) -> GridColumn {
        GridColumn {
            title: self.title.clone(),
            is_number: self.align == Align::Right,
            is_bold: self.ink == super::ink::Ink::Bold,
            is_secondary: self.title == "%" || matches!(self.fit, Fit::Secondary { .. }),
        }
    }
}
