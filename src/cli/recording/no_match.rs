//! Notes if nothing in a recording matches: the patterns without a match, with suggestions.

use crate::cli::shared::context::RunContext;
use crate::cli::shared::messages;
use crate::cli::shared::recording::RecordedInput;
use hprof_query::naming::pattern::{ClassPattern, MethodPattern};
use hprof_query::naming::suggestions;
use hprof_query::recordings::profile::{Frame, Traces};
use hprof_query::recordings::stack_filter::StackFilter;

/// Prints a note that nothing matches, with suggestions; `what` is the noun for a row.
pub(super) fn note(
    cx: &RunContext,
    input: &RecordedInput,
    what: &str,
    filter: &StackFilter,
    traces: &Traces,
) {
    input.note(cx, &format!("no {what} matches"));
    patterns(cx, input, filter, traces);
}

/// Prints a note for each pattern that does not match any frame.
pub(super) fn patterns(cx: &RunContext, input: &RecordedInput, filter: &StackFilter, traces: &Traces) {
    classes(cx, input, &filter.classes, || classes_of(traces));
    methods(cx, input, &filter.methods, traces);
}

/// Prints a note for each pattern that does not match any of the names.
pub(super) fn classes<'a, N: Iterator<Item = &'a str>>(
    cx: &RunContext,
    input: &RecordedInput,
    patterns: &[ClassPattern],
    names: impl Fn() -> N,
) {
    if !input.input.quiet {
        messages::about_patterns(cx, patterns, "the command takes one recording, then patterns", names);
    }
}

/// Prints a note for each pattern that does not match the method of any frame.
fn methods(cx: &RunContext, input: &RecordedInput, patterns: &[MethodPattern], traces: &Traces) {
    if input.input.quiet || patterns.is_empty() {
        return;
    }
    let names: Vec<String> = traces.all_frames().map(Frame::qualified_method).collect();
    for pattern in patterns {
        if !names.iter().any(|name| pattern.matches(name)) {
            cx.emit("note", &format!("no method matches {}", pattern.text()));
            let names = names.iter().map(String::as_str);
            messages::suggest(cx, &suggestions::class_names_of(names, pattern.text()));
        }
    }
}

/// Returns the classes of all frames.
fn classes_of(traces: &Traces) -> impl Iterator<Item = &str> {
    traces.all_frames().filter_map(|frame| frame.class.as_deref())
}
