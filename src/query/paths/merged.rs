//! The shortest paths from the GC roots to many objects at once, merged into trees: what keeps all of them alive.
//!
//! One walk from all roots, level by level, gives each object the holder through which it is nearest to a root; of several
//! the one with the lowest object index. So the paths make trees whose tops are roots, and each object is in one place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use crate::index::graph::numbers::ObjectIndex;
use crate::index::model::summary::ClassNumber;
use crate::index::model::tables::NONE;
use crate::index::storage::scratch::{Array, ScratchArena, atomic_u32};

use crate::query::objects::object_set::Bits;
use crate::query::objects::reference_names::Edges;
use crate::query::objects::strength::Excluded;

/// Objects of a level from which on it is worth to use all cores.
const MANY: usize = 1 << 12;
/// Objects that a thread takes at a time.
const CHUNK: usize = 1 << 10;
/// Such chunks whose findings are in memory together.
const BATCH: usize = 1 << 10;
/// Objects that follow one another without a branch, if branches are limited.
const LONGEST_RUN: u32 = 1000;

/// What of the trees is shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Show {
    /// Objects below each object; all by default.
    pub top: Option<usize>,
    /// Levels; all by default.
    pub depth: Option<u32>,
    /// Branches in all, those that lead to most objects; all by default. An object through which all goes that goes
    /// through its holder makes no branch. If branches are limited, those that lead to less than a hundredth of the
    /// objects are examples: below each object there is one at most; and a thousand objects without a branch are enough.
    pub branches: Option<usize>,
}

/// Objects of which only the number is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct More {
    /// How many objects are left out right below.
    pub nodes: u64,
    /// Objects sought among them and below.
    pub objects: u64,
    /// Their class, if it is the same for all.
    pub class: Option<ClassNumber>,
}

impl More {
    fn add(&mut self, class: Option<ClassNumber>, objects: u32) {
        self.class = if self.nodes == 0 || self.class == class { class } else { None };
        self.nodes += 1;
        self.objects += u64::from(objects);
    }
}

/// An object on the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The object, by index.
    pub object: ObjectIndex,
    /// The node that holds it, by its place in the list; `None` for roots.
    pub parent: Option<usize>,
    /// Links from the root.
    pub depth: u32,
    /// Links from the last branch.
    run: u32,
    /// Objects sought whose path goes through it, itself included.
    pub objects: u32,
    /// Whether it is one of them.
    pub is_sought: bool,
    /// What is left out right below it.
    pub more: More,
}

/// The paths to some objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// The trees in preorder, those that lead to most objects first.
    pub nodes: Vec<Node>,
    /// Roots that are left out.
    pub more: More,
    /// Objects that are sought.
    pub sought: u64,
    /// Those that the paths lead to.
    pub found: u64,
    /// Those that are reachable, but not if references are left out.
    pub only_excluded: u64,
    /// Those that are not reachable at all.
    pub unreachable: u64,
    /// Whether there is no path at all without what should have been left out, so that nothing was.
    pub followed_all: bool,
}

/// Finds and merges the shortest paths to `objects`. References that are `excluded` are left out; if there is no path
/// then, all are followed.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each object.
pub fn merged(
    edges: &Edges<'_>,
    objects: &RoaringBitmap,
    excluded: Excluded,
    show: Show,
) -> io::Result<Merged> {
    let mut sought = Bits::new(edges.graph.objects.len());
    let mut reachable = 0u64;
    for object in objects.iter().map(ObjectIndex) {
        if edges.graph.tree.reachable_position(object).is_some() {
            reachable += 1;
            sought.insert(object);
        }
    }
    let mut merged =
        Merged { sought: objects.len(), unreachable: objects.len() - reachable, ..Merged::default() };
    if reachable == 0 {
        return Ok(merged);
    }
    let room = edges.graph.room();
    let mut forest = Forest::grow(&room, edges, &sought, reachable, excluded)?;
    merged.followed_all = forest.found == 0 && !excluded.is_empty();
    if merged.followed_all {
        drop(forest);
        forest = Forest::grow(&room, edges, &sought, reachable, Excluded::NONE)?;
    }
    merged.found = forest.found;
    merged.only_excluded = if merged.followed_all { reachable } else { reachable - forest.found };
    let counts = forest.counts(&room, &sought)?;
    let mut picker = Picker {
        edges,
        sought: &sought,
        show,
        nodes: Vec::new(),
        more: More::default(),
        heap: BinaryHeap::new(),
    };
    picker.pick(&forest, &counts);
    merged.more = picker.more;
    merged.nodes = picker.in_preorder();
    Ok(merged)
}

