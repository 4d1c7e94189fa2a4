//! Why a dump cannot be opened, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::estimate::NoDisk;
use crate::objects::address_index::TooManyObjects;
use crate::scan::error::NoSuchHeapDump;
use crate::storage::human_bytes::HumanBytes;
use crate::storage::memory::{Limit, NoMemory};
use crate::storage::private_dir::is_distrust;
use hprof_input::file::OpenError;
use hprof_input::packed::{Compression, Members, Size};
use hprof_parser::sniff::Looks;
use hprof_parser::{FormatError, FormatErrorKind};

/// Why a dump cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file is no dump.
    #[error("{}: {error}", path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What it looks like.
        looks: Looks,
        /// What is wrong.
        error: FormatError,
    },
    /// The file is compressed, and what is in it is no dump.
    #[error("{}: {}", path.display(), not_inside(*compression, *looks, error.as_ref()))]
    NotInside {
        /// Which file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What is in it; `None` if not one byte of it can be unpacked.
        looks: Option<Looks>,
        /// Why the bytes that were looked at end, if something is wrong with the file.
        error: Option<io::Error>,
    },
    /// The heap dump asked for is not in the file.
    #[error("{}: {error}", path.display())]
    NoSuchHeapDump {
        /// Which file.
        path: PathBuf,
        /// Which heap dump.
        error: NoSuchHeapDump,
    },
    /// The file changed while it was read.
    #[error("{}: the file changed while it was read", .0.display())]
    Changed(PathBuf),
    /// A compressed dump could not be unpacked.
    #[error("cannot unpack {} into {}: {error}", path.display(), into.display())]
    Unpack {
        /// Which file.
        path: PathBuf,
        /// Into which directory.
        into: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// What comes through a pipe could not be copied.
    #[error("cannot copy {} into {}: {why}", path.display(), into.display())]
    Spool {
        /// Which pipe.
        path: PathBuf,
        /// Into which directory.
        into: PathBuf,
        /// Why.
        why: String,
    },
    /// There is no room for the unpacked copy.
    #[error("cannot unpack {} into {}: {no_room}", path.display(), into.display())]
    NoRoom {
        /// Which file.
        path: PathBuf,
        /// Into which directory.
        into: PathBuf,
        /// How much is needed, and how much is there.
        no_room: NoRoom,
    },
    /// An archive does not hold one dump.
    #[error("{}: cannot read a dump from the {} archive: {members}", path.display(), compression.name())]
    Members {
        /// Which file.
        path: PathBuf,
        /// What archive it is.
        compression: Compression,
        /// What is in it.
        members: Members,
    },
    /// The index cannot be written.
    #[error("cannot write the index {}: {error}", dir.display())]
    WriteIndex {
        /// Where.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The index cannot be removed.
    #[error("cannot remove the index {}: {error}", dir.display())]
    RemoveIndex {
        /// Where.
        dir: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is too little memory to build the index.
    #[error("cannot index {}: {error}", path.display())]
    NoMemory {
        /// Which file.
        path: PathBuf,
        /// How much is needed, and how much is there.
        error: NoMemory,
    },
    /// There is too little room on the disk for the index.
    #[error("cannot write the index {}: {error}", dir.display())]
    NoDisk {
        /// Where.
        dir: PathBuf,
        /// How much is needed, and how much is there.
        error: NoDisk,
    },
    /// More objects than can be indexed.
    #[error("{}: {error}", path.display())]
    TooManyObjects {
        /// Which file.
        path: PathBuf,
        /// How many.
        error: TooManyObjects,
    },
}

/// What to do where there is no memory to unpack with.
const NO_MEMORY_TO_UNPACK: &str =
    "raise the limit of memory, for example: ulimit -v unlimited; or unpack it yourself";

impl Error {
    /// What to do next, in one line.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Open(OpenError::Directory(_)) => "name the dump file, not its directory",
            Self::Open(OpenError::NotAFile(_)) => {
                "save the dump to a file first: it is memory-mapped and read more than once"
            }
            Self::Open(OpenError::Io { error, .. }) => match error.kind() {
                io::ErrorKind::NotFound => "check the path",
                // A limit of addresses: a map of a file takes as many as the file has bytes.
                io::ErrorKind::OutOfMemory => {
                    "the file is memory-mapped, which takes as much address space as it has bytes: raise the limit, for example: ulimit -v unlimited"
                }
                io::ErrorKind::PermissionDenied => {
                    "JVMs write dumps that only their own user may read: run as that user, or chmod the file"
                }
                _ => return None,
            },
            Self::Format { looks, error, .. } => match error.kind() {
                FormatErrorKind::Empty => {
                    "the JVM has not written it yet, or the disk was full: make a new dump"
                }
                FormatErrorKind::HeaderCut | FormatErrorKind::IdSize(_) => {
                    "the file is truncated or damaged at its start: copy it again or make a new dump"
                }
                _ => looks.advice(),
            },
            Self::NotInside { error: Some(error), .. } if error.kind() == io::ErrorKind::Unsupported => {
                "or compress it with a smaller window: zstd --long FILE"
            }
            Self::NotInside { error: Some(error), .. } if error.kind() == io::ErrorKind::OutOfMemory => {
                NO_MEMORY_TO_UNPACK
            }
            Self::Unpack { error, .. } if error.kind() == io::ErrorKind::OutOfMemory => NO_MEMORY_TO_UNPACK,
            Self::NotInside { looks: Some(looks), .. } => looks.advice(),
            Self::NotInside { error: Some(_), .. } => {
                "the file is truncated or damaged at its start: copy it again or make a new dump"
            }
            Self::NotInside { .. } => {
                "the file to compress was missing, or the disk was full: make a new dump"
            }
            Self::NoSuchHeapDump { .. } => "omit --heap-dump to read the last one",
            Self::Changed(_) => "wait until the JVM has finished writing the dump, then run this again",
            Self::Unpack { .. } => {
                "name a directory with enough space with --index-dir DIR, or unpack it yourself"
            }
            Self::Spool { .. } => {
                "name a directory with enough space with --index-dir DIR, or save the dump to a file first"
            }
            Self::NoRoom { .. } => {
                "name a directory on a disk with more space with --index-dir DIR, or unpack it yourself"
            }
            Self::Members { members, compression: Compression::Zip, .. } if members.dump_count > 1 => {
                "extract one of them: unzip -p ARCHIVE NAME > FILE"
            }
            Self::Members { members, .. } if members.dump_count > 1 => {
                "extract one of them: tar -xOf ARCHIVE NAME > FILE"
            }
            Self::Members { compression: Compression::Zip, .. } => {
                "list its files: unzip -l ARCHIVE; extract one: unzip -p ARCHIVE NAME > FILE"
            }
            Self::Members { .. } => {
                "list its files: tar -tvf ARCHIVE; extract one: tar -xOf ARCHIVE NAME > FILE"
            }
            Self::WriteIndex { error, .. } => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    "free space there, or name another directory with --index-dir"
                }
                io::ErrorKind::OutOfMemory => {
                    "free memory, or raise its limits (ulimit -v, ulimit -d); `hprof-cli index --estimate` shows what it needs"
                }
                io::ErrorKind::TimedOut => "end that process, or name another directory with --index-dir",
                _ if is_distrust(error) => {
                    "name another directory with --index-dir, or change the owner or mode of this one"
                }
                _ => "name a writable directory with --index-dir",
            },
            Self::RemoveIndex { error, .. } => match error.kind() {
                io::ErrorKind::TimedOut => "end that process, then run this again",
                _ => "run this as a user who may write there, or remove the directory yourself",
            },
            Self::NoMemory { error, .. } => match error.available.limit {
                Limit::Given => "raise --memory, or read with fewer threads: --threads 1",
                Limit::Data => "raise the limit, for example: ulimit -d unlimited; or try --threads 1",
                Limit::Addresses => {
                    "raise the limit, for example: ulimit -v unlimited; memory-mapped files count towards it"
                }
                Limit::Free | Limit::Group => {
                    "free some memory, use --threads 1, or set --memory SIZE if more is available"
                }
            },
            Self::NoDisk { .. } => "name a directory on a disk with more space with --index-dir DIR",
            Self::TooManyObjects { .. } => "histo and info can read it; commands that need an index cannot",
        })
    }
}

