//! Request by a signal to end rounds early, and to conclude.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::context::lock;
use super::signals;

/// Request to end, by a signal.
#[derive(Default)]
pub(crate) struct EndRequest {
    is_requested: Mutex<bool>,
    changed: Condvar,
}

impl EndRequest {
    /// Returns the request that the first signal makes instead of ending the process.
    pub(crate) fn of_signals() -> Arc<Self> {
        let request = Arc::new(Self::default());
        let signalled = Arc::clone(&request);
        signals::instead(move || {
            *lock(&signalled.is_requested) = true;
            signalled.changed.notify_all();
        });
        request
    }

    /// Returns whether the end was requested.
    pub(crate) fn is_requested(&self) -> bool {
        *lock(&self.is_requested)
    }

    /// Waits for the time; returns whether the end was requested meanwhile.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let waited =
            self.changed.wait_timeout_while(lock(&self.is_requested), time, |is_requested| !*is_requested);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