/// The nearest holder of each object.
struct Forest {
    /// By object: the holder; a root itself; NONE for objects that were not reached.
    holders: Array<u32>,
    /// The objects that were reached, level by level, ascending in each.
    order: Array<u32>,
    /// Where each level starts in `order`, and where the last ends.
    levels: Vec<usize>,
    /// Objects sought that were reached.
    found: u64,
}

impl Forest {
    /// Walks from all roots until all objects sought are found.
    fn grow(
        room: &ScratchArena,
        edges: &Edges<'_>,
        sought: &Bits,
        wanted: u64,
        excluded: Excluded,
    ) -> io::Result<Self> {
        let count = edges.graph.objects.len();
        let mut holders = room.array::<u32>(count as usize)?;
        holders.par_chunks_mut(CHUNK).for_each(|chunk| chunk.fill(NONE));
        let mut order = room.array::<u32>(count as usize)?;
        let roots = edges.roots.objects();
        for (place, root) in order.iter_mut().zip(&roots) {
            *place = root.0;
            if let Some(holder) = holders.get_mut(root.at()) {
                *holder = root.0;
            }
        }
        let mut levels = vec![0];
        let (mut start, mut end, mut found) = (0, roots.len().min(order.len()), 0);
        let mut seen = Bits::new(count);
        {
            let (holders, order) = (atomic_u32(&mut holders), &mut *order);
            while start < end {
                let (level, rest) = order.get_mut(start..).unwrap_or_default().split_at_mut(end - start);
                for object in level.iter().copied().map(ObjectIndex) {
                    seen.insert(object);
                    found += u64::from(sought.contains(object));
                }
                levels.push(end);
                if found >= wanted {
                    break;
                }
                let mut count = 0;
                let mut places = rest.iter_mut();
                // What threads have found is taken from them before they go on.
                for batch in level.chunks(BATCH * CHUNK) {
                    let look = |chunk: &[u32]| step(holders, edges, &seen, excluded, chunk);
                    let found: Vec<Vec<u32>> = if batch.len() < MANY {
                        vec![look(batch)]
                    } else {
                        batch.par_chunks(CHUNK).map(look).collect()
                    };
                    for (object, place) in found.into_iter().flatten().zip(&mut places) {
                        *place = object;
                        count += 1;
                    }
                }
                if let Some(next) = rest.get_mut(..count) {
                    if count < MANY { next.sort_unstable() } else { next.par_sort_unstable() }
                }
                (start, end) = (end, end + count);
            }
        }
        Ok(Self { holders, order, levels, found })
    }

    fn holder(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let holder = *self.holders.get(object.at())?;
        Some(holder).filter(|holder| *holder != object.0 && *holder != NONE).map(ObjectIndex)
    }

    fn levels(&self) -> impl DoubleEndedIterator<Item: DoubleEndedIterator<Item = ObjectIndex>> {
        self.levels.windows(2).filter_map(|ends| match ends {
            [start, end] => Some(self.order.get(*start..*end)?.iter().copied().map(ObjectIndex)),
            _ => None,
        })
    }

