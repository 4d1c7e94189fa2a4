//! Open directories, in which files are created, renamed and removed.
//!
//! A directory may belong to somebody else, or have one above it that does: its path leads elsewhere as soon as they rename
//! it, or put a link or a mount in its place. So whatever writes opens the directory once, and then works in that directory,
//! by single names. No link of such a name is followed, and what is removed is first compared with what was made.
//!
//! Where directories cannot be opened, files are accessed by path.

use std::ffi::{OsStr, OsString};
#[cfg(not(unix))]
use std::fs;
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

/// What a name in a directory stands for; links are not followed.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its kind.
    pub kind: EntryKind,
    /// Its identity, where files have one.
    pub id: FileId,
    /// Its owner, where files have owners.
    pub owner: u32,
    /// Its group.
    pub group: u32,
    /// Its permissions, where files have permissions.
    pub mode: u32,
    /// Its size in bytes.
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
    fn is_private(&self) -> bool {
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
        #[cfg(unix)]
        return Ok(Self { path: path.to_owned(), dir: super::trusted_path::open_for_writing(path)? });
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

    /// Opens a directory in this one, unless it is a link, or creates it. Returns `true` if it was created.
    ///
    /// # Errors
    /// If it can be neither opened nor created.
    pub fn create_or_open_dir(&self, name: &OsStr, mode: u32) -> io::Result<(Self, bool)> {
        let is_new = match self.create_dir(name, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            created => created.map(|()| true)?,
        };
        Ok((self.open_dir(name)?, is_new))
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
        // Where others can rename what is here, this may be another one.
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
    /// If it cannot be removed. What has the name by now stays; that is not an error.
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
    /// If it cannot be removed. What has the name by now stays; that is not an error.
    pub fn remove_made_dir(&self, name: &OsStr, dir: &Self) -> io::Result<()> {
        let entry = self.entry_of(name)?;
        if entry.kind == EntryKind::Directory && entry.id == dir.entry()?.id {
            self.remove_dir(name)?;
        }
        Ok(())
    }

    /// Removes the directory `dir`, opened before, with its contents, if it still has this name here.
    ///
    /// What is in it is removed through the open directory. Directories in it are entered if they are on the same file
    /// system, and only this user can change the directory that contains them.
    ///
    /// # Errors
    /// If something cannot be removed: then the directory stays.
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

/// Creates something with a random name.
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

#[cfg(unix)]
mod at {
    use std::os::fd::AsFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};
    use rustix::io::Errno;

    use super::*;
    use crate::storage::trusted_path::open_directory;

    /// Flags of everything that is opened: it does not wait for the other end of a FIFO, and follows no link.
    const OPEN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

    /// Refuses what is not a single name: it would lead to another directory.
    fn single(name: &OsStr) -> io::Result<&OsStr> {
        let is_single = !matches!(name.as_bytes(), b"" | b"." | b"..") && !name.as_bytes().contains(&b'/');
        if is_single { Ok(name) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Returns a device or inode number; systems have several types for them.
    fn number(number: impl TryInto<i128>) -> i128 {
        number.try_into().unwrap_or(-1)
    }

    fn entry(stat: &Stat) -> Entry {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        };
        Entry {
            kind,
            id: FileId(number(stat.st_dev), number(stat.st_ino)),
            owner: stat.st_uid,
            group: stat.st_gid,
            // Systems have several types for it.
            #[allow(clippy::useless_conversion)]
            mode: u32::from(Mode::from_raw_mode(stat.st_mode).bits()),
            len: u64::try_from(stat.st_size).unwrap_or(0),
        }
    }

    fn permissions(mode: u32) -> Mode {
        Mode::from_bits_truncate(mode.try_into().unwrap_or_default())
    }

    impl FileId {
        /// Returns the identity of what is at a path, following links.
        ///
        /// # Errors
        /// If nothing is there, or the system does not tell.
        pub fn of_path(path: &Path) -> io::Result<Self> {
            Ok(entry(&rustix::fs::stat(path)?).id)
        }
    }

    impl OpenDir {
        /// Opens a directory by path, following links: it is that of a program which watches over it itself.
        pub(crate) fn follow(path: &Path) -> io::Result<Self> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            Ok(Self { path: path.to_owned(), dir: openat(CWD, path, flags, Mode::empty())? })
        }

        /// Returns what this directory is.
        ///
        /// # Errors
        /// If the system does not tell.
        pub fn entry(&self) -> io::Result<Entry> {
            Ok(entry(&fstat(&self.dir)?))
        }

        /// Returns what has this name. A link is not followed.
        ///
        /// # Errors
        /// If nothing has it, or the system does not tell.
        pub fn entry_of(&self, name: &OsStr) -> io::Result<Entry> {
            Ok(entry(&statat(&self.dir, single(name)?, AtFlags::SYMLINK_NOFOLLOW)?))
        }

        /// Returns what an open file is.
        pub(crate) fn entry_of_open(&self, file: &File) -> io::Result<Entry> {
            Ok(entry(&fstat(file)?))
        }

        /// Returns the identity of an open file.
        ///
        /// # Errors
        /// If the system does not tell.
        pub fn id_of(file: &File) -> io::Result<FileId> {
            Ok(entry(&fstat(file)?).id)
        }

        /// Returns the target of a link.
        ///
        /// # Errors
        /// If it is no link.
        pub fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
            let target = rustix::fs::readlinkat(&self.dir, single(name)?, Vec::new())?;
            Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
        }

        /// Opens an existing file without following a link, and without waiting for the other end of a FIFO.
        fn open_at(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
            Ok(File::from(openat(&self.dir, single(name)?, flags | OPEN, permissions(mode))?))
        }

        /// Opens a file for reading.
        ///
        /// # Errors
        /// If it cannot be opened, or is a link.
        pub fn read(&self, name: &OsStr) -> io::Result<File> {
            self.open_at(name, OFlags::RDONLY, 0)
        }

        /// Opens an existing file for writing.
        ///
        /// # Errors
        /// If it cannot be opened, or is a link.
        pub fn write(&self, name: &OsStr) -> io::Result<File> {
            self.open_at(name, OFlags::WRONLY, 0)
        }

        /// Opens a file for writing, and creates it if it does not exist.
        ///
        /// # Errors
        /// If it cannot be opened, or is a link.
        pub fn write_or_create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
            self.open_at(name, OFlags::WRONLY | OFlags::CREATE, mode)
        }

        /// Opens a device, FIFO or link of `/proc` for writing, and waits for the other end.
        ///
        /// # Errors
        /// If it cannot be opened, or is a regular file.
        pub fn write_device(&self, name: &OsStr, is_link: bool) -> io::Result<File> {
            let link = if is_link { OFlags::empty() } else { OFlags::NOFOLLOW };
            let flags = OFlags::WRONLY | OFlags::CLOEXEC | link;
            let file = File::from(openat(&self.dir, single(name)?, flags, Mode::empty())?);
            // It may have been replaced since it was looked at.
            if file.metadata()?.is_file() {
                return Err(io::Error::other("it was replaced by a file"));
            }
            Ok(file)
        }

        /// Creates a file for reading and writing, unless there is something of that name. Permissions are `mode` minus
        /// the umask.
        ///
        /// # Errors
        /// If it cannot be created.
        pub fn create_new(&self, name: &OsStr, mode: u32) -> io::Result<File> {
            self.open_at(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, mode)
        }

        /// Creates a file without a name that only its owner may read, for [`OpenDir::link`]. `None` if the file system
        /// requires a name.
        #[cfg(target_os = "linux")]
        pub fn create_linkable(&self) -> Option<File> {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            Some(File::from(openat(&self.dir, ".", flags, Mode::RUSR | Mode::WUSR).ok()?))
        }

        /// Gives a file without a name its name, unless there is something of that name.
        ///
        /// # Errors
        /// If it cannot get it.
        #[cfg(target_os = "linux")]
        pub fn link(&self, file: &File, name: &OsStr) -> io::Result<()> {
            let own = path_of(file);
            Ok(rustix::fs::linkat(CWD, &own, &self.dir, single(name)?, AtFlags::SYMLINK_FOLLOW)?)
        }

        /// Creates a directory. Permissions are `mode` minus the umask.
        ///
        /// # Errors
        /// If it cannot be created.
        pub fn create_dir(&self, name: &OsStr, mode: u32) -> io::Result<()> {
            Ok(rustix::fs::mkdirat(&self.dir, single(name)?, permissions(mode))?)
        }

        /// Opens a directory in this one, unless it is a link.
        ///
        /// # Errors
        /// If it cannot be opened.
        pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
            let dir = open_directory(self.dir.as_fd(), single(name)?)?;
            Ok(Self { path: self.path.join(name), dir })
        }

        /// Renames a file of this directory, replacing a file of the new name. A link is replaced itself.
        ///
        /// # Errors
        /// If it cannot be renamed.
        pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            self.rename_into(from, self, to)
        }

        /// Moves a file or directory of this directory into another one.
        ///
        /// # Errors
        /// If it cannot be moved.
        pub fn rename_into(&self, from: &OsStr, into: &Self, to: &OsStr) -> io::Result<()> {
            Ok(renameat(&self.dir, single(from)?, &into.dir, single(to)?)?)
        }

        /// Renames a file of this directory, unless there is something of the new name.
        ///
        /// # Errors
        /// If it cannot be renamed.
        pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            #[cfg(target_os = "linux")]
            {
                use rustix::fs::{RenameFlags, renameat_with};
                let flags = RenameFlags::NOREPLACE;
                match renameat_with(&self.dir, single(from)?, &self.dir, single(to)?, flags) {
                    // Some file systems lack the flag.
                    Err(Errno::INVAL | Errno::NOSYS) => {}
                    renamed => return Ok(renamed?),
                }
            }
            let id = self.entry_of(from)?.id;
            rustix::fs::linkat(&self.dir, single(from)?, &self.dir, single(to)?, AtFlags::empty())?;
            self.remove_made(from, id)
        }

        /// Removes a file, or a link itself.
        ///
        /// # Errors
        /// If it cannot be removed.
        pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            Ok(unlinkat(&self.dir, single(name)?, AtFlags::empty())?)
        }

        /// Removes an empty directory.
        ///
        /// # Errors
        /// If it cannot be removed.
        pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
            Ok(unlinkat(&self.dir, single(name)?, AtFlags::REMOVEDIR)?)
        }

        /// Returns the names of all entries.
        ///
        /// # Errors
        /// If it cannot be listed.
        pub fn names(&self) -> io::Result<Vec<OsString>> {
            // What was opened with `O_PATH` cannot be listed.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(&self.dir, ".", flags, Mode::empty())?;
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::new(dir)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..") {
                    names.push(OsStr::from_bytes(name).to_owned());
                }
            }
            Ok(names)
        }

        /// Returns `true` if it is a directory of `/proc`, whose links may lead to what has no path.
        #[cfg(target_os = "linux")]
        pub fn is_of_processes(&self) -> bool {
            rustix::fs::fstatfs(self.dir.as_fd())
                .is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
        }

        /// Returns `true` if it is a directory of `/proc`, whose links may lead to what has no path.
        #[cfg(not(target_os = "linux"))]
        pub fn is_of_processes(&self) -> bool {
            let _ = self.dir.as_fd();
            false
        }
    }

    /// Returns `true` if an error says that a path contains a link that is not followed.
    pub fn is_refused_link(error: &io::Error) -> bool {
        error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
    }
}

