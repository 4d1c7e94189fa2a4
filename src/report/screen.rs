//! Result on a terminal screen: the lines of its table at a width, with the link targets of its rows. A screen can be laid out
//! again for another width.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use hprof_values::ObjectId;

use super::column::CellTarget;
use super::fit;
use super::line::{LineOf, LineSink, TableRow};
use super::section::Section;
use super::table::{Style, TableBuilder};
use super::tree::{self, Branch};
use super::window::WindowPosition;

/// Texts and tables of a result, in order.
#[derive(Debug, Clone, Default)]
pub struct Screen {
    place: WindowPosition,
    sections: Vec<Section>,
    /// Index of the section with the rows of the result. Other sections are texts and tables around it.
    rows: Option<usize>,
}

/// Line of a screen; its text is escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScreenLine {
    /// Escaped text.
    pub text: String,
    /// Byte ranges of `text` that are bold.
    pub bold: Vec<Range<usize>>,
    /// Objects, classes, pages and commands that the line mentions, most important first.
    pub links: Arc<[CellTarget]>,
    /// `true` for lines of titles and totals.
    pub is_heading: bool,
    /// Number of the row in the result, if the line belongs to a row. For a row of an inserted tree, the number of the row that
    /// the tree replaced.
    pub row: Option<usize>,
    /// Depth of the row in a tree; 0 in other tables and in texts.
    pub depth: usize,
}

impl Screen {
    pub(super) fn new(place: WindowPosition) -> Self {
        Self { place, ..Self::default() }
    }

    /// Returns the position of the screen in the result.
    pub fn place(&self) -> WindowPosition {
        self.place
    }

    pub(super) fn push(&mut self, section: Section) {
        self.sections.push(section);
    }

    pub(super) fn push_rows(&mut self, rows: TableBuilder) {
        self.rows = Some(self.sections.len());
        self.sections.push(Section::Table(rows));
    }

    /// Returns the size in memory of the screen's texts, tables and links in bytes.
    pub fn byte_count(&self) -> usize {
        self.sections.iter().map(Section::byte_count).fold(0, usize::saturating_add)
    }

