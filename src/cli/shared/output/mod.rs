//! Writing an answer to stdout.

pub(crate) mod file;

use std::io::{self, BufWriter, Write};

use hprof_report::table::Style;

use crate::cli::shared::args::Output;
use crate::cli::shared::{desk, terminal};

/// Where answers go: standard output, or what listens.
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

/// Where answers go, buffered. Flushed by [`finish`].
pub(crate) type Out = BufWriter<Sink>;

/// Standard output, or what listens.
pub(crate) fn stdout() -> Out {
    let sink = if desk::form().is_some() { Sink::Desk } else { Sink::Stdout(io::stdout().lock()) };
    BufWriter::with_capacity(1 << 16, sink)
}

/// Writes out what is left.
pub(crate) fn finish(mut out: Out) -> anyhow::Result<()> {
    Ok(out.flush()?)
}

/// Writes out what is left, if it is right; else what is still in the buffer is thrown away. Dropping would write it.
pub(crate) fn finish_if(out: Out, check: anyhow::Result<()>) -> anyhow::Result<()> {
    match check {
        Ok(()) => finish(out),
        Err(error) => {
            drop(out.into_parts());
            Err(error)
        }
    }
}

/// How tables are shown on this stdout. Lines of Markdown are as long as they are.
pub(crate) fn style<const MARKDOWN: bool>(output: &Output<MARKDOWN>) -> Style {
    if output.is_markdown() { Style::default() } else { terminal::style_of(output.color) }
}

/// A time of a dump as RFC 3339; `None` for 0 and for what no calendar holds.
pub(crate) fn timestamp(milliseconds: u64) -> Option<String> {
    hprof_query::recordings::profile::rfc3339(milliseconds, 0)
}
