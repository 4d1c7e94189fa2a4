//! CPU SAMPLES: samples of the stacks of threads that use CPU time.
//!
//! The old agent counted every *runnable* thread, which includes threads that wait in a system call. If the JVM provides the
//! CPU time of threads, a sample of this agent represents `interval` milliseconds of CPU time: the time of each thread is
//! summed, and for every complete interval its stack is counted once. A stack is read where the JVM can stop the thread (a
//! safepoint poll), so a sample can be slightly after the code that ran (safepoint bias).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::lock;
use crate::jvm::{Frame, Jni, Ref, ThreadState};
use crate::state::AgentState;
use crate::tags::Tag;

/// Divisor for the maximum share of a processor that the sampler uses: one fiftieth. With very many threads it samples less
/// often, but the time of each thread is still counted. Waiting for a thread to reach a safepoint poll uses no processor time.
const MAX_SHARE: u32 = 50;

/// Numbers of samples by trace, and the state of the sampler.
#[derive(Debug, Default)]
pub struct Samples {
    counts: Mutex<FxHashMap<u32, u64>>,
    total: AtomicU64,
    stopped: Mutex<bool>,
    /// Wakes the sampler when it is to stop, as intervals may be long.
    wake: Condvar,
    selection: Mutex<ThreadSelection>,
}

/// Threads to which a command for CPU sampling applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampledThreads {
    /// All threads, including those that start later.
    All,
    /// The thread whose object has this ID.
    One(u64),
}

/// Threads that are sampled.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ThreadSelection {
    /// All threads except those with these IDs.
    AllExcept(FxHashSet<u64>),
    /// Only the threads with these IDs.
    Only(FxHashSet<u64>),
}

impl Default for ThreadSelection {
    fn default() -> Self {
        Self::AllExcept(FxHashSet::default())
    }
}

impl ThreadSelection {
    fn add(&mut self, threads: SampledThreads) {
        match (self, threads) {
            (all, SampledThreads::All) => *all = Self::default(),
            (Self::AllExcept(ids), SampledThreads::One(id)) => drop(ids.remove(&id)),
            (Self::Only(ids), SampledThreads::One(id)) => drop(ids.insert(id)),
        }
    }

    fn remove(&mut self, threads: SampledThreads) {
        match (self, threads) {
            (all, SampledThreads::All) => *all = Self::Only(FxHashSet::default()),
            (Self::AllExcept(ids), SampledThreads::One(id)) => drop(ids.insert(id)),
            (Self::Only(ids), SampledThreads::One(id)) => drop(ids.remove(&id)),
        }
    }

    fn has(&self, id: u64) -> bool {
        match self {
            Self::AllExcept(ids) => !ids.contains(&id),
            Self::Only(ids) => ids.contains(&id),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Only(ids) if ids.is_empty())
    }
}

/// CPU time of a thread that was read last.
#[derive(Debug, Default, Clone, Copy)]
struct CpuUsage {
    nanos: u64,
    /// CPU time in nanoseconds that no sample represents yet.
    rest: u64,
    tick: u64,
}

impl Samples {
    /// Returns the total number of samples, and the trace numbers with their numbers of samples in descending order.
    pub fn counts(&self) -> (u64, Vec<(u32, u64)>) {
        let counts = lock(&self.counts);
        let mut rows: Vec<_> = counts.iter().map(|(trace, count)| (*trace, *count)).collect();
        rows.sort_unstable_by_key(|(trace, count)| (u64::MAX - count, *trace));
        (self.total.load(Ordering::Relaxed), rows)
    }

    /// Resets the counts.
    pub fn clear(&self) {
        lock(&self.counts).clear();
        self.total.store(0, Ordering::Relaxed);
    }

    /// Stops the sampler for the rest of the recording.
    pub fn stop(&self) {
        *lock(&self.stopped) = true;
        self.wake.notify_all();
    }

    /// Stops sampling threads until [`Self::resume`].
    pub fn pause(&self, threads: SampledThreads) {
        lock(&self.selection).remove(threads);
    }

    /// Samples threads again after [`Self::pause`].
    pub fn resume(&self, threads: SampledThreads) {
        lock(&self.selection).add(threads);
    }

    /// Forgets the choice for a thread that has ended, whose ID is not used again.
    pub fn forget(&self, thread: u64) {
        match &mut *lock(&self.selection) {
            ThreadSelection::AllExcept(ids) | ThreadSelection::Only(ids) => drop(ids.remove(&thread)),
        }
    }

    /// Returns `true` if any thread is sampled.
    pub fn is_on(&self) -> bool {
        !lock(&self.selection).is_empty()
    }