    fn table(&self) -> Option<&TableBuilder> {
        match self.sections.get(self.rows?) {
            Some(Section::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Returns the objects described by the rows of the result.
    pub fn objects(&self) -> HashSet<ObjectId> {
        let rows = self.table().map_or(&[][..], TableBuilder::rows);
        let object = |target: &CellTarget| match target {
            CellTarget::Object(id) => Some(*id),
            _ => None,
        };
        rows.iter().flat_map(|row| row.targets.iter()).filter_map(object).collect()
    }

    /// Replaces the row of an object in a tree, and the rows below it, by the rows of the tree that starts at this object, at
    /// the depth of the replaced row. Returns `false` if the screen does not contain the object.
    pub fn graft(&mut self, object: ObjectId, tree: &Self) -> bool {
        let Some(table) = self.table() else { return false };
        let is_wanted = |row: &TableRow| row.targets.contains(&CellTarget::Object(object));
        let (Some(at), Some(grafted)) = (table.rows().iter().position(is_wanted), tree.table()) else {
            return false;
        };
        let replaced = table.rows().get(at);
        let branch = replaced.map(TableRow::branch).unwrap_or_default();
        // The tree may already contain rows below the object.
        let is_below = |row: &&TableRow| row.depth() > branch.depth as usize;
        let end = at + 1 + table.rows().iter().skip(at + 1).take_while(is_below).count();
        let in_result = replaced.map_or(0, |row| row.number);
        // To the left of the inserted rows, the lines of the outer tree continue.
        let below = branch.continuation();
        let mut rows = grafted.rows().to_vec();
        for (number, row) in rows.iter_mut().enumerate() {
            row.number = in_result;
            let Branch { depth, lines } = row.branch();
            let start = if number == 0 { &branch.lines } else { &below };
            row.set_branch(&Branch {
                depth: depth.saturating_add(branch.depth),
                lines: format!("{start}{lines}"),
            });
        }
        match self.rows.and_then(|at| self.sections.get_mut(at)) {
            Some(Section::Table(table)) if !rows.is_empty() => table.replace_rows(at..end, rows),
            _ => return false,
        }
        true
    }

    /// Returns whether a row after the first contains a text, ignoring case, or links to one of the given objects. The text
    /// must be in lower case.
    pub fn has_below(&self, text: &str, objects: &[ObjectId]) -> bool {
        let is_of = |target: &CellTarget| matches!(target, CellTarget::Object(id) if objects.contains(id));
        let is_wanted = |row: &TableRow| row.contains(text) || row.targets.iter().any(is_of);
        self.table().is_some_and(|table| table.rows().iter().skip(1).any(is_wanted))
    }

    /// In a tree, keeps only rows that contain a text, ignoring case, and the ancestors of these rows. The text must be in
    /// lower case. Other tables are unchanged.
    pub fn keep_matching_rows(&mut self, text: &str) {
        let Some(table) = self.table() else { return };
        let depths: Vec<usize> = table.rows().iter().map(TableRow::depth).collect();
        if depths.iter().all(|depth| *depth == 0) {
            return;
        }
        let is_wanted: Vec<bool> = table.rows().iter().map(|row| row.contains(text)).collect();
        let shown = tree::with_above(&depths, &is_wanted);
        let rows = table.rows().iter().zip(shown).filter(|(_, is_shown)| *is_shown);
        let mut rows: Vec<TableRow> = rows.map(|(row, _)| row.clone()).collect();
        let mut depths: Vec<u32> = rows.iter().map(|row| row.branch().depth).collect();
        // Rows after the window belong to the same tree, unless the next one starts another tree.
        depths.extend(depths.last().filter(|_| self.place.has_more).map(|depth| *depth.min(&1)));
        for (row, branch) in rows.iter_mut().zip(tree::branches(&depths)) {
            row.set_branch(&branch);
        }
        if let Some(Section::Table(table)) = self.rows.and_then(|at| self.sections.get_mut(at)) {
            table.replace_rows(0..is_wanted.len(), rows);
        }
    }

    /// Returns the lines of the screen at a width.
    pub fn lines(&self, width: u16) -> Vec<ScreenLine> {
        let style = Style { width: Some(width.max(1)), ..Style::default() };
        let mut lines = LineCollector::default();
        for (at, section) in self.sections.iter().enumerate() {
            let first = lines.lines.len();
            // Collecting lines cannot fail.
            let _ = section.clone().write(&mut lines, style);
            if let Section::Line(text) = section {
                // A line of a wrapped sentence that contains no object ID has the links of the entire sentence.
                let links: Arc<[CellTarget]> = ids(&super::escape::text(text)).into();
                let without = lines.lines.iter_mut().skip(first).filter(|line| line.links.is_empty());
                without.for_each(|line| line.links = links.clone());
            }
            if let Section::Unwrapped(whole) = section {
                for (line, whole) in lines.lines.iter_mut().skip(first).zip(whole) {
                    let others = line.links.iter().cloned();
                    line.links = whole.target.iter().cloned().chain(others).collect();
                }
            }
            let Section::Table(table) = section else { continue };
            let is_rows = self.rows == Some(at);
            for line in lines.lines.iter_mut().skip(first) {
                let row = line.row.and_then(|row| table.rows().get(row));
                if let Some(row) = row
                    && !row.targets.is_empty()
                {
                    line.links = row.targets.as_slice().into();
                }
                line.depth = row.map_or(0, TableRow::depth);
                line.row = row.filter(|_| is_rows).map(|row| row.number);
            }
        }
        lines.lines
    }
}

/// Collector of the lines of a screen.
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
            depth: 0,
        });
        Ok(())
    }
}

impl ScreenLine {
    /// Creates a line of text. Object IDs in the text become links.
    pub fn of_text(text: &str) -> Self {
        let text = super::escape::text(text).into_owned();
        Self { links: ids(&text).into(), text, ..Self::default() }
    }
}