/// What a compressed file is that holds no heap dump.
fn not_inside(compression: Compression, looks: Option<Looks>, error: Option<&io::Error>) -> String {
    let name = compression.name();
    match (looks, error) {
        (Some(looks), None) => format!("{name} contents are not a heap dump: {}", looks.describe()),
        (Some(looks), Some(error)) => {
            format!(
                "{name} contents are not a heap dump: {}; its start is truncated or damaged: {error}",
                looks.describe()
            )
        }
        (None, Some(error)) => format!("nothing in the {name} file can be unpacked: {error}"),
        (None, None) => format!("{name} contents are empty"),
    }
}

/// How much room an unpacked copy needs, and how much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoom {
    /// What is known of the length of the copy; `None` if the file stated less than it turned out to be.
    pub size: Option<Size>,
    /// Bytes that were written when there was no more room; they were removed again.
    pub written_bytes: u64,
    /// Bytes that are free, without what was written.
    pub free_bytes: u64,
    /// Bytes that are left to others.
    pub reserve_bytes: u64,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(Size::Stated(bytes)) => write!(f, "the copy takes {}", HumanBytes(bytes))?,
            Some(Size::AtLeast(bytes)) => write!(f, "the copy takes at least {}", HumanBytes(bytes))?,
            Some(Size::About(bytes)) => write!(f, "the copy takes about {}", HumanBytes(bytes))?,
            None => {
                write!(f, "the copy takes more than {}, which were written", HumanBytes(self.written_bytes))?
            }
        }
        write!(f, "; the disk has {} free", HumanBytes(self.free_bytes))?;
        write!(f, ", of which {} are reserved", HumanBytes(self.reserve_bytes))?;
        if self.written_bytes > 0 { write!(f, "; the partial copy was removed") } else { Ok(()) }
    }
}
