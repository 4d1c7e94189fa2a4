//! The connection to the process that answers: it is started on demand, and killed to cancel a question.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::core::{Question, ScreenAnswer};
use super::wire::{FromWorker, MAX_LINE, ToWorker};
use crate::cli::shared::child::WORKER;
use crate::cli::shared::spool;

/// A question that takes longer is cancelled by the next one; one that takes less is answered before.
const SHORT: Duration = Duration::from_millis(300);
/// Time that a process gets to remove its temporary files.
const PATIENCE: Duration = Duration::from_secs(1);

/// Message from the process.
#[derive(Debug)]
pub(super) enum Heard {
    Answer(u64, ScreenAnswer),
    /// What is shown until the answer comes.
    Early(u64, ScreenAnswer),
    Progress(u64, String),
    /// The process with this number has ended.
    Ended(u64),
}

/// Receiver of messages, on any thread.
pub(super) type Hear = Arc<dyn Fn(Heard) + Send + Sync>;

/// The process that answers, if one is running.
pub(super) struct Link {
    /// The program, as it was found at the start.
    program: PathBuf,
    /// Arguments of the process.
    arguments: Vec<OsString>,
    hear: Hear,
    process: Option<AnsweringProcess>,
    /// Number of the last process.
    count: u64,
    /// Whether the index is ready. Until then it is built, which is not begun again for each view.
    has_index: bool,
}

struct AnsweringProcess {
    child: Child,
    stdin: ChildStdin,
    /// The question that it answers.
    asked: Option<AskedQuestion>,
    /// The number of the question that it was started for.
    first: Option<u64>,
}

/// A question that was written to a process.
struct AskedQuestion {
    number: u64,
    since: Instant,
    line: String,
    /// Whether the process has said something about it.
    is_read: bool,
}

impl Link {
    /// Creates a link that starts processes of a program with these arguments.
    pub(super) fn new(program: PathBuf, arguments: Vec<OsString>, hear: Hear) -> Self {
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
        let line = serde_json::to_string(&ToWorker::Ask(question.into()))? + "\n";
        // A process that ended a moment ago is replaced.
        if self.tell(number, line.clone()).is_err() {
            self.cancel();
            self.tell(number, line)?;
        }
        Ok(())
    }

    fn tell(&mut self, number: u64, line: String) -> anyhow::Result<()> {
        if self.process.is_none() {
            self.process = Some(self.start()?);
        }
        if let Some(process) = &mut self.process {
            process.stdin.write_all(line.as_bytes())?;
            process.first.get_or_insert(number);
            process.asked = Some(AskedQuestion { number, since: Instant::now(), line, is_read: false });
        }
        Ok(())
    }

    /// Notes that the index is ready.
    pub(super) fn has_index(&mut self) {
        self.has_index = true;
    }

    /// Notes that a process has said something about a question.
    pub(super) fn is_read(&mut self, number: u64) {
        let asked = self.process.as_mut().and_then(|process| process.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| asked.number == number) {
            asked.is_read = true;
        }
    }

    /// Notes an answer.
    pub(super) fn answered(&mut self, number: u64) {
        self.has_index = true;
        if let Some(process) = &mut self.process
            && process.asked.as_ref().is_some_and(|asked| asked.number == number)
        {
            process.asked = None;
        }
    }

    /// Notes the end of a process. A question that it has perhaps not read goes to another process: one that was killed can still
    /// be written to for a moment. A process that was started for the question has read it. Returns the number of the question
    /// that remains without an answer.
    pub(super) fn ended(&mut self, number: u64) -> Option<u64> {
        if number != self.count {
            return None;
        }
        let mut process = self.process.take()?;
        let _ = process.child.wait();
        let AskedQuestion { number, line, is_read, .. } = process.asked?;
        let is_lost = !is_read && process.first != Some(number);
        let is_asked_again = is_lost && self.tell(number, line).is_ok();
        Some(number).filter(|_| !is_asked_again)
    }

    /// Ends the process, whatever it is doing.
    pub(super) fn cancel(&mut self) {
        if let Some(process) = self.process.take() {
            std::thread::spawn(move || end(process));
        }
    }

    fn start(&mut self) -> anyhow::Result<AnsweringProcess> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env(WORKER, "1");
        // Out of memory, a backtrace could not be created and would hang.
        command.env("RUST_BACKTRACE", "0").env("RUST_LIB_BACKTRACE", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start a process")?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (mut stdin, stdout) = pipes.context("cannot open pipes to the process")?;
        let copies = spool::copies();
        if !copies.is_empty() {
            stdin
                .write_all((serde_json::to_string(&ToWorker::Copies(copies.to_vec()))? + "\n").as_bytes())?;
        }
        self.count += 1;
        let (hear, number) = (self.hear.clone(), self.count);
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            while matches!((&mut stdout).take(MAX_LINE as u64).read_line(&mut line), Ok(1..)) {
                match serde_json::from_str(&line) {
                    Ok(FromWorker::Answer(number, answer)) => hear(Heard::Answer(number, answer.into())),
                    Ok(FromWorker::Early(number, answer)) => hear(Heard::Early(number, answer.into())),
                    Ok(FromWorker::Progress(number, stage)) => hear(Heard::Progress(number, stage)),
                    Err(_) => break,
                }
                line.clear();
            }
            hear(Heard::Ended(number));
        });
        Ok(AnsweringProcess { child, stdin, asked: None, first: None })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            end(process);
        }
    }
}

/// Ends a process: it may remove its temporary files before. Its stdin stays open meanwhile, as it would end at once
/// otherwise.
fn end(mut process: AnsweringProcess) {
    let child = &mut process.child;
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}
