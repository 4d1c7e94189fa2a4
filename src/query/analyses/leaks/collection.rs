//! The collection in which memory accumulates: its size, its limit, and the threads in its methods.

use rustc_hash::FxHashMap;

use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::Collections;
use hprof_model::objects::reader::ObjectReader;
use hprof_model::paths::steps::View;
use hprof_values::ObjectId;

/// Field with the capacity of a queue.
const CAPACITY: &str = "capacity";
/// Fields that hold the array of elements.
const ARRAYS: &[&str] = &["items", "elementData", "elements", "table", "queue", "array", "es"];
/// Maximum number of threads reported.
const TOLD_THREADS: usize = 10;

/// Facts about the collection in which memory accumulates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionFacts {
    /// Object ID of the collection.
    pub object: ObjectId,
    /// Class of the collection.
    pub class: String,
    /// Number of elements, if the collection stores it.
    pub size: Option<u64>,
    /// `true` if the collection is a queue.
    pub is_queue: bool,
    /// Maximum number of elements, for a queue that was created with a limit.
    pub limit: Option<u64>,
    /// Length of the array of elements.
    pub array_length: Option<u64>,
    /// Threads that have the queue in a frame, sorted by serial number; most of them are in methods of the queue. Empty for
    /// other collections.
    pub threads: Vec<QueueThread>,
    /// Number of threads that have the queue in a frame, including those not reported.
    pub all_threads: u64,
    /// `true` if the dump contains the locals of any frame.
    pub are_frames_known: bool,
}

/// A thread that has a queue in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueThread {
    /// Name of the thread, or its serial number.
    pub name: String,
    /// Innermost frame that has the queue.
    pub frame: Option<String>,
}

/// Collects the facts about a collection.
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
        // An unlimited queue has the largest int. The capacity of an ArrayBlockingQueue is the length of its array.
        limit: limit
            .or(array_length.filter(|_| class == "java.util.concurrent.ArrayBlockingQueue"))
            .filter(|limit| is_queue && *limit < i32::MAX as u64),
        array_length,
        threads,
        all_threads,
        are_frames_known: objects.graph.roots.rows.iter().any(GcRoot::is_of_stack),
    }
}

/// Returns the threads that have an object in a frame, at most [`TOLD_THREADS`], and the number of all such threads.
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
    // Looking up a name may search the names of all threads.
    of_thread.truncate(TOLD_THREADS);
    let told = |(serial, root): (u32, &GcRoot)| QueueThread {
        name: view.thread(serial, root.thread),
        frame: view.frame(root),
    };
    let mut threads: Vec<QueueThread> = of_thread.into_iter().map(told).collect();
    threads.sort_rows_by(|a, b| a.name.cmp(&b.name));
    (threads, all)
}
