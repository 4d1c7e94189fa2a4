//! Texts of regular expressions: of MAT, and as JavaScript has them.

use regex::{Regex, RegexBuilder};

use crate::oql::builtins::cut;
use crate::oql::error::OqlError;

/// Maximum size of a compiled regular expression in bytes.
const MAX_REGEX: usize = 4 << 20;

/// Compiles a pattern that the whole text must match.
pub(in crate::oql) fn regex(pattern: &str, at: usize) -> Result<Regex, OqlError> {
    let build = |pattern: &str| RegexBuilder::new(pattern).size_limit(MAX_REGEX).build();
    // Compiled without the group first, which must not balance parentheses of the pattern.
    build(pattern)
        .and_then(|_| build(&format!(r"\A(?:{pattern})\z")))
        .map_err(|error| wrong_regex(pattern, &error, at))
}

/// Compiles a pattern of which a match anywhere in the text is enough, with JavaScript's flags.
pub(super) fn search_regex(pattern: &str, flags: &str, at: usize) -> Result<Regex, OqlError> {
    if let Some(wrong) = flags.chars().find(|flag| !matches!(flag, 'g' | 'i' | 'm' | 's' | 'u')) {
        return Err(OqlError::new(
            at,
            format!("unknown flag {wrong} of a regular expression; the flags are i, m and s"),
        ));
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_REGEX).case_insensitive(flags.contains('i'));
    builder.multi_line(flags.contains('m')).dot_matches_new_line(flags.contains('s'));
    builder.build().map_err(|error| wrong_regex(pattern, &error, at))
}

fn wrong_regex(pattern: &str, error: &regex::Error, at: usize) -> OqlError {
    let said = error.to_string();
    let last = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
    OqlError::new(at, format!("`{}` is not a valid regular expression: {}", cut(pattern), cut(last)))
}

/// Returns the regular expression to which MAT converts a pattern: `$`, unless it is the last character, and `[]` are
/// literal.
pub(in crate::oql) fn mats_pattern(pattern: &str) -> String {
    let mut fixed = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' => {
                fixed.push(c);
                fixed.extend(characters.next());
            }
            '$' if characters.peek().is_some() => fixed.push_str(r"\$"),
            '[' if characters.peek() == Some(&']') => {
                characters.next();
                fixed.push_str(r"\[\]");
            }
            c => fixed.push(c),
        }
    }
    fixed
}
