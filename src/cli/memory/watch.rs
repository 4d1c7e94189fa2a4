//! `memory PID --watch`: a line each round, with what grew since the round before.

use std::io::Write;
use std::time::{Duration, Instant};

use hprof_capture::Error;
use hprof_memory::growth::{KindChange, changes, difference};
use hprof_memory::{Ledger, Sources};
use hprof_report::number::signed_bytes;

use crate::cli::prelude::*;
use crate::cli::shared::durations::long_time;
use crate::cli::shared::end_request::EndRequest;
use crate::cli::shared::output;

use super::process::LiveProcess;
use super::{MemoryArgs, words};

/// Minimum change of a kind that is worth a word: less is noise of allocators.
const MIN_CHANGE: u64 = 64 << 10;
/// Maximum number of kinds in a line.
const SHOWN: usize = 4;

/// Shows a line each `interval` until Ctrl-C, the end of the process, or the time of `--for`.
pub(super) fn run(
    cx: &RunContext,
    args: &MemoryArgs,
    process: &mut LiveProcess<'_>,
    sources: Sources,
    interval: Duration,
) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        args.output.format() == Format::Table,
        "--watch prints lines, not rows; for rows, run the command again"
    );
    let request = EndRequest::of_signals();
    let start = Instant::now();
    let mut first = Ledger::new(&sources);
    if cx.hides_values {
        first.hide_files();
    }
    let mut last = first.clone();
    print(cx, &format!("{:>6}  {:>10}  {}", "time", "process", words::largest(&first)))?;
    loop {
        let left = args.duration.map_or(Duration::MAX, |duration| duration.saturating_sub(start.elapsed()));
        if left.is_zero() || request.wait(interval.min(left)) {
            break;
        }
        let noted = process.notes.len();
        let now = match process.ledger() {
            Ok(now) => now,
            Err(error) if has_ended(&error) => {
                cx.emit("note", &format!("process {} has ended", process.pid));
                break;
            }
            Err(error) => return Err(error),
        };
        if let Some(note) = process.notes.get(noted) {
            // What the JVM said before cannot be compared with what the kernel says alone.
            cx.emit("note", note);
            break;
        }
        let changed = text(&changes(&last, &now));
        print(cx, &line(start.elapsed(), &now, &changed))?;
        last = now;
    }
    let grown = changes(&first, &last);
    let total = difference(first.process_bytes.unwrap_or(0), last.process_bytes.unwrap_or(0));
    print(cx, &format!("{} in {}: {}", signed_bytes(total), long_time(start.elapsed()), text(&grown)))?;
    Ok(Outcome::Fine)
}

fn has_ended(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<Error>().map(Error::cause);
    matches!(cause, Some(Error::Ended { .. } | Error::EndedDuring { .. } | Error::NoProcess { .. }))
}

fn line(elapsed: Duration, ledger: &Ledger, changed: &str) -> String {
    format!("{:>6}  {:>10}  {changed}", long_time(elapsed), human_bytes(ledger.process_bytes.unwrap_or(0)))
}

/// Returns the largest changes in words.
fn text(changes: &[KindChange]) -> String {
    let told = changes.iter().filter(|change| change.bytes.unsigned_abs() >= MIN_CHANGE);
    let told: Vec<String> = told
        .take(SHOWN)
        .map(|change| {
            format!("{} {}", signed_bytes(change.bytes), change.kind.map_or(words::UNEXPLAINED, words::kind))
        })
        .collect();
    if told.is_empty() { "no change".to_owned() } else { told.join(", ") }
}

fn print(cx: &RunContext, line: &str) -> anyhow::Result<()> {
    let mut out = cx.writer();
    out.write_all(format!("{line}\n").as_bytes())?;
    output::finish(out)?;
    Ok(())
}
