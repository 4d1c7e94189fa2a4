//! `monitors`: contention, and what threads did at monitors.

mod dumps;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::query::classes::pattern::{ClassPattern, MethodPattern};
use crate::query::recordings::cputime::{self, Answer, Question, Row, SortBy};
use crate::query::recordings::monitors::{self, WaitQuestion, WaitRow};
use crate::query::recordings::profile::Profile;
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::stack_filter::StackFilter;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::output;
use crate::cli::shared::recording::{Recorded, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{self, FrameOut, StackArgs};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli monitors java.hprof.txt
  hprof-cli monitors java.hprof.txt --monitor 'com.acme.**' --stack
  hprof-cli monitors java.hprof.txt --dumps
  hprof-cli monitors java.hprof.txt --waits --format csv";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// Monitors: where threads waited to enter, who held what, and who waited for whom
///
/// Only texts hold it, by monitor=y: MONITOR TIME is the contention, MONITOR DUMP the state of all threads and monitors
/// at a moment, WAIT, WAITED, SLEEP and EXIT lines tell what threads did. Shown is the first of these that the file
/// holds, unless --dumps or --waits asks for one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) input: RecordedInput,

    /// Only monitors of classes that match one of these: `java.lang.ref.ReferenceQueue$Lock`, `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    pub(crate) monitor: Vec<ClassPattern>,

    /// Of contention: only traces with a frame of a method that matches one of these: `com.acme.Main.run`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Of contention: leave out rows below this part of the whole time
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Show the MONITOR DUMPs: threads with their states, monitors with their owners and waiters
    #[arg(long, conflicts_with = "waits", help_heading = "Output")]
    dumps: bool,

    /// Show WAIT, WAITED, SLEEP and EXIT lines, added up by class of the monitor and by thread
    #[arg(long, help_heading = "Output")]
    waits: bool,

    /// Order of contention [default: as in the file, which is by time]
    #[arg(long, value_name = "KEY", conflicts_with_all = ["dumps", "waits"], help_heading = "Output")]
    sort: Option<SortArg>,

    /// Only the first N rows, or dumps; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub(crate) top: Option<usize>,

    #[command(flatten)]
    pub(crate) stack: StackArgs,

    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most time first
    Time,
    /// Most contentions first
    Count,
    /// By serial number of the trace
    Trace,
    /// By name of the method
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

/// What of monitors is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Contention,
    Dumps,
    Waits,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let recorded = args.input.open(Want { sites: false, traces: true })?;
    let profile = &recorded.profile;
    let holds = [
        (What::Contention, profile.contention.is_some()),
        (What::Dumps, !profile.monitor_dumps.is_empty()),
        (What::Waits, !profile.waits.is_empty()),
    ];
    let first = holds.iter().find(|(_, is_there)| *is_there).map(|(what, _)| *what);
    let what = match (args.dumps, args.waits) {
        (true, _) => What::Dumps,
        (false, true) => What::Waits,
        (false, false) => first.unwrap_or(What::Contention),
    };
    if !holds.contains(&(what, true)) {
        args.input.note(&missing(what, first));
    }
    let any = match what {
        What::Contention => contention(&recorded, args)?,
        What::Dumps => dumps::show(&recorded, args)?,
        What::Waits => waits(&recorded, args)?,
    };
    Ok(recorded.outcome(any))
}

/// What there is to say when the file does not hold what is shown.
fn missing(what: What, first: Option<What>) -> String {
    let missing = match (what, first) {
        (_, None) => {
            return "no monitors: the HPROF agent records them with monitor=y, in texts only".to_owned();
        }
        (What::Contention, _) => "MONITOR TIME",
        (What::Dumps, _) => "MONITOR DUMP",
        (What::Waits, _) => "WAIT or WAITED lines",
    };
    format!("the file holds no {missing}; without --dumps and --waits you see what it holds of monitors")
}

/// Shows MONITOR TIME. Whether there is a row.
fn contention(recorded: &Recorded, args: &Args) -> anyhow::Result<bool> {
    let (format, profile) = (args.output.format(), &recorded.profile);
    let question = Question {
        filter: StackFilter { methods: args.method.clone(), ..StackFilter::default() },
        names: args.monitor.clone(),
        cutoff: args.cutoff,
        sort_by: args.sort.map(SortArg::key),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let contention = profile.contention.as_ref();
    let (rows, total_ms) = contention.map_or((&[][..], 0), |all| (all.rows.as_slice(), all.total_ms));
    let answer = cputime::times(rows, total_ms, &profile.traces, &question);
    let mut out = output::stdout();
    match format {
        Format::Table => table(&mut out, profile, &answer, contention.map(|all| all.total_ms), args)?,
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
            let more = json!({
                "total": { "self_ms": contention.map(|all| all.total_ms) },
                "matching": { "rows": answer.matching },
                "left_out": left_out(answer.rows.len(), answer.matching),
                "date": contention.and_then(|all| all.date.as_deref()),
            });
            recorded.json(&mut out, "monitors", Streamed::new(rows), more)?;
        }
    }
    output::finish(out)?;
    Ok(!answer.rows.is_empty())
}

