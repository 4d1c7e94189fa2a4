//! Shortest paths from the GC roots to many objects at once, as a forest: each object has one parent.
//!
//! A breadth-first search from the roots gives each object the holder through which it is nearest to a root; of several
//! the one with the lowest object index. So the paths form trees whose tops are roots, and each object occurs once.
//!
//! The first search starts at objects that are roots for a reason other than a thread's stack: what holds an object
//! after the running methods have returned. A second one, from objects held by stacks, runs only for objects that the
//! first does not reach. References from a thread to the objects on its stack are followed in neither. Roots of
//! excluded kinds are not starts: paths lead through them as through any other object.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::dominators::avoiding_walk::{Marks, Outward};
use crate::objects::object_set::Bits;
use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_base::parallel;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::NONE;
use hprof_index::storage::scratch::{Array, ScratchArena, atomic_u32};

use super::starts::{StartRoots, Starts};

/// Number of objects in a level from which all cores are used.
const MANY: usize = 1 << 12;
/// Fraction of all objects (1/`WIDE`) that a level needs before the mark of each object is scanned.
const WIDE: usize = 256;
/// Objects per chunk of a thread.
const CHUNK: usize = 1 << 10;
/// Prefetch distance in objects, for each of two steps.
const AHEAD: usize = 8;

/// Forest of shortest paths: the nearest holder of each object.
pub struct Forest {
    /// Holder by object index; a root holds itself; NONE for objects that were not reached.
    holders: Array<u32>,
    /// Reached objects, by walk and level, ascending in each.
    order: Array<u32>,
    /// For each walk, the start of each level in `order`, and the end of the last.
    walks: Vec<Vec<usize>>,
    /// Number of sought objects that were reached.
    pub(crate) found: u64,
    /// Number of sought objects that only the second walk reached.
    pub(crate) only_frames: u64,
}

impl Forest {
    /// Walks until all sought objects are found, first from roots that are not locals, then from locals.
    pub fn grow(
        room: &ScratchArena,
        edges: &Edges<'_>,
        sought: &Bits,
        wanted: u64,
        excluded: Exclusions,
    ) -> io::Result<Self> {
        let count = edges.dump.graph.objects.len();
        let mut holders = room.array::<u32>(count as usize)?;
        holders.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(NONE));
        let mut order = room.array::<u32>(count as usize)?;
        let (mut walks, mut found, mut only_frames) = (Vec::new(), 0, 0);
        let (mut seen, mut fresh) = (Bits::new(count), Marks::new(count));
        let outward = Outward::new(edges.dump.graph);
        let mut start = 0;
        for which in [StartRoots::BeyondFrames, StartRoots::Frames] {
            if found >= wanted {
                break;
            }
            let holders = atomic_u32(&mut holders);
            let (outward, seen, fresh) = (&outward, &mut seen, &mut fresh);
            let mut walk = ForestWalk { edges, outward, excluded, sought, seen, fresh, holders };
            let starts = Starts::new(&edges.roots, excluded, which);
            let (levels, reached) = walk.go(&mut order, start, starts.objects(), wanted - found);
            start = levels.last().copied().unwrap_or(start);
            walks.push(levels);
            found += reached;
            if which == StartRoots::Frames {
                only_frames = reached;
            }
        }
        Ok(Self { holders, order, walks, found, only_frames })
    }

    /// Returns whether the search reached an object.
    pub fn reaches(&self, object: ObjectIndex) -> bool {
        self.holders.get(object.at()).is_some_and(|holder| *holder != NONE)
    }

    /// Returns the object that holds another on its path; `None` for a start.
    pub fn holder(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let holder = *self.holders.get(object.at())?;
        Some(holder).filter(|holder| *holder != object.0 && *holder != NONE).map(ObjectIndex)
    }

    /// Returns the objects by depth; objects of the first walk come before objects of the second.
    pub fn levels(&self) -> impl DoubleEndedIterator<Item: DoubleEndedIterator<Item = ObjectIndex>> {
        let depths = self.walks.iter().map(|levels| levels.len().saturating_sub(1)).max();
        (0..depths.unwrap_or(0)).map(move |depth| {
            let level = move |levels: &Vec<usize>| {
                let (start, end) = (*levels.get(depth)?, *levels.get(depth + 1)?);
                Some(self.order.get(start..end)?.iter().copied().map(ObjectIndex))
            };
            self.walks.iter().filter_map(level).flatten()
        })
    }

    /// Counts for each object the sought objects whose paths lead through it.
    pub fn counts(&self, room: &ScratchArena, sought: &Bits) -> io::Result<Array<u32>> {
        let mut array = room.zeroed_array::<u32>(self.holders.len())?;
        let counts = &mut *array;
        for object in self.levels().rev().flat_map(Iterator::rev) {
            let Some(count) = counts.get_mut(object.at()) else { continue };
            let here = *count + u32::from(sought.contains(object));
            if here == 0 {
                continue;
            }
            *count = here;
            if let Some(above) = self.holder(object).and_then(|holder| counts.get_mut(holder.at())) {
                *above += here;
            }
        }
        Ok(array)
    }
}

