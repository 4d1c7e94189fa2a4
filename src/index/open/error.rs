//! Errors of opening a dump.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::estimate::NoDisk;
use crate::objects::address_index::TooManyObjects;
use crate::records::error::NoSuchHeapDump;
use crate::storage::human_bytes::HumanBytes;
use crate::storage::memory::NoMemory;
use crate::storage::private_dir::is_distrust;
use hprof_input::file::{MappedFile, OpenError};
use hprof_input::packed::{Compression, Members, Size};
use hprof_parser::FormatError;
use hprof_parser::sniff::FileKind;

/// Error of opening a dump.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file is not a heap dump.
    #[error("{}: {error}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// Apparent format of the file.
        looks: FileKind,
        /// Format error.
        error: FormatError,
    },
    /// The file is compressed, and its contents are not a heap dump.
    #[error("{}: {}", path.display(), not_inside(*compression, *looks, error.as_ref()))]
    NotInside {
        /// Path of the file.
        path: PathBuf,
        /// Compression of the file.
        compression: Compression,
        /// Apparent format of the contents; `None` if not a single byte could be unpacked.
        looks: Option<FileKind>,
        /// Error that ended the inspected bytes, if the file is damaged.
        error: Option<io::Error>,
    },
    /// The requested heap dump is not in the file.
    #[error("{}: {error}", path.display())]
    NoSuchHeapDump {
        /// Path of the file.
        path: PathBuf,
        /// Requested heap dump and the number of heap dumps.
        error: NoSuchHeapDump,
    },
    /// The file changed while it was read.
    #[error("{}: the file changed while it was read", .0.display())]
    Changed(PathBuf),
    /// The file grew while it was read.
    #[error("{}: the file is still being written: it grew while it was read", .0.display())]
    Growing(PathBuf),
    /// A compressed dump could not be unpacked.
    #[error("cannot unpack {} into {}: {error}", path.display(), into.display())]
    Unpack {
        /// Path of the file.
        path: PathBuf,
        /// Target directory.
        into: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// The input of a pipe could not be copied.
    #[error("cannot copy {} into {}: {why}", path.display(), into.display())]
    Spool {
        /// Path of the pipe.
        path: PathBuf,
        /// Target directory.
        into: PathBuf,
        /// Reason.
        why: String,
    },
    /// There is not enough disk space for the unpacked copy.
    #[error("cannot unpack {} into {}: {no_room}", path.display(), into.display())]
    NoRoom {
        /// Path of the file.
        path: PathBuf,
        /// Target directory.
        into: PathBuf,
        /// Required and free disk space.
        no_room: NoRoom,
    },
    /// An archive does not contain exactly one dump.
    #[error("{}: cannot read a dump from the {} archive: {members}", path.display(), compression.name())]
    Members {
        /// Path of the file.
        path: PathBuf,
        /// Kind of archive.
        compression: Compression,
        /// Contents of the archive.
        members: Members,
    },
    /// The index cannot be written.
    #[error("cannot write the index {}: {error}", dir.display())]
    WriteIndex {
        /// Directory of the index.
        dir: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// The index cannot be removed.
    #[error("cannot remove the index {}: {error}", dir.display())]
    RemoveIndex {
        /// Directory of the index.
        dir: PathBuf,
        /// I/O error.
        error: io::Error,
    },
    /// There is not enough memory to build the index.
    #[error("cannot index {}: {error}", path.display())]
    NoMemory {
        /// Path of the file.
        path: PathBuf,
        /// Required and available memory.
        error: NoMemory,
    },
    /// There is not enough disk space for the index.
    #[error("cannot write the index {}: {error}", dir.display())]
    NoDisk {
        /// Directory of the index.
        dir: PathBuf,
        /// Required and free disk space.
        error: NoDisk,
    },
    /// More objects than can be indexed.
    #[error("{}: {error}", path.display())]
    TooManyObjects {
        /// Path of the file.
        path: PathBuf,
        /// Number of objects.
        error: TooManyObjects,
    },
}

impl Error {
    /// Creates the error for a file that changed while it was read.
    pub fn from_change(file: &MappedFile) -> Self {
        let path = file.path().to_owned();
        if file.has_grown() { Self::Growing(path) } else { Self::Changed(path) }
    }
}

impl Error {
    /// Returns `true` if an index cannot be written because its directory is not trusted: others can
    /// change it.
    pub fn is_distrust(&self) -> bool {
        matches!(self, Self::WriteIndex { error, .. } if is_distrust(error))
    }
}

/// Describes a compressed file that does not contain a heap dump.
fn not_inside(compression: Compression, looks: Option<FileKind>, error: Option<&io::Error>) -> String {
    let name = compression.name();
    match (looks, error) {
        (Some(looks), None) => {
            format!("the content of the {name} file is not a heap dump: {}", looks.describe())
        }
        (Some(looks), Some(error)) => {
            format!(
                "the content of the {name} file is not a heap dump: {}; its start is truncated or damaged: {error}",
                looks.describe()
            )
        }
        (None, Some(error)) => format!("nothing in the {name} file can be unpacked: {error}"),
        (None, None) => format!("the {name} file contains no data"),
    }
}

/// Disk space required for an unpacked copy, and disk space available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// Known or estimated size of the copy; `None` if it turned out to be larger than stated.
    pub size: Option<Size>,
    /// Bytes written before the disk space ran out; they were removed again.
    pub written_bytes: u64,
    /// Free disk space in bytes, not counting the bytes written.
    pub free_bytes: u64,
    /// Free disk space in bytes that is reserved for others.
    pub reserve_bytes: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(Size::Stated(bytes)) => write!(f, "the copy needs {}", HumanBytes(bytes))?,
            Some(Size::AtLeast(bytes)) => write!(f, "the copy needs at least {}", HumanBytes(bytes))?,
            Some(Size::About(bytes)) => write!(f, "the copy needs about {}", HumanBytes(bytes))?,
            None => {
                write!(f, "the copy needs more than the {} already written", HumanBytes(self.written_bytes))?
            }
        }
        write!(f, ", but the disk has {} free", HumanBytes(self.free_bytes))?;
        write!(f, ", and {} must stay free", HumanBytes(self.reserve_bytes))?;
        if self.written_bytes > 0 { write!(f, "; the partial copy was removed") } else { Ok(()) }
    }
}
