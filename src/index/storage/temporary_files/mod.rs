//! Temporary files: files that have a name only while they are written, and are removed when the process
//! is terminated.
//!
//! A dropped file removes itself. A signal drops nothing, so all names are registered here, and
//! [`remove_all`] removes the files. A process that is killed leaves them. Files in an index directory
//! are removed by the next process that builds the same index (`super::store::directory`), others by the
//! next that creates one with such a name in the same directory.
//!
//! Each is created, renamed and removed in a directory that stays open ([`super::open_dir`]), and only removed if it is
//! the one that was created.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::storage::open_dir::{EntryKind, FileId, OpenDir};
use crate::storage::private_dir::PrivateDir;

/// A file or directory that has to be removed when the process ends.
#[derive(Debug)]
enum CleanupEntry {
    File {
        dir: Arc<OpenDir>,
        name: OsString,
        id: FileId,
    },
    /// A directory with its contents.
    Tree {
        parent: Arc<OpenDir>,
        name: OsString,
        dir: Arc<OpenDir>,
    },
    /// An index directory that this process has created, and whose lock it holds: removed if it is empty.
    Empty(Arc<PrivateDir>),
}

/// All current entries with their numbers, in order of creation.
static ENTRIES: Mutex<Vec<(u64, CleanupEntry)>> = Mutex::new(Vec::new());

/// Number of the next entry.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Callback before an entry is added.
static WATCHER: OnceLock<fn()> = OnceLock::new();

/// Calls `begin` before anything is created that has to be removed. Only the first call of this function
/// has an effect.
pub fn watch(begin: fn()) {
    let _ = WATCHER.set(begin);
}

/// The current entries, locked.
type EntriesGuard = MutexGuard<'static, Vec<(u64, CleanupEntry)>>;

/// Returns the current entries, for adding to them.
fn lock_entries_to_add() -> EntriesGuard {
    if let Some(begin) = WATCHER.get() {
        begin();
    }
    lock_entries()
}

/// Name of the file in an index directory that is locked while the index is built.
pub(crate) const LOCK: &str = "lock";

