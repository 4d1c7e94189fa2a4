//! Threads that started and ended.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;

use super::lock;
use crate::jvm::{Jni, Jvmti, Ref, ThreadInfo};
use crate::tags::{Ids, Tag};

/// Starts and ends that are kept until something is written. Of later ones there is no record.
const MAX_HAPPENED: usize = 1 << 20;

/// The serial number of the first thread.
const FIRST_SERIAL: u32 = 200_001;

/// A thread.
#[derive(Debug)]
pub struct ThreadRecord {
    /// Its object ID.
    pub id: u64,
    /// Serial number.
    pub serial: u32,
    /// Name and group.
    pub info: ThreadInfo,
}

/// A thread started or ended.
#[derive(Debug, Clone)]
pub enum Happened {
    /// It started.
    Start(Arc<ThreadRecord>),
    /// The thread with this serial number ended.
    End(u32),
}

#[derive(Debug, Default)]
struct ThreadTable {
    by_id: FxHashMap<u64, Arc<ThreadRecord>>,
    happened: Vec<Happened>,
    started: u32,
}

impl ThreadTable {
    fn happened(&mut self, happened: Happened) {
        if self.happened.len() < MAX_HAPPENED {
            self.happened.push(happened);
        }
    }
}

/// All threads that are alive, and what happened since it was written last.
#[derive(Debug, Default)]
pub struct Threads {
    table: Mutex<ThreadTable>,
    /// As [`super::classes::Classes::hold`].
    registering: Mutex<()>,
}

impl Threads {
    /// No thread gets a tag while this is held.
    pub fn hold(&self) -> std::sync::MutexGuard<'_, ()> {
        lock(&self.registering)
    }

    /// The thread with this object ID.
    pub fn get(&self, id: u64) -> Option<Arc<ThreadRecord>> {
        lock(&self.table).by_id.get(&id).cloned()
    }

    /// The serial number of a thread; 0 if it is not known.
    pub fn serial(&self, jvmti: Jvmti, thread: Ref<'_>) -> u32 {
        let id = jvmti.tag(thread).map_or(0, |tag| Tag(tag).id());
        if id == 0 { 0 } else { self.get(id).map_or(0, |thread| thread.serial) }
    }

    /// A thread that runs: it is known after this.
    pub fn started(
        &self,
        jvmti: Jvmti,
        jni: &Jni<'_>,
        ids: &Ids,
        thread: Ref<'_>,
    ) -> Option<Arc<ThreadRecord>> {
        let _held = self.hold();
        self.register(jvmti, jni, ids, thread)
    }

    /// As [`Self::started`], while [`Self::hold`] is held.
    pub fn register(
        &self,
        jvmti: Jvmti,
        jni: &Jni<'_>,
        ids: &Ids,
        thread: Ref<'_>,
    ) -> Option<Arc<ThreadRecord>> {
        let tag = Tag(jvmti.tag(thread).ok()?);
        if tag.is_known() {
            // It has ended, and the JVM still lists it.
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
        table.happened(Happened::Start(Arc::clone(&known)));
        drop(table);
        jvmti.set_tag(thread, tag.with_id(id).0).ok()?;
        Some(known)
    }

    /// A thread that ends.
    pub fn ended(&self, jvmti: Jvmti, thread: Ref<'_>) {
        let tag = jvmti.tag(thread).map_or(Tag::default(), Tag);
        if tag.id() != 0 {
            let _ = jvmti.set_tag(thread, tag.with_known().0);
        }
        let mut table = lock(&self.table);
        if let Some(thread) = table.by_id.remove(&tag.id()) {
            table.happened(Happened::End(thread.serial));
        }
    }

    /// Forgets all of them. Their tags have to be cleared before another recording.
    pub fn clear(&self) {
        *lock(&self.table) = ThreadTable::default();
    }

    /// What happened since the last time.
    pub fn take_happened(&self) -> Vec<Happened> {
        std::mem::take(&mut lock(&self.table).happened)
    }
}
