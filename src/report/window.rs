//! Window of a result's rows: the rows that a screen shows.

use std::collections::VecDeque;

use hprof_values::ObjectId;

use super::column::{CellTarget, Schema};
use super::line::TableRow;
use super::rows::RowCursor;
use super::table::TableBuilder;

/// Maximum number of rows of a window. A result can have one row for each object of a heap.
pub const MAX_ROWS: usize = 20_000;

/// Request for the rows of a result that a screen shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowWindow {
    /// Number of the first row.
    pub start: usize,
    /// Maximum number of rows, at most [`MAX_ROWS`].
    pub count: usize,
    /// `true` for a window at the end of the result; `start` is ignored.
    pub is_last: bool,
    /// Link targets of the row around which the window is placed; `start` is ignored. If there is no such row, the window has
    /// the first rows.
    pub around: Option<Vec<CellTarget>>,
    /// If not empty, only rows that contain this text, ignoring case, are counted, and their ancestors in a tree.
    pub text: String,
    /// Objects whose rows are counted even if they do not contain `text`.
    pub kept: Vec<ObjectId>,
}

/// Position of a window in its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowPosition {
    /// Number of the window's first row.
    pub start: usize,
    /// Number of rows in the window.
    pub rows: usize,
    /// `true` if rows follow after the window.
    pub has_more: bool,
    /// Total number of rows, if it is known.
    pub total: Option<usize>,
}

impl RowWindow {
    /// All rows, up to [`MAX_ROWS`].
    pub const ALL: Self = Self {
        start: 0,
        count: usize::MAX,
        is_last: false,
        around: None,
        text: String::new(),
        kept: Vec::new(),
    };

    /// Returns whether all rows of the result have to be read.
    pub fn reads_all(&self) -> bool {
        self.is_last || self.around.is_some() || !self.text.is_empty()
    }

    /// Returns the maximum number of rows of the window.
    fn max_rows(&self) -> usize {
        self.count.min(MAX_ROWS)
    }

    /// Returns whether the window does not request all rows of the result.
    pub(super) fn is_part(&self) -> bool {
        *self != Self::ALL
    }

    /// Adds the rows of the window to a table. `total` is the total number of rows of the result, if it is known.
    pub(super) fn read(
        &self,
        schema: &Schema,
        rows: &mut dyn RowCursor,
        table: &mut TableBuilder,
        total: Option<usize>,
    ) -> WindowPosition {
        let text = self.text.to_lowercase();
        let total = total.filter(|_| text.is_empty());
        let mut read =
            ReadRows { window: self, start: self.start, number: 0, kept: VecDeque::new(), first: None };
        if self.is_last {
            let last = rows.remaining_rows().filter(|_| text.is_empty());
            read.start = last.map_or(0, |left| left.saturating_sub(self.max_rows()));
        } else if self.around.is_some() {
            (read.start, read.first) = (0, Some(Vec::new()));
        }
        if text.is_empty() {
            // The result has fewer rows; which ones are the last is unknown.
            if !rows.skip(read.start) {
                return WindowPosition { total, ..WindowPosition::default() };
            }
            read.number = read.start;
        }
        let mut has_more = false;
        // Ancestors of the current row in a tree, with their depths. They are counted only when a row below them is counted.
        let mut above: Vec<(usize, Option<TableRow>)> = Vec::new();
        while !has_more && rows.advance() {
            let row = TableRow::with_links(schema, rows, 0);
            if text.is_empty() {
                has_more = !read.take(row);
                continue;
            }
            let depth = row.depth();
            while above.pop_if(|(other, _)| *other >= depth).is_some() {}
            if row.contains(&text) || self.has_kept_object(&row) {
                let before = above.iter_mut().filter_map(|(_, row)| row.take());
                has_more = !before.chain([row]).all(|row| read.take(row));
                above.push((depth, None));
            } else {
                above.push((depth, Some(row)));
            }
        }
        let (kept, is_cut) = read.end();
        has_more |= is_cut;
        let (start, rows) = (kept.front().map_or(self.start, |row| row.number), kept.len());
        kept.into_iter().for_each(|row| table.push_row(row));
        let end = start + rows;
        let is_end = !has_more && (rows < self.max_rows() || self.is_last);
        WindowPosition {
            start,
            rows,
            has_more: !self.is_last && (has_more || self.is_part() && total.is_some_and(|total| total > end)),
            total: total.or(is_end.then_some(end)),
        }
    }

