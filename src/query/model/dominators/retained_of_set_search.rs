//! Joint retained size of objects, computed from what they dominate.
//!
//! Let S be the set of objects, all reachable, and let D be everything dominated by single objects of S, themselves
//! included: ranges of positions in the dominator tree. The objects retain D, and perhaps other objects that only
//! several of them hold together. Let X be those others. An object is *alive* if a path from a root that avoids S
//! reaches it.
//!
//! 1. No path that leads past S steps on D: every path to an object of D steps on S. And what is neither alive nor in D
//!    is in X.
//! 2. A path to an object of X has a last object in D, for it steps on S. All objects after that are in X: they are not
//!    in D, and were one alive, the object would be too. So X is found by a walk from D that steps on no object that is
//!    known to be alive. Let E be what such a walk visits.
//! 3. So what is reachable and neither in D nor in E is alive. An object of E is alive if it is known to be, if such an
//!    object refers to it, or if an object of E does that is alive. There is no other way: of a path to it past S, the
//!    first object is a root, which is known to be alive, and none is in D; the objects after the last that is not in E
//!    are as said.
//!
//! X is what is left of E. Class objects lead to class loaders, and those to nearly everything. So before an object is
//! visited, a search along a few referrers outside of D looks for a root or an object known to be alive: then all objects
//! on that path are alive. If E grows nevertheless, it is better to walk from the roots (`walk`).

use std::collections::BTreeSet;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::objects::object_set::Bits;
use hprof_base::parallel;
use hprof_base::sorting::SortRows;
use hprof_index::ObjectGraph;
use hprof_index::graph::adjacency::GROUP;
use hprof_index::graph::graph_view::NONE;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;

use super::avoiding_walk::{Marks, Outward};
use super::preorder::{self, Start};

/// Number of positions or objects per chunk.
const CHUNK: u32 = 1 << 16;
/// At most one in this many reachable objects is visited.
const VISITED: u32 = 64;
/// At most one in this many reachable objects is examined as a referrer in searches for a root, but at least this many.
const LOOKED_AT: u32 = 32;
const LOOKED_AT_ANYWAY: u32 = 1 << 14;
/// Maximum number of objects on which a search for a root steps.
const MAX_STEPS: usize = 32;
/// Maximum number of referrers examined for each of these objects.
const MAX_REFERRERS: usize = 64;

/// Limits after which a walk from the roots takes over.
#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    /// Maximum number of dominated objects: the more they are, the fewer a walk from the roots visits.
    pub dominated: u32,
    /// Maximum number of objects visited in addition to the dominated ones.
    pub visited: u32,
    /// Maximum number of referrers examined in searches for a root; without them, more objects are visited.
    pub looked_at: u32,
}

impl WalkLimits {
    /// Returns limits within which the search is cheaper than the walk.
    pub fn for_tree(tree: &Tree) -> Self {
        let reachable = tree.reachable();
        Self {
            dominated: reachable - reachable / 4,
            visited: reachable / VISITED,
            looked_at: (reachable / LOOKED_AT).max(LOOKED_AT_ANYWAY),
        }
    }
}

/// Joint retained set of a set of objects.
pub(super) struct JointRetainedSet {
    /// Objects that single members of the set dominate, including themselves.
    pub(super) dominated: Marks,
    /// All other objects that the set retains.
    pub(super) others: Vec<ObjectIndex>,
    /// Number of objects in `dominated` and `others`.
    pub(super) objects: u64,
    /// Shallow size of the objects in `dominated` and `others`.
    pub(super) bytes: u64,
}

/// Computes the objects that those at the marked positions retain. They are reachable, all between `first` and `last`, and
/// `start` dominates them. Returns `None` if a walk from there should be used instead.
pub(super) fn joint_retained_set(
    graph: &ObjectGraph,
    start: Start,
    members: &Marks<TreePosition>,
    [first, last]: [TreePosition; 2],
    limits: WalkLimits,
) -> Option<JointRetainedSet> {
    let tree = &graph.tree;
    let dominated = dominated_positions(tree, members, [first, last]);
    if dominated.len() > u64::from(limits.dominated) {
        return None;
    }
    let (dominated, mut objects, mut bytes) = objects_of(tree, &dominated);
    let mut search = JointSearch::new(graph, start, &dominated, limits);
    search.visit(search.targets_outside())?;
    search.revive();
    let JointSearch { visited: mut others, alive, .. } = search;
    others.retain(|object| !alive.contains(*object));
    for object in &others {
        let size = tree.position(*object).map_or(0, |position| tree.shallow_bytes(position));
        (objects, bytes) = (objects + 1, bytes.saturating_add(size));
    }
    Some(JointRetainedSet { dominated, others, objects, bytes })
}

