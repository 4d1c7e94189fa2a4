//! Terms of a worker: its limits, and the process with which it ends.

use std::io::{self, BufRead};
#[cfg(any(feature = "serve", feature = "browse"))]
use std::sync::mpsc::{Receiver, channel};

use serde::{Deserialize, Serialize};

use crate::cli::shared::spool::{self, PipeCopy};

/// Environment variable of a worker: its [`WorkerTerms`].
const WORKER: &str = "HPROF_CLI_WORKER";

/// Terms of a worker.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WorkerTerms {
    /// Maximum number of bytes that it may allocate.
    pub(crate) memory: Option<u64>,
    /// `true` if it has a lower priority.
    pub(crate) is_background: bool,
    /// `true` if questions arrive on stdin. Otherwise its arguments are the question.
    pub(crate) takes_questions: bool,
    /// The dumps that are copies of pipes; those of this process when a worker is started.
    pub(crate) copies: Vec<PipeCopy>,
}

impl WorkerTerms {
    /// Returns the variable that makes a process of this program a worker for this one.
    pub(super) fn variable(&self) -> (&'static str, String) {
        let terms = Self { copies: spool::copies().to_vec(), ..self.clone() };
        (WORKER, serde_json::to_string(&terms).unwrap_or_default())
    }
}

/// Returns whether this process answers for a client that may only read the dumps: it must not reveal which other files exist.
pub(crate) fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// Applies the terms, and makes this process end with its parent, if it is a worker.
pub(crate) fn begin() -> io::Result<()> {
    let Some(terms) = std::env::var_os(WORKER) else { return Ok(()) };
    let terms: WorkerTerms = serde_json::from_str(&terms.to_string_lossy())?;
    if let Some(bytes) = terms.memory {
        limit_memory(bytes);
    }
    if terms.is_background {
        lower_priority();
    }
    if !terms.copies.is_empty() {
        spool::take_over(terms.copies);
    }
    if terms.takes_questions { Ok(()) } else { end_with_stdin(|_| true) }
}

/// Returns the questions that arrive, each a line.
#[cfg(any(feature = "serve", feature = "browse"))]
pub(crate) fn questions() -> io::Result<Receiver<String>> {
    let (sender, receiver) = channel();
    end_with_stdin(move |line| sender.send(line).is_ok())?;
    Ok(receiver)
}

/// Reads lines of stdin on a separate thread, as long as `take` returns `true`. At the end of stdin the parent is gone: this
/// process ends, whatever it is doing.
fn end_with_stdin(take: impl Fn(String) -> bool + Send + 'static) -> io::Result<()> {
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
fn limit_memory(bytes: u64) {
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
fn lower_priority() {
    #[cfg(unix)]
    {
        // Where that is not possible, all processes are equal.
        let _ = rustix::process::nice(10);
    }
}
