//! CPU SAMPLES: samples of the stacks of threads that use CPU time.
//!
//! The old agent counted every *runnable* thread, which includes threads that wait in a system call. If the JVM provides the
//! CPU time of threads, a sample of this agent represents `interval` milliseconds of CPU time: the time of each thread is
//! summed, and for every complete interval its stack is counted once. A stack is read where the JVM can stop the thread (a
//! safepoint poll), so a sample can be slightly after the code that ran (safepoint bias).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

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
    paused: AtomicBool,
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

    /// Pauses or resumes sampling.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Returns `true` if sampling is not paused.
    pub fn is_on(&self) -> bool {
        !self.paused.load(Ordering::Relaxed)
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
            if self.is_on() {
                tick += 1;
                let mut sampler = Sampler { samples: self, state, interval, used: &mut used, tick };
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
        if !self.state.has_cpu_time {
            let state = jvmti.thread_state(thread).unwrap_or(ThreadState(0));
            return u64::from(state.has(ThreadState::RUNNABLE) && !state.has(ThreadState::SUSPENDED));
        }
        let (Ok(tag), Ok(nanos)) = (jvmti.tag(thread), jvmti.thread_cpu_time(thread)) else { return 0 };
        let id = Tag(tag).id();
        if id == 0 {
            // The start of this thread has not been reported yet.
            return 0;
        }
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
