//! How much room a disk has.

use std::path::Path;

/// Free bytes on the disk of a directory, and how large it is, if the system tells.
#[cfg(unix)]
pub fn free_bytes(dir: &Path) -> Option<(u64, u64)> {
    // Some systems of files tell no sizes.
    let disk = rustix::fs::statvfs(dir).ok().filter(|disk| disk.f_blocks > 0)?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

/// Free bytes on the disk of a directory, and how large it is, if the system tells.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<(u64, u64)> {
    None
}
