//! The asking side of a connection.

use std::io::{self, BufRead, Read, Write};

use super::command::Running;
use super::message::{Question, Reply};
use super::wire::{self, Frame};
use crate::compress::{Compression, Encoder};
use crate::error::Error;
use crate::heap_dump::{Dumped, Target, Watch};
use crate::jvms::{JvmList, JvmRow};
use crate::machine::Machine;
use crate::plan::{Plan, Request};
use crate::remote_error::RemoteError;

/// A place in which a helper works.
pub struct RemoteMachine {
    running: Running,
    contents: Vec<u8>,
    /// JVM of the last plan, and how its dump is to be compressed here.
    planned: Option<(u32, Option<Compression>)>,
}

impl RemoteMachine {
    pub(super) fn new(running: Running) -> Self {
        Self { running, contents: Vec::new(), planned: None }
    }

    fn ask(&mut self, question: &Question) -> Result<(), Error> {
        wire::write_message(&mut self.running.input()?, question)
            .map_err(|error| self.running.lost(error).into())
    }

    /// Returns the answer to a question that has no other one.
    fn answered(&mut self, question: &Question) -> Result<Reply, Error> {
        self.ask(question)?;
        match wire::read(&mut self.running.output, &mut self.contents) {
            Ok(Frame::Message(Reply::Failed(error))) => Err(error),
            Ok(Frame::Message(reply)) => Ok(reply),
            Ok(Frame::Bytes(_)) => Err(self.odd()),
            Err(error) => Err(self.running.lost(error).into()),
        }
    }

    /// Error about an answer to another question.
    fn odd(&self) -> Error {
        self.running.damaged("an answer to another question").into()
    }

    /// Receives a dump.
    fn receive(
        &mut self,
        pid: u32,
        question: &Question,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
        watch: &dyn Watch,
    ) -> Result<Dumped, Error> {
        let output = |source| Error::Output { source };
        let mut sink = Sink::new(compression, out).map_err(output)?;
        self.ask(question)?;
        let mut received = 0u64;
        loop {
            match wire::read(&mut self.running.output, &mut self.contents) {
                Ok(Frame::Bytes(bytes)) => {
                    received = received.saturating_add(bytes.len() as u64);
                    sink.write(bytes).map_err(output)?;
                }
                Ok(Frame::Message(Reply::Began { stage, bytes })) => watch.begin(&stage, bytes),
                Ok(Frame::Message(Reply::Advanced { bytes })) => watch.advance(bytes),
                Ok(Frame::Message(Reply::Failed(error))) => return Err(error),
                Ok(Frame::Message(Reply::Taken { dumped, sent_bytes })) => {
                    let said = dumped.dump_bytes;
                    if received != sent_bytes {
                        return Err(Error::Incomplete { pid, said: sent_bytes, received });
                    }
                    if let Some(received) = sink.finish().map_err(output)?
                        && received != said
                    {
                        return Err(Error::Incomplete { pid, said, received });
                    }
                    return Ok(Dumped { sent_bytes: Some(received), ..dumped });
                }
                Ok(Frame::Message(_)) => return Err(self.odd()),
                Err(error) => return Err(self.running.lost(error).into()),
            }
        }
    }
}

impl Machine for RemoteMachine {
    fn jvms(&mut self) -> Result<JvmList, Error> {
        match self.answered(&Question::Jvms)? {
            Reply::Jvms(list) => Ok(list),
            _ => Err(self.odd()),
        }
    }

    fn find(&mut self, pid: u32) -> Result<JvmRow, Error> {
        match self.answered(&Question::Find { pid })? {
            Reply::Row(row) => Ok(*row),
            _ => Err(self.odd()),
        }
    }

    fn plan(&mut self, pid: u32, request: Request<'_>) -> Result<Plan, Error> {
        match self.answered(&Question::Plan { pid, is_live: request.is_live })? {
            Reply::Plan(plan) => {
                self.planned = Some((pid, request.compression));
                plan.with_destination(request)
            }
            _ => Err(self.odd()),
        }
    }

    fn take(&mut self, target: Target<'_>, watch: &dyn Watch) -> Result<Dumped, Error> {
        let (pid, compression) = self.planned.take().ok_or(Error::Unplanned)?;
        match target {
            Target::Stream(out) => self.receive(pid, &Question::Take, compression, out, watch),
            // No JVM writes here.
            Target::Path { .. } => Err(Error::Unplanned),
        }
    }

    fn check_native(&mut self, pid: u32) -> Result<(), Error> {
        match self.answered(&Question::CheckNative { pid })? {
            Reply::Fine => Ok(()),
            _ => Err(self.odd()),
        }
    }

    fn take_native(
        &mut self,
        pid: u32,
        compression: Option<Compression>,
        out: &mut (dyn Write + Send),
    ) -> Result<Dumped, Error> {
        self.receive(pid, &Question::TakeNative { pid }, compression, out, &Unwatched)
    }
}

struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}

/// Destination of a dump that comes compressed with zstd.
enum Sink<'w> {
    /// It stays so.
    Same(&'w mut (dyn Write + Send)),
    /// It is compressed otherwise, or not at all.
    Other(Box<zstd::stream::write::Decoder<'static, Counter<'w>>>),
}

/// Counts what is written.
struct Counter<'w> {
    to: Encoder<'w>,
    written: u64,
}

impl Write for Counter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.to.write(bytes)?;
        self.written = self.written.saturating_add(length as u64);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<'w> Sink<'w> {
    fn new(compression: Option<Compression>, out: &'w mut (dyn Write + Send)) -> io::Result<Self> {
        Ok(match compression {
            Some(Compression::Zstd) => Self::Same(out),
            other => {
                let counter = Counter { to: Encoder::new(other, out)?, written: 0 };
                Self::Other(Box::new(zstd::stream::write::Decoder::new(counter)?))
            }
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Same(out) => out.write_all(bytes),
            Self::Other(decoder) => decoder.write_all(bytes),
        }
    }

    /// Ends the stream. Returns the number of bytes before compression, if it was counted.
    fn finish(self) -> io::Result<Option<u64>> {
        match self {
            Self::Same(out) => out.flush().map(|()| None),
            Self::Other(mut decoder) => {
                decoder.flush()?;
                let counter = decoder.into_inner();
                counter.to.finish()?;
                Ok(Some(counter.written))
            }
        }
    }
}

/// Reads lines until the helper says that it is there.
pub(super) fn greeted(running: &mut Running, token: &str) -> Result<(), RemoteError> {
    /// Maximum length of what precedes: shells may print greetings of their own.
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
            return Err(running.ended());
        }
    }
}
