//! Client side of a connection to a helper.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use super::command::RunningCommand;
use super::message::{HelperReply, HelperRequest};
use super::wire::{self, Frame};
use crate::compress::{Compression, Encoder};
use crate::error::Error;
use crate::heap_dump::{DumpOutcome, DumpProgress, DumpTarget};
use crate::identity::Identity;
use crate::jvms::{JvmList, JvmRow};
use crate::machine::{CommandReply, Machine};
use crate::memory_files::MemoryFiles;
use crate::plan::{DumpRoute, Plan, Request};
use crate::remote_error::RemoteError;
use crate::user_files::{ForeignDir, UserFilesOpener, UserOutputDir};

/// Machine that is reached through a helper.
pub struct RemoteMachine {
    running: RunningCommand,
    contents: Vec<u8>,
    /// JVM of the last plan, and the compression of its dump on this machine.
    planned: Option<(u32, Option<Compression>)>,
    /// Opener of files of users on the local machine.
    opener: UserFilesOpener,
}

impl RemoteMachine {
    pub(super) fn new(running: RunningCommand) -> Self {
        let opener = UserFilesOpener::itself(running.on_notice());
        Self { running, contents: Vec::new(), planned: None, opener }
    }

    fn ask(&mut self, question: &HelperRequest) -> Result<(), Error> {
        wire::write_message(&mut self.running.input()?, question)
            .map_err(|error| self.running.lost(error).into())
    }

    /// Sends a request and returns its reply.
    fn exchange(&mut self, question: &HelperRequest) -> Result<HelperReply, Error> {
        self.ask(question)?;
        loop {
            match wire::read(&mut self.running.output, &mut self.contents) {
                Ok(Frame::Message(HelperReply::Noticed(notice))) => self.running.pass(notice),
                Ok(Frame::Message(HelperReply::Failed(error))) => {
                    return Err(Error::Elsewhere(Box::new(error)));
                }
                Ok(Frame::Message(reply)) => return Ok(reply),
                Ok(Frame::Bytes(_)) => return Err(self.odd()),
                Err(error) => return Err(self.running.lost(error).into()),
            }
        }
    }

    /// Returns the error for a reply that does not belong to the request.
    fn odd(&self) -> Error {
        self.running.damaged_error("it is the reply to another request").into()
    }

    /// Returns the error for bytes of a dump that are damaged, or cannot be written on the local machine.
    fn unwritten(&self, sink: &Sink<'_>, source: io::Error) -> Error {
        match sink.has_failed() {
            true => Error::Output { source },
            false => self.running.damaged_error(&source.to_string()).into(),
        }
    }

    /// Receives a dump and passes it to `sink`.
    fn receive(
        &mut self,
        pid: u32,
        question: &HelperRequest,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
        watch: &dyn DumpProgress,
    ) -> Result<DumpOutcome, Error> {
        let output = |source| Error::Output { source };
        let mut sink = Sink::new(compression, out).map_err(output)?;
        self.ask(question)?;
        let mut received = 0u64;
        loop {
            match wire::read(&mut self.running.output, &mut self.contents) {
                Ok(Frame::Bytes(bytes)) => {
                    received = received.saturating_add(bytes.len() as u64);
                    sink.write(bytes).map_err(|error| self.unwritten(&sink, error))?;
                }
                Ok(Frame::Message(HelperReply::Began { stage, bytes })) => watch.begin(&stage, bytes),
                Ok(Frame::Message(HelperReply::Advanced { bytes })) => watch.advance(bytes),
                Ok(Frame::Message(HelperReply::Noticed(notice))) => self.running.pass(notice),
                Ok(Frame::Message(HelperReply::Failed(error))) => {
                    return Err(Error::Elsewhere(Box::new(error)));
                }
                Ok(Frame::Message(HelperReply::Taken { dumped, sent_bytes })) => {
                    let said = dumped.dump_bytes;
                    if received != sent_bytes {
                        return Err(Error::Incomplete { pid, said: sent_bytes, received });
                    }
                    sink.flush().map_err(|error| self.unwritten(&sink, error))?;
                    let arrived = sink.finish().map_err(output)?;
                    if arrived != said {
                        return Err(Error::Incomplete { pid, said, received: arrived });
                    }
                    return Ok(DumpOutcome { sent_bytes: Some(received), ..dumped });
                }
                Ok(Frame::Message(_)) => return Err(self.odd()),
                Err(error) => return Err(self.running.lost(error).into()),
            }
        }
    }
}

impl Machine for RemoteMachine {
    fn jvms(&mut self) -> Result<JvmList, Error> {
        match self.exchange(&HelperRequest::Jvms)? {
            HelperReply::Jvms(list) => Ok(list),
            _ => Err(self.odd()),
        }
    }

    fn find(&mut self, pid: u32) -> Result<JvmRow, Error> {
        match self.exchange(&HelperRequest::Find { pid })? {
            HelperReply::Row(row) => Ok(*row),
            _ => Err(self.odd()),
        }
    }

    fn output_place(
        &mut self,
        _: u32,
        dir: ForeignDir<'_>,
        caller: Option<Identity>,
    ) -> Result<UserOutputDir, Error> {
        UserOutputDir::open(&self.opener, dir, caller, None)
    }

    fn jcmd(&mut self, pid: u32, command: &str, limit: Option<Duration>) -> Result<CommandReply, Error> {
        let (command, limit_ms) = (command.to_owned(), milliseconds(limit));
        match self.exchange(&HelperRequest::Jcmd { pid, command, limit_ms })? {
            HelperReply::Jcmd(reply) => Ok(reply),
            _ => Err(self.odd()),
        }
    }

