//! Dump through a FIFO: the JVM writes, this process reads, and no disk is used on the JVM's side.
//!
//! This works up to JDK 21, whose JVMs write a dump in one piece to a file that may exist. The JVM's threads are suspended
//! until everything is written, which takes as long as the slowest of reading, compressing and writing. The reader closes the
//! FIFO when this process cannot write any more, or ends. The JVM then gets an error, abandons its dump, and continues.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Size in bytes of the buffers into which a dump is read, and of the FIFO's own buffer, if the system permits it.
const BLOCK: usize = 1 << 20;

/// Maximum number of buffers into which a dump is read.
const BLOCKS: usize = 16;

/// Interval at which the reader checks whether the JVM has replied, in nanoseconds.
const LOOK: i64 = 100_000_000;

/// Reading end of a FIFO.
#[derive(Debug)]
pub(crate) struct FifoReader {
    file: File,
}

impl FifoReader {
    /// Creates a reader from an open FIFO, which must be in non-blocking mode.
    pub(crate) fn new(file: File) -> Self {
        // With a smaller buffer, copying is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&file, BLOCK);
        Self { file }
    }

    /// Copies everything that the JVM writes to `out`, and returns the number of bytes. `is_over` is set when the JVM has
    /// replied: if it has not opened the FIFO by then, it never will.
    pub(crate) fn copy(
        self,
        out: &mut dyn Write,
        is_over: &AtomicBool,
        mut progress: impl FnMut(u64),
    ) -> io::Result<u64> {
        let (sender, blocks) = sync_channel::<io::Result<Vec<u8>>>(BLOCKS);
        let (used, unused) = sync_channel(BLOCKS);
        std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().name("FIFO".to_owned());
            reader.spawn_scoped(scope, move || read(self.file, &sender, &unused, is_over))?;
            let mut total = 0u64;
            // The receiver is dropped here, before the scope waits for the reader.
            for block in blocks {
                let block = block?;
                out.write_all(&block)?;
                let length = block.len() as u64;
                total = total.saturating_add(length);
                progress(length);
                let _ = used.try_send(block);
            }
            Ok(total)
        })
    }
}

/// Reads until the JVM has closed the FIFO, or the receiver was dropped.
fn read(
    mut file: File,
    sender: &SyncSender<io::Result<Vec<u8>>>,
    unused: &Receiver<Vec<u8>>,
    is_over: &AtomicBool,
) {
    // Everything that the JVM wrote before it replied is in the FIFO's buffer: nothing beyond its size needs to be read.
    let mut left = rustix::pipe::fcntl_getpipe_size(&file).unwrap_or(BLOCK);
    loop {
        // Read before waiting: if the JVM has replied, everything that it wrote is in the FIFO now.
        let was_over = is_over.load(Ordering::SeqCst);
        let wait = Timespec { tv_sec: 0, tv_nsec: LOOK };
        let events = {
            let mut fds = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
            let polled = poll(&mut fds, Some(&wait));
            let [fd] = &fds;
            polled.map(|_| fd.revents())
        };
        let events = match events {
            Ok(events) => events,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => {
                let _ = sender.send(Err(error.into()));
                return;
            }
        };
        if events.contains(PollFlags::IN) {
            let mut block = unused.try_recv().unwrap_or_default();
            block.resize(BLOCK, 0);
            match file.read(&mut block) {
                // All writers have closed the FIFO.
                Ok(0) => return,
                Ok(length) => {
                    block.truncate(length);
                    if was_over {
                        left = left.saturating_sub(length);
                    }
                    if sender.send(Ok(block)).is_err() || left == 0 {
                        return;
                    }
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(error) => {
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        } else if events.contains(PollFlags::HUP) || was_over {
            return;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};

    use super::*;

    fn fifo() -> (tempfile::TempDir, FifoReader) {
        let dir = tempfile::tempdir().unwrap();
        let (path, mode) = (dir.path().join("fifo"), Mode::RUSR | Mode::WUSR);
        mkfifoat(CWD, &path, mode).unwrap();
        let fifo = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        (dir, FifoReader::new(fifo.into()))
    }

    #[test]
    fn everything_written_arrives_however_slow_the_reader_is() {
        let (dir, reader) = fifo();
        let path = dir.path().join("fifo");
        let bytes: Vec<u8> = (0..40 << 20).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
        let written = bytes.clone();
        let writer =
            std::thread::spawn(move || std::fs::File::options().write(true).open(path)?.write_all(&written));
        let mut out = Vec::new();
        let mut is_slow = true;
        let copied = reader.copy(&mut out, &AtomicBool::new(false), |_| {
            if std::mem::take(&mut is_slow) {
                std::thread::sleep(Duration::from_millis(300));
            }
        });
        writer.join().unwrap().unwrap();
        assert_eq!(copied.unwrap(), bytes.len() as u64);
        assert!(out == bytes);
    }

    #[test]
    fn a_jvm_that_never_writes_ends_the_wait() {
        let (_dir, reader) = fifo();
        assert_eq!(reader.copy(&mut Vec::new(), &AtomicBool::new(true), |_| {}).unwrap(), 0);
    }

    #[test]
    fn a_writer_gets_an_error_when_nobody_wants_more() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (dir, reader) = fifo();
        let path = dir.path().join("fifo");
        let writer = std::thread::spawn(move || {
            std::fs::File::options().write(true).open(path)?.write_all(&vec![7; 64 << 20])
        });
        let copied = reader.copy(&mut Full, &AtomicBool::new(false), |_| {});
        assert_eq!(copied.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(writer.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
