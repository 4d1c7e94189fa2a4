//! Why a dump cannot be opened, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::address::TooManyObjects;
use super::build::NoSuchHeapDump;
use super::memory::{Limit, NoMemory};
use super::needs::NoDisk;
use crate::hprof::input::{Compression, OpenError};
use crate::hprof::sniff::Looks;
use crate::hprof::{FormatError, FormatErrorKind};

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
    #[error("{}: {} of something that is not a heap dump: {}", path.display(), compression.name(), looks.describe())]
    NotInside {
        /// Which file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What is in it.
        looks: Looks,
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
    /// The index cannot be written.
    #[error("cannot write the index {}: {error}", dir.display())]
    WriteIndex {
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
    /// What to do next, in one line.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Open(OpenError::Directory(_)) => "give the dump's file, not the directory that holds it",
            Self::Open(OpenError::NotAFile(_)) => {
                "save the dump to a file first: it is mapped, and read more than once"
            }
            Self::Open(OpenError::Io { error, .. }) => match error.kind() {
                io::ErrorKind::NotFound => "check the path",
                // A limit of addresses: a map of a file takes as many as the file has bytes.
                io::ErrorKind::OutOfMemory => {
                    "the file is mapped, which takes as many addresses as it has bytes: raise the limit, for example: ulimit -v unlimited"
                }
                io::ErrorKind::PermissionDenied => {
                    "JVMs write dumps that only their own user may read: run as that user, or chmod the file"
                }
                _ => return None,
            },
            Self::Format { looks, error, .. } => match error.kind() {
                FormatErrorKind::Empty => {
                    "the JVM has not written it yet, or its disk was full: make the dump again"
                }
                FormatErrorKind::HeaderCut | FormatErrorKind::IdSize(_) => {
                    "the file is cut or damaged at its start: copy it or make it again"
                }
                _ => looks.advice(),
            },
            Self::NotInside { looks, .. } => looks.advice(),
            Self::NoSuchHeapDump { .. } => "leave out --dump to read the last one",
            Self::Changed(_) => "wait until the JVM has finished writing the dump, then run this again",
            Self::Unpack { .. } => "give a directory with enough space by --index-dir, or unpack it yourself",
            Self::WriteIndex { .. } => "give a directory that you may write to by --index-dir",
            Self::NoMemory { error, .. } => match error.available.limit {
                Limit::Given => "raise --memory, or read with fewer threads: --threads 1",
                Limit::Data => "raise the limit, for example: ulimit -d unlimited; or try --threads 1",
                Limit::Addresses => {
                    "raise the limit, for example: ulimit -v unlimited; mapped files count for it"
                }
                Limit::Free | Limit::Group => {
                    "free some memory, try --threads 1, or say --memory SIZE if you know better"
                }
            },
            Self::NoDisk { .. } => "name a directory on a disk with more room by --index-dir DIR",
            Self::TooManyObjects { .. } => "histo and info work on it; commands that need an index do not",
        })
    }
}
