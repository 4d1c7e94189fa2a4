//! `cpu`: CPU samples.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::query::classes::pattern::{ClassPattern, MethodPattern};
use crate::query::recordings::cpu::{self, Answer, GroupBy, GroupRow, Question, Row, SortBy};
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::profile::{Profile, Samples};
use crate::query::recordings::stack_filter::StackFilter;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style, grouped};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::output;
use crate::cli::shared::recording::RecordedInput;
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{self, FrameOut, StackArgs};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli cpu java.hprof.txt
  hprof-cli cpu java.hprof --stack --depth 8 --top 5
  hprof-cli cpu java.hprof --group-by method --sort total
  hprof-cli cpu java.hprof --method 'com.acme.**' --format csv";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// CPU samples: the stack traces that were found running
///
/// Of what the HPROF agent recorded with cpu=samples. Percentages are of all samples, also those of traces that the
/// agent left out. With --group-by a row has the samples in which the method, class or package itself was running, and
/// those in which it occurs anywhere in the trace.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Only traces with a frame of a class that matches one of these: `java.util.HashMap`, `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    class: Vec<ClassPattern>,

    /// Only traces with a frame of a method that matches one of these: `com.acme.Main.run`, `HashMap.put*`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Leave out rows below this part of all samples, as the agent does with 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Order of the rows
    #[arg(long, value_name = "KEY", default_value = "samples", help_heading = "Output")]
    sort: SortArg,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// What a row stands for
    #[arg(long, value_name = "KEY", default_value = "trace", help_heading = "Output")]
    group_by: GroupArg,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most samples first; of groups, most in which the group itself was running
    Samples,
    /// Most samples in which the group occurs first; with --group-by
    Total,
    /// By serial number of the trace
    Trace,
    /// By name of the method, or of the group
    Method,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GroupArg {
    /// A stack trace
    Trace,
    /// A method, whatever called it
    Method,
    /// All methods of a class
    Class,
    /// All classes of a package
    Package,
}

