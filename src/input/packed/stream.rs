//! A stream, unpacked by one thread while another one writes.

use std::io::{self, Read};
use std::sync::mpsc;
use std::thread;

use super::{Output, UnpackOutcome};

/// Number of bytes that are passed on at once.
const CHUNK: usize = 1 << 20;
/// Number of chunks in memory.
const PARTS: usize = 4;

/// Copies everything from `reader`. An error of the reader ends it like the end of the stream; [`UnpackOutcome::error`]
/// contains it.
///
/// # Errors
/// If the output fails, or the reader cannot allocate memory.
pub(super) fn copy(reader: &mut dyn Read, out: &dyn Output) -> io::Result<UnpackOutcome> {
    let mut len = 0;
    let mut write = |bytes: &[u8]| {
        out.receive(bytes)?;
        out.write_at(len, bytes)?;
        len += bytes.len() as u64;
        io::Result::Ok(())
    };
    // If limits allow no second thread, one does everything.
    let by_two = if rayon::current_num_threads() == 1 { None } else { copy_by_two(reader, &mut write)? };
    let error = match by_two {
        Some(error) => error,
        None => {
            let mut buffer = vec![0; CHUNK];
            loop {
                let (filled, end) = fill(reader, &mut buffer);
                write(buffer.get(..filled).unwrap_or_default())?;
                if let Some(error) = end {
                    break error;
                }
            }
        }
    };
    let error = error.map(super::of_the_file).transpose()?;
    Ok(UnpackOutcome { len, error: error.map(|error| after(&error, len)) })
}

/// Reads in this thread and writes in another one; returns the error that ended the reader. `None` if no other thread
/// can be started: nothing is read then.
fn copy_by_two(
    reader: &mut dyn Read,
    write: &mut (dyn FnMut(&[u8]) -> io::Result<()> + Send),
) -> io::Result<Option<Option<io::Error>>> {
    thread::scope(|scope| {
        let (full, to_write) = mpsc::sync_channel::<(Vec<u8>, usize)>(PARTS);
        let (written, empty) = mpsc::channel();
        for _ in 0..PARTS {
            // The receiver exists.
            let _ = written.send(vec![0; CHUNK]);
        }
        let work = move || -> io::Result<()> {
            for (buffer, filled) in to_write {
                write(buffer.get(..filled).unwrap_or_default())?;
                // The receiver is gone once everything is read.
                let _ = written.send(buffer);
            }
            Ok(())
        };
        let Ok(writer) = thread::Builder::new().spawn_scoped(scope, work) else {
            return Ok(None);
        };
        let mut error = None;
        // A writer that fails closes its channels, which ends this loop.
        while let Ok(mut buffer) = empty.recv() {
            let (filled, end) = fill(reader, &mut buffer);
            if full.send((buffer, filled)).is_err() {
                break;
            }
            if let Some(end) = end {
                error = end;
                break;
            }
        }
        drop(full);
        writer.join().map_err(|_| io::Error::other("a thread panicked"))??;
        Ok(Some(error))
    })
}

/// Adds the offset to an error.
fn after(error: &str, len: u64) -> String {
    format!("{error}, after {len} unpacked bytes")
}

/// Maximum number of bytes that are unpacked and discarded, per packed byte of a file. Zstandard makes 128 KiB of four bytes:
/// skipping the output of a file of 100 MB could take hours.
const BESIDE: u64 = 1000;
/// Number of bytes that may be unpacked and discarded in addition, whatever the length of the file.
const BESIDE_AT_LEAST: u64 = 1 << 30;

/// A reader of unpacked data that is not written, with a bound: the disk sets none.
pub(super) struct BoundedReader<R> {
    reader: R,
    bound: u64,
    /// Number of bytes until the bound.
    left: u64,
}

impl<R> BoundedReader<R> {
    /// Creates a reader bounded by the length of the packed file.
    pub(super) const fn new(reader: R, packed_bytes: u64) -> Self {
        let bound = packed_bytes.saturating_mul(BESIDE).saturating_add(BESIDE_AT_LEAST);
        Self { reader, bound, left: bound }
    }

    /// Returns the reader without the bound, for data that is written.
    pub(super) const fn free(&mut self) -> &mut R {
        &mut self.reader
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let text = format!(
                "it unpacks to more than {} bytes besides the dump; the rest is not read",
                self.bound
            );
            io::Error::new(io::ErrorKind::FileTooLarge, text)
        })?;
        Ok(read)
    }
}

/// Returns the first bytes of `reader`, up to `limit`, and the error that ended it.
pub(super) fn start(reader: &mut dyn Read, limit: u64) -> (Vec<u8>, Option<io::Error>) {
    let mut start = Vec::new();
    let error = reader.take(limit).read_to_end(&mut start).err();
    (start, error)
}

/// Fills `buffer`: returns the number of bytes, and at the end of the reader its error, if any.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> (usize, Option<Option<io::Error>>) {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => return (filled, Some(None)),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(Some(error))),
        }
    }
    (filled, None)
}
