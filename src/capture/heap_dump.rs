//! Takes a heap dump according to a plan.
//!
//! The JVM writes into a private directory, so that nobody else can read the dump at any time, and no file that looks like a
//! dump is left after a failure.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::attach::{Jvm, shortened};
use crate::compress::{self, Encoder};
use crate::error::Error;
use crate::fifo::FifoReader;
use crate::plan::{DumpRoute, Plan};
use crate::private::{NAME, PrivateDir};
use crate::user_files::UserDir;
use crate::waiting::Waiting;

/// Name of the JVM's command for heap dumps.
const DUMP: &str = "GC.heap_dump";

/// Interval between checks of the size of the dump file.
const LOOK: Duration = Duration::from_millis(50);

/// Destination of a dump.
pub enum DumpTarget<'t> {
    /// File in the directory in which the JVM writes ([`super::plan::DumpRoute::Beside`]), which only this user may change. The function is called
    /// with the open dump file, and gives it its name.
    Linked(&'t mut dyn FnMut(File) -> Result<(), Error>),
    /// File in the directory in which the JVM writes ([`super::plan::DumpRoute::Beside`]), if others may change this directory.
    Renamed {
        /// Name of the file.
        name: &'t str,
        /// `true` to replace an existing file.
        is_forced: bool,
    },
    /// Writer for any other destination.
    Stream(&'t mut (dyn Write + Send)),
}

/// Receiver of the progress of a dump.
pub trait DumpProgress {
    /// Starts a stage that processes about `bytes` bytes.
    fn begin(&self, stage: &str, bytes: u64);
    /// Reports `bytes` more bytes as processed.
    fn advance(&self, bytes: u64);
}

/// Result of taking a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpOutcome {
    /// Length of the dump before compression.
    pub dump_bytes: u64,
    /// Time for which the JVM's threads were suspended.
    pub standstill: Duration,
    /// Number of bytes sent over the connection to another machine; `None` without a connection.
    pub sent_bytes: Option<u64>,
    /// `true` if the JVM measured `standstill`: the time in safepoints, from its counters. Otherwise it is the duration of the
    /// entire command, which is an upper bound.
    pub is_measured: bool,
}

/// JVM's reply to the dump command, with its counters at that time.
struct DumpReply {
    /// Number of bytes that the JVM wrote, if the reply contains it.
    bytes: Option<u64>,
    time: Duration,
    /// Total time in safepoints according to the JVM's counters, read right after the reply.
    standstill: Option<u64>,
}

fn standstill(jvm: &Jvm<'_>) -> Option<u64> {
    jvm.counters()?.standstill_nanoseconds()
}

/// Takes the dump. The JVM writes into a private directory in `parent`.
///
/// # Errors
///
/// If the JVM does not write the dump, or the dump cannot be copied. No files are left in these cases.
pub(crate) fn run(
    jvm: &Jvm<'_>,
    plan: &Plan,
    parent: UserDir,
    target: DumpTarget<'_>,
    watch: &dyn DumpProgress,
) -> Result<DumpOutcome, Error> {
    let pid = jvm.process().pid();
    let owner = jvm.process().status().identity;
    let dir = PrivateDir::create(parent, &plan.inner, owner, jvm.files())?;
    let before = standstill(jvm);
    watch.begin("dumping", plan.dump_bytes);
    let (written, received) = match (plan.way, target) {
        (DumpRoute::Fifo, DumpTarget::Stream(out)) => {
            let (written, received) = through_fifo(jvm, plan, &dir, out, watch)?;
            (written, Some(received))
        }
        (_, target) => (into_file(jvm, plan, &dir, target, watch)?, None),
    };
    if let (Some(said), Some(received)) = (written.bytes, received)
        && said != received
    {
        return Err(Error::Incomplete { pid, said, received });
    }
    let measured = before
        .zip(written.standstill)
        .map(|(before, after)| Duration::from_nanos(after.saturating_sub(before)));
    let measured = measured.filter(|time| !time.is_zero());
    Ok(DumpOutcome {
        dump_bytes: received.or(written.bytes).unwrap_or(0),
        standstill: measured.unwrap_or(written.time),
        is_measured: measured.is_some(),
        sent_bytes: None,
    })
}