/// Returns the positions that members dominate, including their own.
fn dominated_positions(
    tree: &Tree,
    members: &Marks<TreePosition>,
    [first, last]: [TreePosition; 2],
) -> Bits<TreePosition> {
    let all = TreePosition(first.0 / CHUNK * CHUNK)..TreePosition(last.0.saturating_add(1));
    // For each chunk: what members in it dominate there, and the last of them, which may also dominate objects after
    // it.
    let chunks = TreePosition::chunks(all, CHUNK);
    let chunks = parallel::map(&chunks, |chunk| {
        let mut words = vec![0u64; (CHUNK / 64) as usize];
        let mut top: Option<(TreePosition, u32)> = None;
        preorder::visit(tree, chunk.clone(), |position, depth, _| {
            if top.is_none_or(|(_, above)| depth <= above) {
                top = members.contains(position).then_some((position, depth));
            }
            let at = position.0 - chunk.start.0;
            if let Some(word) = words.get_mut((at / 64) as usize) {
                *word |= u64::from(top.is_some()) << (at % 64);
            }
        });
        (chunk, words, top)
    });
    let mut dominated = Bits::new(tree.reachable());
    for (chunk, words, _) in &chunks {
        dominated.insert_words(chunk.start, words);
    }
    for (chunk, _, top) in chunks {
        if let Some((top, _)) = top {
            dominated.insert_range(chunk.end..tree.end(top));
        }
    }
    dominated
}

/// Returns the objects at the given positions, with their number and shallow size.
fn objects_of(tree: &Tree, positions: &Bits<TreePosition>) -> (Marks, u64, u64) {
    let marks = Marks::new(tree.objects());
    let sums = parallel::map(&TreePosition::chunks(tree.positions(), CHUNK), |chunk| {
        if (chunk.start.0 / 64..chunk.end.0.div_ceil(64)).all(|word| positions.word(word) == 0) {
            return (0, 0);
        }
        let (mut objects, mut bytes) = (0u64, 0u64);
        let sizes = tree.shallow_sizes(chunk.clone());
        let all = TreePosition::range(chunk.clone()).zip(tree.objects_at(chunk));
        for ((position, object), size) in all.zip(sizes) {
            if positions.contains(position) {
                marks.mark(object);
                objects += 1;
                bytes = bytes.saturating_add(size);
            }
        }
        (objects, bytes)
    });
    let (objects, bytes) = sums.into_iter().fold((0, 0u64), |a, b| (a.0 + b.0, a.1.saturating_add(b.1)));
    (marks, objects, bytes)
}

/// Search for the objects that a set retains but no single member dominates.
struct JointSearch<'a> {
    graph: &'a ObjectGraph,
    outward: Outward<'a>,
    /// All objects dominated by the set.
    dominated: &'a Marks,
    /// Range of positions that can be retained.
    bounds: Range<TreePosition>,
    roots: Bits,
    /// Objects known to be alive.
    alive: Bits,
    /// Objects found so far: each is visited, or known to be alive.
    found: Bits,
    /// Visited objects, as a list and as bits.
    visited: Vec<ObjectIndex>,
    is_visited: Bits,
    /// Remaining number of referrers to examine.
    left: u32,
    /// Maximum number of visited objects.
    most: usize,
}

impl<'a> JointSearch<'a> {
    fn new(graph: &'a ObjectGraph, start: Start, dominated: &'a Marks, limits: WalkLimits) -> Self {
        let none = || Bits::new(graph.objects.len());
        let mut roots = none();
        for root in graph.roots.objects() {
            roots.insert(root);
        }
        Self {
            graph,
            outward: Outward::new(graph),
            dominated,
            bounds: start.dominated_range(&graph.tree).0,
            roots,
            alive: none(),
            found: none(),
            visited: Vec::new(),
            is_visited: none(),
            left: limits.looked_at,
            most: limits.visited as usize,
        }
    }

    /// Returns the targets of references from dominated objects that are not dominated, ascending.
    fn targets_outside(&self) -> Vec<ObjectIndex> {
        let (graph, dominated) = (self.graph, self.dominated);
        let found = Marks::new(graph.objects.len());
        let Outward { lists, labels } = &self.outward;
        let targets = self.class_objects();
        let classes = Marks::<ClassNumber>::new(u32::try_from(targets.len()).unwrap_or(u32::MAX));
        let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
        let outside = parallel::map(&chunks, |chunk| {
            let mut outside = Vec::new();
            for group in chunk.start.0 / GROUP..chunk.end.0.div_ceil(GROUP) {
                let first = group * GROUP;
                let members = (dominated.word(ObjectIndex(first)) >> (first % 64)) & ((1 << GROUP) - 1);
                if members == 0 {
                    continue;
                }
                lists.group(group, |object, targets| {
                    if members & (1 << (object % GROUP)) != 0 {
                        outside.extend(targets.filter(|to| !dominated.contains(*to) && found.mark(*to)));
                        classes.mark(ClassNumber(u32::try_from(labels.label_of(object)).unwrap_or(u32::MAX)));
                    }
                });
            }
            outside
        });
        let mut outside: Vec<ObjectIndex> = outside.concat();
        let of_classes = targets.into_iter().filter(|(class, _)| classes.contains(*class));
        let of_classes = of_classes.map(|(_, object)| object);
        outside.extend(of_classes.filter(|object| !dominated.contains(*object) && found.mark(*object)));
        outside.par_sort_unstable();
        outside
    }

