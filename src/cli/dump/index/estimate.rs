//! `index --estimate`: the resources that building an index needs, and whether they are available.

use std::io::IsTerminal;

use crate::cli::prelude::*;
use crate::cli::shared::advice;
use crate::cli::shared::terminal::progress_bar::Bar;
use hprof_index::open::estimate::Estimate;
use hprof_index::{Heap, Options};
use hprof_query::dictionary::Name;
use hprof_report::table::{Align, TableBuilder};

use super::file::File;

/// Estimated duration above which a build is announced.
const LONG_MS: u64 = 10_000;

fn ask(cx: &RunContext, input: &Input, options: &Options) -> anyhow::Result<Estimate> {
    let bar = Bar::new(cx, input.quiet);
    Ok(input.with_threads(|| Heap::estimate(input.path(), options, &bar))??)
}

/// Shows the estimate.
pub(crate) fn run(
    cx: &RunContext,
    input: &Input,
    shown: &Output,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let estimate = ask(cx, input, options)?;
    let answer = Answer::new(columns(), [&estimate]).instead_of_table(table(&estimate));
    File(input.path()).show(cx, "index", shown, answer)?;
    if estimate.is_built && !input.quiet {
        cx.emit("note", "the index is complete: there is nothing to build");
    }
    Ok(if estimate.fits() { Outcome::Fine } else { Outcome::No })
}

/// Returns a table of what is needed and what is available.
fn table(estimate: &Estimate) -> TableBuilder {
    let mut table = TableBuilder::new(&[
        ("", Align::Left),
        ("at least", Align::Right),
        ("up to", Align::Right),
        ("available", Align::Right),
        ("", Align::Left),
    ])
    .wrapping();
    let unknown = || "?".to_owned();
    let mut row = |what: &str, (least, most): (String, String), there: String, note: &str| {
        table.row([what, &least, &most, &there, note]);
    };
    let bytes = |(least, most): (u64, u64)| (group_digits(least), group_digits(most));
    let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    let about = if estimate.objects_exact { "" } else { "about " };
    let found = format!("{about}{} objects, {} threads", group_digits(estimate.objects), estimate.threads);
    let (least, most) = estimate.time_ms;
    row("time", (seconds(least), seconds(most)), String::new(), &found);
    let available = estimate.memory_available.as_ref();
    let limit = available.map(|there| advice::limit(there.limit)).unwrap_or_default();
    let there = available.map_or_else(unknown, |there| group_digits(there.bytes));
    row("memory, bytes", bytes(estimate.memory_bytes), there, limit);
    let free = estimate.disk_free_bytes.map_or_else(unknown, group_digits);
    row("index, bytes", bytes(estimate.index_bytes), free, &estimate.dir.to_string_lossy());
    row(
        "scratch files, bytes",
        bytes(estimate.scratch_bytes),
        String::new(),
        "in the same directory, during the build",
    );
    table
}

fn columns<'a>() -> Columns<'a, &'a Estimate> {
    /// The only row of the result.
    type EstimateRow<'a> = &'a Estimate;
    let integer = |name: Name, value: fn(&Estimate) -> u64| {
        Column::new(name, move |of: &EstimateRow<'a>| value(of).into())
    };
    let flag = |name: Name, value: fn(&Estimate) -> bool| {
        Column::new(name, move |of: &EstimateRow<'a>| value(of).into())
    };
    let nobody_knows = "not known";
    Columns::new([
        flag(names::IS_FITTING, Estimate::fits),
        flag(names::IS_BUILT, |of| of.is_built),
        integer(names::OBJECTS, |of| of.objects),
        flag(names::IS_COUNTED, |of| of.objects_exact),
        integer(names::DUMP_BYTES, |of| of.dump_bytes),
        integer(names::THREADS, |of| of.threads as u64),
        integer(names::TIME_LEAST_MS, |of| of.time_ms.0),
        integer(names::TIME_MOST_MS, |of| of.time_ms.1),
        integer(names::MEMORY_LEAST_BYTES, |of| of.memory_bytes.0),
        integer(names::MEMORY_BEST_BYTES, |of| of.memory_bytes.1),
        Column::new(names::MEMORY_AVAILABLE_BYTES, |of: &EstimateRow<'a>| {
            of.memory_available.as_ref().map(|there| there.bytes).into()
        })
        .or_null("unlimited, or unknown"),
        Column::new(names::MEMORY_LIMIT, |of: &EstimateRow<'a>| {
            of.memory_available.as_ref().map(|there| advice::limit(there.limit)).into()
        })
        .or_null("as above"),
        integer(names::INDEX_LEAST_BYTES, |of| of.index_bytes.0),
        integer(names::INDEX_MOST_BYTES, |of| of.index_bytes.1),
        integer(names::SCRATCH_LEAST_BYTES, |of| of.scratch_bytes.0),
        integer(names::SCRATCH_MOST_BYTES, |of| of.scratch_bytes.1),
        Column::new(names::DISK_FREE_BYTES, |of: &EstimateRow<'a>| of.disk_free_bytes.into())
            .or_null(nobody_knows),
        Column::new(names::INDEX_DIR, |of: &EstimateRow<'a>| of.dir.to_string_lossy().into()),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "index",
        variant: "`--estimate`",
        about: "Builds nothing. The only row contains what building would take; exit code 1 if the index certainly does not fit.",
        rows: columns().fields(),
        summary: Vec::new(),
    }
}

/// Prints a note before a long build, if stderr is a terminal. Problems are reported by the build itself.
pub(crate) fn note(cx: &RunContext, input: &Input, options: &Options) {
    if input.quiet || !std::io::stderr().is_terminal() {
        return;
    }
    let Ok(estimate) = ask(cx, input, options) else { return };
    let (least, most) = estimate.time_ms;
    if estimate.is_built || most < LONG_MS {
        return;
    }
    let disk = estimate.index_bytes.1.saturating_add(estimate.scratch_bytes.1);
    let text = format!(
        "building the index of about {} objects takes {} to {} s, up to {} of memory and {} on disk",
        group_digits(estimate.objects),
        least / 1000,
        most / 1000,
        human_bytes(
            estimate.memory_available.map_or(u64::MAX, |there| there.bytes).min(estimate.memory_bytes.1)
        ),
        human_bytes(disk)
    );
    cx.emit("note", &text);
}
