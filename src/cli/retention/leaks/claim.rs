//! Statements about what accumulates and how much: a headline uses the parts of a statement, a sentence all of it.

use hprof_query::leaks::Leaks;
use hprof_report::number::{human_bytes, percent};

/// A statement about what accumulates and how much.
pub(super) struct Claim {
    /// Description of what accumulates and where, as in the headline.
    pub(super) what: String,
    /// Text between `what` and the amount.
    pub(super) joint: &'static str,
    /// Amount in bytes; `None` if the memory is not in the heap.
    pub(super) bytes: Option<u64>,
}

impl Claim {
    /// Returns the sentence without its full stop.
    pub(super) fn text(&self, leaks: &Leaks) -> String {
        match self.bytes {
            Some(bytes) => format!("{}{}{}", self.what, self.joint, amount(leaks, bytes)),
            None => self.what.clone(),
        }
    }
}

/// Formats bytes and their share of the heap.
pub(super) fn amount(leaks: &Leaks, bytes: u64) -> String {
    format!("{}, {} of the reachable heap", human_bytes(bytes), percent(bytes, leaks.reachable_bytes))
}
