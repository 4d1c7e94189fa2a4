//! Retained sizes of many sets of objects, computed in one walk.
//!
//! `retained_of_set` walks the graph once for one set; a container has thousands of class loaders. Here each object
//! gets the sets through which all paths from the roots to it lead: those that it is a member of, and those that are
//! common to all its referrers. That is the greatest solution of the data-flow equations of dominators (F. E. Allen, J.
//! Cocke: Graph-theoretic constructs for program flow analysis, IBM Research RC 3923, 1972), with sets of objects in
//! place of single objects. A set retains the objects whose collection contains it.
//!
//! Most objects can be reached without visiting any member: a walk by all threads finds them first. The others are
//! taken from a work list until nothing changes. Few distinct collections of sets occur, so each object stores the
//! number of its collection, and two numbers are intersected once. Where sets hold one another in long chains, so that
//! collections grow, fewer sets are processed together.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use crate::objects::object_set::Bits;
use hprof_base::parallel;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::scratch::Array;

use super::avoiding_walk::{Marks, walk};
use super::preorder::Start;

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 18;
/// Maximum total size of all collections: 64 MiB.
const MAX_NUMBERS: usize = 1 << 24;
/// Maximum number of intersections kept in the cache.
const MAX_KNOWN: usize = 1 << 21;
/// Number of the empty collection.
const EMPTY: u32 = 0;
/// Marks an object that is on the work list.
const QUEUED: u32 = 1 << 31;

/// Sets of objects, by number from 0: whole classes, and single objects. An object can be a member of several.
#[derive(Debug, Clone, Default)]
pub struct Sets {
    /// Number of sets.
    pub count: u32,
    /// By class number: sets that contain the class object and the instances.
    pub of_class: Vec<Vec<u32>>,
    /// Sets of single objects.
    pub of_object: FxHashMap<ObjectIndex, Vec<u32>>,
}

/// Retained size of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetRetained {
    /// Size freed with the reachable members.
    pub bytes: u64,
    /// Number of objects that would be freed, including members; 0 if no member is reachable.
    pub objects: u64,
}

impl Sets {
    fn is_of_class(&self, class: usize) -> bool {
        self.of_class.get(class).is_some_and(|sets| !sets.is_empty())
    }

    /// Returns all members of all sets.
    fn members(&self, graph: &ObjectGraph) -> RoaringBitmap {
        let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
        let mut members = parallel::union(&chunks, |chunk| {
            let classes = graph.objects.classes(chunk.clone());
            let all = ObjectIndex::range(chunk).zip(classes);
            all.filter(|(_, class)| class.is_some_and(|class| self.is_of_class(class.0 as usize)))
                .map(|(object, _)| object.0)
                .collect()
        });
        members.extend(self.of_object.keys().map(|object| object.0));
        let classes = (0u32..).zip(&self.of_class).filter(|(_, sets)| !sets.is_empty());
        members.extend(
            classes.filter_map(|(class, _)| graph.class_object(ClassNumber(class))).map(|object| object.0),
        );
        members
    }

    /// Returns the sets of a batch that contain an object, ascending.
    fn containing_sets(&self, graph: &ObjectGraph, object: ObjectIndex, batch: &Range<u32>) -> Vec<u32> {
        let classes = [graph.objects.class(object), graph.class_of_class_object(object)];
        let by_class = classes.iter().flatten().filter_map(|class| self.of_class.get(class.0 as usize));
        let sets = by_class.chain(self.of_object.get(&object)).flatten();
        let mut sets: Vec<u32> = sets.copied().filter(|set| batch.contains(set)).collect();
        sets.sort_unstable();
        sets.dedup();
        sets
    }
}

/// Computes the retained size of each set, like `retained_of_set::retained` for one.
///
/// # Errors
/// If neither memory nor disk has space for a number per object.
pub fn retained(graph: &ObjectGraph, sets: &Sets) -> io::Result<Vec<SetRetained>> {
    let mut answer = vec![SetRetained::default(); sets.count as usize];
    let members = sets.members(graph);
    if members.is_empty() {
        return Ok(answer);
    }
    let mut outside = walk(graph, Start::Roots, &members);
    let mut is_member = Bits::new(graph.objects.len());
    for member in members.iter().map(ObjectIndex) {
        outside.unmark(member);
        is_member.insert(member);
    }
    let seeds = seeds(graph, sets, &members, &outside);
    let walk = SetsWalk { graph, sets, outside, is_member, seeds };
    let mut batches: Vec<Range<u32>> = std::iter::once(0..sets.count).collect();
    while let Some(batch) = batches.pop() {
        // One set makes at most two collections.
        if walk.batch(&batch, &mut answer)?.is_some() || batch.end - batch.start < 2 {
            continue;
        }
        let middle = batch.start + (batch.end - batch.start) / 2;
        batches.extend([batch.start..middle, middle..batch.end]);
    }
    Ok(answer)
}

