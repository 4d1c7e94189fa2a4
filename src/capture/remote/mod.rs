//! Another place, reached by a command that runs a program there with stdin and stdout, such as `kubectl exec -i POD --`: a
//! helper is brought there, which does in that place what this crate does in another one.
//!
//! | question | where |
//! |---|---|
//! | How does the helper get there? | [`shell`]: through `sh` and `cat` |
//! | Which helper fits? | [`helper`] |
//! | How is it asked? | [`client`], by the messages of [`message`] in the frames of [`wire`] |
//! | What does it do? | [`server`] |
//!
//! Neither side trusts the other: lengths are bounded, every frame has a checksum, and bytes of a dump are counted.

mod client;
mod command;
mod facts;
mod helper;
mod message;
mod server;
mod shell;
mod wire;

use std::io;
use std::path::PathBuf;

pub use client::RemoteMachine;
pub use command::Note;
pub use server::serve;
pub use shell::{connect, connect_to};

/// First argument of a helper that serves; a word that it repeats follows, and, if it was brought, its file, which it
/// removes, and the loader with which it was started, if any.
pub const SERVE: &str = "serve";

/// First argument of a helper that only removes its own file, which follows.
pub const REMOVE: &str = "remove";

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
    #[error("the helper that `{command}` reaches is not of version {}", message::VERSION)]
    Version {
        /// The command.
        command: String,
    },
}

/// Returns the line by which a helper says that it is there.
fn hello(token: &str) -> String {
    format!("{token}-hello {}", message::VERSION)
}
