//! Child processes that access files of other users.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum time for a child to remove what it created and end.
const TO_END: Duration = Duration::from_secs(5);

/// Child process and the socket to it.
#[derive(Debug)]
pub(super) struct ChildProcess {
    pub(super) socket: OwnedFd,
    child: Mutex<Child>,
}

impl ChildProcess {
    pub(super) fn new(socket: OwnedFd, child: Child) -> Self {
        Self { socket, child: Mutex::new(child) }
    }

    /// Closes the child's stdin, whereupon the child removes what it created, and waits until it ends.
    fn end(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        // The child's user may have stopped it.
        while matches!(child.try_wait(), Ok(None)) {
            if start.elapsed() > TO_END {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// All running child processes.
#[derive(Debug, Default)]
pub(super) struct RunningChildren {
    processes: Mutex<Vec<Arc<ChildProcess>>>,
}

impl RunningChildren {
    fn processes(&self) -> MutexGuard<'_, Vec<Arc<ChildProcess>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, process: ChildProcess) -> Arc<ChildProcess> {
        let process = Arc::new(process);
        self.processes().push(process.clone());
        process
    }

    /// Ends a child and waits until it has ended.
    pub(super) fn end_one(&self, process: &Arc<ChildProcess>) {
        let mut processes = self.processes();
        let at = processes.iter().position(|one| Arc::ptr_eq(one, process));
        let own = at.map(|at| processes.swap_remove(at));
        drop(processes);
        if let Some(own) = own {
            own.end();
        }
    }

    /// Ends all children and waits until they have ended. No children can be started afterwards.
    pub(super) fn end(&self) {
        let mut processes = self.processes();
        processes.drain(..).for_each(|process| process.end());
        std::mem::forget(processes);
    }
}
