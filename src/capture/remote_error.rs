//! Errors of reaching another place, apart from [`remote`](crate::remote): all errors contain them.

use std::io;
use std::path::PathBuf;

/// Version of the messages and frames. A program and a helper work together only if they have the same.
pub(crate) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// Error of reaching another place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The command cannot be started.
    #[error("cannot run `{command}`")]
    Start {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The command ended too early.
    #[error("`{command}` ended {when} ({status})")]
    Ended {
        /// The command.
        command: String,
        /// Until when it should have worked.
        when: &'static str,
        /// Its exit status.
        status: String,
    },
    /// The connection failed.
    #[error("the connection through `{command}` failed")]
    Lost {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// What arrived is not what a helper sends.
    #[error("what came through `{command}` is damaged: {why}")]
    Damaged {
        /// The command.
        command: String,
        /// Why.
        why: String,
    },
    /// What answers is no shell, or sits on a terminal.
    #[error("`{command}` does not answer like a shell")]
    NotShell {
        /// The command.
        command: String,
    },
    /// There is no helper here.
    #[error("there is no helper program beside this one")]
    NoHelper,
    /// A helper cannot be read, or is no program.
    #[error("cannot use the helper {}", path.display())]
    Helper {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No helper runs there.
    #[error("the helper does not run there: {why}")]
    Unsuitable {
        /// Why.
        why: String,
    },
    /// The helper finds no directory there.
    #[error("no directory there can take the helper: {why}")]
    NoPlace {
        /// What is wrong with each.
        why: String,
    },
    /// The helper is that of another version.
    #[error("the helper that `{command}` reaches is not of version {}", VERSION)]
    Version {
        /// The command.
        command: String,
    },
}
