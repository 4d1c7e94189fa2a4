//! Opening a file: mapping it, and unpacking gzip and Zstandard.
//!
//! The `unsafe` of memory maps is here.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap, MmapMut};

use super::maps::{self, Content, Known};
use super::sniff::{self, Looks};

/// A file, mapped for reading.
#[derive(Debug)]
pub struct Mapped {
    path: PathBuf,
    // Before the map: it has to be dropped first.
    _known: Known,
    map: Option<Mmap>,
    stamp: Stamp,
    id: FileId,
}

/// What tells an open file from another of the same name; nothing where there is no such thing.
type FileId = Option<(u64, u64)>;

fn file_id(file: &File) -> FileId {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// What a file's metadata says of its content: changes when somebody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Length in bytes.
    pub len: u64,
    /// Modification time, nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Stamp {
    /// The stamp of an open file.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let modified_ns =
            metadata.modified().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
                Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
                Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
            });
        Ok(Self { len: metadata.len(), modified_ns })
    }
}

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path names a directory.
    #[error("{} is a directory", .0.display())]
    Directory(PathBuf),
    /// The path names something that cannot be mapped: a pipe, a socket, a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The system refused.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// What was tried: "open", "map", ...
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl Mapped {
    /// Opens and maps a file. An empty file maps to no bytes.
    ///
    /// # Errors
    /// [`OpenError`]: not there, no permission, a directory, a pipe.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let fail = |what| move |error| OpenError::Io { what, path: path.to_owned(), error };
        // Looked at before it is opened: opening a named pipe would wait for its writer.
        let metadata = std::fs::metadata(path).map_err(fail("open"))?;
        if metadata.is_dir() {
            return Err(OpenError::Directory(path.to_owned()));
        }
        if !metadata.is_file() {
            return Err(OpenError::NotAFile(path.to_owned()));
        }
        let file = File::open(path).map_err(fail("open"))?;
        let stamp = Stamp::of(&file).map_err(fail("look at"))?;
        let map = if stamp.len == 0 { None } else { Some(map(&file).map_err(fail("map"))?) };
        let known = maps::known(map.as_deref().unwrap_or_default(), path, Content::File);
        Ok(Self { path: path.to_owned(), _known: known, map, stamp, id: file_id(&file) })
    }

    /// All bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's stamp when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether the file's metadata is still what it was when it was opened.
    pub fn is_unchanged(&self) -> bool {
        File::open(&self.path).and_then(|file| Stamp::of(&file)).is_ok_and(|now| now == self.stamp)
    }

    /// Whether somebody has written to the file since it was opened. One that was replaced by another of its name, or
    /// removed, stays as it is for whoever has it open.
    pub fn was_written(&self) -> bool {
        let Ok(file) = File::open(&self.path) else { return false };
        let same = file_id(&file) == self.id;
        same && Stamp::of(&file).is_ok_and(|now| now != self.stamp)
    }

    /// Tells the kernel that the file will be read from start to end.
    pub fn will_scan(&self) {
        if let Some(map) = &self.map {
            // Advice: a kernel that does not take it still reads the file.
            let _ = map.advise(Advice::Sequential);
        }
    }
}

/// Maps a whole file.
#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: The map is only read. If another process changes the file meanwhile, reads see other bytes: everything
    // read from a dump or an index is checked as untrusted, each value once it is in a register. If another process
    // truncates the file, reads past the new end raise SIGBUS: that ends this process (the command line says why, see
    // `maps`); it cannot corrupt memory.
    unsafe { Mmap::map(file) }
}

/// Maps a whole file that nobody else knows of, to be written.
#[allow(unsafe_code)]
pub(crate) fn map_scratch(file: &File) -> io::Result<MmapMut> {
    // SAFETY: The file has no name, so that no other process changes or truncates it, and this is its only map.
    unsafe { MmapMut::map_mut(file) }
}

/// A compressed form that is read directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, of one or many members.
    Gzip,
    /// Zstandard, of one or many frames.
    Zstd,
}

impl Compression {
    /// How `bytes`, the start of a file, are compressed, if they are.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match sniff::sniff(bytes) {
            Looks::Gzip => Some(Self::Gzip),
            Looks::Zstd => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    fn reader<'a>(self, input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(input)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::new(input)?),
        })
    }

    /// The first bytes of what is packed, up to `limit`; fewer if it is cut.
    pub fn peek(self, packed: &[u8], limit: u64) -> Vec<u8> {
        let mut start = Vec::new();
        if let Ok(reader) = self.reader(packed) {
            // A cut or broken input: what came before the error is the answer.
            let _ = reader.take(limit).read_to_end(&mut start);
        }
        start
    }
}

