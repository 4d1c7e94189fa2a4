//! Directories in which the index of a dump may be, and atomic publication of files in them.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::format::{FileKey, StageFile, StageWriter, Unusable};
use super::lock::{self, Lock};
use super::stage::Stage;
use crate::storage::private_dir::{Exposure, PrivateDir, is_distrust};
use crate::storage::temporary_files::{LOCK, Temporary, TemporaryDir};
use hprof_input::file::{MappedFile, OpenError};

/// Data of an unpacked dump.
pub(crate) const UNPACKED_DATA: &str = "unpacked.hprof";
const TEMPORARY: &str = ".new-";

/// Possible directories of a dump's index.
#[derive(Debug)]
pub(crate) struct IndexDirectories {
    /// Paths, in the order in which they are tried.
    candidates: Vec<PathBuf>,
    /// Directory of this process alone, if one was needed.
    temporary: OnceLock<TemporaryDir>,
}

impl IndexDirectories {
    /// Returns the directories for `dump`: in `index_dir` if that is given; otherwise beside the dump,
    /// then in the user's cache.
    pub(crate) fn for_dump(dump: &Path, index_dir: Option<&Path>) -> Self {
        let name = dump.file_name().unwrap_or_default();
        let with = |end: &str| {
            let mut name = name.to_os_string();
            name.push(end);
            name
        };
        // Dumps of the same name from several directories share a given directory or the cache.
        let marked =
            with(&format!("-{:016x}.index", xxh3_64(full_path(dump).as_os_str().as_encoded_bytes())));
        let candidates = match index_dir {
            Some(dir) => vec![dir.join(marked)],
            None => {
                let beside = dump.with_file_name(with(".index"));
                [Some(beside), user_cache().map(|dir| dir.join(marked))].into_iter().flatten().collect()
            }
        };
        Self { candidates, temporary: OnceLock::new() }
    }

    /// Reads a stage from the first directory with a valid file. The notes state who else can remove it,
    /// and which earlier directories are not trusted; if no directory has a valid file, which files are
    /// invalid.
    pub(crate) fn read<T>(
        &self,
        key: &FileKey,
        read: impl Fn(&StageFile, &PrivateDir) -> Result<T, Unusable>,
    ) -> (Option<T>, Vec<String>) {
        let (mut notes, mut distrusted) = (Vec::new(), Vec::new());
        let opened = self.candidates.iter().map(|path| (path.as_path(), PrivateDir::open(path)));
        let own = self.temporary.get().map(|dir| (dir.path(), dir.private()));
        let temporary = self.temporary.get().map(TemporaryDir::path);
        for (path, dir) in opened.chain(own) {
            let dir = match dir {
                Ok(dir) => dir,
                Err(error) => {
                    if is_distrust(&error) {
                        distrusted.push(not_used(path, &error));
                    }
                    continue;
                }
            };
            let file = match dir.map(&file_name(key)) {
                Ok(file) => file,
                Err(error) => {
                    match &error {
                        OpenError::Io { path, error, .. } if is_distrust(error) => {
                            distrusted.push(not_used(path, error));
                        }
                        _ => {}
                    }
                    if !is_missing(&error) {
                        notes.push(format!("{error}; rebuilding it"));
                    }
                    continue;
                }
            };
            let path = file.path().to_owned();
            match StageFile::open(file, key).and_then(|file| read(&file, &dir)) {
                // Stages in this process's own directory are reported where that is created.
                Ok(value) if Some(dir.path()) == temporary => return (Some(value), Vec::new()),
                Ok(value) => {
                    let instead = |why: String| format!("{why}; the index is in {}", dir.path().display());
                    let exposure = dir.exposure().map(|exposure| exposure.to_string());
                    return (Some(value), distrusted.into_iter().map(instead).chain(exposure).collect());
                }
                Err(why @ Unusable::Damaged) => {
                    notes.push(format!("{}: {why}; rebuilding it", path.display()));
                }
                // Applies to all files there: reported once.
                Err(why) => notes.push(format!("{}: {why}; rebuilding it", dir.path().display())),
            }
        }
        (None, notes)
    }

    /// Returns a directory of this process, which is removed with it.
    pub(crate) fn temporary(&self) -> io::Result<IndexDirectory> {
        if self.temporary.get().is_none() {
            // Another thread may have been faster: its directory is as good.
            let _ = self.temporary.set(TemporaryDir::create("hprof-cli-")?);
        }
        let dir = Arc::new(self.temporary.get().ok_or(io::ErrorKind::NotFound)?.private()?);
        Ok(IndexDirectory { dir, passed_over: None, is_new: false, is_kept: false })
    }