    fn has_kept_object(&self, row: &TableRow) -> bool {
        row.targets.iter().any(|target| matches!(target, CellTarget::Object(id) if self.kept.contains(id)))
    }
}

/// State while reading the rows of a window.
struct ReadRows<'w> {
    window: &'w RowWindow,
    start: usize,
    /// Number of the next row that is counted.
    number: usize,
    kept: VecDeque<TableRow>,
    /// First rows of the result, until the row is found around which the window is placed.
    first: Option<Vec<TableRow>>,
}

impl ReadRows<'_> {
    /// Takes the next row that is counted. Returns `false` if the window is already full.
    fn take(&mut self, mut row: TableRow) -> bool {
        let count = self.window.max_rows();
        if self.number < self.start {
            self.number += 1;
            return true;
        }
        row.number = self.number;
        let is_wanted = self.window.around.as_ref().is_some_and(|wanted| row.targets == *wanted);
        if let Some(first) = &mut self.first {
            if first.len() <= count {
                first.push(row.clone());
            }
            if is_wanted {
                self.first = None;
            } else if self.kept.len() >= count / 2 {
                self.kept.pop_front();
            }
        } else if self.kept.len() >= count {
            if !self.window.is_last {
                return false;
            }
            self.kept.pop_front();
        }
        self.kept.push_back(row);
        self.number += 1;
        true
    }

    /// Returns the rows of the window, and whether rows follow.
    fn end(self) -> (VecDeque<TableRow>, bool) {
        // The row around which the window would be placed was not found.
        let Some(mut first) = self.first else { return (self.kept, false) };
        let is_cut = first.len() > self.window.max_rows();
        first.truncate(self.window.max_rows());
        (first.into(), is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Answer;
    use crate::screen::tests::{columns, rows};
    use crate::section::Section;

    /// Returns the objects of the rows in a window, and the window's position.
    fn read(
        given: &[(u64, &'static str)],
        is_tree: bool,
        window: &RowWindow,
        knows: bool,
    ) -> (Vec<u64>, WindowPosition) {
        let mut answer = Answer::new(columns(is_tree), rows(given, is_tree));
        if knows {
            answer = answer.matching(given.len() as u64, "rows");
        }
        let (screen, _) = answer.with_erased(|answer| answer.into_screen(window));
        let lines = screen.lines(80);
        let object = |line: &crate::screen::ScreenLine| match line.links.first() {
            Some(CellTarget::Object(id)) if line.row.is_some() => Some(id.0),
            _ => None,
        };
        (lines.iter().filter_map(object).collect(), screen.place())
    }

    #[test]
    fn a_window_has_these_rows_and_what_is_around_only_at_the_ends() {
        let rows: Vec<(u64, &'static str)> =
            (1..=100).map(|row| (row, if row % 10 == 0 { "Ten" } else { "other" })).collect();
        let window = |start, count, is_last, text: &str, knows: bool| {
            let mut answer = Answer::new(columns(false), self::rows(&rows, false))
                .with_section_above(Section::Line("above".to_owned()))
                .with_section_below(Section::Line("under".to_owned()));
            if knows {
                answer = answer.matching(100, "rows");
            }
            let window = RowWindow { start, count, is_last, text: text.to_owned(), ..RowWindow::ALL };
            let (screen, _) = answer.with_erased(|answer| answer.into_screen(&window));
            let lines = screen.lines(80);
            let has = |text: &str| lines.iter().any(|line| line.text == text);
            let rows: Vec<usize> = lines.iter().filter_map(|line| line.row).collect();
            let WindowPosition { start, rows: count, has_more, total } = screen.place();
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

    #[test]
    fn a_window_is_around_a_row_wherever_it_is() {
        let rows: Vec<(u64, &'static str)> =
            (1..=1000).map(|row| (row, if row % 10 == 0 { "ten" } else { "other" })).collect();
        let around = |id, text: &str, knows| {
            let around = Some(vec![CellTarget::Object(ObjectId(id))]);
            let window = RowWindow { count: 20, around, text: text.to_owned(), ..RowWindow::ALL };
            let (rows, place) = read(&rows, false, &window, knows);
            assert_eq!(rows.len(), place.rows);
            (rows.first().copied().unwrap_or(0), rows.len(), place.start, place.has_more, place.total)
        };
        for knows in [true, false] {
            let total = Some(1000).filter(|_| knows);
            assert_eq!(around(500, "", knows), (490, 20, 489, true, total));
            assert_eq!(around(3, "", knows), (1, 20, 0, true, total));
            assert_eq!(around(999, "", knows), (989, 12, 988, false, Some(1000)));
            // 500 is the fiftieth of a hundred.
            assert_eq!(around(500, "TEN", knows), (400, 20, 39, true, None));
            assert_eq!(around(1000, "ten", knows), (900, 11, 89, false, Some(100)));
            // There is no such row: the window has the first rows.
            assert_eq!(around(501, "ten", knows), (10, 20, 0, true, None));
            assert_eq!(around(5000, "", knows), (1, 20, 0, true, total));
        }
    }

    #[test]
    fn a_result_of_any_length_has_as_many_rows_as_a_window_can_have() {
        for (count, more) in [(MAX_ROWS - 1, 0), (MAX_ROWS, 0), (MAX_ROWS + 1, 1), (MAX_ROWS * 2, MAX_ROWS)] {
            let rows: Vec<(u64, &'static str)> = (1..=count as u64).map(|row| (row, "x")).collect();
            for knows in [true, false] {
                let (shown, place) = read(&rows, false, &RowWindow::ALL, knows);
                assert_eq!((shown.len(), place.rows), (count - more, count - more));
                assert_eq!(place.has_more, more > 0, "{count}");
            }
            let last = RowWindow { is_last: true, ..RowWindow::ALL };
            let (shown, place) = read(&rows, false, &last, true);
            assert_eq!(
                (shown.len(), shown.last().copied(), place.start),
                (count - more, Some(count as u64), more)
            );
        }
    }

    #[test]
    fn rows_above_one_that_contains_the_text_are_there_too() {
        let rows = [
            (1, "a"),
            (2, "├─ b"),
            (3, "│  ├─ y"),
            (4, "│  └─ c"),
            (5, "└─ d"),
            (6, "   └─ y"),
            (7, "e"),
            (8, "y"),
            (9, "└─ f"),
            (10, "g"),
        ];
        let with = |text: &str, start, count, kept: &[u64]| {
            let kept = kept.iter().map(|id| ObjectId(*id)).collect();
            let window = RowWindow { start, count, text: text.to_owned(), kept, ..RowWindow::ALL };
            let (rows, place) = read(&rows, true, &window, false);
            (rows, place.has_more, place.total)
        };
        assert_eq!(with("y", 0, 20, &[]), (vec![1, 2, 3, 5, 6, 8], false, Some(6)));
        assert_eq!(with("y", 1, 2, &[]), (vec![2, 3], true, None));
        assert_eq!(with("f", 0, 20, &[]), (vec![8, 9], false, Some(2)));
        assert_eq!(with("f", 0, 20, &[7, 5]), (vec![1, 5, 7, 8, 9], false, Some(5)));
        assert_eq!(with("nothing", 0, 20, &[]), (vec![], false, Some(0)));
    }

    #[test]
    fn texts_that_look_like_a_tree_are_none() {
        let rows = [(1, "plain"), (2, "   y"), (3, "├─ x"), (4, "… 41 levels: y")];
        let window = RowWindow { count: 20, text: "y".to_owned(), ..RowWindow::ALL };
        assert_eq!(read(&rows, false, &window, false).0, [2, 4]);
    }
}
