//! The connection to the worker, which is started on demand, and killed to cancel a question.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hprof_query::share::percent;

use super::core::{Question, ScreenAnswer};
use super::wire::{ScreenMessage, WireAnswer, WireQuestion};
use crate::cli::shared::worker::{WorkerEvent, WorkerProcess, WorkerProgress, WorkerTerms};

/// Questions that take longer are cancelled by the next one; shorter ones are answered first.
const SHORT: Duration = Duration::from_millis(300);
/// Time for a process to remove its temporary files.
const PATIENCE: Duration = Duration::from_secs(1);

/// Message from the process.
#[derive(Debug)]
pub(super) enum ScreenEvent {
    Answer(u64, ScreenAnswer),
    /// Lines that are shown until the answer arrives.
    Early(u64, ScreenAnswer),
    Progress(u64, String),
    /// The process with this number has ended.
    Ended(u64),
}

/// Receiver of messages, on any thread.
pub(super) type EventSink = Arc<dyn Fn(ScreenEvent) + Send + Sync>;

/// The process that answers, if one is running.
pub(super) struct Link {
    /// Path of the program at the start.
    program: PathBuf,
    /// Arguments of the process.
    arguments: Vec<OsString>,
    hear: EventSink,
    process: Option<AnsweringProcess>,
    /// Number of the last process.
    count: u64,
    /// `true` if the index is ready. Before that, the process builds it, and is not restarted for each view.
    has_index: bool,
}

struct AnsweringProcess {
    process: WorkerProcess,
    /// The question that it answers.
    asked: Option<AskedQuestion>,
    /// The number of the question for which it was started.
    first: Option<u64>,
}

/// A question that was written to a process.
struct AskedQuestion {
    number: u64,
    since: Instant,
    question: Arc<WireQuestion>,
    /// `true` if the process has sent a message about it.
    is_read: bool,
}

impl Link {
    /// Creates a link that starts processes of a program with these arguments.
    pub(super) fn new(program: PathBuf, arguments: Vec<OsString>, hear: EventSink) -> Self {
        Self { program, arguments, hear, process: None, count: 0, has_index: false }
    }

    /// Asks a question. A long one that is being answered is cancelled.
    ///
    /// # Errors
    /// If no process can be started.
    pub(super) fn ask(&mut self, question: Question) -> anyhow::Result<()> {
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
            process.asked = Some(AskedQuestion { number, since: Instant::now(), question, is_read: false });
        }
        Ok(())
    }

    /// Records that the index is ready.
    pub(super) fn has_index(&mut self) {
        self.has_index = true;
    }

    /// Records that a process has sent a message about a question.
    pub(super) fn is_read(&mut self, number: u64) {
        let asked = self.process.as_mut().and_then(|process| process.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| asked.number == number) {
            asked.is_read = true;
        }
    }

    /// Records that a question is answered.
    pub(super) fn note_answer(&mut self, number: u64) {
        self.has_index = true;
        if let Some(process) = &mut self.process
            && process.asked.as_ref().is_some_and(|asked| asked.number == number)
        {
            process.asked = None;
        }
    }

    /// Handles the end of a process. A question that it may not have read is sent to another process: for a moment, writing to
    /// a killed process still succeeds. A process has read the question for which it was started. Returns the number of the
    /// question that remains unanswered.
    pub(super) fn note_end(&mut self, number: u64) -> Option<u64> {
        if number != self.count {
            return None;
        }
        let AnsweringProcess { asked, first, .. } = self.process.take()?;
        let AskedQuestion { number, question, is_read, .. } = asked?;
        let is_lost = !is_read && first != Some(number);
        let is_asked_again = is_lost && self.send(number, &question).is_ok();
        Some(number).filter(|_| !is_asked_again)
    }

    /// Ends the process, regardless of its state.
    pub(super) fn cancel(&mut self) {
        if let Some(process) = self.process.take() {
            std::thread::spawn(move || process.process.end(PATIENCE));
        }
    }

    fn start(&mut self) -> anyhow::Result<AnsweringProcess> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stderr(Stdio::null());
        let terms = WorkerTerms { takes_questions: true, ..WorkerTerms::default() };
        let mut process = WorkerProcess::start(&mut command, &terms).context("cannot start a process")?;
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

/// Reads the body of an answer.
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
