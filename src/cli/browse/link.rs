//! The connection to the worker, which is started on demand, and killed to cancel a request.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hprof_query::share::percent;

use super::core::{ScreenAnswer, ScreenRequest};
use super::wire::{ScreenMessage, WireAnswer, WireQuestion};
use crate::cli::shared::worker::{WorkerEvent, WorkerProcess, WorkerProgress, WorkerTerms};

/// Duration after which the next request cancels a running one; shorter requests are completed first.
const SHORT: Duration = Duration::from_millis(300);
/// Time that a process gets to remove its temporary files.
const PATIENCE: Duration = Duration::from_secs(1);

/// Event from the worker process.
#[derive(Debug)]
pub(super) enum ScreenEvent {
    Answer(u64, ScreenAnswer),
    /// Preliminary lines for a request.
    Early(u64, ScreenAnswer),
    Progress(u64, String),
    /// The process with this number has ended.
    Ended(u64),
}

/// Function that receives the worker's events, on any thread.
pub(super) type EventSink = Arc<dyn Fn(ScreenEvent) + Send + Sync>;

/// The connection to the worker process, if one is running.
pub(super) struct Link {
    /// Path of this program's executable, determined at the start.
    program: PathBuf,
    /// Arguments of the worker process.
    arguments: Vec<OsString>,
    hear: EventSink,
    process: Option<AnsweringProcess>,
    /// Number of the last process that was started.
    count: u64,
    /// `true` if the index is ready. Before that, the process is building it, and is not restarted for each view.
    has_index: bool,
}

/// A running worker process.
struct AnsweringProcess {
    process: WorkerProcess,
    /// The pending request.
    asked: Option<PendingQuery>,
    /// The number of the request for which the process was started.
    first: Option<u64>,
}

/// A request that was written to a process.
struct PendingQuery {
    number: u64,
    since: Instant,
    question: Arc<WireQuestion>,
    /// `true` if the process has sent a message about the request.
    is_read: bool,
}

impl Link {
    /// Creates a connection that starts processes of a program with these arguments.
    pub(super) fn new(program: PathBuf, arguments: Vec<OsString>, hear: EventSink) -> Self {
        Self { program, arguments, hear, process: None, count: 0, has_index: false }
    }

    /// Sends a request. If a long one is running, it is cancelled.
    ///
    /// # Errors
    /// If no process can be started.
    pub(super) fn ask(&mut self, question: ScreenRequest) -> anyhow::Result<()> {
        let asked = self.process.as_ref().and_then(|process| process.asked.as_ref());
        if self.has_index && asked.is_some_and(|asked| asked.since.elapsed() > SHORT) {
            self.cancel();
        }
        let number = question.number;
        let question = Arc::new(question.into());
        // The process may just have ended; if so, another one is started.
        if self.send(number, &question).is_err() {
            self.cancel();
            self.send(number, &question)?;
        }
        Ok(())
    }

    fn send(&mut self, number: u64, question: &Arc<WireQuestion>) -> anyhow::Result<()> {
        if self.process.is_none() {
            self.process = Some(self.start()?);
        }
        if let Some(process) = &mut self.process {
            process.process.ask(&**question)?;
            process.first.get_or_insert(number);
            let question = question.clone();
            process.asked = Some(PendingQuery { number, since: Instant::now(), question, is_read: false });
        }
        Ok(())
    }

    /// Records that the index is ready.
    pub(super) fn note_index(&mut self) {
        self.has_index = true;
    }

    /// Records that the process has sent a message about a request.
    pub(super) fn note_read(&mut self, number: u64) {
        let asked = self.process.as_mut().and_then(|process| process.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| asked.number == number) {
            asked.is_read = true;
        }
    }

    /// Records that a request is completed.
    pub(super) fn note_answer(&mut self, number: u64) {
        self.has_index = true;
        if let Some(process) = &mut self.process
            && process.asked.as_ref().is_some_and(|asked| asked.number == number)
        {
            process.asked = None;
        }
    }

    /// Handles the end of a process. A request that it may not have read is sent to another process: for a moment, writing to
    /// a killed process still succeeds. A process has read the request for which it was started. Returns the number of the
    /// request that remains without a result.
    pub(super) fn note_end(&mut self, number: u64) -> Option<u64> {
        if number != self.count {
            return None;
        }
        let AnsweringProcess { asked, first, .. } = self.process.take()?;
        let PendingQuery { number, question, is_read, .. } = asked?;
        let is_lost = !is_read && first != Some(number);
        let is_asked_again = is_lost && self.send(number, &question).is_ok();
        Some(number).filter(|_| !is_asked_again)
    }

    /// Kills the process, regardless of its state.
    pub(super) fn cancel(&mut self) {
        if let Some(process) = self.process.take() {
            std::thread::spawn(move || process.process.end(PATIENCE));
        }
    }

    fn start(&mut self) -> anyhow::Result<AnsweringProcess> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stderr(Stdio::null());
        let terms = WorkerTerms { takes_questions: true, ..WorkerTerms::default() };
        let mut process =
            WorkerProcess::start(&mut command, &terms).context("cannot start a worker process")?;
        self.count += 1;
        let (hear, process_number) = (self.hear.clone(), self.count);
        process.hear(move |event| {
            let heard = match event {
                WorkerEvent::Progress(progress) => {
                    Some(ScreenEvent::Progress(progress.question, text(&progress)))
                }
                WorkerEvent::Message(ScreenMessage::Answer(number), body) => {
                    answer(&body).map(|answer| ScreenEvent::Answer(number, answer))
                }
                WorkerEvent::Message(ScreenMessage::Early(number), body) => {
                    answer(&body).map(|answer| ScreenEvent::Early(number, answer))
                }
                WorkerEvent::Ended(_) => None,
            };
            let goes_on = heard.is_some();
            hear(heard.unwrap_or(ScreenEvent::Ended(process_number)));
            goes_on
        })?;
        Ok(AnsweringProcess { process, asked: None, first: None })
    }
}

/// Deserializes a result.
fn answer(body: &[u8]) -> Option<ScreenAnswer> {
    serde_json::from_slice::<WireAnswer>(body).ok().map(ScreenAnswer::from)
}

/// Formats progress: the stage, and a percentage if the total is known.
fn text(progress: &WorkerProgress) -> String {
    let WorkerProgress { stage, done, total, .. } = progress;
    match *total {
        0 => stage.clone(),
        total => format!("{stage} {}%", percent(total.min(*done), total)),
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            process.process.end(PATIENCE);
        }
    }
}
