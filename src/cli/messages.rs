//! What goes to stderr: errors, warnings, notes. One line what and where, one line what to do next.

use std::io::{self, Write};

use crate::index::problem::Severity;
use crate::index::{Error, Heap};
use crate::report::escape;

/// Problems that are shown; `info` lists all.
const SHOWN: usize = 5;

/// Says why the program ends.
pub(crate) fn error(error: &anyhow::Error) {
    line("error", &format!("{error:#}"));
    if let Some(advice) = error.downcast_ref::<Error>().and_then(Error::advice) {
        line("hint", advice);
    }
}

/// Says what there is to say of an opened dump, apart from the answer.
pub(crate) fn about(heap: &Heap, quiet: bool) {
    if !quiet {
        heap.notes().iter().for_each(|note| line("note", note));
    }
    let problems = heap.summary().problems();
    let damage: Vec<_> = problems.iter().filter(|problem| problem.severity == Severity::Damage).collect();
    for problem in damage.iter().take(SHOWN) {
        line("warning", &format!("{}: {problem}", heap.path().display()));
    }
    if damage.is_empty() {
        return;
    }
    let more = damage.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!("{more} more such places; ") } else { String::new() };
    line("hint", &format!("{rest}figures are of what could be read; `hprof-cli info` lists all problems"));
}

/// Says that a dump holds no heap dump, if so.
pub(crate) fn about_no_heap(heap: &Heap) {
    if heap.summary().facts().heap_dumps.get() == 0 {
        let path = heap.path().display();
        line("note", &format!("{path} holds no heap dump; `hprof-cli info` says what it holds"));
    }
}

/// Writes a line to stderr. What it quotes from a dump or from the file system is escaped.
pub(crate) fn line(kind: &str, text: &str) {
    // A closed stderr must not change the answer.
    let _ = writeln!(io::stderr().lock(), "hprof-cli: {kind}: {}", escape::text(text));
}
