//! The lock of an index directory: one process builds, others wait for it, but not forever.
//!
//! The process that holds the lock touches its file once a second. A process that is stopped, or that
//! holds the lock to obstruct others, does not; others then continue without the directory.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use crate::storage::private_dir::PrivateDir;
use crate::storage::temporary_files::{LOCK, MadeDir};

/// Interval between touches of the file.
const BEAT: Duration = Duration::from_secs(1);
/// Time that a process waits for the next touch.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum pause between two attempts to take the lock.
const MAX_PAUSE: Duration = Duration::from_millis(50);
/// Maximum number of times that a directory is created while others remove it.
const MAX_CREATIONS: usize = 100;
/// Stack size of the thread that touches the file, in bytes.
const STACK_BYTES: usize = 1 << 16;

/// Lock that is held while an index is built, and released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    // Dropped in this order: while it is locked, the directory is removed if it is empty, and the file is
    // touched.
    made: Option<MadeDir>,
    _touches: Option<Touches>,
    /// `None` where locks are not supported (some network mounts): two processes then do the same work,
    /// and publish the same files.
    file: Option<Arc<File>>,
}

impl Lock {
    fn without_file() -> Self {
        Self { made: None, _touches: None, file: None }
    }

    /// Returns `true` if the file is locked; `false` where locks are not supported.
    pub(crate) fn is_held(&self) -> bool {
        self.file.is_some()
    }
}

/// A thread that regularly touches the locked file.
#[derive(Debug)]
struct Touches {
    /// Channel that ends the thread when it is dropped.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Touches {
    /// Touches a file from now on. Without a thread, others only wait for too short a time.
    fn start(file: &Arc<File>) -> Option<Self> {
        touch(file);
        let (end, ended) = channel();
        let file = file.clone();
        let touches = move || {
            while ended.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                touch(&file);
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(touches).ok()?;
        Some(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Touches {
    fn drop(&mut self) {
        drop(self.end.take());
        // It has the file too, which stays locked as long as it is open anywhere.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn touch(file: &File) {
    // If this fails, others only give up too early.
    let _ = file.set_modified(SystemTime::now());
}

/// Takes the lock of an open directory, calling `waiting` before it waits for another process. `None` if
/// the directory was removed.
pub(crate) fn take(dir: &PrivateDir, mut waiting: impl FnMut()) -> io::Result<Option<Lock>> {
    loop {
        let file = match dir.open_lock(LOCK) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Ok(Some(Lock::without_file())),
            Ok(file) => file,
        };
        if !wait(&file, &mut waiting)? {
            return Ok(Some(Lock::without_file()));
        }
        // The process that removed the index while this one waited has removed the locked file too.
        if dir.is_at(&file, LOCK) {
            let file = Arc::new(file);
            return Ok(Some(Lock { made: None, _touches: Touches::start(&file), file: Some(file) }));
        }
    }
}

/// Takes the lock of an open directory if no other process holds it, and there are locks.
pub(crate) fn try_take(dir: &PrivateDir) -> Option<Lock> {
    let file = dir.open_lock(LOCK).ok()?;
    let is_taken = file.try_lock().is_ok() && dir.is_at(&file, LOCK);
    is_taken.then(|| Lock { made: None, _touches: None, file: Some(Arc::new(file)) })
}

/// Opens and locks a directory, and creates it if it was removed. One that was created here, or before if
/// `is_new`, is removed again if it stays empty.
pub(crate) fn take_at(
    path: &Path,
    mut is_new: bool,
    mut waiting: impl FnMut(),
) -> io::Result<(Arc<PrivateDir>, Lock)> {
    for _ in 0..MAX_CREATIONS {
        let (dir, is_created) = PrivateDir::create(path)?;
        is_new |= is_created;
        if let Some(mut lock) = take(&dir, &mut waiting)? {
            let dir = Arc::new(dir);
            lock.made = (is_new && lock.is_held()).then(|| MadeDir::new(dir.clone()));
            return Ok((dir, lock));
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Locks a file. Returns `false` where locks are not supported.
fn wait(file: &File, waiting: &mut impl FnMut()) -> io::Result<bool> {
    let mut touched = None;
    let mut waited = Duration::ZERO;
    let mut pause = Duration::from_millis(1);
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(_)) => return Ok(false),
            Err(TryLockError::WouldBlock) => {}
        }
        let now = file.metadata().and_then(|metadata| metadata.modified()).ok();
        if touched.is_none() {
            waiting();
        }
        if touched != Some(now) {
            (touched, waited) = (Some(now), Duration::ZERO);
        }
        if waited >= PATIENCE {
            let text = format!(
                "another process holds its lock and has made no progress for {} seconds",
                PATIENCE.as_secs()
            );
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        std::thread::sleep(pause);
        // Time for which this process was stopped does not count as waiting.
        waited += pause;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_lock_is_touched_while_it_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let (open, lock) = take_at(&path, false, || {}).unwrap();
        let modified = || fs::metadata(path.join(LOCK)).unwrap().modified().unwrap();
        let before = modified();
        for _ in 0..600 {
            if modified() != before {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(lock.is_held() && modified() != before);
        drop((lock, open));
        assert!(!path.exists(), "nothing came into it");
    }

    #[test]
    fn a_directory_that_was_removed_has_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let (open, _) = PrivateDir::create(&path).unwrap();
        assert!(take(&open, || {}).unwrap().is_some_and(|lock| lock.is_held()));
        fs::remove_dir_all(&path).unwrap();
        // Where an open directory cannot be removed, it still exists.
        assert!(take(&open, || {}).unwrap().is_none() || cfg!(not(unix)));
    }
}
