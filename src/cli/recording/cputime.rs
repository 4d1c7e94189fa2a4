//! `cputime`: CPU time that the agent measured, and calls.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::query::classes::pattern::{ClassPattern, MethodPattern};
use crate::query::recordings::cputime::{self, Answer, CallQuestion, CallRow, Question, Row, SortBy};
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::profile::{Method, Profile};
use crate::query::recordings::stack_filter::StackFilter;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style, grouped};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::output;
use crate::cli::shared::recording::{Recorded, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{self, FrameOut, StackArgs};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli cputime java.hprof.txt
  hprof-cli cputime java.hprof.txt --sort count --top 10
  hprof-cli cputime java.hprof.txt --method 'com.acme.**' --stack
  hprof-cli cputime java.prof --calls --sort time";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// CPU time of methods, as the HPROF agent measured it
///
/// Only texts hold it: CPU TIME (ms) by cpu=times, or calls of one method by another by cpu=old. CPU TIME states
/// percentages; milliseconds of a row are estimated from them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Only rows with a frame of a class that matches one of these, calls with one of both: `java.util.HashMap`,
    /// `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    class: Vec<ClassPattern>,

    /// Only rows with a frame of a method that matches one of these, calls with one of both: `com.acme.Main.run`,
    /// `HashMap.put*`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Leave out rows below this part of the whole time, as the agent does with 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Show the calls of cpu=old [default: if the file holds nothing else]
    #[arg(long, conflicts_with_all = ["stack", "depth"], help_heading = "Output")]
    calls: bool,

    /// Order of the rows [default: as in the file]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    sort: Option<SortArg>,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most time first
    Time,
    /// Most calls first
    Count,
    /// By serial number of the trace; not of calls, which have none
    Trace,
    /// By name of the method; of calls, of the one that is called
    Method,
}

impl SortArg {
    fn key(self) -> SortBy {
        match self {
            Self::Time => SortBy::Time,
            Self::Count => SortBy::Count,
            Self::Trace => SortBy::Trace,
            Self::Method => SortBy::Method,
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let recorded = args.input.open(Want { sites: false, traces: true })?;
    let profile = &recorded.profile;
    let are_calls = args.calls || (profile.times.is_none() && !profile.calls.is_empty());
    if are_calls && args.sort == Some(SortArg::Trace) {
        anyhow::bail!("--sort trace needs traces; calls (cpu=old) have none");
    }
    if if are_calls { profile.calls.is_empty() } else { profile.times.is_none() } {
        note(profile, args);
    }
    let any = if are_calls { calls(&recorded, args)? } else { times(&recorded, args)? };
    Ok(recorded.outcome(any))
}

/// Says that there is no such table, and what there is instead.
fn note(profile: &Profile, args: &Args) {
    let missing = if args.calls { "no calls: the HPROF agent records them with cpu=old" } else { NO_TIME };
    let instead = match (args.calls && profile.times.is_some(), profile.samples.is_some()) {
        (true, _) => "; this file holds CPU TIME: leave out --calls",
        (false, true) => "; this file holds CPU SAMPLES: `hprof-cli cpu` shows them",
        (false, false) => "",
    };
    args.input.note(&format!("{missing}{instead}"));
}

const NO_TIME: &str = "no CPU TIME: the HPROF agent records it with cpu=times, in texts only";

/// Shows CPU TIME. Whether there is a row.
fn times(recorded: &Recorded, args: &Args) -> anyhow::Result<bool> {
    let (format, profile) = (args.output.format(), &recorded.profile);
    let question = Question {
        filter: StackFilter { classes: args.class.clone(), methods: args.method.clone() },
        names: Vec::new(),
        cutoff: args.cutoff,
        sort_by: args.sort.map(SortArg::key),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let (rows, total_ms) =
        profile.times.as_ref().map_or((&[][..], 0), |times| (times.rows.as_slice(), times.total_ms));
    let answer = cputime::times(rows, total_ms, &profile.traces, &question);
    let mut out = output::stdout();
    match format {
        Format::Table => {
            table(&mut out, profile, &answer, profile.times.as_ref().map(|times| times.total_ms), args)?
        }
        Format::Csv => {
            let columns = args.stack.columns(RowOut::<String>::COLUMNS);
            let frames =
                |row: &Row<'_>| args.stack.of(&profile.traces, row.time.trace).map(|stack| stack.cell());
            let rows = answer.rows.iter().map(|row| RowOut::new(row, object::cell, frames(row)));
            csv::write_flat(&mut out, &columns, rows)?;
        }
        Format::Json => {
            let frames =
                |row: &Row<'_>| args.stack.of(&profile.traces, row.time.trace).map(|stack| stack.json());
            let rows = (answer.rows.iter())
                .map(|row| RowOut::<Vec<FrameOut<'_>>>::new(row, str::to_owned, frames(row)));
            let times = profile.times.as_ref();
            let total = json!({ "self_ms": times.map(|times| times.total_ms) });
            let date = times.and_then(|times| times.date.as_deref());
            recorded.json(&mut out, "cputime", Streamed::new(rows), more(total, &answer, date))?;
        }
    }
    output::finish(out)?;
    Ok(!answer.rows.is_empty())
}

/// What JSON has beside the rows.
fn more<R>(total: Value, answer: &Answer<R>, date: Option<&str>) -> Value {
    json!({
        "total": total,
        "matching": { "rows": answer.matching },
        "left_out": answer.matching.saturating_sub(answer.rows.len() as u64),
        "date": date,
    })
}

#[derive(Serialize)]
struct RowOut<F> {
    rank: u64,
    trace: u32,
    count: u64,
    self_percent: f64,
    accumulated_percent: f64,
    method: Option<String>,
    self_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<F>,
}

impl<F> RowOut<F> {
    const COLUMNS: &[&str] =
        &["rank", "trace", "count", "self_percent", "accumulated_percent", "method", "self_ms", "frames"];

    fn new(row: &Row<'_>, text: AsText, frames: Option<F>) -> Self {
        Self {
            rank: row.rank,
            trace: row.time.trace,
            count: row.time.count,
            self_percent: row.time.self_percent,
            accumulated_percent: row.time.accumulated_percent,
            method: method(row).map(text),
            self_ms: row.self_ms,
            frames,
        }
    }
}

/// The method as the row names it, or else the trace.
fn method<'a>(row: &'a Row<'_>) -> Option<&'a str> {
    row.time.name.as_deref().or(row.method.as_deref())
}

fn table(
    out: &mut dyn Write,
    profile: &Profile,
    answer: &Answer<Row<'_>>,
    total_ms: Option<i64>,
    args: &Args,
) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("rank", Align::Right),
        ("self", Align::Right),
        ("accum", Align::Right),
        ("ms", Align::Right),
        ("count", Align::Right),
        ("trace", Align::Right),
        ("method", Align::Left),
    ]);
    for row in &answer.rows {
        table.row([
            row.rank.to_string(),
            stack::percent(row.time.self_percent),
            stack::percent(row.time.accumulated_percent),
            row.self_ms.map(|ms| format!("~{}", grouped(ms))).unwrap_or_default(),
            grouped(row.time.count),
            row.time.trace.to_string(),
            method(row).unwrap_or(EMPTY).to_owned(),
        ]);
    }
    if let Some(total) = total_ms {
        let total = u64::try_from(total).map(grouped).unwrap_or_default();
        table.total(["", "", "", &total, "", "", "whole time"]);
    }
    let serials = answer.rows.iter().map(|row| row.time.trace);
    args.stack.table(out, table, output::style(&args.output), &profile.traces, serials)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching, "rows")?)
}

