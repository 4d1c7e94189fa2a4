//! Writing results to stdout.

pub(crate) mod background;
pub(crate) mod file;

use std::io::{self, BufWriter, Write};

use hprof_report::table::Style;

use crate::cli::shared::args::Output;
use crate::cli::shared::context::{OutputCapture, RunContext};

/// Destination of results: standard output, or a capture.
pub(crate) enum Sink<'c> {
    Stdout(io::StdoutLock<'static>),
    Capture(&'c OutputCapture),
}

impl Write for &OutputCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take_bytes(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Capture(taken) => taken.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Capture(taken) => taken.flush(),
        }
    }
}

/// Buffered writer for results, which [`finish`] flushes.
pub(crate) type Out<'c> = BufWriter<Sink<'c>>;

/// Methods that create writers to standard output, or to the capture.
impl RunContext {
    /// Returns a buffered writer.
    pub(crate) fn writer(&self) -> Out<'_> {
        let sink = self.capture.as_ref().map_or_else(|| Sink::Stdout(io::stdout().lock()), Sink::Capture);
        BufWriter::with_capacity(1 << 16, sink)
    }

    /// Returns an unbuffered writer for threads that write in turn.
    pub(crate) fn shared_writer(&self) -> Box<dyn Write + Send + '_> {
        match &self.capture {
            None => Box::new(io::stdout()),
            Some(taken) => Box::new(taken),
        }
    }
}

/// Flushes a writer for results.
pub(crate) fn finish(mut out: Out<'_>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}

/// Flushes the output if `check` succeeds; otherwise discards the buffer, which dropping would write.
pub(crate) fn finish_if(out: Out<'_>, check: anyhow::Result<()>) -> anyhow::Result<()> {
    match check {
        Ok(()) => finish(out),
        Err(error) => {
            drop(out.into_parts());
            Err(error)
        }
    }
}

/// Returns the style of tables on stdout or in the capture. Lines of Markdown are never wrapped.
pub(crate) fn style(cx: &RunContext, output: &Output) -> Style {
    if output.is_markdown() { Style::default() } else { cx.style(output.color) }
}

/// Formats a time in milliseconds since 1970 as RFC 3339; `None` for 0 and for times outside the calendar.
pub(crate) fn timestamp(milliseconds: u64) -> Option<String> {
    hprof_query::recordings::profile::rfc3339(milliseconds, 0)
}
