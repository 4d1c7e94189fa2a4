//! Reader and writer with time limits, for connections that may stall.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::waiting::{FIRST_NOTICE, NEXT_NOTICES};

/// Writer that fails if the other side does not read in time, because a JVM's threads are suspended during writes.
#[derive(Debug)]
pub struct PatientWriter {
    file: File,
    seconds: i64,
    has_failed: bool,
}

impl PatientWriter {
    /// Creates a writer that waits at most `seconds` for each write. The file becomes non-blocking, so it must not be shared
    /// with other processes.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn new(file: File, seconds: i64) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK)?;
        Ok(Self { file, seconds, has_failed: false })
    }

    fn wait(&self) -> io::Result<()> {
        let patience = Timespec { tv_sec: self.seconds, tv_nsec: 0 };
        let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for PatientWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Nothing useful can follow a partial write, and another wait would double the time.
        if self.has_failed {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let written = loop {
            match self.file.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if let Err(error) = self.wait() {
                        break Err(error);
                    }
                }
                written => break written,
            }
        };
        self.has_failed = written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reader with a time limit that reports long waits.
pub(super) struct PatientReader {
    file: File,
    limit: Option<Duration>,
    /// Start of the period that is limited.
    since: Instant,
    /// `true` if `limit` is for the total time, `false` if it is for each period without input.
    is_total: bool,
    next_notice: Duration,
    on_silence: Box<dyn Fn(Duration) + Send>,
}

impl PatientReader {
    /// Creates a reader that reads for at most `limit` in total. After long waits, it calls `on_silence` with the elapsed time.
    pub(super) fn new(file: File, limit: Duration, on_silence: Box<dyn Fn(Duration) + Send>) -> Self {
        let (since, next_notice) = (Instant::now(), FIRST_NOTICE);
        Self { file, limit: Some(limit), since, is_total: true, next_notice, on_silence }
    }

    /// From now on, limits each period without input instead of the total time.
    pub(super) fn limit_silence(&mut self, limit: Option<Duration>) {
        (self.limit, self.is_total) = (limit, false);
        self.restart();
    }

    /// Restarts the period that is limited.
    fn restart(&mut self) {
        (self.since, self.next_notice) = (Instant::now(), FIRST_NOTICE);
    }

    fn wait(&mut self) -> io::Result<()> {
        loop {
            let waited = self.since.elapsed();
            if self.limit.is_some_and(|limit| waited >= limit) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if waited >= self.next_notice {
                self.next_notice = waited.saturating_add(NEXT_NOTICES);
                (self.on_silence)(waited);
            }
            let next = self.limit.map_or(self.next_notice, |limit| limit.min(self.next_notice));
            let left = Timespec::try_from(next.saturating_sub(waited)).map_err(io::Error::other)?;
            let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
            match poll(&mut fds, Some(&left)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for PatientReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if !self.is_total {
            // Time in which this process does not read is not counted.
            self.restart();
        }
        self.wait()?;
        self.file.read(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::*;

    #[test]
    fn a_slow_reader_gets_everything_and_a_stalled_one_an_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut patient = PatientWriter::new(File::from(OwnedFd::from(writer)), 5).unwrap();
        let slow = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let mut bytes = vec![0; 1 << 20];
            reader.read_exact(&mut bytes).map(|()| (reader, bytes))
        });
        patient.write_all(&vec![7; 1 << 20]).unwrap();
        let (_reader, bytes) = slow.join().unwrap().unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
        patient.seconds = 0;
        let stalled = patient.write_all(&vec![7; 1 << 20]).unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
        // Writes fail even after there is space again, because a part is missing.
        drop(_reader);
        assert_eq!(patient.write(b"7").unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
    #[test]
    fn a_silent_writer_is_waited_for_as_long_as_allowed() {
        let (reader, mut writer) = io::pipe().unwrap();
        let limit = Duration::from_millis(50);
        let mut reader = PatientReader::new(File::from(OwnedFd::from(reader)), limit, Box::new(|_| {}));
        writer.write_all(b"12").unwrap();
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 1);
        // After the limit, available data is not read, because a slow writer might never end.
        std::thread::sleep(limit);
        assert_eq!(reader.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        reader.limit_silence(Some(limit));
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 1);
        assert_eq!(reader.read(&mut [0; 1]).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(writer);
        reader.limit_silence(None);
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
    }
}
