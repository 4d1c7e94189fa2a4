//! Registered threads, and their starts and ends.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::lock;
use crate::jvm::{Jni, Jvmti, Ref, ThreadInfo};
use crate::tags::{Ids, Tag};

/// Maximum number of starts and ends that are stored between two dumps. Later ones are lost.
const MAX_HAPPENED: usize = 1 << 20;

/// Serial number of the first registered thread.
const FIRST_SERIAL: u32 = 200_001;

/// Registered thread.
#[derive(Debug)]
pub struct ThreadRecord {
    /// ID of the thread object.
    pub id: u64,
    /// Serial number of the thread in output.
    pub serial: u32,
    /// Names of the thread and its group.
    pub info: ThreadInfo,
}

/// Start or end of a thread.
#[derive(Debug, Clone)]
pub enum ThreadEvent {
    /// Start of a thread.
    Start(Arc<ThreadRecord>),
    /// End of the thread with this serial number.
    End(u32),
}

#[derive(Debug, Default)]
struct ThreadTable {
    by_id: FxHashMap<u64, Arc<ThreadRecord>>,
    events: Vec<ThreadEvent>,
    started: u32,
}

impl ThreadTable {
    fn push_event(&mut self, happened: ThreadEvent) {
        if self.events.len() < MAX_HAPPENED {
            self.events.push(happened);
        }
    }
}

/// Live threads of a recording, and the starts and ends since the last dump.
#[derive(Debug, Default)]
pub struct Threads {
    table: Mutex<ThreadTable>,
    /// Lock for [`Self::hold`], with the same use as in [`super::classes::Classes`].
    registering: Mutex<()>,
}

impl Threads {
    /// Prevents the tagging of threads while the guard is held.
    pub fn hold(&self) -> std::sync::MutexGuard<'_, ()> {
        lock(&self.registering)
    }

    /// Returns the thread whose object has this ID.
    pub fn get(&self, id: u64) -> Option<Arc<ThreadRecord>> {
        lock(&self.table).by_id.get(&id).cloned()
    }

    /// Returns the serial number of a thread; 0 if it is not registered.
    pub fn serial(&self, jvmti: Jvmti, thread: Ref<'_>) -> u32 {
        let id = jvmti.tag(thread).map_or(0, |tag| Tag(tag).id());
        if id == 0 { 0 } else { self.get(id).map_or(0, |thread| thread.serial) }
    }

    /// Registers a thread that is already running.
    pub fn register_running(
        &self,
        jvmti: Jvmti,
        jni: &Jni<'_>,
        ids: &Ids,
        thread: Ref<'_>,
    ) -> Option<Arc<ThreadRecord>> {
        let _held = self.hold();
        self.register(jvmti, jni, ids, thread)
    }

    /// Registers a thread. The caller must hold [`Self::hold`].
    pub fn register(
        &self,
        jvmti: Jvmti,
        jni: &Jni<'_>,
        ids: &Ids,
        thread: Ref<'_>,
    ) -> Option<Arc<ThreadRecord>> {
        let tag = Tag(jvmti.tag(thread).ok()?);
        if tag.is_known() {
            // The thread has ended, but the JVM still lists it.
            return None;
        }
        if let Some(known) = self.get(tag.id()).filter(|_| tag.id() != 0) {
            return Some(known);
        }
        let info = jvmti.thread_info(jni, thread).unwrap_or_default();
        let id = match tag.id() {
            0 => ids.next(jvmti.object_size(thread).unwrap_or(8)),
            id => id,
        };
        let mut table = lock(&self.table);
        let serial = FIRST_SERIAL.saturating_add(table.started);
        table.started = table.started.saturating_add(1);
        let known = Arc::new(ThreadRecord { id, serial, info });
        table.by_id.insert(id, Arc::clone(&known));
        table.push_event(ThreadEvent::Start(Arc::clone(&known)));
        drop(table);
        jvmti.set_tag(thread, tag.with_id(id).0).ok()?;
        Some(known)
    }

    /// Records the end of a thread. Returns the thread, if it was registered.
    pub fn remove_ended(&self, jvmti: Jvmti, thread: Ref<'_>) -> Option<Arc<ThreadRecord>> {
        let tag = jvmti.tag(thread).map_or(Tag::default(), Tag);
        if tag.id() != 0 {
            let _ = jvmti.set_tag(thread, tag.with_known().0);
        }
        let mut table = lock(&self.table);
        let ended = table.by_id.remove(&tag.id());
        if let Some(thread) = &ended {
            table.push_event(ThreadEvent::End(thread.serial));
        }
        ended
    }

    /// Removes all threads. Their tags must be cleared before another recording starts.
    pub fn clear(&self) {
        *lock(&self.table) = ThreadTable::default();
    }

    /// Returns the starts and ends since the last call.
    pub fn take_events(&self) -> Vec<ThreadEvent> {
        std::mem::take(&mut lock(&self.table).events)
    }
}
