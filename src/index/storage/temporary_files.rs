//! Temporary files: files that have a name only while they are written, and are removed when the process
//! is terminated.
//!
//! A dropped file removes itself. A signal drops nothing, so all names are registered here, and
//! [`remove_all`] removes the files. A process that is killed leaves them. Files in an index directory
//! are removed by the next process that builds the same index (`super::store::directory`), temporary
//! directories by the next that creates one.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::{Builder, NamedTempFile, TempDir};

use super::private_dir::PrivateDir;

/// An entry to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    File(PathBuf),
    /// A directory with its contents.
    Tree(PathBuf),
    /// An index directory that this process has created, and whose lock it holds: removed if it is empty.
    Empty(Arc<PrivateDir>),
}

/// All current entries, in order of creation.
static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Callback before an entry is added.
static WATCHER: OnceLock<fn()> = OnceLock::new();

/// Calls `begin` before anything is created that has to be removed. Only the first call of this function
/// has an effect.
pub fn watch(begin: fn()) {
    let _ = WATCHER.set(begin);
}

/// Returns the current entries, for adding to them.
fn left_to_add() -> MutexGuard<'static, Vec<Left>> {
    if let Some(begin) = WATCHER.get() {
        begin();
    }
    left()
}

/// Name of the file in an index directory that is locked while the index is built.
pub(crate) const LOCK: &str = "lock";

fn left() -> MutexGuard<'static, Vec<Left>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(left: &mut Vec<Left>, gone: &Left) {
    left.retain(|one| one != gone);
}

impl Left {
    fn remove(&self) {
        // Entries that cannot be removed remain: there is nobody left to report it to.
        let _ = match self {
            Self::File(path) => fs::remove_file(path),
            Self::Tree(path) => fs::remove_dir_all(path),
            Self::Empty(dir) => remove_if_empty(dir),
        };
    }
}

fn remove_if_empty(dir: &PrivateDir) -> io::Result<()> {
    if dir.names()?.iter().any(|name| name != LOCK) {
        return Ok(());
    }
    // While it is locked: a process that waits for it sees that it is gone, and creates another.
    dir.remove_file(LOCK)?;
    fs::remove_dir(dir.path())
}

/// Guard during whose lifetime no temporary file is created, renamed or removed.
#[must_use]
pub struct Ending {
    _left: MutexGuard<'static, Vec<Left>>,
}

/// Removes all temporary files, for a process that is about to end.
pub fn remove_all() -> Ending {
    let left = left();
    left.iter().rev().for_each(Left::remove);
    Ending { _left: left }
}

/// An entry that is registered until this is dropped.
#[derive(Debug)]
struct Listed(Left);

impl Drop for Listed {
    fn drop(&mut self) {
        forget(&mut left(), &self.0);
    }
}

/// A temporary file.
#[derive(Debug)]
pub struct Temporary {
    // Dropped in this order: a removed file need not be registered any more.
    file: NamedTempFile,
    listed: Listed,
}

impl Temporary {
    /// Creates a file in `dir`, with the names and permissions of `builder`.
    pub fn create(builder: &Builder<'_, '_>, dir: &Path) -> io::Result<Self> {
        Self::created(|| builder.tempfile_in(dir))
    }

    /// Has `make` create a file in `dir`, with the names of `builder`.
    pub fn of(
        builder: &Builder<'_, '_>,
        dir: &Path,
        make: impl FnMut(&Path) -> io::Result<File>,
    ) -> io::Result<Self> {
        Self::created(|| builder.make_in(dir, make))
    }

    /// Creates a file in an index directory, whose name starts with `prefix`.
    pub(crate) fn create_in(dir: &PrivateDir, prefix: &str) -> io::Result<Self> {
        Self::created(|| dir.temporary(prefix))
    }

