//! `threads`: the threads of a recording.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::query::profile::StartedThread;
use crate::query::profile::binary::Want;
use crate::query::select::ThreadPattern;
use crate::query::started_threads::{self, Answer, Question, SortBy};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style};
use crate::report::{Format, csv, json::object_id};

use super::args::{self, Output};
use super::object::{self, AsText};
use super::recorded::RecordedInput;
use super::{Outcome, output, stack};

pub(super) const EXAMPLES: &str = "Examples:
  hprof-cli threads java.hprof --started
  hprof-cli threads java.hprof.txt --started --name 'pool-*' --sort serial
  hprof-cli threads java.hprof --started --format csv";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 50;

/// Threads that were started while the profiler ran
///
/// With --started: what START THREAD and END THREAD records say, or THREAD START and THREAD END lines of a text.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Show the threads that were started, with their groups, and whether they ended
    #[arg(long, required = true, help_heading = "Output")]
    started: bool,

    /// Only threads whose name contains this, or matches it with `*`, or the thread with this object id
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    name: Option<ThreadPattern>,

    /// Order of the rows [default: as in the file]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    sort: Option<SortArg>,

    /// Only the first N rows; 0 for all [default: 50 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// By serial number
    Serial,
    /// By name
    Name,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let recorded = args.input.open(Want::default())?;
    let question = Question {
        name: args.name.clone(),
        sort_by: args.sort.map(|sort| match sort {
            SortArg::Serial => SortBy::Serial,
            SortArg::Name => SortBy::Name,
        }),
        top: args::top(args.top, format, USUAL_TOP),
    };
    if recorded.profile.threads.is_empty() {
        args.input.note("the file does not say which threads were started: only the HPROF agent records it");
    }
    let answer = started_threads::threads(&recorded.profile.threads, &question);
    let mut out = output::stdout();
    match format {
        Format::Table => table(&mut out, &answer, output::style(&args.output))?,
        Format::Csv => {
            let rows = answer.rows.iter().map(|thread| RowOut::new(thread, object::cell));
            csv::write_flat(&mut out, RowOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = answer.rows.iter().map(|thread| RowOut::new(thread, str::to_owned));
            let left_out = answer.matching.saturating_sub(answer.rows.len() as u64);
            let more = json!({ "matching": { "rows": answer.matching }, "left_out": left_out });
            recorded.json(&mut out, "threads", Streamed::new(rows), more)?;
        }
    }
    output::finish(out)?;
    Ok(recorded.outcome(!answer.rows.is_empty()))
}

#[derive(Serialize)]
struct RowOut {
    thread: u32,
    object: String,
    name: String,
    group: String,
    parent_group: Option<String>,
    trace: Option<u32>,
    ended: bool,
}

impl RowOut {
    const COLUMNS: &[&str] = &["thread", "object", "name", "group", "parent_group", "trace", "ended"];

    fn new(thread: &StartedThread, text: AsText) -> Self {
        Self {
            thread: thread.serial,
            object: object_id(thread.object),
            name: text(&thread.name),
            group: text(&thread.group),
            parent_group: thread.parent_group.as_deref().map(text),
            trace: trace(thread),
            ended: thread.ended,
        }
    }
}

/// The trace where a thread was started, if it is known.
fn trace(thread: &StartedThread) -> Option<u32> {
    Some(thread.trace).filter(|trace| *trace != 0)
}

fn table(out: &mut dyn Write, answer: &Answer<'_>, style: Style) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("thread", Align::Right),
        ("object", Align::Left),
        ("trace", Align::Right),
        ("ended", Align::Left),
        ("group", Align::Left),
        ("name", Align::Left),
    ]);
    for thread in &answer.rows {
        let group = match &thread.parent_group {
            Some(parent) => format!("{} in {parent}", thread.group),
            None => thread.group.clone(),
        };
        table.row([
            thread.serial.to_string(),
            object_id(thread.object),
            trace(thread).map(|trace| trace.to_string()).unwrap_or_default(),
            if thread.ended { "yes" } else { "no" }.to_owned(),
            group,
            thread.name.clone(),
        ]);
    }
    table.write(out, style)?;
    Ok(stack::left_out(out, answer.rows.len(), answer.matching, "threads")?)
}