/// Lets the JVM write a file, and moves or copies the file to its destination.
fn into_file(
    jvm: &Jvm<'_>,
    plan: &Plan,
    dir: &PrivateDir,
    target: DumpTarget<'_>,
    watch: &dyn DumpProgress,
) -> Result<DumpReply, Error> {
    let pid = jvm.process().pid();
    let mode = if plan.is_live { "-live" } else { "-all" };
    let path = dir.inner(NAME);
    let waiting = jvm.waiting(DUMP, None);
    let written = std::thread::scope(|scope| {
        let ask = || request_dump(jvm, "dumpheap", &[&path, mode], &waiting);
        let asked = spawn(scope, ask)?;
        let (mut seen, mut last) = (0, 0);
        while !asked.is_finished() {
            std::thread::sleep(LOOK);
            let bytes = dir.bytes();
            if bytes != last {
                waiting.progress();
                last = bytes;
            }
            // Segments are removed as they are merged, so the total size may decrease.
            let bytes = bytes.min(plan.dump_bytes);
            watch.advance(bytes.saturating_sub(seen));
            seen = seen.max(bytes);
        }
        join_dump(asked)
    })?;
    let (mut file, facts) = dir.open(NAME, pid)?;
    let length = facts.bytes;
    if let Some(said) = written.bytes.filter(|said| *said != length) {
        return Err(Error::Incomplete { pid, said, received: length });
    }
    let written = DumpReply { bytes: Some(length), ..written };
    match target {
        DumpTarget::Linked(link) => link(file)?,
        DumpTarget::Renamed { name, is_forced } => {
            let to = dir.parent().full_path().join(name);
            dir.dir().rename(NAME, dir.parent(), name, is_forced).map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => Error::Exists { path: to },
                _ => Error::File { what: "cannot write".into(), path: to, source },
            })?;
        }
        DumpTarget::Stream(out) => {
            watch.begin(if plan.compression.is_some() { "compressing" } else { "copying" }, length);
            let copied = compress::copy(
                &mut Read::by_ref(&mut file).take(length.saturating_add(1)),
                plan.compression,
                out,
                &mut |bytes| watch.advance(bytes),
            );
            let received = copied.map_err(|source| Error::Output { source })?;
            if received != length {
                return Err(Error::Incomplete { pid, said: length, received });
            }
        }
    }
    Ok(written)
}

/// Lets the JVM write to a FIFO, and copies from there to the destination.
fn through_fifo(
    jvm: &Jvm<'_>,
    plan: &Plan,
    dir: &PrivateDir,
    out: &mut (dyn Write + Send),
    watch: &dyn DumpProgress,
) -> Result<(DumpReply, u64), Error> {
    let fail = |source| Error::File { what: "cannot read".into(), path: dir.full_path(NAME), source };
    ready(jvm)?;
    let reader = FifoReader::new(dir.dir().create_fifo(NAME).map_err(fail)?);
    let all = if plan.is_live { "" } else { "-all " };
    let command = format!("GC.heap_dump {all}-overwrite {}", dir.inner(NAME));
    let is_over = AtomicBool::new(false);
    let waiting = jvm.waiting(DUMP, None);
    let (written, received) = std::thread::scope(|scope| {
        let ask = || {
            let written = request_dump(jvm, "jcmd", &[&command], &waiting);
            is_over.store(true, Ordering::SeqCst);
            written
        };
        let asked = match spawn(scope, ask) {
            Ok(asked) => asked,
            Err(error) => return (Err(error), Ok(0)),
        };
        let received = Encoder::new(plan.compression, out).and_then(|mut encoder| {
            let received = reader.copy(&mut encoder, &is_over, |bytes| {
                waiting.progress();
                watch.advance(bytes);
            })?;
            Ok((received, encoder))
        });
        // Needed even if the JVM has written everything: if it opened the FIFO once more, it would wait for a reader.
        dir.release();
        let written = join_dump(asked);
        // The compressed stream of an incomplete dump is left without an end.
        let is_whole = |received: u64| {
            written.as_ref().is_ok_and(|written| written.bytes.is_none_or(|said| said == received))
        };
        let received = received.and_then(|(received, encoder)| {
            if is_whole(received) {
                encoder.finish()?;
            }
            Ok(received)
        });
        (written, received)
    });
    // If both failed, the JVM failed because the FIFO was not read.
    let received = received.map_err(|source| Error::Output { source })?;
    Ok((written?, received))
}

