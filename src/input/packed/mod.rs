//! Packed dumps: gzip, gzip in blocks, Zstandard, and tar or zip archives that contain one dump.
//!
//! `blocks` and `member` unpack gzip of many members with all cores; `stream` everything else, sequentially. `tar` and
//! `zip` find members; `archive` finds the dump among them. Nothing in a packed file is trusted: neither stated sizes
//! nor offsets nor names.

mod archive;
mod blocks;
mod gzip;
mod member;
mod stream;
mod tar;
mod zip;
mod zstandard;

use std::io::{self, Read};

use hprof_parser::sniff::{self, FileKind};

/// Callback that receives the number of packed bytes of each step.
pub type ProgressCallback<'a> = dyn Fn(u64) + Sync + 'a;

/// Compression of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, of one or many members.
    Gzip,
    /// Zstandard, of one or many frames.
    Zstd,
    /// A tar archive.
    Tar,
    /// A tar archive in gzip.
    TarGzip,
    /// A tar archive in Zstandard.
    TarZstd,
    /// A zip archive.
    Zip,
}

/// Number of bytes at the start of a file that suffice to detect its format.
const PEEKED: u64 = 4096;
/// Number of packed bytes that may yield nothing, in addition to the requested number: Zstandard yields nothing before
/// it has a block of 128 KiB, a gzip header may have 64 KiB. Empty members and skippable frames may yield nothing over
/// the length of a file.
const GIVE_NOTHING: u64 = 256 << 10;

impl Compression {
    /// Returns the compression of a file that starts with `bytes`, if it is packed.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        let plain = match sniff::sniff(bytes) {
            FileKind::Gzip => Self::Gzip,
            FileKind::Zstd => Self::Zstd,
            FileKind::Tar if tar::is_header(bytes) => return Some(Self::Tar),
            FileKind::Zip if zip::is_header(bytes) => return Some(Self::Zip),
            _ => return None,
        };
        let start = plain.peek(bytes, PEEKED).0;
        let is_tar = sniff::sniff(&start) == FileKind::Tar && tar::is_header(&start);
        Some(match plain {
            Self::Gzip if is_tar => Self::TarGzip,
            _ if is_tar => Self::TarZstd,
            plain => plain,
        })
    }

    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Tar => "tar",
            Self::TarGzip => "tar in gzip",
            Self::TarZstd => "tar in zstd",
            Self::Zip => "zip",
        }
    }

    /// Returns whether this is an archive of files, not a single compressed file.
    pub const fn is_archive(self) -> bool {
        !matches!(self, Self::Gzip | Self::Zstd)
    }

    /// Returns a reader that decompresses `input`; for a compressed archive, only the outer compression.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn reader<'a>(self, input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip | Self::TarGzip => Box::new(gzip::GzipReader::new(input)),
            Self::Zstd | Self::TarZstd => Box::new(zstandard::ZstdReader::new(input)?),
            Self::Tar | Self::Zip => Box::new(input),
        })
    }

    /// Returns the first unpacked bytes, up to `limit`; fewer if the file is truncated or damaged, or if its packed
    /// bytes yield so little that no more are examined, together with the reason.
    pub fn peek(self, packed: &[u8], limit: u64) -> (Vec<u8>, Option<io::Error>) {
        let bound = usize::try_from(limit.saturating_add(GIVE_NOTHING)).unwrap_or(usize::MAX);
        let near = packed.get(..bound).unwrap_or(packed);
        let (start, error) = match self.reader(near) {
            Ok(mut reader) => stream::start(&mut reader, limit),
            Err(error) => (Vec::new(), Some(error)),
        };
        // The examined part ended, not the file.
        let is_end = error.as_ref().is_none_or(|error| error.kind() == io::ErrorKind::UnexpectedEof);
        if near.len() == packed.len() || start.len() as u64 == limit || !is_end {
            return (start, error);
        }
        let text = format!("its first {bound} compressed bytes unpack to only {} bytes", start.len());
        (start, Some(io::Error::new(io::ErrorKind::InvalidData, text)))
    }
}

/// Size of a dump as known before it is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Size stated in the file.
    Stated(u64),
    /// Smallest possible size; the actual one may be larger by a multiple of 4 GiB.
    AtLeast(u64),
    /// Estimate by samples from all over the file.
    About(u64),
}

impl Size {
    /// Returns the number of bytes.
    pub const fn bytes(self) -> u64 {
        let (Self::Stated(bytes) | Self::AtLeast(bytes) | Self::About(bytes)) = self;
        bytes
    }
}

/// Destination of an unpacked dump.
pub trait Output: Sync {
    /// Receives the known size, before anything is written.
    ///
    /// # Errors
    /// If this size cannot be stored.
    fn expect(&self, size: Size) -> io::Result<()>;

    /// Receives all bytes in order, each once. Never called by two threads at a time.
    ///
    /// # Errors
    /// If they cannot be processed.
    fn receive(&self, bytes: &[u8]) -> io::Result<()>;

    /// Writes bytes that were passed, at their offset. Called by many threads, in any order.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
}

/// Result of unpacking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackOutcome {
    /// Number of bytes written.
    pub len: u64,
    /// Description of the missing part, if the file is truncated or damaged.
    pub error: Option<String>,
}

