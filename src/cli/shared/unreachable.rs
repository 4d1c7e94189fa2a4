//! Notes about unreachable objects, for commands that cover only reachable ones.

use crate::cli::shared::context::RunContext;
use hprof_query::dump::unreachable::Unreachable;
use hprof_report::number::{human_bytes, percent};

use super::args::Input;
use super::commands::quoted_path;
use super::session::Session;
use super::spool;

/// The part of a result that covers only reachable objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReachableScope {
    /// All rows cover only reachable objects.
    Reachable,
    /// Retained sizes cover only reachable objects; other columns cover all.
    RetainedSizes,
}

/// Prints a note about the size of unreachable objects that a result omits, if it is large, and the command that shows
/// them.
pub(crate) fn note(cx: &RunContext, session: &Session, input: &Input, covers: ReachableScope) {
    let found = Unreachable::new(session.heap.summary(), &session.graph);
    if input.quiet || !found.is_much() {
        return;
    }
    let (bytes, all) = (human_bytes(found.bytes), human_bytes(found.all_bytes));
    let share = percent(found.bytes, found.all_bytes);
    let so = match covers {
        ReachableScope::Reachable => "not included in this answer",
        ReachableScope::RetainedSizes => "not part of any retained size",
    };
    let path = quoted_path(spool::original_path(session.heap.path()));
    cx.emit(
        "note",
        &format!(
            "{bytes} of {all} ({share}) are unreachable, and {so}: `hprof-cli histo {path} --unreachable` shows them"
        ),
    );
}
