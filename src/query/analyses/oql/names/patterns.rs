//! Regular expressions: of LIKE, of `matches`, and as JavaScript has them.

use std::sync::PoisonError;

use regex::Regex;

use super::regex_text::{regex, search_regex};
use super::resolve::{MAX_FIELDS, Resolver};
use crate::oql::error::OqlError;

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
