//! Settings of a worker: its limits, and that it ends with the process that started it.

use std::io::{self, BufRead};
#[cfg(any(feature = "serve", feature = "browse"))]
use std::sync::mpsc::{Receiver, channel};

use serde::{Deserialize, Serialize};

use crate::cli::shared::spool::{self, PipeCopy};

/// Environment variable that makes a process a worker; it contains the [`WorkerTerms`].
const WORKER: &str = "HPROF_CLI_WORKER";

/// Settings of a worker process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WorkerTerms {
    /// Maximum number of bytes that the worker may allocate.
    pub(crate) memory: Option<u64>,
    /// `true` if the worker has a lower priority.
    pub(crate) is_background: bool,
    /// `true` if queries arrive on stdin. Otherwise the arguments are the query.
    pub(crate) takes_questions: bool,
    /// The copies of pipes among the dumps; when a worker is started, the copies of this process are used.
    pub(crate) copies: Vec<PipeCopy>,
}

impl WorkerTerms {
    /// Returns the environment variable, name and value, that makes a process a worker of this one.
    pub(super) fn variable(&self) -> (&'static str, String) {
        let terms = Self { copies: spool::copies().to_vec(), ..self.clone() };
        (WORKER, serde_json::to_string(&terms).unwrap_or_default())
    }
}

/// Returns whether this process works for a client that may only read the dumps: it must not reveal which other files exist.
pub(crate) fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// If this process is a worker, applies the settings and makes the process end with its parent.
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

/// Returns a receiver of the queries that arrive on stdin, one per line.
#[cfg(any(feature = "serve", feature = "browse"))]
pub(crate) fn questions() -> io::Result<Receiver<String>> {
    let (sender, receiver) = channel();
    end_with_stdin(move |line| sender.send(line).is_ok())?;
    Ok(receiver)
}

/// Reads lines from stdin on a separate thread, as long as `take` returns `true`. At the end of stdin the parent has ended:
/// this process ends, whatever it is doing.
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
        // If no limit is possible, the query may use all memory of the machine.
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(bytes), maximum });
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// Lowers the priority of this process.
fn lower_priority() {
    #[cfg(unix)]
    {
        // If that is not possible, all processes have the same priority.
        let _ = rustix::process::nice(10);
    }
}
