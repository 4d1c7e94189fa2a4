//! The limit of the heap, as stored by the JDK's libraries.

use hprof_index::model::summary::Summary;
use hprof_values::BasicType;

/// Classes with the limit in a static field (`jdk.internal.misc.VM.saveProperties`).
const CLASSES: [&str; 2] = ["jdk.internal.misc.VM", "sun.misc.VM"];
/// Smallest number that means "no limit" in JDKs.
const NO_LIMIT: u64 = 1 << 50;

/// Returns the maximum size of the heap in bytes (`Runtime.maxMemory()`, -Xmx), if the dump contains it: it is the
/// JDK's default limit of direct buffers. Returns -XX:MaxDirectMemorySize instead if that is set.
pub(crate) fn heap_limit(summary: &Summary) -> Option<u64> {
    let holds = |name: &str| CLASSES.contains(&name);
    let mut classes = summary.classes().iter().filter(|class| holds(summary.class_name(class)));
    let mut statics = classes.next().into_iter().flat_map(|class| summary.statics(class));
    let (.., value) = statics.find(|(name, kind, _)| *name == "directMemory" && *kind == BasicType::Long)?;
    (1..NO_LIMIT).contains(&value).then_some(value)
}
