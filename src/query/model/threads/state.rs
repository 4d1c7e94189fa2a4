//! State of a thread: `java.lang.Thread.State`, and details of the JVM's own state that it omits.

/// `java.lang.Thread.State`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadState {
    /// Not started yet.
    New,
    /// Running, or ready to run.
    Runnable,
    /// Waiting to enter a monitor.
    Blocked,
    /// Waiting for another thread.
    Waiting,
    /// Waiting for another thread with a timeout.
    TimedWaiting,
    /// Ended.
    Terminated,
}

/// How a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// In `Thread.sleep`.
    Sleeping,
    /// In `Object.wait`, or to enter a monitor.
    OnMonitor,
    /// In `LockSupport.park`.
    Parking,
}

/// State and wait of a thread, if the dump contains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadActivity {
    /// The state.
    pub state: Option<ThreadState>,
    /// Kind of wait, if the thread is waiting.
    pub wait: Option<Wait>,
}

impl ThreadState {
    /// All states, in the order of `Thread.State`.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Runnable, Self::Blocked, Self::Waiting, Self::TimedWaiting, Self::Terminated];

    /// Returns Java's name of the state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::Runnable => "RUNNABLE",
            Self::Blocked => "BLOCKED",
            Self::Waiting => "WAITING",
            Self::TimedWaiting => "TIMED_WAITING",
            Self::Terminated => "TERMINATED",
        }
    }

    /// Returns whether a thread in this state was started and has not ended.
    pub const fn is_alive(self) -> bool {
        !matches!(self, Self::New | Self::Terminated)
    }
}

impl Wait {
    /// Returns the text that thread dumps print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleeping => "sleeping",
            Self::OnMonitor => "on object monitor",
            Self::Parking => "parking",
        }
    }
}

impl ThreadActivity {
    /// Decodes `Thread.threadStatus`: the bits of a JVMTI thread state, as `jdk.internal.misc.VM.toThreadState` does.
    pub fn of_bits(bits: u64) -> Self {
        const ALIVE: u64 = 0x1;
        const TERMINATED: u64 = 0x2;
        const RUNNABLE: u64 = 0x4;
        const INDEFINITELY: u64 = 0x10;
        const WITH_TIMEOUT: u64 = 0x20;
        const SLEEPING: u64 = 0x40;
        const IN_OBJECT_WAIT: u64 = 0x100;
        const PARKED: u64 = 0x200;
        const BLOCKED: u64 = 0x400;
        let is = |bit: u64| bits & bit != 0;
        let state = if is(RUNNABLE) {
            ThreadState::Runnable
        } else if is(BLOCKED) {
            ThreadState::Blocked
        } else if is(INDEFINITELY) {
            ThreadState::Waiting
        } else if is(WITH_TIMEOUT) {
            ThreadState::TimedWaiting
        } else if is(TERMINATED) {
            ThreadState::Terminated
        } else if !is(ALIVE) {
            ThreadState::New
        } else {
            ThreadState::Runnable
        };
        let wait = match state {
            ThreadState::Blocked => Some(Wait::OnMonitor),
            ThreadState::Waiting | ThreadState::TimedWaiting if is(SLEEPING) => Some(Wait::Sleeping),
            ThreadState::Waiting | ThreadState::TimedWaiting if is(IN_OBJECT_WAIT) => Some(Wait::OnMonitor),
            ThreadState::Waiting | ThreadState::TimedWaiting if is(PARKED) => Some(Wait::Parking),
            _ => None,
        };
        Self { state: Some(state), wait }
    }

    /// Decodes the constant of java.lang.VirtualThread with this name, as `VirtualThread.threadState` does. A running
    /// thread has its carrier's state; the caller distinguishes STARTED from NEW.
    pub fn of_virtual(name: &str) -> Option<Self> {
        let (state, wait) = match name {
            "NEW" => (ThreadState::New, None),
            "STARTED" | "RUNNABLE" | "RUNNING" | "PARKING" | "TIMED_PARKING" | "WAITING"
            | "TIMED_WAITING" | "YIELDING" | "YIELDED" | "UNPARKED" | "UNBLOCKED" => {
                (ThreadState::Runnable, None)
            }
            "PARKED" | "PINNED" => (ThreadState::Waiting, Some(Wait::Parking)),
            "TIMED_PARKED" | "TIMED_PINNED" => (ThreadState::TimedWaiting, Some(Wait::Parking)),
            "WAIT" => (ThreadState::Waiting, Some(Wait::OnMonitor)),
            "TIMED_WAIT" => (ThreadState::TimedWaiting, Some(Wait::OnMonitor)),
            "BLOCKING" | "BLOCKED" => (ThreadState::Blocked, Some(Wait::OnMonitor)),
            "TERMINATED" => (ThreadState::Terminated, None),
            _ => return None,
        };
        Some(Self { state: Some(state), wait })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_as_java_reads_them() {
        let read = |bits| {
            let doing = ThreadActivity::of_bits(bits);
            (doing.state.map(ThreadState::name), doing.wait.map(Wait::name))
        };
        // Values written by HotSpot: javaThreadStatus.hpp.
        for (bits, state, wait) in [
            (0, "NEW", None),
            (0x5, "RUNNABLE", None),
            (0x1 + 0x80 + 0x20 + 0x40, "TIMED_WAITING", Some("sleeping")),
            (0x1 + 0x80 + 0x10 + 0x100, "WAITING", Some("on object monitor")),
            (0x1 + 0x80 + 0x20 + 0x100, "TIMED_WAITING", Some("on object monitor")),
            (0x1 + 0x80 + 0x10 + 0x200, "WAITING", Some("parking")),
            (0x1 + 0x80 + 0x20 + 0x200, "TIMED_WAITING", Some("parking")),
            (0x1 + 0x400, "BLOCKED", Some("on object monitor")),
            (0x2, "TERMINATED", None),
            (0x1, "RUNNABLE", None),
        ] {
            assert_eq!(read(bits), (Some(state), wait), "{bits:#x}");
        }
    }

    #[test]
    fn virtual_threads_that_are_in_transition_can_run() {
        let state = |name| ThreadActivity::of_virtual(name).and_then(|doing| doing.state);
        assert_eq!(state("WAITING"), Some(ThreadState::Runnable));
        assert_eq!(state("TIMED_WAIT"), Some(ThreadState::TimedWaiting));
        assert_eq!(state("SUSPENDED"), None);
    }
}
