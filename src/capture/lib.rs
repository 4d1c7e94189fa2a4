//! Running JVMs: finding and reaching them, and taking heap dumps of them.
//!
//! | question | where |
//! |---|---|
//! | Which JVMs are running? | [`jvms`] |
//! | What does the system say about a process? | [`processes`] |
//! | What does a JVM publish about itself? | [`perfdata`] |
//! | How is a command sent to a JVM? | [`attach`] |
//! | How is a heap dump taken? | [`plan`] describes it in advance, [`heap_dump`] takes it, `fifo` without a disk |
//! | Who touches files that belong to others? | a child that has become their user: [`place`] |
//! | And on another machine? | [`machine`] is this one or another; [`remote`] sends a helper to it |
//!
//! The crate depends on no other crate of the workspace, and on few others: it is the base of a small program that runs next to
//! a JVM in a container. Everything that it reads belongs to other processes, which may be hostile.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![cfg(target_os = "linux")]

pub mod attach;
mod compress;
mod directory;
mod elf;
mod error;
mod fifo;
pub mod heap_dump;
mod heap_info;
mod identity;
pub mod jvms;
pub mod machine;
mod native_image;
pub mod perfdata;
pub mod place;
pub mod plan;
mod private;
pub mod processes;
mod random_name;
pub mod remote;
mod remote_error;
mod users;
mod vm_kind;
mod waiting;

pub use compress::{Compression, Encoder};
pub use error::Error;
pub use identity::Identity;
pub use remote_error::RemoteError;
pub use vm_kind::VmKind;
