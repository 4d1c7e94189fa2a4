//! Processes of this program that answer questions for another one: they end with it, and keep to its limits.

use std::io::{self, BufRead};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spool::{self, Copied};

/// Environment variable that makes `serve` a worker.
pub(crate) const WORKER: &str = "HPROF_CLI_WORKER";

/// Environment variable of a command that answers a call: its [`CallTerms`].
const CALL: &str = "HPROF_CLI_CALL";

/// What a command that answers a call has to know about it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct CallTerms {
    /// Maximum number of bytes that it may allocate.
    pub(crate) memory: Option<u64>,
    /// Whether others go first.
    pub(crate) is_background: bool,
    /// The dumps that are copies of pipes.
    pub(crate) copies: Vec<Copied>,
}

impl CallTerms {
    /// Returns the variable that makes a command keep to them.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        (CALL, serde_json::to_string(self).unwrap_or_default())
    }
}

/// Maximum time of a question.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct QuestionTime {
    /// Cancel a query that runs longer than this
    #[arg(
        long = "question-time",
        id = "question_time",
        value_name = "TIME",
        value_parser = duration,
        default_value = "10m",
        help_heading = "Limits"
    )]
    pub(crate) time: Duration,
}

/// Parses a duration: `90s`, `30m`, `1h 30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a valid duration; use for example 90s, 30m or 2h");
    let duration: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).ok().filter(|duration| !duration.is_zero()).ok_or_else(wrong)
}

/// Returns whether this process answers for somebody who may only read the dumps: it must not say which other files exist.
pub(crate) fn is_child() -> bool {
    [WORKER, CALL].iter().any(|name| std::env::var_os(name).is_some())
}

/// Makes this process end with its parent and keep to the terms of its call, if it answers one.
pub(crate) fn begin() -> io::Result<()> {
    let Some(terms) = std::env::var_os(CALL) else { return Ok(()) };
    let terms: CallTerms = serde_json::from_str(&terms.to_string_lossy())?;
    if let Some(bytes) = terms.memory {
        limit(bytes);
    }
    if terms.is_background {
        step_back();
    }
    if !terms.copies.is_empty() {
        spool::take_over(terms.copies);
    }
    end_with_stdin(|_| true)
}

/// Reads lines of stdin on a separate thread, as long as `take` returns `true`. At the end of stdin the parent is gone: this
/// process ends, whatever it is doing.
pub(crate) fn end_with_stdin(take: impl Fn(String) -> bool + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            if !take(line) {
                break;
            }
        }
        std::process::exit(0);
    })?;
    Ok(())
}

/// Limits the memory that this process may allocate. Mapped files do not count.
pub(crate) fn limit(bytes: u64) {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Data).maximum;
        let bytes = maximum.map_or(bytes, |maximum| maximum.min(bytes));
        // Where no limit is possible, the question may use the memory of the machine.
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum });
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// Lowers the priority of this process.
pub(crate) fn step_back() {
    #[cfg(unix)]
    {
        // Where that is not possible, all processes are equal.
        let _ = rustix::process::nice(10);
    }
}
