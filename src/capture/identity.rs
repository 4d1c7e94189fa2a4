//! The user and group as whom work is done.
//!
//! A JVM accepts commands only from its own user and group. On Linux, each thread has its own credentials at the level of
//! system calls, so a thread that takes those of the JVM and then ends is enough: the process keeps its own, and no child
//! process is needed.

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::error::Error;

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

    /// Runs `work` as this user and group.
    ///
    /// # Errors
    ///
    /// If this process may not become that user.
    pub(crate) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let own = Self::own();
        if self == own {
            return Ok(work());
        }
        let fail = |source: std::io::Error| Error::Identity { user: self.user, group: self.group, source };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("as the JVM's user".to_owned());
            let thread = thread.spawn_scoped(scope, || {
                self.take(own).map_err(|error| fail(error.into()))?;
                Ok(work())
            });
            match thread.map_err(fail)?.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Gives this thread the identity. The real IDs stay: nothing depends on them.
    fn take(self, own: Self) -> rustix::io::Result<()> {
        if self.user != own.user {
            // The groups of another user would open more than the JVM's user may.
            set_thread_groups(&[])?;
        }
        set_thread_res_gid(None, Gid::from_raw(self.group), None)?;
        // Last: a thread that is no longer root could not change its group.
        set_thread_res_uid(None, Uid::from_raw(self.user), None)
    }
}
