//! One stream, unpacked by one thread while another one writes.

use std::io::{self, Read};
use std::sync::mpsc;
use std::thread;

use super::{Output, Unpacked};

/// Bytes that are passed on at once.
const PART: usize = 1 << 20;
/// Parts in memory.
const PARTS: usize = 4;

/// Copies all that `reader` gives. An error of the reader ends it, as the end does; [`Unpacked::error`] says so.
///
/// # Errors
/// If the output fails.
pub(super) fn copy(reader: &mut dyn Read, out: &dyn Output) -> io::Result<Unpacked> {
    if rayon::current_num_threads() == 1 {
        let mut buffer = vec![0; PART];
        let mut len = 0;
        loop {
            let (filled, end) = fill(reader, &mut buffer);
            let bytes = buffer.get(..filled).unwrap_or_default();
            out.pass(bytes)?;
            out.write_at(len, bytes)?;
            len += filled as u64;
            if let Some(error) = end {
                return Ok(Unpacked { len, error: error.map(|error| after(error, len)) });
            }
        }
    }
    thread::scope(|scope| {
        let (full, to_write) = mpsc::sync_channel::<(Vec<u8>, usize)>(PARTS);
        let (written, empty) = mpsc::channel();
        for _ in 0..PARTS {
            // The other end is there.
            let _ = written.send(vec![0; PART]);
        }
        let writer = scope.spawn(move || -> io::Result<u64> {
            let mut len = 0;
            for (buffer, filled) in to_write {
                let bytes = buffer.get(..filled).unwrap_or_default();
                out.pass(bytes)?;
                out.write_at(len, bytes)?;
                len += filled as u64;
                // Nobody wants it any more once all is read.
                let _ = written.send(buffer);
            }
            Ok(len)
        });
        let mut error = None;
        // A writer that fails takes its end of the channels with it, and this ends.
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
        let len = writer.join().map_err(|_| io::Error::other("a thread panicked"))??;
        Ok(Unpacked { len, error: error.map(|error| after(error, len)) })
    })
}

/// Says where an error came.
fn after(error: String, len: u64) -> String {
    format!("{error}, after {len} unpacked bytes")
}

/// The first bytes of `reader`, up to `limit`, and the error that ended it.
pub(super) fn start(reader: &mut dyn Read, limit: u64) -> (Vec<u8>, Option<io::Error>) {
    let mut start = Vec::new();
    let error = reader.take(limit).read_to_end(&mut start).err();
    (start, error)
}

/// Fills `buffer`: how far, and if the reader ended, why: with an error or without.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> (usize, Option<Option<String>>) {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match reader.read(room) {
            Ok(0) => return (filled, Some(None)),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(Some(error.to_string()))),
        }
    }
    (filled, None)
}
