//! Worker processes: started on demand, kept while idle, killed when their question is cancelled.

use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::worker::{LONG, Said, WorkerRequest};
use crate::cli::pages::Reply;
use crate::cli::pages::site::Site;
use crate::cli::shared::child::WORKER;
use crate::cli::shared::spool;
use hprof_index::storage::memory;

/// Number of questions after which a worker is replaced, in case it leaks memory.
const MAX_QUESTIONS: u32 = 5000;
/// Maximum size of a page or document.
const MAX_BODY: usize = 66 << 20;
/// Maximum length of a line.
const MAX_LINE: u64 = 1 << 20;

/// Returns the default memory limit of a question: a quarter of the memory that this process may use.
pub(super) fn share_of_memory() -> u64 {
    memory::available(None).map_or(2 << 30, |available| available.bytes / 4)
}

/// A worker.
#[derive(Debug)]
pub(super) struct Worker {
    /// Killed on drop.
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    questions: u32,
    kind: WorkerKind,
}

/// Kind of questions that a worker answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerKind {
    Short,
    /// Long questions: their workers have a lower priority.
    Long,
}

/// Message from a worker, with the body of a reply.
#[derive(Debug)]
pub(super) enum Heard {
    Said(Said),
    Reply(Reply),
}

impl Worker {
    /// Starts a worker. `memory` limits its allocations; building indexes has a budget of its own.
    pub(super) fn start(site: &Site, memory: Option<u64>, kind: WorkerKind) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let variable = if kind == WorkerKind::Long { LONG } else { "1" };
        command.arg("serve").env(WORKER, variable).args(&site.options).args(&site.frameworks);
        if let Some(bytes) = memory {
            command.arg(format!("--question-memory={bytes}"));
        }
        if site.hides_values {
            command.arg("--no-values");
        }
        if let Some(baseline) = &site.baseline {
            command.arg("--baseline").arg(baseline);
        }
        command.arg("--").args(&site.dumps);
        // Out of memory, a backtrace could not be created and would hang.
        command.env("RUST_BACKTRACE", "0").env("RUST_LIB_BACKTRACE", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start a process")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.context("cannot open pipes to the process")?;
        Ok(Self { _child: child, stdin, stdout: BufReader::new(stdout), questions: 0, kind })
    }

    /// Returns the kind of questions that it answers.
    pub(super) fn kind(&self) -> WorkerKind {
        self.kind
    }

    /// Returns whether it may be used again.
    pub(super) fn is_fresh(&self) -> bool {
        self.questions < MAX_QUESTIONS
    }

    /// Sends a question.
    pub(super) async fn ask(&mut self, question: &WorkerRequest) -> anyhow::Result<()> {
        let copies = spool::copies();
        if self.questions == 0 && !copies.is_empty() {
            self.tell(&WorkerRequest::Copies(copies.to_vec())).await?;
        }
        self.questions += 1;
        self.tell(question).await
    }

    async fn tell(&mut self, question: &WorkerRequest) -> anyhow::Result<()> {
        let line = serde_json::to_string(question)? + "\n";
        Ok(self.stdin.write_all(line.as_bytes()).await?)
    }

    /// Waits for its next message.
    pub(super) async fn hear(&mut self) -> anyhow::Result<Heard> {
        let mut line = String::new();
        let read = (&mut self.stdout).take(MAX_LINE).read_line(&mut line).await?;
        anyhow::ensure!(read > 0, "the process ended");
        Ok(match serde_json::from_str(&line)? {
            Said::Reply { status, content_type, location, bytes } => {
                anyhow::ensure!(
                    bytes <= MAX_BODY,
                    "the answer is too long: {bytes} bytes; ask for fewer rows, or in the shell"
                );
                let mut body = vec![0; bytes];
                self.stdout.read_exact(&mut body).await?;
                Heard::Reply(Reply {
                    status,
                    content_type: known(&content_type),
                    body: body.into(),
                    location,
                })
            }
            said => Heard::Said(said),
        })
    }
}

/// Returns the content type as a static text; unknown ones become HTML.
fn known(content_type: &str) -> &'static str {
    use crate::cli::pages::{CSV, HTML, JSON};
    [JSON, CSV].into_iter().find(|known| *known == content_type).unwrap_or(HTML)
}
