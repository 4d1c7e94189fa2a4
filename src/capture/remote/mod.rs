//! Access to another machine through a command that runs a program there with stdin and stdout, such as
//! `kubectl exec -i POD --`. A helper is sent to the machine, and works there in the same way as this crate does locally.
//!
//! | question | where |
//! |---|---|
//! | How is the helper transferred? | `shell`: through `sh` and `cat` |
//! | Which helper fits? | `helper` |
//! | How are requests sent to it? | `client`, by the messages of `message` in the frames of `wire` |
//! | What does it do? | `server` |
//!
//! Neither side trusts the other: lengths are limited, every frame has a checksum, and bytes of a dump are counted.

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

/// First argument of a helper that serves requests. It is followed by a token that the helper repeats, and by the loader with
/// which the helper was started, if any.
pub const SERVE: &str = "serve";

/// First argument of a helper that only removes its own file. It is followed by the path of the file.
pub const REMOVE: &str = "remove";

/// Only argument of a helper that does nothing, for a test whether it can be started.
pub const CHECK: &str = "check";

/// Path by which a transferred helper finds its own file, whose name was removed. The shell holds the file open.
pub const OWN_FILE: &str = "/proc/self/fd/7";

/// Returns the line with which a helper announces itself.
fn hello(token: &str) -> String {
    format!("{token}-hello {VERSION}")
}
