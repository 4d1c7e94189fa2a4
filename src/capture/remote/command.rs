//! Running command that connects to another machine, with pipes to it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::patient::{PatientReader, PatientWriter};
use crate::remote_error::RemoteError;
use crate::user_files::{Notice, OnNotice};

/// Receiver of the lines that a command writes to stderr. They may contain anything.
pub type Note = Arc<dyn Fn(&str) + Send + Sync>;

/// Maximum number of lines of stderr that are passed on.
const LINES: usize = 50;
/// Maximum number of bytes of a line of stderr that are passed on.
const LINE_BYTES: u64 = 1000;

/// Maximum time for a command to end after it has closed its output.
const TO_END: Duration = Duration::from_secs(5);

/// Default of the maximum time until a helper announces itself. It may have to be sent over a slow connection.
const TO_CONNECT: Duration = Duration::from_secs(300);

/// Maximum time in seconds until the command has read what was written.
const TO_TAKE: i64 = 60;

/// Time that a helper may take in addition to the time of the JVM for which it waits.
const MARGIN: Duration = Duration::from_secs(30);

/// Settings for the connection to another machine.
#[derive(Clone)]
pub struct Contact {
    /// Receiver of lines that the command writes to stderr.
    pub note: Note,
    /// Receiver of notices.
    pub on_notice: OnNotice,
    /// Maximum time until the helper announces itself, and later of each period without output.
    pub limit: Option<Duration>,
}

/// Running command with its pipes.
pub(super) struct RunningCommand {
    /// Command without appended words, for messages.
    pub(super) command: String,
    child: Child,
    input: Option<PatientWriter>,
    pub(super) output: BufReader<PatientReader>,
    contact: Contact,
    errors: Option<JoinHandle<()>>,
    /// `true` if a helper has replied.
    is_connected: bool,
}

impl fmt::Debug for RunningCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCommand").field("command", &self.command).finish_non_exhaustive()
    }
}

impl RunningCommand {
    /// Runs the command with appended words through a shell, as if it had been typed, so the command may quote its own words.
    pub(super) fn start(command: &str, words: &str, contact: &Contact) -> Result<Self, RemoteError> {
        let start = || -> io::Result<_> {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(format!("{command} {words}"));
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = shell.spawn()?;
            let missing = || io::Error::other("a pipe is missing");
            let input = child.stdin.take().ok_or_else(missing)?;
            let output = child.stdout.take().ok_or_else(missing)?;
            let errors = child.stderr.take().ok_or_else(missing)?;
            let input = PatientWriter::new(File::from(OwnedFd::from(input)), TO_TAKE)?;
            let (limit, on_notice) = (contact.limit.unwrap_or(TO_CONNECT), contact.on_notice.clone());
            let said = command.to_owned();
            let on_silence = Box::new(move |waited: Duration| {
                on_notice(&Notice::Silent { command: said.clone(), seconds: waited.as_secs() });
            });
            let output = PatientReader::new(File::from(OwnedFd::from(output)), limit, on_silence);
            let note = contact.note.clone();
            let errors = std::thread::Builder::new()
                .name("stderr".to_owned())
                .spawn(move || pass_on(BufReader::new(errors), &note))?;
            Ok(Self {
                command: command.to_owned(),
                child,
                input: Some(input),
                output: BufReader::with_capacity(1 << 16, output),
                contact: contact.clone(),
                errors: Some(errors),
                is_connected: false,
            })
        };
        start().map_err(|source| RemoteError::Start { command: command.to_owned(), source })
    }

    /// Records that a helper has replied.
    pub(super) fn set_connected(&mut self) {
        self.is_connected = true;
        let limit = self.contact.limit.map(|limit| limit.saturating_add(MARGIN));
        self.output.get_mut().limit_silence(limit);
    }

    /// Returns the receiver of notices.
    pub(super) fn on_notice(&self) -> OnNotice {
        self.contact.on_notice.clone()
    }

    /// Passes a notice of a helper to the receiver.
    pub(super) fn pass(&self, notice: Notice) {
        (self.contact.on_notice)(&notice);
    }

    /// Returns the writer to the command's stdin.
    pub(super) fn input(&mut self) -> Result<&mut PatientWriter, RemoteError> {
        match &mut self.input {
            Some(input) => Ok(input),
            None => Err(RemoteError::Lost {
                command: self.command.clone(),
                source: io::ErrorKind::BrokenPipe.into(),
            }),
        }
    }

    /// Closes the command's stdin.
    pub(super) fn close(&mut self) {
        self.input = None;
    }

    pub(super) fn damaged_error(&self, why: &str) -> RemoteError {
        RemoteError::Damaged { command: self.command.clone(), why: why.to_owned() }
    }

    /// Returns the error for a read or write that failed.
    pub(super) fn lost(&mut self, source: io::Error) -> RemoteError {
        match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => self.closed_error(),
            io::ErrorKind::InvalidData => self.damaged_error(&source.to_string()),
            io::ErrorKind::TimedOut => self.timed_out(),
            _ => RemoteError::Lost { command: self.command.clone(), source },
        }
    }

    fn timed_out(&self) -> RemoteError {
        let command = self.command.clone();
        match self.is_connected {
            true => {
                let seconds = self.contact.limit.unwrap_or_default().saturating_add(MARGIN).as_secs();
                RemoteError::Silent { command, seconds }
            }
            false => {
                RemoteError::Slow { command, seconds: self.contact.limit.unwrap_or(TO_CONNECT).as_secs() }
            }
        }
    }

    /// Returns the error for a command that has closed its output. Its stderr is passed on first.
    pub(super) fn closed_error(&mut self) -> RemoteError {
        let status = self.end();
        let command = self.command.clone();
        match self.is_connected {
            true => RemoteError::Broken { command, status },
            false => RemoteError::Ended { command, status },
        }
    }

    /// Waits until the command ends, and returns a description of its exit status. A command that does not end in time is
    /// killed.
    fn end(&mut self) -> String {
        self.close();
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.to_string(),
                Ok(None) if start.elapsed() < TO_END => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => {
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    break "killed after closing its output".to_owned();
                }
                Err(error) => break error.to_string(),
            }
        };
        // Another process that the command started may hold stderr open.
        if self.errors.as_ref().is_some_and(|errors| !errors.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
        }
        if let Some(errors) = self.errors.take().filter(JoinHandle::is_finished) {
            let _ = errors.join();
        }
        status
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.errors.is_some() {
            self.end();
        }
    }
}

/// Passes on lines of stderr. Excess lines are read and dropped, because the command would wait otherwise.
fn pass_on(mut from: impl BufRead, note: &Note) {
    for at in 0usize.. {
        let mut line = Vec::new();
        match from.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if at < LINES => note(String::from_utf8_lossy(&line).trim_end()),
            Ok(_) => {}
        }
    }
}
