//! Compression of a stream.

use std::io::{self, Write};
use std::path::Path;

use super::Compression;

/// Writer that compresses.
pub enum Encoder<W: Write> {
    /// Not at all.
    Plain(W),
    /// With gzip, at its fastest level.
    Gzip(flate2::write::GzEncoder<W>),
    /// With Zstandard, at level 1, with a checksum.
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> std::fmt::Debug for Encoder<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain(..)",
            Self::Gzip(_) => "Gzip(..)",
            Self::Zstd(_) => "Zstd(..)",
        })
    }
}

impl Compression {
    /// Returns the compression that the name of a file stands for: `.gz`, `.zst`.
    pub fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "gz" => Some(Self::Gzip),
            "zst" | "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }
}

impl<W: Write> Encoder<W> {
    /// Starts a stream. Archives cannot be written.
    ///
    /// # Errors
    /// If memory is short; [`io::ErrorKind::Unsupported`] for archives.
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
            Some(_) => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Writes the end of the stream, without which the file does not look complete, and returns the writer.
    ///
    /// # Errors
    /// Those of the writer.
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
