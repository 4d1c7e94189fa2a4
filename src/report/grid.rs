//! An answer as a grid: what a table shows, with what its cells stand for, so that a page can link them.

use std::borrow::Cow;

use super::column::{Align, CellTarget, Declaration, Fit, Schema};
pub use super::rows::RowLine;
use super::rows::{RowCursor, table_cell};
use super::value::Value;
use hprof_parser::ObjectId;

/// Rows and columns, and what stands above and below.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grid {
    /// The columns.
    pub columns: Vec<GridColumn>,
    /// The rows, in order.
    pub rows: Vec<GridRow>,
    /// Rows of totals.
    pub totals: Vec<Vec<String>>,
    /// What stands above.
    pub above: Vec<GridBlock>,
    /// What stands below.
    pub under: Vec<GridBlock>,
    /// How many rows are not shown, if they were counted, and what they are: `classes`.
    pub more: Option<(Option<u64>, &'static str)>,
    /// What is shown instead of columns without rows.
    pub instead: Option<Cow<'static, str>>,
}

/// A column of a grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridColumn {
    /// Its title; empty if it has none.
    pub title: Cow<'static, str>,
    /// Whether cells are numbers.
    pub is_number: bool,
    /// Whether it is what one came for.
    pub is_bold: bool,
    /// Whether it can be done without where there is little room.
    pub is_secondary: bool,
}

/// A row of a grid.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GridRow {
    /// Its cells, one a column.
    pub cells: Vec<GridCell>,
    /// Lines below it, such as the frames of a stack.
    pub below: Vec<RowLine>,
}

/// A cell: text as it is in the dump, not escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GridCell {
    /// What it says.
    pub text: String,
    /// What it stands for.
    pub target: Option<CellTarget>,
}

/// What stands above or below a grid.
#[derive(Debug, Clone, PartialEq)]
pub enum GridBlock {
    /// A paragraph.
    Line(String),
    /// Lines that keep their breaks.
    Text(String),
    /// Commands to type next, for a shell.
    Commands(Vec<String>),
    /// Another grid.
    Grid(Grid),
}

/// The columns of an answer that a grid has.
pub(super) fn columns(schema: &Schema) -> Vec<GridColumn> {
    shown(schema).map(|(_, column)| column.header.grid_column()).collect()
}

/// What tables show and is not drawn with characters.
fn shown(schema: &Schema) -> impl Iterator<Item = (usize, &Declaration)> {
    schema.shown().filter(|(_, column)| !column.is_drawn)
}

/// The row of an answer where `rows` are.
pub(super) fn row(schema: &Schema, rows: &dyn RowCursor) -> GridRow {
    let of_key = |wanted: &str| {
        let (at, _) = schema.programs().find(|(_, column)| column.key() == Some(wanted))?;
        match rows.value(at) {
            Value::Id(id) => Some(id),
            _ => None,
        }
    };
    let object = of_key("object");
    let cell = |(at, column): (usize, &Declaration)| {
        let of_value = || match (column.key(), rows.value(at)) {
            (_, Value::Id(id)) => Some(CellTarget::Object(id)),
            (Some(key), Value::Text(name)) if key == "class" || key.ends_with("_class") => {
                let class_object = if key == "class" { of_key("class_object") } else { None };
                Some(CellTarget::Class(name.into_owned(), class_object))
            }
            (Some("name"), Value::Text(_)) => object.map(CellTarget::Object),
            // What is put together out of others describes the object of the row.
            (None, _) if column.is_text() => object.map(CellTarget::Object),
            _ => None,
        };
        let target = rows.own_target(at).unwrap_or_else(of_value);
        GridCell { text: table_cell(rows, at), target: target.filter(|target| !target.is_null()) }
    };
    GridRow { cells: shown(schema).map(cell).collect(), below: rows.below() }
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
