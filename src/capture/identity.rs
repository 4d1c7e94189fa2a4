//! Effective user and group of processes.
//!
//! A JVM accepts commands only from its own user and group, and files of a user are changed only by a child process with that
//! user's rights (see [`user_files`](crate::user_files)).

use rustix::process::{getegid, geteuid};

/// An effective user and group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// User ID.
    pub user: u32,
    /// Group ID.
    pub group: u32,
}

impl Identity {
    /// Returns the identity of this process.
    pub fn own() -> Self {
        Self { user: geteuid().as_raw(), group: getegid().as_raw() }
    }
}
