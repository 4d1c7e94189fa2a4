//! Shortest paths from the GC roots to many objects at once, merged into trees.
//!
//! The paths are those of `super::forest`; this module selects the nodes that are shown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use hprof_base::share::is_share;
use roaring::RoaringBitmap;
use rustc_hash::FxHashMap;

use crate::objects::object_set::Bits;
use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;

use super::forest::Forest;

/// Maximum number of objects in a row without a branch, if branches are limited.
const LONGEST_RUN: u32 = 1000;

/// Limits of the trees that are shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct MergeLimits {
    /// Maximum number of children of each object; all by default.
    pub top: Option<usize>,
    /// Maximum number of levels; all by default.
    pub depth: Option<u32>,
    /// Maximum number of branches, those with most objects first; all by default. An only child with all objects of its
    /// holder is not a branch. If branches are limited, a run without branches ends after a thousand objects.
    pub branches: Option<usize>,
    /// `true` if a child with less than one percent of all found objects is shown only as an example: only if it is the largest
    /// child of its parent.
    pub has_examples: bool,
}

/// Summary of omitted nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OmittedPaths {
    /// Number of omitted nodes directly below.
    pub nodes: u64,
    /// Number of sought objects among them and below.
    pub objects: u64,
    /// Class of the nodes, if all have the same.
    pub class: Option<ClassNumber>,
}

impl OmittedPaths {
    fn add(&mut self, class: Option<ClassNumber>, objects: u32) {
        self.class = if self.nodes == 0 || self.class == class { class } else { None };
        self.nodes += 1;
        self.objects += u64::from(objects);
    }
}

/// An object on the paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathNode {
    /// Object index.
    pub object: ObjectIndex,
    /// Index of the parent node in the list; `None` for roots.
    pub parent: Option<usize>,
    /// Number of references from the root.
    pub depth: u32,
    /// Number of references since the last branch.
    run: u32,
    /// Number of sought objects whose path leads through this one, itself included.
    pub objects: u32,
    /// `true` if this object is sought.
    pub is_sought: bool,
    /// Omitted nodes directly below.
    pub more: OmittedPaths,
}

/// Merged paths from the roots to a set of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedPaths {
    /// Trees in preorder, those with most sought objects first.
    pub nodes: Vec<PathNode>,
    /// Omitted roots.
    pub more: OmittedPaths,
    /// Number of sought objects.
    pub sought: u64,
    /// Number of sought objects in the trees.
    pub found: u64,
    /// Number of found objects whose paths all start in threads' stacks.
    pub only_frames: u64,
    /// Number of sought objects that are reachable only through excluded references.
    pub only_excluded: u64,
    /// Number of unreachable sought objects.
    pub unreachable: u64,
    /// `true` if no path avoids the excluded references, so that all references were followed.
    pub followed_all: bool,
}

/// Finds and merges the shortest paths to `objects`. Skips `excluded` references; if there is no path then, follows all
/// references, still from the same roots.
///
/// # Errors
/// If there is neither memory nor disk space for a few numbers for each object.
pub fn merge_paths(
    edges: &Edges<'_>,
    objects: &RoaringBitmap,
    excluded: Exclusions,
    show: MergeLimits,
) -> io::Result<MergedPaths> {
    let mut sought = Bits::new(edges.dump.graph.objects.len());
    let mut reachable = 0u64;
    for object in objects.iter().map(ObjectIndex) {
        if edges.dump.graph.tree.reachable_position(object).is_some() {
            reachable += 1;
            sought.insert(object);
        }
    }
    let mut merged = MergedPaths {
        sought: objects.len(),
        unreachable: objects.len() - reachable,
        ..MergedPaths::default()
    };
    if reachable == 0 {
        return Ok(merged);
    }
    let room = edges.dump.graph.room();
    let mut forest = Forest::grow(&room, edges, &sought, reachable, excluded)?;
    if forest.found == 0 && !excluded.follows_all() {
        drop(forest);
        forest = Forest::grow(&room, edges, &sought, reachable, excluded.following_all())?;
        merged.followed_all = forest.found > 0;
    }
    merged.found = forest.found;
    merged.only_frames = forest.only_frames;
    merged.only_excluded = if merged.followed_all { reachable } else { reachable - forest.found };
    let counts = forest.counts(&room, &sought)?;
    let mut picker = Picker {
        edges,
        sought: &sought,
        show,
        nodes: Vec::new(),
        more: OmittedPaths::default(),
        heap: BinaryHeap::new(),
    };
    picker.pick(&forest, &counts);
    merged.more = picker.more;
    merged.nodes = picker.in_preorder();
    Ok(merged)
}

/// Selection of the nodes that are shown.
struct Picker<'p, 'a> {
    edges: &'p Edges<'a>,
    sought: &'p Bits,
    show: MergeLimits,
    /// Nodes by level; removed nodes have no objects.
    nodes: Vec<PathNode>,
    more: OmittedPaths,
    /// Branches that are shown; on top the one with fewest objects, of several the last.
    heap: BinaryHeap<Reverse<(u32, Reverse<usize>)>>,
}

/// A node that may be shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Parent node; the roots share one.
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
            // Nodes with most objects choose first.
            chosen.sort_rows_by_key(|(candidate, _)| candidate.objects);
            shown.clear();
            for (Candidate { parent, objects: Reverse(objects), object }, run) in chosen {
                let node = self.nodes.len();
                if run == 0 && !self.take_branch(objects, node) {
                    self.leave_out(parent, object, objects);
                    continue;
                }
                let is_sought = self.sought.contains(object);
                self.nodes.push(PathNode {
                    object,
                    parent,
                    depth,
                    run,
                    objects,
                    is_sought,
                    more: OmittedPaths::default(),
                });
                shown.insert(object, node);
            }
            if shown.is_empty() {
                return;
            }
        }
    }

    /// Returns whether a branch is shown only as an example.
    fn is_small(&self, objects: u32, all: u64) -> bool {
        self.show.has_examples && !is_share(objects.into(), all, 1)
    }

    fn is_shown(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.objects > 0)
    }

    fn leave_out(&mut self, parent: Option<usize>, object: ObjectIndex, objects: u32) {
        let class = self.edges.dump.graph.objects.class(object);
        match parent {
            None => self.more.add(class, objects),
            Some(parent) => {
                if let Some(parent) = self.nodes.get_mut(parent) {
                    parent.more.add(class, objects);
                }
            }
        }
    }

    /// Returns whether a branch is shown. May evict one with fewer objects.
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
        if let Some(PathNode { object, parent, .. }) = self.nodes.get(last).copied() {
            self.leave_out(parent, object, fewest);
        }
        if let Some(gone) = self.nodes.get_mut(last) {
            gone.objects = 0;
        }
        true
    }

    /// Returns the nodes in preorder, without removed ones.
    fn in_preorder(self) -> Vec<PathNode> {
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
            nodes.push(PathNode { parent, ..*node });
            let children = below.get_mut(at).map(std::mem::take).unwrap_or_default();
            stack.extend(children.into_iter().rev().map(|child| (child, Some(place))));
        }
        nodes
    }
}
