//! A visit to a view: its lines, and the position of the user in them.

use std::sync::Arc;

use hprof_report::column::CellTarget;
use hprof_report::screen::ScreenLine;
use hprof_report::tree;
use hprof_report::window::WindowPosition;

use super::view::View;

/// Result of a request: lines to show on the screen.
#[derive(Debug, Clone, Default)]
pub(in crate::cli::browse) struct ScreenAnswer {
    /// Lines of the result, followed by notes.
    pub(in crate::cli::browse) lines: Vec<ScreenLine>,
    /// Number of notes at the end of the lines.
    pub(in crate::cli::browse) notes: usize,
    /// Range of the rows in the lines, if rows are loaded while scrolling.
    pub(in crate::cli::browse) place: Option<WindowPosition>,
    /// Filter text with which the rows were requested.
    pub(in crate::cli::browse) text: String,
    /// Width that the lines were laid out for.
    pub(in crate::cli::browse) width: u16,
    /// `true` if the result is an error.
    pub(in crate::cli::browse) is_failed: bool,
}

/// Line that the cursor moves to when a result arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Goal {
    /// The current line.
    #[default]
    Stay,
    First,
    Last,
    /// The line that was chosen when the filter changed; if it is hidden, the first with a link.
    Chosen,
}

/// State of the preliminary lines that are shown until the result arrives.
#[derive(Debug, Clone, Default)]
pub(super) enum Early {
    /// No preliminary lines are shown.
    #[default]
    No,
    /// Preliminary lines are shown; the user has not moved in them.
    Shown,
    /// The user has moved in the preliminary lines: they stay when the result arrives, which is stored here.
    Used(Option<Arc<ScreenAnswer>>),
}

/// The line that was under the cursor before the filter changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChosenLine {
    /// Links of its row in the result, which differ if the line is a node of an open tree below that row.
    pub(super) row: Arc<[CellTarget]>,
    /// Links in the line.
    links: Arc<[CellTarget]>,
    /// Text of the line: several lines may have the same links.
    text: String,
}

/// A view with its result, and the position of the cursor.
#[derive(Debug, Clone)]
pub(super) struct Visit {
    pub(super) view: View,
    /// Result; `None` until the first one arrives.
    pub(super) answer: Option<Arc<ScreenAnswer>>,
    /// Number of the pending request.
    pub(super) asking: Option<u64>,
    /// State of the lines that are shown until the result arrives.
    pub(super) early: Early,
    /// Indices of the lines that the filter shows.
    pub(super) shown: Vec<usize>,
    /// Index into `shown`.
    pub(super) cursor: usize,
    /// Index into `shown` of the first line on the screen.
    pub(super) first: usize,
    pub(super) filter: String,
    /// Line to keep under the cursor if the filter shows it.
    pub(super) chosen: Option<ChosenLine>,
    /// Index of the chosen link in the line under the cursor.
    pub(super) link: usize,
    /// First requested row.
    pub(super) start: usize,
    pub(super) goal: Goal,
}

impl Visit {
    /// Creates a visit without a result.
    pub(super) fn new(view: View) -> Self {
        Self {
            view,
            answer: None,
            asking: None,
            early: Early::No,
            shown: Vec::new(),
            cursor: 0,
            first: 0,
            filter: String::new(),
            chosen: None,
            link: 0,
            start: 0,
            goal: Goal::Stay,
        }
    }