    /// By object: objects sought whose path goes through it.
    fn counts(&self, room: &ScratchArena, sought: &Bits) -> io::Result<Array<u32>> {
        let mut array = room.zeroed::<u32>(self.holders.len())?;
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

/// Gives what these objects refer to their holder, and lists what has none before. Which thread is first makes no
/// difference: the lowest index stays.
fn step(
    holders: &[AtomicU32],
    edges: &Edges<'_>,
    seen: &Bits,
    excluded: Excluded,
    level: &[u32],
) -> Vec<u32> {
    let mut next = Vec::new();
    for object in level.iter().copied().map(ObjectIndex) {
        let class = edges.graph.objects.class(object);
        let is_weak = class.is_some_and(|class| excluded.contains(edges.strengths.of_class(class)));
        let left_out = if is_weak { edges.excluded_target(object, excluded) } else { None };
        let class_object = class.and_then(|class| edges.graph.class_object(class));
        for target in edges.graph.references(object).chain(class_object) {
            if seen.contains(target) || left_out == Some(target) {
                continue;
            }
            let Some(holder) = holders.get(target.at()) else { continue };
            if holder.load(Ordering::Relaxed) > object.0
                && holder.fetch_min(object.0, Ordering::Relaxed) == NONE
            {
                next.push(target.0);
            }
        }
    }
    next
}

/// Chooses what is shown.
struct Picker<'p, 'a> {
    edges: &'p Edges<'a>,
    sought: &'p Bits,
    show: Show,
    /// Level by level; nodes that fell out again have no objects.
    nodes: Vec<Node>,
    more: More,
    /// The branches that are shown: of those with fewest objects the last comes first.
    heap: BinaryHeap<Reverse<(u32, Reverse<usize>)>>,
}

/// An object that may be shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// The node of its holder; roots have one in common.
    parent: Option<usize>,
    objects: Reverse<u32>,
    object: ObjectIndex,
}

impl Picker<'_, '_> {
    fn pick(&mut self, forest: &Forest, counts: &[u32]) {
        let mut shown: FxHashMap<ObjectIndex, usize> = FxHashMap::default();
        for (depth, level) in (0u32..).zip(forest.levels()) {
            let mut candidates: Vec<Candidate> = level
                .filter_map(|object| {
                    let objects = counts.get(object.at()).copied().filter(|count| *count > 0)?;
                    let parent = match forest.holder(object) {
                        None => None,
                        Some(holder) => Some(*shown.get(&holder).filter(|node| self.is_shown(**node))?),
                    };
                    Some(Candidate { parent, objects: Reverse(objects), object })
                })
                .collect();
            candidates.sort_unstable();
            let too_deep = self.show.depth.is_some_and(|most| depth >= most);
            let top = if too_deep { 0 } else { self.show.top.unwrap_or(usize::MAX) };
            let mut chosen: Vec<(Candidate, u32)> = Vec::new();
            let (mut parent, mut rank) = (None, 0);
            for candidate in candidates {
                rank = if rank > 0 && parent == candidate.parent { rank + 1 } else { 1 };
                parent = candidate.parent;
                if rank > top || rank > 1 && self.is_small(candidate.objects.0, forest.found) {
                    self.leave_out(candidate.parent, candidate.object, candidate.objects.0);
                    continue;
                }
                let run = parent.and_then(|parent| self.nodes.get(parent)).map_or(0, |above| {
                    let all = above.objects == candidate.objects.0 + u32::from(above.is_sought);
                    if all { above.run.saturating_add(1) } else { 0 }
                });
                if run > LONGEST_RUN && self.show.branches.is_some() {
                    self.leave_out(candidate.parent, candidate.object, candidate.objects.0);
                    continue;
                }
                chosen.push((candidate, run));
            }
            // What leads to most objects has the first choice.
            chosen.sort_by_key(|(candidate, _)| candidate.objects);
            shown.clear();
            for (Candidate { parent, objects: Reverse(objects), object }, run) in chosen {
                let node = self.nodes.len();
                if run == 0 && !self.take_branch(objects, node) {
                    self.leave_out(parent, object, objects);
                    continue;
                }
                let is_sought = self.sought.contains(object);
                self.nodes.push(Node {
                    object,
                    parent,
                    depth,
                    run,
                    objects,
                    is_sought,
                    more: More::default(),
                });
                shown.insert(object, node);
            }
            if shown.is_empty() {
                return;
            }
        }
    }

    /// Whether a branch is an example only.
    fn is_small(&self, objects: u32, all: u64) -> bool {
        self.show.branches.is_some() && u64::from(objects) * 100 < all
    }

    fn is_shown(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.objects > 0)
    }

    fn leave_out(&mut self, parent: Option<usize>, object: ObjectIndex, objects: u32) {
        let class = self.edges.graph.objects.class(object);
        match parent {
            None => self.more.add(class, objects),
            Some(parent) => {
                if let Some(parent) = self.nodes.get_mut(parent) {
                    parent.more.add(class, objects);
                }
            }
        }
    }

    /// Whether a branch is shown. One that leads to fewer objects may have to go for it.
    fn take_branch(&mut self, objects: u32, node: usize) -> bool {
        let Some(most) = self.show.branches else { return true };
        if self.heap.len() < most {
            self.heap.push(Reverse((objects, Reverse(node))));
            return true;
        }
        let Some(&Reverse((fewest, Reverse(last)))) = self.heap.peek() else { return false };
        if fewest >= objects {
            return false;
        }
        self.heap.pop();
        self.heap.push(Reverse((objects, Reverse(node))));
        if let Some(Node { object, parent, .. }) = self.nodes.get(last).copied() {
            self.leave_out(parent, object, fewest);
        }
        if let Some(gone) = self.nodes.get_mut(last) {
            gone.objects = 0;
        }
        true
    }

    /// The nodes in preorder, without those that fell out.
    fn in_preorder(self) -> Vec<Node> {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut stack = Vec::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.objects > 0) {
            match node.parent {
                None => stack.push((at, None)),
                Some(parent) => {
                    if let Some(below) = below.get_mut(parent) {
                        below.push(at);
                    }
                }
            }
        }
        stack.reverse();
        let mut nodes = Vec::with_capacity(self.nodes.len());
        while let Some((at, parent)) = stack.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            let place = nodes.len();
            nodes.push(Node { parent, ..*node });
            let children = below.get_mut(at).map(std::mem::take).unwrap_or_default();
            stack.extend(children.into_iter().rev().map(|child| (child, Some(place))));
        }
        nodes
    }
}
