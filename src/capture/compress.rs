//! Compression of dumps by this process. JVMs can compress only with gzip, and their threads are suspended meanwhile.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Format of compressed dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// gzip, at its fastest level.
    Gzip,
    /// zstd, at level 1, with a checksum.
    Zstd,
}

/// Writer that compresses its input.
pub enum Encoder<W: Write> {
    /// Uncompressed.
    Plain(W),
    /// Compressed with gzip.
    Gzip(flate2::write::GzEncoder<W>),
    /// Compressed with zstd.
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain(..)",
            Self::Gzip(_) => "Gzip(..)",
            Self::Zstd(_) => "Zstd(..)",
        })
    }
}

impl<W: Write> Encoder<W> {
    /// Starts a compressed stream, or an uncompressed one for `None`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(compression: Option<Compression>, out: W) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(out),
            Some(Compression::Gzip) => {
                Self::Gzip(flate2::write::GzEncoder::new(out, flate2::Compression::fast()))
            }
            Some(Compression::Zstd) => {
                let mut encoder = zstd::Encoder::new(out, 1)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Writes the end of the stream, without which the file is incomplete, and returns the writer.
    ///
    /// # Errors
    /// Errors of the underlying writer.
    pub fn finish(self) -> io::Result<W> {
        let mut out = match self {
            Self::Plain(out) => out,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> Write for Encoder<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
        }
    }
}

impl Compression {
    /// Returns the compression for the suffix of a file name: `.gz` or `.zst`.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns the suffix of the names of compressed files, with the dot: `.gz` or `.zst`.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// Copies a file, compressing it, and returns the number of uncompressed bytes.
pub(crate) fn copy(
    file: &mut impl Read,
    compression: Option<Compression>,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64),
) -> io::Result<u64> {
    let mut encoder = Encoder::new(compression, out)?;
    let mut block = vec![0; 1 << 20];
    let mut total = 0u64;
    loop {
        let length = match file.read(&mut block) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        encoder.write_all(block.get(..length).unwrap_or_default())?;
        total = total.saturating_add(length as u64);
        progress(length as u64);
    }
    encoder.finish()?;
    Ok(total)
}
