//! A profile from the records of a binary dump.

use super::Profile;
use crate::index::Progress;
use crate::index::{Error, Heap};

/// What is wanted beside what costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Want {
    /// Allocation sites, which may have to be counted over all objects.
    pub sites: bool,
    /// Stack traces.
    pub traces: bool,
}

/// Reads what was recorded.
///
/// # Errors
/// [`Error::Unpack`].
pub fn read(heap: &Heap, want: Want, progress: &dyn Progress) -> Result<Profile, Error> {
    let _ = want;
    heap.bytes(progress)?;
    Ok(Profile::default())
}
