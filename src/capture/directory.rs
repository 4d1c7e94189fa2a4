//! Directories of other processes, below their own root, and what is in them.
//!
//! A directory stays open: its process cannot replace it with another one. Links are resolved as for a process with that
//! root, or not at all. Files in it are opened without following links, and have to be ordinary ones.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat};
use rustix::io::Errno;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
    /// Path at which it was opened, for messages.
    place: PathBuf,
}

/// How directories are opened: only to find files in them.
const FIND: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Directory {
    /// Opens a directory by its path as this process sees it.
    pub(crate) fn open(place: &Path) -> std::io::Result<Self> {
        Ok(Self { fd: rustix::fs::open(place, FIND, Mode::empty())?, place: place.to_owned() })
    }

    /// Opens a directory below this one, which is the root of a process.
    ///
    /// # Errors
    ///
    /// If it does not exist below this directory.
    pub(crate) fn below(&self, inner: &str) -> std::io::Result<Self> {
        Ok(Self { fd: self.resolve(inner, FIND)?, place: self.place.join(inner) })
    }

    /// Opens a directory in this one, which is not a link.
    pub(crate) fn entry(&self, name: &str) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
        Ok(Self { fd, place: self.place.join(name) })
    }

    /// Opens what a path leads to, with links resolved as if this directory were the root.
    fn resolve(&self, inner: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, inner, flags, Mode::empty(), resolve) {
            // Kernels before 5.6 lack this call, and some containers forbid it.
            Err(Errno::NOSYS | Errno::PERM) => {
                let mut dir = self.fd.try_clone().map_err(|_| Errno::MFILE)?;
                let (parents, name) = inner.rsplit_once('/').unwrap_or(("", inner));
                for part in parents.split('/').filter(|part| !part.is_empty()) {
                    if part == ".." {
                        return Err(Errno::XDEV);
                    }
                    dir = rustix::fs::openat(&dir, part, FIND | OFlags::NOFOLLOW, Mode::empty())?;
                }
                rustix::fs::openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty())
            }
            opened => opened,
        }
    }

    /// Opens an ordinary file below this directory for reading, with its length.
    ///
    /// # Errors
    ///
    /// If it is something else.
    pub(crate) fn file(&self, inner: &str) -> std::io::Result<(File, rustix::fs::Stat)> {
        // Looked at first: opening a device may do something.
        let found = self.resolve(inner, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
        let stat = fstat(&found)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(std::io::Error::other("not an ordinary file"));
        }
        Ok((File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?, stat))
    }

    /// Returns the open directory.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Returns the path at which it was opened.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Returns a path that leads to a file of this directory, even if its own path was replaced, as long as this lives.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

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
            assert!(Directory::open(&root).unwrap().below("tmp").is_err(), "{target}");
        }
        // A link that leads below the root is followed there, if at all.
        fs::remove_file(root.join("tmp")).unwrap();
        symlink("../elsewhere", root.join("tmp")).unwrap();
        if let Ok(tmp) = Directory::open(&root).unwrap().below("tmp") {
            fs::write(tmp.path("file"), "").unwrap();
            assert!(root.join("elsewhere/file").is_file());
            assert!(!outside.path().join("elsewhere/file").exists());
        }
    }

    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("tmp")).unwrap();
        let tmp = Directory::open(root.path()).unwrap().below("tmp").unwrap();
        fs::rename(root.path().join("tmp"), root.path().join("moved")).unwrap();
        symlink(outside.path(), root.path().join("tmp")).unwrap();
        fs::write(tmp.path("file"), "").unwrap();
        assert!(root.path().join("moved/file").is_file() && !outside.path().join("file").exists());
    }

    #[test]
    fn only_ordinary_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("secret"), "text").unwrap();
        symlink("secret", root.path().join("link")).unwrap();
        fs::create_dir(root.path().join("dir")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.path().join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
        let dir = Directory::open(root.path()).unwrap();
        assert_eq!(dir.file("secret").unwrap().1.st_size, 4);
        for name in ["link", "dir", "fifo", "missing"] {
            assert!(dir.file(name).is_err(), "{name}");
        }
    }
}
