//! Disk space budget: recordings leave a reserve free for other programs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_report::number::human_bytes;

/// Number of bytes that all recordings together may write before free space is checked again.
const LOOK_EVERY: u64 = 16 << 20;
/// Number of bytes to leave free; on a small disk, a twentieth of its size.
const RESERVE: u64 = 256 << 20;

/// Function that returns the free space of a directory's disk, and the size of the disk.
type Free = dyn Fn(&Path) -> Option<(u64, u64)> + Send + Sync;

/// Disk space budget shared by all recordings in a directory.
pub(super) struct Room {
    dir: PathBuf,
    free: Box<Free>,
    /// Number of bytes written since the last check.
    since: AtomicU64,
}

/// Error when the reserve is reached: the number of free bytes left.
#[derive(Debug)]
pub(super) struct Shortage(u64);

impl fmt::Display for Shortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = human_bytes(self.0);
        write!(
            formatter,
            "the disk has only {free} free, which `hprof-cli listen` does not use; free some space, or name a \
             directory on another disk with --output-dir"
        )
    }
}

impl Room {
    /// Creates the budget for the disk of `dir`, whose space `free` returns.
    pub(super) fn new(
        dir: &Path,
        free: impl Fn(&Path) -> Option<(u64, u64)> + Send + Sync + 'static,
    ) -> Self {
        Self { dir: dir.to_owned(), free: Box::new(free), since: AtomicU64::new(0) }
    }

    /// Checks the free space. If the system does not report it, it is assumed to be sufficient.
    ///
    /// # Errors
    ///
    /// If only the reserve is left.
    pub(super) fn look(&self) -> Result<(), Shortage> {
        match (self.free)(&self.dir) {
            Some((free, all)) if free < RESERVE.min(all / 20) => {
                // All other recordings then check too, and end.
                self.since.store(LOOK_EVERY, Ordering::Relaxed);
                Err(Shortage(free))
            }
            _ => {
                self.since.store(0, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Counts written bytes, and checks the free space after every [`LOOK_EVERY`] bytes.
    ///
    /// # Errors
    ///
    /// If only the reserve is left.
    pub(super) fn written(&self, bytes: u64) -> Result<(), Shortage> {
        let since = self.since.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if since < LOOK_EVERY { Ok(()) } else { self.look() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn small_recordings_count_together() {
        let free = Arc::new(AtomicU64::new(1 << 30));
        let shared = free.clone();
        let room = Room::new(Path::new("."), move |_| Some((shared.load(Ordering::Relaxed), 1 << 40)));
        assert!(room.written(LOOK_EVERY - 1).is_ok());
        free.store(RESERVE - 1, Ordering::Relaxed);
        // The next writer checks, and so do all after it.
        assert!(room.written(1).is_err());
        assert!(room.written(1).is_err());
        assert!(room.look().is_err());
        free.store(RESERVE, Ordering::Relaxed);
        assert!(room.written(1).is_ok());
        // The reserve of a small disk is smaller.
        let small = Room::new(Path::new("."), |_| Some((6 << 20, 100 << 20)));
        assert!(small.look().is_ok());
    }
}