/// Returns the members that are roots, or have a referrer that is reachable without any member.
fn seeds(graph: &ObjectGraph, sets: &Sets, members: &RoaringBitmap, outside: &Marks) -> Vec<ObjectIndex> {
    let roots: RoaringBitmap = graph.roots.objects().iter().map(|object| object.0).collect();
    let by_instances = class_objects_held_by_instances(graph, sets, members, outside);
    let members: Vec<u32> = members.iter().collect();
    let is_seed = |member: &u32| {
        roots.contains(*member)
            || by_instances.contains(*member)
            || graph.referrers(ObjectIndex(*member)).any(|referrer| outside.contains(referrer))
    };
    members.into_par_iter().with_min_len(1 << 10).filter(is_seed).map(ObjectIndex).collect()
}

/// Returns the class objects that are members while their instances need not be, as single objects or as instances of
/// java.lang.Class, and that have an instance that is reachable without any member. Lists of referrers do not contain
/// instances.
fn class_objects_held_by_instances(
    graph: &ObjectGraph,
    sets: &Sets,
    members: &RoaringBitmap,
    outside: &Marks,
) -> RoaringBitmap {
    let classes = (0u32..).zip(&sets.of_class).filter(|(_, of)| of.is_empty());
    let classes = classes.map(|(class, _)| ClassNumber(class));
    let is_member =
        |class: &ClassNumber| graph.class_object(*class).is_some_and(|object| members.contains(object.0));
    let single: Vec<ClassNumber> = classes.filter(is_member).collect();
    if single.is_empty() {
        return RoaringBitmap::new();
    }
    let classes: RoaringBitmap = single.into_iter().map(|class| class.0).collect();
    let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
    parallel::union(&chunks, |chunk| {
        let all = ObjectIndex::range(chunk.clone()).zip(graph.objects.classes(chunk));
        let of_classes = all.filter_map(|(object, class)| Some((object, class?)));
        of_classes
            .filter(|(object, class)| classes.contains(class.0) && outside.contains(*object))
            .filter_map(|(_, class)| graph.class_object(class))
            .map(|object| object.0)
            .collect()
    })
}

/// Walk that computes the retained sizes of sets, with the state shared by all batches.
struct SetsWalk<'a> {
    graph: &'a ObjectGraph,
    sets: &'a Sets,
    /// Objects that are reachable without any member.
    outside: Marks,
    is_member: Bits,
    seeds: Vec<ObjectIndex>,
}

