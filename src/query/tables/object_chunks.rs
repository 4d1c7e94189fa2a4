//! Chunks of the tables that have a row, or some rows, for each object.

use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use super::{Chunk, Context, Key, List};
use crate::index::graph::numbers::ObjectIndex;
use crate::index::model::summary::ClassNumber;
use crate::query::objects::class_set::ClassSet;

/// Objects of a chunk: few enough that their columns stay in a cache, many enough that nobody waits for the next.
const CHUNK: u32 = 1 << 14;

/// All objects, in the order of their IDs.
pub(super) fn all(context: &Context<'_>) -> Vec<Chunk> {
    ObjectIndex::chunks(context.graph.objects.all(), CHUNK).into_iter().map(Chunk::Objects).collect()
}

/// Some objects, in their order.
pub(super) fn listed(list: List) -> Vec<Chunk> {
    ranges(&list).map(|range| Chunk::Listed(list.clone(), range)).collect()
}

/// The places of a list in chunks.
pub(super) fn ranges(list: &List) -> impl Iterator<Item = Range<usize>> + use<> {
    let (len, size) = (list.get().len(), CHUNK as usize);
    (0..len).step_by(size).map(move |start| start..start.saturating_add(size).min(len))
}

/// The object of an ID, if there is one.
pub(super) fn of_id(context: &Context<'_>, key: &Key) -> Vec<Chunk> {
    let Key::Integer(id) = key else { return Vec::new() };
    context.object(*id).map(|object| listed(List::of(vec![object]))).unwrap_or_default()
}

/// The objects of some classes.
pub(super) fn of_classes(context: &Context<'_>, classes: &[ClassNumber]) -> Vec<Chunk> {
    if classes.is_empty() {
        return Vec::new();
    }
    listed(List::of(ClassSet::of(context.summary, classes).all_objects(context.graph)))
}

/// All objects, sorted by class: the order of a rank by class number; those of no class first. Counting sort.
pub(super) fn by_class(context: &Context<'_>, ranks: &[u32]) -> io::Result<List> {
    let graph = context.graph;
    let labels = graph.labels();
    // Rank 0 is that of no class.
    let rank = |object: u32| {
        labels.known(object).and_then(|class| ranks.get(class)).map_or(0, |rank| *rank as usize + 1)
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
    let mut sorted = graph.room().zeroed::<u32>(objects as usize)?;
    for object in 0..objects {
        if let Some(next) = next.get_mut(rank(object)) {
            if let Some(place) = sorted.get_mut(*next as usize) {
                *place = object;
            }
            *next += 1;
        }
    }
    Ok(List::sorted(sorted))
}

/// The rank of each class in the order of a key, the same for the same key.
pub(super) fn ranks<K: Ord>(context: &Context<'_>, key: impl Fn(ClassNumber) -> K) -> Vec<u32> {
    let mut sorted: Vec<(K, ClassNumber)> =
        context.summary.numbered_classes().map(|(number, _)| (key(number), number)).collect();
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

/// Objects sorted by a key of their class, made once.
#[derive(Debug, Default)]
pub(super) struct ByClass(OnceLock<List>);

impl ByClass {
    /// The objects in the order of a key.
    pub(super) fn get<K: Ord>(
        &self,
        context: &Context<'_>,
        key: impl Fn(ClassNumber) -> K,
    ) -> io::Result<List> {
        if let Some(list) = self.0.get() {
            return Ok(list.clone());
        }
        let list = by_class(context, &ranks(context, key))?;
        Ok(self.0.get_or_init(|| list).clone())
    }
}

/// The objects of a chunk of objects.
pub(super) fn objects_of(chunk: &Chunk) -> Vec<ObjectIndex> {
    match chunk {
        Chunk::Rows(_) => Vec::new(),
        Chunk::Objects(range) => ObjectIndex::range(range.clone()).collect(),
        Chunk::Listed(list, range) | Chunk::With(_, list, range) => list.part(range.clone()).collect(),
    }
}