    fn count(&self, trace: u32, samples: u64) {
        *lock(&self.counts).entry(trace).or_default() += samples;
        self.total.fetch_add(samples, Ordering::Relaxed);
    }

    /// Takes samples until [`Self::stop`]. To be called on a separate thread.
    pub fn run(&self, state: &AgentState, jni: &Jni<'_>) {
        let interval = Duration::from_millis(state.options.interval_ms);
        let mut used: FxHashMap<u64, CpuUsage> = FxHashMap::default();
        let mut frames = Vec::new();
        let mut tick = 0u64;
        // CPU time of the sampler itself, or elapsed time if the JVM does not provide CPU time.
        let this = state.jvmti.current_thread(jni).ok().filter(|_| state.has_cpu_time);
        let clock = || this.and_then(|this| state.jvmti.thread_cpu_time(this).ok()).map(Duration::from_nanos);
        while !*lock(&self.stopped) {
            let start = Instant::now();
            let before = clock();
            let selection = lock(&self.selection).clone();
            if selection.is_empty() {
                // The CPU time that threads use meanwhile must not count when sampling is resumed.
                used.clear();
            } else {
                tick += 1;
                let mut sampler =
                    Sampler { samples: self, state, interval, selection, used: &mut used, tick };
                jni.frame(crate::jvm::MAX_REFERENCES, |jni| sampler.sample(jni, &mut frames));
                if tick.is_multiple_of(1024) {
                    used.retain(|_, used| used.tick + 1024 > tick);
                }
            }
            let took = start.elapsed();
            let used = match (before, clock()) {
                (Some(before), Some(after)) => after.saturating_sub(before),
                _ => took,
            };
            let rest = interval.saturating_sub(took).max(used * (MAX_SHARE - 1));
            let stopped = self.wake.wait_timeout_while(lock(&self.stopped), rest, |stopped| !*stopped);
            drop(stopped.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

struct Sampler<'a> {
    samples: &'a Samples,
    state: &'a AgentState,
    interval: Duration,
    selection: ThreadSelection,
    used: &'a mut FxHashMap<u64, CpuUsage>,
    tick: u64,
}

impl Sampler<'_> {
    fn sample(&mut self, jni: &Jni<'_>, frames: &mut Vec<Frame>) {
        let state = self.state;
        for thread in state.jvmti.threads(jni).unwrap_or_default() {
            let samples = self.samples_of(thread);
            if samples > 0 {
                let mounted = state.virtual_threads.as_ref().and_then(|of| of.get(jni, thread));
                let running = mounted.unwrap_or(thread);
                let stack = state.jvmti.stack(Some(running), frames, state.depth());
                if stack.is_ok() && !frames.is_empty() {
                    let serial =
                        if state.options.threads { state.threads.serial(state.jvmti, thread) } else { 0 };
                    self.samples.count(state.number(jni, serial, frames), samples);
                }
                if let Some(mounted) = mounted {
                    jni.delete(mounted);
                }
            }
            jni.delete(thread);
        }
    }

    /// Returns the number of samples to count for a thread, according to the CPU time that it used.
    fn samples_of(&mut self, thread: Ref<'_>) -> u64 {
        let jvmti = self.state.jvmti;
        let id = jvmti.tag(thread).map_or(0, |tag| Tag(tag).id());
        if !self.selection.has(id) {
            // As above: the thread's CPU time does not count until it is sampled again.
            self.used.remove(&id);
            return 0;
        }
        if !self.state.has_cpu_time {
            let state = jvmti.thread_state(thread).unwrap_or(ThreadState(0));
            return u64::from(state.has(ThreadState::RUNNABLE) && !state.has(ThreadState::SUSPENDED));
        }
        if id == 0 {
            // The start of this thread has not been reported yet.
            return 0;
        }
        let Ok(nanos) = jvmti.thread_cpu_time(thread) else { return 0 };
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        let used = self.used.entry(id).or_insert(CpuUsage { nanos, rest: 0, tick: self.tick });
        used.tick = self.tick;
        used.rest += nanos.saturating_sub(used.nanos);
        used.nanos = nanos;
        let samples = used.rest / interval;
        used.rest %= interval;
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_select_threads() {
        use SampledThreads::{All, One};
        let mut selection = ThreadSelection::default();
        selection.remove(One(8));
        assert!(selection.has(16) && !selection.has(8) && !selection.is_empty());
        selection.add(One(8));
        assert_eq!(selection, ThreadSelection::default());
        selection.remove(All);
        assert!(selection.is_empty() && !selection.has(8));
        selection.add(One(8));
        assert!(selection.has(8) && !selection.has(16) && !selection.is_empty());
        selection.remove(One(8));
        assert!(selection.is_empty());
        selection.add(All);
        assert!(selection.has(8) && selection.has(16));
    }
}
