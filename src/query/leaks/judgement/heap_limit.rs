//! The limit of the heap, as the JVM told its libraries.

use hprof_index::objects::reader::ObjectReader;
use hprof_parser::BasicType;

/// Classes that have it in a static field. The JDK takes it for direct buffers, too, unless these have their own
/// (`jdk.internal.misc.VM.saveProperties`).
const CLASSES: [&str; 2] = ["jdk.internal.misc.VM", "sun.misc.VM"];
/// Value of `sun.misc.VM.directMemory` before it is set.
const NOT_SET: u64 = 64 << 20;

/// Returns the maximum size of the heap in bytes (`Runtime.maxMemory()`, -Xmx), if the dump has it. Where direct buffers have
/// a limit of their own (-XX:MaxDirectMemorySize), it is that, which is usually lower: then less is taken for little.
pub(crate) fn heap_limit(objects: &ObjectReader<'_>) -> Option<u64> {
    let summary = objects.summary;
    let class = CLASSES.into_iter().find_map(|name| summary.boot_class(name))?;
    let row = summary.class(class)?;
    let mut statics = summary.statics(row);
    let (.., value) = statics.find(|(name, kind, _)| *name == "directMemory" && *kind == BasicType::Long)?;
    let is_old = summary.is_named(row, CLASSES[1]);
    (value > 0 && i64::try_from(value).is_ok_and(|value| value != i64::MAX) && !(is_old && value == NOT_SET))
        .then_some(value)
}
