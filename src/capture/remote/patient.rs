//! Writing to a connection that may stall.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// Writes that fail if nothing is taken for some time: a JVM stands still as long as they last.
#[derive(Debug)]
pub struct PatientWriter {
    file: File,
    seconds: i64,
    has_failed: bool,
}

impl PatientWriter {
    /// Makes one that waits at most `seconds` for each part. The file must not be shared with others: it no longer blocks.
    ///
    /// # Errors
    ///
    /// Those of the system.
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
        // What was written in part is of no use, and another wait would double the time.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Read;
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
        // Also once there is space: a part is missing.
        drop(_reader);
        assert_eq!(patient.write(b"7").unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
