//! Streams over the bytes of a dump: a hash of them, the release of pages that were read, an end at the first error.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use hprof_query::recover::RecoverSource;

/// A reader or writer that hashes and counts the bytes that pass.
pub(crate) struct HashingStream<T> {
    pub(crate) inner: T,
    hash: Xxh3,
    pub(crate) bytes: u64,
}

impl<T> HashingStream<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, hash: Xxh3::new(), bytes: 0 }
    }

    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(crate) fn hash(&self) -> String {
        format!("{:032x}", self.hash.digest128())
    }
}

impl<W: Write> Write for HashingStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.pass(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for HashingStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.pass(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

/// Number of bytes after which pages of the file are released.
const RELEASED: usize = 32 << 20;

/// Position in a file that is read once from the start: pages that were read are released.
pub(super) struct FilePosition<'s> {
    source: &'s RecoverSource,
    at: usize,
    released: usize,
}

impl<'s> FilePosition<'s> {
    pub(super) fn new(source: &'s RecoverSource) -> Self {
        Self { source, at: 0, released: 0 }
    }

    /// Advances by a number of bytes.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        if self.at - self.released >= RELEASED {
            self.source.give_back(self.released..self.at);
            self.released = self.at;
        }
    }
}

/// A decompressor whose errors end the stream.
pub(super) struct UntilError<'e, R> {
    pub(super) from: R,
    pub(super) is_packed: bool,
    pub(super) error: &'e mut Option<String>,
}

impl<R: Read> Read for UntilError<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.error.is_some() {
            return Ok(0);
        }
        match self.from.read(buffer) {
            Err(error) if self.is_packed && error.kind() != io::ErrorKind::Interrupted => {
                *self.error = Some(error.to_string());
                Ok(0)
            }
            result => result,
        }
    }
}
