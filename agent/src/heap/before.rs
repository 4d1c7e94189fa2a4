//! Data for a heap dump that is read with Java calls before the threads are suspended, because a suspended thread may be
//! initializing a class, or hold a lock of its loader.

use crate::jvm::{Jni, Ref};
use crate::state::AgentState;

/// Wrapper classes, whose `TYPE` fields contain the class objects of primitive types.
const WRAPPERS: [&str; 9] = [
    "Ljava/lang/Boolean;",
    "Ljava/lang/Byte;",
    "Ljava/lang/Character;",
    "Ljava/lang/Double;",
    "Ljava/lang/Float;",
    "Ljava/lang/Integer;",
    "Ljava/lang/Long;",
    "Ljava/lang/Short;",
    "Ljava/lang/Void;",
];

/// Data for a heap dump that is read with Java calls.
#[derive(Debug)]
pub struct HeapDumpInput<'j> {
    /// Class object of `java.lang.Object`.
    pub object: Ref<'j>,
    /// IDs of the class objects of primitive types.
    pub primitives: Vec<u64>,
    /// Free bytes of the heap; `None` while garbage is still collected.
    pub free: Option<u64>,
}

impl<'j> HeapDumpInput<'j> {
    /// Reads the data. `None` if `java.lang.Object` cannot be found.
    pub fn new(state: &AgentState, jni: &Jni<'j>) -> Option<Self> {
        let mut primitives = Vec::new();
        jni.frame(crate::jvm::MAX_REFERENCES, |jni| {
            for class in state.jvmti.loaded_classes(jni).unwrap_or_default() {
                let signature = state.jvmti.class_signature(class);
                if signature.is_ok_and(|signature| WRAPPERS.contains(&signature.as_str())) {
                    let primitive = jni.static_field(class, c"TYPE", c"Ljava/lang/Class;");
                    primitives.extend(primitive.and_then(|primitive| state.object_id(primitive)));
                }
                jni.delete(class);
            }
        });
        // New IDs are assigned in the order of the classes, because the JVM's order differs between runs.
        primitives.sort_unstable();
        let free = if state.collector.is_stuck() { jni.free_heap() } else { None };
        Some(Self { object: jni.find_class(c"java/lang/Object")?, primitives, free })
    }
}
