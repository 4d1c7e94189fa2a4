//! A directory for one dump, in which nobody but the JVM's user can look: a dump is full of secrets, and the JVM creates
//! it with permissions of its own. Removed on drop, with everything in it.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Uid};

use crate::directory::Directory;
use crate::error::Error;
use crate::identity::Identity;

/// Prefix of their names.
pub(crate) const PREFIX: &str = ".hprof-cli-dump-";

/// Name of the dump in its directory, and that of its FIFO.
pub(crate) const NAME: &str = "heap.hprof";

/// Returns a name that cannot be guessed.
pub(crate) fn random_name(prefix: &str) -> String {
    let mut random = RandomState::new().build_hasher();
    random.write_u32(std::process::id());
    format!("{prefix}{:016x}", random.finish())
}

/// Looks after what has to be removed even if this process is killed.
pub trait Keeper: fmt::Debug + Sync {
    /// Looks after a file, which is about to be created. It is removed by its owner; what is returned is dropped then.
    ///
    /// # Errors
    ///
    /// If nobody can look after it.
    fn keep_file(&self, parent: &Path, name: &str) -> io::Result<Box<dyn Any>>;

    /// Calls `make`, which creates the directory `name` in `parent` for the user `user`. It is removed by its owner; what
    /// is returned is dropped then.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    fn keep_directory(
        &self,
        parent: &Path,
        name: &str,
        user: u32,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>>;
}

/// Keeper of nothing: a killed process leaves its files.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoKeeper;

impl Keeper for NoKeeper {
    fn keep_file(&self, _: &Path, _: &str) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(()))
    }

    fn keep_directory(
        &self,
        _: &Path,
        _: &str,
        _: u32,
        make: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Box<dyn Any>> {
        make()?;
        Ok(Box::new(()))
    }
}

/// The directory.
pub(crate) struct PrivateDir {
    parent: Directory,
    name: String,
    dir: Directory,
    /// Path as the JVM sees it.
    inner: String,
    owner: Identity,
    _kept: Box<dyn Any>,
}

impl PrivateDir {
    /// Creates one in `parent`, which the JVM knows as `inner`, for the user of the JVM.
    pub(crate) fn create(
        parent: Directory,
        inner: &str,
        owner: Identity,
        keeper: &dyn Keeper,
    ) -> Result<Self, Error> {
        let name = random_name(PREFIX);
        let place = parent.place().join(&name);
        let fail = |source| Error::File { what: "cannot create".into(), path: place.clone(), source };
        let mode = Mode::from_raw_mode(0o700);
        let mut is_own = owner == Identity::own();
        let mut make = || -> io::Result<()> {
            let made = owner.run(|| rustix::fs::mkdirat(parent.fd(), name.as_str(), mode));
            match made {
                Ok(Ok(())) => Ok(()),
                // The JVM's user may not write here, but this one may.
                _ if owner != Identity::own() => {
                    is_own = true;
                    Ok(rustix::fs::mkdirat(parent.fd(), name.as_str(), mode)?)
                }
                Ok(Err(error)) => Err(error.into()),
                Err(error) => Err(io::Error::other(error)),
            }
        };
        let path = parent.path("");
        let kept = keeper.keep_directory(&path, &name, owner.user, &mut make).map_err(fail)?;
        let made = if is_own { Identity::own() } else { owner };
        let dir = opened(&parent, &name, made, owner);
        let inner = format!("{}/{name}", inner.trim_end_matches('/'));
        match dir {
            Ok(dir) => Ok(Self { parent, name, dir, inner, owner, _kept: kept }),
            Err(error) => {
                remove(&parent, &name, owner.user);
                Err(fail(error))
            }
        }
    }

    /// Returns the path of a file as the JVM sees it.
    pub(crate) fn inner(&self, name: &str) -> String {
        format!("{}/{name}", self.inner)
    }

    /// Returns the path of a file for messages.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.parent.place().join(&self.name).join(name)
    }

    /// Returns the open directory.
    pub(crate) fn dir(&self) -> &Directory {
        &self.dir
    }

    /// Ends the wait of a JVM that has opened its FIFO, or is about to, when nobody will read it.
    pub(crate) fn release(&self) {
        release(&self.dir);
    }

    /// Returns the number of bytes in it.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = fs::read_dir(self.dir.path("")).into_iter().flatten().flatten();
        // The files are another user's, and may have any length.
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).fold(0, u64::saturating_add)
    }

    /// Opens a file of the JVM: one that it wrote itself, and nothing that it put in its place.
    pub(crate) fn open(&self, name: &str, pid: u32) -> Result<(File, rustix::fs::Stat), Error> {
        let odd = |why: String| Error::Odd { pid, path: self.place(name), why };
        let (file, stat) = self.dir.file(name).map_err(|error| odd(error.to_string()))?;
        if stat.st_uid != self.owner.user || stat.st_nlink != 1 {
            return Err(odd("it belongs to another user, or has another name".to_owned()));
        }
        Ok((file, stat))
    }

    /// Gives a file its final name and permissions.
    pub(crate) fn publish(&self, name: &str, to: &Path, is_forced: bool, pid: u32) -> Result<(), Error> {
        let fail =
            |source: io::Error| Error::File { what: "cannot write".into(), path: to.to_owned(), source };
        let (file, stat) = self.open(name, pid)?;
        let own = Identity::own();
        if own != self.owner {
            let ids = (Some(Uid::from_raw(own.user)), Some(Gid::from_raw(own.group)));
            rustix::fs::fchown(&file, ids.0, ids.1).map_err(|error| fail(error.into()))?;
        }
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o600)).map_err(|error| fail(error.into()))?;
        let flags = if is_forced { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(self.dir.fd(), name, CWD, to, flags) {
            // Some file systems lack the flag.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) if !to.exists() => {
                rustix::fs::renameat(self.dir.fd(), name, CWD, to).map_err(|error| fail(error.into()))?;
            }
            Err(rustix::io::Errno::EXIST) => return Err(Error::Exists { path: to.to_owned() }),
            renamed => renamed.map_err(|error| fail(error.into()))?,
        }
        // The JVM's user may have replaced it meanwhile.
        let there =
            rustix::fs::statat(CWD, to, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| fail(error.into()))?;
        if (there.st_dev, there.st_ino) != (stat.st_dev, stat.st_ino) {
            let _ = fs::remove_file(to);
            return Err(Error::Odd { pid, path: self.place(name), why: "it was replaced".to_owned() });
        }
        Ok(())
    }
}

