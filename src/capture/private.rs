//! Private directory for a dump, which only the JVM's user can access, because a dump contains secrets and the JVM decides
//! about its permissions. On drop, the dump is removed, and then the directory, if it is empty.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{Gid, Uid};

use crate::error::Error;
use crate::identity::Identity;
use crate::random_name::random_name;
use crate::user_files::{EntryFacts, UserDir, UserFiles};

/// Prefix of the names of private directories.
const PREFIX: &str = ".hprof-cli-dump-";

/// Name of the dump, or of its FIFO, in the private directory.
pub(crate) const NAME: &str = "heap.hprof";

/// Private directory of a dump.
pub(crate) struct PrivateDir {
    parent: UserDir,
    name: String,
    dir: UserDir,
    /// Path of the directory as the JVM sees it.
    inner: String,
    owner: Identity,
}

impl PrivateDir {
    /// Creates a private directory in `parent`, whose path is `inner` for the JVM. `files` works as the JVM's user, to whom the
    /// directory will belong.
    pub(crate) fn create(
        parent: UserDir,
        inner: &str,
        owner: Identity,
        files: &Arc<UserFiles>,
    ) -> Result<Self, Error> {
        let name = random_name(PREFIX);
        let place = parent.full_path().join(&name);
        let fail = |source| Error::File { what: "cannot create".into(), path: place.clone(), source };
        let created = parent.create_directory(&name).map_err(fail)?;
        let dir = match parent.files().user() == owner.user {
            true => created,
            // The parent cannot be changed by others. From now on the new directory belongs to the JVM's user, and all
            // operations in it are done as that user.
            false => {
                let ids = (Some(Uid::from_raw(owner.user)), Some(Gid::from_raw(owner.group)));
                rustix::fs::fchown(created.fd(), ids.0, ids.1).map_err(|error| fail(error.into()))?;
                files.adopt(created.fd(), place.clone()).map_err(fail)?
            }
        };
        dir.expect(NAME).map_err(fail)?;
        let inner = format!("{}/{name}", inner.trim_end_matches('/'));
        Ok(Self { parent, name, dir, inner, owner })
    }

    /// Returns the path of a file in the directory, as the JVM sees it.
    pub(crate) fn inner(&self, name: &str) -> String {
        format!("{}/{name}", self.inner)
    }

    /// Returns the path of a file in the directory, for messages.
    pub(crate) fn full_path(&self, name: &str) -> PathBuf {
        self.dir.full_path().join(name)
    }

    /// Returns the open parent of the directory.
    pub(crate) fn parent(&self) -> &UserDir {
        &self.parent
    }

    /// Returns the private directory itself.
    pub(crate) fn dir(&self) -> &UserDir {
        &self.dir
    }

    /// Removes the FIFO when nobody will read from it, so that a JVM that has opened it, or is about to, does not wait.
    pub(crate) fn release(&self) {
        let _ = self.dir.remove(NAME);
    }

    /// Returns the total length of all files in the directory.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.dir.names("").unwrap_or_default();
        // The files belong to another user, and can have any length.
        entries.iter().fold(0, |sum, entry| u64::saturating_add(sum, entry.facts.bytes))
    }

    /// Opens a file in the directory. It must be an ordinary file written by the JVM, not a link or other replacement.
    pub(crate) fn open(&self, name: &str, pid: u32) -> Result<(File, EntryFacts), Error> {
        let odd = |why: String| Error::Odd { pid, path: self.full_path(name), why };
        let (file, facts) = self.dir.file(name).map_err(|error| odd(error.to_string()))?;
        if facts.user != self.owner.user || facts.links != 1 {
            return Err(odd("it belongs to another user, or has more than one hard link".to_owned()));
        }
        Ok((file, facts))
    }
}

impl Drop for PrivateDir {
    fn drop(&mut self) {
        // Entries that remain are removed, or reported, when the file access is closed.
        for _ in 0..2 {
            let _ = self.dir.remove(NAME);
            if self.parent.remove(&self.name).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::*;

    fn create(parent: &Path) -> (PrivateDir, PathBuf) {
        let files = UserFiles::for_test(parent);
        let dir = PrivateDir::create(files.root().unwrap(), "/x", Identity::own(), &files).unwrap();
        let path = parent.join(&dir.name);
        (dir, path)
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let (parent, victim) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = victim.path().join(NAME);
        fs::write(&file, "another user's").unwrap();
        let (dir, path) = create(parent.path());
        // The directory is swapped while the dump is taken.
        fs::write(path.join(NAME), "").unwrap();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        symlink(victim.path(), &path).unwrap();
        dir.release();
        assert!(file.is_file() && !parent.path().join("moved").join(NAME).exists());
        drop(dir);
        assert!(file.is_file() && path.is_symlink());
    }

    #[test]
    fn another_directory_under_its_name_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, path) = create(parent.path());
        fs::rename(&path, parent.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join(NAME), "another's").unwrap();
        drop(dir);
        assert!(path.join(NAME).is_file());
        // Even an empty replacement does not belong to us.
        let (dir, path) = create(parent.path());
        fs::rename(&path, parent.path().join("moved away")).unwrap();
        fs::create_dir(&path).unwrap();
        drop(dir);
        assert!(path.is_dir());
    }

    #[test]
    fn directories_are_private_and_removed_with_the_dump_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (dir, path) = create(parent.path());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        for name in [NAME, "heap.hprof.p0", "heap.hprof.p17"] {
            fs::write(path.join(name), "1234").unwrap();
        }
        assert_eq!(dir.bytes(), 12);
        drop(dir);
        assert!(!path.exists());
        let (dir, path) = create(parent.path());
        for name in [NAME, "heap.hprof.p", "heap.hprof.p1x", "heap.hprofx", "mine"] {
            fs::write(path.join(name), "1234").unwrap();
        }
        fs::create_dir(path.join("heap.hprof.p0")).unwrap();
        drop(dir);
        assert!(!path.join(NAME).exists());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 5);
    }
}
