//! Directories that only their user can change, and the files in them.
//!
//! An index is trusted, replaced and removed, and it may be in a directory where others can write: beside
//! a dump in `/tmp`, for instance. So a directory or file is used only if it is not a symbolic link,
//! belongs to this user or to root, and is not writable by others. A directory is opened once, and files
//! are accessed through the open directory: another user who can rename it cannot substitute another.
//! On systems where files have no owners, only links are refused.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hprof_input::file::{MappedFile, OpenError};
use hprof_input::mapped_files::Content;

#[cfg(unix)]
use super::open_dir::is_refused_link;
use super::open_dir::{Entry, EntryKind, OpenDir, parent_of};

/// Permissions of directories that are created: only their user may read them.
const MODE: u32 = 0o700;

/// Reason why a directory or file is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Distrust {
    /// It is a link, whose target others may control.
    #[error("it is a symbolic link")]
    Link,
    /// The owner, another user, can change the contents.
    #[error("it belongs to another user (UID {0})")]
    Owner(u32),
    /// A group, or everybody, can change its contents.
    #[error("others can write to it (`chmod go-w` prevents this)")]
    Writable,
    /// The parent directory is a link, whose owner controls the target.
    #[error("{} is a symbolic link of another user (UID {_1})", .0.display())]
    LinkAbove(PathBuf, u32),
    /// This process's user is root, and a directory above it is a link that others can change.
    #[error("its path contains a symbolic link that others can change, which root does not follow")]
    LinkOnPath,
}

/// Users other than the owner who can remove and rename a directory: those who can change its parent. They cannot change its
/// contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exposure {
    /// The owner of the parent directory.
    #[error(
        "{} belongs to another user (UID {_1}), who can remove and rename the index there; to prevent this, use a \
         directory of your own for the index",
        .0.display()
    )]
    Owner(PathBuf, u32),
    /// Everybody.
    #[error(
        "everybody can remove and rename the index in {}; to prevent this, `chmod o-w` it, or use a directory of your own \
         for the index",
        .0.display()
    )]
    Everybody(PathBuf),
}

impl From<Distrust> for io::Error {
    fn from(distrust: Distrust) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, distrust)
    }
}

/// Returns `true` if an error is a [`Distrust`].
pub(crate) fn is_distrust(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Distrust>())
}

/// An open directory that only its user can change.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    path: PathBuf,
    /// The directory that contains it.
    parent: Arc<OpenDir>,
    dir: Arc<OpenDir>,
}

/// Refuses a directory or file that others can change.
fn check(entry: &Entry) -> Result<(), Distrust> {
    if entry.kind == EntryKind::Link {
        return Err(Distrust::Link);
    }
    if let Some(owner) = other_owner(entry) {
        return Err(Distrust::Owner(owner));
    }
    if entry.mode & 0o022 != 0 {
        return Err(Distrust::Writable);
    }
    Ok(())
}

/// Refuses a parent directory that is a link which another user can redirect; accepts a missing one.
fn check_above(path: &Path) -> Result<(), Distrust> {
    let Ok(metadata) = fs::symlink_metadata(parent_of(path)) else { return Ok(()) };
    match metadata.is_symlink().then(|| other_user(owner(&metadata))).flatten() {
        Some(owner) => Err(Distrust::LinkAbove(parent_of(path).to_owned(), owner)),
        None => Ok(()),
    }
}

/// Returns the owner of a file, if that is neither this user nor root.
fn other_owner(entry: &Entry) -> Option<u32> {
    other_user(entry.owner)
}

#[cfg(unix)]
fn other_user(user: u32) -> Option<u32> {
    (user != 0 && user != rustix::process::geteuid().as_raw()).then_some(user)
}

#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

/// Returns `None`: files have no owners here.
#[cfg(not(unix))]
fn other_user(_: u32) -> Option<u32> {
    None
}

/// Returns 0: files have no owners here.
#[cfg(not(unix))]
fn owner(_: &fs::Metadata) -> u32 {
    0
}

