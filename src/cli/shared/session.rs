//! A session over one file: opening it, asking, showing the answer, and how the run ends.
//!
//! Nothing is shown before it is known to be right: an index is checked block by block as it is read, so a question may
//! find out late that a block is damaged. [`Session::ask`] then builds the index again and asks once more. Rows behind the
//! first [`KEPT`] are made while they are written, and [`Session::show`] checks once more at their end.

use std::io::Write;
use std::sync::Arc;

use hprof_index::{Heap, ObjectGraph};
use hprof_query::dump::unreachable::Unreachable;
use hprof_report::Format;
use hprof_report::answer::{Answer, ErasedAnswer};
use hprof_report::json::Dump;
use hprof_report::markdown;
use hprof_report::table::Style;

use super::args::{Input, Output};
use super::context::RunContext;
use super::{output, spool};
use crate::cli::Outcome;

/// Rows that are made before anything is shown. Longer answers are made while they are written.
pub(crate) const KEPT: usize = 10_000;

/// A file that answers come from.
pub(crate) trait Source {
    /// What a JSON document says of it.
    fn dump(&self) -> Dump<'_>;

    /// Whether part of it is missing or cannot be read.
    fn is_damaged(&self) -> bool;

    /// Ends with an error if what was read of the index meanwhile was damaged.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Shows an answer on stdout. Returns how many rows there were.
    fn show<R, const MARKDOWN: bool>(
        &self,
        cx: &RunContext,
        command: &str,
        output: &Output<MARKDOWN>,
        answer: Answer<'_, R>,
    ) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        if output.is_markdown() {
            return answer.with_erased(|answer| show_markdown(cx, self, answer));
        }
        self.show_as(cx, command, output.format(), output::style(cx, output), answer)
    }

    /// As [`Source::show`], for a command whose `--format` has others beside those of [`Format`].
    fn show_as<R>(
        &self,
        cx: &RunContext,
        command: &str,
        format: Format,
        style: Style,
        answer: Answer<'_, R>,
    ) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        answer.with_erased(|answer| show_erased(cx, self, command, format, style, answer))
    }

    /// How a run ends that found something, or nothing.
    fn outcome(&self, found: bool) -> Outcome {
        match (self.is_damaged(), found) {
            (true, _) => Outcome::Damaged,
            (false, true) => Outcome::Fine,
            (false, false) => Outcome::No,
        }
    }
}

fn show_markdown(cx: &RunContext, source: &dyn Source, answer: ErasedAnswer<'_>) -> anyhow::Result<u64> {
    let (grid, rows) = answer.into_grid();
    let mut out = cx.out();
    out.write_all(markdown::grid(&grid, usize::MAX).trim_start().as_bytes())?;
    output::finish_if(out, source.check())?;
    Ok(rows)
}

fn show_erased(
    cx: &RunContext,
    source: &dyn Source,
    command: &str,
    format: Format,
    style: Style,
    answer: ErasedAnswer<'_>,
) -> anyhow::Result<u64> {
    if format == Format::Table && cx.is_taking() {
        let (grid, rows) = answer.into_grid();
        source.check()?;
        cx.take_grid(grid);
        return Ok(rows);
    }
    let mut out = cx.out();
    let rows = answer.write(&mut out, format, style, command, &source.dump())?;
    output::finish_if(out, source.check())?;
    Ok(rows)
}

impl Source for Heap {
    fn dump(&self) -> Dump<'_> {
        let summary = self.summary();
        Dump {
            path: spool::given(self.path()).to_string_lossy(),
            file_bytes: Some(self.file_bytes()),
            format: Some(summary.version().name()),
            id_bytes: Some(summary.facts().id_bytes),
            created: output::timestamp(summary.facts().created_ms.get()).map(Into::into),
            heap_dump: Some(summary.facts().heap_dump.get()),
            is_damaged: Some(summary.is_damaged()),
            unreachable_bytes: None,
        }
    }

    fn is_damaged(&self) -> bool {
        self.summary().is_damaged()
    }
}

impl<S: Source> Source for Arc<S> {
    fn dump(&self) -> Dump<'_> {
        (**self).dump()
    }

    fn is_damaged(&self) -> bool {
        (**self).is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        (**self).check()
    }
}

/// A dump with its graph.
pub(crate) struct Session {
    /// The dump.
    pub(crate) heap: Arc<Heap>,
    /// Its objects and their references.
    pub(crate) graph: Arc<ObjectGraph>,
}

impl Session {
    /// Opens a dump with its graph and asks it. An index that turns out to be damaged while it is read is built again, and
    /// asked again: `ask` must not have shown anything yet.
    pub(crate) fn ask<T: Send>(
        cx: &RunContext,
        input: &Input,
        ask: impl Fn(&Heap, &ObjectGraph) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Self, T)> {
        let (heap, graph, answer) = input.with_graph(cx, ask)?;
        Ok((Self { heap, graph }, answer))
    }
}

impl Source for Session {
    fn dump(&self) -> Dump<'_> {
        let unreachable = Unreachable::of(self.heap.summary(), &self.graph);
        Dump { unreachable_bytes: Some(unreachable.bytes), ..self.heap.dump() }
    }

    fn is_damaged(&self) -> bool {
        self.heap.is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure_right(&self.graph)
    }
}

/// Ends with an error if what was read of the index meanwhile was damaged.
pub(crate) fn ensure_right(graph: &ObjectGraph) -> anyhow::Result<()> {
    anyhow::ensure!(
        !graph.is_damaged(),
        "the index is damaged, so this answer is wrong; `hprof-cli index` rebuilds it"
    );
    Ok(())
}

/// The rows of a long answer: the first were made while the question was asked, the others are made while they are written.
pub(crate) struct Rows<T, R> {
    items: Vec<T>,
    first: Vec<R>,
}

impl<T, R> Rows<T, R> {
    /// Makes the first rows.
    pub(crate) fn new(items: Vec<T>, make: impl FnMut(&T) -> R) -> Self {
        let first = items.iter().take(KEPT).map(make).collect();
        Self { items, first }
    }

    /// All rows; `make` is as before.
    pub(crate) fn into_all<'m>(self, mut make: impl FnMut(&T) -> R + 'm) -> impl Iterator<Item = R> + 'm
    where
        T: 'm,
        R: 'm,
    {
        let Self { items, first } = self;
        let made = first.len();
        first.into_iter().chain(items.into_iter().skip(made).map(move |item| make(&item)))
    }
}
