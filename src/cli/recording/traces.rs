//! `traces`: stack traces.

use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedInput, WITH_FLIGHT};
use crate::cli::shared::stack::{self, FrameFilter, Stack};
use crate::cli::shared::{facts, messages};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::{Frame, StartedThread, Trace};
use hprof_query::recordings::traces::{self, ThreadFilter, TraceQuery};
use hprof_report::answer::RowLine;
use hprof_report::escape;
use hprof_values::TraceSerial;

use super::columns::{self, RecordingSummary};
use super::no_match;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli traces java.hprof.txt
  hprof-cli traces java.hprof 300084 300085
  hprof-cli traces java.hprof --method 'com.acme.**' --depth 5
  hprof-cli traces heap.hprof --thread main --format json | jq '.rows[].frames'";

/// Default number of traces in a table.
const DEFAULT_TOP: usize = 20;
/// Indentation of a frame.
const INDENT: usize = 4;

/// List stack traces
///
/// Lists the traces in file order. Allocation sites and CPU samples reference a trace by its serial
/// number.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.index(1).help(WITH_FLIGHT)))]
pub(crate) struct TracesArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Only traces with these serial numbers
    #[arg(index = 2, value_name = "TRACE", help_heading = "Filter")]
    serials: Vec<u32>,

    #[command(flatten)]
    frames: FrameFilter,

    /// Only threads whose name contains THREAD or matches it with `*`, or with this serial number or object ID
    #[arg(long, value_name = "THREAD", help_heading = "Filter")]
    thread: Option<ThreadFilter>,

    /// Maximum depth of stack traces: the N innermost frames; 0 for all [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    depth: Option<usize>,

    #[command(flatten)]
    top: Top<DEFAULT_TOP>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &TracesArgs) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let mut recorded = args.input.open(cx, Want { sites: false, traces: true, ..Want::default() })?;
    if let Some(ThreadFilter::Pattern(pattern)) = &args.thread {
        args.input.name_threads(cx, &mut recorded, pattern)?;
    }
    let profile = &recorded.profile;
    let question = TraceQuery {
        serials: args.serials.iter().copied().map(TraceSerial).collect(),
        filter: args.frames.filter(),
        thread: args.thread.clone(),
        top: args.top.rows(format),
    };
    let traces::TraceReport { rows, matching } = traces::traces(profile, &question);
    if profile.traces.is_empty() {
        args.input.note(cx, "the file contains no stack traces");
    } else if rows.is_empty() {
        no_match::note(cx, &args.input, "trace", &question.filter, &profile.traces);
        if let Some(ThreadFilter::Pattern(pattern)) = &args.thread {
            messages::about_started(cx, args.input.input.quiet, pattern, &profile.threads);
        }
    }
    let threads = traces::started_threads(profile);
    let shown = rows.len();
    let rows = rows.into_iter().enumerate().map(|(at, trace)| TraceLine {
        trace,
        thread: threads.get(&trace.thread).copied(),
        stack: Stack::new(&profile.traces, trace.serial, args.depth),
        is_last: at + 1 == shown,
    });
    if format == Format::Csv {
        let rows = rows.flat_map(|row| {
            row.stack.frames().enumerate().map(move |(depth, frame)| FrameRow { row, depth, frame })
        });
        recorded.show(cx, "traces", &args.output, Answer::new(frame_columns(), rows))?;
    } else {
        let answer = Answer::new(columns(), rows)
            .with_summary(&summary_columns(), &RecordingSummary { matching, shown, of: () })
            .with_lines_below(|row| {
                let gap = (!row.is_last).then(|| RowLine { indent: 0, text: String::new() });
                row.stack.lines(INDENT).into_iter().chain(gap).collect()
            })
            .matching(matching, "traces")
            .if_empty(NoRows::Nothing);
        recorded.show(cx, "traces", &args.output, answer)?;
    }
    Ok(recorded.outcome(shown > 0))
}

/// A trace with its thread and frames, as a row of the result.
#[derive(Clone, Copy)]
struct TraceLine<'a> {
    trace: &'a Trace,
    thread: Option<&'a StartedThread>,
    stack: Stack<'a>,
    is_last: bool,
}

/// A row of CSV: a frame of a trace. Frames are numbered from 0 for the innermost.
struct FrameRow<'a> {
    row: TraceLine<'a>,
    depth: usize,
    frame: &'a Frame,
}

impl TraceLine<'_> {
    /// Returns the serial number of the thread, if the trace has one.
    fn serial(&self) -> Option<u32> {
        Some(self.trace.thread).filter(|thread| *thread != 0)
    }

    fn name(&self) -> Option<&str> {
        self.thread.map(|thread| &*thread.name)
    }

    fn title(&self) -> String {
        let thread = self.serial().map(|serial| match self.name() {
            Some(name) => format!(" (thread {serial} {})", escape::quoted(name)),
            None => format!(" (thread {serial})"),
        });
        let phase = self.trace.phase.as_ref().map(|phase| format!(" (from {phase} phase of JVM)"));
        format!("TRACE {}{}{}", self.trace.serial, thread.unwrap_or_default(), phase.unwrap_or_default())
    }
}

const NOT_STARTED: &str = "the thread has no start record";

fn columns<'a>() -> Columns<'a, TraceLine<'a>> {
    let mut columns = facts::columns(Trace::facts(), None, |row: &TraceLine<'a>| row.trace);
    columns.extend([
        Column::new(names::THREAD_NAME, |row: &TraceLine<'a>| row.name().into()).or_null(NOT_STARTED),
        Column::new(names::PHASE, |row: &TraceLine<'a>| row.trace.phase.as_deref().into())
            .or_null("not stated; only text reports state it"),
        stack::frames(|row: &TraceLine<'a>| row.stack),
        Column::new(names::FRAMES_LEFT_OUT, |row: &TraceLine<'a>| row.stack.left_out().into()),
    ]);
    Columns::new(columns).table([TableColumn::table_only("", Align::Left, TraceLine::title)])
}

fn frame_columns<'a>() -> Columns<'a, FrameRow<'a>> {
    let of_trace = |fact| facts::columns(vec![fact], None, |row: &FrameRow<'a>| row.row.trace);
    let mut columns = of_trace(Trace::serial_fact());
    columns.push(Column::new(names::FRAME_NUMBER, |row: &FrameRow<'a>| row.depth.into()));
    columns.extend(stack::frame(|row: &FrameRow<'a>| row.frame));
    columns.extend(of_trace(Trace::thread_fact()));
    columns.push(
        Column::new(names::THREAD_NAME, |row: &FrameRow<'a>| row.row.name().into()).or_null(NOT_STARTED),
    );
    Columns::new(columns)
}

fn summary_columns() -> Columns<'static, RecordingSummary<()>> {
    Columns::new([columns::matching(), columns::left_out()])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![
        ResultSchema {
            command: "traces",
            variant: "",
            about: "A row is a stack trace. Rows are in the order of the file. In CSV a line is a frame, as below.",
            rows: columns().fields(),
            summary: summary_columns().fields(),
        },
        ResultSchema {
            command: "traces",
            variant: "`--format csv`",
            about: "A line is a frame of a trace. A trace without frames has no line.",
            rows: frame_columns().fields(),
            summary: Vec::new(),
        },
    ]
}
