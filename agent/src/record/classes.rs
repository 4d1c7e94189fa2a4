//! Registered classes. The tag of a class object contains the ID by which the agent identifies the class.

use std::sync::{Arc, Mutex, RwLock};

use rustc_hash::FxHashMap;

use super::{lock, read, write};
use crate::jvm::{Jni, Jvmti, Ref};
use crate::tags::{Ids, Tag};

/// Registered class.
#[derive(Debug, PartialEq, Eq)]
pub struct Class {
    /// ID of the class object.
    pub id: u64,
    /// Serial number of the class in output, from 1.
    pub serial: u32,
    /// Signature, such as `Ljava/lang/String;`.
    pub signature: String,
}

#[derive(Debug, Default)]
struct ClassTable {
    by_id: FxHashMap<u64, Arc<Class>>,
    /// All classes, ordered by serial number.
    all: Vec<Arc<Class>>,
}

/// All registered classes of a recording.
#[derive(Debug, Default)]
pub struct Classes {
    table: RwLock<ClassTable>,
    /// Held while a class is tagged, even during calls of the JVM. A thread that suspends others holds it, too, so that none of
    /// these is suspended while holding it.
    registering: Mutex<()>,
}

impl Classes {
    /// Prevents the tagging of classes while the guard is held.
    pub fn hold(&self) -> std::sync::MutexGuard<'_, ()> {
        lock(&self.registering)
    }

    /// Returns the class whose class object has this ID.
    pub fn get(&self, id: u64) -> Option<Arc<Class>> {
        read(&self.table).by_id.get(&id).cloned()
    }

    /// Returns all classes, ordered by serial number.
    pub fn all(&self) -> Vec<Arc<Class>> {
        read(&self.table).all.clone()
    }

    /// Removes all classes. Their tags must be cleared before another recording starts.
    pub fn clear(&self) {
        *write(&self.table) = ClassTable::default();
    }

    /// Returns the ID of a class; registers the class if it has none.
    #[inline]
    pub fn id_of(&self, jvmti: Jvmti, ids: &Ids, class: Ref<'_>) -> Option<u64> {
        let tag = Tag(jvmti.tag(class).ok()?);
        if tag.is_known() {
            return Some(tag.id());
        }
        let _held = self.hold();
        self.register(jvmti, ids, class)
    }

    /// Registers all loaded classes. The caller must hold [`Self::hold`].
    pub fn register_all(&self, jvmti: Jvmti, jni: &Jni<'_>, ids: &Ids) {
        jni.frame(crate::jvm::MAX_REFERENCES, |jni| {
            for class in jvmti.loaded_classes(jni).unwrap_or_default() {
                self.register(jvmti, ids, class);
                jni.delete(class);
            }
        });
    }

    fn register(&self, jvmti: Jvmti, ids: &Ids, class: Ref<'_>) -> Option<u64> {
        let tag = Tag(jvmti.tag(class).ok()?);
        if tag.is_known() {
            return Some(tag.id());
        }
        let signature = jvmti.class_signature(class).ok()?;
        let id = match tag.id() {
            0 => ids.next(jvmti.object_size(class).unwrap_or(8)),
            id => id,
        };
        // Added to the table before other threads can find the class by its tag.
        let mut table = write(&self.table);
        let serial = u32::try_from(table.all.len() + 1).unwrap_or(u32::MAX);
        let known = Arc::new(Class { id, serial, signature });
        table.by_id.insert(id, Arc::clone(&known));
        table.all.push(known);
        drop(table);
        jvmti.set_tag(class, tag.with_id(id).with_known().0).ok()?;
        Some(id)
    }
}
