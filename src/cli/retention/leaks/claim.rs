//! What is said to accumulate, apart from how much: a headline has the one, a sentence both.

use hprof_query::leaks::Leaks;
use hprof_report::number::{human_bytes, percent};

/// What is said to accumulate, and how much that is.
pub(super) struct Claim {
    /// What and where, as the headline has it.
    pub(super) what: String,
    /// Between that and the amount.
    pub(super) joint: &'static str,
    /// The amount.
    pub(super) bytes: u64,
}

impl Claim {
    /// As a sentence, without its full stop.
    pub(super) fn text(&self, leaks: &Leaks) -> String {
        format!("{}{}{}", self.what, self.joint, amount(leaks, self.bytes))
    }
}

/// Bytes and their share of the heap.
pub(super) fn amount(leaks: &Leaks, bytes: u64) -> String {
    format!("{}, {} of the reachable heap", human_bytes(bytes), percent(bytes, leaks.reachable_bytes))
}