impl SetsWalk<'_> {
    /// Processes a batch of sets; `None` if they are too many to be processed together.
    fn batch(&self, batch: &Range<u32>, answer: &mut [SetRetained]) -> io::Result<Option<()>> {
        let mut collections = SetCollections::new(batch.end - batch.start > 1);
        // By object: 0 if no path to it was found, or 1 + the number of its collection.
        let mut of = self.graph.room().zeroed_array::<u32>(self.graph.objects.len() as usize)?;
        if self.solve(batch, &mut collections, &mut of).is_none() {
            return Ok(None);
        }
        let counts = self.counts(collections.all.len(), &of);
        for (collection, count) in collections.all.iter().zip(counts) {
            for set in collection.iter() {
                if let Some(retained) = answer.get_mut(*set as usize) {
                    retained.bytes = retained.bytes.saturating_add(count.bytes);
                    retained.objects += count.objects;
                }
            }
        }
        Ok(Some(()))
    }

    fn solve(&self, batch: &Range<u32>, collections: &mut SetCollections, of: &mut Array<u32>) -> Option<()> {
        let graph = self.graph;
        let mut next = Vec::new();
        for seed in &self.seeds {
            let own = collections.number(self.sets.containing_sets(graph, *seed, batch))?;
            if let Some(place) = of.get_mut(seed.at()) {
                *place = (own + 1) | QUEUED;
                next.push(*seed);
            }
        }
        while !next.is_empty() {
            for object in std::mem::take(&mut next) {
                let Some(place) = of.get_mut(object.at()) else { continue };
                *place &= !QUEUED;
                let here = place.saturating_sub(1);
                for target in graph.references(object).chain(graph.class_object_of(object)) {
                    let Some(before) = of.get(target.at()).copied() else { continue };
                    let known = (before & !QUEUED).checked_sub(1);
                    if known == Some(EMPTY) || self.outside.contains(target) {
                        continue;
                    }
                    let mut now = match known {
                        Some(known) => collections.common(known, here)?,
                        None => here,
                    };
                    if known == Some(now) {
                        continue;
                    }
                    if self.is_member.contains(target) {
                        let own = self.sets.containing_sets(graph, target, batch);
                        now = collections.with(now, &own)?;
                    }
                    if known == Some(now) {
                        continue;
                    }
                    if before & QUEUED == 0 {
                        next.push(target);
                    }
                    if let Some(place) = of.get_mut(target.at()) {
                        *place = (now + 1) | QUEUED;
                    }
                }
            }
        }
        Some(())
    }

    /// Computes the sizes of the objects of each collection.
    fn counts(&self, collections: usize, of: &Array<u32>) -> Vec<SetRetained> {
        let tree = &self.graph.tree;
        let none = || vec![SetRetained::default(); collections];
        let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1);
        let chunk = (tree.reachable() / threads / 4).max(CHUNK);
        let add = |mut counts: Vec<SetRetained>, chunk: Range<TreePosition>| {
            let sizes = tree.shallow_sizes(chunk.clone());
            for (object, bytes) in tree.objects_at(chunk).zip(sizes) {
                let collection = of.get(object.at()).and_then(|number| number.checked_sub(1));
                if let Some(count) = collection.and_then(|number| counts.get_mut(number as usize)) {
                    count.bytes = count.bytes.saturating_add(bytes);
                    count.objects += 1;
                }
            }
            counts
        };
        let together = |mut counts: Vec<SetRetained>, others: Vec<SetRetained>| {
            for (count, other) in counts.iter_mut().zip(others) {
                count.bytes = count.bytes.saturating_add(other.bytes);
                count.objects += other.objects;
            }
            counts
        };
        TreePosition::chunks(tree.positions(), chunk).into_par_iter().fold(none, add).reduce(none, together)
    }
}

/// Distinct collections of sets, by number.
struct SetCollections {
    all: Vec<Arc<[u32]>>,
    numbers: FxHashMap<Arc<[u32]>, u32>,
    /// Cached intersections of two collections.
    known: FxHashMap<(u32, u32), u32>,
    /// Total size of all collections.
    len: usize,
    is_limited: bool,
}

impl SetCollections {
    fn new(is_limited: bool) -> Self {
        let empty: Arc<[u32]> = Arc::from([]);
        Self {
            all: vec![empty.clone()],
            numbers: FxHashMap::from_iter([(empty, EMPTY)]),
            known: FxHashMap::default(),
            len: 0,
            is_limited,
        }
    }

    /// Returns the number of a collection; `None` if there are too many.
    fn number(&mut self, sets: Vec<u32>) -> Option<u32> {
        if let Some(number) = self.numbers.get(sets.as_slice()) {
            return Some(*number);
        }
        self.len += sets.len();
        let number = u32::try_from(self.all.len()).ok().filter(|number| *number < QUEUED - 1)?;
        if self.is_limited && self.len > MAX_NUMBERS {
            return None;
        }
        let sets: Arc<[u32]> = sets.into();
        self.all.push(sets.clone());
        self.numbers.insert(sets, number);
        Some(number)
    }

    fn get(&self, number: u32) -> &[u32] {
        self.all.get(number as usize).map_or(&[], |sets| sets)
    }

    /// Returns the intersection of two collections.
    fn common(&mut self, a: u32, b: u32) -> Option<u32> {
        if a == b || a == EMPTY || b == EMPTY {
            return Some(if a == b { a } else { EMPTY });
        }
        let key = (a.min(b), a.max(b));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        let (a, b) = (self.get(a), self.get(b));
        let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
        let common = few.iter().copied().filter(|set| many.binary_search(set).is_ok()).collect();
        let number = self.number(common)?;
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, number);
        Some(number)
    }

    /// Returns the union of a collection and more sets.
    fn with(&mut self, number: u32, more: &[u32]) -> Option<u32> {
        let sets = self.get(number);
        if more.iter().all(|set| sets.binary_search(set).is_ok()) {
            return Some(number);
        }
        let mut sets: Vec<u32> = sets.iter().chain(more).copied().collect();
        sets.sort_unstable();
        sets.dedup();
        self.number(sets)
    }
}