#[cfg(unix)]
pub use at::is_refused_link;

/// Returns a path to an open file for this process, whatever its name.
#[cfg(target_os = "linux")]
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)).into()
}

/// Directories are not opened: files are accessed by path.
#[cfg(not(unix))]
#[allow(missing_docs, clippy::missing_errors_doc)]
mod at {
    use super::*;

    fn entry(metadata: &fs::Metadata) -> Entry {
        let kind = match metadata.file_type() {
            kind if kind.is_symlink() => EntryKind::Link,
            kind if kind.is_dir() => EntryKind::Directory,
            kind if kind.is_file() => EntryKind::File,
            _ => EntryKind::Other,
        };
        // Files have no identity that the standard library tells, no owners and no modes.
        Entry { kind, id: FileId(0, 0), owner: 0, group: 0, mode: 0, len: metadata.len() }
    }

    impl OpenDir {
        pub(crate) fn follow(path: &Path) -> io::Result<Self> {
            Self::open(path)
        }

        pub fn entry(&self) -> io::Result<Entry> {
            Ok(entry(&fs::metadata(&self.path)?))
        }

        pub fn entry_of(&self, name: &OsStr) -> io::Result<Entry> {
            Ok(entry(&fs::symlink_metadata(self.path.join(name))?))
        }

