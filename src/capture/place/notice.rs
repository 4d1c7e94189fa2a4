//! What a user should know while a command runs.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Something that a user should know while a command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// A process has not answered yet.
    Waiting {
        /// Process ID.
        pid: u32,
        /// The command.
        command: String,
        /// Time so far, in seconds.
        seconds: u64,
        /// Whether the process is stopped.
        is_stopped: bool,
    },
    /// A command that leads to another place says nothing.
    Silent {
        /// The command.
        command: String,
        /// Time so far, in seconds.
        seconds: u64,
    },
    /// Something that was created cannot be removed.
    Left {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// Receives notices.
pub type OnNotice = Arc<dyn Fn(&Notice) + Send + Sync>;
