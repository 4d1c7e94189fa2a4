//! Shortest path from a root to an object as one line of text.

use std::fmt::Write;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::objects::strength::Exclusions;
use hprof_model::paths::shortest;
use hprof_model::paths::steps::{ObjectStep, View};

/// Number of steps shown at each end of a path; those between are counted.
const SHOWN: usize = 100;

/// Returns an object's shortest path from a root, such as `sticky class: com.acme.Cache.MAP -> java.util.HashMap.table ->
/// java.util.HashMap$Node[][3] -> ...`; `None` for an unreachable object. References that keep nothing alive are followed only
/// if no other path exists.
pub(super) fn format_path(view: &View<'_>, object: ObjectIndex) -> Option<String> {
    let excluded = Exclusions::all_but_strong();
    let found = shortest::paths(&view.edges, object, 1, excluded);
    let path = found.paths.first()?;
    let root = view.start(*path.first()?, excluded);
    let kinds: Vec<&str> = root.kinds.iter().map(|kind| kind.name()).collect();
    let mut text = if kinds.is_empty() { "root".to_owned() } else { kinds.join(", ") };
    if let Some(name) = root.thread.and_then(|thread| thread.name) {
        let _ = write!(text, " of thread \"{name}\"");
    }
    text.push_str(": ");
    let last = path.len().saturating_sub(SHOWN);
    let mut holder = None;
    for (place, step) in path.iter().enumerate() {
        if place == SHOWN && place < last {
            let _ = write!(text, " -> ... {} objects ...", last - SHOWN);
        }
        if place < SHOWN || place >= last {
            append(&mut text, view, *step, &view.step(*step, holder));
        }
        holder = Some(*step);
    }
    Some(text)
}

/// Appends an object to the text, preceded by the reference from the previous object.
fn append(text: &mut String, view: &View<'_>, object: ObjectIndex, step: &ObjectStep) {
    if let Some(reference) = &step.reference {
        if !reference.starts_with('[') {
            text.push('.');
        }
        text.push_str(reference);
    }
    if !text.ends_with(": ") {
        text.push_str(" -> ");
    }
    // Static fields belong to the class, not to java.lang.Class.
    let of_class_object = view.edges.class_of_class_object(object);
    let name = of_class_object.and_then(|class| view.edges.dump.summary.class(class));
    match name {
        Some(class) => text.push_str(view.edges.dump.summary.class_name(class)),
        None => text.push_str(step.class.as_deref().unwrap_or("(unknown class)")),
    }
}
