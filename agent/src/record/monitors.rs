//! Monitors: the time that threads lose while waiting to enter them, and lines about waits.

use std::cell::RefCell;
use std::sync::Mutex;
use std::time::Instant;

use hprof_format::text;
use rustc_hash::FxHashMap;

use super::lock;
use crate::jvm::{Jni, Ref, WeakRef};

/// Number and total time of waits to enter monitors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contention {
    /// Number of waits to enter.
    pub count: u64,
    /// Total time of the waits in nanoseconds.
    pub nanos: u64,
}

/// Contention by trace and class of the monitor, and lines about waits.
#[derive(Debug, Default)]
pub struct Monitors {
    table: Mutex<FxHashMap<(u32, String), Contention>>,
    /// Lines about waits for the report, and the number of omitted lines.
    lines: Mutex<(Vec<u8>, u64)>,
    /// Objects for which threads wait, by serial number of the thread. `GetCurrentContendedMonitor` returns them only if the
    /// agent was loaded at the JVM's start, and since JDK 23 not those on which threads wait to be notified (JDK-8256314). The
    /// receiver of the frame of `Object.wait` needs the capability `can_access_local_variables`, which makes compiled code
    /// slower.
    awaited: Mutex<FxHashMap<u32, WeakRef>>,
}

/// Wait of a thread that has not ended.
#[derive(Debug)]
pub struct Waiting {
    /// Start of the wait.
    pub since: Instant,
    /// Number of the thread's trace at the start of the wait.
    pub trace: u32,
    /// Signature of the monitor's class.
    pub signature: String,
}

thread_local! {
    /// Number of the recording, and the current thread's waits in this recording.
    static WAITING: RefCell<(u32, Vec<Waiting>)> = const { RefCell::new((0, Vec::new())) };
}

/// Calls `run` with the current thread's waits in the current recording.
fn with<T>(run: impl FnOnce(&mut Vec<Waiting>) -> T) -> Option<T> {
    WAITING
        .try_with(|waiting| {
            let (recording, all) = &mut *waiting.borrow_mut();
            if *recording != super::recording() {
                *recording = super::recording();
                all.clear();
            }
            run(all)
        })
        .ok()
}

/// Maximum number of nested waits per thread. Two can occur: a wait, and the contended enter with which it ends.
const MAX_NESTED: usize = 8;

/// Records that the current thread starts to wait.
pub fn wait(waiting: Waiting) {
    let _ = with(|all| {
        if all.len() >= MAX_NESTED {
            all.clear();
        }
        all.push(waiting);
    });
}

/// Ends the innermost wait of the current thread, and returns it.
pub fn end_wait() -> Option<Waiting> {
    with(Vec::pop).flatten()
}

/// Maximum size in bytes of the lines that are stored between two dumps. Later lines are omitted.
const MAX_LINES: usize = 64 << 20;

impl Monitors {
    /// Adds a line about the start or end of a wait.
    pub fn line(&self, wait: text::Wait<'_>, thread: u32) {
        let mut lines = lock(&self.lines);
        if lines.0.len() < MAX_LINES {
            let _ = text::wait(&mut lines.0, wait, thread);
        } else {
            lines.1 += 1;
        }
    }

    /// Returns the lines since the last call, and the number of omitted lines.
    pub fn take_lines(&self) -> (Vec<u8>, u64) {
        std::mem::take(&mut lock(&self.lines))
    }

    /// Adds the wait of a thread that has entered the monitor.
    pub fn add_contention(&self, waiting: Waiting) {
        let nanos = u64::try_from(waiting.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut table = lock(&self.table);
        let contention = table.entry((waiting.trace, waiting.signature)).or_default();
        contention.count += 1;
        contention.nanos = contention.nanos.saturating_add(nanos);
    }

    /// Records that a thread starts to wait for a monitor, to enter it or to be notified.
    pub fn begin_wait(&self, jni: &Jni<'_>, thread: u32, object: Ref<'_>) {
        // Waits of threads without a number are never read.
        if thread == 0 {
            return;
        }
        let Some(object) = jni.weak(object) else { return };
        // The lock is not held while JNI is called, where a heap dump may suspend the thread.
        let last = lock(&self.awaited).insert(thread, object);
        if let Some(last) = last {
            jni.delete_weak(last);
        }
    }

    /// Records that a thread no longer waits for a monitor.
    pub fn finish_wait(&self, jni: &Jni<'_>, thread: u32) {
        let object = lock(&self.awaited).remove(&thread);
        if let Some(object) = object {
            jni.delete_weak(object);
        }
    }

    /// Returns the object for which a thread waits, if it started to wait during the recording.
    pub fn awaited_monitor<'j>(&self, jni: &Jni<'j>, thread: u32) -> Option<Ref<'j>> {
        // The lock is held, because the reference could be deleted meanwhile.
        jni.upgrade(lock(&self.awaited).get(&thread)?)
    }

    /// Removes all contention, lines and waits.
    pub fn clear(&self, jni: &Jni<'_>) {
        *lock(&self.table) = FxHashMap::default();
        *lock(&self.lines) = Default::default();
        let awaited = std::mem::take(&mut *lock(&self.awaited));
        for object in awaited.into_values() {
            jni.delete_weak(object);
        }
    }

    /// Returns trace, signature of the monitor's class, and contention, sorted by time in descending order.
    pub fn rows(&self) -> Vec<(u32, String, Contention)> {
        let table = lock(&self.table);
        let mut rows: Vec<_> =
            table.iter().map(|((trace, class), lost)| (*trace, class.clone(), *lost)).collect();
        rows.sort_unstable_by(|a, b| (b.2.nanos, a.0, &a.1).cmp(&(a.2.nanos, b.0, &b.1)));
        rows
    }
}
