//! Directories that only their user can change, and the files in them.
//!
//! An index is trusted, replaced and removed, and it may be in a directory where others can write: beside
//! a dump in `/tmp`, for instance. So a directory or file is used only if it is not a symbolic link,
//! belongs to this user or to root, and is not writable by others. A directory is opened once, and files
//! are accessed through the open directory: another user who can rename it cannot substitute another.
//! On systems where files have no owners, only links are refused.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use hprof_input::file::{Mapped, OpenError};
use hprof_input::mapped_files::Content;

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
}

/// Users besides the owner who can remove and rename a directory: those who can change its parent. They
/// cannot change its contents.
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
    #[cfg(unix)]
    dir: std::os::fd::OwnedFd,
}

/// Equal if they have the same path.
impl PartialEq for PrivateDir {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for PrivateDir {}

/// Refuses a directory or file that others can change.
fn check(metadata: &fs::Metadata) -> Result<(), Distrust> {
    if metadata.is_symlink() {
        return Err(Distrust::Link);
    }
    if let Some(owner) = other_owner(metadata) {
        return Err(Distrust::Owner(owner));
    }
    if mode(metadata) & 0o022 != 0 {
        return Err(Distrust::Writable);
    }
    Ok(())
}

/// Returns the parent directory of a path.
fn above(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a parent directory that is a link which another user can redirect; accepts a missing one.
fn check_above(path: &Path) -> Result<(), Distrust> {
    match fs::symlink_metadata(above(path)) {
        Ok(metadata) if metadata.is_symlink() => match other_owner(&metadata) {
            Some(owner) => Err(Distrust::LinkAbove(above(path).to_owned(), owner)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns the owner of a file, if that is neither this user nor root.
#[cfg(unix)]
fn other_owner(metadata: &fs::Metadata) -> Option<u32> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    (owner != 0 && owner != rustix::process::geteuid().as_raw()).then_some(owner)
}

/// Returns the permissions of a file.
#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::mode(metadata)
}

/// Files have no owners.
#[cfg(not(unix))]
fn other_owner(_: &fs::Metadata) -> Option<u32> {
    None
}

/// Files have no modes.
#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

impl PrivateDir {
    /// Opens a directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        check_above(path)?;
        // Checked before it is opened: a link is reported as such, whatever its target is.
        let metadata = fs::symlink_metadata(path)?;
        check(&metadata)?;
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Self::open_checked(path)
    }

    /// Opens a directory, or creates one that only its user may read: an index contains data of the dump.
    /// Returns `true` if it was created.
    pub(crate) fn create(path: &Path) -> io::Result<(Self, bool)> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return Ok((opened?, false)),
        }
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if let Some(parent) = path.parent() {
            builder.recursive(true).create(parent)?;
        }
        let is_new = match builder.recursive(false).create(path) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            created => created.map(|()| true)?,
        };
        let opened = Self::open(path);
        if opened.is_err() && is_new {
            // A file system without permissions. An empty directory would only be a nuisance.
            let _ = fs::remove_dir(path);
        }
        Ok((opened?, is_new))
    }

    /// Returns the users who can remove and rename it. A group with that permission is often the user's
    /// own; in a sticky directory, such as `/tmp`, nobody can remove files of others.
    pub(crate) fn exposure(&self) -> Option<Exposure> {
        let above = above(&self.path);
        let metadata = fs::metadata(above).ok()?;
        match other_owner(&metadata) {
            Some(owner) => Some(Exposure::Owner(above.to_owned(), owner)),
            None => (mode(&metadata) & 0o1002 == 0o002).then(|| Exposure::Everybody(above.to_owned())),
        }
    }

    /// Returns the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Maps a file for reading.
    pub(crate) fn map(&self, name: &str) -> Result<Mapped, OpenError> {
        let path = self.path.join(name);
        let file = match self.read(name) {
            Ok(file) => file,
            Err(error) => return Err(OpenError::Io { what: "open", path, error }),
        };
        let kind = file.metadata().map(|metadata| metadata.file_type());
        match kind {
            Ok(kind) if kind.is_dir() => Err(OpenError::Directory(path)),
            Ok(kind) if !kind.is_file() => Err(OpenError::NotAFile(path)),
            _ => Mapped::of(&file, path, Content::File),
        }
    }

    /// Creates a file for writing, with a random name that starts with `prefix`.
    pub(crate) fn temporary(&self, prefix: &str) -> io::Result<NamedTempFile> {
        Builder::new().prefix(prefix).make_in(&self.path, |path| self.create_new(path))
    }
}