    /// Stores a result. The cursor stays on its row, at the same line of the screen; after the first result it is on the first
    /// line with a link, if that is among the first `height` lines.
    pub(super) fn take(&mut self, answer: ScreenAnswer, height: usize) {
        if self.goal == Goal::Chosen {
            // The cursor may have moved since the request.
            self.choose();
        }
        let is_first = self.answer.is_none();
        let (line, row) = (self.shown.get(self.cursor).copied(), self.row());
        let above = self.cursor.saturating_sub(self.first);
        self.start = answer.place.map_or(0, |place| place.start);
        self.answer = Some(Arc::new(answer));
        self.sift(line);
        match std::mem::take(&mut self.goal) {
            Goal::First => self.go_to(self.first_row()),
            Goal::Last => self.go_to(self.shown.len().saturating_sub(1)),
            Goal::Stay if is_first => self.cursor = self.first_link(height),
            Goal::Chosen => self.cursor = self.chosen_line(None).unwrap_or_else(|| self.first_link(height)),
            Goal::Stay => {
                if let Some((row, below)) = row {
                    let is_row = |at: &usize| self.line(*at).is_some_and(|line| line.row >= Some(row));
                    let at = (0..self.shown.len()).find(is_row);
                    let end = self.shown.len().saturating_sub(1);
                    self.cursor = at.map_or(end, |at| (at + below).min(end));
                    self.first = self.cursor.saturating_sub(above);
                }
            }
        }
    }

    /// Returns whether the lines are preliminary.
    pub(super) fn is_early(&self) -> bool {
        !matches!(self.early, Early::No)
    }

    /// Returns whether the result has arrived while the preliminary lines are in use.
    pub(super) fn has_late(&self) -> bool {
        matches!(self.early, Early::Used(Some(_)))
    }

    /// Requests that the result is shown as soon as it arrives.
    pub(super) fn want_late(&mut self) {
        if matches!(self.early, Early::Used(None)) {
            self.early = Early::Shown;
        }
    }

    /// Returns the view, the positions and the filter text. If a key changes any of them, the preliminary lines are in use.
    pub(super) fn reading(&self) -> (View, usize, usize, String) {
        (self.view.clone(), self.cursor, self.link, self.filter.clone())
    }

    /// Marks the preliminary lines as in use.
    pub(super) fn use_early(&mut self) {
        if matches!(self.early, Early::Shown) {
            self.early = Early::Used(None);
        }
    }

    /// Returns the width that the result was laid out for; `None` if it has not arrived. Preliminary lines have no width, as a
    /// request for another width would repeat one that may have been cancelled.
    pub(super) fn width(&self) -> Option<u16> {
        let answer = match &self.early {
            Early::No => self.answer.as_ref(),
            Early::Shown => None,
            Early::Used(late) => late.as_ref(),
        }?;
        (!answer.is_failed).then_some(answer.width)
    }

    /// Stores preliminary lines, which are shown until the result arrives.
    pub(super) fn take_early(&mut self, answer: ScreenAnswer, height: usize) {
        if self.answer.is_none() {
            self.take(answer, height);
            self.early = Early::Shown;
        }
    }

    /// Stores the result, hidden while preliminary lines are in use. Returns whether the result is shown.
    pub(super) fn take_late(&mut self, answer: ScreenAnswer, height: usize) -> bool {
        match &mut self.early {
            Early::Used(late) if !answer.is_failed => {
                *late = Some(Arc::new(answer));
                return false;
            }
            Early::No => {}
            // It is the first result.
            Early::Shown | Early::Used(_) => {
                *self = Self { asking: self.asking, ..Self::new(self.view.clone()) };
            }
        }
        self.take(answer, height);
        true
    }

    /// Replaces the preliminary lines with the result. Returns `false` if it has not arrived.
    pub(super) fn show_late(&mut self, height: usize) -> bool {
        let Early::Used(Some(answer)) = &mut self.early else { return false };
        let answer = std::mem::take(answer);
        *self = Self { asking: self.asking, ..Self::new(self.view.clone()) };
        self.take(Arc::unwrap_or_clone(answer), height);
        true
    }

    /// Returns the first line with a link among the first `height` lines; else the first line.
    fn first_link(&self, height: usize) -> usize {
        let linked = |at: &usize| self.line(*at).is_some_and(|line| !line.links.is_empty());
        (0..self.shown.len().min(height)).find(linked).unwrap_or(0)
    }

