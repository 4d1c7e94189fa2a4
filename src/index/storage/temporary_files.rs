//! Temporary files: what has a name only while it is written, and is removed when a process is told to end.
//!
//! A file that is dropped is removed by itself. A signal drops nothing: so all names are listed here, and
//! [`remove_all`] removes what they name. Who is killed at once leaves them. Files in an index directory are removed by
//! the next process that builds the same index (`super::store::directory`), temporary directories by the next that makes
//! one.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tempfile::{Builder, NamedTempFile, TempDir};

use super::private_dir::PrivateDir;

/// What is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    File(PathBuf),
    /// With all that is in it.
    Tree(PathBuf),
    /// An index directory that this process has made, whose lock it holds: if nothing else is in it.
    Empty(Arc<PrivateDir>),
}

/// All that is there now, in the order in which it came.
static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// What is called before one is made.
static WATCHER: OnceLock<fn()> = OnceLock::new();

/// Calls `begin` whenever something is going to be made that has to be removed. Only the first call of this counts.
pub fn watch(begin: fn()) {
    let _ = WATCHER.set(begin);
}

/// What is there now, to be added to.
fn left_to_add() -> MutexGuard<'static, Vec<Left>> {
    if let Some(begin) = WATCHER.get() {
        begin();
    }
    left()
}

/// The name of the file in an index directory that is locked while the index is built.
pub(crate) const LOCK: &str = "lock";

fn left() -> MutexGuard<'static, Vec<Left>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(left: &mut Vec<Left>, gone: &Left) {
    left.retain(|one| one != gone);
}

impl Left {
    fn remove(&self) {
        // What cannot be removed stays: there is nobody left to tell.
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
    // While it is held: whoever waits for it sees that it is gone, and makes another.
    dir.remove_file(LOCK)?;
    fs::remove_dir(dir.path())
}

/// While this lives no temporary file is made, named or removed.
#[must_use]
pub struct Ending {
    _left: MutexGuard<'static, Vec<Left>>,
}

/// Removes all temporary files, for a process that ends now.
pub fn remove_all() -> Ending {
    let left = left();
    left.iter().rev().for_each(Left::remove);
    Ending { _left: left }
}

/// Something that is listed until this is dropped.
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
    // Dropped in this order: what is removed need not be listed any more.
    file: NamedTempFile,
    listed: Listed,
}

impl Temporary {
    /// Creates a file in `dir`, with the names and permissions of `builder`.
    pub fn create(builder: &Builder<'_, '_>, dir: &Path) -> io::Result<Self> {
        Self::created(|| builder.tempfile_in(dir))
    }

    /// Creates a file in an index directory, whose name begins with `prefix`.
    pub(crate) fn create_in(dir: &PrivateDir, prefix: &str) -> io::Result<Self> {
        Self::created(|| dir.temporary(prefix))
    }

    fn created(create: impl FnOnce() -> io::Result<NamedTempFile>) -> io::Result<Self> {
        // Held meanwhile: no signal finds a file that is not listed yet.
        let mut left = left_to_add();
        // The name, which the error holds, would say nothing to a user: nor would that of an error below.
        let file = create().map_err(|error| io::Error::from(error.kind()))?;
        let name = Left::File(file.path().to_owned());
        left.push(name.clone());
        Ok(Self { file, listed: Listed(name) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file itself.
    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Gives the file its name, in the same directory, in place of what has it.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        self.named(|file| Ok(file.persist(path).map(drop)?))
    }

    /// As [`Temporary::publish`], of a file in an index directory.
    pub(crate) fn publish_in(self, dir: &PrivateDir, name: &str) -> io::Result<()> {
        self.named(|file| dir.publish(file, name))
    }

    fn named(self, name: impl FnOnce(NamedTempFile) -> io::Result<()>) -> io::Result<()> {
        let Self { file, listed } = self;
        // Held meanwhile: a signal would remove the file before it has its name, and that would be told as an error.
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

/// The name of the file in a temporary directory that is locked as long as its process lives.
const OWNER: &str = "owner";

/// A temporary directory, with all that is put into it.
#[derive(Debug)]
pub struct TemporaryDir {
    // Dropped in this order, as those of a file. Once it has its name nothing is there to be removed.
    dir: TempDir,
    listed: Listed,
    /// Locked, if that could be done.
    owner: Option<File>,
}

impl TemporaryDir {
    /// Creates a directory in that of the system for such things, and removes those there, of the same prefix, whose
    /// processes were killed.
    pub(crate) fn create(prefix: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), prefix, 0o700)
    }

    /// The same in `parent`. All that `mode` and the process's mask permit may be done with it.
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

    /// Gives the directory its name, in the same directory, in place of what has it.
    pub fn publish(self, path: &Path) -> io::Result<()> {
        let Self { dir, listed, owner } = self;
        // What is there moves into a temporary directory: no rename replaces a directory that is not empty.
        let old = match (fs::symlink_metadata(path), path.parent(), dir.path().file_name()) {
            (Ok(_), Some(parent), Some(name)) => {
                Some(Self::create_in(parent, &format!("{}-old-", name.to_string_lossy()), 0o700)?)
            }
            _ => None,
        };
        // Held meanwhile: a signal would remove what has no name any more, or not yet.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Marks a directory as that of a process that lives.
fn own(dir: &Path) -> io::Result<File> {
    // It is locked before others know of it by its name.
    let new = dir.join(".owner");
    let file = File::create_new(&new)?;
    file.try_lock()?;
    fs::rename(new, dir.join(OWNER))?;
    Ok(file)
}

/// Removes temporary directories of this user whose processes have gone without removing them. What cannot be removed, or
/// does not say whose it is, stays.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        // Not of links.
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

/// Each user has a directory for such things there.
#[cfg(not(unix))]
fn is_of_this_user(_: &fs::Metadata) -> bool {
    true
}

/// An index directory that was made just now and is locked: dropped, it is removed if nothing came into it.
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
