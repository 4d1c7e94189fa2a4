//! The line in which a filter or a command is typed.

use hprof_report::escape;

use super::view::{READING, View, takes_two};
use super::visit::{Goal, Visit};
use super::{Browser, Key};

/// Purpose of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptKind {
    /// A filter: only lines that contain the text are shown.
    Filter,
    /// A command line.
    Command,
}

/// Maximum length of the text in bytes.
const MAX_LENGTH: usize = 4096;

/// A line that is being typed.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    pub(super) kind: PromptKind,
    pub(super) text: String,
    /// Position in the history, counted from the end; 0 is the line that is being typed.
    back: usize,
}

impl Prompt {
    /// Opens a prompt with an initial text.
    pub(super) fn new(kind: PromptKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), back: 0 }
    }

    /// Returns the character that is shown before the text.
    pub(super) fn mark(&self) -> char {
        if self.kind == PromptKind::Filter { '/' } else { ':' }
    }

    /// Appends a character, unless the text has the maximum length.
    pub(super) fn push(&mut self, c: char) {
        if self.text.len() < MAX_LENGTH && !c.is_control() {
            self.text.push(c);
        }
    }

    /// Replaces the text with an older or newer line of the history.
    pub(super) fn recall(&mut self, history: &[String], is_older: bool) {
        let back = if is_older { (self.back + 1).min(history.len()) } else { self.back.saturating_sub(1) };
        if back != self.back {
            self.back = back;
            let line = history.len().checked_sub(back).and_then(|at| history.get(at));
            self.text = line.cloned().unwrap_or_default();
        }
    }

    /// Completes the last word to the longest common prefix of the words that start with it, ignoring case. Returns the
    /// matching words if there are several.
    pub(super) fn complete(&mut self, words: &[String]) -> Vec<String> {
        let start = self.text.rfind(|c: char| c.is_whitespace() || matches!(c, '(' | ','));
        let start = start.map_or(0, |at| at + 1);
        let typed = self.text.get(start..).unwrap_or_default().to_lowercase();
        let mut like: Vec<String> =
            words.iter().filter(|word| word.to_lowercase().starts_with(&typed)).cloned().collect();
        like.sort_unstable();
        like.dedup();
        let Some(first) = like.first() else { return Vec::new() };
        let is_common = |end: &usize| {
            let start = first.get(..*end);
            let is_start =
                |word: &String| word.get(..*end).zip(start).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
            like.iter().all(is_start)
        };
        let end = (typed.len()..=first.len()).rev().find(is_common);
        if let Some(common) = end.and_then(|end| first.get(..end)) {
            self.text.truncate(start);
            self.text.push_str(common);
        }
        if like.len() == 1 {
            self.text.push(' ');
            return Vec::new();
        }
        like
    }
}

impl Browser {
    /// Handles a key while the prompt is open.
    pub(super) fn type_key(&mut self, key: Key) {
        let Some(prompt) = &mut self.prompt else { return };
        let is_filter = prompt.kind == PromptKind::Filter;
        match key {
            Key::Char(c) => prompt.push(c),
            Key::Backspace if prompt.text.is_empty() => self.prompt = None,
            Key::Backspace => drop(prompt.text.pop()),
            Key::Clear => prompt.text.clear(),
            Key::Esc => {
                self.prompt = None;
                if is_filter {
                    self.filter("");
                }
                return;
            }
            Key::Up | Key::Down if is_filter => {
                self.prompt = None;
                return self.command_key(key);
            }
            Key::Up => prompt.recall(&self.history, true),
            Key::Down => prompt.recall(&self.history, false),
            Key::Tab if !is_filter => {
                let words = match prompt.text.split_once(' ') {
                    None => READING.iter().map(|name| (*name).to_owned()).collect(),
                    Some((command, _)) => {
                        let mut words = self.catalog.options(command);
                        words.extend(self.catalog.query_words(command));
                        let visits = self.past.iter().chain([&self.now]);
                        words.extend(visits.flat_map(Visit::class_names));
                        words
                    }
                };
                self.message = escape::text(&prompt.complete(&words).join(" ")).into_owned();
            }
            Key::Enter if is_filter => self.prompt = None,
            Key::Enter => return self.run(),
            _ => {}
        }
        if let Some(prompt) = self.prompt.as_ref().filter(|_| is_filter) {
            let text = prompt.text.clone();
            self.filter(&text);
        }
    }

    /// Shows only loaded lines that contain the text. The cursor stays on its line, or moves to another one while that line is
    /// hidden.
    pub(super) fn filter(&mut self, text: &str) {
        if self.now.filter == text {
            return;
        }
        self.now.choose();
        text.clone_into(&mut self.now.filter);
        let line = self.now.shown.get(self.now.cursor).copied();
        self.now.sift(line);
        if self.now.is_sifted_elsewhere() || (self.is_asking() && self.now.view.scrolls()) {
            (self.now.start, self.now.goal) = (0, Goal::Chosen);
            self.ask();
        }
    }

    /// Runs the command that was typed.
    fn run(&mut self) {
        let Some(prompt) = self.prompt.take() else { return };
        if prompt.text.trim().is_empty() {
            return;
        }
        self.history.retain(|line| *line != prompt.text);
        self.history.push(prompt.text.clone());
        match View::parse(&prompt.text, |name| self.catalog.description(name).is_some()) {
            Ok(view) if takes_two(view.command()) && self.baseline.is_none() => self.say_no_baseline(),
            Ok(view) => self.go(view),
            Err(why) => self.message = why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed_in_either_case() {
        let words = ["SELECT", "shop.Order", "shop.OrderLine", "objects", "retained"].map(str::to_owned);
        for (typed, expected, count) in [
            ("sql sel", "sql SELECT ", 0),
            ("oql SELECT * FROM SHOP.", "oql SELECT * FROM shop.Order", 2),
            ("sql SELECT sum(ret", "sql SELECT sum(retained ", 0),
            ("sql \u{1f980}", "sql \u{1f980}", 0),
        ] {
            let mut prompt = Prompt::new(PromptKind::Command, typed);
            assert_eq!(prompt.complete(&words).len(), count, "{typed}");
            assert_eq!(prompt.text, expected);
        }
    }
}
