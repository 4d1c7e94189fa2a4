//! Open directories, in which files are created, renamed and removed.
//!
//! A directory may belong to somebody else, or have one above it that does: its path leads elsewhere as soon as they rename it,
//! or put a link or a mount in its place. So code that writes opens the directory once, and then works in that directory, by
//! single names. No link of such a name is followed, and an entry is removed only if it is the one that was created.
//!
//! Where directories cannot be opened, files are accessed by path.

#[cfg(not(unix))]
#[allow(missing_docs, clippy::missing_errors_doc)]
mod by_path;
#[cfg(unix)]
mod unix;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of random names that are tried.
const MAX_NAMES: usize = 100;
/// Maximum depth of directories that are removed with their contents. Ours have two or three levels.
const MAX_DEPTH: usize = 16;

/// An open directory.
#[derive(Debug)]
pub struct OpenDir {
    path: PathBuf,
    #[cfg(unix)]
    dir: std::os::fd::OwnedFd,
}

/// Identity of a file or directory, whatever its name: device and inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(i128, i128);

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, FIFO or socket.
    Other,
}

/// An entry of a directory: the file, directory or link with a name. Links are not followed.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Identity, where files have one.
    pub id: FileId,
    /// Owner, where files have owners.
    pub owner: u32,
    /// Group.
    pub group: u32,
    /// Permissions, where files have permissions.
    pub mode: u32,
    /// Size in bytes.
    pub len: u64,
}

impl Entry {
    /// Returns `true` if it belongs to this process's user, where files have owners.
    pub fn is_of_this_user(&self) -> bool {
        #[cfg(unix)]
        return self.owner == rustix::process::geteuid().as_raw();
        // On other systems, each user has a directory for temporary files.
        #[cfg(not(unix))]
        true
    }

    /// Returns `true` if only this process's user can change it.
    pub fn is_private(&self) -> bool {
        self.is_of_this_user() && self.mode & 0o022 == 0
    }
}

