//! Streams over the bytes of a dump: hashing them, releasing pages that were read, ending at the first error.

use std::io::{self, Read, Write};

use xxhash_rust::xxh3::Xxh3;

use hprof_query::recover::RecoverSource;

/// A reader or writer that computes a hash and the number of the bytes read or written.
pub(crate) struct HashingStream<T> {
    pub(crate) inner: T,
    hash: Xxh3,
    pub(crate) bytes: u64,
}

impl<T> HashingStream<T> {
    /// Creates a stream with an empty hash.
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, hash: Xxh3::new(), bytes: 0 }
    }

    /// Adds bytes to the hash and the count.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Returns the hash in hexadecimal.
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

/// Position in a mapped file that is read once from the start: releases the pages that were read.
pub(super) struct FilePosition<'s> {
    source: &'s RecoverSource,
    at: usize,
    released: usize,
}

impl<'s> FilePosition<'s> {
    /// Creates a position at the start of a file.
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

/// A reader that ends at the first error of a decompressor, and stores its text.
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
