//! Another machine, reached by a command that runs a program there with stdin and stdout, such as `kubectl exec -i POD --`: a
//! helper is sent to it, which does there what this crate does here.
//!
//! | question | where |
//! |---|---|
//! | How does the helper get there? | `shell`: through `sh` and `cat` |
//! | Which helper fits? | `helper` |
//! | How is it sent requests? | `client`, by the messages of `message` in the frames of `wire` |
//! | What does it do? | `server` |
//!
//! Neither side trusts the other: lengths are bounded, every frame has a checksum, and bytes of a dump are counted.

mod client;
mod command;
mod facts;
mod helper;
mod message;
mod patient;
mod server;
mod shell;
mod wire;

use crate::remote_error::VERSION;

pub use client::RemoteMachine;
pub use command::{Contact, Note};
pub use patient::PatientWriter;
pub use server::serve;
pub use shell::{connect, connect_to};

/// First argument of a helper that serves; a token that it repeats follows, and the loader with which it was started, if any.
pub const SERVE: &str = "serve";

/// First argument of a helper that only removes its own file, which follows.
pub const REMOVE: &str = "remove";

/// Only argument of a helper that does nothing: it shows that it can be started.
pub const CHECK: &str = "check";

/// Path by which a helper that was sent finds its own file, which has no name any more: the shell held it open.
pub const OWN_FILE: &str = "/proc/self/fd/7";

/// Returns the line by which a helper announces itself.
fn hello(token: &str) -> String {
    format!("{token}-hello {VERSION}")
}
