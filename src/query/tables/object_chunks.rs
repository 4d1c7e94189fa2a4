//! Chunks of the tables that have one or more rows for each object.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{List, LookupKey, TableChunk, TableContext};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::class_set::ClassSet;

/// Objects per chunk: few enough that their columns stay in a cache, many enough that the next chunk is ready in time.
const CHUNK: u32 = 1 << 14;

/// Returns chunks of all objects, in the order of their IDs.
pub(super) fn all_objects(context: &TableContext<'_>) -> Vec<TableChunk> {
    ObjectIndex::chunks(context.dump.graph.objects.indices(), CHUNK)
        .into_iter()
        .map(TableChunk::Objects)
        .collect()
}

/// Returns chunks of all objects, smaller than those of [`all_objects`], for rows with long texts.
pub(super) fn all_texts(context: &TableContext<'_>) -> Vec<TableChunk> {
    ObjectIndex::chunks(context.dump.graph.objects.indices(), CHUNK / 8)
        .into_iter()
        .map(TableChunk::Objects)
        .collect()
}

/// Returns chunks of a list of objects, in the order of the list.
pub(super) fn listed_objects(list: List) -> Vec<TableChunk> {
    ranges(&list).map(|range| TableChunk::Listed(list.clone(), range)).collect()
}

/// Returns the range of each chunk of a list.
pub(super) fn ranges(list: &List) -> impl Iterator<Item = Range<usize>> + use<> {
    parts(0..list.get().len())
}

/// Splits a range into chunks.
fn parts(range: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let (end, size) = (range.end, CHUNK as usize);
    range.step_by(size).map(move |start| start..start.saturating_add(size).min(end))
}

/// Returns a chunk with the object of this ID; none if it is not in the dump.
pub(super) fn of_id(context: &TableContext<'_>, key: &LookupKey) -> Vec<TableChunk> {
    let LookupKey::Integer(id) = key else { return Vec::new() };
    context.object(*id).map(|object| listed_objects(List::from_objects(vec![object]))).unwrap_or_default()
}

/// Returns chunks of the instances of the given classes.
pub(super) fn of_classes(context: &TableContext<'_>, classes: &[ClassNumber]) -> Vec<TableChunk> {
    if classes.is_empty() {
        return Vec::new();
    }
    listed_objects(List::from_objects(
        ClassSet::from_classes(context.dump.summary, classes).all_objects(context.dump.graph),
    ))
}

/// Sorts all objects by class with a counting sort: by rank of the class number, objects without a class first. Returns the
/// sorted list, and the start of each rank; rank 0 is for objects without a class.
fn by_class(context: &TableContext<'_>, ranks: &[u32]) -> io::Result<(List, Vec<u32>)> {
    let graph = context.dump.graph;
    let labels = graph.labels();
    let rank = |object: u32| {
        labels
            .label_with_target(object)
            .and_then(|class| ranks.get(class))
            .map_or(0, |rank| *rank as usize + 1)
    };
    let count = ranks.iter().max().map_or(1, |max| *max as usize + 2);
    let mut next = vec![0u32; count];
    let objects = graph.objects.len();
    for object in 0..objects {
        if let Some(next) = next.get_mut(rank(object)) {
            *next += 1;
        }
    }
    let mut before = 0;
    for next in &mut next {
        before += std::mem::replace(next, before);
    }
    let starts = next.clone();
    let mut sorted = graph.room().zeroed_array::<u32>(objects as usize)?;
    for object in 0..objects {
        if let Some(next) = next.get_mut(rank(object)) {
            if let Some(place) = sorted.get_mut(*next as usize) {
                *place = object;
            }
            *next += 1;
        }
    }
    Ok((List::from_sorted(sorted), starts))
}

/// Returns the rank of each class in the order of a key; equal keys have equal ranks.
pub(super) fn ranks<K: Ord>(context: &TableContext<'_>, key: impl Fn(ClassNumber) -> K) -> Vec<u32> {
    let mut sorted: Vec<(K, ClassNumber)> =
        context.dump.summary.numbered_classes().map(|(number, _)| (key(number), number)).collect();
    sorted.sort_unstable();
    let mut ranks = vec![0; sorted.len()];
    let mut rank = 0;
    for (at, (key, class)) in sorted.iter().enumerate() {
        let is_new =
            at.checked_sub(1).and_then(|before| sorted.get(before)).is_some_and(|(before, _)| before != key);
        rank += u32::from(is_new);
        if let Some(place) = ranks.get_mut(class.0 as usize) {
            *place = rank;
        }
    }
    ranks
}

/// All objects sorted by a key of their class; sorted when first needed.
#[derive(Debug, Default)]
pub(super) struct ByClass {
    sorted: OnceLock<SortedObjects>,
    lookups: AtomicU32,
}

/// Result of sorting all objects by class.
#[derive(Debug)]
struct SortedObjects {
    list: List,
    /// Ranks by class number.
    ranks: Vec<u32>,
    /// Start of each rank in the list; rank 0 is for objects without a class.
    starts: Vec<u32>,
}

/// Maximum number of lookups that each read the classes of all objects. A join makes more, for which a sorted list is
/// faster.
const FEW_LOOKUPS: u32 = 4;

impl ByClass {
    fn sorted_objects<K: Ord>(
        &self,
        context: &TableContext<'_>,
        key: impl Fn(ClassNumber) -> K,
    ) -> io::Result<&SortedObjects> {
        if self.sorted.get().is_none() {
            let ranks = ranks(context, key);
            let (list, starts) = by_class(context, &ranks)?;
            // Another thread may have been faster; both results are the same.
            let _ = self.sorted.set(SortedObjects { list, ranks, starts });
        }
        self.sorted.get().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the objects in the order of a key.
    pub(super) fn get<K: Ord>(
        &self,
        context: &TableContext<'_>,
        key: impl Fn(ClassNumber) -> K,
    ) -> io::Result<List> {
        Ok(self.sorted_objects(context, key)?.list.clone())
    }

    /// Returns chunks of the instances of the given classes, which have equal keys.
    pub(super) fn chunks_of_classes<K: Ord>(
        &self,
        context: &TableContext<'_>,
        classes: &[ClassNumber],
        key: impl Fn(ClassNumber) -> K,
    ) -> io::Result<Vec<TableChunk>> {
        let Some(first) = classes.first() else { return Ok(Vec::new()) };
        let is_few = self.lookups.fetch_add(1, Ordering::Relaxed) < FEW_LOOKUPS;
        if is_few && self.sorted.get().is_none() {
            return Ok(of_classes(context, classes));
        }
        let SortedObjects { list, ranks, starts } = self.sorted_objects(context, key)?;
        let rank = ranks.get(first.0 as usize).map_or(0, |rank| *rank as usize + 1);
        let start = starts.get(rank).map_or(0, |start| *start as usize);
        let end = starts.get(rank + 1).map_or(list.get().len(), |end| *end as usize);
        Ok(parts(start..end).map(|range| TableChunk::Listed(list.clone(), range)).collect())
    }
}

/// Returns the objects of a chunk of objects.
pub(super) fn objects_of(chunk: &TableChunk) -> Vec<ObjectIndex> {
    match chunk {
        TableChunk::Rows(_) | TableChunk::Elements(..) => Vec::new(),
        TableChunk::Objects(range) | TableChunk::ObjectsWith(_, range) => {
            ObjectIndex::range(range.clone()).collect()
        }
        TableChunk::Listed(list, range) | TableChunk::With(_, list, range) => {
            list.part(range.clone()).collect()
        }
    }
}