/// What stands for the method of a trace without frames.
const EMPTY: &str = "<empty>";

/// Shows the calls of cpu=old. Whether there is a row.
fn calls(recorded: &Recorded, args: &Args) -> anyhow::Result<bool> {
    let (format, profile) = (args.output.format(), &recorded.profile);
    let question = CallQuestion {
        filter: StackFilter { classes: args.class.clone(), methods: args.method.clone() },
        cutoff: args.cutoff,
        sort_by: args.sort.map(SortArg::key),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let answer = cputime::calls(&profile.calls, &question);
    let mut out = output::stdout();
    match format {
        Format::Table => call_table(&mut out, &answer, output::style(&args.output))?,
        Format::Csv => {
            let rows = answer.rows.iter().map(|row| CallOut::new(row, object::cell));
            csv::write_flat(&mut out, CallOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = answer.rows.iter().map(|row| CallOut::new(row, str::to_owned));
            recorded.json(&mut out, "cputime", Streamed::new(rows), more(Value::Null, &answer, None))?;
        }
    }
    output::finish(out)?;
    Ok(!answer.rows.is_empty())
}

#[derive(Serialize)]
struct CallOut {
    rank: u64,
    count: u64,
    time_ms: i64,
    callee: Option<String>,
    caller: Option<String>,
    callee_signature: Option<String>,
    caller_signature: Option<String>,
}

impl CallOut {
    const COLUMNS: &[&str] =
        &["rank", "count", "time_ms", "callee", "caller", "callee_signature", "caller_signature"];

    fn new(row: &CallRow<'_>, text: AsText) -> Self {
        let name = |method: &Option<Method>| method.as_ref().map(|method| text(&qualified(method)));
        let signature = |method: &Option<Method>| method.as_ref().map(|method| text(&method.signature));
        let call = row.call;
        Self {
            rank: row.rank,
            count: call.count,
            time_ms: call.time_ms,
            callee: name(&call.callee),
            caller: name(&call.caller),
            callee_signature: signature(&call.callee),
            caller_signature: signature(&call.caller),
        }
    }
}

/// `com.acme.Main.run`.
fn qualified(method: &Method) -> String {
    if method.class.is_empty() { method.name.clone() } else { format!("{}.{}", method.class, method.name) }
}

fn call_table(out: &mut dyn Write, answer: &Answer<CallRow<'_>>, style: Style) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("rank", Align::Right),
        ("count", Align::Right),
        ("ms", Align::Right),
        ("callee, and its caller", Align::Left),
    ]);
    let name = |method: &Option<Method>| method.as_ref().map_or_else(|| UNKNOWN.to_owned(), qualified);
    for row in &answer.rows {
        let call = row.call;
        table.row([
            row.rank.to_string(),
            grouped(call.count),
            u64::try_from(call.time_ms).map_or_else(|_| call.time_ms.to_string(), grouped),
            format!("{} by {}", name(&call.callee), name(&call.caller)),
        ]);
    }
    table.write(out, style)?;
    Ok(output::left_out(out, answer.rows.len(), answer.matching, "calls")?)
}

/// What stands for a method that the agent did not know.
const UNKNOWN: &str = "<unknown>";
