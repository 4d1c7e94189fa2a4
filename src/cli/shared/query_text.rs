//! Text of queries: reading it from a file or stdin, and showing the position of an error.

use crate::cli::shared::context::RunContext;
use crate::cli::shared::worker::is_worker;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use hprof_report::escape;
use unicode_width::UnicodeWidthStr;

/// Reads a query from a file, or from stdin if the path is `-`. Reads at most one byte more than `longest`.
///
/// # Errors
/// If the text cannot be read, or if it is to be read from stdin in a worker, which has no user's stdin.
pub(crate) fn read(cx: &RunContext, file: &Path, longest: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
    if file == Path::new("-") {
        anyhow::ensure!(
            !cx.is_taking() && !is_worker(),
            "the query is missing, and stdin is not available here"
        );
        std::io::stdin()
            .lock()
            .take(most)
            .read_to_string(&mut text)
            .context("cannot read the query on stdin")?;
    } else {
        let opened = std::fs::File::open(file);
        let read = opened.and_then(|file| file.take(most).read_to_string(&mut text));
        read.with_context(|| format!("cannot read the query in {}", file.display()))?;
    }
    Ok(text)
}

/// Shows a line of a query with a mark below the error; `column` is the number of characters before the error.
pub(crate) fn show_place(cx: &RunContext, line: &str, column: usize) {
    let plain = |text: String| text.replace('\t', " ");
    let before: String = line.chars().take(column).collect();
    // Of a long line, only the part around the error is shown.
    let cut = before.chars().count().saturating_sub(40);
    let around: String = line.chars().skip(cut).take(60).collect();
    let before = plain(before.chars().skip(cut).collect());
    cx.emit("note", &plain(around));
    cx.emit("note", &format!("{}^", " ".repeat(escape::text(&before).width())));
}
