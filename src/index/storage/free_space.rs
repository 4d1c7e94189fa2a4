//! Free space of disks.

use std::path::Path;

/// Returns the free bytes and the size of the disk that contains a directory, if the system provides
/// them.
#[cfg(unix)]
pub fn free_bytes(dir: &Path) -> Option<(u64, u64)> {
    // Some file systems report no sizes.
    let disk = rustix::fs::statvfs(dir).ok().filter(|disk| disk.f_blocks > 0)?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

/// Returns the free bytes and the size of the disk that contains a directory, if the system provides
/// them.
#[cfg(not(unix))]
pub fn free_bytes(_: &Path) -> Option<(u64, u64)> {
    None
}