    fn created(create: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<Self> {
        // Locked meanwhile, so that no signal finds a file that is not registered yet.
        let mut left = left_to_add();
        // The random name in the error would mean nothing to a user; nor would that of an error below.
        let file = create().map_err(|error| io::Error::from(error.kind()))?;
        let name = Left::File(file.path().to_owned());
        left.push(name.clone());
        Ok(Self { file, listed: Listed(name) })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the file.
    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Renames the file within its directory, replacing any existing file.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        self.named(|file| Ok(file.persist(path).map(drop)?))
    }

    /// Renames the file within its directory, unless a file of that name exists.
    pub fn publish_new(self, path: &Path) -> io::Result<()> {
        self.named(|file| Ok(file.persist_noclobber(path).map(drop)?))
    }

    /// Does what [`Temporary::publish`] does for a file in an index directory.
    pub(crate) fn publish_in(self, dir: &PrivateDir, name: &str) -> io::Result<()> {
        self.named(|file| dir.publish(file, name))
    }

    fn named(self, name: impl FnOnce(NamedTempFile) -> io::Result<()>) -> io::Result<()> {
        let Self { file, listed } = self;
        // Locked meanwhile: a signal would remove the file before it has its name, which would be
        // reported as an error.
        let held = left();
        let named = name(file);
        drop(held);
        drop(listed);
        named
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

impl Seek for Temporary {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(to)
    }
}

/// Name of the file in a temporary directory that is locked as long as its process lives.
const OWNER: &str = "owner";

/// A temporary directory with its contents.
#[derive(Debug)]
pub struct TemporaryDir {
    // Dropped in this order, like those of a file. Once it has its name, nothing is left to remove.
    dir: TempDir,
    listed: Listed,
    /// The locked file, if locking is supported.
    owner: Option<File>,
}

impl TemporaryDir {
    /// Creates a directory in the system's directory for temporary files, and removes those of the same
    /// prefix whose processes were killed.
    pub(crate) fn create(prefix: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), prefix, 0o700)
    }

    /// Like `Self::create`, but in `parent`. Permissions are `mode` minus the umask.
    pub fn create_in(parent: &Path, prefix: &str, mode: u32) -> io::Result<Self> {
        remove_abandoned(parent, prefix);
        let mut left = left_to_add();
        let mut builder = Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        #[cfg(not(unix))]
        let _ = mode;
        let dir = builder.prefix(prefix).tempdir_in(parent)?;
        let name = Left::Tree(dir.path().to_owned());
        left.push(name.clone());
        let owner = own(dir.path()).ok();
        Ok(Self { dir, listed: Listed(name), owner })
    }

    /// Renames the directory within its parent, replacing any existing one.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        let Self { dir, listed, owner } = self;
        // An existing one is moved into a temporary directory: no rename replaces a directory that is not
        // empty.
        let old = match (fs::symlink_metadata(path), path.parent(), dir.path().file_name()) {
            (Ok(_), Some(parent), Some(name)) => {
                Some(Self::create_in(parent, &format!("{}-old-", name.to_string_lossy()), 0o700)?)
            }
            _ => None,
        };
        // Locked meanwhile: a signal would remove a directory that no longer has its name, or does not
        // have it yet.
        let held = left();
        if owner.is_some() {
            fs::remove_file(dir.path().join(OWNER))?;
        }
        if let Some(old) = &old {
            fs::rename(path, old.path().join("replaced"))?;
        }
        let named = fs::rename(dir.path(), path);
        if named.is_err()
            && let Some(old) = &old
        {
            let _ = fs::rename(old.path().join("replaced"), path);
        }
        drop(held);
        drop((listed, owner));
        named
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// An entry that its owner removes, and that is removed if a signal ends this process before.
#[derive(Debug)]
pub struct ListedPath {
    _listed: Listed,
}

impl ListedPath {
    /// Calls `create`, which creates the directory `path`.
    pub fn tree(path: &Path, create: &mut dyn FnMut() -> io::Result<()>) -> io::Result<Self> {
        let mut left = left_to_add();
        create()?;
        let name = Left::Tree(path.to_owned());
        left.push(name.clone());
        Ok(Self { _listed: Listed(name) })
    }

