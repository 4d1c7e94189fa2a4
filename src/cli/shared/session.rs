//! A session with one file: open it, run a query, show the result, determine the outcome.
//!
//! Nothing is shown before it is known to be correct: an index is checked block by block as it is read, so a query may
//! detect late that a block is damaged. [`Session::ask`] then rebuilds the index and repeats the query. Rows after
//! the first [`KEPT`] are computed while they are written, and [`Session::show`] checks the index again at their end.

use std::io::Write;
use std::iter::Enumerate;
use std::sync::Arc;
use std::vec;

use hprof_index::{Dump, DumpGraph, Heap, ObjectGraph, Quiet};
use hprof_query::dump::unreachable::Unreachable;
use hprof_report::Format;
use hprof_report::answer::{Answer, ErasedAnswer};
use hprof_report::json::DumpHeader;
use hprof_report::markdown;
use hprof_report::table::Style;

use super::args::{Input, Output, OutputFormat};
use super::context::RunContext;
use super::{output, spool};
use crate::cli::Outcome;

/// Number of rows computed before anything is shown. The further rows are computed while they are written.
pub(crate) const KEPT: usize = 10_000;

/// A file that can be queried, as the source of a result.
pub(crate) trait AnswerSource {
    /// Returns the `dump` key of a JSON document.
    fn header(&self) -> DumpHeader<'_>;

    /// Returns whether part of the file is missing or cannot be read.
    fn is_damaged(&self) -> bool;

    /// Checks that the parts of the index that were read are not damaged.
    fn check(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Shows a result on stdout. Returns the number of rows.
    fn show<R>(
        &self,
        cx: &RunContext,
        command: &str,
        output: &Output,
        answer: Answer<'_, R>,
    ) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        self.show_in(cx, command, output, output.format(), answer)
    }

    /// Shows a result like [`AnswerSource::show`], but in one of the formats of [`RunContext::for_each_format`].
    fn show_in<R>(
        &self,
        cx: &RunContext,
        command: &str,
        output: &Output,
        format: Format,
        answer: Answer<'_, R>,
    ) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        self.show_as(cx, command, output.with_rows_in(format), output::style(cx, output), answer)
    }

    /// Shows a result on stdout as Markdown. Returns the number of rows.
    fn show_markdown<R>(&self, cx: &RunContext, answer: Answer<'_, R>) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        answer.with_erased(|answer| show_markdown(cx, self, answer))
    }

    /// Shows a result like [`AnswerSource::show`], for a command whose `--format` has values of its own.
    fn show_as<R>(
        &self,
        cx: &RunContext,
        command: &str,
        format: impl Into<OutputFormat>,
        style: Style,
        answer: Answer<'_, R>,
    ) -> anyhow::Result<u64>
    where
        Self: Sized,
    {
        let format = match format.into() {
            OutputFormat::Markdown => return self.show_markdown(cx, answer),
            OutputFormat::Rows(format) => format,
        };
        answer.with_erased(|answer| show_erased(cx, self, command, format, style, answer))
    }

    /// Returns the outcome of a run. `found` is `false` if there is no result.
    fn outcome(&self, found: bool) -> Outcome {
        match (self.is_damaged(), found) {
            (true, _) => Outcome::Damaged,
            (false, true) => Outcome::Fine,
            (false, false) => Outcome::No,
        }
    }
}

fn show_markdown(
    cx: &RunContext,
    source: &dyn AnswerSource,
    answer: ErasedAnswer<'_>,
) -> anyhow::Result<u64> {
    let (grid, rows) = answer.into_grid();
    let mut out = cx.writer();
    out.write_all(markdown::grid(&grid, usize::MAX).trim_start().as_bytes())?;
    output::finish_if(out, source.check())?;
    Ok(rows)
}

fn show_erased(
    cx: &RunContext,
    source: &dyn AnswerSource,
    command: &str,
    format: Format,
    style: Style,
    answer: ErasedAnswer<'_>,
) -> anyhow::Result<u64> {
    if let (Format::Table, Some(window)) = (format, cx.window()) {
        let (screen, rows) = answer.into_screen(window);
        source.check()?;
        cx.take_screen(screen);
        return Ok(rows);
    }
    if format == Format::Table && cx.is_taking() {
        let (grid, rows) = answer.into_grid();
        source.check()?;
        cx.take_grid(grid);
        return Ok(rows);
    }
    let mut out = cx.writer();
    let rows = match cx.formats(format) {
        [format] => answer.write(&mut out, *format, style, command, &source.header())?,
        _ => answer.write_both(&mut out, style, command, &source.header())?,
    };
    output::finish_if(out, source.check())?;
    Ok(rows)
}