    /// Returns the first directory that can be written to, created if necessary. If there is none, returns the error of the
    /// first directory.
    pub(crate) fn writable(&self) -> io::Result<IndexDirectory> {
        let mut passed_over = None;
        for path in &self.candidates {
            let tried = PrivateDir::create(path).and_then(|made| {
                // Only creating a file is conclusive: permissions mean little on network mounts and for
                // root.
                made.0.dir().create_unnamed().map(|_| made)
            });
            match tried {
                Ok((dir, is_new)) => {
                    return Ok(IndexDirectory { dir: Arc::new(dir), passed_over, is_new, is_kept: true });
                }
                Err(error) => passed_over = Some(combine_errors(passed_over, path, error)),
            }
        }
        Err(passed_over.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    /// Locks the first directory that exists and is trusted; `None` if another process holds the lock.
    pub(crate) fn idle(&self) -> Option<(IndexDirectory, Lock)> {
        let dir = self.existing().next()?;
        let lock = lock::try_take(&dir)?;
        let directory =
            IndexDirectory { dir: Arc::new(dir), passed_over: None, is_new: false, is_kept: true };
        Some((directory, lock))
    }

    /// Removes the files of a process that was killed while it wrote a query result: such an index is complete, so no process
    /// would
    /// build it and remove them. Nothing is removed while another process works on it.
    pub(crate) fn sweep_idle(&self) {
        let has_left =
            |dir: PrivateDir| dir.names().is_ok_and(|names| names.iter().any(|name| is_temporary(name)));
        if self.existing().next().is_some_and(has_left)
            && let Some((directory, _lock)) = self.idle()
        {
            directory.sweep();
        }
    }

    /// Returns the directories that exist and are trusted.
    pub(crate) fn existing(&self) -> impl Iterator<Item = PrivateDir> {
        self.candidates.iter().filter_map(|path| PrivateDir::open(path).ok())
    }

    /// Returns the directories that are not used because others could have changed their contents, with
    /// the reason.
    pub(crate) fn untrusted_dirs(&self) -> impl Iterator<Item = (&Path, io::Error)> {
        let refused = |path: &PathBuf| PrivateDir::open(path).err().filter(is_distrust);
        self.candidates.iter().filter_map(move |path| Some((path.as_path(), refused(path)?)))
    }

    /// Returns the directory that is tried first.
    pub(crate) fn first(&self) -> &Path {
        self.candidates.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Returns the first directory that is not refused.
    pub(crate) fn first_usable(&self) -> &Path {
        let is_refused = |path: &Path| self.untrusted_dirs().any(|(refused, _)| refused == path);
        let usable = self.candidates.iter().find(|path| !is_refused(path));
        usable.map_or_else(|| self.first(), PathBuf::as_path)
    }
}

/// Returns the reason why the first directory cannot be used, with the reason why `path`, a later one, is
/// refused.
fn combine_errors(first: Option<io::Error>, path: &Path, error: io::Error) -> io::Error {
    match first {
        None => error,
        Some(first) if is_distrust(&error) => {
            io::Error::new(first.kind(), format!("{first}; {} is not used: {error}", path.display()))
        }
        Some(first) => first,
    }
}

/// Returns the message that a directory or file is not used.
pub(crate) fn not_used(path: &Path, why: &io::Error) -> String {
    format!("{} is not used: {why}", path.display())
}

/// Returns the dump's full path; the dump itself may no longer exist.
fn full_path(dump: &Path) -> PathBuf {
    fs::canonicalize(dump).unwrap_or_else(|_| {
        let parent = dump.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        parent.join(dump.file_name().unwrap_or_default())
    })
}

/// Returns the name of a stage's file, which contains the number of the heap dump if one was requested.
pub(crate) fn file_name(key: &FileKey) -> String {
    match key.heap_dump {
        0 => key.stage.name().to_owned(),
        number => format!("{}.{number}", key.stage.name()),
    }
}

/// Returns `true` for the name of a file that is not published yet.
fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY)
}

/// Returns `true` if the only problem is that no file of that name exists.
fn is_missing(error: &OpenError) -> bool {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    matches!(error, OpenError::Io { error, .. } if missing.contains(&error.kind()))
}

/// Returns the directory of this program in the user's cache.
pub fn user_cache() -> Option<PathBuf> {
    cache().map(|dir| dir.join("hprof-cli"))
}

/// Returns the user's cache directory.
fn cache() -> Option<PathBuf> {
    let dir = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    if cfg!(windows) {
        return dir("LOCALAPPDATA");
    }
    let home = || dir("HOME");
    if cfg!(target_os = "macos") {
        return home().map(|home| home.join("Library").join("Caches"));
    }
    dir("XDG_CACHE_HOME").or_else(|| home().map(|home| home.join(".cache")))
}

/// A directory of an index that can be written to.
#[derive(Debug)]
pub(crate) struct IndexDirectory {
    dir: Arc<PrivateDir>,
    /// Reason why it is not the first directory, beside the dump or as given; `None` if it is.
    pub(crate) passed_over: Option<io::Error>,
    /// `true` if it was created now.
    is_new: bool,
    /// `true` if it remains when this process ends.
    pub(crate) is_kept: bool,
}

impl IndexDirectory {
    /// Returns the path of the directory.
    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the users who can remove it with its contents.
    pub(crate) fn exposure(&self) -> Option<Exposure> {
        self.dir.exposure().filter(|_| self.is_kept)
    }

