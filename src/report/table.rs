//! Tables for people: columns that fit the terminal, plain text in a pipe.

use std::io::{self, Write};

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};

pub use super::column::{Align, Fit};
use super::column::{Columns, Header};
use super::escape;

/// How a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Columns of the terminal; `None` in a pipe, where lines are as long as they are.
    pub width: Option<u16>,
    /// Whether to use bold text.
    pub color: bool,
}

/// A table that is being put together.
#[derive(Debug)]
pub struct Builder {
    columns: Vec<Header>,
    rows: Vec<Row>,
    footer: Vec<Vec<String>>,
    /// Bytes of the longest cell.
    longest: usize,
    /// Whether long cells are cut.
    is_cut: bool,
}

/// A row, and the lines below it.
#[derive(Debug, Default)]
struct Row {
    cells: Vec<String>,
    below: Vec<Line>,
}

/// A name is not shortened below this, however narrow the terminal.
pub const NARROWEST: usize = 20;
/// Columns that a cell may take in a table of [`MAX_BYTES`]. No name of a real class is that long; a hostile dump can give
/// one of 64 KB to a million rows.
pub const LONGEST_CELL: usize = 1000;
/// Bytes that the rows of a table would take, all as wide as the widest, before long cells lose their middle.
pub const MAX_BYTES: usize = 1 << 26;

impl Builder {
    /// A table with these columns, of which the last is shortened to fit the terminal.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        let last = columns.len().saturating_sub(1);
        let fit = |at: usize| if at == last { Fit::Shorten { priority: 0 } } else { Fit::Whole };
        let header =
            |(at, (title, align)): (usize, &(&'static str, Align))| Header::new(*title, *align, fit(at));
        Self::with(columns.iter().enumerate().map(header).collect())
    }

    /// A table of an answer's columns.
    pub(super) fn of<R>(columns: &Columns<'_, R>) -> Self {
        Self::with(columns.shown().map(|(header, _)| header.clone()).collect())
    }

    fn with(columns: Vec<Header>) -> Self {
        Self { columns, rows: Vec::new(), footer: Vec::new(), longest: 0, is_cut: false }
    }

    /// Breaks lines of the last column that do not fit the terminal, instead of shortening them: for sentences.
    pub fn wrapping(mut self) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.fit = Fit::Wrap;
        }
        self
    }

    /// Adds a row; texts are escaped here.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect();
        self.push_row(Row { cells, below: Vec::new() });
    }

    /// Adds a row by declared columns, and the lines below it.
    pub(super) fn push<R>(&mut self, columns: &Columns<'_, R>, row: &R, below: Vec<Line>) {
        let cells = columns.shown().map(|(_, column)| escape::text(&column.table_cell(row)).into_owned());
        self.push_row(Row { cells: cells.collect(), below });
    }

    fn push_row(&mut self, mut row: Row) {
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

    /// Adds a row of totals, which stands below a line.
    pub fn total<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.footer.push(cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect());
    }

    /// Adds a row of totals: cells by the title of their column, those of one title in the order of the columns.
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

    /// Whether it has no columns to show rows in.
    pub(super) fn has_no_columns(&self) -> bool {
        self.columns.is_empty()
    }

    /// By column: how wide its cells may be in a terminal. Columns that can be shortened lose what is too much, those of
    /// the lowest priority first, the last of several first, none below [`NARROWEST`].
    fn rooms(&self, terminal: u16) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let rows = self.rows.iter().map(|row| &row.cells).chain(&self.footer);
                let cells = rows.filter_map(|cells| cells.get(column));
                let title = self.columns.get(column).map_or(0, |header| width(&header.title));
                cells.map(|cell| width(cell)).max().unwrap_or(0).max(title)
            })
            .collect();
        let gaps = 2 * widths.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(terminal.into());
        let mut flexible: Vec<(u8, usize)> = (self.columns.iter().enumerate())
            .filter_map(|(at, header)| match header.fit {
                Fit::Whole => None,
                Fit::Shorten { priority } => Some((priority, at)),
                Fit::Wrap => Some((u8::MAX, at)),
            })
            .collect();
        flexible.sort_by_key(|(priority, at)| (*priority, std::cmp::Reverse(*at)));
        for (_, at) in flexible {
            if let Some(width) = widths.get_mut(at) {
                let taken = excess.min(width.saturating_sub(NARROWEST));
                *width -= taken;
                excess -= taken;
            }
        }
        widths
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let rooms = style.width.map(|terminal| self.rooms(terminal));
        let room = |column: usize| rooms.as_ref().and_then(|rooms| rooms.get(column)).copied();
        let Self { columns, rows, footer, .. } = self;
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if style.color {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        let title = |text: &str| {
            let cell = Cell::new(text);
            if style.color { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        let has_titles = columns.iter().any(|header| !header.title.is_empty());
        let fit = |row: Vec<String>| {
            let columns = &columns;
            row.into_iter().enumerate().map(move |(column, cell)| {
                match (columns.get(column).map(|header| header.fit), room(column)) {
                    (Some(Fit::Shorten { .. }), Some(room)) => shorten(&cell, room),
                    _ => cell,
                }
            })
        };
        if has_titles {
            let titles = columns.iter().map(|header| header.title.clone().into_owned()).collect();
            table.set_header(fit(titles).map(|cell| title(&cell)));
        }
        let mut below = Vec::with_capacity(rows.len());
        for row in rows {
            table.add_row(fit(row.cells));
            below.push(row.below);
        }
        for row in footer {
            table.add_row(fit(row).map(|cell| title(&cell)).collect::<Vec<_>>());
        }
        let last = columns.len().saturating_sub(1);
        for (column, header) in columns.iter().enumerate() {
            let Some(shown) = table.column_mut(column) else { continue };
            shown.set_padding((0, if column == last { 0 } else { 2 }));
            shown.set_cell_alignment(match header.align {
                Align::Left => CellAlignment::Left,
                Align::Right => CellAlignment::Right,
            });
            if let (Fit::Wrap, Some(room)) = (header.fit, room(column)) {
                let width = u16::try_from(room).unwrap_or(u16::MAX);
                shown.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
                table.set_content_arrangement(ContentArrangement::Dynamic);
            }
        }
        let mut lines = table.lines();
        if has_titles && let Some(titles) = lines.next() {
            writeln!(out, "{}", titles.trim_end())?;
        }
        // Where lines are broken a row takes several; such tables have nothing below their rows.
        let mut below = below.into_iter();
        for line in lines {
            writeln!(out, "{}", line.trim_end())?;
            below.next().into_iter().flatten().try_for_each(|line| line.write(out, style))?;
        }
        Ok(())
    }
}

/// A line below a row of a table, such as a frame of its stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Columns of space before it.
    pub indent: usize,
    /// Its text, not escaped yet.
    pub text: String,
}

