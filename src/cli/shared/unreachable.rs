//! What commands that cover reachable objects say of the others.

use crate::query::dump::unreachable::Unreachable;
use crate::report::number::{human_bytes, percent};

use super::args::Input;
use super::messages;
use super::session::Session;

/// Says how much of the dump an answer about reachable objects does not cover, if that is much, and what shows it.
pub(crate) fn note(session: &Session, input: &Input) {
    let found = Unreachable::of(session.heap.summary(), &session.graph);
    if input.quiet || !found.is_much() {
        return;
    }
    let (bytes, all) = (human_bytes(found.bytes), human_bytes(found.all_bytes));
    let share = percent(found.bytes, found.all_bytes);
    let path = session.heap.path().display();
    messages::line(
        "note",
        &format!(
            "this answer covers reachable objects; {bytes} of {all} ({share}) are unreachable: `hprof-cli histo {path} \
             --unreachable` shows them"
        ),
    );
}