    /// Maps a file for reading.
    pub(crate) fn map(&self, name: &str) -> Result<MappedFile, OpenError> {
        self.dir.map(name)
    }

    /// Removes a file.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        self.dir.remove_file(name)
    }

    /// Takes the lock, calling `waiting` before it waits for another process. Fails if that process makes
    /// no progress.
    pub(crate) fn lock(&mut self, waiting: impl FnMut()) -> io::Result<Lock> {
        let (dir, lock) = lock::take_at(self.path(), self.is_new, waiting)?;
        self.dir = dir;
        if lock.is_held() {
            self.sweep();
        }
        Ok(lock)
    }

    /// Removes files left by a process that was killed. The lock must be held.
    fn sweep(&self) {
        for name in self.dir.names().unwrap_or_default() {
            if is_temporary(&name) {
                // A file that cannot be removed only takes space.
                let _ = self.dir.remove_file(&name);
            }
        }
    }

    /// Creates a temporary file in this directory, to be published by [`IndexDirectory::publish`].
    pub(crate) fn temporary(&self) -> io::Result<Temporary> {
        Temporary::create(self.dir.dir(), TEMPORARY, "", 0o600)
    }

    /// Renames a temporary file, atomically replacing an older one.
    ///
    /// Nothing is synced to the device: a file truncated by a power failure is detected by its length and
    /// checksums and built again, which is cheaper than making every run wait for the disk.
    pub(crate) fn publish(&self, file: Temporary, name: &str) -> io::Result<()> {
        file.publish_in_place(name.as_ref())
    }

    /// Writes and publishes a stage's file.
    pub(crate) fn write<T>(
        &self,
        key: &FileKey,
        sections: u32,
        fill: impl FnOnce(&mut StageWriter<BufWriter<&mut Temporary>>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut file = self.temporary()?;
        let mut writer = StageWriter::new(BufWriter::with_capacity(1 << 18, &mut file), sections)?;
        let filled = fill(&mut writer)?;
        drop(writer.finish(key)?);
        self.publish(file, &file_name(key))?;
        Ok(filled)
    }
}

/// Removes the files of an index that this program creates, and the directory if it contains nothing
/// else. Waits for a process that builds the index. Returns the number of bytes freed.
pub(crate) fn remove(dir: &PrivateDir) -> io::Result<u64> {
    // Another process was faster.
    let Some(lock) = lock::take(dir, || {})? else { return Ok(0) };
    let mut freed = 0;
    for name in dir.names()? {
        let stage = name.split('.').next().unwrap_or_default();
        let numbered = name.strip_prefix(stage).is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('.').is_some_and(|number| number.parse::<u32>().is_ok())
        });
        let is_stage = numbered && Stage::ALL.iter().any(|known| known.name() == stage);
        if is_stage || name == UNPACKED_DATA || is_temporary(&name) {
            freed += dir.len_of(&name).unwrap_or(0);
            dir.remove_file(&name)?;
        }
    }
    // Last, and while it is locked: a process that waits for it sees that it is gone, and creates a new
    // one.
    if let Err(error) = dir.remove_file(LOCK)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    drop(lock);
    match dir.remove() {
        Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
            Err(error)
        }
        _ => Ok(freed),
    }
}
