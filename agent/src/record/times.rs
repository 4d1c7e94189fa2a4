//! CPU TIME: number and time of method calls.
//!
//! As in the old agent, methods are rewritten when their classes are loaded ([`crate::rewrite`]), so that they call a tracker
//! on entry and exit. Each thread has a stack of its current calls. A call that ends with an exception outside of the rewritten
//! code's handler (in a constructor, before the superclass's constructor) is ended together with its caller.
//!
//! This code runs for each call, of which a program makes 100 million per second. So a thread adds to its own costs without a
//! lock, and finds them by the index of the caller's stack and the method.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::traces::Method;
use super::{lock, read, recording, write};
use crate::jvm::MethodId;
use crate::jvm::clock::{self, Clock};
use crate::state::AgentState;

/// Number and time of calls, for a stack or a pair of caller and callee. Time is in ticks of the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of finished calls.
    pub calls: u64,
    /// Time of the calls without their callees.
    pub own: u64,
    /// Time of the calls including their callees. Calls nested in a call of the same method are not added, so that no time is
    /// counted twice.
    pub all: u64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.own = self.own.saturating_add(other.own);
        self.all = self.all.saturating_add(other.all);
    }
}

/// Method numbers of a stack, innermost first, at most as many as the depth of traces.
type Stack = Box<[u32]>;

/// Costs of a stack in one thread. Only this thread adds to them; others may read them.
#[derive(Debug, Default)]
struct StackCosts {
    calls: AtomicU64,
    own: AtomicU64,
    all: AtomicU64,
}

impl StackCosts {
    #[inline]
    fn add(&self, own: u64, all: u64) {
        let add = |to: &AtomicU64, more| {
            to.store(to.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.calls, 1);
        add(&self.own, own);
        add(&self.all, all);
    }

    fn cost(&self) -> Cost {
        let load = |from: &AtomicU64| from.load(Ordering::Relaxed);
        Cost { calls: load(&self.calls), own: load(&self.own), all: load(&self.all) }
    }
}

/// Stacks of one thread with their costs.
type MeasuredStacks = Vec<(Stack, Arc<StackCosts>)>;

/// Call of a method that has not ended.
#[derive(Debug)]
struct Call {
    method: u32,
    /// Index of the call's stack in `places`.
    place: u32,
    start: u64,
    /// Time in callees that have ended, in ticks.
    callees: u64,
}

/// Cached step from the stack of a caller to the stack of a called method.
#[derive(Debug, Clone, Copy)]
struct CallEdge {
    caller: u32,
    method: u32,
    place: u32,
}

/// Number of cached steps per thread.
const RECENT: usize = 256;

/// Index that stands for a caller that is not measured.
const NOBODY: u32 = u32::MAX;

/// Measurements of one thread.
#[derive(Debug)]
struct ThreadTimes {
    /// Number of the recording to which the data belongs.
    recording: u32,
    calls: Vec<Call>,
    /// Number of current calls in the thread, by method number.
    active: Vec<u32>,
    /// Number of current calls that are too deeply nested to be measured.
    ignored: u32,
    measured: Option<(Arc<SharedTimes>, Arc<Mutex<MeasuredStacks>>)>,
    places: Vec<Arc<StackCosts>>,
    /// Index into `places` by index of the caller and number of the method.
    steps: FxHashMap<(u32, u32), u32>,
    /// Index into `places` by stack. Callers that differ only below the depth of traces share an index, as do the calls of a
    /// deep recursion.
    by_stack: FxHashMap<Stack, u32>,
    recent: Vec<CallEdge>,
}

impl ThreadTimes {
    const NEW: Self = Self {
        recording: 0,
        calls: Vec::new(),
        active: Vec::new(),
        ignored: 0,
        measured: None,
        places: Vec::new(),
        steps: FxHashMap::with_hasher(FxBuildHasher),
        by_stack: FxHashMap::with_hasher(FxBuildHasher),
        recent: Vec::new(),
    };

