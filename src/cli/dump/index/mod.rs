//! `index`: builds, checks or removes the index of a dump.

mod estimate;

use serde::Serialize;

use crate::index::open::heap::{StageReport, State};
use crate::index::{Heap, Options};
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, escape, json};

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::messages;
use crate::cli::shared::output;
use crate::cli::shared::progress_bar::Bar;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli index heap.hprof
  hprof-cli index heap.hprof --index-dir /fast/disk
  hprof-cli index heap.hprof --estimate
  hprof-cli index heap.hprof --memory 2GB
  hprof-cli index heap.hprof --verify && echo good
  hprof-cli index heap.hprof --remove";

/// Build all of a dump's index, check it, or remove it
///
/// Commands build what they need by themselves; this builds everything at once, so that each later command answers from
/// the index.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Say what building takes of time, memory and disk, and build nothing; exit code 1 if it does not fit
    #[arg(long, conflicts_with_all = ["remove", "verify"], help_heading = "Index")]
    estimate: bool,

    /// Read all of the index and compare its checksums; exit code 1 if something is missing or wrong
    #[arg(long, conflicts_with = "remove", help_heading = "Index")]
    verify: bool,

    /// Remove the index; the dump may be gone already
    #[arg(long, help_heading = "Index")]
    remove: bool,

    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct StageOut {
    stage: &'static str,
    state: &'static str,
    index_bytes: u64,
    file: String,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let options = args.input.options();
    if args.remove {
        return remove(args, &options);
    }
    if args.estimate {
        return estimate::run(&args.input, &args.output, &options);
    }
    let verify = |thorough| Heap::verify_index(args.input.path(), &options, thorough);
    let mut damaged = false;
    // What was written just now need not be read again.
    let mut thorough = true;
    if !args.verify {
        estimate::note(&args.input, &options);
        let bar = Bar::new(args.input.quiet);
        let heap = args.input.with_threads(|| Heap::build_index(args.input.path(), &options, &bar))??;
        drop(bar);
        messages::about(&heap, args.input.quiet);
        damaged = heap.summary().is_damaged();
        thorough = !heap.is_fresh();
    }
    let mut reports = args.input.with_threads(|| verify(thorough))??;
    if !args.verify && reports.iter().any(|report| report.state != State::Good) {
        // Something is wrong that opening does not look at: all is built anew.
        // What cannot be removed is reported below.
        let _ = Heap::remove_index(args.input.path(), &options);
        let bar = Bar::new(args.input.quiet);
        args.input.with_threads(|| Heap::build_index(args.input.path(), &options, &bar).map(drop))??;
        drop(bar);
        reports = verify(false)?;
    }
    let good = reports.iter().all(|report| report.state == State::Good);
    let rows: Vec<StageOut> = reports.iter().map(StageOut::new).collect();
    show(args, &rows)?;
    Ok(match (good, damaged) {
        (false, _) => Outcome::No,
        (true, true) => Outcome::Damaged,
        (true, false) => Outcome::Fine,
    })
}

fn remove(args: &Args, options: &Options) -> anyhow::Result<Outcome> {
    let removed = Heap::remove_index(args.input.path(), options)?;
    let rows: Vec<StageOut> = (removed.iter())
        .map(|(dir, freed)| StageOut {
            stage: "all",
            state: "removed",
            index_bytes: *freed,
            file: dir.to_string_lossy().into_owned(),
        })
        .collect();
    if rows.is_empty() && !args.input.quiet {
        messages::line("note", &format!("{} has no index", args.input.path().display()));
    }
    show(args, &rows)?;
    Ok(if rows.is_empty() { Outcome::No } else { Outcome::Fine })
}

impl StageOut {
    fn new(report: &StageReport) -> Self {
        Self {
            stage: report.stage.name(),
            state: match report.state {
                State::Good => "good",
                State::Missing => "missing",
                State::Stale => "stale",
                State::Foreign => "foreign",
                State::Damaged => "damaged",
            },
            index_bytes: report.bytes,
            file: report.file.to_string_lossy().into_owned(),
        }
    }
}

fn show(args: &Args, rows: &[StageOut]) -> anyhow::Result<()> {
    let mut out = output::stdout();
    match args.output.format() {
        Format::Json => {
            let path = args.input.path().to_string_lossy();
            let file_bytes = std::fs::metadata(args.input.path()).ok().map(|metadata| metadata.len());
            let dump = json::Dump { path, file_bytes, ..json::Dump::default() };
            json::write(&mut out, "index", &dump, rows, serde_json::json!({}))?;
        }
        Format::Csv => {
            let escaped = |row: &StageOut| StageOut { file: escape::cell(&row.file).into_owned(), ..*row };
            csv::write_flat(&mut out, &["stage", "state", "index_bytes", "file"], rows.iter().map(escaped))?;
        }
        Format::Table => {
            let columns = [
                ("stage", Align::Left),
                ("state", Align::Left),
                ("bytes", Align::Right),
                ("file", Align::Left),
            ];
            let mut table = Builder::new(&columns);
            for row in rows {
                table.row([row.stage, row.state, &grouped(row.index_bytes), &row.file]);
            }
            table.write(&mut out, output::style(&args.output))?;
        }
    }
    output::finish(out)
}
