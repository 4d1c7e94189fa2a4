//! Texts and tables above or below the table of a result.

use std::io;

use super::column::{CellTarget, Columns, Schema};
use super::escape;
use super::grid::GridBlock;
use super::line::{LineSink, TableRow};
use super::rows::{ColumnRows, RowCursor, RowLine};
use super::table::{self, Style, TableBuilder};

/// Text or table above or below the table of a result.
#[derive(Debug, Clone)]
pub enum Section {
    /// Line of unescaped text.
    Line(String),
    /// Lines of unescaped text.
    Text(String),
    /// Lines of unescaped text that are not wrapped, such as commands to copy. Pages with links omit them.
    Unwrapped(Vec<UnwrappedLine>),
    /// Line of unescaped text about command-line options. Pages omit it.
    Options(String),
    /// Additional table.
    Table(TableBuilder),
}

/// Line that is not wrapped, with an optional link target.
#[derive(Debug, Clone)]
pub struct UnwrappedLine {
    /// Unescaped text.
    pub text: String,
    /// Target of the line's link, for a screen.
    pub target: Option<CellTarget>,
}

impl From<String> for UnwrappedLine {
    fn from(text: String) -> Self {
        Self { text, target: None }
    }
}

impl Section {
    /// Creates a section of lines that are not wrapped and have no link targets.
    pub fn unwrapped_lines(lines: Vec<String>) -> Self {
        Self::Unwrapped(lines.into_iter().map(UnwrappedLine::from).collect())
    }

    /// Creates a table with the given rows.
    pub fn table<R>(columns: &Columns<'_, R>, rows: impl IntoIterator<Item = R>) -> Self {
        Self::table_with(columns, rows, |_| Vec::new())
    }

    /// Creates a table with the given rows, and lines below each row.
    pub fn table_with<R>(
        columns: &Columns<'_, R>,
        rows: impl IntoIterator<Item = R>,
        below: impl Fn(&R) -> Vec<RowLine>,
    ) -> Self {
        Self::table_of(columns.schema(), &mut ColumnRows::new(columns, rows.into_iter(), Some(&below)))
    }

    fn table_of(schema: &Schema, rows: &mut dyn RowCursor) -> Self {
        let mut table = TableBuilder::from_schema(schema);
        table.push_all(schema, rows);
        Self::Table(table)
    }

    /// Returns the size of the section in memory in bytes.
    pub(super) fn byte_count(&self) -> usize {
        match self {
            Self::Line(text) | Self::Text(text) | Self::Options(text) => text.len(),
            Self::Unwrapped(lines) => {
                let target = |line: &UnwrappedLine| line.target.as_ref().map_or(0, CellTarget::text_length);
                lines.iter().map(|line| size_of::<UnwrappedLine>() + line.text.len() + target(line)).sum()
            }
            Self::Table(table) => table.rows().iter().map(TableRow::byte_count).sum(),
        }
    }

    /// Converts the section to a block of a page; `None` if pages omit it.
    pub(super) fn into_block(self) -> Option<GridBlock> {
        Some(match self {
            Self::Line(line) => GridBlock::Line(line),
            Self::Text(text) => GridBlock::Text(text),
            Self::Unwrapped(lines) => GridBlock::Commands(lines.into_iter().map(|line| line.text).collect()),
            Self::Options(_) => return None,
            Self::Table(table) => GridBlock::Grid(table.into_grid()),
        })
    }

    /// Writes the lines of the section.
    pub(super) fn write(self, out: &mut dyn LineSink, style: Style) -> io::Result<()> {
        match self {
            Self::Line(line) | Self::Options(line) => table::write_text(out, &escape::text(&line), style),
            Self::Text(text) => {
                text.split('\n').try_for_each(|line| table::write_text(out, &escape::text(line), style))
            }
            Self::Unwrapped(lines) => {
                let whole = Style { width: None, ..style };
                lines.iter().try_for_each(|line| table::write_text(out, &escape::text(&line.text), whole))
            }
            Self::Table(table) => table.write_lines(out, style),
        }
    }
}