    /// Returns the index in `places` of the stack of a method that is being called, adding the stack if it is new.
    #[inline]
    fn place(&mut self, method: u32, times: &Times) -> u32 {
        let caller = self.calls.last().map_or(NOBODY, |call| call.place);
        let at = (caller.wrapping_mul(31) ^ method) as usize % RECENT;
        match self.recent.get(at) {
            Some(step) if step.caller == caller && step.method == method => step.place,
            _ => self.find_place(caller, method, at, times),
        }
    }

    #[cold]
    fn find_place(&mut self, caller: u32, method: u32, at: usize, times: &Times) -> u32 {
        let known = self.steps.get(&(caller, method)).copied();
        let place = known.unwrap_or_else(|| self.new_place(caller, method, times));
        if self.recent.is_empty() {
            // No method has this number.
            self.recent.resize(RECENT, CallEdge { caller: NOBODY, method: u32::MAX, place: 0 });
        }
        if let Some(recent) = self.recent.get_mut(at) {
            *recent = CallEdge { caller, method, place };
        }
        place
    }

    fn new_place(&mut self, caller: u32, method: u32, times: &Times) -> u32 {
        let (_, measured) = self.measured.get_or_insert_with(|| {
            let new = Arc::new(Mutex::new(MeasuredStacks::new()));
            lock(&times.shared.threads).push(Arc::clone(&new));
            (Arc::clone(&times.shared), new)
        });
        let mut measured = lock(measured);
        let callers = measured.get(caller as usize).map_or(&[][..], |(stack, _)| stack);
        let callers = callers.iter().copied().take(times.depth.max(2) - 1);
        let stack: Stack = std::iter::once(method).chain(callers).collect();
        let place = *self.by_stack.entry(stack).or_insert_with_key(|stack| {
            let new = Arc::new(StackCosts::default());
            measured.push((stack.clone(), Arc::clone(&new)));
            self.places.push(new);
            u32::try_from(self.places.len() - 1).unwrap_or(NOBODY)
        });
        self.steps.insert((caller, method), place);
        place
    }
}

impl Drop for ThreadTimes {
    /// Adds the costs of an ending thread to the costs of all ended threads.
    fn drop(&mut self) {
        if let Some((shared, measured)) = self.measured.take() {
            // Locked until the end, so that a thread that sums all costs finds these either here or among those of ended
            // threads.
            let mut threads = lock(&shared.threads);
            threads.retain(|other| !Arc::ptr_eq(other, &measured));
            let mut ended = lock(&shared.ended);
            for (stack, place) in lock(&measured).drain(..) {
                ended.entry(stack).or_default().add(place.cost());
            }
        }
    }
}

/// Measurements of all threads, shared between them.
#[derive(Debug, Default)]
struct SharedTimes {
    /// Stacks and costs of the running threads.
    threads: Mutex<Vec<Arc<Mutex<MeasuredStacks>>>>,
    /// Costs of the ended threads by stack.
    ended: Mutex<FxHashMap<Stack, Cost>>,
}

thread_local! {
    static THREAD: RefCell<ThreadTimes> = const { RefCell::new(ThreadTimes::NEW) };
}

/// Maximum number of nested calls that are measured.
const MAX_CALLS: usize = 1 << 16;

/// Rewritten methods by number. They remain rewritten after a recording has stopped, so the next recording measures them, too.
static METHODS: RwLock<Vec<RewrittenMethod>> = RwLock::new(Vec::new());

/// Method that was rewritten to call the tracker.
#[derive(Debug, Clone)]
struct RewrittenMethod {
    method: Arc<Method>,
    /// `true` if the boot loader defined the method's class.
    boot: bool,
}

/// Measurements of a recording.
#[derive(Debug)]
pub struct Times {
    recording: u32,
    /// By method number: `true` if a method that was rewritten for an earlier recording is measured in this one.
    earlier: Vec<bool>,
    shared: Arc<SharedTimes>,
    depth: usize,
    clock: Clock,
    /// `true` when the tracker's methods can be called.
    pub ready: AtomicBool,
}

impl Times {
    /// Creates empty measurements with traces of this depth. `is_wanted` returns whether a class is measured, given its name
    /// and `true` for a class of the boot loader.
    pub fn new(depth: usize, is_wanted: impl Fn(&str, bool) -> bool) -> Self {
        let methods = read(&METHODS);
        let earlier = methods.iter().map(|earlier| is_wanted(&earlier.method.class_name, earlier.boot));
        Self {
            recording: recording(),
            earlier: earlier.collect(),
            shared: Arc::default(),
            depth: depth.max(1),
            clock: Clock::default(),
            ready: AtomicBool::new(false),
        }
    }