        pub(crate) fn entry_of_open(&self, file: &File) -> io::Result<Entry> {
            Ok(entry(&file.metadata()?))
        }

        pub fn id_of(_: &File) -> io::Result<FileId> {
            Ok(FileId(0, 0))
        }

        pub fn link_target(&self, name: &OsStr) -> io::Result<PathBuf> {
            fs::read_link(self.path.join(name))
        }

        pub fn read(&self, name: &OsStr) -> io::Result<File> {
            File::open(self.path.join(name))
        }

        pub fn write(&self, name: &OsStr) -> io::Result<File> {
            File::options().write(true).open(self.path.join(name))
        }

        pub fn write_or_create(&self, name: &OsStr, _: u32) -> io::Result<File> {
            File::options().create(true).truncate(false).write(true).open(self.path.join(name))
        }

        pub fn write_device(&self, name: &OsStr, _: bool) -> io::Result<File> {
            self.write(name)
        }

        pub fn create_new(&self, name: &OsStr, _: u32) -> io::Result<File> {
            File::options().read(true).write(true).create_new(true).open(self.path.join(name))
        }

        pub fn create_dir(&self, name: &OsStr, _: u32) -> io::Result<()> {
            fs::create_dir(self.path.join(name))
        }

        pub fn open_dir(&self, name: &OsStr) -> io::Result<Self> {
            match self.entry_of(name)?.kind {
                EntryKind::Directory => Ok(Self { path: self.path.join(name) }),
                _ => Err(io::ErrorKind::NotADirectory.into()),
            }
        }

        pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            self.rename_into(from, self, to)
        }

        pub fn rename_into(&self, from: &OsStr, into: &Self, to: &OsStr) -> io::Result<()> {
            fs::rename(self.path.join(from), into.path.join(to))
        }

        pub fn rename_new(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
            if self.entry_of(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.rename(from, to)
        }

        pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_file(self.path.join(name))
        }

        pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
            fs::remove_dir(self.path.join(name))
        }

        pub fn names(&self) -> io::Result<Vec<OsString>> {
            fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name())).collect()
        }

        pub fn is_of_processes(&self) -> bool {
            false
        }
    }
}
