//! A socket with a timeout for clients that do not read.
//!
//! hyper has a timeout for the heads of requests but none for responses: a client that requests thirty megabytes and
//! reads nothing could hold them indefinitely.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Maximum time for a client to read [`MIN_BYTES`] of a pending response.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// Minimum number of bytes that a client must read within [`WRITE_TIME`]: 8.5 KiB/s, the speed of a slow tunnel.
const MIN_BYTES: usize = 256 << 10;

/// A stream that fails if its client does not read fast enough.
pub(super) struct TimeoutStream<S> {
    stream: S,
    /// Time at which the connection fails, while data is pending.
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// Number of bytes read by the client since the deadline was set.
    taken: usize,
}

impl<S> TimeoutStream<S> {
    /// Creates a stream without pending data.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(tokio::time::sleep(WRITE_TIME)), is_waiting: false, taken: 0 }
    }

    fn written(
        &mut self,
        context: &mut Context<'_>,
        done: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = done {
            self.taken += bytes;
        }
        if !self.is_waiting || self.taken >= MIN_BYTES {
            self.is_waiting = true;
            self.taken = 0;
            self.deadline.as_mut().reset(Instant::now() + WRITE_TIME);
        }
        // Even if some bytes were read: a byte now and then is not enough.
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => done,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Records that nothing is pending: hyper flushes when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_waiting = false;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Writes forever to a client that reads `taken` bytes after each `pause`. Returns the error, or `None` after ten
    /// minutes.
    async fn until_given_up(taken: usize, pause: Duration) -> Option<io::ErrorKind> {
        let (mut client, server) = tokio::io::duplex(64 << 10);
        let mut patience = TimeoutStream::new(server);
        let reads = async {
            let mut buffer = vec![0; taken];
            loop {
                tokio::time::sleep(pause).await;
                client.read_exact(&mut buffer).await.unwrap();
            }
        };
        let writes = async {
            let bytes = vec![0; 4 << 20];
            loop {
                let write = poll_fn(|context| Pin::new(&mut patience).poll_write(context, &bytes));
                if let Err(error) = write.await {
                    return error.kind();
                }
            }
        };
        tokio::select! {
            () = reads => None,
            error = writes => Some(error),
            () = tokio::time::sleep(Duration::from_secs(600)) => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_drips_is_given_up() {
        assert_eq!(until_given_up(16 << 10, Duration::from_secs(5)).await, Some(io::ErrorKind::TimedOut));
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_is_not() {
        assert_eq!(until_given_up(128 << 10, Duration::from_secs(5)).await, None);
    }
}
