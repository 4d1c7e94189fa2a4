//! Regular expressions: of LIKE, of `matches`, and as JavaScript has them.

use std::sync::PoisonError;

use regex::{Regex, RegexBuilder};

use super::builtins::cut;
use super::resolve::{MAX_FIELDS, Resolver};
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
fn search_regex(pattern: &str, flags: &str, at: usize) -> Result<Regex, OqlError> {
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

impl Resolver<'_, '_, '_> {
    /// Compiles a regular expression that is searched for, unless there are too many.
    pub(super) fn search_pattern(
        &mut self,
        pattern: &str,
        flags: &str,
        at: usize,
    ) -> Result<Regex, OqlError> {
        self.patterns += 1;
        if self.patterns > MAX_FIELDS {
            return Err(too_many_patterns(at));
        }
        search_regex(pattern, flags, at)
    }

    /// Compiles a regular expression, unless there are too many.
    pub(super) fn pattern(&mut self, pattern: &str, at: usize) -> Result<Regex, OqlError> {
        self.patterns += 1;
        if self.patterns > MAX_FIELDS {
            return Err(too_many_patterns(at));
        }
        // Rules resolve their queries again for each object.
        let patterns = || self.evaluator.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = patterns().get(pattern) {
            return Ok(known.clone());
        }
        let compiled = regex(pattern, at)?;
        let mut known = patterns();
        if known.len() < MAX_FIELDS {
            known.insert(pattern.into(), compiled.clone());
        }
        Ok(compiled)
    }
}

fn too_many_patterns(at: usize) -> OqlError {
    OqlError::new(at, format!("a SELECT can have at most {MAX_FIELDS} regular expressions"))
}
