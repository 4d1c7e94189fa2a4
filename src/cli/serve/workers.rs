//! Worker processes of the server: started on demand, reused while idle, killed when their question is cancelled.

use std::process::{Command, Stdio};

use anyhow::Context;
use tokio::sync::mpsc::{Receiver, channel};

use super::worker::{PageMessage, PageQuestion};
use crate::cli::pages::Reply;
use crate::cli::pages::site::Site;
use crate::cli::shared::worker::{WorkerEvent, WorkerProcess, WorkerProgress, WorkerTerms};
use hprof_index::storage::memory;

/// Number of questions after which a worker is replaced, in case it leaks memory.
const MAX_QUESTIONS: u32 = 5000;
/// Maximum number of pending events; a worker that sends more has to wait.
const MAX_EVENTS: usize = 4;

/// Returns the default memory limit of a question in bytes: a quarter of the memory that this process may use.
pub(super) fn share_of_memory() -> u64 {
    memory::available(None).map_or(2 << 30, |available| available.bytes / 4)
}

/// A worker process, which is killed on drop.
#[derive(Debug)]
pub(super) struct Worker {
    process: WorkerProcess,
    events: Receiver<WorkerEvent<PageMessage>>,
    questions: u32,
    kind: WorkerKind,
}

/// Kind of questions that a worker handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerKind {
    Short,
    /// Long questions: the worker has a lower priority.
    Long,
}

/// Event from a worker process.
#[derive(Debug)]
pub(super) enum PageEvent {
    Progress(WorkerProgress),
    Summary,
    Opened(Option<String>),
    Reply(Reply),
}

impl Worker {
    /// Starts a worker. `memory` limits its allocations; building indexes has its own budget.
    pub(super) fn start(site: &Site, memory: Option<u64>, kind: WorkerKind) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").args(&site.options).args(&site.frameworks);
        if site.hides_values {
            command.arg("--no-values");
        }
        if let Some(baseline) = &site.baseline {
            command.arg("--baseline").arg(baseline);
        }
        if let Some(recording) = &site.recording {
            command.arg("--recording").arg(recording);
        }
        if let Some(process) = &site.process {
            command.arg("--process").arg(process);
        }
        command.arg("--").args(&site.dumps).stderr(Stdio::null());
        let is_background = kind == WorkerKind::Long;
        let terms = WorkerTerms { memory, is_background, takes_questions: true, ..WorkerTerms::default() };
        let mut process =
            WorkerProcess::start(&mut command, &terms).context("cannot start a worker process")?;
        let (sender, events) = channel(MAX_EVENTS);
        process.hear(move |event| sender.blocking_send(event).is_ok())?;
        Ok(Self { process, events, questions: 0, kind })
    }

    /// Returns the kind of questions that the worker handles.
    pub(super) fn kind(&self) -> WorkerKind {
        self.kind
    }

    /// Returns whether the worker may be used for another question.
    pub(super) fn is_fresh(&self) -> bool {
        self.questions < MAX_QUESTIONS
    }

    /// Sends a question, as a line. A worker reads it at once, even while it is busy.
    pub(super) fn ask(&mut self, question: &PageQuestion) -> anyhow::Result<()> {
        self.questions += 1;
        Ok(self.process.ask(question)?)
    }

    /// Waits for the next event of the worker. If the future is dropped, no event is lost.
    pub(super) async fn hear(&mut self) -> anyhow::Result<PageEvent> {
        Ok(match self.events.recv().await.context("the worker process ended unexpectedly")? {
            WorkerEvent::Progress(progress) => PageEvent::Progress(progress),
            WorkerEvent::Message(PageMessage::Summary, _) => PageEvent::Summary,
            WorkerEvent::Message(PageMessage::Opened(error), _) => PageEvent::Opened(error),
            WorkerEvent::Message(PageMessage::Reply { status, content_type, location }, body) => {
                let content_type = static_content_type(&content_type);
                PageEvent::Reply(Reply { status, content_type, body: body.into(), location })
            }
            WorkerEvent::Ended(error) => return Err(error),
        })
    }
}

/// Returns the content type as a static string; for an unknown type, HTML.
fn static_content_type(content_type: &str) -> &'static str {
    use crate::cli::pages::{CSV, HTML, JSON};
    [JSON, CSV].into_iter().find(|known| *known == content_type).unwrap_or(HTML)
}
