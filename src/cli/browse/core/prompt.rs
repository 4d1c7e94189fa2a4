//! The line in which a filter or a command is typed.

/// What is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptKind {
    /// Text that shown lines contain.
    Filter,
    /// A command line.
    Command,
}

/// Maximum length of what is typed.
const MAX_LENGTH: usize = 4096;

/// A line that is being typed.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    pub(super) kind: PromptKind,
    pub(super) text: String,
    /// Position in the history, from the end; 0 is the line itself.
    back: usize,
}

impl Prompt {
    pub(super) fn new(kind: PromptKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into(), back: 0 }
    }

    /// Returns the character before the text.
    pub(super) fn mark(&self) -> char {
        if self.kind == PromptKind::Filter { '/' } else { ':' }
    }

    pub(super) fn push(&mut self, c: char) {
        if self.text.len() < MAX_LENGTH && !c.is_control() {
            self.text.push(c);
        }
    }

    /// Takes an older or newer line of the history.
    pub(super) fn recall(&mut self, history: &[String], is_older: bool) {
        let back = if is_older { (self.back + 1).min(history.len()) } else { self.back.saturating_sub(1) };
        if back != self.back {
            self.back = back;
            let line = history.len().checked_sub(back).and_then(|at| history.get(at));
            self.text = line.cloned().unwrap_or_default();
        }
    }

    /// Completes the last word by the longest common start of the words that begin with it. Returns these if there are
    /// several.
    pub(super) fn complete(&mut self, words: &[String]) -> Vec<String> {
        let start = self.text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let typed = self.text.get(start..).unwrap_or_default().to_owned();
        let like: Vec<String> = words.iter().filter(|word| word.starts_with(&typed)).cloned().collect();
        let Some(first) = like.first() else { return Vec::new() };
        let common = |end: &usize| {
            let start = first.get(..*end);
            start.is_some() && like.iter().all(|word| word.get(..*end) == start)
        };
        let end = (typed.len()..=first.len()).rev().find(common).unwrap_or(typed.len());
        self.text.truncate(start);
        self.text.push_str(first.get(..end).unwrap_or_default());
        if like.len() == 1 {
            self.text.push(' ');
            return Vec::new();
        }
        like
    }
}