    fn memory_files(
        &mut self,
        pid: u32,
        ranges: &[(u64, u64)],
        names: &[String],
    ) -> Result<MemoryFiles, Error> {
        let request = HelperRequest::MemoryFiles { pid, ranges: ranges.to_vec(), names: names.to_vec() };
        match self.exchange(&request)? {
            HelperReply::MemoryFiles(files) => Ok(*files),
            _ => Err(self.odd()),
        }
    }

    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error> {
        let limit_ms = milliseconds(request.limit);
        match self.exchange(&HelperRequest::Plan { pid, is_live: request.is_live, limit_ms })? {
            // A JVM on another machine does not write local files.
            HelperReply::Plan(plan) if matches!(plan.way, DumpRoute::Fifo | DumpRoute::Inside) => {
                self.planned = Some((pid, request.compression));
                plan.with_destination(request)
            }
            _ => Err(self.odd()),
        }
    }

    fn take(&mut self, target: DumpTarget<'_>, watch: &dyn DumpProgress) -> Result<DumpOutcome, Error> {
        let (pid, compression) = self.planned.take().ok_or(Error::Unplanned)?;
        match target {
            DumpTarget::Stream(out) => self.receive(pid, &HelperRequest::Take, compression, out, watch),
            // The JVM does not write on the local machine.
            DumpTarget::Linked(_) | DumpTarget::Renamed { .. } => Err(Error::Unplanned),
        }
    }

    fn check_native(&mut self, pid: u32) -> Result<(), Error> {
        match self.exchange(&HelperRequest::CheckNative { pid })? {
            HelperReply::Fine => Ok(()),
            _ => Err(self.odd()),
        }
    }

    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        limit: Option<Duration>,
        out: &mut (dyn Write + Send),
    ) -> Result<DumpOutcome, Error> {
        let request = HelperRequest::TakeNative { pid, limit_ms: milliseconds(limit) };
        self.receive(pid, &request, compression, out, &NoWatch)
    }
}

fn milliseconds(limit: Option<Duration>) -> Option<u64> {
    limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX))
}

struct NoWatch;

impl DumpProgress for NoWatch {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// Destination of a dump that is received compressed with zstd. It is always decompressed, to check and count its bytes.
struct Sink<'w> {
    decoder: zstd::stream::write::Decoder<'static, Counter<'w>>,
}

/// Writer that counts the uncompressed bytes of a dump, and passes them on unless the compressed bytes are stored.
struct Counter<'w> {
    to: Destination<'w>,
    counted: u64,
    has_failed: bool,
}

/// Writer for a received dump, by the requested compression.
enum Destination<'w> {
    /// Writer of the compressed bytes as received.
    Same(&'w mut (dyn Write + Send)),
    Other(Box<Encoder<&'w mut (dyn Write + Send)>>),
}

impl Counter<'_> {
    fn record_result<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.has_failed |= done.is_err();
        done
    }
}

impl Write for Counter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            Destination::Same(_) => Ok(bytes.len()),
            Destination::Other(encoder) => encoder.write(bytes),
        };
        let length = self.record_result(written)?;
        self.counted = self.counted.saturating_add(length as u64);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> Sink<'w> {
    fn new(compression: Option<Compression>, out: &'w mut (dyn Write + Send)) -> io::Result<Self> {
        let to = match compression {
            Some(Compression::Zstd) => Destination::Same(out),
            other => Destination::Other(Box::new(Encoder::new(other, out)?)),
        };
        let counter = Counter { to, counted: 0, has_failed: false };
        Ok(Self { decoder: zstd::stream::write::Decoder::new(counter)? })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.decoder.write_all(bytes)?;
        let counter = self.decoder.get_mut();
        match &mut counter.to {
            Destination::Same(out) => {
                let written = out.write_all(bytes);
                counter.record_result(written)
            }
            Destination::Other(_) => Ok(()),
        }
    }

    /// Decompresses all received bytes.
    fn flush(&mut self) -> io::Result<()> {
        self.decoder.flush()
    }

    /// Returns whether an error occurred while writing the dump, not in the received bytes.
    fn has_failed(&self) -> bool {
        self.decoder.get_ref().has_failed
    }

    /// Ends the stream. Returns the uncompressed length of the dump.
    fn finish(self) -> io::Result<u64> {
        let counter = self.decoder.into_inner();
        match counter.to {
            Destination::Same(out) => out.flush()?,
            Destination::Other(encoder) => encoder.finish().map(drop)?,
        }
        Ok(counter.counted)
    }
}

/// Reads lines until the helper announces itself.
pub(super) fn wait_for_hello(running: &mut RunningCommand, token: &str) -> Result<(), RemoteError> {
    /// Maximum length in bytes of preceding output, such as greetings of a shell.
    const MAX: u64 = 1 << 16;
    let hello = super::hello(token);
    let start = hello.split_once(' ').map_or(hello.as_str(), |(start, _)| start).to_owned();
    let mut left = MAX;
    loop {
        let mut line = Vec::new();
        let mut limited = running.output.by_ref().take(left);
        let length = limited.read_until(b'\n', &mut line).map_err(|error| running.lost(error))?;
        left = left.saturating_sub(length as u64);
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line == hello {
            return Ok(());
        }
        if line.starts_with(&start) {
            return Err(RemoteError::Version { command: running.command.clone() });
        }
        if left == 0 {
            return Err(RemoteError::NotShell { command: running.command.clone() });
        }
        if length == 0 {
            return Err(running.closed_error());
        }
    }
}