#[cfg(unix)]
impl PrivateDir {
    fn open_checked(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        // The file that was checked by name may have been replaced.
        check(&dir.metadata()?)?;
        Ok(Self { path: path.to_owned(), dir: dir.into() })
    }

    /// Opens the file of this name without waiting for the other end of a pipe.
    fn open_at(&self, name: &Path, flags: rustix::fs::OFlags) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => Ok(File::from(file)),
            // Some systems use other codes for this error.
            Err(_) if self.stat(name).is_ok_and(|stat| is_link(&stat)) => Err(Distrust::Link.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn stat(&self, name: &Path) -> io::Result<rustix::fs::Stat> {
        Ok(rustix::fs::statat(&self.dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn read(&self, name: &str) -> io::Result<File> {
        let file = self.open_at(name.as_ref(), rustix::fs::OFlags::RDONLY)?;
        check(&file.metadata()?)?;
        Ok(file)
    }

    fn create_new(&self, path: &Path) -> io::Result<File> {
        use rustix::fs::OFlags;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.open_at(name.as_ref(), OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a file for locking, creating it if necessary.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        use rustix::fs::OFlags;
        let file = self.open_at(name.as_ref(), OFlags::WRONLY | OFlags::CREATE)?;
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Returns `true` if the open file still has that name.
    pub(crate) fn is_at(&self, file: &File, name: &str) -> bool {
        use std::os::unix::fs::MetadataExt;
        let here = self.stat(name.as_ref()).ok().map(|stat| (id(stat.st_dev), id(stat.st_ino)));
        let open =
            file.metadata().ok().map(|metadata| (i128::from(metadata.dev()), i128::from(metadata.ino())));
        here.is_some() && here == open
    }

    /// Returns the size of the file of this name, without following links.
    pub(crate) fn len_of(&self, name: &str) -> io::Result<u64> {
        Ok(u64::try_from(self.stat(name.as_ref())?.st_size).unwrap_or(0))
    }

    /// Renames a file of this directory, replacing any file of the new name.
    pub(crate) fn publish(&self, file: NamedTempFile, name: &str) -> io::Result<()> {
        let from = file.path().file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        let rename = || rustix::fs::renameat(&self.dir, &from, &self.dir, name).map_err(io::Error::from);
        let named = match rename() {
            // An empty directory contains no data, but no file can replace it.
            Err(error) if self.stat(name.as_ref()).is_ok_and(|stat| is_dir(&stat)) => {
                self.remove_dir_at(name).map_err(|_| error).and_then(|()| rename())
            }
            named => named,
        };
        named?;
        // No file of that name exists any more.
        let _ = file.into_temp_path().keep();
        Ok(())
    }

    fn remove_dir_at(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, name, rustix::fs::AtFlags::REMOVEDIR)?)
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.dir, name, rustix::fs::AtFlags::empty())?)
    }

    /// Returns the names of all entries. Names that are not UTF-8 are shown with U+FFFD; no file of an
    /// index has one.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }
}

/// Returns a device or inode number; systems have several types for them.
#[cfg(unix)]
fn id(number: impl TryInto<i128>) -> i128 {
    number.try_into().unwrap_or(-1)
}

#[cfg(unix)]
fn is_link(stat: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink()
}

#[cfg(unix)]
fn is_dir(stat: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Directories are not opened: files are accessed by path.
#[cfg(not(unix))]
impl PrivateDir {
    fn open_checked(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned() })
    }

    fn read(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        check(&fs::symlink_metadata(&path)?)?;
        File::open(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(path)
    }

    /// Opens a file for locking, creating it if necessary.
    pub(crate) fn open_lock(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        File::options().create(true).truncate(false).write(true).open(path)
    }

    /// Returns `true` if the open file still has that name: on this system, an open file cannot be
    /// removed.
    pub(crate) fn is_at(&self, _: &File, _: &str) -> bool {
        true
    }

    /// Returns the size of the file of this name, without following links.
    pub(crate) fn len_of(&self, name: &str) -> io::Result<u64> {
        fs::symlink_metadata(self.path.join(name)).map(|metadata| metadata.len())
    }

    /// Renames a file of this directory, replacing any file of the new name.
    pub(crate) fn publish(&self, file: NamedTempFile, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        match file.persist(&path) {
            // An empty directory contains no data, but no file can replace it.
            Err(error) if path.is_dir() => {
                fs::remove_dir(&path).and_then(|()| Ok(error.file.persist(&path).map(drop)?))
            }
            named => Ok(named.map(drop)?),
        }
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Returns the names of all entries.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(&self.path)?.map(name).collect()
    }
}