/// Rows that match and are not shown.
pub(crate) fn left_out(shown: usize, matching: u64) -> u64 {
    matching.saturating_sub(shown as u64)
}

#[derive(Serialize)]
struct RowOut<F> {
    rank: u64,
    trace: u32,
    count: u64,
    self_percent: f64,
    accumulated_percent: f64,
    monitor: Option<String>,
    method: Option<String>,
    self_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<F>,
}

impl<F> RowOut<F> {
    const COLUMNS: &[&str] = &[
        "rank",
        "trace",
        "count",
        "self_percent",
        "accumulated_percent",
        "monitor",
        "method",
        "self_ms",
        "frames",
    ];

    fn new(row: &Row<'_>, text: AsText, frames: Option<F>) -> Self {
        Self {
            rank: row.rank,
            trace: row.time.trace,
            count: row.time.count,
            self_percent: row.time.self_percent,
            accumulated_percent: row.time.accumulated_percent,
            monitor: row.time.name.as_deref().map(text),
            method: row.method.as_deref().map(text),
            self_ms: row.self_ms,
            frames,
        }
    }
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
        ("monitor and method", Align::Left),
    ]);
    for row in &answer.rows {
        let method = row.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
        table.row([
            row.rank.to_string(),
            stack::percent(row.time.self_percent),
            stack::percent(row.time.accumulated_percent),
            row.self_ms.map(|ms| format!("~{}", grouped(ms))).unwrap_or_default(),
            grouped(row.time.count),
            row.time.trace.to_string(),
            format!("{}{method}", row.time.name.as_deref().unwrap_or("<unknown>")),
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

/// Shows WAIT, WAITED, SLEEP and EXIT lines, added up. Whether there is a row.
fn waits(recorded: &Recorded, args: &Args) -> anyhow::Result<bool> {
    let (format, profile) = (args.output.format(), &recorded.profile);
    let question =
        WaitQuestion { monitors: args.monitor.clone(), top: args::top(args.top, format, USUAL_TOP) };
    let (rows, matching) = monitors::waits(&profile.waits, &question);
    let names = crate::query::recordings::traces::started_threads(profile);
    let name =
        |row: &WaitRow| row.thread.and_then(|serial| names.get(&serial)).map(|thread| thread.name.as_str());
    let mut out = output::stdout();
    match format {
        Format::Table => wait_table(&mut out, &rows, matching, name, args)?,
        Format::Csv => {
            let rows = rows.iter().map(|row| WaitOut::new(row, name(row), object::cell));
            csv::write_flat(&mut out, WaitOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let shown = rows.iter().map(|row| WaitOut::new(row, name(row), str::to_owned));
            let more: Value = json!({
                "total": { "lines": profile.waits.len() },
                "matching": { "rows": matching },
                "left_out": left_out(rows.len(), matching),
            });
            recorded.json(&mut out, "monitors", Streamed::new(shown), more)?;
        }
    }
    output::finish(out)?;
    Ok(!rows.is_empty())
}

#[derive(Serialize)]
struct WaitOut {
    monitor: Option<String>,
    thread: Option<u32>,
    thread_name: Option<String>,
    waits: u64,
    timed: u64,
    waited: u64,
    time_waited: i64,
    sleeps: u64,
    time_slept: i64,
    exits: u64,
}

impl WaitOut {
    const COLUMNS: &[&str] = &[
        "monitor",
        "thread",
        "thread_name",
        "waits",
        "timed",
        "waited",
        "time_waited",
        "sleeps",
        "time_slept",
        "exits",
    ];

    fn new(row: &WaitRow, name: Option<&str>, text: AsText) -> Self {
        Self {
            monitor: row.monitor.as_deref().map(text),
            thread: row.thread,
            thread_name: name.map(text),
            waits: row.waits,
            timed: row.timed,
            waited: row.waited,
            time_waited: row.time_waited,
            sleeps: row.sleeps,
            time_slept: row.time_slept,
            exits: row.exits,
        }
    }
}

fn wait_table<'a>(
    out: &mut dyn Write,
    rows: &'a [WaitRow],
    matching: u64,
    name: impl Fn(&'a WaitRow) -> Option<&'a str>,
    args: &Args,
) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("waits", Align::Right),
        ("timed", Align::Right),
        ("waited", Align::Right),
        ("time waited", Align::Right),
        ("sleeps", Align::Right),
        ("time slept", Align::Right),
        ("exits", Align::Right),
        ("thread", Align::Right),
        ("monitor, and thread's name", Align::Left),
    ]);
    for row in rows {
        let monitor = row.monitor.as_deref().unwrap_or("<asleep>");
        table.row([
            grouped(row.waits),
            grouped(row.timed),
            grouped(row.waited),
            row.time_waited.to_string(),
            grouped(row.sleeps),
            row.time_slept.to_string(),
            grouped(row.exits),
            row.thread.map(|serial| serial.to_string()).unwrap_or_default(),
            name(row).map_or_else(|| monitor.to_owned(), |name| format!("{monitor} by \"{name}\"")),
        ]);
    }
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, rows.len(), matching, "rows")?)
}
