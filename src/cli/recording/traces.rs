//! `traces`: stack traces.

use std::io::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::json;

use crate::query::classes::pattern::{ClassPattern, MethodPattern};
use crate::query::recordings::profile::binary::Want;
use crate::query::recordings::profile::{Profile, StartedThread, Trace};
use crate::query::recordings::stack_filter::StackFilter;
use crate::query::recordings::traces::{self, Answer, Question, ThreadFilter};
use crate::report::stream::Streamed;
use crate::report::table::Style;
use crate::report::{Format, csv, escape};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Output};
use crate::cli::shared::object;
use crate::cli::shared::output;
use crate::cli::shared::recording::RecordedInput;
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{self, FrameOut, Stack};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli traces java.hprof.txt
  hprof-cli traces java.hprof 300084 300085
  hprof-cli traces java.hprof --method 'com.acme.**' --depth 5
  hprof-cli traces heap.hprof --thread main --format json | jq '.rows[].frames'";

/// Traces that are shown when nothing is said.
const USUAL_TOP: usize = 20;
/// Columns of space before a frame.
const INDENT: usize = 4;

/// Stack traces
///
/// In the order of the file. Sites and samples name their trace by its serial number.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Only traces with these serial numbers
    #[arg(value_name = "TRACE", help_heading = "Filter")]
    serials: Vec<u32>,

    /// Only traces with a frame of a class that matches one of these: `java.util.HashMap$Node`, `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    class: Vec<ClassPattern>,

    /// Only traces with a frame of a method that matches one of these: `com.acme.Main.run`, `HashMap.put*`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Only traces of the thread with this serial number or object id, or whose name contains this or matches it with `*`
    #[arg(long, value_name = "THREAD", help_heading = "Filter")]
    thread: Option<ThreadFilter>,

    /// Only the N innermost frames of each trace; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<usize>,

    /// Only the first N traces; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let recorded = args.input.open(Want { sites: false, traces: true })?;
    let profile = &recorded.profile;
    let question = Question {
        serials: args.serials.clone(),
        filter: StackFilter { classes: args.class.clone(), methods: args.method.clone() },
        thread: args.thread.clone(),
        top: args::top(args.top, format, USUAL_TOP),
    };
    let answer = traces::traces(profile, &question);
    if profile.traces.is_empty() {
        args.input.note("the file holds no stack traces");
    } else if answer.rows.is_empty() {
        args.input.note("no trace matches");
    }
    let view = View { profile, threads: traces::started_threads(profile), depth: args.depth };
    let mut out = output::stdout();
    match format {
        Format::Table => view.table(&mut out, &answer, output::style(&args.output))?,
        Format::Csv => {
            csv::write_flat(
                &mut out,
                FrameRow::COLUMNS,
                answer.rows.iter().flat_map(|trace| view.lines(trace)),
            )?;
        }
        Format::Json => {
            let rows = answer.rows.iter().map(|trace| view.row(trace));
            let left_out = answer.matching.saturating_sub(answer.rows.len() as u64);
            let more = json!({ "matching": { "rows": answer.matching }, "left_out": left_out });
            recorded.json(&mut out, "traces", Streamed::new(rows), more)?;
        }
    }
    output::finish(out)?;
    Ok(recorded.outcome(!answer.rows.is_empty()))
}

/// Shows traces.
struct View<'a> {
    profile: &'a Profile,
    threads: FxHashMap<u32, &'a StartedThread>,
    depth: Option<usize>,
}

#[derive(Serialize)]
struct RowOut<'a> {
    trace: u32,
    thread: Option<u32>,
    thread_name: Option<&'a str>,
    phase: Option<&'a str>,
    frames: Vec<FrameOut<'a>>,
    frames_left_out: usize,
}

/// A line of CSV: a frame.
#[derive(Serialize)]
struct FrameRow {
    trace: u32,
    depth: usize,
    class: Option<String>,
    method: Option<String>,
    source: Option<String>,
    line: Option<u32>,
    native: bool,
    thread: Option<u32>,
    thread_name: Option<String>,
}

impl FrameRow {
    const COLUMNS: &[&str] =
        &["trace", "depth", "class", "method", "source", "line", "native", "thread", "thread_name"];
}

impl<'a> View<'a> {
    fn thread_name(&self, trace: &Trace) -> Option<&'a str> {
        self.threads.get(&trace.thread).map(|thread| thread.name.as_str())
    }

    fn stack(&self, trace: &Trace) -> Stack<'a> {
        Stack::new(&self.profile.traces, trace.serial, self.depth)
    }

    fn row(&self, trace: &'a Trace) -> RowOut<'a> {
        let stack = self.stack(trace);
        RowOut {
            trace: trace.serial,
            thread: thread(trace),
            thread_name: self.thread_name(trace),
            phase: trace.phase.as_deref(),
            frames: stack.json(),
            frames_left_out: stack.left_out(),
        }
    }

    fn lines(&self, trace: &Trace) -> impl Iterator<Item = FrameRow> + use<'a> {
        let (serial, thread) = (trace.serial, thread(trace));
        let thread_name = self.thread_name(trace).map(object::cell);
        let text = |text: &Option<Arc<str>>| text.as_deref().map(object::cell);
        let frames = self.stack(trace).frames().to_vec();
        frames.into_iter().enumerate().map(move |(depth, frame)| FrameRow {
            trace: serial,
            depth,
            class: text(&frame.class),
            method: text(&frame.method),
            source: text(&frame.source),
            line: frame.line(),
            native: stack::is_native(frame),
            thread,
            thread_name: thread_name.clone(),
        })
    }

    fn table(&self, out: &mut dyn Write, answer: &Answer<'_>, style: Style) -> anyhow::Result<()> {
        for (number, trace) in answer.rows.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            let thread = thread(trace).map(|serial| match self.thread_name(trace) {
                Some(name) => format!(" (thread {serial} \"{name}\")"),
                None => format!(" (thread {serial})"),
            });
            let phase = trace.phase.as_ref().map(|phase| format!(" (from {phase} phase of JVM)"));
            let (thread, phase) = (thread.unwrap_or_default(), phase.unwrap_or_default());
            writeln!(out, "{}", escape::text(&format!("TRACE {}{thread}{phase}", trace.serial)))?;
            self.stack(trace).write(out, style, INDENT)?;
        }
        Ok(output::left_out(out, answer.rows.len(), answer.matching, "traces")?)
    }
}

/// The serial number of a trace's thread, if it has one.
fn thread(trace: &Trace) -> Option<u32> {
    Some(trace.thread).filter(|thread| *thread != 0)
}
