//! Helper's side of a connection to a client.

use std::io::{self, Read, Write};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::message::{HelperReply, HelperRequest};
use super::wire::{self, Frame};
use crate::compress::Compression;
use crate::error::Error;
use crate::heap_dump::{DumpOutcome, DumpProgress, DumpTarget};
use crate::machine::{DIAGNOSTIC_COMMANDS, LocalMachine, Machine};
use crate::plan::Request;
use crate::user_files::{OnNotice, UserFilesOpener};

/// Connection to the client, which is shared by progress and bytes of a dump.
struct Connection<W> {
    out: Mutex<W>,
}

impl<W: Write> Connection<W> {
    fn output(&self) -> MutexGuard<'_, W> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, reply: &HelperReply) -> io::Result<()> {
        wire::write_message(&mut *self.output(), reply)
    }
}

impl<W: Write> DumpProgress for Connection<W> {
    // Errors are ignored: the writer of the dump notices a connection that has ended.
    fn begin(&self, stage: &str, bytes: u64) {
        let _ = self.send(&HelperReply::Began { stage: stage.to_owned(), bytes });
    }

    fn advance(&self, bytes: u64) {
        let _ = self.send(&HelperReply::Advanced { bytes });
    }
}

/// Writer that sends the bytes of a dump to the client.
struct DumpSender<'c, W> {
    connection: &'c Connection<W>,
    sent: u64,
}

impl<W: Write> Write for DumpSender<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        wire::write_bytes(&mut *self.connection.output(), bytes)?;
        self.sent = self.sent.saturating_add(bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Carries out requests from `input` until it ends. `on_end` is called when `input` ends, even while a dump is being taken, on
/// a separate thread; it should end the process. `start` creates the opener of files of users, whose notices are sent to the client.
///
/// # Errors
///
/// If a reply cannot be written.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    token: &str,
    start: impl FnOnce(OnNotice) -> UserFilesOpener,
    on_end: impl FnOnce(&UserFilesOpener) + Send + 'static,
) -> io::Result<()> {
    let connection = Arc::new(Connection { out: Mutex::new(output) });
    let noticing = connection.clone();
    let opener = start(Arc::new(move |notice| {
        // Errors are ignored: the sender of the reply notices a connection that has ended.
        let _ = noticing.send(&HelperReply::Noticed(notice.clone()));
    }));
    let own = opener.clone();
    let machine = &mut LocalMachine::new(&opener);
    {
        let mut out = connection.output();
        // On a line of its own, because a shell may have printed something before.
        out.write_all(format!("\n{}\n", super::hello(token)).as_bytes())?;
        out.flush()?;
    }
    let (sender, questions) = sync_channel::<HelperRequest>(1);
    let read = std::thread::Builder::new().name("questions".to_owned());
    read.spawn(move || {
        let (mut input, mut contents) = (input, Vec::new());
        while let Ok(Frame::Message(question)) = wire::read(&mut input, &mut contents) {
            if sender.send(question).is_err() {
                break;
            }
        }
        on_end(&own);
    })?;
    for question in questions {
        let reply = answer(machine, &*connection, question).unwrap_or_else(HelperReply::Failed);
        connection.send(&reply)?;
    }
    Ok(())
}

fn answer<W: Write + Send>(
    machine: &mut dyn Machine,
    connection: &Connection<W>,
    question: HelperRequest,
) -> Result<HelperReply, Error> {
    let compression = Some(Compression::Zstd);
    Ok(match question {
        HelperRequest::Jvms => HelperReply::Jvms(machine.jvms()?),
        HelperRequest::Find { pid } => HelperReply::Row(Box::new(machine.find(pid)?)),
        HelperRequest::Jcmd { command, .. } if !DIAGNOSTIC_COMMANDS.contains(&command.as_str()) => {
            return Err(Error::CommandRefused { command });
        }
        HelperRequest::Jcmd { pid, command, limit_ms } => {
            HelperReply::Jcmd(machine.jcmd(pid, &command, limit_ms.map(Duration::from_millis))?)
        }
        HelperRequest::MemoryFiles { pid, ranges, names } => {
            // Names come from the client, and must not lead out of a control group's directory.
            let names: Vec<String> = names.into_iter().filter(|name| !name.contains('/')).collect();
            HelperReply::MemoryFiles(Box::new(machine.memory_files(pid, &ranges, &names)?))
        }
        HelperRequest::Plan { pid, is_live, limit_ms } => {
            let limit = limit_ms.map(Duration::from_millis);
            let request = Request { is_live, to: None, compression, is_filtered: false, limit };
            HelperReply::Plan(Box::new(machine.plan(pid, request)?))
        }
        HelperRequest::Take => taken(connection, |out| machine.take(DumpTarget::Stream(out), connection))?,
        HelperRequest::CheckNative { pid } => {
            machine.check_native(pid)?;
            HelperReply::Fine
        }
        HelperRequest::TakeNative { pid, limit_ms } => {
            let limit = limit_ms.map(Duration::from_millis);
            taken(connection, |out| machine.take_native(pid, compression, limit, out))?
        }
    })
}

fn taken<W: Write + Send>(
    connection: &Connection<W>,
    take: impl FnOnce(&mut (dyn Write + Send)) -> Result<DumpOutcome, Error>,
) -> Result<HelperReply, Error> {
    let mut bytes = DumpSender { connection, sent: 0 };
    let dumped = take(&mut bytes)?;
    Ok(HelperReply::Taken { dumped, sent_bytes: bytes.sent })
}