fn lock_entries() -> EntriesGuard {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CleanupEntry {
    fn remove(&self) {
        // Entries that cannot be removed remain: there is nobody left to report it to.
        let _ = match self {
            Self::File { dir, name, id } => dir.remove_made(name, *id),
            Self::Tree { parent, name, dir } => parent.remove_made_tree(name, dir),
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
    dir.remove()
}

/// Guard during whose lifetime no temporary file is created, renamed or removed.
#[must_use]
pub struct Ending {
    _left: EntriesGuard,
}

/// Removes all temporary files, for a process that is about to end.
pub fn remove_all() -> Ending {
    let left = lock_entries();
    left.iter().rev().for_each(|(_, one)| one.remove());
    Ending { _left: left }
}

/// An entry that is registered until this is dropped.
#[derive(Debug)]
struct RegisteredEntry(u64);

impl RegisteredEntry {
    fn new(left: &mut EntriesGuard, one: CleanupEntry) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        left.push((number, one));
        Self(number)
    }

    /// Removes the entry, and its file or directory.
    fn remove(self) {
        let mut left = lock_entries();
        if let Some((_, one)) = left.iter().find(|(number, _)| *number == self.0) {
            one.remove();
        }
        self.forget(&mut left);
    }

    fn forget(self, left: &mut EntriesGuard) {
        left.retain(|(number, _)| *number != self.0);
        std::mem::forget(self);
    }
}

impl Drop for RegisteredEntry {
    fn drop(&mut self) {
        lock_entries().retain(|(number, _)| *number != self.0);
    }
}

/// A temporary file, which is removed when this is dropped, unless it has its final name.
#[derive(Debug)]
pub struct Temporary {
    file: File,
    dir: Arc<OpenDir>,
    name: OsString,
    id: FileId,
    /// `None` once it has its final name.
    listed: Option<RegisteredEntry>,
}

impl Temporary {
    /// Creates a file in `dir` with a random name that starts and ends as given. Permissions are `mode` minus the umask.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(dir: &Arc<OpenDir>, prefix: &str, suffix: &str, mode: u32) -> io::Result<Self> {
        Self::create_with(dir, || dir.create_random(prefix, suffix, mode))
    }

    /// Gives a file without a name a random one in `dir`, as [`Temporary::create`] does.
    ///
    /// # Errors
    /// If it cannot be linked.
    #[cfg(target_os = "linux")]
    pub fn link(dir: &Arc<OpenDir>, prefix: &str, suffix: &str, file: &File) -> io::Result<Self> {
        let link = |name: &OsStr| dir.link(file, name).and_then(|()| file.try_clone());
        Self::create_with(dir, || crate::storage::open_dir::random(prefix, suffix, link))
    }

    fn create_with(
        dir: &Arc<OpenDir>,
        create: impl FnOnce() -> io::Result<(OsString, File)>,
    ) -> io::Result<Self> {
        // Locked meanwhile, so that no signal finds a file that is not registered yet.
        let mut left = lock_entries_to_add();
        let (name, file) = create()?;
        let id = OpenDir::id_of(&file)?;
        let listed =
            RegisteredEntry::new(&mut left, CleanupEntry::File { dir: dir.clone(), name: name.clone(), id });
        Ok(Self { file, dir: dir.clone(), name, id, listed: Some(listed) })
    }

    /// Returns the path, which leads to the file if nobody has replaced its directory.
    pub fn path(&self) -> PathBuf {
        self.dir.path().join(&self.name)
    }

    /// Returns `true` if the file still has its name.
    pub fn is_there(&self) -> bool {
        self.dir.entry_of(&self.name).is_ok_and(|there| there.id == self.id)
    }

    /// Returns the open file.
    pub fn as_file(&self) -> &File {
        &self.file
    }

    /// Renames the file within its directory, replacing any existing file.
    ///
    /// # Errors
    /// If it cannot be renamed; it is removed.
    pub fn publish(self, name: &OsStr) -> io::Result<()> {
        self.rename_with(|dir, from| dir.rename(from, name))
    }

    /// Renames the file within its directory, unless a file of that name exists.
    ///
    /// # Errors
    /// If it cannot be renamed; it is removed.
    pub fn publish_new(self, name: &OsStr) -> io::Result<()> {
        self.rename_with(|dir, from| dir.rename_new(from, name))
    }

    /// Renames the file within its directory, replacing any existing file and an empty directory, which contains no data.
    pub(crate) fn publish_in_place(self, name: &OsStr) -> io::Result<()> {
        self.rename_with(|dir, from| match dir.rename(from, name) {
            Err(error) if dir.entry_of(name).is_ok_and(|there| there.kind == EntryKind::Directory) => {
                dir.remove_dir(name).map_err(|_| error).and_then(|()| dir.rename(from, name))
            }
            named => named,
        })
    }

    fn rename_with(mut self, rename: impl FnOnce(&OpenDir, &OsStr) -> io::Result<()>) -> io::Result<()> {
        // Locked meanwhile: a signal would remove the file before it has its name, which would be
        // reported as an error.
        let mut left = lock_entries();
        // Whoever may write to the directory may have put another file in its place.
        if !self.is_there() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the temporary file was removed or replaced",
            ));
        }
        rename(&self.dir, &self.name)?;
        if let Some(listed) = self.listed.take() {
            listed.forget(&mut left);
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(listed) = self.listed.take() {
            listed.remove();
        }
    }
}

impl Write for Temporary {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Temporary {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Removes files in `dir` of this user, with names that start and end as given, that no process has locked: those of
/// killed processes. As far as possible.
pub fn remove_abandoned_files(dir: &OpenDir, prefix: &str, suffix: &str) {
    for name in dir.names().unwrap_or_default() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(prefix) && name.ends_with(suffix));
        let entry = dir.entry_of(&name).ok().filter(|_| is_ours);
        let entry = entry.filter(|entry| entry.kind == EntryKind::File && entry.is_of_this_user());
        let Some((entry, file)) = entry.and_then(|entry| Some((entry, dir.write(&name).ok()?))) else {
            continue;
        };
        if OpenDir::id_of(&file).is_ok_and(|id| id == entry.id) && file.try_lock().is_ok() {
            let _ = dir.remove_made(&name, entry.id);
        }
    }
}

/// Name of the file in a temporary directory that is locked as long as its process lives.
const OWNER: &str = "owner";

/// A temporary directory, which is removed with its contents when this is dropped, unless it has its final name.
#[derive(Debug)]
pub struct TemporaryDir {
    parent: Arc<OpenDir>,
    name: OsString,
    dir: Arc<OpenDir>,
    path: PathBuf,
    /// `None` once it has its final name.
    listed: Option<RegisteredEntry>,
    /// The locked file, if locking is supported.
    owner: Option<File>,
}

impl TemporaryDir {
    /// Creates a directory in the system's directory for temporary files, and removes those of the same
    /// prefix whose processes were killed.
    pub(crate) fn create(prefix: &str) -> io::Result<Self> {
        Self::create_in(&std::env::temp_dir(), prefix, 0o700)
    }

