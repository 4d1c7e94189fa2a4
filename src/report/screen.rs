//! A result on a screen: the lines that its table has at a width, with the link targets of its rows. It can be laid out
//! again for another width.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use hprof_parser::ObjectId;

use super::column::{CellTarget, Schema};
use super::fit;
use super::line::{LineOf, LineSink, TableRow};
use super::rows::RowCursor;
use super::section::Section;
use super::table::{Style, TableBuilder};

/// Rows of a result that a screen has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowWindow {
    /// Number of the first row.
    pub start: usize,
    /// Maximum number of rows.
    pub count: usize,
    /// `true` for the last rows; `start` is ignored.
    pub is_last: bool,
    /// Only rows that contain this text, in either case, are counted; empty for all.
    pub text: String,
}

/// Place of a screen in its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowPlace {
    /// Number of its first row.
    pub start: usize,
    /// Number of its rows.
    pub rows: usize,
    /// Whether rows follow.
    pub has_more: bool,
    /// Number of all rows, if it is known.
    pub total: Option<usize>,
}

impl RowWindow {
    /// All rows.
    pub const ALL: Self = Self { start: 0, count: usize::MAX, is_last: false, text: String::new() };

    pub(super) fn is_part(&self) -> bool {
        *self != Self::ALL
    }

    /// Adds the rows of the window to a table. `total` is the number of rows of the result, if it is known.
    pub(super) fn read(
        &self,
        schema: &Schema,
        rows: &mut dyn RowCursor,
        table: &mut TableBuilder,
        total: Option<usize>,
    ) -> WindowPlace {
        let text = self.text.to_lowercase();
        let total = total.filter(|_| text.is_empty());
        let mut number = 0;
        let last = rows.left().filter(|_| self.is_last && text.is_empty());
        let start =
            if self.is_last { last.map_or(0, |left| left.saturating_sub(self.count)) } else { self.start };
        if text.is_empty() {
            // A result that ends before: the last rows are not known to be there.
            number = if rows.skip(start) {
                start
            } else {
                return WindowPlace { total, ..WindowPlace::default() };
            };
        }
        // Rows of the window; the last ones if all are read.
        let mut kept: VecDeque<TableRow> = VecDeque::new();
        let mut has_more = false;
        while rows.advance() {
            let row = TableRow::linked(schema, rows, number);
            if !row.contains(&text) {
                continue;
            }
            if number < start {
                number += 1;
                continue;
            }
            if kept.len() >= self.count {
                if !self.is_last {
                    has_more = true;
                    break;
                }
                kept.pop_front();
            }
            kept.push_back(row);
            number += 1;
        }
        let (start, rows) = (kept.front().map_or(start, |row| row.number), kept.len());
        kept.into_iter().for_each(|row| table.push_row(row));
        let end = start + rows;
        let is_end = !has_more && (rows < self.count || self.is_last);
        WindowPlace {
            start,
            rows,
            has_more: !self.is_last && self.is_part() && (has_more || total.is_some_and(|total| total > end)),
            total: total.or(is_end.then_some(end)),
        }
    }
}

/// Texts and tables of a result, in order.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    place: WindowPlace,
    sections: Vec<Section>,
    /// Section with the rows of the result; others are tables around it.
    rows: Option<usize>,
}

/// A line of a screen, escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenLine {
    /// Text.
    pub text: String,
    /// Byte ranges that are bold.
    pub bold: Vec<Range<usize>>,
    /// Objects, classes and pages that it names, most important first.
    pub links: Arc<[CellTarget]>,
    /// `true` for titles and totals.
    pub is_heading: bool,
    /// Number of the row of the result, if it shows one; in a tree that was inserted, of the row that it replaced.
    pub row: Option<usize>,
}

impl Screen {
    pub(super) fn new(place: WindowPlace) -> Self {
        Self { place, ..Self::default() }
    }

    /// Returns its place in the result.
    pub fn place(&self) -> WindowPlace {
        self.place
    }

    pub(super) fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    pub(super) fn push_rows(&mut self, rows: TableBuilder) {
        self.rows = Some(self.sections.len());
        self.sections.push(Section::Table(rows));
    }

    /// Returns the number of rows of the result.
    pub fn row_count(&self) -> usize {
        self.table().map_or(0, |table| table.rows().len())
    }

