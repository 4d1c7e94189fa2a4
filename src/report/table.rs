//! Tables for people: columns are fitted to the terminal; a pipe gets plain text.

use std::io::{self, Write};
use std::ops::Range;

use super::aligned::AlignedColumns;
pub use super::column::{Align, Fit};
use super::column::{CellTarget, Header, Schema};
use super::grid::{Grid, GridCell, GridRow, RowLine};
use super::ink::Ink;
use super::line::{LineOf, LineSink, TableRow, TextSink};
use super::rows::RowCursor;
use super::{escape, fit, layout};

/// Style in which tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Width of the terminal in columns; `None` for a pipe, to which lines are written in full.
    pub width: Option<u16>,
    /// `true` to use colours.
    pub color: bool,
    /// Option of the command that shows all rows; may be empty.
    pub all_rows: &'static str,
    /// Option of the command that shows all columns; may be empty.
    pub all_columns: &'static str,
}

/// Returns an option and its effect in parentheses, to append to a sentence; empty without an option.
pub(crate) fn option(option: &str, does: &str) -> String {
    if option.is_empty() { String::new() } else { format!(" ({option} {does})") }
}

/// Table under construction.
#[derive(Debug, Clone)]
pub struct TableBuilder {
    columns: Vec<Header>,
    rows: Vec<TableRow>,
    footer: Vec<Vec<String>>,
    /// Length in bytes of the longest cell.
    longest: usize,
    /// `true` if long cells are shortened as they are added.
    is_cut: bool,
}

/// Maximum number of columns of a cell in a table larger than [`MAX_BYTES`]. No name of a real class is that long, but a
/// malicious dump can have a name of 64 KiB in a million rows.
/// have a name of 64 KiB in a million rows.
pub const LONGEST_CELL: usize = 1000;
/// Maximum size in bytes of a table's rows if all were as wide as the widest row. In larger tables, long cells lose their
/// middle.
pub const MAX_BYTES: usize = 1 << 26;
/// Number of rows that are collected at a time. The first part determines the columns and their minimum widths. Later parts are
/// written as they are generated, so that a result of any length takes no more memory than one part.
pub(super) const PART: u64 = 1 << 13;

/// Widths and state of a written part of a table, for the parts that follow.
#[derive(Debug)]
struct ColumnWidths {
    /// Width of each column; `None` for a column that is left out in this part and all later ones.
    widths: Vec<Option<usize>>,
    is_cut: bool,
}

/// Writer of a table that is written in parts.
pub(super) struct ChunkedTable<'m> {
    schema: &'m Schema,
    totals: &'m [Vec<(&'static str, String)>],
    style: Style,
    found: Option<ColumnWidths>,
}

impl<'m> ChunkedTable<'m> {
    /// Creates a writer for the columns of a result and rows of totals.
    pub(super) fn new(schema: &'m Schema, totals: &'m [Vec<(&'static str, String)>], style: Style) -> Self {
        Self { schema, totals, style, found: None }
    }

    /// Returns whether the table has no columns.
    pub(super) fn has_no_columns(&self) -> bool {
        self.schema.table_columns().next().is_none()
    }

    /// Builds the next part. Returns the part, its number of rows, and whether it is the last part.
    pub(super) fn next(&self, rows: &mut dyn RowCursor) -> (TableBuilder, u64, bool) {
        let mut part = TableBuilder::from_schema(self.schema);
        part.is_cut = self.found.as_ref().is_some_and(|found| found.is_cut);
        self.totals.iter().for_each(|total| part.total_by_title(total));
        let (count, is_last) = part.push_some(self.schema, rows, PART);
        (part, count, is_last)
    }

    /// Writes a part of the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn write(&mut self, part: TableBuilder, out: &mut dyn Write, is_last: bool) -> io::Result<()> {
        let mut sink = TextSink { out, color: self.style.color };
        self.found = Some(part.write_part(&mut sink, self.style, self.found.take(), is_last)?);
        Ok(())
    }
}

impl TableBuilder {
    /// Creates a table with the given columns. The last one is shortened to fit the terminal.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        let last = columns.len().saturating_sub(1);
        let fit = |at: usize| if at == last { Fit::Shorten { priority: 0 } } else { Fit::Whole };
        let header =
            |(at, (title, align)): (usize, &(&'static str, Align))| Header::new(*title, *align, fit(at));
        Self::with(columns.iter().enumerate().map(header).collect())
    }

    /// Creates an empty table with the columns of a result.
    pub(super) fn from_schema(schema: &Schema) -> Self {
        Self::with(schema.table_columns().map(|(_, column)| column.header.clone()).collect())
    }

    fn with(columns: Vec<Header>) -> Self {
        Self { columns, rows: Vec::new(), footer: Vec::new(), longest: 0, is_cut: false }
    }

    /// Wraps lines of the last column that do not fit the terminal instead of shortening them, for sentences.
    pub fn wrapping(mut self) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.fit = Fit::Wrap;
        }
        self
    }

