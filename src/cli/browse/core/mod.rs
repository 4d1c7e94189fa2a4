//! The browser without a terminal: keys, sizes and results go in; requests and a screen of cells come out.

mod draw;
mod keys;
mod prompt;
mod view;
mod visit;

use std::ffi::OsString;
use std::path::PathBuf;

use hprof_report::column::CellTarget;
use hprof_report::escape;
use hprof_report::screen::ScreenLine;
use hprof_report::window::RowWindow;
use hprof_values::ObjectId;

pub(super) use keys::Key;
use keys::{HELP, VIEWS};
use prompt::{Prompt, PromptKind};
#[cfg(test)]
pub(super) use view::READING;
pub(super) use view::takes_two;
use view::{View, ViewSubject};
pub(super) use visit::ScreenAnswer;
use visit::{Early, Goal, Visit};

/// Maximum number of earlier views that Esc returns to.
const MAX_PAST: usize = 100;
/// Number of rows requested at a time.
const ROWS: usize = 400;

/// Message in a view without links.
const NOTHING: &str = "nothing to open in this view";

/// Message when the overview arrives after the user has started to use the early lines.
const LATE: &str = "the overview is ready: o shows it";

/// A request to the worker: a command line, and the rows to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScreenRequest {
    /// Number of the request, which the result repeats.
    pub(super) number: u64,
    /// Command line, without the dump.
    pub(super) words: Vec<String>,
    /// Open nodes, and the command lines of their dominator trees.
    pub(super) trees: Vec<(ObjectId, Vec<String>)>,
    /// Width to lay out the lines for.
    pub(super) width: u16,
    /// Requested rows; `None` if the view does not load rows while scrolling.
    pub(super) window: Option<RowWindow>,
}

impl ScreenRequest {
    /// Returns the command line, which requests no more rows than needed, and the rows to take from its result.
    pub(super) fn command(&self) -> (Vec<String>, RowWindow) {
        let mut words = self.words.clone();
        let Some(window) = &self.window else { return (words, RowWindow::ALL) };
        // One more, to see whether rows follow: not every command returns the number of rows.
        let end = window.start.saturating_add(window.count).saturating_add(1);
        let top = if window.reads_all() { 0 } else { end };
        words.insert(words.len().min(1), format!("--top={top}"));
        (words, window.clone())
    }
}

/// Effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    Ask(ScreenRequest),
    /// Cancels the pending request.
    Cancel,
    /// Copies a text to the clipboard.
    Copy(String),
    Suspend,
    Quit,
}

/// The commands of this program and their options.
pub(super) trait Catalog {
    /// Returns what a command does.
    fn description(&self, command: &str) -> Option<String>;
    /// Returns the values of an option of a command; empty if it has no such option.
    fn values(&self, command: &str, option: &str) -> Vec<String>;
    /// Returns the options of a command.
    fn options(&self, command: &str) -> Vec<String>;
    /// Returns the keywords, tables and columns of a command's query language; empty if it takes no query.
    fn query_words(&self, command: &str) -> Vec<String>;
}

/// State of the browser.
pub(super) struct Browser {
    dump: PathBuf,
    baseline: Option<PathBuf>,
    /// Options that every command repeats when it is shown for use in a shell.
    options: Vec<OsString>,
    catalog: Box<dyn Catalog>,
    size: (u16, u16),
    past: Vec<Visit>,
    now: Visit,
    future: Vec<Visit>,
    prompt: Option<Prompt>,
    /// Commands that were typed.
    history: Vec<String>,
    /// Number of the last request.
    number: u64,
    /// Current stage of the pending request.
    progress: String,
    message: String,
    marked: Vec<ObjectId>,
    effects: Vec<Effect>,
    /// Text of the last error.
    failure: Option<String>,
    /// `true` if a request had a result other than an error.
    has_answer: bool,
}

impl Browser {
    /// Creates a browser that shows the overview, and requests it.
    pub(super) fn new(
        dump: PathBuf,
        baseline: Option<PathBuf>,
        options: Vec<OsString>,
        catalog: Box<dyn Catalog>,
        size: (u16, u16),
    ) -> Self {
        let mut new = Self {
            dump,
            baseline,
            options,
            catalog,
            size,
            past: Vec::new(),
            now: Visit::new(View::new("overview", [""; 0])),
            future: Vec::new(),
            prompt: None,
            history: Vec::new(),
            number: 0,
            progress: String::new(),
            message: String::new(),
            marked: Vec::new(),
            effects: Vec::new(),
            failure: None,
            has_answer: false,
        };
        new.ask();
        new
    }

