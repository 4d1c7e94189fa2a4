//! The collection in which memory accumulates: how long it is and how long it may get, and who is in its methods.

use rustc_hash::FxHashMap;

use crate::objects::class_set::ClassSet;
use crate::objects::collections::Collections;
use crate::objects::reader::ObjectReader;
use crate::paths::steps::View;
use crate::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_parser::ObjectId;

/// The field that says how many elements a queue may have.
const CAPACITY: &str = "capacity";
/// Fields of the array of elements.
const ARRAYS: &[&str] = &["items", "elementData", "elements", "table", "queue", "array", "es"];
/// Threads that are told.
const TOLD_THREADS: usize = 10;

/// What is known of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionFacts {
    /// Object ID.
    pub object: ObjectId,
    /// Its class.
    pub class: String,
    /// Elements that it has, if it says so.
    pub size: Option<u64>,
    /// Whether it is a queue.
    pub is_queue: bool,
    /// Elements that it takes at most: of a queue what it was made with, if that is a limit.
    pub limit: Option<u64>,
    /// Length of its array of elements.
    pub array_length: Option<u64>,
    /// Threads with the queue in a frame, the first by serial number: those that are in its methods, mostly; of other
    /// collections nothing.
    pub threads: Vec<QueueThread>,
    /// How many threads, also those that are not told.
    pub all_threads: u64,
    /// Whether the dump tells of any frame what it holds.
    pub are_frames_known: bool,
}

/// A thread with a queue in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueThread {
    /// Its name, or its serial number.
    pub name: String,
    /// The innermost frame that has it.
    pub frame: Option<String>,
}

pub(super) fn facts(
    objects: &ObjectReader<'_>,
    collections: &Collections<'_, '_>,
    view: &View<'_>,
    object: ObjectIndex,
) -> CollectionFacts {
    let class = view.class_name(object).unwrap_or_default();
    let size = collections.collection(object).and_then(|collection| collections.count(&collection));
    let queues = ClassSet::of_name_and_below(objects.summary, "java.util.AbstractQueue");
    let is_queue = objects.graph.objects.class(object).is_some_and(|class| queues.contains(class));
    let fields = objects.fields(object);
    let limit = fields.as_ref().and_then(|fields| fields.integer(CAPACITY));
    let limit = limit.and_then(|limit| u64::try_from(limit).ok());
    let length = |name: &&str| {
        let array = objects.object(fields.as_ref()?.value(name)?)?;
        Some(objects.ids(array)?.len() as u64)
    };
    let array_length = ARRAYS.iter().find_map(length);
    let (threads, all_threads) = if is_queue { threads(view, object) } else { (Vec::new(), 0) };
    CollectionFacts {
        object: objects.graph.objects.addresses.id_of(object).unwrap_or_default(),
        class: class.to_owned(),
        size,
        is_queue,
        // Without a limit it is the largest int. An ArrayBlockingQueue is as long as its array.
        limit: limit
            .or(array_length.filter(|_| class == "java.util.concurrent.ArrayBlockingQueue"))
            .filter(|limit| is_queue && *limit < i32::MAX as u64),
        array_length,
        threads,
        all_threads,
        are_frames_known: objects.graph.roots.rows.iter().any(GcRoot::is_of_stack),
    }
}

/// The threads that have an object in a frame.
fn threads(view: &View<'_>, object: ObjectIndex) -> (Vec<QueueThread>, u64) {
    let mut of_thread: FxHashMap<u32, &GcRoot> = FxHashMap::default();
    let frame = |root: &GcRoot| root.frame.unwrap_or(u32::MAX);
    for root in view.edges.roots.of_object(object).filter(|root| root.is_of_stack()) {
        let Some(serial) = root.thread_serial else { continue };
        let innermost = of_thread.entry(serial).or_insert(root);
        if frame(root) < frame(innermost) {
            *innermost = root;
        }
    }
    let all = of_thread.len() as u64;
    let mut of_thread: Vec<(u32, &GcRoot)> = of_thread.into_iter().collect();
    of_thread.sort_rows_by_key(|(serial, _)| *serial);
    // A name may be sought among those of all threads.
    of_thread.truncate(TOLD_THREADS);
    let told = |(serial, root): (u32, &GcRoot)| QueueThread {
        name: view.thread(serial, root.thread),
        frame: view.frame(root),
    };
    let mut threads: Vec<QueueThread> = of_thread.into_iter().map(told).collect();
    threads.sort_rows_by(|a, b| a.name.cmp(&b.name));
    (threads, all)
}