    /// Lists a file that is about to be created.
    pub fn file(path: &Path) -> Self {
        let name = Left::File(path.to_owned());
        left_to_add().push(name.clone());
        Self { _listed: Listed(name) }
    }
}

/// Marks a directory as that of a running process.
fn own(dir: &Path) -> io::Result<File> {
    // It is locked before others can find it by name.
    let new = dir.join(".owner");
    let file = File::create_new(&new)?;
    file.try_lock()?;
    fs::rename(new, dir.join(OWNER))?;
    Ok(file)
}

/// Removes temporary directories of this user whose processes ended without removing them. Directories
/// that cannot be removed, or whose process is unknown, remain.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        // Links are not followed.
        if !entry.metadata().is_ok_and(|metadata| metadata.is_dir() && is_of_this_user(&metadata)) {
            continue;
        }
        let owner = File::options().write(true).open(entry.path().join(OWNER));
        if owner.is_ok_and(|owner| owner.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(unix)]
fn is_of_this_user(metadata: &fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::uid(metadata) == rustix::process::geteuid().as_raw()
}

/// On this system, each user has a directory for temporary files.
#[cfg(not(unix))]
fn is_of_this_user(_: &fs::Metadata) -> bool {
    true
}

/// A new, locked index directory: when dropped, it is removed if it is empty.
#[derive(Debug)]
pub(crate) struct MadeDir(Left);

impl MadeDir {
    pub(crate) fn new(dir: Arc<PrivateDir>) -> Self {
        let name = Left::Empty(dir);
        left_to_add().push(name.clone());
        Self(name)
    }
}

impl Drop for MadeDir {
    fn drop(&mut self) {
        let mut left = left();
        self.0.remove();
        forget(&mut left, &self.0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_dropped_is_gone_and_what_is_published_stays() {
        let dir = tempfile::tempdir().unwrap();
        let create = || Temporary::create(Builder::new().prefix(".t-"), dir.path()).unwrap();
        let (mut one, other) = (create(), create());
        let names_of = [one.listed.0.clone(), other.listed.0.clone()];
        assert!(names_of.iter().all(|name| left().contains(name)));
        assert_eq!(names(dir.path()).len(), 2);
        one.write_all(b"all").unwrap();
        drop(other);
        one.publish(&dir.path().join("one")).unwrap();
        assert_eq!(names(dir.path()), ["one"]);
        assert!(!names_of.iter().any(|name| left().contains(name)));
        assert_eq!(fs::read(dir.path().join("one")).unwrap(), b"all");
    }

    #[test]
    fn an_empty_directory_gives_way_and_a_full_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let private = PrivateDir::open(dir.path()).unwrap();
        let create = || Temporary::create_in(&private, ".t-").unwrap();
        fs::create_dir(dir.path().join("one")).unwrap();
        create().publish_in(&private, "one").unwrap();
        assert!(dir.path().join("one").is_file());
        fs::create_dir_all(dir.path().join("two/full")).unwrap();
        assert!(create().publish_in(&private, "two").is_err());
        assert_eq!(names(dir.path()), ["one", "two"]);
    }

    #[test]
    fn directories_are_removed_if_nothing_is_in_them() {
        let all = tempfile::tempdir().unwrap();
        let (empty, used) = (all.path().join("empty"), all.path().join("used"));
        let made = [&empty, &used].map(|dir| {
            let (made, is_new) = PrivateDir::create(dir).unwrap();
            fs::write(dir.join(LOCK), "").unwrap();
            assert!(is_new);
            MadeDir::new(made.into())
        });
        fs::write(used.join("summary"), "").unwrap();
        drop(made);
        assert_eq!(
            (names(all.path()), names(&used)),
            (vec!["used".to_owned()], vec![LOCK.to_owned(), "summary".to_owned()])
        );
        let tree = TemporaryDir::create("t-").unwrap();
        let path = tree.path().to_owned();
        fs::write(path.join("file"), "").unwrap();
        drop(tree);
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_gets_its_name_in_place_of_another() {
        let all = tempfile::tempdir().unwrap();
        for text in ["one", "two"] {
            let dir = TemporaryDir::create_in(all.path(), ".t-", 0o777).unwrap();
            fs::write(dir.path().join(text), text).unwrap();
            dir.publish(&all.path().join("named")).unwrap();
            assert_eq!(
                (names(all.path()), names(&all.path().join("named"))),
                (vec!["named".into()], vec![text.into()])
            );
        }
    }

    #[test]
    fn directories_of_killed_processes_are_removed_and_those_of_living_ones_are_not() {
        let all = tempfile::tempdir().unwrap();
        let create = || TemporaryDir::create_in(all.path(), "t-", 0o700).unwrap();
        for name in ["t-killed", "t-of-nobody", "other"] {
            fs::create_dir(all.path().join(name)).unwrap();
            fs::write(all.path().join(name).join("summary"), "").unwrap();
        }
        for name in ["t-killed", "other"] {
            fs::write(all.path().join(name).join(OWNER), "").unwrap();
        }
        let living = create();
        let second = create();
        assert!(living.path().is_dir() && second.path().is_dir());
        drop((living, second));
        assert_eq!(names(all.path()), ["other", "t-of-nobody"]);
    }
}
