//! Formatting of stacks: lines below table rows, frames in JSON, one cell in CSV.

use crate::cli::shared::args::Output;
use crate::cli::shared::facts;
use crate::cli::shared::limit::Top;
use hprof_query::dictionary::names;
use hprof_query::naming::pattern::{ClassPattern, MethodPattern};
use hprof_query::recordings::profile::{Frame, Trace, Traces};
use hprof_query::recordings::stack_filter::StackFilter;
use hprof_report::answer::{Answer, RowLine};
use hprof_report::column::{Column, Columns};
use hprof_report::value::list;
use hprof_values::TraceSerial;

/// Indentation of a frame below a table row.
const INDENT: usize = 8;

/// Options that select stack traces by their frames.
#[derive(Debug, clap::Args)]
pub(crate) struct FrameFilter {
    /// Only traces with a frame of a class that matches PATTERN, for example `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    class: Vec<ClassPattern>,

    /// Only traces with a frame of a method that matches PATTERN, for example `HashMap.put*`, `run`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,
}

impl FrameFilter {
    /// Returns whether there is no filter, so that all traces are selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.class.is_empty() && self.method.is_empty()
    }

    /// Returns the filter for traces.
    pub(crate) fn filter(&self) -> StackFilter {
        StackFilter { classes: self.class.clone(), methods: self.method.clone() }
    }
}

/// Options for stacks.
#[derive(Debug, clap::Args)]
pub(crate) struct StackArgs {
    /// Show the stack trace of each row
    #[arg(long, help_heading = "Output")]
    stack: bool,

    /// Maximum depth of stack traces: the N innermost frames; 0 for all [default: 0]
    #[arg(long, value_name = "N", requires = "stack", help_heading = "Output")]
    depth: Option<usize>,
}

/// Options for showing an answer whose rows have stacks.
#[derive(Debug, clap::Args)]
pub(crate) struct StackedOutput {
    #[command(flatten)]
    pub(crate) top: Top,

    #[command(flatten)]
    pub(crate) stack: StackArgs,

    #[command(flatten)]
    pub(crate) output: Output,
}

impl StackArgs {
    /// Shows all frames of each stack.
    pub(crate) const ALL: Self = Self { stack: true, depth: None };

    /// Returns whether stacks are shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.stack
    }

    /// Returns the column of frames if stacks are shown; `trace` returns the serial number of a row's stack trace.
    pub(crate) fn column<'a, R: 'a>(
        &self,
        traces: &'a Traces,
        trace: fn(&R) -> TraceSerial,
    ) -> Option<Column<'a, R>> {
        self.stack.then(|| self.frames(traces, trace))
    }

    /// Returns the column of frames, even if stacks are not shown: for rows that are identified by their frames.
    pub(crate) fn frames<'a, R: 'a>(
        &self,
        traces: &'a Traces,
        trace: fn(&R) -> TraceSerial,
    ) -> Column<'a, R> {
        let depth = self.depth;
        frames(move |row| Stack::new(traces, trace(row), depth))
    }

    /// Returns the stack below a table row, if stacks are shown.
    pub(crate) fn lines(&self, traces: &Traces, trace: TraceSerial) -> Vec<RowLine> {
        if self.stack { Stack::new(traces, trace, self.depth).lines(INDENT) } else { Vec::new() }
    }

    /// Adds the stack below each row of a result, if stacks are shown.
    pub(crate) fn add_stacks<'a, R>(
        &'a self,
        answer: Answer<'a, R>,
        traces: &'a Traces,
        trace: fn(&R) -> TraceSerial,
    ) -> Answer<'a, R>
    where
        R: 'a,
    {
        if self.stack { answer.with_lines_below(move |row| self.lines(traces, trace(row))) } else { answer }
    }
}

/// A stack trace, limited to the frames that are shown.
#[derive(Clone, Copy)]
pub(crate) struct Stack<'a> {
    traces: &'a Traces,
    /// The stack trace; `None` if it does not exist.
    trace: Option<&'a Trace>,
    depth: usize,
}

impl<'a> Stack<'a> {
    /// Selects the `depth` innermost frames; 0 or `None` for all.
    pub(crate) fn new(traces: &'a Traces, serial: TraceSerial, depth: Option<usize>) -> Self {
        let depth = depth.filter(|depth| *depth > 0).unwrap_or(usize::MAX);
        Self { traces, trace: traces.get(serial), depth }
    }

    /// Returns the selected frames, innermost first.
    pub(crate) fn frames(self) -> impl Iterator<Item = &'a Frame> {
        self.trace.into_iter().flat_map(move |trace| self.traces.frames(trace).take(self.depth))
    }

    /// Returns the number of omitted frames.
    pub(crate) fn left_out(self) -> usize {
        self.trace.map_or(0, |trace| self.traces.frames(trace).len().saturating_sub(self.depth))
    }

    /// Formats the frames below a table row, one per line.
    pub(crate) fn lines(self, indent: usize) -> Vec<RowLine> {
        let none = if self.trace.is_some() { "<empty>" } else { "<no trace>" };
        let none = self.frames().next().is_none().then(|| none.to_owned());
        let more = Some(self.left_out()).filter(|more| *more > 0).map(|more| format!("… {more} more frames"));
        let texts = none.into_iter().chain(self.frames().map(ToString::to_string)).chain(more);
        texts.map(|text| RowLine { indent, text }).collect()
    }
}

/// Returns the column for a row's stack: a list of records in JSON, a list of texts in CSV.
pub(crate) fn frames<'a, R: 'a>(stack: impl Fn(&R) -> Stack<'a> + Copy + Send + Sync + 'a) -> Column<'a, R> {
    let columns = Columns::new(frame(|frame: &Frame| frame));
    Column::with_fields(names::FRAMES, columns.fields(), move |row| {
        list(stack(row).frames().map(|frame| columns.record(frame)))
    })
    .csv(move |row| list(stack(row).frames().map(ToString::to_string)))
}

/// Returns the columns for a frame.
pub(crate) fn frame<'a, R: 'a>(frame: for<'r> fn(&'r R) -> &'r Frame) -> Vec<Column<'a, R>> {
    facts::columns(Frame::facts(), None, frame)
}
