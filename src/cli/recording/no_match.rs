//! Notes for recordings without a match: the patterns that match nothing, with suggestions.

use crate::cli::shared::context::RunContext;
use crate::cli::shared::messages;
use crate::cli::shared::recording::RecordedInput;
use hprof_query::naming::pattern::{ClassPattern, MethodPattern};
use hprof_query::naming::suggestions;
use hprof_query::recordings::profile::{Frame, Traces};
use hprof_query::recordings::stack_filter::StackFilter;

/// Notes that no row (named `what`) matches, with suggestions of similar frames.
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

/// Notes patterns that match nothing in any frame.
pub(super) fn patterns(cx: &RunContext, input: &RecordedInput, filter: &StackFilter, traces: &Traces) {
    classes(cx, input, &filter.classes, || classes_of(traces));
    methods(cx, input, &filter.methods, traces);
}

/// Notes patterns that match none of the names.
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

/// Notes patterns that match no frame's method.
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