impl OpenDir {
    /// Opens a directory for writing into it. If this process's user is root, links below a directory that others may
    /// change are not followed ([`super::trusted_path`]).
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        #[cfg(unix)]
        return Ok(Self {
            path: path.to_owned(),
            dir: crate::storage::trusted_path::open_for_writing(path)?,
        });
        #[cfg(not(unix))]
        if path.is_dir() {
            Ok(Self { path: path.to_owned() })
        } else {
            Err(fs::metadata(path).err().unwrap_or_else(|| io::ErrorKind::NotADirectory.into()))
        }
    }

    /// Opens a directory for writing into it, and creates it, and those above it, if they do not exist. Permissions of new
    /// ones are `mode` minus the umask.
    ///
    /// # Errors
    /// If it can be neither opened nor created.
    pub fn create_all(path: &Path, mode: u32) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let parent = parent_of(path);
        let Some(name) = path.file_name() else {
            // `a/..`
            Self::create_all(parent, mode)?;
            return Self::open(path);
        };
        if parent == path {
            return Err(io::ErrorKind::NotFound.into());
        }
        let parent = Self::create_all(parent, mode)?;
        let (dir, _) = parent.create_or_open_dir(name, mode)?;
        Ok(Self { path: path.to_owned(), ..dir })
    }

    /// Returns the path at which it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path to a name in this directory for libraries that know only paths: where there is `/proc`, it leads to
    /// this directory as long as this lives. A link of that name is followed.
    pub fn path_to(&self, name: &str) -> PathBuf {
        #[cfg(target_os = "linux")]
        return format!("/proc/self/fd/{}/{name}", std::os::fd::AsRawFd::as_raw_fd(&self.dir)).into();
        #[cfg(not(target_os = "linux"))]
        self.path.join(name)
    }

    /// Opens a directory in this one, or creates it. Returns `true` if it was created. A link that exists is followed as
    /// by [`OpenDir::open`].
    ///
    /// # Errors
    /// If it can be neither opened nor created.
    pub fn create_or_open_dir(&self, name: &OsStr, mode: u32) -> io::Result<(Self, bool)> {
        let is_new = match self.create_dir(name, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            created => created.map(|()| true)?,
        };
        let opened = match self.open_dir(name) {
            #[cfg(unix)]
            Err(error) if !is_new && is_refused_link(&error) => Self::open(&self.path.join(name)),
            opened => opened,
        };
        Ok((opened?, is_new))
    }

    /// Creates a file with a random name that starts and ends as given. Permissions are `mode` minus the umask.
    ///
    /// # Errors
    /// If none can be created.
    pub fn create_random(&self, prefix: &str, suffix: &str, mode: u32) -> io::Result<(OsString, File)> {
        random(prefix, suffix, |name| self.create_new(name, mode))
    }

    /// Creates a directory like [`OpenDir::create_random`], and opens it.
    ///
    /// # Errors
    /// If none can be created, or if it was replaced.
    pub fn create_random_dir(&self, prefix: &str, mode: u32) -> io::Result<(OsString, Self)> {
        let (name, ()) = random(prefix, "", |name| self.create_dir(name, mode))?;
        let dir = self.open_dir(&name)?;
        // Where others can rename entries, this may be another directory.
        if !dir.entry()?.is_of_this_user() {
            return Err(io::Error::other("it was replaced by another user"));
        }
        Ok((name, dir))
    }

    /// Creates a file without a name for reading and writing, which disappears when it is closed.
    ///
    /// # Errors
    /// If none can be created.
    pub fn create_unnamed(&self) -> io::Result<File> {
        #[cfg(target_os = "linux")]
        if let Some(file) = self.create_linkable() {
            return Ok(file);
        }
        #[cfg(unix)]
        {
            let (name, file) = self.create_random(".hprof-cli-", "", 0o600)?;
            let id = Self::id_of(&file)?;
            self.remove_made(&name, id)?;
            Ok(file)
        }
        #[cfg(not(unix))]
        tempfile::tempfile_in(&self.path)
    }

    /// Removes a file if it is still the one with this identity.
    ///
    /// # Errors
    /// If it cannot be removed. Another file that now has the name is not removed; that is not an error.
    pub fn remove_made(&self, name: &OsStr, id: FileId) -> io::Result<()> {
        match self.entry_of(name) {
            Ok(entry) if entry.id == id && entry.kind != EntryKind::Directory => self.remove_file(name),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes the directory `dir`, opened before, if it is empty and still has this name here.
    ///
    /// # Errors
    /// If it cannot be removed. Another directory that now has the name is not removed; that is not an error.
    pub fn remove_made_dir(&self, name: &OsStr, dir: &Self) -> io::Result<()> {
        let entry = self.entry_of(name)?;
        if entry.kind == EntryKind::Directory && entry.id == dir.entry()?.id {
            self.remove_dir(name)?;
        }
        Ok(())
    }

    /// Removes the directory `dir`, opened before, with its contents, if it still has this name here.
    ///
    /// Its contents are removed through the open directory. Directories in it are entered if they are on the same file system,
    /// and only this user can change the directory that contains them.
    ///
    /// # Errors
    /// If something cannot be removed: then the directory is kept.
    pub fn remove_made_tree(&self, name: &OsStr, dir: &Self) -> io::Result<()> {
        dir.clear(MAX_DEPTH)?;
        self.remove_made_dir(name, dir)
    }

    /// Removes everything in this directory.
    fn clear(&self, depth: usize) -> io::Result<()> {
        let own = self.entry()?;
        for name in self.names()? {
            let entry = self.entry_of(&name)?;
            if entry.kind != EntryKind::Directory {
                self.remove_file(&name)?;
                continue;
            }
            if own.is_private() && entry.id.0 == own.id.0 && depth > 0 {
                let dir = self.open_dir(&name)?;
                if dir.entry()?.id == entry.id {
                    dir.clear(depth - 1)?;
                }
            }
            // Only an empty one is removed.
            self.remove_dir(&name)?;
        }
        Ok(())
    }
}

/// Returns the directory that contains `path`.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a file without a name in a directory, for reading and writing.
///
/// # Errors
/// If none can be created there.
pub fn unnamed_in(dir: &Path) -> io::Result<File> {
    OpenDir::open(dir)?.create_unnamed()
}

/// Calls `create` with random names until one does not exist yet.
pub(super) fn random<T>(
    prefix: &str,
    suffix: &str,
    create: impl Fn(&OsStr) -> io::Result<T>,
) -> io::Result<(OsString, T)> {
    for _ in 0..MAX_NAMES {
        // Each has keys of its own, from the system's random numbers.
        let mut random = RandomState::new().build_hasher();
        random.write_u32(std::process::id());
        let name = OsString::from(format!("{prefix}{:016x}{suffix}", random.finish()));
        match create(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((name, created?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns a path to an open file for this process, whatever its name.
#[cfg(target_os = "linux")]
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)).into()
}

/// Returns `true` if an error means that a path contains a link that is not followed.
#[cfg(unix)]
pub fn is_refused_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
