//! Writing an answer to stdout.

pub(crate) mod file;

use std::io::{self, BufWriter, Write};

use hprof_report::table::Style;

use crate::cli::shared::args::Output;
use crate::cli::shared::{desk, terminal};

/// Destination of answers: standard output, or a listener.
pub(crate) enum Sink {
    Stdout(io::StdoutLock<'static>),
    Desk,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Desk => desk::bytes(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Desk => Ok(()),
        }
    }
}

/// Buffered destination of answers. Flushed by [`finish`].
pub(crate) type Out = BufWriter<Sink>;

/// Returns standard output, or the listener.
pub(crate) fn stdout() -> Out {
    let sink = if desk::form().is_some() { Sink::Desk } else { Sink::Stdout(io::stdout().lock()) };
    BufWriter::with_capacity(1 << 16, sink)
}

/// Flushes the output.
pub(crate) fn finish(mut out: Out) -> anyhow::Result<()> {
    Ok(out.flush()?)
}

/// Flushes the output if `check` succeeds; otherwise discards the buffer, which dropping would write.
pub(crate) fn finish_if(out: Out, check: anyhow::Result<()>) -> anyhow::Result<()> {
    match check {
        Ok(()) => finish(out),
        Err(error) => {
            drop(out.into_parts());
            Err(error)
        }
    }
}

/// Returns the style of tables on this stdout. Lines of Markdown are never wrapped.
pub(crate) fn style<const MARKDOWN: bool>(output: &Output<MARKDOWN>) -> Style {
    if output.is_markdown() { Style::default() } else { terminal::style_of(output.color) }
}

/// Formats a time of a dump as RFC 3339; `None` for 0 and for times outside the calendar.
pub(crate) fn timestamp(milliseconds: u64) -> Option<String> {
    hprof_query::recordings::profile::rfc3339(milliseconds, 0)
}
