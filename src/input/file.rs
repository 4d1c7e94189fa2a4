//! Opening and mapping files, and reading text reports. [`super::packed`] unpacks compressed files.
//!
//! All `unsafe` code for memory maps is here.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::{Advice, Mmap, MmapMut, UncheckedAdvice};

use super::mapped_files::{self, Content, KnownMap};
pub use super::packed::Compression;
use hprof_parser::sniff::{self, FileKind};

/// A file, mapped for reading.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    // Before the map: it has to be dropped first.
    _known: KnownMap,
    map: Option<Mmap>,
    stamp: Stamp,
    id: FileId,
}

/// Identity of an open file, which another file of the same name does not share; `None` on platforms without one.
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

/// Metadata of a file that changes when somebody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Length in bytes.
    pub len: u64,
    /// Modification time, nanoseconds since 1970.
    pub modified_ns: i128,
}

impl Stamp {
    /// Returns the stamp of an open file.
    ///
    /// # Errors
    /// If the file's metadata cannot be read.
    pub fn from_file(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let modified_ns =
            metadata.modified().map_or(0, |time| match time.duration_since(std::time::UNIX_EPOCH) {
                Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
                Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
            });
        Ok(Self { len: metadata.len(), modified_ns })
    }
}

/// Error while opening a file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path names a directory.
    #[error("{} is a directory", .0.display())]
    Directory(PathBuf),
    /// The path names a file that cannot be mapped: a pipe, a socket, a device.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// I/O error.
    #[error("cannot {what} {}: {error}", path.display())]
    Io {
        /// Failed action: "open", "map", ...
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl MappedFile {
    /// Opens and maps a file. An empty file maps to no bytes.
    ///
    /// # Errors
    /// [`OpenError`]: missing, no permission, a directory, a pipe.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let fail = |what| move |error| OpenError::Io { what, path: path.to_owned(), error };
        // Checked before opening: opening a named pipe would wait for its writer.
        let metadata = std::fs::metadata(path).map_err(fail("open"))?;
        if metadata.is_dir() {
            return Err(OpenError::Directory(path.to_owned()));
        }
        if !metadata.is_file() {
            return Err(OpenError::NotAFile(path.to_owned()));
        }
        let file = File::open(path).map_err(fail("open"))?;
        Self::from_file(&file, path.to_owned(), Content::File)
    }

    /// Maps an open file. `path`, for messages, is the path of its directory if the file has no name.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn from_file(file: &File, path: PathBuf, content: Content) -> Result<Self, OpenError> {
        let fail = |what| {
            let path = path.clone();
            move |error| OpenError::Io { what, path, error }
        };
        let stamp = Stamp::from_file(file).map_err(fail("read the metadata of"))?;
        let map = if stamp.len == 0 { None } else { Some(map(file).map_err(fail("map"))?) };
        let known = mapped_files::register(map.as_deref().unwrap_or_default(), &path, content);
        Ok(Self { path, _known: known, map, stamp, id: file_id(file) })
    }

    /// Returns all bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's stamp when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Returns whether the file at the path still has the metadata that it had when it was opened.
    pub fn is_unchanged(&self) -> bool {
        File::open(&self.path).and_then(|file| Stamp::from_file(&file)).is_ok_and(|now| now == self.stamp)
    }

    /// Returns whether somebody has written to the file since it was opened. A file that was replaced by another of its name,
    /// or removed, is unchanged for a process that has it open.
    pub fn was_written(&self) -> bool {
        let Ok(file) = File::open(&self.path) else { return false };
        let same = file_id(&file) == self.id;
        same && Stamp::from_file(&file).is_ok_and(|now| now != self.stamp)
    }

    /// Returns whether the file is longer than when it was opened: somebody appends to it.
    pub fn has_grown(&self) -> bool {
        let Ok(file) = File::open(&self.path) else { return false };
        file_id(&file) == self.id && Stamp::from_file(&file).is_ok_and(|now| now.len > self.stamp.len)
    }

    /// Tells the kernel that the file will be read from start to end.
    pub fn will_scan(&self) {
        if let Some(map) = &self.map {
            // Advisory: a kernel that ignores it still reads the file.
            let _ = map.advise(Advice::Sequential);
        }
    }
}

impl MappedFile {
    /// Tells the kernel that these bytes will not be read soon: they no longer count as memory of this process, and
    /// reading them again uses the page cache.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    pub fn give_back(&self, range: Range<usize>) {
        if let Some(map) = self.map.as_ref().filter(|map| range.start <= range.end && range.end <= map.len())
        {
            // SAFETY: The map is shared with the file and never written to: reading again returns the content of the
            // file, as if these pages had not been read before.
            let _ = unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.end - range.start)
            };
        }
    }

    /// Does nothing: elsewhere the kernel decides.
    #[cfg(not(target_os = "linux"))]
    pub fn give_back(&self, _: Range<usize>) {}
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

/// Maps a whole file that no other process can access, for writing.
#[allow(unsafe_code)]
pub fn map_scratch(file: &File) -> io::Result<MmapMut> {
    // SAFETY: The file has no name, so that no other process changes or truncates it, and this is its only map.
    unsafe { MmapMut::map_mut(file) }
}

/// A text report or another text, plain or compressed.
#[derive(Debug)]
pub struct TextFile {
    path: PathBuf,
    compression: Option<Compression>,
    len: u64,
}

impl TextFile {
    /// Opens the file, if it looks like a text report of the HPROF agent.
    ///
    /// # Errors
    /// Errors of [`MappedFile::open`].
    pub fn open(path: &Path) -> Result<Option<Self>, OpenError> {
        Ok(Self::from_map(&MappedFile::open(path)?))
    }

    /// Opens the file, if it looks like a text with class histograms.
    ///
    /// # Errors
    /// Errors of [`MappedFile::open`].
    pub fn open_class_histogram(path: &Path) -> Result<Option<Self>, OpenError> {
        Ok(Self::from_map_of_kind(&MappedFile::open(path)?, FileKind::ClassHistogram))
    }

    /// Returns the text report in a file that is open, if it looks like one.
    pub fn from_map(map: &MappedFile) -> Option<Self> {
        Self::from_map_of_kind(map, FileKind::HprofText)
    }

    fn from_map_of_kind(map: &MappedFile, kind: FileKind) -> Option<Self> {
        // Text reports in archives are not supported.
        let compression = Compression::detect(map.bytes()).filter(|compression| !compression.is_archive());
        let looks = match compression {
            None => sniff::sniff(map.bytes()),
            Some(compression) => sniff::sniff(&compression.peek(map.bytes(), 4096).0),
        };
        let file = Self { path: map.path().to_owned(), compression, len: map.stamp().len };
        (looks == kind).then_some(file)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the compression of the file, if it is compressed.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Returns the length of the file on disk.
    pub fn file_bytes(&self) -> u64 {
        self.len
    }

    /// Returns a reader of the unpacked file from its start.
    ///
    /// # Errors
    /// If it can no longer be opened.
    pub fn reader(&self) -> io::Result<Box<dyn BufRead>> {
        let file = File::open(&self.path)?;
        Ok(match self.compression {
            None => Box::new(BufReader::with_capacity(1 << 18, file)),
            Some(compression) => Box::new(BufReader::with_capacity(1 << 18, compression.reader(file)?)),
        })
    }
}