/// A text report, plain or compressed.
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    compression: Option<Compression>,
    len: u64,
}

impl TextFile {
    /// The file, if it looks like a text report of the HPROF agent.
    ///
    /// # Errors
    /// As [`Mapped::open`].
    pub fn open(path: &Path) -> Result<Option<Self>, OpenError> {
        let map = Mapped::open(path)?;
        let compression = Compression::of(map.bytes());
        let looks = match compression {
            None => sniff::sniff(map.bytes()),
            Some(compression) => sniff::sniff(&compression.peek(map.bytes(), 4096)),
        };
        let file = Self { path: path.to_owned(), compression, len: map.stamp().len };
        Ok((looks == Looks::HprofText).then_some(file))
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file as it was given.
    pub fn file_bytes(&self) -> u64 {
        self.len
    }

    /// Reads it from its start, unpacked.
    ///
    /// # Errors
    /// If it cannot be opened any more.
    pub fn reader(&self) -> io::Result<Box<dyn BufRead>> {
        let file = File::open(&self.path)?;
        Ok(match self.compression {
            None => Box::new(BufReader::with_capacity(1 << 18, file)),
            Some(compression) => Box::new(BufReader::with_capacity(1 << 18, compression.reader(file)?)),
        })
    }
}

/// What unpacking brought.
#[derive(Debug)]
pub struct Unpacked {
    /// Bytes written.
    pub len: u64,
    /// Why it ended before the input did, if it did: the file is cut or damaged.
    pub error: Option<io::Error>,
}

/// Unpacks `packed` into `out`, telling `progress` of each step's packed bytes.
///
/// A cut or damaged input is no error: what could be unpacked is written, and [`Unpacked::error`] says why it ended.
///
/// # Errors
/// If `out` cannot be written.
pub fn unpack(
    packed: &[u8],
    compression: Compression,
    out: &mut impl Write,
    progress: &dyn Fn(u64),
) -> io::Result<Unpacked> {
    let mut buffer = vec![0; 1 << 18];
    let mut len = 0;
    let counted = Counted { rest: packed, progress };
    let mut reader = match compression.reader(counted) {
        Ok(reader) => reader,
        Err(error) => {
            return Ok(Unpacked { len, error: Some(error) });
        }
    };
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(Unpacked { len, error: None }),
            Ok(read) => {
                out.write_all(buffer.get(..read).unwrap_or_default())?;
                len += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Ok(Unpacked { len, error: Some(error) });
            }
        }
    }
}

/// A reader of a slice that tells how much was read.
struct Counted<'a> {
    rest: &'a [u8],
    progress: &'a dyn Fn(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        (self.progress)(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn all_members_and_frames_are_unpacked() {
        let parts: [&[u8]; 3] = [b"JAVA PROFILE", b"", &[7; 100_000]];
        let gz: Vec<u8> = parts.iter().flat_map(|part| gzip(part)).collect();
        let zst: Vec<u8> = parts.iter().flat_map(|part| zstd::encode_all(*part, 1).unwrap()).collect();
        for (packed, compression) in [(gz, Compression::Gzip), (zst, Compression::Zstd)] {
            let mut out = Vec::new();
            let seen = std::cell::Cell::new(0);
            let unpacked =
                unpack(&packed, compression, &mut out, &|bytes| seen.set(seen.get() + bytes)).unwrap();
            assert_eq!(out, parts.concat());
            assert_eq!((unpacked.len, seen.get()), (out.len() as u64, packed.len() as u64));
            assert!(unpacked.error.is_none());
            assert_eq!(Compression::of(&packed), Some(compression));
            assert_eq!(compression.peek(&packed, 4), b"JAVA");
        }
    }

    #[test]
    fn a_cut_input_gives_what_is_there() {
        let packed = gzip(&[7; 100_000]);
        let mut out = Vec::new();
        let unpacked = unpack(&packed[..packed.len() / 2], Compression::Gzip, &mut out, &|_| {}).unwrap();
        assert!(unpacked.error.is_some());
        assert_eq!(unpacked.len, out.len() as u64);
    }
}
