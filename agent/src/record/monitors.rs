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
    /// How often.
    pub count: u64,
    /// Nanoseconds.
    pub nanos: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Monitors {
    table: Mutex<FxHashMap<(u32, String), Contention>>,
    /// Lines of waits, and how many more there were.
    lines: Mutex<(Vec<u8>, u64)>,
}

/// A thread waits.
#[derive(Debug)]
pub struct Waiting {
    /// Since when.
    pub since: Instant,
    /// Number of the trace where.
    pub trace: u32,
    /// Signature of the monitor's class.
    pub signature: String,
}

thread_local! {
    /// Of which recording they are, and the waits.
    static WAITING: RefCell<(u32, Vec<Waiting>)> = const { RefCell::new((0, Vec::new())) };
}

/// The waits of this thread, in this recording.
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

/// The most waits within one another that a thread remembers: there are two, a wait and the contended enter that ends it.
const MAX_NESTED: usize = 8;

/// This thread starts to wait.
pub fn wait(waiting: Waiting) {
    let _ = with(|all| {
        if all.len() >= MAX_NESTED {
            all.clear();
        }
        all.push(waiting);
    });
}

/// It waits no more.
pub fn waited() -> Option<Waiting> {
    with(Vec::pop).flatten()
}

/// Lines of waits that are kept until something is written. Later ones are left out.
const MAX_LINES: usize = 64 << 20;

impl Monitors {
    /// A thread starts to wait, or has waited: a line of the report.
    pub fn line(&self, wait: text::Wait<'_>, thread: u32) {
        let mut lines = lock(&self.lines);
        if lines.0.len() < MAX_LINES {
            let _ = text::wait(&mut lines.0, wait, thread);
        } else {
            lines.1 += 1;
        }
    }

    /// The lines since the last time, and how many were left out.
    pub fn take_lines(&self) -> (Vec<u8>, u64) {
        std::mem::take(&mut lock(&self.lines))
    }

    /// A thread entered at last.
    pub fn entered(&self, waiting: Waiting) {
        let nanos = u64::try_from(waiting.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut table = lock(&self.table);
        let contention = table.entry((waiting.trace, waiting.signature)).or_default();
        contention.count += 1;
        contention.nanos = contention.nanos.saturating_add(nanos);
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        *lock(&self.table) = FxHashMap::default();
        *lock(&self.lines) = Default::default();
    }

    /// Trace, signature of the monitor's class, time lost; most first.
    pub fn rows(&self) -> Vec<(u32, String, Contention)> {
        let table = lock(&self.table);
        let mut rows: Vec<_> =
            table.iter().map(|((trace, class), lost)| (*trace, class.clone(), *lost)).collect();
        rows.sort_unstable_by(|a, b| (b.2.nanos, a.0, &a.1).cmp(&(a.2.nanos, b.0, &b.1)));
        rows
    }
}