/// Opens a directory that `made` has just created, and gives it to `owner`. All that follows is done with this open
/// directory: whoever may write to its parent may put another one in its place.
fn opened(parent: &Directory, name: &str, made: Identity, owner: Identity) -> io::Result<Directory> {
    let dir = parent.entry(name)?;
    let stat = rustix::fs::fstat(dir.fd())?;
    if stat.st_uid != made.user || stat.st_mode & 0o077 != 0 {
        return Err(io::Error::other("it was replaced"));
    }
    if made != owner {
        rustix::fs::fchown(dir.fd(), Some(Uid::from_raw(owner.user)), Some(Gid::from_raw(owner.group)))?;
    }
    rustix::fs::fchmod(dir.fd(), Mode::from_raw_mode(0o700))?;
    Ok(dir)
}

fn release(dir: &Directory) {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // It stays open until nobody finds the FIFO any more: a JVM that has just opened it gets an error when it writes.
    let _fifo = rustix::fs::openat(dir.fd(), NAME, flags, Mode::empty());
    let _ = rustix::fs::unlinkat(dir.fd(), NAME, AtFlags::empty());
}

/// Number of attempts: the JVM may still create a file.
const ATTEMPTS: u32 = 5;

/// Removes such a directory, whose process has ended, from `parent`. A JVM that waits for a reader of its FIFO is released
/// first: it could accept no other command. A directory that is not that of `user` or of this user is left alone.
pub(crate) fn remove_abandoned(parent: &Path, name: &str, user: u32) {
    if let Ok(parent) = Directory::open(parent) {
        remove(&parent, name, user);
    }
}

fn remove(parent: &Directory, name: &str, user: u32) {
    let own = Identity::own().user;
    let is_theirs =
        |dir: &Directory| rustix::fs::fstat(dir.fd()).is_ok_and(|there| [user, own].contains(&there.st_uid));
    for _ in 0..ATTEMPTS {
        // No link is followed: the directory's owner could have another one emptied.
        let Some(dir) = parent.entry(name).ok().filter(is_theirs) else { return };
        release(&dir);
        for entry in fs::read_dir(dir.path("")).into_iter().flatten().flatten() {
            let _ = rustix::fs::unlinkat(dir.fd(), entry.file_name(), AtFlags::empty());
        }
        if rustix::fs::unlinkat(parent.fd(), name, AtFlags::REMOVEDIR).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        remove(&self.parent, &self.name, self.owner.user);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn nothing_is_removed_through_a_link() {
        let (parent, victim) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = victim.path().join(NAME);
        fs::write(&file, "another user's").unwrap();
        let name = format!("{PREFIX}0");
        symlink(victim.path(), parent.path().join(&name)).unwrap();
        remove_abandoned(parent.path(), &name, Identity::own().user);
        assert!(file.is_file());
        // The directory of a dump is swapped while it is taken.
        let opened = Directory::open(parent.path()).unwrap();
        let dir = PrivateDir::create(opened, "/x", Identity::own(), &NoKeeper).unwrap();
        let path = parent.path().join(&dir.name);
        fs::write(path.join(NAME), "").unwrap();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        symlink(victim.path(), &path).unwrap();
        dir.release();
        assert!(file.is_file() && !parent.path().join("moved").join(NAME).exists());
        drop(dir);
        assert!(file.is_file() && path.is_symlink());
    }

    #[test]
    fn directories_are_private_and_removed_with_their_files() {
        let parent = tempfile::tempdir().unwrap();
        let opened = Directory::open(parent.path()).unwrap();
        let dir = PrivateDir::create(opened, "/x", Identity::own(), &NoKeeper).unwrap();
        let path = parent.path().join(&dir.name);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        for name in [NAME, "heap.hprof.p0"] {
            fs::write(path.join(name), "1234").unwrap();
        }
        assert_eq!(dir.bytes(), 8);
        drop(dir);
        assert!(!path.exists());
        // What is not private is not what was created.
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let (root, own) = (Directory::open(parent.path()).unwrap(), Identity::own());
        assert!(super::opened(&root, path.file_name().unwrap().to_str().unwrap(), own, own).is_err());
    }
}
