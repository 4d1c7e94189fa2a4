//! CPU TIME: calls of methods, and the time in them.
//!
//! As the old agent, methods are rewritten when their classes are loaded ([`crate::rewrite`]): they call a tracker when they
//! are entered and left. Each thread keeps a stack of the calls that it is in. A method that is left by an exception that the
//! rewritten code does not see (out of a constructor before its superclass's) is left with its caller.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use rustc_hash::FxHashMap;

use super::traces::Method;
use super::{lock, read, write};
use crate::jvm::MethodId;
use crate::state::State;

/// Calls of a trace, or of one method by another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls that ended.
    pub calls: u64,
    /// Nanoseconds without callees.
    pub own: u64,
    /// Nanoseconds with callees; of calls within a call of the same method, without them: so none counts twice.
    pub all: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.own = self.own.saturating_add(other.own);
        self.all = self.all.saturating_add(other.all);
    }
}

/// A stack of method numbers, innermost first, as deep as traces are.
type Stack = Box<[u32]>;

/// What a thread measured.
#[derive(Debug, Default)]
struct Measured {
    costs: FxHashMap<Stack, Cost>,
}

/// A call that a thread is in.
#[derive(Debug)]
struct Call {
    method: u32,
    start: Instant,
    /// Nanoseconds in callees that ended.
    callees: u64,
}

#[derive(Debug, Default)]
struct OfThread {
    calls: Vec<Call>,
    /// By method: how many calls of it the thread is in.
    active: Vec<u32>,
    /// Calls within one another that are not measured.
    ignored: u32,
    measured: Option<(Arc<Shared>, Arc<Mutex<Measured>>)>,
    key: Vec<u32>,
}

impl Drop for OfThread {
    /// A thread ends: what it measured goes to what all that ended did.
    fn drop(&mut self) {
        if let Some((shared, measured)) = self.measured.take() {
            // Held to the end: who adds up all finds it here or there.
            let mut threads = lock(&shared.threads);
            threads.retain(|other| !Arc::ptr_eq(other, &measured));
            let mut ended = lock(&shared.ended);
            for (stack, cost) in lock(&measured).costs.drain() {
                ended.costs.entry(stack).or_default().add(cost);
            }
        }
    }
}

/// What threads measured.
#[derive(Debug, Default)]
struct Shared {
    /// Those that run.
    threads: Mutex<Vec<Arc<Mutex<Measured>>>>,
    /// All others.
    ended: Mutex<Measured>,
}

thread_local! {
    static THREAD: RefCell<OfThread> = RefCell::new(OfThread::default());
}

/// The most calls within one another that are measured.
const MAX_CALLS: usize = 1 << 16;

/// All that was measured.
#[derive(Debug)]
pub struct Times {
    methods: RwLock<Vec<Arc<Method>>>,
    shared: Arc<Shared>,
    depth: usize,
    /// The tracker can be called.
    pub ready: AtomicBool,
}

impl Times {
    /// Nothing yet; traces have this depth.
    pub fn new(depth: usize) -> Self {
        Self {
            methods: RwLock::default(),
            shared: Arc::default(),
            depth: depth.max(1),
            ready: AtomicBool::new(false),
        }
    }

    /// The number of a method that is rewritten.
    pub fn method(&self, method: Method) -> u32 {
        let mut methods = write(&self.methods);
        methods.push(Arc::new(method));
        u32::try_from(methods.len() - 1).unwrap_or(u32::MAX)
    }

