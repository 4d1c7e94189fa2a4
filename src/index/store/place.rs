//! Where the index of a dump lies, and how files get there whole.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64;

use super::Stage;
use super::format::{Key, StageFile, StageWriter, Unusable};
use crate::hprof::input::Mapped;

/// Data of an unpacked dump.
pub(crate) const UNPACKED_DATA: &str = "unpacked.hprof";
const LOCK: &str = "lock";
const TEMPORARY: &str = ".new-";

/// The directories in which a dump's index may lie.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// In the order in which they are tried.
    candidates: Vec<PathBuf>,
}

impl Places {
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
        Self { candidates }
    }

    /// Reads a stage in the first place that has a good one. If none has, the second of the pair tells of those that
    /// were not good.
    pub(crate) fn read<T>(
        &self,
        key: &Key,
        read: impl Fn(&StageFile, &Path) -> Result<T, Unusable>,
    ) -> (Option<T>, Vec<String>) {
        let mut notes = Vec::new();
        for dir in &self.candidates {
            let path = dir.join(file_name(key));
            let Ok(file) = Mapped::open(&path) else { continue };
            match StageFile::open(file, key).and_then(|file| read(&file, dir)) {
                Ok(value) => return (Some(value), Vec::new()),
                Err(why) => notes.push(format!("{}: {why}; building it again", path.display())),
            }
        }
        (None, notes)
    }

    /// The first place that can be written to, created if need be.
    pub(crate) fn writable(&self) -> io::Result<Place> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for (rank, dir) in self.candidates.iter().enumerate() {
            let tried = create_private(dir).and_then(|()| {
                // Only a file made there tells: permissions lie on network mounts and for root.
                tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir).map(drop)
            });
            match tried {
                Ok(()) => {
                    return Ok(Place { dir: dir.clone(), is_first: rank == 0 });
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

/// Creates a directory that only its owner may read: an index tells what the dump tells.
fn create_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
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
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    /// Whether it is the place that comes first: beside the dump, or the one that was given.
    pub(crate) is_first: bool,
}

/// Held while an index is built; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` where there are no locks (some network mounts): two processes then do the same work twice, and publish the
    /// same files.
    file: Option<File>,
}

/// Locks a directory, calling `waiting` before it waits for another process. With `create`, makes the directory again if
/// that one has removed it.
fn lock_dir(dir: &Path, create: bool, mut waiting: impl FnMut()) -> Lock {
    let path = dir.join(LOCK);
    loop {
        if create && create_private(dir).is_err() {
            return Lock { file: None };
        }
        let Ok(file) = File::options().create(true).truncate(false).write(true).open(&path) else {
            return Lock { file: None };
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
            return Lock { file: None };
        }
        // Whoever removed the index while this process waited has removed the locked file too.
        if is_at(&file, &path) {
            return Lock { file: Some(file) };
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

impl Place {
    /// Takes the lock, calling `waiting` before it waits for another process.
    pub(crate) fn lock(&self, waiting: impl FnMut()) -> Lock {
        let lock = lock_dir(&self.dir, true, waiting);
        if lock.file.is_some() {
            self.sweep();
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

    /// A temporary file in this directory, to be published by [`Place::publish`].
    pub(crate) fn temporary(&self) -> io::Result<NamedTempFile> {
        tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&self.dir)
    }

    /// Gives a temporary file its name, replacing an older one at once.
    ///
    /// Nothing is synced to the device: a file that a power failure cuts is recognised by its length and checksums and
    /// is built again, which is cheaper than making every run wait for the disk.
    pub(crate) fn publish(&self, file: NamedTempFile, name: &str) -> io::Result<()> {
        file.persist(self.dir.join(name)).map(drop).map_err(|error| error.error)
    }

    /// Writes and publishes a stage's file.
    pub(crate) fn write<T>(
        &self,
        key: &Key,
        sections: u32,
        fill: impl FnOnce(&mut StageWriter<BufWriter<&mut NamedTempFile>>) -> io::Result<T>,
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
