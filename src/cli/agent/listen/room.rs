//! Room on the disk: recordings leave some of it to others.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use hprof_report::number::human_bytes;

/// Bytes that all recordings together may get until the free space is read again.
const LOOK_EVERY: u64 = 16 << 20;
/// Bytes that are left to others; of a small disk a twentieth.
const RESERVE: u64 = 256 << 20;

/// Free space of the disk of a directory, and how large the disk is.
type Free = dyn Fn(&Path) -> Option<(u64, u64)> + Send + Sync;

/// The room that the recordings in a directory share.
pub(super) struct Room {
    dir: PathBuf,
    free: Box<Free>,
    /// Bytes written since the free space was read.
    since: AtomicU64,
}

/// Free bytes of a disk that are left to others.
#[derive(Debug)]
pub(super) struct Shortage(u64);

impl fmt::Display for Shortage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let free = human_bytes(self.0);
        write!(
            formatter,
            "the disk has {free} left, which are for others; free some, or use --output-dir on another disk"
        )
    }
}

impl Room {
    /// On the disk of `dir`, whose space `free` tells.
    pub(super) fn new(
        dir: &Path,
        free: impl Fn(&Path) -> Option<(u64, u64)> + Send + Sync + 'static,
    ) -> Self {
        Self { dir: dir.to_owned(), free: Box::new(free), since: AtomicU64::new(0) }
    }

    /// Reads how much is free. Where the system does not tell, there is enough.
    ///
    /// # Errors
    /// Only the reserve is left.
    pub(super) fn look(&self) -> Result<(), Shortage> {
        match (self.free)(&self.dir) {
            Some((free, all)) if free < RESERVE.min(all / 20) => {
                // So that every other recording looks too, and ends.
                self.since.store(LOOK_EVERY, Ordering::Relaxed);
                Err(Shortage(free))
            }
            _ => {
                self.since.store(0, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Counts bytes that were written, and reads how much is free if they are many.
    ///
    /// # Errors
    /// Only the reserve is left.
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
        // Whoever writes the next byte looks, and so does everybody after him.
        assert!(room.written(1).is_err());
        assert!(room.written(1).is_err());
        assert!(room.look().is_err());
        free.store(RESERVE, Ordering::Relaxed);
        assert!(room.written(1).is_ok());
        // Of a small disk less is left to others.
        let small = Room::new(Path::new("."), |_| Some((6 << 20, 100 << 20)));
        assert!(small.look().is_ok());
    }
}
