//! Garbage collections that the agent asks for, on a thread of their own.
//!
//! When the JVM ends, HotSpot stops the threads of concurrent collectors (ZGC, Shenandoah) before it sends `VMDeath`: who asks
//! for a collection then waits for ever, and so does who asked a moment before. Such a thread may hold nothing that others
//! need, so none of those that write dumps asks itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::jvm::Jvmti;
use crate::messages::complain;
use crate::record::lock;

/// How long no pause of a collection may come, while the JVM ends: all threads have to come to a safepoint first.
const PATIENCE: Duration = Duration::from_millis(500);

/// Asks the JVM to collect garbage.
#[derive(Debug)]
pub struct Collector {
    /// `None`: no more.
    requests: Mutex<Option<Sender<()>>>,
    receiver: Mutex<Option<Receiver<()>>>,
    /// Collections that were asked for, and those that ended.
    asked: AtomicU64,
    collected: AtomicU64,
    /// Pauses of any collection: how many started or ended, and whether one is now.
    pauses: AtomicU64,
    paused: AtomicBool,
    /// `VMDeath` came.
    ending: AtomicBool,
    stuck: AtomicBool,
}

impl Default for Collector {
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

impl Collector {
    /// One collection after another, until [`Self::end`]: on a thread of the agent.
    pub fn run(&self, jvmti: Jvmti) {
        let Some(receiver) = lock(&self.receiver).take() else { return };
        while receiver.recv().is_ok() {
            if let Err(error) = jvmti.collect_garbage() {
                complain(&format!("cannot collect garbage: {error}"));
            }
            self.collected.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Collects garbage and waits for it; says whether it was collected.
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

    /// A pause starts: nothing of the JVM may be called.
    pub fn started(&self) {
        self.paused.store(true, Ordering::Release);
        self.pauses.fetch_add(1, Ordering::AcqRel);
    }

    /// It ends: as above.
    pub fn finished(&self) {
        self.paused.store(false, Ordering::Release);
        self.pauses.fetch_add(1, Ordering::AcqRel);
    }

    /// From now on a collection may never come.
    pub fn jvm_ends(&self) {
        self.ending.store(true, Ordering::Release);
    }

    /// Whether the JVM ends.
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Whether one never came.
    pub fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// The thread ends when it has done what was asked for.
    pub fn end(&self) {
        *lock(&self.requests) = None;
    }
}