/// Returns the object IDs in a text, which are never shortened.
fn ids(text: &str) -> Vec<CellTarget> {
    let mut all: Vec<CellTarget> = Vec::new();
    for (at, _) in text.match_indices("0x") {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let rest = text.get(at..).unwrap_or_default();
        let digits = rest.get(2..fit::id_length(rest)).unwrap_or_default();
        // The hexadecimal number in the name of a hidden class is not an object ID.
        let is_name = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '/' | '+'));
        if let (false, Ok(id)) = (is_name, u64::from_str_radix(digits, 16)) {
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
pub(super) mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::column::{Column, ColumnKey, Columns, ValueKind};
    use crate::json::DumpHeader;
    use crate::{Format, value::Value};

    /// Row of the tests: object ID, position in a tree, and text.
    pub(crate) type Row = (u64, Branch, &'static str);

    /// Creates rows from objects and drawn texts; a tree's lines are taken from the texts.
    pub(crate) fn rows(drawn: &[(u64, &'static str)], is_tree: bool) -> Vec<Row> {
        let row = |&(id, text): &(u64, &'static str)| {
            let rest =
                if is_tree { text.trim_start_matches(['│', '├', '└', '─', ' ']) } else { text };
            let lines = text.strip_suffix(rest).unwrap().to_owned();
            (id, Branch { depth: u32::try_from(lines.chars().count() / 3).unwrap(), lines }, rest)
        };
        drawn.iter().map(row).collect()
    }

    pub(crate) fn columns(is_tree: bool) -> Columns<'static, Row> {
        let what = Column::new(ColumnKey::chosen("what", ValueKind::Text), |row: &Row| row.2.into());
        let what = what.header("what");
        Columns::new([
            Column::new(ColumnKey::chosen("object", ValueKind::Id), |row: &Row| Value::Id(ObjectId(row.0)))
                .header("id"),
            if is_tree { what.tree(|row| &row.1) } else { what },
        ])
    }

    fn answer(rows: &[(u64, &'static str)]) -> Answer<'static, Row> {
        Answer::new(columns(true), self::rows(rows, true))
            .with_section_above(Section::Line(
                "kept by 0xff and, again, 0xff, not by 10x20, 0x or A$$Lambda+0x0ab".to_owned(),
            ))
            .matching(rows.len() as u64 + 2, "objects")
            .with_section_below(Section::Options("--top 0".to_owned()))
    }

    fn screen(rows: &[(u64, &'static str)]) -> Screen {
        answer(rows).with_erased(|answer| answer.into_screen(&crate::window::RowWindow::ALL).0)
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
    fn the_size_of_a_screen_is_that_of_its_cells() {
        let long: &'static str = "y".repeat(100_000).leak();
        let [small, large] = ["y", long].map(|text| screen(&[(1, text), (2, text)]).byte_count());
        assert!(small > 0 && small < 2_000 && large > 199_998 + small - 2_000, "{small} {large}");
        assert!(large < 400_000, "{large}");
    }

    #[test]
    fn a_sifted_tree_has_rows_with_the_text_below_their_parents() {
        let rows = [(1, "a"), (2, "├─ b"), (3, "│  ├─ y"), (4, "│  └─ c"), (5, "└─ d"), (7, "e"), (8, "y")];
        let mut screen = screen(&rows);
        assert!(screen.has_below("y", &[]) && !screen.has_below("z", &[]) && !screen.has_below("a", &[]));
        assert!(screen.has_below("z", &[ObjectId(5)]) && !screen.has_below("z", &[ObjectId(1)]));
        screen.keep_matching_rows("y");
        let text: Vec<String> = screen.lines(80).into_iter().map(|line| line.text).collect();
        // The last child shown is drawn as the last child of its parent.
        assert_eq!(text[2..6], ["0x1  a", "0x2  └─ b", "0x3     └─ y", "0x8  y"]);
        assert_eq!(screen.table().unwrap().rows().len(), 4);
        let depths: Vec<usize> = screen.lines(80).iter().map(|line| line.depth).collect();
        assert_eq!(depths[2..6], [0, 1, 2, 0]);
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
        assert_eq!(screen.table().unwrap().rows().len(), 7);
    }
}
