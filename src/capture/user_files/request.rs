//! Messages between this process and a child process that accesses files of a user.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

/// First message: the user that the child becomes. Descriptors of the root directory and, if it differs, of the mount namespace
/// are attached.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ChildUser {
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) groups: Vec<u32>,
    /// `true` if the descriptor of a mount namespace is attached.
    pub(super) has_namespace: bool,
}

/// Number of an open directory of the child; 0 is the root.
pub(super) type DirId = usize;

/// Request to a child. A `name` is the name of a directory entry, without slashes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FileRequest {
    /// Opens a directory. Links are resolved as if `from` were the root.
    Open { from: DirId, path: String },
    /// Opens a directory whose path contains no links.
    OpenWithoutLinks { from: DirId, path: String },
    /// Takes over an open directory, whose descriptor is attached.
    Adopt,
    /// Opens an ordinary file for reading. Its directory is resolved as in `Open`; the file itself is not a link.
    Read { from: DirId, path: String },
    /// Returns the first bytes of a file as in `Read`, attached as a file in memory.
    Snapshot { from: DirId, path: String, max: u64 },
    /// Returns the facts about an entry, without following links.
    Facts { from: DirId, name: String },
    /// Checks that entries can be opened and, if `is_written`, created.
    CheckAccess { from: DirId, is_written: bool },
    /// Returns the entries whose names begin with a prefix.
    Names { from: DirId, prefix: String },
    /// Connects to a socket that belongs to the child's user.
    Connect { from: DirId, name: String },
    /// Creates a directory that only its user can access.
    CreateDirectory { from: DirId, name: String },
    /// Creates a FIFO and opens it for reading.
    CreateFifo { from: DirId, name: String },
    /// Creates an empty file that only its user can access. If `is_shared`, an existing file of this user is accepted.
    CreateFile { from: DirId, name: String, is_shared: bool },
    /// Schedules the removal of a file that the JVM will write, including its segments.
    Expect { from: DirId, name: String },
    /// Schedules the removal of an existing file.
    Own { from: DirId, name: String },
    /// Renames a file that the child created or expected.
    Rename { from: DirId, name: String, to: DirId, new: String, is_forced: bool },
    /// Removes an entry that the child created or expected; nothing else can be removed. A JVM that waits for a reader of a
    /// FIFO continues.
    Remove { from: DirId, name: String },
    /// Removes everything that was created, and ends the child.
    End,
}

/// Reply of a child; file descriptors may be attached.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FileReply {
    /// An open directory, whose descriptor is attached.
    Directory(DirId, EntryFacts),
    /// An open file, whose descriptor is attached.
    File(EntryFacts),
    Facts(Option<EntryFacts>),
    Names(Vec<NamedEntry>),
    /// Whether somebody listens on the socket. If so, the descriptor of the connected socket is attached.
    Connected(bool),
    Done,
    /// Created entries that could not be removed, each with its directory, name and cause.
    Left(Vec<(DirId, String, String)>),
    /// Error number of the system, if the error has one, and its text.
    Failed(Option<i32>, String),
}

/// Facts about a directory entry, as the system states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryFacts {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) user: u32,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) bytes: u64,
}

/// Directory entry with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NamedEntry {
    pub(crate) name: String,
    pub(crate) facts: EntryFacts,
}

impl EntryFacts {
    // Types of these fields differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    pub(crate) fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            user: stat.st_uid,
            mode: stat.st_mode,
            links: stat.st_nlink as u64,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
        }
    }

    /// Returns device and inode, which identify the entry.
    pub(crate) fn id(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the type of the entry.
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Returns whether the entry is an ordinary file.
    pub(crate) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }
}
