//! What is told of a heap beside its suspects: which thread ran out of memory, class loaders of one application more than
//! once, what waits for the finalizer, what is outside of the heap.

use std::io;

use rustc_hash::FxHashMap;

use crate::classes::histogram;
use crate::classes::loader_sets::{self, Why, is_permanent};
use crate::objects::reader::Objects;
use crate::paths::steps::View;
use crate::threads::frames::Frame;
use crate::threads::{Question, StackFrame, Thread, Threads};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::{Heap, ObjectGraph};
use hprof_parser::ObjectId;

use super::off_heap::{self, OffHeap};
use super::suspects::share;

/// Objects that wait for the finalizer before that is told.
pub const MANY_FINALIZABLE: u64 = 100;
/// Bytes outside the heap before they are told.
pub const MUCH_OFF_HEAP: u64 = 1 << 20;
/// Percent of the heap that is unreachable before that is told.
pub const MUCH_GARBAGE: u64 = 20;
/// Class loaders that define classes of the same names before that is told.
pub const MANY_LOADERS: usize = 3;
/// Percent of the reachable bytes that they retain at least, by a lower bound.
const MUCH_OF_HEAP: u64 = 1;
/// Groups of loaders that are told.
const TOLD_GROUPS: usize = 3;
/// Loaders of a group whose paths are told, the first by ID.
const TOLD_LOADERS: usize = 20;
/// Objects on the paths of a group, after which no other path is sought.
const LONG_PATHS: usize = 1 << 14;
/// Frames of the thread that ran out of memory.
const FRAMES: usize = 32;

/// Facts of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapFacts {
    /// The thread that ran into an OutOfMemoryError, with its stack.
    pub out_of_memory: Option<Thread>,
    /// Applications that are loaded more than once.
    pub loaders: Vec<LoaderGroup>,
    /// Objects that wait for their finalizer; `None` if the dump does not tell.
    pub finalizer_queue: Option<u64>,
    /// What the thread that runs finalizers is doing.
    pub finalizer_frame: Option<Frame>,
    /// Memory outside of the heap.
    pub off_heap: OffHeap,
}

/// Class loaders that define classes of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoaderGroup {
    /// The loaders' class.
    pub class: Option<String>,
    /// How many loaders.
    pub loaders: u64,
    /// A class that each defines.
    pub defines: Option<String>,
    /// Classes that each defines.
    pub classes: u64,
    /// What they retain together, with their classes and instances.
    pub retained_bytes: u64,
    /// Why they are alive.
    pub paths: Vec<(ObjectId, Why)>,
}

/// The facts.
///
/// # Errors
/// If there is neither memory nor disk space for a number for each object.
pub fn facts(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<HeapFacts> {
    let summary = heap.summary();
    let objects = Objects::new(summary, graph, bytes);
    let threads = Threads::new(heap, graph, bytes);
    let finalizer_queue = finalizer_queue(&objects);
    let finalizer_frame = finalizer_queue.filter(|waiting| *waiting > 0).and_then(|_| finalizer(&threads));
    Ok(HeapFacts {
        out_of_memory: threads.out_of_memory(FRAMES).map(|row| threads.thread(&row)),
        loaders: loader_groups(heap, graph, bytes)?,
        finalizer_queue,
        finalizer_frame,
        off_heap: off_heap::off_heap(&objects, bytes),
    })
}

/// The innermost frame of the thread that runs finalizers.
fn finalizer(threads: &Threads<'_>) -> Option<Frame> {
    let pattern = "Finalizer".parse().ok()?;
    let question = Question { name: Some(pattern), depth: Some(1), ..Question::default() };
    let found = threads.find(&question);
    let mut rows = found.rows.iter().map(|row| threads.thread(row));
    let thread = rows.find(|thread| thread.name.as_deref() == Some("Finalizer"))?;
    thread.frames.into_iter().next().map(|StackFrame { frame, .. }| frame)
}

/// The queue of what waits for `finalize`.
pub(crate) fn finalizers(objects: &Objects<'_>) -> Option<ObjectIndex> {
    let summary = objects.summary;
    let class = summary.boot_class("java.lang.ref.Finalizer")?;
    let queue = summary.statics(summary.class(class)?).find(|(name, ..)| *name == "queue")?.2;
    objects.graph.objects.addresses.index_of(ObjectId(queue))
}

/// Objects that wait for `finalize`.
pub(crate) fn finalizer_queue(objects: &Objects<'_>) -> Option<u64> {
    u64::try_from(objects.field(finalizers(objects)?, "queueLength")?.integer()?).ok()
}

/// Whether a class of one name is defined by so many loaders that may go.
fn has_many_loaders(summary: &Summary) -> bool {
    let mut loaders: FxHashMap<&str, usize> = FxHashMap::default();
    for class in summary.classes().iter().filter(|class| class.is_dumped()) {
        let name = summary.class_name(class);
        if !name.ends_with("[]") && !is_permanent(summary, class.loader.into()) {
            *loaders.entry(name).or_default() += 1;
        }
    }
    loaders.into_values().any(|loaders| loaders >= MANY_LOADERS)
}

fn loader_groups(heap: &Heap, graph: &ObjectGraph, bytes: &[u8]) -> io::Result<Vec<LoaderGroup>> {
    let summary = heap.summary();
    if !has_many_loaders(summary) {
        return Ok(Vec::new());
    }
    let least = share(graph.tree.reachable_bytes(), MUCH_OF_HEAP);
    let found = loader_sets::large_groups(summary, graph, MANY_LOADERS, least)?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let sizes = Sizes::new(summary, None);
    let view = View::new(heap, graph, bytes);
    let groups = found.into_iter().take(TOLD_GROUPS).map(|group| {
        // Long paths are all alike: each takes a search along all of it.
        let (mut paths, mut length) = (Vec::new(), 0);
        for loader in group.loaders.iter().take(TOLD_LOADERS) {
            if length >= LONG_PATHS {
                break;
            }
            let found = loader_sets::why(&view, [*loader]);
            length += found.values().map(|why| why.steps.len() + why.left_out.0).sum::<usize>();
            paths.extend(found);
        }
        // A class of the application rather than one that was made for it.
        let own = |class: &&ClassNumber| {
            summary.class(**class).is_some_and(|row| histogram::instances(summary, **class, row) > 0)
        };
        let defines = group.classes.iter().find(own).or(group.classes.first());
        let largest =
            group.classes.iter().max_by_key(|class| sizes.total(**class)).filter(|class| own(class));
        let name = |class: &ClassNumber| summary.class(*class).map(|row| summary.class_name(row).to_owned());
        LoaderGroup {
            class: group.loaders.first().and_then(|loader| summary.loader_class(*loader)).map(str::to_owned),
            loaders: group.loaders.len() as u64,
            defines: largest.or(defines).and_then(name),
            classes: group.classes.len() as u64,
            retained_bytes: group.retained.bytes,
            paths,
        }
    });
    Ok(groups.collect())
}
