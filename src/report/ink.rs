//! Terminal colours: bold and dim text, and yellow and red, which are visible on dark and light backgrounds. The terminal's
//! other colours are unchanged.

use std::io::{self, Write};
use std::ops::Range;

/// Style of a text in the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ink {
    /// Default style, for names.
    #[default]
    Plain,
    /// Bold, for titles, totals and retained sizes.
    Bold,
    /// Dim, for object IDs.
    Dim,
    /// Yellow, for warnings and damage.
    Yellow,
    /// Red, for errors.
    Red,
}

impl Ink {
    /// Returns the text with escape sequences around it.
    pub fn paint(self, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => 1,
            Self::Dim => 2,
            Self::Yellow => 33,
            Self::Red => 31,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Writes a line with dim object IDs. The given byte ranges are bold.
pub(super) fn write_line(out: &mut dyn Write, line: &str, bold: &[Range<usize>]) -> io::Result<()> {
    let mut at = 0;
    let mut rest = line;
    let mut is_word = false;
    while let Some(c) = rest.chars().next() {
        let (ink, length) = if let Some(range) = bold.iter().find(|range| range.contains(&at)) {
            (Ink::Bold, range.end - at)
        } else {
            match if is_word { 0 } else { super::fit::id_length(rest) } {
                0 => (Ink::Plain, c.len_utf8()),
                id => (Ink::Dim, id),
            }
        };
        // A bold range can exceed the line: trailing spaces of the last cell are not written.
        let (text, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        at += text.len();
        let blank = text.len() - text.trim_start_matches(' ').len();
        let (blank, text) = text.split_at(blank);
        write!(out, "{blank}{}", if text.is_empty() { String::new() } else { ink.paint(text) })?;
        is_word = c.is_alphanumeric();
        rest = after;
    }
    writeln!(out)
}
