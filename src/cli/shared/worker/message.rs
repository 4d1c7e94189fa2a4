//! Messages between a worker and the process that started it, for workers that handle several queries.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hprof_index::Progress;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::WorkerProcess;
use crate::cli::shared::context::lock;

/// Maximum length of a line in bytes.
const MAX_LINE: u64 = 1 << 20;
/// Maximum size of a body in bytes.
const MAX_BODY: usize = 66 << 20;
/// Minimum time between two messages about the progress of one stage.
const RATE: Duration = Duration::from_millis(100);

/// Line from a worker: progress, or a message of the type `M` of one command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum WorkerMessage<M> {
    Progress(WorkerProgress),
    /// A message, and the size in bytes of the body that follows the line.
    Message(M, usize),
}

/// Progress of a query.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct WorkerProgress {
    /// Number of the query, or 0 if it has none.
    pub(crate) question: u64,
    pub(crate) stage: String,
    /// Number of bytes or objects that are done.
    pub(crate) done: u64,
    /// Total number of bytes or objects.
    pub(crate) total: u64,
}

/// Event from a worker, for the process that started it.
#[derive(Debug)]
pub(crate) enum WorkerEvent<M> {
    Progress(WorkerProgress),
    /// A message and its body.
    Message(M, Vec<u8>),
    /// The worker has ended, or its output is invalid, for this reason. The last event.
    Ended(anyhow::Error),
}

impl WorkerProcess {
    /// Sends a query to the worker.
    ///
    /// # Errors
    /// If the worker has ended.
    pub(crate) fn ask(&mut self, question: &impl Serialize) -> io::Result<()> {
        self.stdin.write_all((serde_json::to_string(question)? + "\n").as_bytes())
    }

    /// Passes all events to `take` on a separate thread, as long as `take` returns `true`; then the worker is killed.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn hear<M: DeserializeOwned>(
        &mut self,
        mut take: impl FnMut(WorkerEvent<M>) -> bool + Send + 'static,
    ) -> io::Result<()> {
        let Some(stdout) = self.stdout.take() else { return Ok(()) };
        let child = self.killer();
        std::thread::Builder::new().spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let ended = loop {
                match receive(&mut stdout).map(&mut take) {
                    Ok(true) => {}
                    Ok(false) => break None,
                    Err(error) => break Some(error),
                }
            };
            child.kill();
            let _ = child.wait();
            ended.map(|error| take(WorkerEvent::Ended(error)));
        })?;
        Ok(())
    }
}

/// Reads the next message of a worker.
fn receive<M: DeserializeOwned>(stdout: &mut impl BufRead) -> anyhow::Result<WorkerEvent<M>> {
    let mut line = String::new();
    let read = stdout.take(MAX_LINE).read_line(&mut line)?;
    anyhow::ensure!(read > 0, "the worker process ended unexpectedly");
    Ok(match serde_json::from_str(&line)? {
        WorkerMessage::Progress(progress) => WorkerEvent::Progress(progress),
        WorkerMessage::Message(message, bytes) => {
            anyhow::ensure!(
                bytes <= MAX_BODY,
                "the answer is too long: {bytes} bytes; request fewer rows, or run the command in a shell"
            );
            let mut body = vec![0; bytes];
            stdout.read_exact(&mut body)?;
            WorkerEvent::Message(message, body)
        }
    })
}

/// Sends a message with its body to the process that started this worker.
pub(crate) fn send<M: Serialize>(message: M, body: &[u8]) {
    write(&WorkerMessage::Message(message, body.len()), body);
}

/// Writes a message. If nobody can read it, the worker ends.
fn write<M: Serialize>(message: &WorkerMessage<M>, body: &[u8]) {
    let line = serde_json::to_string(message).unwrap_or_default();
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.write_all(body)).and_then(|()| out.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

/// Reporter of the progress of a worker's current query.
#[derive(Debug, Default, Clone)]
pub(crate) struct ProgressReporter {
    question: Arc<AtomicU64>,
    reported: Arc<Mutex<ReportedProgress>>,
}

/// Progress of the current query, and the time when it was last sent.
#[derive(Debug, Default)]
struct ReportedProgress {
    stage: String,
    done: u64,
    total: u64,
    /// Time of the last message.
    last: Option<Instant>,
}

impl ProgressReporter {
    /// Sets the number of the query whose progress is reported from now on.
    #[cfg(feature = "browse")]
    pub(crate) fn begin_question(&self, number: u64) {
        self.question.store(number, Ordering::Relaxed);
    }

    /// Changes the progress, and sends it if `change` returns `true` for a new stage, or if the last message was a while ago.
    fn update(&self, change: impl FnOnce(&mut ReportedProgress) -> bool) {
        let mut reported = lock(&self.reported);
        let is_new = change(&mut reported);
        if is_new || reported.last.is_none_or(|last| last.elapsed() >= RATE) {
            reported.last = Some(Instant::now());
            let progress = WorkerProgress {
                question: self.question.load(Ordering::Relaxed),
                stage: reported.stage.clone(),
                done: reported.done,
                total: reported.total,
            };
            write(&WorkerMessage::<()>::Progress(progress), &[]);
        }
    }
}

impl Progress for ProgressReporter {
    fn begin(&self, stage: &str, total: u64) {
        self.update(|reported| {
            let is_new = reported.stage != stage;
            (reported.stage, reported.done, reported.total) = (stage.to_owned(), 0, total);
            is_new
        });
    }

    fn advance(&self, bytes: u64) {
        self.update(|reported| {
            reported.done = reported.done.saturating_add(bytes);
            false
        });
    }

    fn end(&self) {}
}
