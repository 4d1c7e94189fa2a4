//! Notices that the user sees while a command runs.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A notice for the user while a command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// A process has not replied yet.
    Waiting {
        /// Process ID.
        pid: u32,
        /// Name of the command to the process.
        command: String,
        /// Elapsed time in seconds.
        seconds: u64,
        /// `true` if the process is stopped.
        is_stopped: bool,
    },
    /// The command that connects to another machine has not written anything yet.
    Silent {
        /// Command.
        command: String,
        /// Elapsed time in seconds.
        seconds: u64,
    },
    /// A file or directory created by this program cannot be removed.
    Left {
        /// Path of the file or directory.
        path: PathBuf,
        /// Cause.
        why: String,
    },
}

/// Receiver of notices.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;
