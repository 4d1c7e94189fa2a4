//! Suspension of threads while the heap is walked more than once.

use crate::jvm::{Jni, Ref};
use crate::state::AgentState;

/// Suspended threads, which are resumed when this is dropped.
pub struct SuspendedThreads<'a, 'j> {
    state: &'a AgentState,
    threads: Vec<Ref<'j>>,
    virtual_threads: bool,
}

impl<'a, 'j> SuspendedThreads<'a, 'j> {
    /// Suspends all threads except this one.
    ///
    /// The caller holds the locks that those threads may hold while they call the JVM
    /// ([`crate::record::classes::Classes::hold`], [`crate::record::threads::Threads::hold`]), so that
    /// none of them is suspended with a lock.
    pub fn suspend_others(state: &'a AgentState, jni: &'j Jni<'_>) -> Self {
        let jvmti = state.jvmti;
        let this = jvmti.current_thread(jni).ok();
        // A virtual thread that called `System.exit` would suspend itself too.
        let spared = this.filter(|this| jni.is_virtual(*this));
        let virtual_threads =
            state.virtual_threads.is_some() && jvmti.suspend_virtual_threads(spared).is_ok();
        let others: Vec<_> = (jvmti.threads(jni).unwrap_or_default().into_iter())
            .filter(|thread| this.is_none_or(|this| !jni.same(*thread, this)))
            .collect();
        // Without the capability nothing is suspended, and the walks see changes by the program between
        // them.
        let done = jvmti.suspend(&others).unwrap_or_default();
        let threads =
            others.into_iter().zip(done).filter_map(|(thread, done)| done.then_some(thread)).collect();
        Self { state, threads, virtual_threads }
    }
}

impl Drop for SuspendedThreads<'_, '_> {
    fn drop(&mut self) {
        self.state.jvmti.resume(&self.threads);
        if self.virtual_threads {
            self.state.jvmti.resume_virtual_threads();
        }
    }
}
