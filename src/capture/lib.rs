//! Running JVMs: finds and reaches them, and takes heap dumps of them.
//!
//! | question | where |
//! |---|---|
//! | Which JVMs are running? | [`jvms`] |
//! | Which facts does the system provide about a process? | [`processes`] |
//! | What does a JVM publish about itself? | [`perfdata`] |
//! | How is a command sent to a JVM? | [`attach`] |
//! | How is a heap dump taken? | [`plan`] describes it in advance, [`heap_dump`] takes it, `fifo` without a disk |
//! | Which files say how much memory a process has? | [`memory_files`] |
//! | Who accesses files that belong to others? | a child process that has become their user: [`user_files`] |
//! | How do JVMs on another machine work? | [`machine`] is this machine or another one; [`remote`] sends a helper to it |
//!
//! The crate depends on no other crate of the workspace, and on few others, because it is the base of a small program that runs
//! next to a JVM in a container. All its input comes from other processes, which may be hostile.

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
pub mod memory_files;
mod mounts;
mod native_image;
pub mod perfdata;
pub mod plan;
mod private;
pub mod processes;
mod random_name;
pub mod remote;
mod remote_error;
pub mod user_files;
mod users;
mod vm_kind;
mod waiting;

pub use compress::{Compression, Encoder};
pub use error::Error;
pub use identity::Identity;
pub use remote_error::RemoteError;
pub use vm_kind::VmKind;
