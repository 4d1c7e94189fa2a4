//! MONITOR DUMP: the states of threads, and the monitors that they own or for which they wait.

use hprof_format::text;
use rustc_hash::FxHashSet;

use super::{Output, serial};
use crate::jvm::{Jni, Monitor, Ref, ThreadState};
use crate::state::AgentState;

impl Output {
    /// Writes MONITOR DUMP: the states of all threads, and the monitors that they own or for which they wait.
    pub fn monitor_dump(&mut self, state: &AgentState, jni: &Jni<'_>) {
        let jvmti = state.jvmti;
        let mut out = Vec::new();
        jni.frame(crate::jvm::MAX_REFERENCES, |jni| {
            // Traces must be written before references to them.
            let mut states = Vec::new();
            let mut objects = Vec::new();
            for thread in jvmti.threads(jni).unwrap_or_default() {
                let Some(known) = state.threads.register_running(jvmti, jni, &state.ids, thread) else {
                    continue;
                };
                let doing = jvmti.thread_state(thread).unwrap_or(ThreadState(0));
                states.push((known.serial, state.trace_of(jni, thread, known.serial), status(doing)));
                objects.extend(jvmti.owned_monitors(jni, thread).unwrap_or_default());
                let contended = jvmti.contended_monitor(jni, thread).ok().flatten();
                let awaited = || {
                    let waits = doing.has(ThreadState::BLOCKED) || doing.has(ThreadState::IN_OBJECT_WAIT);
                    waits.then(|| state.monitors.awaited_monitor(jni, known.serial)).flatten()
                };
                objects.extend(contended.or_else(awaited));
            }
            self.definitions(state);
            let _ = text::monitor_dump_begin(&mut out);
            for (thread, trace, status) in states {
                let _ = text::thread_state(&mut out, thread, serial(trace), &status);
            }
            let mut met = FxHashSet::default();
            for object in objects {
                let id = {
                    // The object may be a class object to which another thread is assigning an ID.
                    let _held = state.classes.hold();
                    state.object_id(object)
                };
                let Some(id) = id else { continue };
                if !met.insert(id) {
                    continue;
                }
                let signature = jni.class_of(object).and_then(|class| jvmti.class_signature(class).ok());
                let Ok(monitor) = jvmti.monitor(jni, object) else { continue };
                let signature = signature.as_deref().unwrap_or("Ljava/lang/Object;");
                let _ = text::monitor(&mut out, &monitor_lines(state, signature, &monitor));
            }
            let _ = text::monitor_dump_end(&mut out);
        });
        self.flush(&mut out, 0);
    }
}

/// Returns a monitor with the serial numbers of its threads. Threads without one, such as virtual threads, are omitted.
fn monitor_lines<'a>(state: &AgentState, signature: &'a str, monitor: &Monitor<'_>) -> text::Monitor<'a> {
    let number =
        |thread: Ref<'_>| Some(state.threads.serial(state.jvmti, thread)).filter(|serial| *serial != 0);
    let numbers =
        |threads: &[Ref<'_>]| threads.iter().filter_map(|thread| number(*thread)).collect::<Vec<_>>();
    let notified = numbers(&monitor.notified);
    let mut entering = numbers(&monitor.entering);
    // Before JDK 23, HotSpot counted threads that wait to be notified among those that wait to enter.
    let waits: FxHashSet<u32> = notified.iter().copied().collect();
    entering.retain(|thread| !waits.contains(thread));
    let owner = monitor.owner.and_then(|(owner, entries)| Some((number(owner)?, entries.cast_unsigned())));
    text::Monitor { signature, owner, entering, notified }
}

/// Returns the code for a thread state in MONITOR DUMP.
fn status(state: ThreadState) -> String {
    if !state.has(ThreadState::ALIVE) {
        return if state.has(ThreadState::TERMINATED) { "ZO" } else { "NS" }.to_owned();
    }
    let mut words = String::new();
    for (bits, word) in [
        (ThreadState::SUSPENDED, "S|"),
        (ThreadState::INTERRUPTED, "intr|"),
        (ThreadState::IN_NATIVE, "native|"),
    ] {
        if state.has(bits) {
            words.push_str(word);
        }
    }
    words.push_str(if state.has(ThreadState::SLEEPING) {
        "SL"
    } else if state.has(ThreadState::BLOCKED) {
        "MW"
    } else if state.has(ThreadState::WAITING) {
        "CW"
    } else if state.has(ThreadState::RUNNABLE) {
        "R"
    } else {
        "UN"
    });
    words
}