    /// Creates a table of names and texts without titles. Long texts are wrapped.
    pub fn pairs<K: AsRef<str>, V: AsRef<str>>(rows: impl IntoIterator<Item = (K, V)>) -> Self {
        let mut table = Self::new(&[("", Align::Left), ("", Align::Left)]).wrapping();
        rows.into_iter().for_each(|(name, text)| table.row([name.as_ref(), text.as_ref()]));
        table
    }

    /// Adds a row of unescaped texts.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect();
        self.push_row(TableRow { cells, ..TableRow::default() });
    }

    /// Adds a row of unescaped texts with link targets, for a screen.
    pub fn linked_row<S: AsRef<str>>(
        &mut self,
        cells: impl IntoIterator<Item = S>,
        targets: impl IntoIterator<Item = CellTarget>,
    ) {
        self.row(cells);
        if let Some(row) = self.rows.last_mut() {
            row.targets.extend(targets);
        }
    }

    /// Adds all rows of a cursor, including the lines below them.
    pub(super) fn push_all(&mut self, schema: &Schema, rows: &mut dyn RowCursor) {
        self.push_some(schema, rows, u64::MAX);
    }

    /// Adds up to `most` rows. Returns the number of added rows, and whether no rows follow.
    fn push_some(&mut self, schema: &Schema, rows: &mut dyn RowCursor, most: u64) -> (u64, bool) {
        let mut count = 0;
        while count < most {
            if !rows.advance() {
                return (count, true);
            }
            self.push_current(schema, rows);
            count += 1;
        }
        (count, false)
    }

    /// Adds the current row of a cursor.
    pub(super) fn push_current(&mut self, schema: &Schema, rows: &dyn RowCursor) {
        self.push_row(TableRow::current(schema, rows));
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> &[TableRow] {
        &self.rows
    }

    /// Replaces a range of rows. The new rows must have as many cells as the other rows of the table.
    pub(super) fn replace_rows(&mut self, range: Range<usize>, rows: Vec<TableRow>) {
        if range.end <= self.rows.len() {
            let longest = rows.iter().flat_map(|row| &row.cells).map(String::len).max();
            self.longest = self.longest.max(longest.unwrap_or(0));
            self.rows.splice(range, rows);
        }
    }

    /// Adds a row.
    pub(super) fn push_row(&mut self, mut row: TableRow) {
        if self.is_cut {
            cut(&mut row.cells);
        }
        self.longest = self.longest.max(row.cells.iter().map(String::len).max().unwrap_or(0));
        self.rows.push(row);
        if !self.is_cut && self.rows.len().saturating_mul(self.longest) > MAX_BYTES {
            self.is_cut = true;
            self.rows.iter_mut().for_each(|row| cut(&mut row.cells));
        }
    }

    /// Adds a row of totals of unescaped texts, which is separated by a line.
    pub fn total<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.footer.push(cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect());
    }

    /// Adds a row of totals. Each cell is given with the title of its column; cells with the same title are in the order of the
    /// columns.
    pub(super) fn total_by_title(&mut self, cells: &[(&'static str, String)]) {
        let mut left: Vec<&(&'static str, String)> = cells.iter().collect();
        let row: Vec<String> = (self.columns.iter())
            .map(|header| match left.iter().position(|(title, _)| header.title == *title) {
                Some(at) => left.remove(at).1.clone(),
                None => String::new(),
            })
            .collect();
        self.total(row);
    }

    /// Converts the table to a grid without link targets.
    pub(super) fn into_grid(self) -> Grid {
        let row = |row: TableRow| GridRow {
            cells: row.cells.into_iter().map(|text| GridCell { text, target: None }).collect(),
            below: row.below,
        };
        Grid {
            columns: self.columns.iter().map(Header::grid_column).collect(),
            rows: self.rows.into_iter().map(row).collect(),
            totals: self.footer,
            ..Grid::default()
        }
    }

    /// Returns the width of each column, or `None` for a column that is left out. In a later part, no further column is left
    /// out and, if the terminal is wide enough, no column is narrower than `before`; a wider number gets more space.
    fn rooms(&self, terminal: usize, before: Option<&ColumnWidths>) -> Vec<Option<usize>> {
        let was = |column: usize| before.and_then(|found| *found.widths.get(column)?);
        let measure = |column: usize, of: fn(&str) -> usize| -> usize {
            let rows = self.rows.iter().map(|row| &row.cells).chain(&self.footer);
            let cells = rows.filter_map(|cells| cells.get(column)).map(|cell| of(cell));
            // Only the first part has titles.
            let title = self.columns.get(column).filter(|_| before.is_none());
            cells.max().unwrap_or(0).max(title.map_or(0, |header| of(&header.title)))
        };
        let is_shown = |column: &usize| before.is_none() || was(*column).is_some();
        let shown: Vec<usize> = (0..self.columns.len()).filter(is_shown).collect();
        let width = |column: &usize| measure(*column, fit::width).max(was(*column).unwrap_or(0));
        let widths: Vec<usize> = shown.iter().map(width).collect();
        let rooms = if layout::total(widths.iter().copied()) > terminal {
            let column = |(column, width): (&usize, &usize)| {
                let header = self.columns.get(*column)?;
                Some(layout::ColumnWidth {
                    width: *width,
                    wanted: measure(*column, fit::preferred_width),
                    least: measure(*column, fit::min_width),
                    fit: header.fit,
                    is_text: header.align == Align::Left,
                })
            };
            let columns: Vec<layout::ColumnWidth> = shown.iter().zip(&widths).filter_map(column).collect();
            let rooms = if before.is_none() { layout::rooms } else { layout::shrunk };
            rooms(&columns, terminal)
        } else {
            widths.into_iter().map(Some).collect()
        };
        let mut all = vec![None; self.columns.len()];
        for (column, room) in shown.into_iter().zip(rooms) {
            if let Some(of) = all.get_mut(column) {
                *of = room;
            }
        }
        all
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        self.write_lines(&mut TextSink { out, color: style.color }, style)
    }

    /// Writes the lines of the table to a sink.
    pub(super) fn write_lines(self, out: &mut dyn LineSink, style: Style) -> io::Result<()> {
        self.write_part(out, style, None, true).map(drop)
    }

    /// Writes the table, or a later part of it.
    fn write_part(
        self,
        out: &mut dyn LineSink,
        style: Style,
        before: Option<ColumnWidths>,
        is_last: bool,
    ) -> io::Result<ColumnWidths> {
        // A pipe gets all cells at full width.
        let rooms = match style.width {
            Some(width) => self.rooms(width.into(), before.as_ref()),
            None => vec![Some(usize::MAX); self.columns.len()],
        };
        let is_first = before.is_none();
        let Self { columns, rows, footer, is_cut, .. } = self;
        let kept: Vec<&Header> =
            columns.iter().zip(&rooms).filter_map(|(header, room)| room.map(|_| header)).collect();
        let fit = |row: Vec<String>| -> Vec<String> {
            let cells = row.into_iter().zip(&columns).zip(&rooms);
            // A pipe gets each cell in full, even if the column was narrower in earlier parts.
            let room = |room: usize| if style.width.is_some() { room } else { usize::MAX };
            cells.filter_map(|((cell, header), of)| Some(fit_cell(cell, header.fit, room((*of)?)))).collect()
        };
        let mut grid = AlignedColumns::new(kept.iter().map(|header| header.align));
        let has_titles = columns.iter().any(|header| !header.title.is_empty());
        let titles = (has_titles && is_first)
            .then(|| fit(columns.iter().map(|header| header.title.clone().into_owned()).collect()));
        if let Some(found) = &before {
            // Columns are at least as wide as in earlier parts, if they still fit.
            let widths = found.widths.iter().zip(&rooms);
            grid.widen(widths.filter_map(|(width, room)| Some((*width)?.min((*room)?))));
        }
        let rows: Vec<TableRow> =
            rows.into_iter().map(|row| TableRow { cells: fit(row.cells), ..row }).collect();
        // All parts take the width of the totals into account, whichever part shows them.
        let footer: Vec<Vec<String>> = footer.into_iter().filter(|_| is_last || is_first).map(fit).collect();
        let all = titles.iter().chain(rows.iter().map(|row| &row.cells)).chain(&footer);
        all.for_each(|cells| grid.measure(cells));
        let mut write = |cells: &[String], of: LineOf, below: &[RowLine]| {
            let is_bold = of == LineOf::Heading;
            grid.lines(cells, |line, places| {
                let bold = places.iter().zip(&kept).filter(|(_, header)| header.ink == Ink::Bold);
                let all = is_bold.then_some(0..line.len()).into_iter();
                let bold: Vec<Range<usize>> = all.chain(bold.map(|(place, _)| place.clone())).collect();
                out.line(line, &bold, of)
            })?;
            below.iter().try_for_each(|line| line.write(out, style))
        };
        titles.iter().try_for_each(|titles| write(titles, LineOf::Heading, &[]))?;
        (rows.iter().enumerate()).try_for_each(|(at, row)| write(&row.cells, LineOf::Row(at), &row.below))?;
        footer.iter().filter(|_| is_last).try_for_each(|totals| write(totals, LineOf::Heading, &[]))?;
        let mut shown = grid.widths();
        let widths = rooms.iter().map(|room| room.and_then(|_| shown.next())).collect();
        let missing = columns.iter().zip(&rooms).filter(|(header, room)| {
            // Omitted secondary columns are not reported.
            room.is_none() && !matches!(header.fit, Fit::Secondary { .. })
        });
        let missing: Vec<&str> = missing.map(|(header, _)| header.title.as_ref()).collect();
        if is_last && !missing.is_empty() {
            write_text(
                out,
                &format!(
                    "no room for {}{}",
                    missing.join(", "),
                    option(style.all_columns, "shows all columns")
                ),
                style,
            )?;
        }
        Ok(ColumnWidths { widths, is_cut })
    }
}

/// Fits a cell to the width of its column.
fn fit_cell(cell: String, fit: Fit, room: usize) -> String {
    match fit {
        _ if fit::width(&cell) <= room => cell,
        Fit::Shorten { .. } => fit::names(&cell, room),
        Fit::Middle { .. } => fit::middle(&cell, room),
        Fit::Wrap => fit::wrap(&cell, room, 0).join("\n"),
        Fit::Whole | Fit::Secondary { .. } | Fit::Cut { .. } => fit::end(&cell, room),
    }
}

/// Writes a line of escaped text, wrapped to the width of the terminal.
pub(super) fn write_text(out: &mut dyn LineSink, text: &str, style: Style) -> io::Result<()> {
    let lines = style.width.map_or_else(|| vec![text.to_owned()], |width| fit::wrap(text, width.into(), 0));
    lines.iter().try_for_each(|line| out.line(line, &[], LineOf::Text))
}

impl RowLine {
    fn write(&self, out: &mut dyn LineSink, style: Style) -> io::Result<()> {
        let text = escape::text(&self.text);
        let indent = style.width.map_or(self.indent, |width| self.indent.min(usize::from(width) / 2));
        let room = style.width.map_or(usize::MAX, |width| usize::from(width) - indent);
        // A path is read from start to end, so it is wrapped, not truncated.
        let is_path = text.contains(" -> ") && fit::width(&text) > room;
        let lines = if is_path { fit::wrap(&text, room, 2) } else { vec![fit::names(&text, room)] };
        lines.iter().try_for_each(|line| out.line(&format!("{:indent$}{line}", ""), &[], LineOf::Text))
    }
}

/// Shortens the long cells of a row in a large table.
fn cut(row: &mut [String]) {
    for cell in row.iter_mut().filter(|cell| cell.len() > LONGEST_CELL) {
        *cell = fit::middle(cell, LONGEST_CELL);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::number::group_digits;

    fn sample(style: Style) -> String {
        let mut table = TableBuilder::new(&[("bytes", Align::Right), ("class", Align::Left)]);
        table.row(["1,234,567", "com.example.with.a.very.long.name.indeed.Customer$Address"]);
        table.row(["16", "x\u{1b}[2J"]);
        table.total(["1,234,583", "total"]);
        let mut out = Vec::new();
        table.write(&mut out, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_long_table_is_written_in_parts_as_if_it_were_one() {
        use crate::answer::Answer;
        use crate::column::{Column, ColumnKey, Columns, ValueKind};
        use crate::{Format, json::DumpHeader};
        let written = |rows: u64, style: Style| {
            let columns = Columns::new([
                Column::new(ColumnKey::chosen("number", ValueKind::Integer), |row: &u64| (*row).into())
                    .header("number"),
                Column::new(ColumnKey::chosen("name", ValueKind::Text), |row: &u64| {
                    format!("name {}", row % 100).into()
                })
                .header("name"),
            ]);
            let answer = Answer::new(columns, 0..rows).total([("number", "all".to_owned())]);
            let mut out = Vec::new();
            answer.write(&mut out, Format::Table, style, "x", &DumpHeader::default()).unwrap();
            String::from_utf8(out).unwrap()
        };
        for style in [Style::default(), Style { width: Some(80), color: false, ..Style::default() }] {
            for rows in [0, 1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 7] {
                let text = written(rows, style);
                let lines: Vec<&str> = text.lines().collect();
                assert_eq!(lines.len() as u64, rows + 2, "{rows}");
                assert!(lines[0].trim_start().starts_with("number"));
                // The first part determines the widths of columns in later parts.
                for (row, line) in (0..rows).zip(&lines[1..]) {
                    let width = if rows > PART { 6 } else { line.find("name").unwrap() - 2 };
                    assert_eq!(*line, format!("{:>width$}  name {}", group_digits(row), row % 100), "{rows}");
                }
                assert!(lines.last().unwrap().trim_start().starts_with("all"), "{rows}");
            }
        }
    }

    #[test]
    fn numbers_behind_the_first_part_are_whole() {
        use crate::answer::Answer;
        use crate::column::{Column, ColumnKey, Columns, ValueKind};
        use crate::{Format, json::DumpHeader};
        let rows = PART * 2 + 100;
        let name = |row: u64| {
            // The widest name is in the second part.
            let more = if row == PART + 7 { "with.more.than.fits." } else { "" };
            format!("com.example.{more}shop.orders.Customer{}", row % 10)
        };
        let cube = |row: u64| row * row * row * 1_000_003;
        let written = |width: u16| {
            let columns = Columns::new([
                Column::new(ColumnKey::chosen("n", ValueKind::Integer), |row: &u64| (*row).into())
                    .header("n"),
                Column::new(ColumnKey::chosen("cube", ValueKind::Integer), |row: &u64| cube(*row).into())
                    .header("cube"),
                Column::new(ColumnKey::chosen("name", ValueKind::Text), |row: &u64| name(*row).into())
                    .header("name")
                    .fit(Fit::Shorten { priority: 0 }),
                Column::new(ColumnKey::chosen("secondary", ValueKind::Integer), |row: &u64| {
                    (row * row).into()
                })
                .header("2")
                .fit(Fit::Secondary { priority: 0 }),
            ]);
            let mut out = Vec::new();
            let style = Style { width: Some(width), color: false, ..Style::default() };
            Answer::new(columns, 0..rows)
                .write(&mut out, Format::Table, style, "x", &DumpHeader::default())
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        // Names fit into 78 columns in the first part, but not next to the longer numbers of the last part.
        for width in [78, 80, 120] {
            let text = written(width);
            for (row, line) in (0..rows).zip(text.lines().skip(1)) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [n, cubed, named, squared] = words[..] else { panic!("{width}: {line}") };
                let expected = [row, cube(row), row * row].map(group_digits);
                assert_eq!([n, cubed, squared], expected.each_ref().map(String::as_str), "{width}");
                assert!(fit::width(line) <= width.into(), "{width}: {line}");
                assert!(named.ends_with(&format!("Customer{}", row % 10)), "{width}: {line}");
                // A name is as long as the line allows.
                assert!(width < 120 || named == name(row), "{width}: {line}");
            }
        }
        // A narrow terminal has no space for numbers next to a name, but the numbers shown are correct.
        let narrow = written(31);
        let last = narrow.lines().rfind(|line| line.contains("Customer")).unwrap();
        let words: Vec<&str> = last.split_whitespace().collect();
        assert!(words.len() == 2 && words[0] == group_digits(rows - 1), "{last}");
        assert!(words[1].ends_with(&format!("Customer{}", (rows - 1) % 10)), "{last}");
    }

    #[test]
    fn long_names_lose_their_middle_where_they_would_fill_the_memory() {
        let name = format!("first{}last", "x".repeat(60_000));
        let table = |rows: usize| {
            let mut table = TableBuilder::new(&[("class", Align::Left)]);
            (0..rows).for_each(|_| table.row([&name]));
            let mut out = Vec::new();
            table.write(&mut out, Style::default()).unwrap();
            String::from_utf8(out).unwrap()
        };
        let few = table(3);
        assert!(few.lines().skip(1).all(|line| line == name));
        let many = table(5000);
        assert_eq!(many.lines().count(), 5001);
        assert!(many.len() < 5_100_000, "{}", many.len());
        for line in many.lines().skip(1) {
            assert!(line.starts_with("firstx") && line.contains('…') && line.ends_with("xlast"), "{line}");
            assert_eq!(line.chars().count(), LONGEST_CELL);
        }
    }

    #[test]
    fn a_pipe_gets_whole_names_and_no_escapes() {
        let text = sample(Style::default());
        assert_eq!(
            text,
            "    bytes  class\n1,234,567  com.example.with.a.very.long.name.indeed.Customer$Address\n       16  x\\u001b[2J\n1,234,583  total\n"
        );
    }

    /// Bold cells are at the right position after an empty column, shortened names and wide characters.
    #[test]
    fn cells_are_bold_where_they_stand() {
        let columns = || {
            let header = |title: &'static str, align, fit| Header::new(title, align, fit);
            let mut bold = header("bytes", Align::Right, Fit::Whole);
            bold.ink = Ink::Bold;
            let name = header("class", Align::Left, Fit::Shorten { priority: 0 });
            vec![header("", Align::Left, Fit::Whole), name, bold, header("kind", Align::Left, Fit::Whole)]
        };
        let name = "com.example.with.a.very.long.name.indeed.Outer$Middle$Customer";
        for (width, name) in
            [(Some(40), name), (Some(30), name), (None, name), (None, "東京❤\u{fe0f}👍\u{1f3fd}")]
        {
            let mut table = TableBuilder::with(columns());
            table.row(["", name, "1,234", "own"]);
            table.row(["", "a", "16", "own"]);
            let mut out = Vec::new();
            table.write(&mut out, Style { width, color: true, ..Style::default() }).unwrap();
            let text = String::from_utf8(out).unwrap();
            for (line, bold) in text.lines().skip(1).zip(["1,234", "16"]) {
                assert!(line.ends_with(&format!(" \u{1b}[1m{bold}\u{1b}[0m  own")), "{width:?}: {text}");
                assert_eq!(line.matches("\u{1b}[1m").count(), 1, "{width:?}: {text}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_gets_shortened_names() {
        let text = sample(Style { width: Some(40), color: false, ..Style::default() });
        assert!(text.lines().all(|line| fit::width(line) <= 40), "{text}");
        assert!(text.contains("…name.indeed.Customer$Address"), "{text}");
    }
}
