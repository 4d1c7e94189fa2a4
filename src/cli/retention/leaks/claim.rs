//! Statements about what accumulates and how much: a headline uses the parts, a sentence all of it.

use hprof_query::leaks::Leaks;
use hprof_report::number::{human_bytes, percent};

/// A statement about what accumulates and how much.
pub(super) struct Claim {
    /// What accumulates and where, as in the headline.
    pub(super) what: String,
    /// Text between that and the amount.
    pub(super) joint: &'static str,
    /// Amount in bytes; 0 if it is not in the heap.
    pub(super) bytes: u64,
}

impl Claim {
    /// Returns the sentence without its full stop.
    pub(super) fn text(&self, leaks: &Leaks) -> String {
        if self.bytes == 0 {
            return self.what.clone();
        }
        format!("{}{}{}", self.what, self.joint, amount(leaks, self.bytes))
    }
}

/// Formats bytes and their share of the heap.
pub(super) fn amount(leaks: &Leaks, bytes: u64) -> String {
    format!("{}, {} of the reachable heap", human_bytes(bytes), percent(bytes, leaks.reachable_bytes))
}
