//! `index`: builds, checks or removes the index of a dump.

mod estimate;

mod file;

use std::path::Path;

use crate::cli::prelude::*;
use crate::cli::shared::messages;
use crate::cli::shared::terminal::progress_bar::Bar;
use hprof_index::open::heap::{StageReport, StageState};
use hprof_index::{DumpGraph, Heap, Options, Progress};
use hprof_query::leaks::heap_places::store_places;

use self::file::File;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli index heap.hprof
  hprof-cli index heap.hprof --estimate
  hprof-cli index heap.hprof --memory 2GiB --index-dir /fast/disk
  hprof-cli index heap.hprof --verify && echo good
  hprof-cli index heap.hprof --remove";

/// Build, verify or remove a dump's index
///
/// Other commands build the parts of the index that they need. This command builds all of them at once, so that every
/// later command answers from the index. --estimate shows the cost in advance.
#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    input: Input,

    /// Estimate the time, memory and disk space that building needs; exit code 1 if the index does not fit
    #[arg(long, conflicts_with_all = ["remove", "verify"], help_heading = "Index")]
    estimate: bool,

    /// Verify the checksums of the whole index; exit code 1 if parts are missing or damaged
    #[arg(long, conflicts_with = "remove", help_heading = "Index")]
    verify: bool,

    /// Remove the index, even if the dump no longer exists
    #[arg(long, help_heading = "Index")]
    remove: bool,

    #[command(flatten)]
    output: Output,
}

/// A stage of the index, or of the index that was removed, as a row of the result.
struct StageRow {
    stage: &'static str,
    state: &'static str,
    index_bytes: u64,
    file: String,
}

pub(crate) fn run(cx: &RunContext, args: &IndexArgs) -> anyhow::Result<Outcome> {
    let options = args.input.options(cx);
    if args.remove {
        return remove(cx, args, &options);
    }
    if args.estimate {
        return estimate::run(cx, &args.input, &args.output, &options);
    }
    if args.verify {
        warn_refused(cx, args, &options);
    }
    let verify = |thorough| Heap::verify_index(args.input.path(), &options, thorough);
    let mut damaged = false;
    // A stage that was just written is not read again.
    let mut thorough = true;
    if !args.verify {
        estimate::note(cx, &args.input, &options);
        let bar = Bar::new(cx, args.input.quiet);
        let heap = args.input.with_threads(|| build(args.input.path(), &options, &bar))??;
        drop(bar);
        messages::print_notes(cx, &heap, args.input.quiet);
        damaged = heap.summary().is_damaged();
        thorough = !heap.is_fresh();
    }
    let mut reports = args.input.with_threads(|| verify(thorough))??;
    if !args.verify && reports.iter().any(|report| report.state != StageState::Good) {
        // Opening did not detect the damage, so everything is rebuilt. A failed removal is reported below.
        let _ = Heap::remove_index(args.input.path(), &options);
        let bar = Bar::new(cx, args.input.quiet);
        args.input.with_threads(|| build(args.input.path(), &options, &bar).map(drop))??;
        drop(bar);
        reports = verify(false)?;
    }
    let good = reports.iter().all(|report| report.state == StageState::Good);
    show(cx, args, reports.iter().map(StageRow::new))?;
    Ok(match (good, damaged) {
        (false, _) => Outcome::No,
        (true, true) => Outcome::Damaged,
        (true, false) => Outcome::Fine,
    })
}

/// Builds the missing parts of an index, and finds the places of large objects, which the index stores.
fn build(path: &Path, options: &Options, bar: &Bar) -> anyhow::Result<Heap> {
    let (heap, graph) = Heap::build_index(path, options, bar)?;
    bar.begin("finding places", 0);
    store_places(&DumpGraph::new(&heap, &graph).with_records(bar)?)?;
    bar.end();
    Ok(heap)
}

/// Warns about existing index directories that cannot be used.
fn warn_refused(cx: &RunContext, args: &IndexArgs, options: &Options) {
    if !args.input.quiet {
        let lines = Heap::refused_directories(args.input.path(), options);
        lines.iter().for_each(|text| cx.emit("note", text));
    }
}

fn remove(cx: &RunContext, args: &IndexArgs, options: &Options) -> anyhow::Result<Outcome> {
    warn_refused(cx, args, options);
    let removed = Heap::remove_index(args.input.path(), options)?;
    if removed.is_empty() && !args.input.quiet {
        cx.emit("note", &format!("{} has no index", args.input.path().display()));
    }
    let rows = removed.iter().map(|(dir, freed)| StageRow {
        stage: "all",
        state: "removed",
        index_bytes: *freed,
        file: dir.to_string_lossy().into_owned(),
    });
    show(cx, args, rows)?;
    Ok(if removed.is_empty() { Outcome::No } else { Outcome::Fine })
}

impl StageRow {
    fn new(report: &StageReport) -> Self {
        Self {
            stage: report.stage.name(),
            state: match report.state {
                StageState::Good => "good",
                StageState::Missing => "missing",
                StageState::Stale => "stale",
                StageState::Foreign => "foreign",
                StageState::Damaged => "damaged",
            },
            index_bytes: report.bytes,
            file: report.file.to_string_lossy().into_owned(),
        }
    }
}

fn show(cx: &RunContext, args: &IndexArgs, rows: impl Iterator<Item = StageRow>) -> anyhow::Result<()> {
    File(args.input.path()).show(cx, "index", &args.output, Answer::new(columns(), rows)).map(drop)
}

fn columns() -> Columns<'static, StageRow> {
    Columns::new([
        Column::new(names::STAGE, |row: &StageRow| row.stage.into()).header("stage"),
        Column::new(names::STATE, |row: &StageRow| row.state.into()).header("state"),
        Column::new(names::INDEX_BYTES, |row: &StageRow| row.index_bytes.into()).header("bytes"),
        Column::new(names::FILE, |row: &StageRow| Value::from(&row.file)).header("file").fit(Fit::Wrap),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let stages = ResultSchema {
        command: "index",
        variant: "",
        about: "`index DUMP` builds what is missing, then checks the index (all bytes, except those written in this \
                run); `--verify` only checks. A row is a stage ([index-format.md](index-format.md)). With `--remove`, \
                a row is a directory from which files were removed.",
        rows: columns().fields(),
        summary: Vec::new(),
    };
    vec![stages, estimate::row_schema()]
}
