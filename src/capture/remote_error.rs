//! Errors while accessing another machine. They are separate from [`remote`](crate::remote) because all errors contain them.

use std::io;
use std::path::PathBuf;

/// Version of messages and frames. A client and a helper work together only if their versions are equal.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-2");

/// Error while accessing another machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The command that connects to the machine cannot be started.
    #[error("cannot run `{command}`")]
    Start {
        /// The command.
        command: String,
        /// Cause.
        source: io::Error,
    },
    /// The command ended before a helper replied.
    #[error("`{command}` ended before the helper started ({status})")]
    Ended {
        /// The command.
        command: String,
        /// Exit status.
        status: String,
    },
    /// The command ended while the helper was working.
    #[error("`{command}` ended before the helper finished ({status})")]
    Broken {
        /// The command.
        command: String,
        /// Exit status.
        status: String,
    },
    /// Reading from or writing to the command failed.
    #[error("the connection through `{command}` failed")]
    Lost {
        /// The command.
        command: String,
        /// Cause.
        source: io::Error,
    },
    /// The helper sent nothing for too long.
    #[error("`{command}` sent nothing for {seconds} s")]
    Silent {
        /// The command.
        command: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The command did not start a helper in time.
    #[error("`{command}` did not start a helper within {seconds} s")]
    Slow {
        /// The command.
        command: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The received data was not sent by a helper, or was modified.
    #[error("the data from `{command}` is damaged: {why}")]
    Damaged {
        /// The command.
        command: String,
        /// Description of the damage.
        why: String,
    },
    /// The command does not start a shell, or uses a terminal.
    #[error("`{command}` does not start a shell, or uses a terminal")]
    NotShell {
        /// The command.
        command: String,
    },
    /// The local machine has no helper program.
    #[error("no helper program found")]
    NoHelper,
    /// A helper program cannot be read, or is not a program.
    #[error("cannot use the helper {}", path.display())]
    Helper {
        /// Path of the helper program.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// No helper program runs on the machine.
    #[error("no helper can run there: {why}")]
    Unsuitable {
        /// Reasons why the helpers do not run.
        why: String,
    },
    /// The machine has no directory in which a helper can be created and started.
    #[error("no usable directory for the helper: {why}")]
    NoPlace {
        /// Reasons why the directories cannot be used.
        why: String,
    },
    /// The helper on the machine has another version.
    #[error("the helper started by `{command}` does not have version {}", VERSION)]
    Version {
        /// The command.
        command: String,
    },
}
