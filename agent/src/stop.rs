//! End of a recording, after which another can begin.
//!
//! The JVM may still be sending events when they are disabled. So threads that handle an event which may tag an object are
//! counted ([`Agent::enter`]). When no such thread is left, and the agent's own threads have ended, tags and tables are
//! cleared. A value of a few hundred bytes remains of a stopped recording, for late events.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::jvm::{Event, Events, Jni};
use crate::record::lock;

/// Maximum time to wait for threads that are between two calls of the JVM, or that collect garbage.
const PATIENCE: Duration = Duration::from_secs(10);

/// Guard that counts a thread while it handles an event.
pub struct InEvent<'a>(&'a Agent);

impl Drop for InEvent<'_> {
    fn drop(&mut self) {
        self.0.in_events.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Agent {
    /// Starts handling an event. `None` if events are no longer handled.
    #[inline]
    pub fn enter(&self) -> Option<InEvent<'_>> {
        // Counted before the check, so that either the closing thread waits for this one, or this thread sees that the
        // recording is closed.
        self.in_events.fetch_add(1, Ordering::SeqCst);
        let event = InEvent(self);
        (!self.closed.load(Ordering::SeqCst)).then_some(event)
    }

    /// Disables all events of the recording.
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

    /// Clears the recorded data of a stopped recording. `threads` is the number of the agent's threads that are still running
    /// because one of them is the caller.
    ///
    /// # Errors
    /// If threads are still using the data; the call can then be repeated.
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
                return Err("threads are still using the stopped recording".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        for event in [Event::CollectionStart, Event::CollectionFinish] {
            self.jvmti.disable(event);
        }
        self.clear(jni)
            .map_err(|error| format!("cannot clear the tags of the stopped recording: {error}"))?;
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
