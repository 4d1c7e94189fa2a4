//! Stacks in answers: below the rows of a table, as frames in JSON, in one cell of CSV.

use std::io::{self, Write};

use serde::Serialize;

use crate::query::recordings::profile::{Frame, Traces};
use crate::report::escape;
use crate::report::table::{self, Builder, Style};

/// Columns of space before a frame.
const INDENT: usize = 8;

/// Whether and how far stacks are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct StackArgs {
    /// Show the stack of each row
    #[arg(long, help_heading = "Output")]
    stack: bool,

    /// Only the N innermost frames of each stack; 0 for all [default: 0]
    #[arg(long, value_name = "N", requires = "stack", help_heading = "Output")]
    depth: Option<usize>,
}

impl StackArgs {
    /// Whether stacks are asked for.
    pub(crate) fn is_shown(&self) -> bool {
        self.stack
    }

    /// The stack of a trace, if stacks are shown.
    pub(crate) fn of<'a>(&self, traces: &'a Traces, serial: u32) -> Option<Stack<'a>> {
        self.stack.then(|| Stack::new(traces, serial, self.depth))
    }

    /// Columns without those of stacks, if none are shown.
    pub(crate) fn columns<'c>(&self, columns: &[&'c str]) -> Vec<&'c str> {
        columns.iter().copied().filter(|column| self.stack || *column != "frames").collect()
    }

    /// Writes a table; below each of its rows the stack that belongs to it.
    pub(crate) fn table(
        &self,
        out: &mut dyn Write,
        table: Builder,
        style: Style,
        traces: &Traces,
        serials: impl Iterator<Item = u32>,
    ) -> io::Result<()> {
        if !self.stack {
            return table.write(out, style);
        }
        let mut text = Vec::new();
        table.write(&mut text, style)?;
        let text = String::from_utf8_lossy(&text);
        // A title, a line for each row, and totals.
        let mut lines = text.lines();
        if let Some(title) = lines.next() {
            writeln!(out, "{title}")?;
        }
        for serial in serials {
            if let Some(line) = lines.next() {
                writeln!(out, "{line}")?;
            }
            Stack::new(traces, serial, self.depth).write(out, style, INDENT)?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// The frames of a trace that are shown.
pub(crate) struct Stack<'a> {
    /// Whether there is such a trace.
    is_known: bool,
    frames: Vec<&'a Frame>,
    left_out: usize,
}

impl<'a> Stack<'a> {
    /// The `depth` innermost frames; 0 or `None` for all.
    pub(crate) fn new(traces: &'a Traces, serial: u32, depth: Option<usize>) -> Self {
        let depth = depth.filter(|depth| *depth > 0).unwrap_or(usize::MAX);
        let Some(trace) = traces.get(serial) else {
            return Self { is_known: false, frames: Vec::new(), left_out: 0 };
        };
        let frames = traces.frames(trace);
        let left_out = frames.len().saturating_sub(depth);
        Self { is_known: true, frames: frames.take(depth).collect(), left_out }
    }

    /// The frames that are shown, innermost first.
    pub(crate) fn frames(&self) -> &[&'a Frame] {
        &self.frames
    }

    /// Frames that are not shown.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// The frames as JSON has them.
    pub(crate) fn json(&self) -> Vec<FrameOut<'a>> {
        self.frames.iter().map(|frame| FrameOut::new(frame)).collect()
    }

    /// The frames as a cell of CSV: a JSON list of texts.
    pub(crate) fn cell(&self) -> String {
        let frames: Vec<String> = self.frames.iter().map(ToString::to_string).collect();
        escape::cell(&serde_json::json!(frames).to_string()).into_owned()
    }

    /// Writes the frames, one a line.
    pub(crate) fn write(&self, out: &mut dyn Write, style: Style, indent: usize) -> io::Result<()> {
        let room = style.width.map(|width| usize::from(width).saturating_sub(indent).max(table::NARROWEST));
        let mut line = |text: &str| {
            let text = escape::text(text);
            match room {
                Some(room) => writeln!(out, "{:indent$}{}", "", table::shorten(&text, room)),
                None => writeln!(out, "{:indent$}{text}", ""),
            }
        };
        if !self.is_known {
            line("<no trace>")?;
        } else if self.frames.is_empty() {
            line("<empty>")?;
        }
        for frame in &self.frames {
            line(&frame.to_string())?;
        }
        if self.left_out > 0 {
            line(&format!("… {} more frames", self.left_out))?;
        }
        Ok(())
    }
}

/// A frame in JSON.
#[derive(Serialize)]
pub(crate) struct FrameOut<'a> {
    class: Option<&'a str>,
    method: Option<&'a str>,
    source: Option<&'a str>,
    line: Option<u32>,
    native: bool,
}

/// The line number of a native method.
const NATIVE: i32 = -3;

/// Whether a frame is of a native method.
pub(crate) fn is_native(frame: &Frame) -> bool {
    frame.line == NATIVE
}

impl<'a> FrameOut<'a> {
    fn new(frame: &'a Frame) -> Self {
        Self {
            class: frame.class.as_deref(),
            method: frame.method.as_deref(),
            source: frame.source.as_deref(),
            line: frame.line(),
            native: is_native(frame),
        }
    }
}

/// A percentage in a table, as the reports print it.
pub(crate) fn percent(percent: f64) -> String {
    format!("{percent:.2}%")
}
