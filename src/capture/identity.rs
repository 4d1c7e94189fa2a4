//! The user and group as whom work is done.
//!
//! A JVM accepts commands only from its own user and group, and what belongs to a user is changed only as that user: by a
//! child process, see [`place`](crate::place).

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
    /// Returns that of this process.
    pub fn own() -> Self {
        Self { user: geteuid().as_raw(), group: getegid().as_raw() }
    }
}
