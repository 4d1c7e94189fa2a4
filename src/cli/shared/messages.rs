//! Messages on stderr: errors, warnings, notes. One line describes the problem and its location, the next is advice.

use std::io::{self, Write};
use std::path::Path;

use hprof_index::model::problem::Severity;
use hprof_index::model::summary::Summary;
use hprof_index::{Heap, ObjectGraph};
use hprof_query::dump::doctor::{self, Extent, RetainedSizes, Subject};
use hprof_query::naming::pattern::ClassPattern;
use hprof_query::naming::suggestions;
use hprof_query::objects::selection::{Selection, SelectionKind, ThreadPattern};
use hprof_query::recordings::profile::StartedThread;
use hprof_query::threads::ThreadReport;
use hprof_report::ink::Ink;
use hprof_report::number::{format_count, group_digits, human_bytes};
use hprof_report::{escape, fit};
use hprof_values::ObjectId;

use super::context::RunContext;
use super::worker::is_worker;
use super::{advice, object, spool};

/// Maximum number of problems shown; `info` shows all of them.
const SHOWN: usize = 5;

/// Prints the error that ends the program.
pub(crate) fn error(cx: &RunContext, error: &anyhow::Error) {
    cx.emit("error", &format!("{error:#}"));
    if let Some(advice) = advice::for_error(error) {
        cx.emit("hint", &advice);
    }
}