/// Maximum time for the reply to a command that takes almost no time.
const TO_ANSWER_QUICKLY: Duration = Duration::from_secs(20);

/// Checks that the JVM is ready to run the command, so that the FIFO exists only briefly before the JVM opens it. If this
/// process and its child were killed in between, the JVM would wait for a reader.
fn ready(jvm: &Jvm<'_>) -> Result<(), Error> {
    jvm.check_running()?;
    jvm.jcmd("VM.version", Some(TO_ANSWER_QUICKLY))?;
    jvm.check_running()
}

type DumpThread<'s> = ScopedJoinHandle<'s, Result<DumpReply, Error>>;

fn spawn<'s, 'e>(
    scope: &'s std::thread::Scope<'s, 'e>,
    ask: impl FnOnce() -> Result<DumpReply, Error> + Send + 's,
) -> Result<DumpThread<'s>, Error> {
    let thread = std::thread::Builder::new().name("dump".to_owned());
    thread.spawn_scoped(scope, ask).map_err(|source| Error::File {
        what: "cannot start a thread for".into(),
        path: NAME.into(),
        source,
    })
}

fn join_dump(asked: DumpThread<'_>) -> Result<DumpReply, Error> {
    asked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends the dump command. JVMs reply with code 0 even if it failed: only the text of the reply tells.
fn request_dump(
    jvm: &Jvm<'_>,
    command: &str,
    arguments: &[&str],
    waiting: &Waiting<'_>,
) -> Result<DumpReply, Error> {
    let start = Instant::now();
    let reply = jvm.ask_while(command, arguments, waiting).map_err(|error| match error {
        Error::EndedDuring { pid, .. } => Error::EndedDuring { pid, command: DUMP.to_owned() },
        error => error,
    })?;
    let (time, standstill) = (start.elapsed(), standstill(jvm));
    if reply.code != 0 || !reply.text.contains("Heap dump file created") {
        let pid = jvm.process().pid();
        let lines: Vec<&str> = reply.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let said = lines.iter().filter(|line| !line.starts_with("Dumping heap to"));
        let text = said.copied().collect::<Vec<_>>().join("; ");
        let text = if text.is_empty() { "no reason given".to_owned() } else { shortened(&text) };
        return Err(Error::Refused { pid, command: DUMP.to_owned(), text });
    }
    Ok(DumpReply { bytes: bytes_of(&reply.text), time, standstill })
}

/// Returns the number of written bytes from a JVM's reply, such as `Heap dump file created [607123456 bytes in 2.345 secs]`.
fn bytes_of(text: &str) -> Option<u64> {
    text.split_once("created [")?.1.split_once(" bytes")?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jvms_say_how_much_they_wrote() {
        assert_eq!(
            bytes_of("Dumping heap to /a ...\nHeap dump file created [6071 bytes in 2.3 secs]\n"),
            Some(6071)
        );
        assert_eq!(bytes_of("Heap dump file created\n"), None);
    }
}