impl AnswerSource for Heap {
    fn header(&self) -> DumpHeader<'_> {
        let summary = self.summary();
        DumpHeader {
            path: spool::original_path(self.path()).to_string_lossy(),
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

impl<S: AnswerSource> AnswerSource for Arc<S> {
    fn header(&self) -> DumpHeader<'_> {
        (**self).header()
    }

    fn is_damaged(&self) -> bool {
        (**self).is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        (**self).check()
    }
}

/// An open dump with its graph.
pub(crate) struct Session {
    /// The dump.
    pub(crate) heap: Arc<Heap>,
    /// Objects and references.
    pub(crate) graph: Arc<ObjectGraph>,
}

impl Session {
    /// Opens a dump with its graph and runs the query `ask`. If the index turns out to be damaged, it is rebuilt and `ask` is
    /// called again, so `ask` must not print anything.
    pub(crate) fn ask<T: Send>(
        cx: &RunContext,
        input: &Input,
        ask: impl Fn(&Dump<'_>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Self, T)> {
        Self::ask_graph(cx, input, |graph| ask(&graph.with_records(&Quiet)?))
    }

    /// Runs a query like [`Self::ask`], but without records: the unpacked copy of a compressed dump is not read.
    pub(crate) fn ask_graph<T: Send>(
        cx: &RunContext,
        input: &Input,
        ask: impl Fn(&DumpGraph<'_>) -> anyhow::Result<T> + Send + Sync,
    ) -> anyhow::Result<(Self, T)> {
        let (heap, graph, answer) = input.with_graph(cx, ask)?;
        Ok((Self { heap, graph }, answer))
    }

    /// Returns the dump without its records.
    pub(crate) fn dump_graph(&self) -> DumpGraph<'_> {
        DumpGraph::new(&self.heap, &self.graph)
    }

    /// Returns the dump, for computations while a result is shown.
    pub(crate) fn dump(&self) -> anyhow::Result<Dump<'_>> {
        Ok(Dump::new(&self.heap, &self.graph)?)
    }
}

impl AnswerSource for Session {
    fn header(&self) -> DumpHeader<'_> {
        let unreachable = Unreachable::new(self.heap.summary(), &self.graph);
        DumpHeader { unreachable_bytes: Some(unreachable.bytes), ..self.heap.header() }
    }

    fn is_damaged(&self) -> bool {
        self.heap.is_damaged()
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure_right(&self.graph)
    }
}

/// Returns an error if a part of the index that was read is damaged.
pub(crate) fn ensure_right(graph: &ObjectGraph) -> anyhow::Result<()> {
    anyhow::ensure!(
        !graph.is_damaged(),
        "the index is damaged, so this answer is wrong; `hprof-cli index` rebuilds it"
    );
    Ok(())
}

/// Returns an error if the dump is a text report or was made from one: it contains no `what`.
pub(crate) fn ensure_values(heap: &Heap, what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        !heap.summary().is_from_text(),
        "{} is a text report, or was made from one: it has references and sizes of objects, but no values, so {what}; make a \
         binary dump of the program",
        heap.path().display()
    );
    Ok(())
}

/// The rows of a long result: the first are computed while the query runs, the others while they are written.
pub(crate) struct LazyRows<T, R> {
    items: Vec<T>,
    first: Vec<R>,
}

impl<T, R> LazyRows<T, R> {
    /// Computes the first rows from items.
    pub(crate) fn new(items: Vec<T>, make: impl FnMut(&T) -> R) -> Self {
        let first = items.iter().take(KEPT).map(make).collect();
        Self { items, first }
    }

    /// Returns all rows; `make` must be the function passed to `new`. `finish` receives the index of each row, and returns
    /// `None` for rows that do not exist because the index is damaged. Skipped rows are not computed.
    pub(crate) fn into_all<'m, L>(
        self,
        make: impl FnMut(&T) -> R + 'm,
        finish: impl FnMut(usize, R) -> Option<L> + 'm,
    ) -> impl Iterator<Item = L> + 'm
    where
        T: 'm,
        R: 'm,
        L: 'm,
    {
        let Self { items, first } = self;
        AllRows { items: items.into_iter().enumerate(), first: first.into_iter(), make, finish }
    }
}

/// Iterator over [`LazyRows`].
struct AllRows<T, R, M, F> {
    items: Enumerate<vec::IntoIter<T>>,
    /// Rows of the next items that were already computed.
    first: vec::IntoIter<R>,
    make: M,
    finish: F,
}

impl<T, R, L, M: FnMut(&T) -> R, F: FnMut(usize, R) -> Option<L>> Iterator for AllRows<T, R, M, F> {
    type Item = L;

    fn next(&mut self) -> Option<L> {
        self.nth(0)
    }

    fn nth(&mut self, mut skipped: usize) -> Option<L> {
        loop {
            let made = self.first.nth(skipped);
            let (number, item) = self.items.nth(skipped)?;
            let row = made.unwrap_or_else(|| (self.make)(&item));
            if let Some(line) = (self.finish)(number, row) {
                return Some(line);
            }
            skipped = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.items.size_hint()
    }
}
