//! The end of a recording, after which another one can begin.
//!
//! The JVM may be in the middle of sending events when they are turned off. So a thread that handles an event which may tag an
//! object says so ([`Agent::enter`]); when none does any more, and the agent's own threads have ended, tags and tables are
//! cleared. What is left of a recording that was stopped is a value of some hundred bytes: events that come late find it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::jvm::{Event, Events, Jni};
use crate::record::lock;

/// How long is waited for threads that are between two calls of the JVM, or collect garbage.
const PATIENCE: Duration = Duration::from_secs(10);

/// A thread that handles an event.
pub struct InEvent<'a>(&'a Agent);

impl Drop for InEvent<'_> {
    fn drop(&mut self) {
        self.0.in_events.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Agent {
    /// An event is handled. `None` if events are handled no more.
    #[inline]
    pub fn enter(&self) -> Option<InEvent<'_>> {
        // Counted before it is looked: who closed before waits for this thread, or this thread sees that it is closed.
        self.in_events.fetch_add(1, Ordering::SeqCst);
        let event = InEvent(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(event)
    }

    /// Turns events off.
    pub fn stop_events(&self) {
        for event in [
            Event::SampledObjectAlloc,
            Event::VmObjectAlloc,
            Event::ContendedEnter,
            Event::ContendedEntered,
            Event::MonitorWait,
            Event::MonitorWaited,
            Event::DataDumpRequest,
            Event::ClassFileLoad,
            Event::ThreadStart,
            Event::ThreadEnd,
        ] {
            self.jvmti.disable(event);
        }
        self.closed.store(true, Ordering::SeqCst);
        self.end_recording();
        if let Some(times) = &self.times {
            times.ready.store(false, Ordering::Release);
        }
        if let Some(samples) = &self.samples {
            samples.stop();
        }
    }

    /// Clears what was recorded, once the recording was stopped. So many of the agent's threads still run: the one that calls
    /// this, if it is one of them.
    ///
    /// # Errors
    /// If threads are still busy with it. It can be tried again.
    pub fn retire(&self, jni: &Jni<'_>, threads: usize) -> Result<(), String> {
        let mut retired = lock(&self.retired);
        if *retired {
            return Ok(());
        }
        self.collector.end();
        let busy =
            || self.running.load(Ordering::Acquire) > threads || self.in_events.load(Ordering::SeqCst) > 0;
        let start = Instant::now();
        while busy() {
            if start.elapsed() > PATIENCE || self.collector.is_ending() {
                return Err("threads are still busy with the recording that was stopped".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for event in [Event::CollectionStart, Event::CollectionFinish] {
            self.jvmti.disable(event);
        }
        self.clear(jni).map_err(|error| format!("tags of the recording that was stopped stay: {error}"))?;
        if let Some(times) = &self.times {
            times.clear();
        }
        if let Some(samples) = &self.samples {
            samples.clear();
        }
        self.jvmti.relinquish_capabilities();
        *retired = true;
        Ok(())
    }
}
