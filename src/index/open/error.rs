//! Why a dump cannot be opened.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::estimate::NoDisk;
use crate::objects::address_index::TooManyObjects;
use crate::records::error::NoSuchHeapDump;
use crate::storage::human_bytes::HumanBytes;
use crate::storage::memory::NoMemory;
use crate::storage::private_dir::is_distrust;
use hprof_input::file::OpenError;
use hprof_input::packed::{Compression, Members, Size};
use hprof_parser::FormatError;
use hprof_parser::sniff::Looks;

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

impl Error {
    /// Returns whether an index cannot be written because its directory cannot be trusted: others can change it.
    pub fn is_distrust(&self) -> bool {
        matches!(self, Self::WriteIndex { error, .. } if is_distrust(error))
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
