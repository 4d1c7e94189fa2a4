//! Directories of Unix, which stay open: all calls name a file in one.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::*;
use crate::storage::trusted_path::open_directory;

/// Flags of everything that is opened: it does not wait for the other end of a FIFO, and follows no link.
const OPEN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Returns a single name; a path is an error, as it would lead to another directory.
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

// Systems have several types for it.
#[allow(clippy::useless_conversion)]
fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(mode.try_into().unwrap_or_default())
}

impl FileId {
    /// Returns the identity of the file or directory at a path, following links.
    ///
    /// # Errors
    /// If nothing exists there, or the system call fails.
    pub fn of_path(path: &Path) -> io::Result<Self> {
        Ok(entry(&rustix::fs::stat(path)?).id)
    }
}

impl OpenDir {
    /// Returns the entry of this directory itself.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn entry(&self) -> io::Result<Entry> {
        Ok(entry(&fstat(&self.dir)?))
    }

    /// Returns the entry of this name. A link is not followed.
    ///
    /// # Errors
    /// If there is none, or the system call fails.
    pub fn entry_of(&self, name: &OsStr) -> io::Result<Entry> {
        Ok(entry(&statat(&self.dir, single(name)?, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Returns the entry of an open file.
    pub(crate) fn entry_of_open(&self, file: &File) -> io::Result<Entry> {
        Ok(entry(&fstat(file)?))
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn id_of(file: &File) -> io::Result<FileId> {
        Ok(entry(&fstat(file)?).id)
    }

    /// Returns the target of a link.
    ///
    /// # Errors
    /// If it is not a link.
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
        // It may have been replaced since it was checked.
        if file.metadata()?.is_file() {
            return Err(io::Error::other("it was replaced by a regular file"));
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
    /// If it cannot be linked.
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
        match rustix::fs::linkat(&self.dir, single(from)?, &self.dir, single(to)?, AtFlags::empty()) {
            Ok(()) => self.remove_made(from, id),
            Err(Errno::EXIST) => Err(Errno::EXIST.into()),
            // Some have no links either.
            Err(_) if self.entry_of(to).is_err() => self.rename(from, to),
            Err(error) => Err(error.into()),
        }
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
        // A directory that was opened with `O_PATH` cannot be listed.
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

    /// Returns `true` if it is a directory of `/proc`, whose links may lead to files without a path.
    #[cfg(target_os = "linux")]
    pub fn is_of_processes(&self) -> bool {
        rustix::fs::fstatfs(self.dir.as_fd())
            .is_ok_and(|system| system.f_type == rustix::fs::PROC_SUPER_MAGIC)
    }

    /// Returns `true` if it is a directory of `/proc`, whose links may lead to files without a path.
    #[cfg(not(target_os = "linux"))]
    pub fn is_of_processes(&self) -> bool {
        let _ = self.dir.as_fd();
        false
    }
}
