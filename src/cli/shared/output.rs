//! Writing an answer to stdout.

use std::io::{self, BufWriter, Write};

use crate::report::table::Style;

use super::args::Output;
use super::terminal;

/// Standard output, buffered. Flushed by [`finish`].
pub(crate) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes out what is left.
pub(crate) fn finish(mut out: BufWriter<io::StdoutLock<'static>>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}

/// Writes out what is left, if it is right; else what is still in the buffer is thrown away. Dropping would write it.
pub(crate) fn finish_if(
    out: BufWriter<io::StdoutLock<'static>>,
    check: anyhow::Result<()>,
) -> anyhow::Result<()> {
    match check {
        Ok(()) => finish(out),
        Err(error) => {
            drop(out.into_parts());
            Err(error)
        }
    }
}

/// How tables are shown on this stdout.
pub(crate) fn style(output: &Output) -> Style {
    terminal::style_of(output.color)
}

/// A time of a dump as RFC 3339; `None` for 0 and for what no calendar holds.
pub(crate) fn timestamp(milliseconds: u64) -> Option<String> {
    crate::query::recordings::profile::rfc3339(milliseconds, 0)
}
