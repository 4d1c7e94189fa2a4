//! Errors of scanning a dump.

use crate::storage::memory::NoMemory;

/// The requested heap dump is not in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("heap dump {wanted} does not exist: the file contains {there}")]
pub struct NoSuchHeapDump {
    /// Number of the requested heap dump, from 1.
    pub wanted: u32,
    /// Number of heap dumps in the file.
    pub there: usize,
}

/// Error of scanning a dump.
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
