//! Threads that stand still while the heap is walked more than once.

use crate::agent::Agent;
use crate::jvm::{Jni, Ref};

/// Resumes what it suspended when it is dropped.
pub struct Suspended<'a, 'j> {
    agent: &'a Agent,
    threads: Vec<Ref<'j>>,
    virtual_threads: bool,
}

impl<'a, 'j> Suspended<'a, 'j> {
    /// Suspends all threads but this one.
    ///
    /// The caller holds what those threads may hold while they call the JVM ([`crate::record::classes::Classes::hold`],
    /// [`crate::record::threads::Threads::hold`]): none of them is stopped with it.
    pub fn all(agent: &'a Agent, jni: &'j Jni<'_>) -> Self {
        let jvmti = agent.jvmti;
        let virtual_threads = agent.virtual_threads.is_some() && jvmti.suspend_virtual_threads().is_ok();
        let this = jvmti.current_thread(jni).ok();
        let others: Vec<_> = (jvmti.threads(jni).unwrap_or_default().into_iter())
            .filter(|thread| this.is_none_or(|this| !jni.same(*thread, this)))
            .collect();
        // Without the capability nothing is suspended, and the walks see what the program does between them.
        let done = jvmti.suspend(&others).unwrap_or_default();
        let threads =
            others.into_iter().zip(done).filter_map(|(thread, done)| done.then_some(thread)).collect();
        Self { agent, threads, virtual_threads }
    }
}

impl Drop for Suspended<'_, '_> {
    fn drop(&mut self) {
        self.agent.jvmti.resume(&self.threads);
        if self.virtual_threads {
            self.agent.jvmti.resume_virtual_threads();
        }
    }
}