    fn table(&self) -> Option<&TableBuilder> {
        match self.sections.get(self.rows?) {
            Some(Section::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns whether a row of the result is about an object.
    pub fn has(&self, object: ObjectId) -> bool {
        let is_wanted = |row: &TableRow| row.targets.contains(&CellTarget::Object(object));
        self.table().is_some_and(|table| table.rows().iter().any(is_wanted))
    }

    /// Replaces the row of an object in a tree by the rows of the tree that starts at it, one level deeper than they
    /// are. Returns `false` if the tree does not contain the object.
    pub fn graft(&mut self, object: ObjectId, tree: &Self) -> bool {
        let Some(table) = self.table() else { return false };
        let is_wanted = |row: &TableRow| row.targets.contains(&CellTarget::Object(object));
        let (Some(at), Some(grafted)) = (table.rows().iter().position(is_wanted), tree.table()) else {
            return false;
        };
        let replaced = table.rows().get(at);
        let branch = replaced.and_then(|row| row.cells.last()).map_or("", |cell| branch(cell));
        // Those of the tree that are there already.
        let is_below =
            |row: &&TableRow| row.cells.last().is_some_and(|cell| self::branch(cell).len() > branch.len());
        let end = at + 1 + table.rows().iter().skip(at + 1).take_while(is_below).count();
        let in_result = replaced.map_or(0, |row| row.number);
        // Lines of the rows below go on at the left of the rows that are inserted.
        let below = branch.replace("├─ ", "│  ").replace("└─ ", "   ");
        let mut rows = grafted.rows().to_vec();
        for (number, row) in rows.iter_mut().enumerate() {
            row.number = in_result;
            if let Some(cell) = row.cells.last_mut() {
                cell.insert_str(0, if number == 0 { branch } else { &below });
            }
        }
        match self.rows.and_then(|at| self.sections.get_mut(at)) {
            Some(Section::Table(table)) if !rows.is_empty() => table.replace_rows(at..end, rows),
            _ => return false,
        }
        true
    }

    /// Lays the screen out for a width.
    pub fn lines(&self, width: u16) -> Vec<ScreenLine> {
        let style = Style { width: Some(width.max(1)), ..Style::default() };
        let mut lines = LineCollector::default();
        for (at, section) in self.sections.iter().enumerate() {
            let first = lines.lines.len();
            // Collecting lines does not fail.
            let _ = section.clone().write(&mut lines, style);
            let Section::Table(table) = section else { continue };
            let is_rows = self.rows == Some(at);
            for line in lines.lines.iter_mut().skip(first) {
                let row = line.row.and_then(|row| table.rows().get(row));
                if let Some(row) = row
                    && !row.targets.is_empty()
                {
                    line.links = row.targets.as_slice().into();
                }
                line.row = row.filter(|_| is_rows).map(|row| row.number);
            }
        }
        lines.lines
    }
}

/// Returns the lines of a tree at the start of a cell.
fn branch(cell: &str) -> &str {
    let is_drawn = |piece: &str| ["│  ", "   ", "├─ ", "└─ "].contains(&piece);
    let mut end = 0;
    while let Some(piece) = cell.get(end..).and_then(|rest| {
        let length: usize = rest.chars().take(3).map(char::len_utf8).sum();
        rest.get(..length)
    }) && is_drawn(piece)
    {
        end += piece.len();
    }
    cell.get(..end).unwrap_or_default()
}

/// Collects lines.
#[derive(Default)]
struct LineCollector {
    lines: Vec<ScreenLine>,
}

impl LineSink for LineCollector {
    fn line(&mut self, line: &str, bold: &[Range<usize>], of: LineOf) -> io::Result<()> {
        self.lines.push(ScreenLine {
            text: line.to_owned(),
            bold: bold.iter().filter(|range| !range.is_empty()).cloned().collect(),
            links: ids(line).into(),
            is_heading: of == LineOf::Heading,
            row: if let LineOf::Row(row) = of { Some(row) } else { None },
        });
        Ok(())
    }
}

impl ScreenLine {
    /// Creates a line of a text; object IDs in it are links.
    pub fn of_text(text: &str) -> Self {
        let text = super::escape::text(text).into_owned();
        Self { links: ids(&text).into(), text, ..Self::default() }
    }
}

/// Returns the object IDs in a text. They are never shortened.
fn ids(text: &str) -> Vec<CellTarget> {
    let mut all: Vec<CellTarget> = Vec::new();
    for (at, _) in text.match_indices("0x") {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let rest = text.get(at..).unwrap_or_default();
        let digits = rest.get(2..fit::id_length(rest)).unwrap_or_default();
        if let (false, Ok(id)) = (before.is_some_and(char::is_alphanumeric), u64::from_str_radix(digits, 16))
        {
            let target = CellTarget::Object(ObjectId(id));
            if id != 0 && !all.contains(&target) {
                all.push(target);
            }
        }
    }
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::column::{Column, ColumnKey, Columns, ValueKind};
    use crate::json::DumpHeader;
    use crate::{Format, value::Value};

    fn columns() -> Columns<'static, (u64, &'static str)> {
        Columns::new([
            Column::of(ColumnKey::chosen("object", ValueKind::Id), |row: &(u64, &str)| {
                Value::Id(ObjectId(row.0))
            })
            .header("id"),
            Column::of(ColumnKey::chosen("what", ValueKind::Text), |row: &(u64, &str)| row.1.into())
                .header("what"),
        ])
    }

    fn answer(rows: &[(u64, &'static str)]) -> Answer<'static, (u64, &'static str)> {
        Answer::new(columns(), rows.to_vec())
            .above(Section::Line("kept by 0xff and, again, 0xff, not by 10x20 or 0x".to_owned()))
            .matching(rows.len() as u64 + 2, "objects")
            .under(Section::Options("--top 0".to_owned()))
    }

    fn screen(rows: &[(u64, &'static str)]) -> Screen {
        answer(rows).with_erased(|answer| answer.into_screen(&RowWindow::ALL).0)
    }

    #[test]
    fn a_screen_has_the_lines_of_the_table_at_any_width() {
        let rows = [(1, "one\u{1b}[2J"), (0x10, "com.example.a.very.long.name.of.a.class.Indeed")];
        let screen = screen(&rows);
        for width in [20, 40, 200] {
            let mut out = Vec::new();
            let style = Style { width: Some(width), ..Style::default() };
            answer(&rows).write(&mut out, Format::Table, style, "x", &DumpHeader::default()).unwrap();
            let table = String::from_utf8(out).unwrap();
            let table: Vec<&str> = table.lines().filter(|line| !line.starts_with("--top")).collect();
            let lines = screen.lines(width);
            assert_eq!(lines.iter().map(|line| &line.text).collect::<Vec<_>>(), table, "{width}");
        }
        let lines = screen.lines(200);
        assert_eq!(*lines[0].links, [CellTarget::Object(ObjectId(0xff))]);
        assert!(lines[1].is_heading && lines[1].links.is_empty() && lines[1].row.is_none());
        assert_eq!((lines[3].row, &*lines[3].links), (Some(1), &[CellTarget::Object(ObjectId(0x10))][..]));
    }

    #[test]
    fn a_tree_takes_the_place_of_its_first_row() {
        let mut screen = screen(&[(1, "a"), (2, "├─ b (1 of 2)"), (3, "└─ c")]);
        let tree = |rows: &[(u64, &'static str)]| self::screen(rows);
        assert!(screen.graft(ObjectId(2), &tree(&[(2, "b"), (4, "├─ d"), (5, "└─ e")])));
        assert!(screen.graft(ObjectId(5), &tree(&[(5, "e"), (6, "└─ f")])));
        assert!(screen.graft(ObjectId(3), &tree(&[(3, "c"), (7, "└─ g")])));
        assert!(screen.graft(ObjectId(2), &tree(&[(2, "b"), (4, "├─ d"), (5, "└─ e")])));
        assert!(screen.graft(ObjectId(5), &tree(&[(5, "e"), (6, "└─ f")])));
        assert!(!screen.graft(ObjectId(9), &tree(&[(9, "x")])) && !screen.graft(ObjectId(1), &tree(&[])));
        let text: Vec<String> = screen.lines(80).into_iter().map(|line| line.text).collect();
        let tree = &text[2..9];
        let whole = [
            "0x1  a",
            "0x2  ├─ b",
            "0x4  │  ├─ d",
            "0x5  │  └─ e",
            "0x6  │     └─ f",
            "0x3  └─ c",
            "0x7     └─ g",
        ];
        assert_eq!(tree, whole);
        assert_eq!(screen.row_count(), 7);
    }

    #[test]
    fn a_window_has_these_rows_and_what_is_around_only_at_the_ends() {
        let rows: Vec<(u64, &'static str)> =
            (1..=100).map(|row| (row, if row % 10 == 0 { "Ten" } else { "other" })).collect();
        let window = |start, count, is_last, text: &str, knows: bool| {
            let mut answer = Answer::new(columns(), rows.clone())
                .above(Section::Line("above".to_owned()))
                .under(Section::Line("under".to_owned()));
            if knows {
                answer = answer.matching(100, "rows");
            }
            let window = RowWindow { start, count, is_last, text: text.to_owned() };
            let (screen, _) = answer.with_erased(|answer| answer.into_screen(&window));
            let lines = screen.lines(80);
            let has = |text: &str| lines.iter().any(|line| line.text == text);
            let rows: Vec<usize> = lines.iter().filter_map(|line| line.row).collect();
            let WindowPlace { start, rows: count, has_more, total } = screen.place();
            assert_eq!((rows.first().copied().unwrap_or(start), rows.len()), (start, count));
            (start, count, has_more, total, has("above"), has("under"))
        };
        for knows in [true, false] {
            let total = Some(100).filter(|_| knows);
            assert_eq!(window(0, 30, false, "", knows), (0, 30, true, total, true, false));
            assert_eq!(window(50, 30, false, "", knows), (50, 30, true, total, false, false));
            assert_eq!(window(80, 30, false, "", knows), (80, 20, false, Some(100), false, true));
            assert_eq!(window(7, 30, true, "", knows), (70, 30, false, Some(100), false, true));
            assert_eq!(window(200, 30, false, "", knows).1, 0);
            assert_eq!(window(0, 4, false, "tEN", knows), (0, 4, true, None, true, false));
            assert_eq!(window(4, 40, false, "ten", knows), (4, 6, false, Some(10), false, true));
            assert_eq!(window(0, 4, true, "ten", knows), (6, 4, false, Some(10), false, true));
        }
    }
}