    /// Returns a new number for a method that is being rewritten.
    pub fn method(&self, method: Method, boot: bool) -> u32 {
        let mut methods = write(&METHODS);
        methods.push(RewrittenMethod { method: Arc::new(method), boot });
        u32::try_from(methods.len() - 1).unwrap_or(u32::MAX)
    }

    /// Returns `true` if any method is measured, whether it was called or not.
    pub fn has_methods(&self) -> bool {
        // Methods that were rewritten for this recording follow the earlier ones.
        read(&METHODS).len() > self.earlier.len() || self.earlier.contains(&true)
    }

    /// Removes all measurements.
    pub fn clear(&self) {
        *lock(&self.shared.threads) = Vec::new();
        *lock(&self.shared.ended) = FxHashMap::default();
    }

    /// Records that the current thread enters a method.
    #[inline]
    pub fn enter(&self, method: u32) {
        if !self.ready.load(Ordering::Relaxed) {
            return;
        }
        let at = method as usize;
        if self.earlier.get(at) == Some(&false) {
            return;
        }
        let _ = THREAD.try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if thread.recording != self.recording {
                *thread = ThreadTimes::NEW;
                thread.recording = self.recording;
            }
            if thread.calls.len() >= MAX_CALLS {
                thread.ignored += 1;
                return;
            }
            if at >= thread.active.len() {
                thread.active.resize(at + 1, 0);
            }
            if let Some(active) = thread.active.get_mut(at) {
                *active += 1;
            }
            let place = thread.place(method, self);
            thread.calls.push(Call { method, place, start: clock::ticks(), callees: 0 });
        });
    }

    /// Records that the current thread leaves a method. Nested calls whose exit was missed are ended, too.
    #[inline]
    pub fn exit(&self, method: u32) {
        let now = clock::ticks();
        let _ = THREAD.try_with(|thread| {
            let thread = &mut *thread.borrow_mut();
            if thread.ignored > 0 {
                thread.ignored -= 1;
                return;
            }
            if thread.active.get(method as usize).is_none_or(|active| *active == 0) {
                return;
            }
            while let Some(call) = thread.calls.pop() {
                // The counters of two processors may differ by a few ticks.
                let all = now.saturating_sub(call.start);
                if let Some(caller) = thread.calls.last_mut() {
                    caller.callees = caller.callees.saturating_add(all);
                }
                let own = all.saturating_sub(call.callees);
                let mut outermost = true;
                if let Some(active) = thread.active.get_mut(call.method as usize) {
                    *active = active.saturating_sub(1);
                    outermost = *active == 0;
                }
                if let Some(place) = thread.places.get(call.place as usize) {
                    place.add(own, if outermost { all } else { own });
                }
                if call.method == method {
                    break;
                }
            }
        });
    }

    /// Returns the costs by stack, truncated to `depth`, over all threads in nanoseconds.
    fn costs(&self, depth: usize) -> FxHashMap<Stack, Cost> {
        let mut all: FxHashMap<Stack, Cost> = FxHashMap::default();
        let mut add = |stack: &Stack, cost: Cost| {
            if cost.calls > 0 {
                all.entry(stack.iter().take(depth).copied().collect()).or_default().add(cost);
            }
        };
        // A thread that ends meanwhile waits for the lock before its costs are moved to those of ended threads.
        let threads = lock(&self.shared.threads);
        for measured in threads.iter() {
            lock(measured).iter().for_each(|(stack, place)| add(stack, place.cost()));
        }
        lock(&self.shared.ended).iter().for_each(|(stack, cost)| add(stack, *cost));
        drop(threads);
        let tick = self.clock.nanoseconds();
        for cost in all.values_mut() {
            // `as` saturates at the limits of the type.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let nanoseconds = |ticks: u64| (ticks as f64 * tick) as u64;
            (cost.own, cost.all) = (nanoseconds(cost.own), nanoseconds(cost.all));
        }
        all
    }

    /// Returns trace, calls, and nanoseconds without callees, sorted by nanoseconds in descending order.
    pub fn rows(&self, state: &AgentState) -> Vec<(u32, u64, u64)> {
        let methods = read(&METHODS).clone();
        let mut rows: Vec<_> = (self.costs(self.depth).into_iter())
            .map(|(stack, cost)| {
                let frames: Vec<_> = (stack.iter())
                    .filter_map(|number| {
                        // The JVM's method IDs are addresses, so no method has such a number.
                        let id = MethodId(usize::MAX - *number as usize);
                        Some((id, Arc::clone(&methods.get(*number as usize)?.method)))
                    })
                    .collect();
                (state.traces.of_methods(0, &frames), cost.calls, cost.own)
            })
            .collect();
        rows.sort_unstable_by_key(|(trace, calls, nanos)| (u64::MAX - nanos, u64::MAX - calls, *trace));
        rows
    }

    /// Returns calls, callee, caller, and nanoseconds with callees, sorted by calls in descending order as in the old agent.
    pub fn calls(&self) -> Vec<(u64, String, Option<String>, u64)> {
        let methods = read(&METHODS).clone();
        let name =
            |number: u32| methods.get(number as usize).map(|rewritten| rewritten.method.with_signature());
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
        Method::from_names("A".to_owned(), name.to_owned(), "()V".to_owned(), None)
    }

    /// Method `main` calls `work` twice, which calls `leaf` once; the exit of the second `leaf` is missed.
    #[test]
    fn calls_are_counted_and_missed_exits_end_with_their_callers() {
        let times = Times::new(4, |_, _| true);
        times.ready.store(true, Ordering::Release);
        let (main, work, leaf) = (
            times.method(named("main"), false),
            times.method(named("work"), false),
            times.method(named("leaf"), false),
        );
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

    /// Traces of a recursion differ only up to the maximum depth.
    #[test]
    fn a_recursion_has_as_many_places_as_traces_are_deep() {
        let times = Times::new(3, |_, _| true);
        times.ready.store(true, Ordering::Release);
        let method = times.method(named("again"), false);
        for _ in 0..1000 {
            times.enter(method);
        }
        for _ in 0..1000 {
            times.exit(method);
        }
        let costs = times.costs(3);
        let mut calls: Vec<_> = costs.iter().map(|(stack, cost)| (stack.len(), cost.calls)).collect();
        calls.sort_unstable();
        assert_eq!(calls, [(1, 1), (2, 1), (3, 998)]);
        THREAD.with(|thread| {
            let thread = thread.borrow();
            assert_eq!((thread.places.len(), thread.steps.len()), (3, 4));
        });
    }

    /// Methods that were rewritten for one recording remain rewritten in all later ones.
    #[test]
    fn the_next_recording_measures_what_it_wants_of_the_methods_of_the_last() {
        let _alone = lock(&super::super::TESTED);
        let first = Times::new(4, |_, _| true);
        first.ready.store(true, Ordering::Release);
        let of = |class: &str| Method::from_names(class.to_owned(), "run".to_owned(), "()V".to_owned(), None);
        let (wanted, other) = (first.method(of("wanted.A"), false), first.method(of("other.B"), false));
        first.enter(wanted);
        crate::record::next_recording();
        let second = Times::new(4, |class, _| class.starts_with("wanted."));
        second.ready.store(true, Ordering::Release);
        assert!(second.has_methods() && !Times::new(4, |_, _| false).has_methods());
        for method in [other, wanted] {
            second.enter(method);
            second.exit(method);
        }
        // This call started in the first recording.
        second.exit(wanted);
        let names: Vec<_> = second.calls().into_iter().map(|(calls, name, ..)| (calls, name)).collect();
        assert_eq!(names, [(1, "wanted.A.run()V".to_owned())]);
        assert!(first.calls().is_empty());
    }
}
