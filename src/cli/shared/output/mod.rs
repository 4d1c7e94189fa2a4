//! Writing an answer to stdout.

pub(crate) mod file;

use std::io::{self, BufWriter, Write};

use hprof_report::table::Style;

use crate::cli::shared::args::Output;
use crate::cli::shared::context::{RunContext, Taken};

/// Where answers go: standard output, or what takes them.
pub(crate) enum Sink<'c> {
    Stdout(io::StdoutLock<'static>),
    Taken(&'c Taken),
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Taken(taken) => taken.take_bytes(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Taken(_) => Ok(()),
        }
    }
}

/// Where answers go, buffered. Flushed by [`finish`].
pub(crate) type Out<'c> = BufWriter<Sink<'c>>;

impl RunContext {
    /// Where the answer goes.
    pub(crate) fn out(&self) -> Out<'_> {
        let sink = self.taken.as_ref().map_or_else(|| Sink::Stdout(io::stdout().lock()), Sink::Taken);
        BufWriter::with_capacity(1 << 16, sink)
    }
}

/// Writes out what is left.
pub(crate) fn finish(mut out: Out<'_>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}

/// Writes out what is left, if it is right; else what is still in the buffer is thrown away. Dropping would write it.
pub(crate) fn finish_if(out: Out<'_>, check: anyhow::Result<()>) -> anyhow::Result<()> {
    match check {
        Ok(()) => finish(out),
        Err(error) => {
            drop(out.into_parts());
            Err(error)
        }
    }
}

/// How tables are shown where the answer goes. Lines of Markdown are as long as they are.
pub(crate) fn style<const MARKDOWN: bool>(cx: &RunContext, output: &Output<MARKDOWN>) -> Style {
    if output.is_markdown() { Style::default() } else { cx.style(output.color) }
}

/// A time of a dump as RFC 3339; `None` for 0 and for what no calendar holds.
pub(crate) fn timestamp(milliseconds: u64) -> Option<String> {
    hprof_query::recordings::profile::rfc3339(milliseconds, 0)
}