    /// Removes and returns the pending effects.
    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Returns whether a result is pending.
    pub(super) fn is_asking(&self) -> bool {
        self.now.asking.is_some()
    }

    /// Returns the text of the line under the cursor.
    #[cfg(test)]
    pub(super) fn chosen_text(&self) -> String {
        self.now.line(self.now.cursor).map_or_else(String::new, |line| line.text.clone())
    }

    /// Sets the size of the screen: columns and lines.
    pub(super) fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.ask_for_width();
        self.now.scroll(self.height());
    }

    /// Updates the stage of a request.
    pub(super) fn progress(&mut self, number: u64, stage: &str) {
        if self.now.asking == Some(number) {
            stage.clone_into(&mut self.progress);
        }
    }

    /// Stores a result, including one for a view that was left. Results of cancelled requests are ignored.
    pub(super) fn answer(&mut self, number: u64, answer: ScreenAnswer) {
        let height = self.height();
        let others = self.past.iter_mut().chain(&mut self.future);
        let asked = std::iter::once(&mut self.now).chain(others).find(|visit| visit.asking == Some(number));
        let Some(visit) = asked else { return };
        visit.asking = None;
        if answer.is_failed {
            let lines: Vec<&str> = answer.lines.iter().map(|line| line.text.trim()).collect();
            self.failure = Some(lines.join(" "));
        }
        self.has_answer |= !answer.is_failed;
        let is_shown = visit.take_late(answer, height);
        visit.scroll(height);
        if number == self.number {
            if !is_shown {
                LATE.clone_into(&mut self.message);
            }
            self.ask_for_width();
            self.ask_more();
        }
    }

    /// Shows preliminary lines until the result arrives.
    pub(super) fn early(&mut self, number: u64, answer: ScreenAnswer) {
        let height = self.height();
        if self.now.asking == Some(number) {
            self.now.take_early(answer, height);
            self.now.scroll(height);
        }
    }

    /// Repeats the request if the result was laid out for another width. A pending request is not restarted.
    fn ask_for_width(&mut self) {
        let is_other = self.now.width().is_some_and(|width| width != self.width());
        if is_other && !self.is_asking() && !self.now.view.command().is_empty() {
            self.ask();
        }
    }

    /// Returns the width of the lines: the screen without its first column, which shows marks.
    fn width(&self) -> u16 {
        self.size.0.saturating_sub(1).max(1)
    }

    /// Returns the last error, if no request had another result.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.clone().filter(|_| !self.has_answer)
    }

    /// Returns the number of lines between the title and the last two lines.
    fn height(&self) -> usize {
        usize::from(self.size.1).saturating_sub(3).max(1)
    }

    /// Requests the current view.
    fn ask(&mut self) {
        self.number += 1;
        self.now.asking = Some(self.number);
        self.progress.clear();
        let window = RowWindow {
            start: self.now.start,
            count: self.row_count(),
            is_last: self.now.goal == Goal::Last,
            around: self
                .now
                .chosen
                .as_ref()
                .filter(|_| self.now.goal == Goal::Chosen)
                .map(|chosen| chosen.row.to_vec()),
            text: self.now.filter.clone(),
            kept: Vec::new(),
        };
        let question = ScreenRequest {
            number: self.number,
            window: Some(window).filter(|_| self.now.view.scrolls()),
            words: self.now.view.words(),
            trees: self.now.view.trees(),
            width: self.width(),
        };
        // Only the last request counts.
        self.effects.retain(|effect| !matches!(effect, Effect::Ask(_)));
        self.effects.push(Effect::Ask(question));
    }

    /// Returns the number of rows requested at a time: several screens.
    fn row_count(&self) -> usize {
        ROWS.max(8 * self.height())
    }

    /// Requests the rows near the cursor if they are not loaded.
    fn ask_more(&mut self) {
        if self.is_asking() {
            return;
        }
        if let Some(start) = self.now.missing(self.row_count()) {
            self.now.start = start;
            self.ask();
        }
    }

    /// Moves the cursor to the first or last row, and requests the row if necessary.
    fn go_to_end(&mut self, goal: Goal) {
        let place = self.now.answer.as_ref().and_then(|answer| answer.place).unwrap_or_default();
        let is_there = if goal == Goal::First { place.start == 0 } else { !place.has_more };
        if is_there {
            let end = self.now.shown.len().saturating_sub(1);
            return self.now.go_to(if goal == Goal::First { self.now.first_row() } else { end });
        }
        self.now.goal = goal;
        self.now.start = 0;
        self.ask();
    }

    /// Opens a view, and puts the current one into the history.
    fn go(&mut self, view: View) {
        if view == self.now.view && self.now.answer.as_ref().is_some_and(|answer| !answer.is_failed) {
            if self.now.show_late(self.height()) || !self.now.is_early() {
                return;
            }
            if self.is_asking() {
                return self.now.want_late();
            }
            // The request of that view was cancelled.
            return self.replace(view);
        }
        let last = std::mem::replace(&mut self.now, Visit::new(view));
        // A view that was left before its result came is not worth going back to.
        if last.answer.is_some() {
            self.past.push(last);
            if self.past.len() > MAX_PAST {
                self.past.remove(0);
            }
        }
        self.future.clear();
        self.ask();
    }

    /// Replaces the current view, without changing the history.
    fn replace(&mut self, view: View) {
        self.now = Visit::new(view);
        self.ask();
    }

    /// Goes back or forward in the history.
    fn turn(&mut self, is_back: bool) {
        let (from, to) =
            if is_back { (&mut self.past, &mut self.future) } else { (&mut self.future, &mut self.past) };
        let Some(visit) = from.pop() else {
            let end = if is_back { "this is the first view" } else { "this is the last view" };
            return end.clone_into(&mut self.message);
        };
        to.push(std::mem::replace(&mut self.now, visit));
        self.progress.clear();
        let is_lost = self.now.asking.is_some_and(|asked| asked != self.number);
        let is_cancelled = self.now.asking.is_none() && self.now.answer.is_none();
        if is_lost || is_cancelled {
            self.ask();
        }
        if self.now.has_late() {
            LATE.clone_into(&mut self.message);
        }
        self.ask_for_width();
        self.now.scroll(self.height());
    }

    /// Cancels the pending request.
    fn cancel(&mut self) {
        self.now.asking = None;
        self.now.goal = Goal::Stay;
        self.number += 1;
        self.effects.retain(|effect| !matches!(effect, Effect::Ask(_)));
        self.effects.push(Effect::Cancel);
        "cancelled".clone_into(&mut self.message);
    }

    /// Handles a key.
    pub(super) fn key(&mut self, key: Key) {
        self.message.clear();
        let reading = |browser: &Self| (browser.now.reading(), browser.marked.len());
        let before = matches!(self.now.early, Early::Shown).then(|| reading(self));
        match key {
            Key::Suspend => self.effects.push(Effect::Suspend),
            Key::Interrupt => self.effects.push(Effect::Quit),
            _ if self.prompt.is_some() => self.type_key(key),
            _ => self.command_key(key),
        }
        if before.is_some_and(|before| self.prompt.is_some() || reading(self) != before) {
            // Early lines may be those of the view that was left.
            let others = self.past.iter_mut().chain(&mut self.future);
            std::iter::once(&mut self.now).chain(others).for_each(Visit::use_early);
        }
        self.now.scroll(self.height());
        self.ask_more();
    }

    fn say_no_baseline(&mut self) {
        "needs an older dump: --baseline OLD".clone_into(&mut self.message);
    }

    fn command_key(&mut self, key: Key) {
        let page = self.height().saturating_sub(1).max(1);
        match key {
            Key::Up | Key::Char('k') => self.now.step(-1),
            Key::Down | Key::Char('j') => self.now.step(1),
            Key::PageUp => self.now.turn_page(-page.cast_signed(), self.height()),
            Key::PageDown | Key::Char(' ') => self.now.turn_page(page.cast_signed(), self.height()),
            Key::Home => self.go_to_end(Goal::First),
            Key::End => self.go_to_end(Goal::Last),
            Key::Click(line) => self.click(line),
            Key::Tab => self.next_link(),
            Key::Enter => self.enter(),
            Key::Backspace => self.turn(true),
            Key::Char('f') => self.turn(false),
            Key::Right | Key::Char('+') => self.open(),
            Key::Left | Key::Char('-') => self.close(),
            Key::Esc if self.is_asking() => self.cancel(),
            Key::Esc if !self.now.filter.is_empty() => self.filter(""),
            Key::Esc => self.turn(true),
            Key::Char('/') => self.prompt = Some(Prompt::new(PromptKind::Filter, self.now.filter.clone())),
            Key::Char(':') => self.prompt = Some(Prompt::new(PromptKind::Command, "")),
            Key::Char('e') => self.prompt = Some(Prompt::new(PromptKind::Command, "oql SELECT ")),
            Key::Char('E') => self.prompt = Some(Prompt::new(PromptKind::Command, "sql SELECT ")),
            Key::Char('p') => self.view_subject("paths-to-root", &[]),
            Key::Char('r') => self.view_subject("refs", &["--incoming"]),
            Key::Char('D') => self.view_subject("dominators", &[]),
            Key::Char('b') => self.next_value("--group-by", "group by"),
            Key::Char('>') => self.next_value("--sort", "sort"),
            Key::Char('m') => self.mark(),
            Key::Char('M') => self.retained_by_marked(),
            Key::Char('y') => match self.now.object_target() {
                Some(CellTarget::Object(id) | CellTarget::Class(_, Some(id))) => {
                    self.copy(format!("{id:#x}"))
                }
                Some(CellTarget::Class(name, None)) => self.copy(name.clone()),
                _ => self.message = "no object on this line".to_owned(),
            },
            Key::Char('Y') => self.copy(self.shell()),
            Key::Char('?') => self.help(),
            Key::Char('q') => self.effects.push(Effect::Quit),
            Key::Char(letter) => {
                if let Some(view) = VIEWS.iter().find(|view| view.letter == letter) {
                    if takes_two(view.command) && self.baseline.is_none() {
                        return self.say_no_baseline();
                    }
                    self.go(View::new(view.command, view.rest.iter().copied()));
                } else {
                    "unknown key; ? lists all keys".clone_into(&mut self.message);
                }
            }
            Key::Clear | Key::Suspend | Key::Interrupt => {}
        }
    }

    fn click(&mut self, line: u16) {
        let Some(line) = usize::from(line).checked_sub(1).filter(|line| *line < self.height()) else {
            return;
        };
        let at = self.now.first + line;
        if at < self.now.shown.len() {
            if at == self.now.cursor {
                return self.enter();
            }
            self.now.go_to(at);
        }
    }

    fn next_link(&mut self) {
        let count = self.now.line(self.now.cursor).map_or(0, |line| line.links.len());
        if self.now.link + 1 < count {
            self.now.link += 1;
        } else if let Some(at) = self.next_linked_line() {
            self.now.go_to(at);
        } else {
            self.now.link = 0;
            if count == 0 {
                NOTHING.clone_into(&mut self.message);
            }
        }
    }

    /// Returns the next line with other links than the current line; after the last line, the first one.
    fn next_linked_line(&self) -> Option<usize> {
        let (count, cursor) = (self.now.shown.len(), self.now.cursor);
        let here = self.now.line(cursor).map(|line| &line.links);
        let is_other = |at: &usize| {
            self.now.line(*at).is_some_and(|line| !line.links.is_empty() && Some(&line.links) != here)
        };
        (cursor + 1..count).chain(0..cursor).find(is_other)
    }

    /// Returns the view that Enter opens.
    fn target_view(&self) -> Option<View> {
        let target = self.now.target()?;
        let view = View::of_target(target, &self.now.view)?;
        let is_one = matches!(target, CellTarget::Object(_) | CellTarget::Class(..));
        // The object is shown already: opens what it dominates.
        if view == self.now.view && is_one {
            View::for_subject("dominators", &[], target)
        } else {
            Some(view)
        }
    }

    fn enter(&mut self) {
        match (self.target_view(), self.now.target()) {
            (Some(view), _) => self.go(view),
            (None, Some(CellTarget::Class(..))) => {
                "cannot open this class: its name is ambiguous in a command".clone_into(&mut self.message);
            }
            (None, Some(CellTarget::Command(words))) => {
                self.message = view::only_in_shell(words.first().map_or("", String::as_str));
            }
            (None, Some(_)) => "nothing to open on this line".clone_into(&mut self.message),
            (None, None) => {
                let has_other = self.next_linked_line().is_some();
                let text = if has_other { "nothing to open here; Tab: next link" } else { NOTHING };
                text.clone_into(&mut self.message);
            }
        }
    }

    /// Returns the object or class of the line under the cursor, or of the view.
    fn subject(&self) -> Option<ViewSubject> {
        self.now.object_target().cloned().or_else(|| self.now.view.subject())
    }

    fn view_subject(&mut self, command: &str, options: &[&str]) {
        let view = self.subject().and_then(|subject| View::for_subject(command, options, &subject));
        match view {
            Some(view) => self.go(view),
            None => "no object on this line".clone_into(&mut self.message),
        }
    }

    fn object(&self) -> Option<ObjectId> {
        match self.now.object_target()? {
            CellTarget::Object(id) | CellTarget::Class(_, Some(id)) => Some(*id),
            _ => None,
        }
    }

    fn open(&mut self) {
        let Some(id) = self.object() else { return };
        if self.now.view.starts_at(id) {
            return "the objects that it dominates are below".clone_into(&mut self.message);
        }
        if self.now.view.open(id) {
            self.ask();
        } else {
            self.enter();
        }
    }

    fn close(&mut self) {
        if self.object().is_some_and(|id| self.now.view.close(id)) {
            self.ask();
        } else if !self.now.view.is_tree() {
            self.turn(true);
        }
    }

    fn next_value(&mut self, option: &str, what: &str) {
        let values = self.catalog.values(self.now.view.command(), option);
        match self.now.view.with_next(option, &values) {
            Some(view) => self.replace(view),
            None => self.message = format!("this view has no option to {what}"),
        }
    }

    fn mark(&mut self) {
        let Some(id) = self.object() else {
            return "no object on this line".clone_into(&mut self.message);
        };
        let before = self.marked.len();
        self.marked.retain(|marked| *marked != id);
        if self.marked.len() == before {
            self.marked.push(id);
        }
        self.now.step(1);
    }

    fn retained_by_marked(&mut self) {
        if self.marked.is_empty() {
            return "no object is marked; m marks the object on a line".clone_into(&mut self.message);
        }
        let ids: Vec<String> = self.marked.iter().map(|id| format!("{id:#x}")).collect();
        self.go(View::new("retained", ids));
    }

    fn shell(&self) -> String {
        self.now.view.shell(&self.dump, self.baseline.as_deref(), &self.options)
    }

    fn copy(&mut self, text: String) {
        self.message = format!("copied: {}", escape::text(&text));
        self.effects.push(Effect::Copy(text));
    }

    /// Opens a view with a description of the current view, and the keys.
    fn help(&mut self) {
        let command = self.now.view.command().to_owned();
        if command.is_empty() {
            return self.turn(true);
        }
        let about = VIEWS.iter().find(|view| view.command == command).map(|view| view.about.to_owned());
        let about = about.or_else(|| self.catalog.description(&command)).unwrap_or_default();
        let shown = self.shell();
        let views = keys::views(self.baseline.is_some())
            .map(|view| format!("  {}                 {}", view.letter, view.title));
        let text = format!("{}: {about}\nIn a shell: {shown}\n\nViews", self.now.view.title());
        let width = usize::from(self.size.0.saturating_sub(1).max(1));
        let lines = text.lines().map(str::to_owned).chain(views).chain(HELP.lines().map(str::to_owned));
        let lines = lines.flat_map(|line| hprof_report::fit::wrap(&escape::text(&line), width, 2));
        let line = |text: String| ScreenLine { is_heading: is_title(&text), text, ..ScreenLine::default() };
        let answer = ScreenAnswer { lines: lines.map(line).collect(), ..ScreenAnswer::default() };
        let mut help = Visit::new(View::new("", [""; 0]));
        help.take(answer, self.height());
        self.past.push(std::mem::replace(&mut self.now, help));
    }
}

/// Returns whether a line of the help is the title of a section.
fn is_title(line: &str) -> bool {
    ["Views", "Moving", "The object or class on the line", "The view"].contains(&line)
}