impl PrivateDir {
    /// Opens a directory, if only this user can change it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        check_above(path)?;
        let parent = match OpenDir::open(parent_of(path)) {
            #[cfg(unix)]
            Err(error) if is_refused_link(&error) => return Err(Distrust::LinkOnPath.into()),
            opened => opened?,
        };
        Self::open_in(path, parent.into())
    }

    /// Opens the directory at `path` in its open parent.
    fn open_in(path: &Path, parent: Arc<OpenDir>) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // Checked before it is opened: a link is reported as such, whatever its target is.
        let entry = parent.entry_of(name)?;
        check(&entry)?;
        if entry.kind != EntryKind::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let dir = parent.open_dir(name)?;
        Self::from_open(path, parent, dir.into())
    }

    /// Creates a private directory from an open one, if only this user can change it.
    pub(crate) fn from_open(path: &Path, parent: Arc<OpenDir>, dir: Arc<OpenDir>) -> io::Result<Self> {
        // The directory that was checked by name may have been replaced.
        check(&dir.entry()?)?;
        Ok(Self { path: path.to_owned(), parent, dir })
    }

    /// Opens a directory, or creates one that only its user may read: an index contains data of the dump.
    /// Returns `true` if it was created.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, bool)> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = Arc::new(OpenDir::create_all(parent_of(path), MODE)?);
        let is_new = match parent.create_dir(name, MODE) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            created => created.map(|()| true)?,
        };
        let opened = Self::open_in(path, parent.clone());
        if opened.is_err() && is_new {
            // A file system without permissions. An empty directory would only be a nuisance.
            let _ = parent.remove_dir(name);
        }
        Ok((opened?, is_new))
    }

    /// Removes the directory itself, if it is empty and still has its name.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.parent.remove_made_dir(name, &self.dir)
    }

    /// Returns the users who can remove and rename it. A group with that permission is often the user's
    /// own; in a sticky directory, such as `/tmp`, nobody can remove files of others.
    pub(crate) fn exposure(&self) -> Option<Exposure> {
        let above = parent_of(&self.path);
        let entry = self.parent.entry().ok()?;
        match other_owner(&entry) {
            Some(owner) => Some(Exposure::Owner(above.to_owned(), owner)),
            None => (entry.mode & 0o1002 == 0o002).then(|| Exposure::Everybody(above.to_owned())),
        }
    }

    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory.
    pub(crate) fn dir(&self) -> &Arc<OpenDir> {
        &self.dir
    }

    /// Maps a file for reading.
    pub(crate) fn map(&self, name: &str) -> Result<MappedFile, OpenError> {
        let path = self.path.join(name);
        let file = match self.read(name) {
            Ok(file) => file,
            Err(error) => return Err(OpenError::Io { what: "open", path, error }),
        };
        let kind = file.metadata().map(|metadata| metadata.file_type());
        match kind {
            Ok(kind) if kind.is_dir() => Err(OpenError::Directory(path)),
            Ok(kind) if !kind.is_file() => Err(OpenError::NotAFile(path)),
            _ => MappedFile::from_file(&file, path, Content::File),
        }
    }

    fn read(&self, name: &str) -> io::Result<File> {
        let name = OsStr::new(name);
        check(&self.dir.entry_of(name)?)?;
        let file = self.dir.read(name)?;
        check(&self.dir.entry_of_open(&file)?)?;
        Ok(file)
    }

    /// Opens a file for locking, creating it if necessary.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        let name = OsStr::new(name);
        match self.dir.entry_of(name) {
            Ok(entry) if entry.kind == EntryKind::Link => return Err(Distrust::Link.into()),
            _ => {}
        }
        let file = self.dir.write_or_create(name, 0o600)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Returns `true` if the open file still has that name, which is always so where an open file cannot be removed.
    pub(crate) fn is_at(&self, file: &File, name: &str) -> bool {
        let there = self.dir.entry_of(name.as_ref()).map(|entry| entry.id);
        there.is_ok_and(|there| OpenDir::id_of(file).is_ok_and(|open| open == there))
    }

    /// Returns the size of the file of this name, without following links.
    pub(crate) fn len_of(&self, name: &str) -> io::Result<u64> {
        Ok(self.dir.entry_of(name.as_ref())?.len)
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        self.dir.remove_file(name.as_ref())
    }

    /// Returns the names of all entries. Names that are not UTF-8 are shown with U+FFFD; no file of an
    /// index has one.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.dir.names()?.iter().map(|name| name.to_string_lossy().into_owned()).collect())
    }
}
