//! Notices for the user while a command runs.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A notice for the user while a command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// A process has not answered yet.
    Waiting {
        /// Process ID.
        pid: u32,
        /// Command.
        command: String,
        /// Time so far, in seconds.
        seconds: u64,
        /// `true` if the process is stopped.
        is_stopped: bool,
    },
    /// The command that connects to another machine prints nothing.
    Silent {
        /// Command.
        command: String,
        /// Time so far, in seconds.
        seconds: u64,
    },
    /// A created file or directory cannot be removed.
    Left {
        /// File or directory.
        path: PathBuf,
        /// Cause.
        why: String,
    },
}

/// Receives notices.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;
