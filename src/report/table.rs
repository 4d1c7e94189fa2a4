//! Tables for people: columns that fit the terminal, plain text in a pipe.

use std::io::{self, Write};

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};

use super::escape;

/// How a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Columns of the terminal; `None` in a pipe, where lines are as long as they are.
    pub width: Option<u16>,
    /// Whether to use bold text.
    pub color: bool,
}

/// A column's place in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A table that is being put together. The last column may be shortened to fit the terminal.
#[derive(Debug)]
pub struct Builder {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    footer: Vec<Vec<String>>,
    wraps: bool,
    /// Bytes of the longest cell.
    longest: usize,
    /// Whether long cells are cut.
    is_cut: bool,
}

/// A name is not shortened below this, however narrow the terminal.
pub const NARROWEST: usize = 20;
/// Columns that a cell may take in a table of [`MOST_BYTES`]. No name of a real class is that long; a hostile dump can give
/// one of 64 KB to a million rows.
pub const LONGEST_CELL: usize = 1000;
/// Bytes that the rows of a table would take, all as wide as the widest, before long cells lose their middle.
pub const MOST_BYTES: usize = 1 << 26;

impl Builder {
    /// A table with these columns.
    pub fn new(columns: &[(&'static str, Align)]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
            footer: Vec::new(),
            wraps: false,
            longest: 0,
            is_cut: false,
        }
    }

    /// Breaks lines of the last column that do not fit the terminal, instead of shortening them: for sentences.
    pub fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// Adds a row; texts are escaped here.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> =
            cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect();
        if self.is_cut {
            cut(&mut row);
        }
        self.longest = self.longest.max(row.iter().map(String::len).max().unwrap_or(0));
        self.rows.push(row);
        if !self.is_cut && self.rows.len().saturating_mul(self.longest) > MOST_BYTES {
            self.is_cut = true;
            self.rows.iter_mut().for_each(|row| cut(row));
        }
    }

    /// Adds a row of totals, which stands below a line.
    pub fn total<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.footer.push(cells.into_iter().map(|cell| escape::text(cell.as_ref()).into_owned()).collect());
    }

    /// Writes the table.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(self, out: &mut dyn Write, style: Style) -> io::Result<()> {
        let Self { columns, rows, footer, wraps, .. } = self;
        let widths: Vec<usize> = (0..columns.len())
            .map(|column| {
                let cells = rows.iter().chain(&footer).filter_map(|row| row.get(column));
                let title = columns.get(column).map_or(0, |(title, _)| title.len());
                cells.map(|cell| width(cell)).max().unwrap_or(0).max(title)
            })
            .collect();
        let fixed: usize =
            widths.split_last().map_or(0, |(_, fixed)| fixed.iter().map(|width| width + 2).sum());
        let room = style.width.map(|width| usize::from(width).saturating_sub(fixed).max(NARROWEST));
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
        if columns.iter().any(|(name, _)| !name.is_empty()) {
            table.set_header(columns.iter().map(|(name, _)| title(name)));
        }
        let last = columns.len().saturating_sub(1);
        let fit = |row: Vec<String>| {
            row.into_iter().enumerate().map(move |(column, cell)| match room {
                Some(room) if column == last && !wraps => shorten(&cell, room),
                _ => cell,
            })
        };
        for row in rows {
            table.add_row(fit(row));
        }
        for row in footer {
            table.add_row(fit(row).map(|cell| title(&cell)).collect::<Vec<_>>());
        }
        for (column, (_, align)) in columns.iter().enumerate() {
            if let Some(shown) = table.column_mut(column) {
                shown.set_padding((0, if column == last { 0 } else { 2 }));
                shown.set_cell_alignment(match align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
            }
        }
        if let (true, Some(room), Some(column)) = (wraps, room, table.column_mut(last)) {
            let width = u16::try_from(room).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            table.set_content_arrangement(ContentArrangement::Dynamic);
        }
        for line in table.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A count with what it counts: "1 object", "2,000 objects".
pub fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
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

/// A number with its thousands apart: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A part of a whole in percent, with one decimal; empty if the whole is nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    #[allow(clippy::cast_precision_loss)]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{percent:.1}%")
}

/// A size for people: `1.5 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss)]
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1023.95 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS.get(unit).copied().unwrap_or("EiB"))
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

    #[test]
    fn numbers() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"].map(str::to_owned)
        );
        assert_eq!(percent(1, 3), "33.3%");
        assert_eq!(percent(0, 0), "");
        assert_eq!(human_bytes(1023), "1023 B");
        assert_eq!(human_bytes(1 << 20), "1.0 MiB");
        assert_eq!(human_bytes(u64::MAX), "16.0 EiB");
    }
}
