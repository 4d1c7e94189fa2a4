//! Time limits and notices while waiting for a process that may be slow, hang, or never reply.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::processes::Process;
use crate::user_files::{Notice, OnNotice};

/// Time after which the first notice reports a wait.
pub(crate) const FIRST_NOTICE: Duration = Duration::from_secs(30);
/// Interval between the later notices about a wait.
pub(crate) const NEXT_NOTICES: Duration = Duration::from_secs(300);

/// Period without a reply: its start, and the time of the next notice.
#[derive(Debug, Clone, Copy)]
struct Silence {
    since: Instant,
    next_notice: Duration,
}

/// Wait for the reply to a command.
pub(crate) struct Waiting<'w> {
    process: &'w Process,
    command: &'w str,
    limit: Option<Duration>,
    on_notice: &'w OnNotice,
    silence: Mutex<Silence>,
}

impl Silence {
    fn new() -> Self {
        Self { since: Instant::now(), next_notice: FIRST_NOTICE }
    }
}

impl<'w> Waiting<'w> {
    /// Starts the wait for the reply to a command. `limit` is the maximum time without a reply or progress.
    pub(crate) fn new(
        process: &'w Process,
        command: &'w str,
        limit: Option<Duration>,
        on_notice: &'w OnNotice,
    ) -> Self {
        Self { process, command, limit, on_notice, silence: Mutex::new(Silence::new()) }
    }

    /// Records that the process is carrying out the command, which restarts the limit.
    pub(crate) fn progress(&self) {
        *self.silence.lock().unwrap_or_else(PoisonError::into_inner) = Silence::new();
    }

    /// Checks the limit, and reports a notice if one is due. To be called repeatedly while nothing happens.
    ///
    /// # Errors
    ///
    /// If the limit is reached.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let (pid, waited) = (self.process.pid(), silence.since.elapsed());
        let seconds = waited.as_secs();
        if self.limit.is_some_and(|limit| waited >= limit) {
            return Err(Error::Late { pid, command: self.command.to_owned(), seconds });
        }
        if waited >= silence.next_notice {
            silence.next_notice = waited.saturating_add(NEXT_NOTICES);
            drop(silence);
            let is_stopped = self.process.status_now().is_some_and(|now| now.is_stopped());
            (self.on_notice)(&Notice::Waiting { pid, command: self.command.to_owned(), seconds, is_stopped });
        }
        Ok(())
    }
}