/// A breadth-first walk from the given roots.
struct ForestWalk<'w, 'a> {
    edges: &'w Edges<'a>,
    outward: &'w Outward<'a>,
    excluded: Exclusions,
    sought: &'w Bits,
    /// Objects reached on earlier levels or by an earlier walk.
    seen: &'w mut Bits,
    /// Objects reached from a wide level: taken in ascending order without a sort.
    fresh: &'w mut Marks,
    holders: &'w [AtomicU32],
}

impl ForestWalk<'_, '_> {
    /// Walks until `wanted` sought objects are found, and appends reached objects to `order` from `start` on. Returns
    /// the start of each level and the end of the last, and the number of sought objects found.
    fn go(
        &mut self,
        order: &mut [u32],
        start: usize,
        roots: &[ObjectIndex],
        wanted: u64,
    ) -> (Vec<usize>, u64) {
        let (mut start, mut end, mut found) = (start, start, 0);
        let fresh = roots.iter().filter(|root| !self.seen.contains(**root));
        for (place, root) in order.get_mut(start..).unwrap_or_default().iter_mut().zip(fresh) {
            *place = root.0;
            end += 1;
            if let Some(holder) = self.holders.get(root.at()) {
                holder.store(root.0, Ordering::Relaxed);
            }
        }
        for object in order.get(start..end).unwrap_or_default().iter().copied().map(ObjectIndex) {
            self.seen.insert(object);
            found += u64::from(self.sought.contains(object));
        }
        let mut levels = vec![start];
        while start < end {
            levels.push(end);
            if found >= wanted {
                break;
            }
            let (level, rest) = order.get_mut(start..).unwrap_or_default().split_at_mut(end - start);
            let mut next = Vec::new();
            // Scanning the marks of all objects pays off for wide levels only: there may be thousands of levels.
            let is_wide = level.len() >= MANY.max(self.holders.len() / WIDE);
            if level.len() < MANY {
                self.step(level, |target| next.push(target));
                next.sort_unstable();
            } else if !is_wide {
                let of_chunk = |chunk: &[u32]| {
                    let mut reached = Vec::new();
                    self.step(chunk, |target| reached.push(target));
                    reached
                };
                next = parallel::map(&level.chunks(CHUNK).collect::<Vec<_>>(), of_chunk).concat();
                next.par_sort_unstable();
            } else {
                let fresh = &*self.fresh;
                parallel::for_each(&level.chunks(CHUNK).collect::<Vec<_>>(), |chunk| {
                    self.step(chunk, |target| {
                        fresh.mark(target);
                    });
                });
            }
            let mut places = rest.iter_mut();
            let mut count = 0;
            let mut take = |object: ObjectIndex| {
                if let Some(place) = places.next() {
                    *place = object.0;
                    count += 1;
                }
                self.seen.insert(object);
                found += u64::from(self.sought.contains(object));
            };
            if is_wide {
                self.fresh.take(&mut take)
            } else {
                next.into_iter().for_each(take)
            }
            (start, end) = (end, end + count);
        }
        (levels, found)
    }

    /// Sets the holder of all objects that these objects refer to, and calls `reach` for those that had none. The
    /// result does not depend on the order of threads: the holder with the lowest index is kept.
    fn step(&self, level: &[u32], mut reach: impl FnMut(ObjectIndex)) {
        let (edges, excluded) = (self.edges, self.excluded);
        for (at, object) in level.iter().copied().map(ObjectIndex).enumerate() {
            if let Some(ahead) = level.get(at + 2 * AHEAD) {
                self.outward.prefetch_place(ObjectIndex(*ahead));
            }
            if let Some(ahead) = level.get(at + AHEAD) {
                self.outward.prefetch_list(ObjectIndex(*ahead));
            }
            let class = self.outward.class(object);
            let is_weak = class.is_some_and(|class| excluded.contains(edges.strengths.of_class(class)));
            let has_excluded = is_weak || edges.excludes_fields();
            let left_out = if has_excluded {
                edges.excluded_targets(object, is_weak, excluded)
            } else {
                FxHashSet::default()
            };
            let class_object = class.and_then(|class| edges.dump.graph.class_object(class));
            // Only threads hold locals, and threads are roots.
            let is_root = edges.roots.contains(object);
            let beyond_stack = if is_root { edges.beyond_stack(object) } else { FxHashSet::default() };
            for target in self.outward.references(object).chain(class_object) {
                if self.seen.contains(target)
                    || left_out.contains(&target)
                    || is_root && edges.roots.is_local_of(object, target) && !beyond_stack.contains(&target)
                {
                    continue;
                }
                let Some(holder) = self.holders.get(target.at()) else { continue };
                if holder.load(Ordering::Relaxed) > object.0
                    && holder.fetch_min(object.0, Ordering::Relaxed) == NONE
                {
                    reach(target);
                }
            }
        }
    }
}