    /// Returns all class objects, by class.
    fn class_objects(&self) -> Vec<(ClassNumber, ObjectIndex)> {
        let classes = (0u32..).map(ClassNumber).zip(self.outward.labels.targets);
        classes
            .filter(|(_, object)| **object != NONE)
            .map(|(class, object)| (class, ObjectIndex(*object)))
            .collect()
    }

    /// Visits everything reachable from these objects, including themselves, that is not known to be alive; `None` if
    /// that exceeds the limit.
    fn visit(&mut self, mut from: Vec<ObjectIndex>) -> Option<()> {
        let (graph, dominated) = (self.graph, self.dominated);
        // Class objects are few and reach the most: visited first.
        from.sort_rows_by_cached_key(|object| graph.class_of_class_object(*object).is_some());
        for object in &from {
            self.found.insert(*object);
        }
        let (mut found, mut next) = (from, Vec::new());
        while !found.is_empty() {
            for object in found.drain(..).rev() {
                if !self.is_alive(object) {
                    self.visited.push(object);
                    self.is_visited.insert(object);
                    next.push(object);
                }
                if self.visited.len() > self.most {
                    return None;
                }
            }
            let known = &mut self.found;
            self.outward.go(&mut next, usize::MAX, |_, target| {
                if !dominated.contains(target) && known.insert(target) {
                    found.push(target);
                }
                false
            });
        }
        Some(())
    }

    /// Returns whether an object is known or found to be alive: whether a path of referrers leads from it to a root or
    /// to an object known to be alive. Objects near the roots are tried first (best-first search by depth in the
    /// dominator tree).
    fn is_alive(&mut self, object: ObjectIndex) -> bool {
        let tree = &self.graph.tree;
        let is_known = |search: &Self, object: ObjectIndex| {
            search.alive.contains(object)
                || search.roots.contains(object)
                || tree.position(object).is_none_or(|position| !search.bounds.contains(&position))
        };
        if is_known(self, object) {
            self.alive.insert(object);
            return true;
        }
        // An object without references is not worth a search.
        if self.graph.references(object).next().is_none() {
            return false;
        }
        // By object: the object it references on the way to `object`.
        let mut ways = FxHashMap::from_iter([(object, object)]);
        let mut nearest = BTreeSet::from([(0, object)]);
        for _ in 0..MAX_STEPS {
            let Some((_, here)) = nearest.pop_first() else { return false };
            for referrer in self.graph.referrers(here).take(MAX_REFERRERS) {
                let Some(left) = self.left.checked_sub(1) else { return false };
                self.left = left;
                if self.dominated.contains(referrer) || ways.contains_key(&referrer) {
                    continue;
                }
                let Some(position) = tree.reachable_position(referrer) else { continue };
                ways.insert(referrer, here);
                if is_known(self, referrer) {
                    let mut at = referrer;
                    while at != object {
                        self.alive.insert(at);
                        at = ways.get(&at).copied().unwrap_or(object);
                    }
                    self.alive.insert(object);
                    return true;
                }
                nearest.insert((tree.depth(position), referrer));
            }
        }
        false
    }

    /// Finds all visited objects that are alive.
    fn revive(&mut self) {
        for object in self.held_by_instances() {
            self.alive.insert(object);
        }
        let is_held = |object: ObjectIndex| {
            self.alive.contains(object)
                || self.graph.referrers(object).any(|referrer| self.is_other(referrer))
        };
        let held = self.visited.par_iter().copied().with_min_len(1 << 10).filter(|object| is_held(*object));
        let mut held: Vec<ObjectIndex> = held.collect();
        let (alive, is_visited) = (&mut self.alive, &self.is_visited);
        for object in &held {
            alive.insert(*object);
        }
        self.outward
            .go(&mut held, usize::MAX, |_, target| is_visited.contains(target) && alive.insert(target));
    }

    /// Returns whether an object is reachable, and neither dominated nor visited: such an object is alive.
    fn is_other(&self, object: ObjectIndex) -> bool {
        !self.dominated.contains(object)
            && !self.is_visited.contains(object)
            && self.graph.tree.reachable_position(object).is_some()
    }

    /// Returns the visited class objects that are not known to be alive but have instances that are neither dominated
    /// nor visited: lists of referrers do not contain instances.
    fn held_by_instances(&self) -> Vec<ObjectIndex> {
        let graph = self.graph;
        let is_asked = |object: ObjectIndex| self.is_visited.contains(object) && !self.alive.contains(object);
        let asked: FxHashMap<ClassNumber, ObjectIndex> =
            self.class_objects().into_iter().filter(|(_, object)| is_asked(*object)).collect();
        if asked.is_empty() {
            return Vec::new();
        }
        let found = parallel::map(&ObjectIndex::chunks(graph.objects.indices(), CHUNK), |chunk| {
            let classes = graph.objects.classes(chunk.clone());
            let of = ObjectIndex::range(chunk)
                .zip(classes)
                .filter_map(|(object, class)| asked.get(&class?).copied().filter(|_| self.is_other(object)));
            let mut held: Vec<ObjectIndex> = of.collect();
            held.sort_unstable();
            held.dedup();
            held
        });
        found.concat()
    }
}
