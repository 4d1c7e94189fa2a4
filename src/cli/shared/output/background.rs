//! Writing on a separate thread, while the next bytes are computed.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Number of bytes that are passed to the thread at once.
const CHUNK: usize = 1 << 20;
/// Maximum number of chunks in memory.
const CHUNKS: usize = 16;

/// Runs `work` with a writer whose bytes another thread writes to `out`. Returns the result of `work`, and the result of
/// writing.
pub(crate) fn in_background<T>(
    out: &mut (dyn Write + Send),
    work: impl FnOnce(&mut dyn Write) -> T,
) -> (T, io::Result<()>) {
    thread::scope(|scope| {
        let (sender, chunks) = sync_channel::<Vec<u8>>(CHUNKS);
        // Written chunks are reused: new memory costs more than the copy into it.
        let (used, free) = sync_channel::<Vec<u8>>(CHUNKS);
        let write = move || -> io::Result<()> {
            chunks.iter().try_for_each(|mut chunk| {
                out.write_all(&chunk)?;
                chunk.clear();
                // Dropped if there are enough, or if the receiver has ended.
                let _ = used.try_send(chunk);
                Ok(())
            })
        };
        let writer = match thread::Builder::new().name("writer".to_owned()).spawn_scoped(scope, write) {
            Ok(writer) => writer,
            Err(error) => {
                // The receiver is gone: the first write fails.
                let result = work(&mut Chunks { sender, free, chunk: Vec::new() });
                return (result, Err(error));
            }
        };
        let mut writing = Chunks { sender, free, chunk: Vec::with_capacity(CHUNK) };
        let result = work(&mut writing);
        let flushed = writing.flush();
        drop(writing);
        let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread failed")));
        (result, written.and(flushed))
    })
}

/// A writer that passes chunks to the writing thread.
struct Chunks {
    sender: SyncSender<Vec<u8>>,
    /// Chunks that were written and can be reused.
    free: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Chunks never grow beyond their capacity: longer input becomes several.
        let (now, _) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
        self.chunk.extend_from_slice(now);
        if self.chunk.len() >= CHUNK {
            self.flush()?;
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let next = self.free.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let chunk = std::mem::replace(&mut self.chunk, next);
        // The thread has ended with an error, which `in_background` returns.
        self.sender.send(chunk).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
