//! Open directories below which paths are resolved as in a process whose root they are.
//!
//! A directory is held open, so nobody can replace it with another one. Links are resolved below it, or not at all. Files are
//! opened without following links, and must be ordinary files.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat};
use rustix::io::Errno;

/// Open directory for resolving paths below it.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
}

impl From<OwnedFd> for Directory {
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

impl Directory {
    /// Flags for opening a directory as a base for paths, without reading it.
    pub(crate) const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    /// Opens a directory below this one, following links below this one only.
    ///
    /// # Errors
    ///
    /// If it does not exist below this directory.
    pub(crate) fn open_below(&self, inner: &str) -> std::io::Result<Self> {
        Ok(Self { fd: self.resolve(inner, Self::FLAGS)? })
    }

    /// Opens a directory below this one without following links.
    ///
    /// # Errors
    ///
    /// If it does not exist, or its path contains links.
    pub(crate) fn without_links(&self, inner: &str) -> std::io::Result<Self> {
        let mut dir = self.fd.try_clone()?;
        for part in inner.split('/').filter(|part| !part.is_empty()) {
            if part == ".." {
                return Err(Errno::XDEV.into());
            }
            dir = rustix::fs::openat(&dir, part, Self::FLAGS | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(Self { fd: dir })
    }

    /// Opens an entry of this directory, which must be a directory and not a link.
    pub(crate) fn entry(&self, name: &str) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { fd: rustix::fs::openat(&self.fd, name, flags, Mode::empty())? })
    }

    /// Opens a path, resolving links as if this directory were the root.
    fn resolve(&self, inner: &str, flags: OFlags) -> std::io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, inner, flags, Mode::empty(), resolve) {
            // Kernels before 5.6 lack this system call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {
                let (parents, name) = inner.rsplit_once('/').unwrap_or(("", inner));
                let dir = self.without_links(parents)?.fd;
                Ok(rustix::fs::openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty())?)
            }
            opened => Ok(opened?),
        }
    }

    /// Opens an ordinary file below this directory for reading.
    ///
    /// # Errors
    ///
    /// If it is not an ordinary file.
    pub(crate) fn file(&self, inner: &str) -> std::io::Result<(File, Stat)> {
        // The type is checked first, as opening a device may have effects. If a FIFO replaces the file afterwards, opening it
        // does not block.
        let found = self.resolve(inner, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file(&fstat(&found)?) {
            let file = self.resolve(inner, flags)?;
            let stat = fstat(&file)?;
            if is_file(&stat) {
                return Ok((file.into(), stat));
            }
        }
        Err(std::io::Error::other("it is not a regular file"))
    }

    /// Opens this directory again for reading its entries.
    pub(crate) fn reopen(&self) -> std::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.fd, ".", flags, Mode::empty())?)
    }

    /// Returns the file descriptor of the directory.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    fn open_directory(path: &Path) -> Directory {
        Directory::from(rustix::fs::open(path, Directory::FLAGS, Mode::empty()).unwrap())
    }

    fn create(dir: &Directory, name: &str) {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        rustix::fs::openat(dir.fd(), name, flags, Mode::RUSR | Mode::WUSR).unwrap();
    }

    #[test]
    fn links_do_not_lead_out_of_a_root() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("root");
        fs::create_dir_all(root.join("elsewhere")).unwrap();
        fs::create_dir(outside.path().join("elsewhere")).unwrap();
        for target in [outside.path().to_str().unwrap(), "/dev/shm"] {
            let _ = fs::remove_file(root.join("tmp"));
            symlink(target, root.join("tmp")).unwrap();
            assert!(root.join("tmp").is_dir(), "it leads out");
            assert!(open_directory(&root).open_below("tmp").is_err(), "{target}");
        }
        // A link that leads below the root is followed there, if at all.
        fs::remove_file(root.join("tmp")).unwrap();
        symlink("../elsewhere", root.join("tmp")).unwrap();
        if let Ok(tmp) = open_directory(&root).open_below("tmp") {
            create(&tmp, "file");
            assert!(root.join("elsewhere/file").is_file());
            assert!(!outside.path().join("elsewhere/file").exists());
        }
    }

    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("tmp")).unwrap();
        let tmp = open_directory(root.path()).open_below("tmp").unwrap();
        fs::rename(root.path().join("tmp"), root.path().join("moved")).unwrap();
        symlink(outside.path(), root.path().join("tmp")).unwrap();
        create(&tmp, "file");
        assert!(root.path().join("moved/file").is_file() && !outside.path().join("file").exists());
    }

    #[test]
    fn only_ordinary_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("secret"), "text").unwrap();
        symlink("secret", root.path().join("link")).unwrap();
        fs::create_dir(root.path().join("dir")).unwrap();
        rustix::fs::mkfifoat(CWD, root.path().join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        let dir = open_directory(root.path());
        assert_eq!(dir.file("secret").unwrap().1.st_size, 4);
        for name in ["link", "dir", "fifo", "missing"] {
            assert!(dir.file(name).is_err(), "{name}");
        }
    }
}
