//! What is told of a heap beside its suspects: which thread ran out of memory, what waits for the finalizer, what is
//! outside of the heap.

use crate::objects::reader::ObjectReader;
use crate::threads::frames::Frame;
use crate::threads::{JavaThread, StackFrame, ThreadQuery, Threads};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use super::off_heap::{self, OffHeap};

/// Objects that wait for the finalizer before that is told.
pub const MANY_FINALIZABLE: u64 = 100;
/// Bytes outside the heap before they are told.
pub const MUCH_OFF_HEAP: u64 = 1 << 20;
/// Percent of the heap that is unreachable before that is told.
pub const MUCH_GARBAGE: u64 = 20;
/// Frames of the thread that ran out of memory.
const FRAMES: usize = 32;

/// Facts of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapFacts {
    /// The thread that ran into an OutOfMemoryError, with its stack.
    pub out_of_memory: Option<JavaThread>,
    /// Objects that wait for their finalizer; `None` if the dump does not tell.
    pub finalizer_queue: Option<u64>,
    /// What the thread that runs finalizers is doing.
    pub finalizer_frame: Option<Frame>,
    /// Memory outside of the heap.
    pub off_heap: OffHeap,
}

/// The facts.
pub fn facts(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> HeapFacts {
    let summary = heap.summary();
    let objects = ObjectReader::new(summary, graph, bytes);
    let threads = Threads::new(heap, graph, bytes);
    let finalizer_queue = finalizer_queue(&objects);
    let finalizer_frame = finalizer_queue.filter(|waiting| *waiting > 0).and_then(|_| finalizer(&threads));
    HeapFacts {
        out_of_memory: threads.out_of_memory(FRAMES).map(|row| threads.thread(&row)),
        finalizer_queue,
        finalizer_frame,
        off_heap: off_heap::off_heap(&objects, bytes),
    }
}

/// The innermost frame of the thread that runs finalizers.
fn finalizer(threads: &Threads<'_>) -> Option<Frame> {
    let pattern = "Finalizer".parse().ok()?;
    let question = ThreadQuery { name: Some(pattern), depth: Some(1), ..ThreadQuery::default() };
    let found = threads.find(&question);
    let mut rows = found.rows.iter().map(|row| threads.thread(row));
    let thread = rows.find(|thread| thread.name.as_deref() == Some("Finalizer"))?;
    thread.frames.into_iter().next().map(|StackFrame { frame, .. }| frame)
}

/// The queue of what waits for `finalize`.
pub(crate) fn finalizers(objects: &ObjectReader<'_>) -> Option<ObjectIndex> {
    let summary = objects.summary;
    let class = summary.boot_class("java.lang.ref.Finalizer")?;
    let queue = summary.statics(summary.class(class)?).find(|(name, ..)| *name == "queue")?.2;
    objects.graph.objects.addresses.index_of(ObjectId(queue))
}

/// Objects that wait for `finalize`.
pub(crate) fn finalizer_queue(objects: &ObjectReader<'_>) -> Option<u64> {
    u64::try_from(objects.field(finalizers(objects)?, "queueLength")?.integer()?).ok()
}