    /// Creates a directory in `parent` like `Self::create`. Permissions are `mode` minus the umask.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_in(parent: &Path, prefix: &str, mode: u32) -> io::Result<Self> {
        Self::create_at(&Arc::new(OpenDir::open(parent)?), prefix, mode)
    }

    /// Creates a directory in an open directory like [`TemporaryDir::create_in`].
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create_at(parent: &Arc<OpenDir>, prefix: &str, mode: u32) -> io::Result<Self> {
        remove_abandoned(parent, prefix);
        let mut left = lock_entries_to_add();
        let (name, dir) = parent.create_random_dir(prefix, mode)?;
        let dir = Arc::new(dir);
        let entry = CleanupEntry::Tree { parent: parent.clone(), name: name.clone(), dir: dir.clone() };
        let listed = Some(RegisteredEntry::new(&mut left, entry));
        let owner = own(&dir).ok();
        Ok(Self { parent: parent.clone(), path: parent.path().join(&name), name, dir, listed, owner })
    }

    /// Renames the directory within its parent, replacing any existing one.
    ///
    /// # Errors
    /// If it cannot be renamed; it is removed.
    pub fn publish(mut self, name: &OsStr) -> io::Result<()> {
        // An existing one is moved into a temporary directory: no rename replaces a directory that is not
        // empty.
        let old = match self.parent.entry_of(name) {
            Ok(_) => {
                let prefix = format!("{}-old-", self.name.to_string_lossy());
                Some(Self::create_at(&self.parent, &prefix, 0o700)?)
            }
            Err(_) => None,
        };
        let replaced = OsStr::new("replaced");
        // Locked meanwhile: a signal would remove a directory that no longer has its name, or does not
        // have it yet.
        let mut left = lock_entries();
        if self.parent.entry_of(&self.name)?.id != self.dir.entry()?.id {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the temporary directory was replaced"));
        }
        if self.owner.is_some() {
            self.dir.remove_file(OWNER.as_ref())?;
        }
        if let Some(old) = &old {
            self.parent.rename_into(name, &old.dir, replaced)?;
        }
        let named = self.parent.rename(&self.name, name);
        if named.is_err()
            && let Some(old) = &old
        {
            let _ = old.dir.rename_into(replaced, &self.parent, name);
        }
        named?;
        if let Some(listed) = self.listed.take() {
            listed.forget(&mut left);
        }
        drop(left);
        Ok(())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory.
    pub fn dir(&self) -> &Arc<OpenDir> {
        &self.dir
    }

    /// Returns the directory as the directory of an index.
    pub(crate) fn private(&self) -> io::Result<PrivateDir> {
        PrivateDir::from_open(&self.path, self.parent.clone(), self.dir.clone())
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        if let Some(listed) = self.listed.take() {
            listed.remove();
        }
    }
}

/// Marks a directory as used by a running process.
fn own(dir: &OpenDir) -> io::Result<File> {
    // It is locked before others can find it by name.
    let new = OsStr::new(".owner");
    let file = dir.create_new(new, 0o600)?;
    file.try_lock()?;
    dir.rename(new, OWNER.as_ref())?;
    Ok(file)
}

/// Removes temporary directories of this user whose processes ended without removing them. Directories
/// that cannot be removed, or whose process is unknown, remain.
fn remove_abandoned(parent: &OpenDir, prefix: &str) {
    for name in parent.names().unwrap_or_default() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(prefix));
        let entry = parent.entry_of(&name).ok().filter(|_| is_ours);
        if !entry.is_some_and(|entry| entry.kind == EntryKind::Directory && entry.is_of_this_user()) {
            continue;
        }
        let Ok(dir) = parent.open_dir(&name) else { continue };
        let is_of_this_user = dir.entry().is_ok_and(|entry| entry.is_of_this_user());
        let owner = dir.write(OWNER.as_ref());
        if is_of_this_user && owner.is_ok_and(|owner| owner.try_lock().is_ok()) {
            let _ = parent.remove_made_tree(&name, &dir);
        }
    }
}

/// A new, locked index directory: when dropped, it is removed if it is empty.
#[derive(Debug)]
pub(crate) struct MadeDir(Option<RegisteredEntry>);

impl MadeDir {
    pub(crate) fn new(dir: Arc<PrivateDir>) -> Self {
        Self(Some(RegisteredEntry::new(&mut lock_entries_to_add(), CleanupEntry::Empty(dir))))
    }
}

impl Drop for MadeDir {
    fn drop(&mut self) {
        if let Some(listed) = self.0.take() {
            listed.remove();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