impl UnpackOutcome {
    /// Returns the result for a file of which nothing can be read.
    ///
    /// # Errors
    /// If the file is not the cause.
    fn nothing(error: io::Error) -> io::Result<Self> {
        let error = Some(of_the_file(error)?);
        Ok(Self { len: 0, error })
    }
}

/// Returns the description of a packed file's damage, by the error of its reader.
///
/// # Errors
/// The error itself if the file is not its cause: if there is no memory, no file can be read.
fn of_the_file(error: io::Error) -> io::Result<String> {
    if error.kind() == io::ErrorKind::OutOfMemory { Err(error) } else { Ok(error.to_string()) }
}

/// Reason why nothing was unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The output failed.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The archive does not contain exactly one dump.
    #[error(transparent)]
    Members(#[from] Members),
}

/// Contents of an archive that does not contain exactly one dump.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Members {
    /// Names of the first dumps.
    pub dumps: Vec<String>,
    /// Names of the first files.
    pub files: Vec<String>,
    /// Number of dumps.
    pub dump_count: u64,
    /// Number of files.
    pub file_count: u64,
    /// Damage of the archive itself.
    pub damage: Option<String>,
}

/// Maximum number of names that are stored.
const NAMES: usize = 20;

impl Members {
    fn new() -> Self {
        Self { dumps: Vec::new(), files: Vec::new(), dump_count: 0, file_count: 0, damage: None }
    }

    fn add(&mut self, name: &str, is_dump: bool) {
        let add = |names: &mut Vec<String>, count: &mut u64| {
            *count += 1;
            if names.len() < NAMES {
                names.push(name.chars().take(300).collect());
            }
        };
        add(&mut self.files, &mut self.file_count);
        if is_dump {
            add(&mut self.dumps, &mut self.dump_count);
        }
    }

    fn text(&self) -> String {
        let list = |names: &[String], count: u64| {
            let more = count.saturating_sub(names.len() as u64);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("{}{more}", names.join(", "))
        };
        let mut text = match (self.dump_count, self.file_count) {
            (0, 0) => "it contains no files".to_owned(),
            (0, count) => format!("it contains no heap dump: {}", list(&self.files, count)),
            (count, _) => format!("it contains {count} heap dumps: {}", list(&self.dumps, count)),
        };
        if let Some(damage) = &self.damage {
            text = format!("{text}; {damage}");
        }
        text
    }
}

/// Unpacks `packed` into `out`, and calls `progress` with each step's packed bytes.
///
/// A truncated or damaged input is not an error: the readable part is written, and [`UnpackOutcome::error`] describes what is
/// missing. gzip of many members is unpacked by all threads of the pool.
///
/// # Errors
/// If the output fails, there is no memory, or an archive does not contain exactly one dump.
pub fn unpack(
    packed: &[u8],
    compression: Compression,
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> Result<UnpackOutcome, UnpackError> {
    match compression {
        Compression::Gzip | Compression::Zstd => Ok(unpack_file(packed, compression, out, progress)?),
        Compression::Tar => archive::tar(packed, out, progress),
        Compression::Zip => archive::zip(packed, out, progress),
        Compression::TarGzip | Compression::TarZstd => archive::stream(packed, compression, out, progress),
    }
}

/// Unpacks a file that is not an archive.
fn unpack_file(
    packed: &[u8],
    compression: Compression,
    out: &dyn Output,
    progress: &ProgressCallback<'_>,
) -> io::Result<UnpackOutcome> {
    let in_blocks = compression == Compression::Gzip && blocks::has_small_members(packed);
    let size = match compression {
        Compression::Zstd => {
            let stated = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
            // A skippable frame states no size.
            stated.filter(|bytes| *bytes > 0).map(Size::Stated)
        }
        _ if in_blocks => blocks::estimate(packed).map(Size::About),
        _ => at_least(packed),
    };
    if let Some(size) = size {
        out.expect(size)?;
    }
    if in_blocks {
        return blocks::unpack(packed, out, progress);
    }
    match compression.reader(CountingReader { rest: packed, progress }) {
        Ok(mut reader) => stream::copy(&mut reader, out),
        Err(error) => UnpackOutcome::nothing(error),
    }
}

/// Returns the minimum unpacked size of gzip with one member. Its last bytes state its length modulo 4 GiB, and data is
/// never much shorter than its packed form: codes of rare bytes have up to nine bits. The last bytes of a truncated
/// file state nothing: a number far from the ratio at its start is not a length, nor are zeros, which are padding.
fn at_least(packed: &[u8]) -> Option<Size> {
    let stated = u64::from(member::length_before(packed, packed.len())?);
    if stated == 0 {
        return None;
    }
    let (took, made) = blocks::first_member_lengths(packed)?;
    let likely = u128::from(made) * packed.len() as u128 / u128::from(took.max(1));
    let least = (packed.len() as u64 / 8 * 7).saturating_sub(1 << 16);
    let wraps = least.saturating_sub(stated).div_ceil(1 << 32);
    let bytes = stated.saturating_add(wraps << 32);
    (u128::from(bytes) <= likely.saturating_mul(4)).then_some(Size::AtLeast(bytes))
}

/// A reader of a slice that reports the number of bytes read.
struct CountingReader<'a> {
    rest: &'a [u8],
    progress: &'a ProgressCallback<'a>,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}
