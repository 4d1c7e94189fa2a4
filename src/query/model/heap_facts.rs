//! Facts about a heap other than leak suspects: the thread that ran out of memory, the finalizer queue.

use crate::objects::reader::ObjectReader;
use crate::threads::frames::Frame;
use crate::threads::{JavaThread, StackFrame, ThreadQuery, Threads};
use hprof_base::share::is_share;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::ObjectId;

/// Minimum number of objects waiting for the finalizer to be reported.
pub const MANY_FINALIZABLE: u64 = 100;
/// Minimum number of off-heap bytes to be reported.
pub const MUCH_OFF_HEAP: u64 = 1 << 20;
/// Minimum number of bytes of direct buffers that are unusual: every program that uses channels has a buffer or two for
/// each thread.
const MUCH_DIRECT: u64 = 4 << 20;
/// Minimum percentage of the heap from which direct buffers are unusual: less does not change how much memory the process
/// takes.
const MUCH_DIRECT_PERCENT: u64 = 10;
/// Minimum percentage of unreachable bytes to be reported.
pub const MUCH_GARBAGE: u64 = 20;
/// Maximum number of frames of the thread that ran out of memory.
const FRAMES: usize = 32;

/// Returns whether direct buffers of this many bytes are unusual for a heap of `heap_bytes`.
pub fn is_much_direct(direct_bytes: u64, heap_bytes: u64) -> bool {
    direct_bytes >= MUCH_DIRECT && is_share(direct_bytes, heap_bytes, MUCH_DIRECT_PERCENT)
}

/// Facts about a heap other than leak suspects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapFacts {
    /// Thread with an OutOfMemoryError, with its stack.
    pub out_of_memory: Option<JavaThread>,
    /// Number of objects waiting for their finalizer; `None` if the dump does not contain the queue.
    pub finalizer_queue: Option<u64>,
    /// Innermost frame of the thread that runs finalizers.
    pub finalizer_frame: Option<Frame>,
}

/// Collects the facts about a heap.
pub fn facts(dump: &Dump<'_>) -> HeapFacts {
    let threads = Threads::new(dump);
    let finalizer_queue = finalizer_queue(&dump.objects);
    let finalizer_frame = finalizer_queue.filter(|waiting| *waiting > 0).and_then(|_| finalizer(&threads));
    HeapFacts {
        out_of_memory: threads.out_of_memory(FRAMES).map(|row| threads.thread(&row)),
        finalizer_queue,
        finalizer_frame,
    }
}

/// Returns the innermost frame of the thread that runs finalizers.
fn finalizer(threads: &Threads<'_>) -> Option<Frame> {
    let pattern = "Finalizer".parse().ok()?;
    let question = ThreadQuery { name: Some(pattern), depth: Some(1), ..ThreadQuery::default() };
    let found = threads.find(&question);
    let mut rows = found.rows.iter().map(|row| threads.thread(row));
    let thread = rows.find(|thread| thread.name.as_deref() == Some("Finalizer"))?;
    thread.frames.into_iter().next().map(|StackFrame { frame, .. }| frame)
}

/// Returns the queue of objects waiting for `finalize`.
pub fn finalizers(objects: &ObjectReader<'_>) -> Option<ObjectIndex> {
    let summary = objects.summary;
    let class = summary.boot_class("java.lang.ref.Finalizer")?;
    let queue = summary.statics(summary.class(class)?).find(|(name, ..)| *name == "queue")?.2;
    objects.graph.objects.addresses.index_of(ObjectId(queue))
}

/// Returns the number of objects waiting for `finalize`.
pub fn finalizer_queue(objects: &ObjectReader<'_>) -> Option<u64> {
    u64::try_from(objects.field(finalizers(objects)?, "queueLength")?.integer()?).ok()
}
