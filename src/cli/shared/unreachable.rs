//! Notes about unreachable objects, for commands that cover only reachable ones.

use crate::cli::shared::context::RunContext;
use hprof_query::dump::unreachable::{Filler, Unreachable};
use hprof_report::number::{group_digits, human_bytes, percent};

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
    let filler = filler(session).map(|Filler(filler)| {
        let (objects, bytes) = (group_digits(filler.objects), human_bytes(filler.shallow_bytes));
        format!(" (of which {bytes} in {objects} int[] are garbage or filler)")
    });
    let filler = filler.unwrap_or_default();
    let path = quoted_path(spool::original_path(session.heap.path()));
    cx.emit(
        "note",
        &format!(
            "{bytes} of {all} ({share}) are unreachable{filler}, and {so}: `hprof-cli histo {path} --unreachable` shows them"
        ),
    );
}

/// Prints a note if some of the unreachable objects that a result lists may be filler of the JVM.
pub(crate) fn note_filler(cx: &RunContext, session: &Session, quiet: bool) {
    if let Some(Filler(filler)) = filler(session).filter(|_| !quiet) {
        let (objects, bytes) = (group_digits(filler.objects), human_bytes(filler.shallow_bytes));
        cx.emit(
            "note",
            &format!(
                "{objects} unreachable int[] ({bytes}) are garbage or filler: JDK 20 and later dump filler of unused memory \
                 as int[]"
            ),
        );
    }
}

/// Returns the unreachable objects that are garbage or filler; `None` if there are none.
fn filler(session: &Session) -> Option<Filler> {
    Some(Filler::new(session.heap.summary(), &session.graph)).filter(|filler| filler.0.objects > 0)
}
