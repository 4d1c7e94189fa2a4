//! Suspension of threads while the heap is walked more than once.

use crate::jvm::{Jni, Ref};
use crate::state::AgentState;

/// Guard of suspended threads, which are resumed on drop.
pub struct SuspendedThreads<'a, 'j> {
    state: &'a AgentState,
    threads: Vec<Ref<'j>>,
    virtual_threads: bool,
}

impl<'a, 'j> SuspendedThreads<'a, 'j> {
    /// Suspends all threads except the current one.
    ///
    /// The caller must hold the locks that these threads may hold while they call the JVM
    /// ([`crate::record::classes::Classes::hold`], [`crate::record::threads::Threads::hold`]), so that none of them is
    /// suspended while holding a lock.
    pub fn suspend_others(state: &'a AgentState, jni: &'j Jni<'_>) -> Self {
        let jvmti = state.jvmti;
        let this = jvmti.current_thread(jni).ok();
        // A virtual thread that called `System.exit` would otherwise suspend itself.
        let spared = this.filter(|this| jni.is_virtual(*this));
        let virtual_threads =
            state.virtual_threads.is_some() && jvmti.suspend_virtual_threads(spared).is_ok();
        let others: Vec<_> = (jvmti.threads(jni).unwrap_or_default().into_iter())
            .filter(|thread| this.is_none_or(|this| !jni.same(*thread, this)))
            .collect();
        // Without the capability, no thread is suspended, and the program may change the heap between walks.
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
