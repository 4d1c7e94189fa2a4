//! Threads of a pool that each keep one buffer of a fixed size: the pool's maximum bounds their retained size, so it
//! is content, not a leak.
//!
//! The pool is the object that the thread's task belongs to and that a framework's rule describes with the facts `threads`
//! and `max_threads`.

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::storage::human_bytes::HumanBytes;
use hprof_index::{Dump, ObjectGraph};

use crate::frameworks::{FrameworkDescription, FrameworkFact, FrameworkVerdict, Frameworks, KnownFrameworks};
use hprof_model::objects::reader::ObjectReader;

use super::thread_locals::ThreadLocalUse;

/// Name of the fact with the number of threads, in a pool's rule.
const THREADS: &str = "threads";
/// Name of the fact with the maximum number of threads, in a pool's rule.
const MAX_THREADS: &str = "max_threads";
/// Maximum number of references between a thread's task and its pool: a worker, perhaps in a wrapper.
const MAX_STEPS: usize = 3;
/// Maximum number of objects examined for the pool of a thread.
const MAX_OBJECTS: usize = 64;

/// Describes the buffers that threads keep under a ThreadLocal; `None` unless all buffers are of one size, and all threads are
/// of one pool within its maximum.
pub(super) fn describe(
    dump: &Dump<'_>,
    frameworks: &Frameworks,
    local: &ThreadLocalUse,
) -> Option<FrameworkDescription> {
    let buffer_bytes = local.buffer_bytes.filter(|_| local.values == local.threads)?;
    let objects = dump.objects;
    let known = KnownFrameworks::new(dump, frameworks);
    let pool_of =
        |position: &TreePosition| pool(&known, &objects, dump.graph, dump.graph.tree.object_at(*position)?);
    let (first, others) = local.owners.split_first()?;
    let pool = pool_of(first)?;
    if others.iter().any(|other| pool_of(other) != Some(pool)) {
        return None;
    }
    let pool = known.describe(pool)?;
    let number = |name| {
        let (_, fact) = pool.facts.iter().find(|(fact, _)| fact == name)?;
        if let FrameworkFact::Whole(number) = fact { u64::try_from(*number).ok() } else { None }
    };
    let (threads, max) = (number(THREADS)?, number(MAX_THREADS)?);
    // The maximum `int` means no limit.
    let is_bounded = local.threads <= threads && threads <= max && max < u64::from(i32::MAX.unsigned_abs());
    is_bounded.then(|| FrameworkDescription {
        framework: pool.framework.clone(),
        class: pool.class.clone(),
        called: None,
        facts: [(THREADS, local.threads), (MAX_THREADS, max), ("buffer_bytes", buffer_bytes)]
            .map(|(name, number)| (name.to_owned(), FrameworkFact::Whole(number.cast_signed())))
            .into(),
        text: Some(format!(
            "{} of at most {max} threads, each with a buffer of {}",
            local.threads,
            HumanBytes(buffer_bytes)
        )),
        verdict: Some(FrameworkVerdict::Content),
        retains: Vec::new(),
    })
}

/// Returns the pool to which a thread's task belongs.
fn pool(
    known: &KnownFrameworks<'_, '_>,
    objects: &ObjectReader<'_>,
    graph: &ObjectGraph,
    thread: ObjectIndex,
) -> Option<ObjectIndex> {
    let reference = |object, name| {
        let id = objects.field(object, name).and_then(|value| value.reference())?;
        graph.objects.addresses.index_of(id)
    };
    // Up to JDK 18, and later ones.
    let task = reference(thread, "target").or_else(|| reference(reference(thread, "holder")?, "task"))?;
    let is_pool = |object: &ObjectIndex| known.has_fact(*object, MAX_THREADS);
    let mut seen = vec![task];
    let mut at = 0;
    for _ in 0..=MAX_STEPS {
        let step = seen.get(at..).unwrap_or_default().to_vec();
        if let Some(pool) = step.iter().copied().find(is_pool) {
            return Some(pool);
        }
        at = seen.len();
        for object in step.iter().flat_map(|object| graph.references(*object)) {
            let is_new = seen.len() < MAX_OBJECTS
                && !seen.contains(&object)
                && graph.class_of_class_object(object).is_none();
            seen.extend(is_new.then_some(object));
        }
    }
    None
}
