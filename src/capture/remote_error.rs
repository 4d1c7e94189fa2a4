//! Errors of reaching another machine, separate from [`remote`](crate::remote) because all errors contain them.

use std::io;
use std::path::PathBuf;

/// Version of the messages and frames. A program and a helper work together only if they have the same.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-2");

/// Error of reaching another machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The command cannot be started.
    #[error("cannot run `{command}`")]
    Start {
        /// The command.
        command: String,
        /// Cause.
        source: io::Error,
    },
    /// The command ended before a helper answered.
    #[error("`{command}` ended before the helper was there ({status})")]
    Ended {
        /// The command.
        command: String,
        /// Exit status.
        status: String,
    },
    /// The command ended while the helper was working.
    #[error("`{command}` ended before the helper had finished ({status})")]
    Broken {
        /// The command.
        command: String,
        /// Exit status.
        status: String,
    },
    /// The connection failed.
    #[error("the connection through `{command}` failed")]
    Lost {
        /// The command.
        command: String,
        /// Cause.
        source: io::Error,
    },
    /// The connection was silent for too long.
    #[error("`{command}` was silent for {seconds} s")]
    Silent {
        /// The command.
        command: String,
        /// Time limit.
        seconds: u64,
    },
    /// The command did not start a helper in time.
    #[error("`{command}` led to no helper within {seconds} s")]
    Slow {
        /// The command.
        command: String,
        /// Time limit.
        seconds: u64,
    },
    /// The data is not from a helper, or was modified.
    #[error("the data from `{command}` is damaged: {why}")]
    Damaged {
        /// The command.
        command: String,
        /// Cause.
        why: String,
    },
    /// The command is not a shell, or uses a terminal.
    #[error("`{command}` is not a shell, or uses a terminal")]
    NotShell {
        /// The command.
        command: String,
    },
    /// No file of a helper exists on this machine.
    #[error("no helper program found")]
    NoHelper,
    /// A helper cannot be read, or is not a program.
    #[error("cannot use the helper {}", path.display())]
    Helper {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// No helper runs on the machine.
    #[error("no helper runs there: {why}")]
    Unsuitable {
        /// Cause.
        why: String,
    },
    /// The helper finds no directory on the machine.
    #[error("no usable directory for the helper: {why}")]
    NoPlace {
        /// Cause for each directory.
        why: String,
    },
    /// The helper is of another version.
    #[error("the helper that `{command}` reaches is not of version {}", VERSION)]
    Version {
        /// The command.
        command: String,
    },
}
