//! Garbage collections that the agent requests on a separate thread.
//!
//! When the JVM ends, HotSpot stops the threads of concurrent collectors (ZGC, Shenandoah) before it sends `VMDeath`. A thread
//! that requests a collection at this time, or shortly before, waits forever. Such a thread must not hold anything that other
//! threads need, so threads that write dumps do not request collections themselves.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::jvm::Jvmti;
use crate::messages::complain;
use crate::record::lock;

/// Maximum time to wait for a pause of a collection while the JVM ends, as all threads must reach a safepoint first.
const PATIENCE: Duration = Duration::from_millis(500);

/// Requester of garbage collections.
#[derive(Debug)]
pub struct CollectionRequester {
    /// `None` once no more requests are accepted.
    requests: Mutex<Option<Sender<()>>>,
    receiver: Mutex<Option<Receiver<()>>>,
    /// Number of requested collections.
    asked: AtomicU64,
    /// Number of finished collections.
    collected: AtomicU64,
    /// Number of starts and ends of pauses of all collections.
    pauses: AtomicU64,
    /// `true` during a pause of a collection.
    paused: AtomicBool,
    /// `true` once `VMDeath` was received.
    ending: AtomicBool,
    stuck: AtomicBool,
}

impl Default for CollectionRequester {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self {
            requests: Mutex::new(Some(sender)),
            receiver: Mutex::new(Some(receiver)),
            asked: AtomicU64::new(0),
            collected: AtomicU64::new(0),
            pauses: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
        }
    }
}

impl CollectionRequester {
    /// Runs requested collections until [`Self::end`]. To be called on a thread of the agent.
    pub fn run(&self, jvmti: Jvmti) {
        let Some(receiver) = lock(&self.receiver).take() else { return };
        while receiver.recv().is_ok() {
            if let Err(error) = jvmti.collect_garbage() {
                complain(&format!("cannot collect garbage: {error}"));
            }
            self.collected.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Requests a collection and waits until it has finished. Returns `false` if it could not be requested, or will never
    /// finish.
    pub fn collect(&self) -> bool {
        if self.is_stuck() {
            return false;
        }
        {
            let requests = lock(&self.requests);
            let Some(requests) = requests.as_ref() else { return false };
            self.asked.fetch_add(1, Ordering::AcqRel);
            if requests.send(()).is_err() {
                return false;
            }
        }
        let mine = self.asked.load(Ordering::Acquire);
        let mut seen = None;
        let mut since = Instant::now();
        while self.collected.load(Ordering::Acquire) < mine {
            let now = Some((self.pauses.load(Ordering::Acquire), self.is_ending()));
            if seen != now || self.paused.load(Ordering::Acquire) {
                (seen, since) = (now, Instant::now());
            } else if self.is_ending() && since.elapsed() > PATIENCE {
                self.stuck.store(true, Ordering::Release);
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Handles the event for the start of a pause. Must not call the JVM.
    pub fn begin_pause(&self) {
        self.paused.store(true, Ordering::Release);
        self.pauses.fetch_add(1, Ordering::AcqRel);
    }

    /// Handles the event for the end of a pause. Must not call the JVM.
    pub fn end_pause(&self) {
        self.paused.store(false, Ordering::Release);
        self.pauses.fetch_add(1, Ordering::AcqRel);
    }

    /// Records that the JVM is ending: from now on a collection may never finish.
    pub fn jvm_ends(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Returns `true` if the JVM is ending.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Returns `true` if a requested collection will never finish.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// Ends the collector's thread after its current request.
    pub fn end(&self) {
        *lock(&self.requests) = None;
    }
}