impl Line {
    fn write(&self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let (indent, text) = (self.indent, escape::text(&self.text));
        match style.width.map(|width| usize::from(width).saturating_sub(indent).max(NARROWEST)) {
            Some(room) => writeln!(out, "{:indent$}{}", "", shorten(&text, room)),
            None => writeln!(out, "{:indent$}{text}", ""),
        }
    }
}

/// Cuts the cells of a row that are too long for a large table.
fn cut(row: &mut [String]) {
    for cell in row.iter_mut().filter(|cell| cell.len() > LONGEST_CELL) {
        *cell = shorten(cell, LONGEST_CELL);
    }
}

/// Columns that a text takes in a terminal.
fn width(text: &str) -> usize {
    // East Asian names are twice as wide; comfy-table counts the same way.
    unicode_width::UnicodeWidthStr::width(text)
}

/// Takes out the middle of a name that is too wide: both ends tell more. The text is escaped already.
pub fn shorten(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let tail = room.saturating_sub(1) * 2 / 3;
    let head = room.saturating_sub(1) - tail;
    let wide = |c: char| unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
    let take = |characters: &mut dyn Iterator<Item = char>, room: usize| -> Vec<char> {
        let mut used = 0;
        characters
            .take_while(|c| {
                used += wide(*c);
                used <= room
            })
            .collect()
    };
    let start = take(&mut text.chars(), head);
    let end = take(&mut text.chars().rev(), tail);
    start.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn sample(style: Style) -> String {
        let mut table = Builder::new(&[("bytes", Align::Right), ("class", Align::Left)]);
        table.row(["1,234,567", "com.example.with.a.very.long.name.indeed.Customer$Address"]);
        table.row(["16", "x\u{1b}[2J"]);
        table.total(["1,234,583", "total"]);
        let mut out = Vec::new();
        table.write(&mut out, style).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_names_lose_their_middle_where_they_would_fill_the_memory() {
        let name = format!("first{}last", "x".repeat(60_000));
        let table = |rows: usize| {
            let mut table = Builder::new(&[("class", Align::Left)]);
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

    #[test]
    fn a_narrow_terminal_gets_shortened_names() {
        let text = sample(Style { width: Some(40), color: false });
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(text.contains("…") && text.contains("Customer$Address"), "{text}");
        assert!(sample(Style { width: Some(5), color: false }).contains("Address"));
    }
}
