//! The limit of the heap, as stored by the JDK's libraries.

use hprof_index::model::summary::Summary;
use hprof_values::BasicType;

/// Classes that have the limit in a static field (`jdk.internal.misc.VM.saveProperties`).
const CLASSES: [&str; 2] = ["jdk.internal.misc.VM", "sun.misc.VM"];
/// Smallest number that means "no limit" in JDKs.
const NO_LIMIT: u64 = 1 << 50;

/// Returns the maximum size of the heap in bytes (`Runtime.maxMemory()`, -Xmx), if the dump contains it. It is read from the
/// limit of direct buffers, whose default it is; if -XX:MaxDirectMemorySize is set, the result is that value instead.
pub(crate) fn heap_limit(summary: &Summary) -> Option<u64> {
    let holds = |name: &str| CLASSES.contains(&name);
    let mut classes = summary.classes().iter().filter(|class| holds(summary.class_name(class)));
    let mut statics = classes.next().into_iter().flat_map(|class| summary.statics(class));
    let (.., value) = statics.find(|(name, kind, _)| *name == "directMemory" && *kind == BasicType::Long)?;
    (1..NO_LIMIT).contains(&value).then_some(value)
}
