//! Why a dump cannot be scanned.

use crate::storage::memory::NoMemory;

/// The heap dump asked for is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no heap dump {wanted} in the file: it contains {there}")]
pub struct NoSuchHeapDump {
    /// The one asked for, from 1.
    pub wanted: u32,
    /// How many there are.
    pub there: usize,
}

/// Why a dump cannot be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanError {
    NoSuchHeapDump(NoSuchHeapDump),
    NoMemory(NoMemory),
}

impl From<NoSuchHeapDump> for ScanError {
    fn from(error: NoSuchHeapDump) -> Self {
        Self::NoSuchHeapDump(error)
    }
}

impl From<NoMemory> for ScanError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error)
    }
}
