//! Events of a text report, with the run of the JVM that each belongs to.

use std::io;

use super::file::TextFile;
use hprof_parser::text::{TextEvent, TextReader};

/// The requested run of a text report does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("run {asked} does not exist: the file contains {}", number_of_runs(*.runs))]
pub struct NoSuchRun {
    /// Number of the requested run.
    pub asked: u32,
    /// Number of runs in the file.
    pub runs: u32,
}

impl NoSuchRun {
    /// Checks that a file with this number of runs has the requested run, from 1; without one the last is meant.
    ///
    /// # Errors
    /// [`NoSuchRun`].
    pub fn check(run: Option<u32>, runs: u32) -> Result<(), Self> {
        match run {
            Some(asked) if asked == 0 || asked > runs => Err(Self { asked, runs }),
            _ => Ok(()),
        }
    }
}

fn number_of_runs(runs: u32) -> String {
    match runs {
        0 => "none".to_owned(),
        1 => "one".to_owned(),
        more => more.to_string(),
    }
}

/// Visits all events of a text report with their run number, from 1, and line number; returns the number of runs. A file
/// contains several runs if the agent appended to it.
///
/// In a compressed file that is truncated or damaged, the last event is a malformed line.
///
/// # Errors
/// If the file cannot be read.
pub fn visit_events(file: &TextFile, mut take: impl FnMut(u32, u64, TextEvent<'_>)) -> io::Result<u32> {
    let mut input = file.reader()?;
    let mut reader = TextReader::new(&mut *input);
    let (mut run, mut has_calls, mut last_line) = (0, false, 0);
    loop {
        match reader.next_event() {
            Ok(Some((line, event))) => {
                last_line = line;
                let begins = match &event {
                    TextEvent::Nothing | TextEvent::Malformed { .. } => false,
                    TextEvent::Header { .. } => true,
                    TextEvent::CallsBegin => has_calls || run == 0,
                    TextEvent::Call { .. } => {
                        has_calls = true;
                        run == 0
                    }
                    _ => run == 0,
                };
                if begins {
                    run += 1;
                    has_calls = false;
                }
                take(run, line, event);
            }
            Ok(None) => return Ok(run),
            // Error of the decompressor, not of the operating system.
            Err(error) if error.raw_os_error().is_none() => {
                let expected = "more data, but the compressed file is truncated or damaged";
                let text = error.to_string();
                take(run, last_line + 1, TextEvent::Malformed { expected, text: text.as_bytes() });
                return Ok(run);
            }
            Err(error) => return Err(error),
        }
    }
}
