//! Monitors: time that threads lose waiting to enter them, and waits.

use std::cell::RefCell;
use std::sync::Mutex;
use std::time::Instant;

use hprof_format::text;
use rustc_hash::FxHashMap;

use super::lock;

/// Time lost at a trace, for monitors of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contention {
    /// Number of times.
    pub count: u64,
    /// Total time in nanoseconds.
    pub nanos: u64,
}

/// Contention of all monitors, and waits.
#[derive(Debug, Default)]
pub struct Monitors {
    table: Mutex<FxHashMap<(u32, String), Contention>>,
    /// Lines of waits, and the number of omitted ones.
    lines: Mutex<(Vec<u8>, u64)>,
}

/// A wait of a thread.
#[derive(Debug)]
pub struct Waiting {
    /// Start of the wait.
    pub since: Instant,
    /// Number of the trace.
    pub trace: u32,
    /// Signature of the monitor's class.
    pub signature: String,
}

thread_local! {
    /// Number of the recording, and the waits in it.
    static WAITING: RefCell<(u32, Vec<Waiting>)> = const { RefCell::new((0, Vec::new())) };
}

/// Calls `run` with the waits of this thread in this recording.
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

/// Maximum number of nested waits per thread: there are two, a wait and the contended enter that ends it.
const MAX_NESTED: usize = 8;

/// Starts a wait of this thread.
pub fn wait(waiting: Waiting) {
    let _ = with(|all| {
        if all.len() >= MAX_NESTED {
            all.clear();
        }
        all.push(waiting);
    });
}

/// Ends the innermost wait of this thread, and returns it.
pub fn end_wait() -> Option<Waiting> {
    with(Vec::pop).flatten()
}

/// Maximum size of the lines of waits that are stored until output is written. Later ones are omitted.
const MAX_LINES: usize = 64 << 20;

impl Monitors {
    /// Adds a line of the report: the start or end of a wait.
    pub fn line(&self, wait: text::Wait<'_>, thread: u32) {
        let mut lines = lock(&self.lines);
        if lines.0.len() < MAX_LINES {
            let _ = text::wait(&mut lines.0, wait, thread);
        } else {
            lines.1 += 1;
        }
    }

    /// Returns the lines since the last call, and the number of omitted ones.
    pub fn take_lines(&self) -> (Vec<u8>, u64) {
        std::mem::take(&mut lock(&self.lines))
    }

    /// Adds the contention of a thread that has entered.
    pub fn add_contention(&self, waiting: Waiting) {
        let nanos = u64::try_from(waiting.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut table = lock(&self.table);
        let contention = table.entry((waiting.trace, waiting.signature)).or_default();
        contention.count += 1;
        contention.nanos = contention.nanos.saturating_add(nanos);
    }

    /// Removes all data.
    pub fn clear(&self) {
        *lock(&self.table) = FxHashMap::default();
        *lock(&self.lines) = Default::default();
    }

    /// Returns trace, signature of the monitor's class, and time lost, in descending order.
    pub fn rows(&self) -> Vec<(u32, String, Contention)> {
        let table = lock(&self.table);
        let mut rows: Vec<_> =
            table.iter().map(|((trace, class), lost)| (*trace, class.clone(), *lost)).collect();
        rows.sort_unstable_by(|a, b| (b.2.nanos, a.0, &a.1).cmp(&(a.2.nanos, b.0, &b.1)));
        rows
    }
}