    /// This thread enters a method.
    #[inline]
    pub fn enter(&self, method: u32) {
        if !self.ready.load(Ordering::Relaxed) {
            return;
        }
        let _ = THREAD.try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if thread.calls.len() < MAX_CALLS {
                let at = method as usize;
                if at >= thread.active.len() {
                    thread.active.resize(at + 1, 0);
                }
                if let Some(active) = thread.active.get_mut(at) {
                    *active += 1;
                }
                thread.calls.push(Call { method, start: Instant::now(), callees: 0 });
            } else {
                thread.ignored += 1;
            }
        });
    }

    /// This thread leaves a method, and those within it that it did not see left.
    #[inline]
    pub fn exit(&self, method: u32) {
        let _ = THREAD.try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if thread.ignored > 0 {
                thread.ignored -= 1;
                return;
            }
            if thread.active.get(method as usize).is_none_or(|active| *active == 0) {
                return;
            }
            let now = Instant::now();
            while let Some(call) = thread.calls.pop() {
                let all = u64::try_from(now.duration_since(call.start).as_nanos()).unwrap_or(u64::MAX);
                if let Some(caller) = thread.calls.last_mut() {
                    caller.callees = caller.callees.saturating_add(all);
                }
                let mut cost = Cost { calls: 1, own: all.saturating_sub(call.callees), all };
                if let Some(active) = thread.active.get_mut(call.method as usize) {
                    *active = active.saturating_sub(1);
                    if *active > 0 {
                        cost.all = cost.own;
                    }
                }
                self.count(thread, call.method, cost);
                if call.method == method {
                    break;
                }
            }
        });
    }

    fn count(&self, thread: &mut OfThread, method: u32, cost: Cost) {
        thread.key.clear();
        thread.key.push(method);
        thread.key.extend(thread.calls.iter().rev().take(self.depth.max(2) - 1).map(|call| call.method));
        let (_, measured) = thread.measured.get_or_insert_with(|| {
            let new = Arc::new(Mutex::new(Measured::default()));
            lock(&self.shared.threads).push(Arc::clone(&new));
            (Arc::clone(&self.shared), new)
        });
        let mut measured = lock(measured);
        match measured.costs.get_mut(thread.key.as_slice()) {
            Some(known) => known.add(cost),
            None => {
                measured.costs.insert(thread.key.as_slice().into(), cost);
            }
        }
    }

    /// Costs of stacks of this depth, of all threads.
    fn costs(&self, depth: usize) -> FxHashMap<Stack, Cost> {
        let mut all: FxHashMap<Stack, Cost> = FxHashMap::default();
        let mut add = |measured: &Measured| {
            for (stack, cost) in &measured.costs {
                all.entry(stack.iter().take(depth).copied().collect()).or_default().add(*cost);
            }
        };
        // A thread that ends meanwhile waits: its costs move from the one to the other.
        let threads = lock(&self.shared.threads);
        threads.iter().for_each(|measured| add(&lock(measured)));
        add(&lock(&self.shared.ended));
        drop(threads);
        all
    }

    /// Trace, calls, nanoseconds without callees: most first.
    pub fn rows(&self, state: &State) -> Vec<(u32, u64, u64)> {
        let methods = read(&self.methods).clone();
        let mut rows: Vec<_> = (self.costs(self.depth).into_iter())
            .map(|(stack, cost)| {
                let frames: Vec<_> = (stack.iter())
                    .filter_map(|number| {
                        // Numbers that no method of the JVM has: they are addresses there.
                        let id = MethodId(usize::MAX - *number as usize);
                        Some((id, Arc::clone(methods.get(*number as usize)?)))
                    })
                    .collect();
                (state.traces.of_methods(0, &frames), cost.calls, cost.own)
            })
            .collect();
        rows.sort_unstable_by_key(|(trace, calls, nanos)| (u64::MAX - nanos, u64::MAX - calls, *trace));
        rows
    }

    /// Calls, callee, caller, nanoseconds with callees: most calls first, as the old agent has it.
    pub fn calls(&self) -> Vec<(u64, String, Option<String>, u64)> {
        let methods = read(&self.methods).clone();
        let name = |number: u32| methods.get(number as usize).map(|method| method.with_signature());
        let mut rows: Vec<_> = (self.costs(2).into_iter())
            .filter_map(|(stack, cost)| {
                let callee = name(*stack.first()?)?;
                Some((cost.calls, callee, stack.get(1).and_then(|caller| name(*caller)), cost.all))
            })
            .collect();
        rows.sort_unstable_by(|a, b| (b.0, &a.1, &a.2).cmp(&(a.0, &b.1, &b.2)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Method {
        Method::named("A".to_owned(), name.to_owned(), "()V".to_owned(), None)
    }

    /// main calls work twice, which calls leaf once; the exit of the second leaf is missed.
    #[test]
    fn calls_are_counted_and_missed_exits_end_with_their_callers() {
        let times = Times::new(4);
        times.ready.store(true, Ordering::Release);
        let (main, work, leaf) =
            (times.method(named("main")), times.method(named("work")), times.method(named("leaf")));
        times.enter(main);
        times.enter(work);
        times.enter(leaf);
        times.exit(leaf);
        times.exit(work);
        times.enter(work);
        times.enter(leaf);
        times.exit(work);
        times.exit(main);
        times.exit(main);
        let rows: Vec<_> =
            times.calls().into_iter().map(|(count, callee, caller, _)| (count, callee, caller)).collect();
        let name = |name: &str| format!("A.{name}()V");
        assert_eq!(
            rows,
            [
                (2, name("leaf"), Some(name("work"))),
                (2, name("work"), Some(name("main"))),
                (1, name("main"), None),
            ]
        );
    }
}