    /// Records the line under the cursor, unless a line was recorded since the cursor moved.
    pub(super) fn choose(&mut self) {
        if self.chosen.is_some() {
            return;
        }
        let linked = |at: usize| self.line(at).filter(|line| !line.links.is_empty());
        let Some(ScreenLine { links, text, .. }) = linked(self.cursor) else { return };
        let row = self.row().and_then(|(_, below)| linked(self.cursor.saturating_sub(below)));
        let row = row.map_or(links, |row| &row.links).clone();
        self.chosen = Some(ChosenLine { row, links: links.clone(), text: text.clone() });
    }

    /// Returns the chosen line, or else the line of its row. Among equal lines, the one at the position `under` is preferred.
    fn chosen_line(&self, under: Option<usize>) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        let find = |is_wanted: &dyn Fn(&ScreenLine) -> bool| {
            let is_wanted = |at: &usize| self.line(*at).is_some_and(is_wanted);
            under.filter(is_wanted).or_else(|| (0..self.shown.len()).find(is_wanted))
        };
        // In a tree, the lines before the text depend on what is shown.
        let is_same = |line: &ScreenLine| line.links == chosen.links && line.text == chosen.text;
        let is_linked = |line: &ScreenLine| line.links == chosen.links;
        let is_row = |line: &ScreenLine| line.links == chosen.row;
        find(&is_same).or_else(|| find(&is_linked)).or_else(|| find(&is_row))
    }

    /// Returns the row that contains the cursor, or the nearest row above it, and the number of lines from there to the cursor.
    pub(super) fn row(&self) -> Option<(usize, usize)> {
        let at = (0..=self.cursor).rev().find(|at| self.line(*at).is_some_and(|line| line.row.is_some()))?;
        let row = self.line(at)?.row?;
        let before = (0..at).rev().take_while(|at| self.line(*at).is_some_and(|line| line.row == Some(row)));
        let first = at - before.count();
        Some((row, self.cursor - first))
    }

    /// Returns the first row to request if rows near the cursor are not loaded; `count` rows are requested at a time.
    pub(super) fn missing(&self, count: usize) -> Option<usize> {
        let place = self.answer.as_ref()?.place?;
        let row = self.row().map_or(place.start, |(row, _)| row);
        let (end, margin) = (place.start + place.rows, count / 4);
        let is_missing =
            (place.start > 0 && row < place.start + margin) || (place.has_more && row + margin >= end);
        let start = row.saturating_sub(count / 2);
        (is_missing && start != place.start).then_some(start)
    }

    /// Returns whether rows that contain the filter text have to be requested because not all rows are loaded.
    pub(super) fn is_sifted_elsewhere(&self) -> bool {
        let Some(answer) = &self.answer else { return false };
        // Rows of open nodes are drawn again.
        let is_more = |place: WindowPosition| {
            place.start > 0 || place.has_more || !answer.text.is_empty() || self.view.has_open_nodes()
        };
        answer.text != self.filter && answer.place.is_some_and(is_more)
    }

    /// Determines the lines that the filter shows: headings, and lines that contain the text, ignoring case, with their
    /// ancestors in the tree. The cursor moves to the chosen line; else to the line with index `line`, or the next one that is
    /// shown.
    pub(super) fn sift(&mut self, line: Option<usize>) {
        let lines = self.answer.as_ref().map_or(&[][..], |answer| &answer.lines);
        let wanted = self.filter.to_lowercase();
        // Cells may contain the text in a part that is cut off.
        let answer = self.answer.as_ref();
        let is_sifted = answer.is_some_and(|answer| answer.text == self.filter && answer.place.is_some());
        let is_failed = answer.is_some_and(|answer| answer.is_failed);
        let is_shown = |line: &ScreenLine| {
            wanted.is_empty()
                || is_failed
                || line.is_heading
                || (is_sifted && line.row.is_some())
                || line.text.to_lowercase().contains(&wanted)
        };
        let depths: Vec<usize> = lines.iter().map(|line| line.depth).collect();
        let is_shown: Vec<bool> = lines.iter().map(is_shown).collect();
        let shown = tree::with_above(&depths, &is_shown);
        self.shown = shown.iter().enumerate().filter(|(_, is_shown)| **is_shown).map(|(at, _)| at).collect();
        let at = self.shown.partition_point(|shown| Some(*shown) < line);
        let under = Some(at).filter(|at| self.shown.get(*at).copied() == line);
        self.cursor = self.chosen_line(under).unwrap_or_else(|| at.min(self.shown.len().saturating_sub(1)));
    }

    /// Returns a shown line by its index into `shown`.
    pub(super) fn line(&self, at: usize) -> Option<&ScreenLine> {
        self.answer.as_ref()?.lines.get(*self.shown.get(at)?)
    }

    /// Moves the cursor by lines.
    pub(super) fn step(&mut self, lines: isize) {
        let to = self.cursor.saturating_add_signed(lines).min(self.shown.len().saturating_sub(1));
        self.go_to(to);
    }

    /// Moves the cursor and the first line on the screen by lines.
    pub(super) fn turn_page(&mut self, lines: isize, height: usize) {
        self.step(lines);
        let last = self.shown.len().saturating_sub(height);
        self.first = self.first.saturating_add_signed(lines).min(last);
    }

    /// Returns the index of the first row; if there are no rows, of the first line that is not a heading.
    pub(super) fn first_row(&self) -> usize {
        let find = |is_wanted: fn(&ScreenLine) -> bool| {
            (0..self.shown.len()).find(|at| self.line(*at).is_some_and(is_wanted))
        };
        find(|line| line.row.is_some()).or_else(|| find(|line| !line.is_heading)).unwrap_or(0)
    }

    /// Returns the range of loaded rows; `None` if all lines are loaded and most of them are below a row.
    pub(super) fn rows(&self) -> Option<WindowPosition> {
        let answer = self.answer.as_ref()?;
        let place = answer.place.filter(|place| place.rows > 0)?;
        let lines = answer.lines.iter().take(answer.lines.len().saturating_sub(answer.notes));
        let below = lines.filter(|line| line.row.is_none() && !line.is_heading).count();
        let is_all = place.start == 0 && !place.has_more;
        (below <= place.rows || !is_all).then_some(place)
    }

    /// Moves the cursor to a shown line.
    pub(super) fn go_to(&mut self, to: usize) {
        if to != self.cursor {
            self.link = 0;
        }
        self.chosen = None;
        self.cursor = to;
    }

    /// Scrolls so that the cursor is among the first `height` lines.
    pub(super) fn scroll(&mut self, height: usize) {
        // Lines above the first row, such as titles, stay visible as long as possible.
        if self.cursor < height && self.first > self.cursor {
            self.first = 0;
        }
        self.first = self.first.clamp((self.cursor + 1).saturating_sub(height), self.cursor);
    }

    /// Returns the index of the line with the column titles, which stays visible while the rows scroll.
    pub(super) fn titles(&self) -> Option<usize> {
        let lines = &self.answer.as_ref()?.lines;
        let row = lines.iter().position(|line| line.row.is_some())?;
        row.checked_sub(1).filter(|at| lines.get(*at).is_some_and(|line| line.is_heading))
    }

    /// Returns the class names that the lines link to.
    pub(super) fn class_names(&self) -> impl Iterator<Item = String> {
        let lines = self.answer.as_ref().map_or(&[][..], |answer| &answer.lines);
        lines.iter().flat_map(|line| line.links.iter()).filter_map(|target| match target {
            CellTarget::Class(name, _) => Some(name.clone()),
            _ => None,
        })
    }

    /// Returns the object or class of the line under the cursor: the chosen link, or else the first link to an object or class.
    pub(super) fn object_target(&self) -> Option<&CellTarget> {
        let is_one = |target: &&CellTarget| matches!(target, CellTarget::Object(_) | CellTarget::Class(..));
        let first = || self.line(self.cursor)?.links.iter().find(is_one);
        self.target().filter(is_one).or_else(first)
    }

    /// Returns the chosen link of the line under the cursor.
    pub(super) fn target(&self) -> Option<&CellTarget> {
        let links = &self.line(self.cursor)?.links;
        links.get(self.link.min(links.len().saturating_sub(1)))
    }
}
