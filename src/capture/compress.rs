//! Compression of dumps by this process. JVMs compress too, but only with gzip, and they stand still meanwhile.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

/// Format of compressed dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Compression {
    /// gzip, at its fastest level.
    Gzip,
    /// zstd, at level 1, with a checksum.
    Zstd,
}

/// Writer of a dump.
pub(crate) enum Encoder<'w> {
    Plain(&'w mut (dyn Write + Send)),
    Gzip(flate2::write::GzEncoder<&'w mut (dyn Write + Send)>),
    Zstd(zstd::Encoder<'static, &'w mut (dyn Write + Send)>),
}

impl<'w> Encoder<'w> {
    pub(crate) fn new(compression: Option<Compression>, out: &'w mut (dyn Write + Send)) -> io::Result<Self> {
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

    /// Writes the end of the stream. Without it, the file does not look complete.
    pub(crate) fn finish(self) -> io::Result<()> {
        let out = match self {
            Self::Plain(out) => out,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        out.flush()
    }
}

impl Write for Encoder<'_> {
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
    /// Returns the suffix of its files.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// Copies a file, compressed, and returns its length before compression.
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
