//! Text of a rules file, and the errors that were found in it.

use std::cell::RefCell;

/// Maximum number of errors shown.
const MAX_ERRORS: usize = 20;
/// Maximum number of characters quoted from a file.
const MAX_QUOTED: usize = 80;
/// Maximum number of characters of an error message of the TOML parser.
const MAX_MESSAGE: usize = 300;

/// The errors of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .lines.join("\n"))]
pub struct TomlErrors {
    /// `FILE:LINE:COLUMN: message` for each error, in the order of the file; the last line counts those left out.
    pub lines: Vec<String>,
}

/// An error at a byte of a file.
#[derive(Debug)]
pub(super) struct TomlError {
    /// Offset in the file, in bytes.
    at: usize,
    message: String,
}

/// Text of a file, and its errors.
#[derive(Debug)]
pub(super) struct TomlSource<'t> {
    pub(super) text: &'t str,
    pub(super) errors: RefCell<Vec<TomlError>>,
}

impl TomlSource<'_> {
    /// Adds an error at an offset.
    pub(super) fn report(&self, at: usize, message: impl Into<String>) {
        self.errors.borrow_mut().push(TomlError { at, message: message.into() });
    }

    /// Reports the errors of the TOML parser: the first one of each line, since further ones in the line are its consequences.
    pub(super) fn report_syntax(&self, errors: &[toml::de::Error]) {
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        let mut errors: Vec<_> = errors.iter().map(|error| (start(error), error.message())).collect();
        errors.sort_by_key(|(at, _)| *at);
        let mut previous = None;
        for (at, message) in errors {
            let is_in_line =
                |before| !self.text.get(before..at).is_some_and(|between| between.contains('\n'));
            if !previous.replace(at).is_some_and(is_in_line) {
                let message = beginning(&message.replace('\n', ", "), MAX_MESSAGE);
                self.report(at, format!("not valid TOML: {message}"));
            }
        }
    }

    /// Returns the errors as lines of text.
    pub(super) fn into_errors(self, file: &str) -> TomlErrors {
        let mut errors = self.errors.into_inner();
        errors.sort_by_key(|error| error.at);
        let shown = errors.iter().take(MAX_ERRORS);
        let mut lines: Vec<String> = shown
            .map(|TomlError { at, message }| {
                let (line, column) = position(self.text, *at);
                format!("{file}:{line}:{column}: {message}")
            })
            .collect();
        match errors.len().saturating_sub(MAX_ERRORS) {
            0 => {}
            1 => lines.push(format!("1 more error in {file}")),
            more => lines.push(format!("{more} more errors in {file}")),
        }
        TomlErrors { lines }
    }
}

/// Returns the line and the column (in characters) of a byte, both from 1.
pub fn position(text: &str, at: usize) -> (u64, u64) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() as u64 + 1)
}

/// Quotes text from a rules file, shortened if it is long.
pub fn quoted(text: &str) -> String {
    beginning(text, MAX_QUOTED)
}

fn beginning(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}
