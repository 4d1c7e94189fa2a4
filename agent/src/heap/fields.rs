//! Layouts of classes: offsets of numbered fields in an instance's record.
//!
//! JVM TI numbers the fields of a class, static or not, after those of all its superinterfaces and
//! superclasses, the topmost class first ("jvmtiHeapReferenceInfoField"). INSTANCE DUMP contains the
//! fields of the class itself first, then those of its superclass, and so on.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::jvm::walk::{PrimitiveBytes, bytes_of};
use crate::jvm::{Jni, JvmField, Ref};
use crate::record::classes::Class;
use crate::state::AgentState;

/// Position of a field in the record of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSlot {
    /// Offset of the value, relative to the end of the record's header.
    pub offset: usize,
    /// First character of the field's signature.
    pub kind: u8,
}

/// Layout of a class's instances and of its class object in records.
#[derive(Debug, Default)]
pub struct Layout {
    /// Class, if it is known.
    pub class: Option<Arc<Class>>,
    /// ID of the superclass; 0 for none.
    pub super_class: u64,
    /// ID of the class loader; 0 for the boot loader.
    pub loader: u64,
    /// Fields that the class itself declares.
    pub declared: Vec<JvmField>,
    /// JVM TI number of the first field of the topmost superclass.
    first: usize,
    /// JVM TI number of the first field that the class itself declares.
    own: usize,
    /// Instance fields by JVM TI number, starting at `first`.
    slots: Vec<Option<FieldSlot>>,
    /// Size of an instance's fields in bytes.
    pub bytes: usize,
}

impl Layout {
    /// Returns the position of the instance field with this JVM TI number.
    #[inline]
    pub fn slot(&self, number: i32) -> Option<FieldSlot> {
        let number = usize::try_from(number).ok()?.checked_sub(self.first)?;
        *self.slots.get(number)?
    }

    /// Returns the index in `declared` of the field with this JVM TI number.
    pub fn declared_at(&self, number: i32) -> Option<usize> {
        let at = usize::try_from(number).ok()?.checked_sub(self.own)?;
        (at < self.declared.len()).then_some(at)
    }

    /// Returns the first character of the element type's signature; `None` unless the class is an array class.
    pub fn element(&self) -> Option<u8> {
        self.class.as_ref()?.signature.strip_prefix('[')?.bytes().next()
    }

    /// Returns `true` if instances of the class are arrays of references.
    pub fn is_object_array(&self) -> bool {
        self.element().is_some_and(|element| matches!(element, b'L' | b'['))
    }
}

/// Contents of a class object, for CLASS DUMP.
#[derive(Debug, Default)]
pub struct ClassData {
    /// Object ID of the signers.
    pub signers: u64,
    /// Object ID of the protection domain.
    pub protection_domain: u64,
    /// Constants: index in the constant pool and object ID.
    pub constants: Vec<(u16, u64)>,
    /// Values of static fields, by index in [`Layout::declared`].
    pub statics: FxHashMap<usize, PrimitiveBytes>,
}

/// Returns the size in bytes of a field's value in records.
pub fn field_bytes(kind: u8) -> usize {
    if matches!(kind, b'L' | b'[') { 8 } else { bytes_of(kind) }
}

/// Facts from the JVM about a class, from which its layout is computed.
#[derive(Debug, Default)]
struct JvmClassData {
    class: Option<Arc<Class>>,
    super_class: u64,
    loader: u64,
    interfaces: Vec<u64>,
    fields: Vec<JvmField>,
}

/// Layouts of all loaded classes.
#[derive(Debug, Default)]
pub struct Layouts {
    /// Layouts by ID of the class object.
    pub by_id: FxHashMap<u64, Layout>,
}

impl Layouts {
    /// Computes the layouts from facts of the JVM. All classes must already be registered.
    pub fn new(state: &AgentState, jni: &Jni<'_>, classes: &[Ref<'_>]) -> Self {
        let mut said = FxHashMap::default();
        for class in classes {
            let id = state.known_id(*class);
            if id != 0 {
                said.insert(id, Self::ask(state, jni, id, *class));
            }
        }
        let by_id = said.keys().map(|id| (*id, Self::layout(&said, *id))).collect();
        Self { by_id }
    }

    fn ask(state: &AgentState, jni: &Jni<'_>, id: u64, class: Ref<'_>) -> JvmClassData {
        let jvmti = state.jvmti;
        let id_of = |reference: Ref<'_>| {
            let id = state.object_id(reference).unwrap_or(0);
            jni.delete(reference);
            id
        };
        let known = state.classes.get(id);
        let is_array = known.as_ref().is_some_and(|class| class.signature.starts_with('['));
        JvmClassData {
            class: known,
            super_class: jni.superclass(class).map_or(0, id_of),
            loader: jvmti.class_loader(jni, class).ok().flatten().map_or(0, id_of),
            interfaces: if is_array {
                Vec::new()
            } else {
                jvmti.interfaces(jni, class).unwrap_or_default().into_iter().map(id_of).collect()
            },
            // A class that is not prepared has neither fields nor instances yet.
            fields: jvmti.fields(class).unwrap_or_default(),
        }
    }

    fn layout(said: &FxHashMap<u64, JvmClassData>, id: u64) -> Layout {
        // The class itself is first. A chain of superclasses is finite; the limit prevents endless loops after damage.
        const MAX_CHAIN: usize = 1 << 16;
        let mut chain = Vec::new();
        let mut next = id;
        while let Some(class) = said.get(&next).filter(|_| chain.len() < MAX_CHAIN) {
            chain.push(class);
            next = class.super_class;
        }
        let mut interfaces = FxHashSet::default();
        let mut open: Vec<u64> = chain.iter().flat_map(|class| class.interfaces.iter().copied()).collect();
        while let Some(interface) = open.pop() {
            if interfaces.insert(interface)
                && let Some(of) = said.get(&interface)
            {
                open.extend(&of.interfaces);
            }
        }
        let first = interfaces.iter().filter_map(|id| said.get(id)).map(|of| of.fields.len()).sum();
        // Offsets ascend from the class up to the topmost superclass, JVM TI numbers ascend in the opposite direction.
        let mut offset = 0;
        let mut levels = Vec::new();
        for class in &chain {
            let level: Vec<_> = (class.fields.iter())
                .map(|field| {
                    (!field.is_static).then(|| {
                        let slot = FieldSlot { offset, kind: field.kind };
                        offset += field_bytes(field.kind);
                        slot
                    })
                })
                .collect();
            levels.push(level);
        }
        let slots: Vec<_> = levels.into_iter().rev().flatten().collect();
        let of = said.get(&id);
        let declared = of.map(|of| of.fields.clone()).unwrap_or_default();
        Layout {
            class: of.and_then(|of| of.class.clone()),
            super_class: of.map_or(0, |of| of.super_class),
            loader: of.map_or(0, |of| of.loader),
            own: first + slots.len() - declared.len(),
            declared,
            first,
            slots,
            bytes: offset,
        }
    }
}
