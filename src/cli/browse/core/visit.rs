//! A visit of a view: its lines, and where the reader is in them.

use std::sync::Arc;

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;

use super::view::View;

/// Lines of an answer.
#[derive(Debug, Clone, Default)]
pub(in crate::cli::browse) struct ScreenAnswer {
    /// Lines, followed by notes.
    pub(in crate::cli::browse) lines: Vec<ScreenLine>,
    /// Number of notes at the end of the lines.
    pub(in crate::cli::browse) notes: usize,
    /// Number of rows of the result.
    pub(in crate::cli::browse) rows: usize,
    /// Width that the lines were laid out for.
    pub(in crate::cli::browse) width: u16,
    /// `true` if there is no answer, but an error.
    pub(in crate::cli::browse) is_failed: bool,
}

/// A view with its answer.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) view: View,
    /// `None` until the first answer.
    pub(super) answer: Option<Arc<ScreenAnswer>>,
    /// Numbers of the lines that the filter shows.
    pub(super) shown: Vec<usize>,
    /// Position in `shown`.
    pub(super) cursor: usize,
    /// Position in `shown` of the first line on the screen.
    pub(super) first: usize,
    pub(super) filter: String,
    /// Number of the chosen link of the line.
    pub(super) link: usize,
}

impl Visit {
    pub(super) fn new(view: View) -> Self {
        Self { view, answer: None, shown: Vec::new(), cursor: 0, first: 0, filter: String::new(), link: 0 }
    }

    /// Takes an answer. The cursor stays on its line; in the first answer it is on the first line with a link, if that is
    /// among the first lines of this number.
    pub(super) fn take(&mut self, answer: ScreenAnswer, height: usize) {
        let is_first = self.answer.is_none();
        self.answer = Some(Arc::new(answer));
        let line = self.shown.get(self.cursor).copied();
        self.sift(line);
        if is_first {
            let linked = |at: &usize| self.line(*at).is_some_and(|line| !line.links.is_empty());
            self.cursor = (0..self.shown.len().min(height)).find(linked).unwrap_or(0);
        }
    }

    /// Determines the lines that the filter shows: headings, and lines that contain the text in either case. The cursor
    /// goes to the line with this number, or the next one that is shown.
    pub(super) fn sift(&mut self, line: Option<usize>) {
        let lines = self.answer.as_ref().map_or(&[][..], |answer| &answer.lines);
        let wanted = self.filter.to_lowercase();
        let is_shown = |line: &ScreenLine| {
            wanted.is_empty() || line.is_heading || line.text.to_lowercase().contains(&wanted)
        };
        self.shown = (0..lines.len()).filter(|at| lines.get(*at).is_some_and(is_shown)).collect();
        let at = self.shown.partition_point(|shown| Some(*shown) < line);
        self.cursor = at.min(self.shown.len().saturating_sub(1));
    }

    /// Returns a shown line, by its position.
    pub(super) fn line(&self, at: usize) -> Option<&ScreenLine> {
        self.answer.as_ref()?.lines.get(*self.shown.get(at)?)
    }

    /// Moves the cursor by lines.
    pub(super) fn step(&mut self, lines: isize) {
        let to = self.cursor.saturating_add_signed(lines).min(self.shown.len().saturating_sub(1));
        self.go_to(to);
    }

    pub(super) fn go_to(&mut self, to: usize) {
        if to != self.cursor {
            self.link = 0;
        }
        self.cursor = to;
    }

    /// Scrolls so that the cursor is among the first lines of this number.
    pub(super) fn scroll(&mut self, height: usize) {
        // Lines above the first row, such as titles, stay visible as long as possible.
        if self.cursor < height && self.first > self.cursor {
            self.first = 0;
        }
        self.first = self.first.clamp((self.cursor + 1).saturating_sub(height), self.cursor);
    }

    /// Returns the titles of the rows, to be shown above them while they scroll: the number of their line.
    pub(super) fn titles(&self) -> Option<usize> {
        let lines = &self.answer.as_ref()?.lines;
        let row = lines.iter().position(|line| line.row.is_some())?;
        row.checked_sub(1).filter(|at| lines.get(*at).is_some_and(|line| line.is_heading))
    }

    /// Returns the chosen link of the line under the cursor.
    pub(super) fn target(&self) -> Option<&CellTarget> {
        let links = &self.line(self.cursor)?.links;
        links.get(self.link.min(links.len().saturating_sub(1)))
    }
}