/// Prints clap's output: help and version to stdout; errors about arguments to stderr, in the form of all errors.
pub(crate) fn usage(cx: &RunContext, error: &clap::Error) {
    let text = error.render();
    let plain = text.to_string();
    // A closed pipe is not an error. Without arguments, clap prints the help to stderr.
    if !plain.starts_with("error: ") {
        let _ = error.print();
        return;
    }
    let lines = if cx.stderr_style().color {
        Ink::Red.paint("hprof-cli: ") + &text.ansi().to_string()
    } else {
        format!("hprof-cli: {plain}")
    };
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Prints all errors except the last, and returns that one.
pub(crate) fn last_error(cx: &RunContext, mut errors: Vec<String>) -> anyhow::Error {
    let last = errors.pop().unwrap_or_default();
    errors.iter().for_each(|error| cx.emit("error", error));
    anyhow::Error::msg(last)
}

/// Prints notes about an opened dump.
pub(crate) fn print_notes(cx: &RunContext, heap: &Heap, quiet: bool) {
    if !quiet {
        heap.notes().iter().for_each(|note| cx.emit_about_dump(note));
        // The copy of a pipe is removed at the end: the user need not remove it.
        let copy = heap.kept_copy().filter(|_| spool::index_dir(heap.path()).is_none());
        if let Some((path, bytes)) = copy {
            let (path, size) = (path.display(), human_bytes(bytes));
            let how = if heap.is_text() { "made a dump of the text:" } else { "unpacked into" };
            cx.emit_about_dump(&format!("{how} {path} ({size}); `hprof-cli index --remove` removes it"));
        }
    }
    let problems = heap.summary().problems();
    let damage: Vec<_> = problems.iter().filter(|problem| problem.severity == Severity::Damage).collect();
    for problem in damage.iter().take(SHOWN) {
        cx.emit("warning", &format!("{}: {problem}", heap.path().display()));
    }
    if damage.is_empty() {
        return;
    }
    let more = damage.len().saturating_sub(SHOWN);
    if more > 0 {
        cx.emit("warning", &format!("{}: {more} more problems", heap.path().display()));
    }
    cx.emit("warning", &format!("{}: {}", heap.path().display(), account(heap)));
    cx.emit(
        "hint",
        "counts and sizes cover only what could be read; `hprof-cli doctor` shows what is missing and what to do",
    );
}

/// Describes in one line which parts of a damaged dump were read and which are missing.
pub(crate) fn account(heap: &Heap) -> String {
    let Extent { account, missing, retained } = Extent::from_heap(heap);
    let read = group_digits(account.read_bytes());
    let mut text = match account.expected_bytes {
        Some(bytes) if bytes > account.file_bytes => {
            format!("read {read} of at least {} bytes", group_digits(bytes))
        }
        Some(bytes) => format!("read {read} of {} bytes", group_digits(bytes)),
        None => format!("read {read} bytes; the length of the whole dump is unknown"),
    };
    let lost = [(account.lost_records, "at the top level"), (account.lost_places, "in the heap dump")];
    let lost = lost.iter().filter(|(count, _)| *count > 0);
    let mut found: Vec<String> =
        lost.map(|(count, part)| format!("{} {part}", format_count(*count, "damaged region"))).collect();
    if let Some(missing) = missing.filter(|missing| missing.references > 0) {
        let mut dangling = format_count(missing.references, "dangling reference");
        if missing.more {
            dangling += &format!(" to at least {}", format_count(missing.objects, "missing object"));
        } else if missing.objects != missing.references {
            dangling += &format!(" to {}", format_count(missing.objects, "missing object"));
        }
        found.push(dangling);
    }
    if !found.is_empty() {
        text += &format!("; {}", found.join(", "));
    }
    if retained == RetainedSizes::OfWhatIsThere {
        text += "; retained sizes are lower bounds";
    }
    text
}

/// Prints a note if contents of primitive arrays are missing, for commands whose answers depend on them.
pub(crate) fn about_contents(cx: &RunContext, heap: &Heap, quiet: bool) {
    let missing = doctor::describe_missing(heap.summary().missing_contents());
    if let Some(missing) = missing.filter(|_| !quiet) {
        cx.emit("note", &format!("{}: {missing}", heap.path().display()));
        cx.emit("hint", advice::finding(Subject::ContentsMissing));
    }
}

/// Prints a note if a file does not contain a heap dump.
pub(crate) fn about_no_heap(cx: &RunContext, heap: &Heap) {
    if heap.summary().facts().heap_dumps.get() == 0 {
        let path = heap.path().display();
        cx.emit("note", &format!("{path} contains no heap dump; `hprof-cli info` shows what it contains"));
    }
}

/// Prints a note that no object has this ID, with the nearest IDs.
pub(crate) fn about_no_object(cx: &RunContext, path: &Path, graph: &ObjectGraph, id: ObjectId) {
    cx.emit("note", &object::not_found(id, path, &suggestions::object_ids(graph, id)));
}

/// Prints a note that no class matches a selection, with suggestions.
pub(crate) fn about_no_class(cx: &RunContext, summary: &Summary, selection: &Selection) {
    cx.emit("note", &format!("no class with objects matches {}", selection.text));
    let class = summary.classes().iter().find(|class| match &selection.what {
        SelectionKind::Classes(pattern) => class.is_dumped() && pattern.matches(summary.class_name(class)),
        SelectionKind::Object(_) => false,
    });
    if let Some(class) = class {
        let (name, id) = (summary.class_name(class), class.id.get());
        cx.emit("hint", &format!("the class object of {name} is {id:#x}"));
        return;
    }
    if !is_worker() && Path::new(&selection.text).is_file() {
        return cx.emit("hint", &format!("{} is a file: the command takes one dump", selection.text));
    }
    suggest(cx, &suggestions::class_names(summary, &selection.text));
}

/// Prints a note for each pattern that matches no class name, with suggestions; for a pattern that is a file, the note contains
/// `arguments`, which describes what the command accepts. Returns the number of patterns without a match.
pub(crate) fn about_patterns<'a, N: Iterator<Item = &'a str>>(
    cx: &RunContext,
    patterns: &[ClassPattern],
    arguments: &str,
    names: impl Fn() -> N,
) -> usize {
    let unmatched = patterns.iter().filter(|pattern| !names().any(|name| pattern.matches(name)));
    let mut count = 0;
    for text in unmatched.map(ClassPattern::text) {
        count += 1;
        cx.emit("note", &format!("no class matches {text}"));
        if !is_worker() && Path::new(text).is_file() {
            cx.emit("hint", &format!("{text} is a file: {arguments}"));
        } else {
            suggest(cx, &suggestions::class_names_of(names(), text));
        }
    }
    count
}

/// Prints a note that no thread matches, with suggestions.
pub(crate) fn about_no_thread(
    cx: &RunContext,
    graph: &ObjectGraph,
    found: &ThreadReport,
    name: Option<&ThreadPattern>,
) {
    if found.threads == 0 {
        return cx.emit("note", "the dump contains no threads");
    }
    cx.emit("note", &format!("none of the {} threads match", group_digits(found.threads)));
    let suggested: Vec<String> = match name {
        Some(ThreadPattern::Object(id)) if graph.objects.addresses.index_of(*id).is_some() => {
            return cx.emit("hint", &format!("{id:#x} is not a Thread object; `hprof-cli show` shows it"));
        }
        Some(ThreadPattern::Object(id)) => {
            suggestions::object_ids(graph, *id).into_iter().map(|id| format!("{id:#x}")).collect()
        }
        _ => found.suggestions.clone(),
    };
    suggest(cx, &suggested);
}

/// Prints names of started threads as suggestions, if none has the requested name.
pub(crate) fn about_started(cx: &RunContext, quiet: bool, wanted: &ThreadPattern, started: &[StartedThread]) {
    let (ThreadPattern::Part(text) | ThreadPattern::Glob(text)) = wanted else { return };
    let names = || started.iter().map(|thread| &*thread.name);
    if !quiet && !names().any(|name| wanted.matches(ObjectId::NULL, Some(name))) {
        suggest(cx, &suggestions::names_like(text, names()));
    }
}

/// Prints "did you mean" with suggestions.
pub(crate) fn suggest(cx: &RunContext, names: &[impl AsRef<str>]) {
    if !names.is_empty() {
        cx.emit("hint", &suggestions::did_you_mean(names));
    }
}

impl RunContext {
    /// Writes a line to stderr, wrapped to the width of the terminal. Text from a dump or the file system is escaped.
    pub(crate) fn emit(&self, kind: &'static str, text: &str) {
        if !self.take_note(kind, text, false) {
            self.print(kind, text);
        }
    }

    /// Writes a note about the dump, which does not depend on the query.
    fn emit_about_dump(&self, text: &str) {
        if !self.take_note("note", text, true) {
            self.print("note", text);
        }
    }

    fn print(&self, kind: &'static str, text: &str) {
        let style = self.stderr_style();
        let text = format!("hprof-cli: {kind}: {}", escape::text(text));
        let lines = style.width.map_or_else(|| vec![text.clone()], |width| fit::wrap(&text, width.into(), 2));
        let ink = match kind {
            "error" => Ink::Red,
            "warning" => Ink::Yellow,
            _ => Ink::Plain,
        };
        let paint = |line: String| if style.color { ink.paint(&line) } else { line };
        let lines: String = lines.into_iter().map(|line| paint(line) + "\n").collect();
        // A closed stderr must not change the result. Written in one call, as other processes may write to stderr, too.
        let _ = io::stderr().write_all(lines.as_bytes());
    }
}
