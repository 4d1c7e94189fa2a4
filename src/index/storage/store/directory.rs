//! The directories in which the index of a dump may lie, and how files get there whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use super::format::{Key, StageFile, StageWriter, Unusable};
use super::stage::Stage;
use crate::storage::temporary_files::{LOCK, MadeDir, Temporary, TemporaryDir};
use hprof_input::file::{Mapped, OpenError};

/// Data of an unpacked dump.
pub(crate) const UNPACKED_DATA: &str = "unpacked.hprof";
const TEMPORARY: &str = ".new-";

/// The directories in which a dump's index may lie.
#[derive(Debug)]
pub(crate) struct IndexDirectories {
    /// In the order in which they are tried.
    candidates: Vec<PathBuf>,
    /// One for this process alone, if there had to be one.
    temporary: OnceLock<TemporaryDir>,
}

impl IndexDirectories {
    /// The places for `dump`: in `index_dir` if that is given; else beside the dump, else in the user's cache.
    pub(crate) fn of(dump: &Path, index_dir: Option<&Path>) -> Self {
        let name = dump.file_name().unwrap_or_default();
        let with = |end: &str| {
            let mut name = name.to_os_string();
            name.push(end);
            name
        };
        // Dumps of the same name from several directories share a given or the user's directory.
        let marked =
            with(&format!("-{:016x}.index", xxh3_64(full_path(dump).as_os_str().as_encoded_bytes())));
        let candidates = match index_dir {
            Some(dir) => vec![dir.join(marked)],
            None => {
                let beside = dump.with_file_name(with(".index"));
                [Some(beside), user_cache().map(|dir| dir.join("hprof-cli").join(marked))]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        };
        Self { candidates, temporary: OnceLock::new() }
    }

    /// Reads a stage in the first place that has a good one. If none has, the second of the pair tells of those that
    /// were not good.
    pub(crate) fn read<T>(
        &self,
        key: &Key,
        read: impl Fn(&StageFile, &Path) -> Result<T, Unusable>,
    ) -> (Option<T>, Vec<String>) {
        let mut notes = Vec::new();
        let temporary = self.temporary.get().map(TemporaryDir::path);
        for dir in self.candidates.iter().map(PathBuf::as_path).chain(temporary) {
            let path = dir.join(file_name(key));
            let file = match Mapped::open(&path) {
                Ok(file) => file,
                Err(error) => {
                    if !is_missing(&error) {
                        notes.push(format!("{error}; rebuilding it"));
                    }
                    continue;
                }
            };
            match StageFile::open(file, key).and_then(|file| read(&file, dir)) {
                Ok(value) => return (Some(value), Vec::new()),
                Err(why @ Unusable::Damaged) => {
                    notes.push(format!("{}: {why}; rebuilding it", path.display()));
                }
                // It is so with all files there: to be said once.
                Err(why) => notes.push(format!("{}: {why}; rebuilding it", dir.display())),
            }
        }
        (None, notes)
    }

    /// A place that only this process knows, and that is gone with it.
    pub(crate) fn temporary(&self) -> io::Result<IndexDirectory> {
        if self.temporary.get().is_none() {
            // Another thread may have been faster: its directory is as good.
            let _ = self.temporary.set(TemporaryDir::create("hprof-cli-")?);
        }
        let dir = self.temporary.get().map(|dir| dir.path().to_owned()).ok_or(io::ErrorKind::NotFound)?;
        Ok(IndexDirectory { dir, is_first: false, is_new: false, is_kept: false })
    }

    /// The first place that can be written to, created if need be.
    pub(crate) fn writable(&self) -> io::Result<IndexDirectory> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for (rank, dir) in self.candidates.iter().enumerate() {
            let tried = create_private(dir).and_then(|is_new| {
                // Only a file made there tells: permissions lie on network mounts and for root.
                tempfile::tempfile_in(dir).map(|_| is_new)
            });
            match tried {
                Ok(is_new) => {
                    return Ok(IndexDirectory {
                        dir: dir.clone(),
                        is_first: rank == 0,
                        is_new,
                        is_kept: true,
                    });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// The places that exist.
    pub(crate) fn existing(&self) -> impl Iterator<Item = &Path> {
        self.candidates.iter().map(PathBuf::as_path).filter(|dir| dir.is_dir())
    }

    /// The place that is tried first.
    pub(crate) fn first(&self) -> &Path {
        self.candidates.first().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// The dump's full path; the dump itself may be gone already.
fn full_path(dump: &Path) -> PathBuf {
    fs::canonicalize(dump).unwrap_or_else(|_| {
        let parent = dump.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
        parent.join(dump.file_name().unwrap_or_default())
    })
}

/// The name of a stage's file. Those of a heap dump that was asked for by number carry the number.
pub(crate) fn file_name(key: &Key) -> String {
    match key.heap_dump {
        0 => key.stage.name().to_owned(),
        number => format!("{}.{number}", key.stage.name()),
    }
}

/// Whether there is simply no file of that name.
fn is_missing(error: &OpenError) -> bool {
    let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    matches!(error, OpenError::Io { error, .. } if missing.contains(&error.kind()))
}

/// Creates a directory that only its owner may read: an index tells what the dump tells. Tells whether there was none.
fn create_private(dir: &Path) -> io::Result<bool> {
    if dir.is_dir() {
        return Ok(false);
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map(|()| true)
}

/// The user's cache directory.
fn user_cache() -> Option<PathBuf> {
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

/// A directory that can be written to.
#[derive(Debug)]
pub(crate) struct IndexDirectory {
    pub(crate) dir: PathBuf,
    /// Whether it is the place that comes first: beside the dump, or the one that was given.
    pub(crate) is_first: bool,
    /// Whether it was made just now.
    is_new: bool,
    /// Whether it stays when this process ends.
    pub(crate) is_kept: bool,
}

/// Held while an index is built; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// Before the file, so that it is still locked when this is dropped.
    made: Option<MadeDir>,
    /// `None` where there are no locks (some network mounts): two processes then do the same work twice, and publish the
    /// same files.
    file: Option<File>,
}

/// Locks a directory, calling `waiting` before it waits for another process. With `create`, makes the directory again if
/// that one has removed it.
fn lock_dir(dir: &Path, create: bool, mut waiting: impl FnMut()) -> Lock {
    let path = dir.join(LOCK);
    let none = Lock { made: None, file: None };
    let mut made = None;
    loop {
        if create {
            match create_private(dir) {
                Ok(is_new) => made = is_new.then_some(dir),
                Err(_) => return none,
            }
        }
        // To open a pipe would wait for its other end.
        if fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
            return none;
        }
        let Ok(file) = File::options().create(true).truncate(false).write(true).open(&path) else {
            return none;
        };
        let locked = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock().is_ok()
            }
            Err(TryLockError::Error(_)) => false,
        };
        if !locked {
            return none;
        }
        // Whoever removed the index while this process waited has removed the locked file too.
        if is_at(&file, &path) {
            return Lock { made: made.map(MadeDir::new), file: Some(file) };
        }
    }
}

/// Whether the open file is still the one with that name.
fn is_at(file: &File, path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        file.metadata().map(id).ok() == fs::metadata(path).map(id).ok()
    }
    #[cfg(not(unix))]
    {
        // An open file cannot be removed there.
        let _ = (file, path);
        true
    }
}

impl IndexDirectory {
    /// Why a stage's file, which is there, cannot be mapped, if so.
    pub(crate) fn why_unmapped(&self, key: &Key) -> Option<io::Error> {
        match Mapped::open(&self.dir.join(file_name(key))) {
            Err(OpenError::Io { error, .. }) => Some(error),
            _ => None,
        }
    }

    /// Takes the lock, calling `waiting` before it waits for another process.
    pub(crate) fn lock(&self, waiting: impl FnMut()) -> Lock {
        let mut lock = lock_dir(&self.dir, true, waiting);
        if lock.file.is_some() {
            self.sweep();
            if self.is_new && lock.made.is_none() {
                lock.made = Some(MadeDir::new(&self.dir));
            }
        }
        lock
    }

    /// Removes what a process that died has left. To be called with the lock held.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.dir) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
                // If it cannot be removed it only takes space.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// A temporary file in this directory, to be published by [`IndexDirectory::publish`].
    pub(crate) fn temporary(&self) -> io::Result<Temporary> {
        Temporary::create(tempfile::Builder::new().prefix(TEMPORARY), &self.dir)
    }

    /// Gives a temporary file its name, replacing an older one at once.
    ///
    /// Nothing is synced to the device: a file that a power failure cuts is recognised by its length and checksums and
    /// is built again, which is cheaper than making every run wait for the disk.
    pub(crate) fn publish(&self, file: Temporary, name: &str) -> io::Result<()> {
        file.publish(&self.dir.join(name))
    }

    /// Writes and publishes a stage's file.
    pub(crate) fn write<T>(
        &self,
        key: &Key,
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

/// Removes the files of an index that this program makes, and the directory if nothing else is in it. Waits for a process
/// that builds it. Returns the number of bytes that were freed.
pub(crate) fn remove(dir: &Path) -> io::Result<u64> {
    let lock = lock_dir(dir, false, || {});
    let mut freed = 0;
    let entries = match fs::read_dir(dir) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let stage = name.split('.').next().unwrap_or_default();
        let numbered = name.strip_prefix(stage).is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('.').is_some_and(|number| number.parse::<u32>().is_ok())
        });
        let is_stage = numbered && Stage::ALL.iter().any(|known| known.name() == stage);
        if is_stage || name == UNPACKED_DATA || name.starts_with(TEMPORARY) {
            freed += entry.metadata().map_or(0, |metadata| metadata.len());
            fs::remove_file(entry.path())?;
        }
    }
    // Last, and while it is held: whoever waits for it sees that it is gone, and takes a new one.
    if let Err(error) = fs::remove_file(dir.join(LOCK))
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    drop(lock);
    match fs::remove_dir(dir) {
        Err(error) if !matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {
            Err(error)
        }
        _ => Ok(freed),
    }
}