impl GroupArg {
    /// What is grouped, and the name of its column.
    fn group(self) -> Option<(GroupBy, &'static str)> {
        match self {
            Self::Trace => None,
            Self::Method => Some((GroupBy::Method, "method")),
            Self::Class => Some((GroupBy::Class, "class")),
            Self::Package => Some((GroupBy::Package, "package")),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let group = args.group_by.group();
    match (group.is_some(), args.sort) {
        (false, SortArg::Total) => anyhow::bail!("--sort total needs --group-by method, class or package"),
        (true, SortArg::Trace) => {
            anyhow::bail!("--sort trace needs rows that are traces: leave out --group-by")
        }
        _ => {}
    }
    anyhow::ensure!(
        group.is_none() || !args.stack.is_shown(),
        "--stack needs rows that are traces: leave out --group-by"
    );
    let format = args.output.format();
    let recorded = args.input.open(Want { sites: false, traces: true })?;
    let profile = &recorded.profile;
    let question = Question {
        filter: StackFilter { classes: args.class.clone(), methods: args.method.clone() },
        cutoff: args.cutoff,
        sort_by: match args.sort {
            SortArg::Samples => SortBy::Samples,
            SortArg::Total => SortBy::Total,
            SortArg::Trace => SortBy::Trace,
            SortArg::Method => SortBy::Name,
        },
        top: args::top(args.top, format, USUAL_TOP),
    };
    let nothing = Samples::default();
    let samples = profile.samples.as_ref().unwrap_or(&nothing);
    if profile.samples.is_none() {
        note(profile, &args.input);
    }
    let mut out = output::stdout();
    let any = match group {
        None => {
            let answer = cpu::by_trace(samples, &profile.traces, &question);
            match format {
                Format::Table => table(&mut out, profile, &answer, args)?,
                Format::Csv => {
                    let columns = args.stack.columns(RowOut::<String>::COLUMNS);
                    let frames =
                        |row: &Row| args.stack.of(&profile.traces, row.trace).map(|stack| stack.cell());
                    let rows = answer.rows.iter().map(|row| RowOut::new(row, object::cell, frames(row)));
                    csv::write_flat(&mut out, &columns, rows)?;
                }
                Format::Json => {
                    let frames =
                        |row: &Row| args.stack.of(&profile.traces, row.trace).map(|stack| stack.json());
                    let rows = (answer.rows.iter())
                        .map(|row| RowOut::<Vec<FrameOut<'_>>>::new(row, str::to_owned, frames(row)));
                    recorded.json(&mut out, "cpu", Streamed::new(rows), more(samples, &answer))?;
                }
            }
            !answer.rows.is_empty()
        }
        Some((by, key)) => {
            let answer = cpu::grouped(samples, &profile.traces, &question, by);
            match format {
                Format::Table => group_table(&mut out, &answer, key, output::style(&args.output))?,
                Format::Csv => {
                    let columns =
                        ["rank", "self_samples", "total_samples", "self_percent", "total_percent", key];
                    csv::write_flat(&mut out, &columns, answer.rows.iter().map(cells))?;
                }
                Format::Json => {
                    let rows = answer.rows.iter().map(|row| group_row(row, key));
                    recorded.json(&mut out, "cpu", Streamed::new(rows), more(samples, &answer))?;
                }
            }
            !answer.rows.is_empty()
        }
    };
    output::finish(out)?;
    Ok(recorded.outcome(any))
}

/// Says that there are no samples, and what there is instead.
fn note(profile: &Profile, input: &RecordedInput) {
    let instead = match (profile.times.is_some(), profile.calls.is_empty()) {
        (true, _) => "; this file holds CPU TIME: `hprof-cli cputime` shows it",
        (false, false) => "; this file holds calls (cpu=old): `hprof-cli cputime` shows them",
        (false, true) => "",
    };
    input.note(&format!("no CPU SAMPLES: the HPROF agent records them with cpu=samples{instead}"));
}

/// What JSON has beside the rows.
fn more<R>(samples: &Samples, answer: &Answer<R>) -> Value {
    json!({
        "total": { "samples": samples.total },
        "matching": { "rows": answer.matching, "samples": answer.samples },
        "left_out": answer.matching.saturating_sub(answer.rows.len() as u64),
        "date": samples.date,
    })
}

#[derive(Serialize)]
struct RowOut<F> {
    rank: u64,
    trace: u32,
    samples: u64,
    self_percent: f64,
    accumulated_percent: f64,
    method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<F>,
}

impl<F> RowOut<F> {
    const COLUMNS: &[&str] =
        &["rank", "trace", "samples", "self_percent", "accumulated_percent", "method", "frames"];

    fn new(row: &Row, text: AsText, frames: Option<F>) -> Self {
        Self {
            rank: row.rank,
            trace: row.trace,
            samples: row.samples,
            self_percent: row.self_percent,
            accumulated_percent: row.accumulated_percent,
            method: row.method.as_deref().map(text),
            frames,
        }
    }
}

fn group_row(row: &GroupRow, key: &str) -> Value {
    json!({
        "rank": row.rank,
        "self_samples": row.self_samples,
        "total_samples": row.total_samples,
        "self_percent": row.self_percent,
        "total_percent": row.total_percent,
        key: row.name,
    })
}

/// A line of CSV.
fn cells(row: &GroupRow) -> impl Serialize + use<> {
    let name = row.name.as_deref().map(object::cell);
    (row.rank, row.self_samples, row.total_samples, row.self_percent, row.total_percent, name)
}

fn table(out: &mut dyn Write, profile: &Profile, answer: &Answer<Row>, args: &Args) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("rank", Align::Right),
        ("self", Align::Right),
        ("accum", Align::Right),
        ("samples", Align::Right),
        ("trace", Align::Right),
        ("method", Align::Left),
    ]);
    for row in &answer.rows {
        table.row([
            row.rank.to_string(),
            stack::percent(row.self_percent),
            stack::percent(row.accumulated_percent),
            grouped(row.samples),
            row.trace.to_string(),
            row.method.clone().unwrap_or_else(|| EMPTY.to_owned()),
        ]);
    }
    if profile.samples.is_some() {
        table.total(["", "", "", &grouped(answer.samples), "", "total"]);
    }
    let serials = answer.rows.iter().map(|row| row.trace);
    args.stack.table(out, table, output::style(&args.output), &profile.traces, serials)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching, "traces")?)
}

/// What stands for the method of a trace without frames.
const EMPTY: &str = "<empty>";

fn group_table(
    out: &mut dyn Write,
    answer: &Answer<GroupRow>,
    key: &'static str,
    style: Style,
) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("rank", Align::Right),
        ("self", Align::Right),
        ("%", Align::Right),
        ("total", Align::Right),
        ("%", Align::Right),
        (key, Align::Left),
    ]);
    for row in &answer.rows {
        table.row([
            row.rank.to_string(),
            grouped(row.self_samples),
            stack::percent(row.self_percent),
            grouped(row.total_samples),
            stack::percent(row.total_percent),
            row.name.clone().unwrap_or_else(|| EMPTY.to_owned()),
        ]);
    }
    table.write(out, style)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching, "rows")?)
}
