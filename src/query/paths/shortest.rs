//! The shortest paths from the GC roots to an object: what keeps it alive.
//!
//! A path is a chain of objects, each holding the next, from a root to the object. No other object in between is a root at
//! which paths start (the path from there is shorter and says the same), and none is on it twice. Paths come shortest
//! first, in the same order each time. What a thread's stack holds is a root; it is no reference of the thread.
//!
//! [`paths`] lets them start at all roots of kinds that are not excluded, and excluded roots are objects like others. So
//! a path that starts in a thread's stack ends the search there: [`super::beyond_frames`] goes on.
//!
//! All paths to an object lead through its dominators. So they are searched in parts, from dominator to dominator, each
//! part apart from the others: what is a long way from a root is mostly a short way from its next dominator. Paths are
//! put together from the ways of all parts. To have the shortest, all parts are searched as far beyond their shortest
//! way as the paths that are wanted need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::search::{Budget, Instances, PathSearch, SearchPart};
use super::starts::{StartRoots, Starts};
use crate::objects::reference_names::Edges;
use crate::objects::strength::Excluded;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

/// Ways by which a search goes on from one object at most, and how many times more it tries if it finds too little.
const MAX_WAYS: usize = 1 << 14;
const MORE_WAYS: usize = 16;

/// The paths to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShortestPaths {
    /// Objects from a root to the object, by index; shortest first.
    pub paths: Vec<Vec<ObjectIndex>>,
    /// `true` if these are there only if no reference is left out.
    pub only_excluded: bool,
    /// `true` if there is no other path. It is not known if the search gave up.
    pub are_all: bool,
}

/// Finds up to `most` paths to an object. What is `excluded` is left out; if there is no path then, all references are
/// followed, still from the same roots.
pub fn paths(edges: &Edges<'_>, object: ObjectIndex, most: usize, excluded: Excluded) -> ShortestPaths {
    paths_within(edges, object, most, excluded, &mut Budget::unlimited())
}

/// The same within a budget. If that is spent, the paths are those that were found before: the first is the shortest.
pub fn paths_within(
    edges: &Edges<'_>,
    object: ObjectIndex,
    most: usize,
    excluded: Excluded,
    budget: &mut Budget,
) -> ShortestPaths {
    let starts = Starts::new(&edges.roots, excluded, StartRoots::All);
    let mut found = search(edges, &starts, object, most, excluded, budget);
    let is_reachable = edges.graph.tree.reachable_position(object).is_some();
    let is_none = found.paths.is_empty() && !budget.is_spent();
    if is_none && !excluded.follows_all() && is_reachable {
        found = search(edges, &starts, object, most, excluded.following_all(), budget);
        found.only_excluded = !found.paths.is_empty();
    }
    found
}

/// The same from given roots, without those references that are excluded in any case.
pub(super) fn search<'a>(
    edges: &Edges<'a>,
    starts: &Starts<'_, 'a>,
    object: ObjectIndex,
    most: usize,
    excluded: Excluded,
    budget: &mut Budget,
) -> ShortestPaths {
    if most == 0 {
        return ShortestPaths::default();
    }
    let mut instances = Instances::default();
    let mut ways = most.min(MAX_WAYS);
    let mut before = Vec::new();
    loop {
        let with = (&mut instances, &mut *budget);
        let mut search = PathSearch::new((edges, starts), [most, ways], excluded, with);
        let mut paths = go(&mut search, object);
        if search.budget.is_spent() {
            // Less of it may have been found again.
            let paths = if paths.len() < before.len() { before } else { paths };
            return ShortestPaths { paths, ..ShortestPaths::default() };
        }
        let is_enough = paths.len() >= most;
        // By one way it goes on from every object, so where no path is found there is none.
        let are_all = !is_enough && (!search.left_out || paths.is_empty());
        if are_all || is_enough || ways >= MAX_WAYS {
            return ShortestPaths { paths, only_excluded: false, are_all };
        }
        before = std::mem::take(&mut paths);
        ways = ways.saturating_mul(MORE_WAYS).min(MAX_WAYS);
    }
}

/// A part of the paths.
enum Ways {
    /// There is one way, and it is a reference.
    Direct(ObjectIndex),
    /// What was found so far.
    Found(Box<SearchPart>),
}

impl Ways {
    /// The ways from `start` to an object that dominates the positions `behind`; `None` if there is none.
    fn new(
        search: &mut PathSearch<'_, '_>,
        object: ObjectIndex,
        behind: Range<TreePosition>,
        start: Option<ObjectIndex>,
    ) -> Option<Self> {
        let mut part = SearchPart::new(search, object, behind, start);
        part.begin(search);
        match part.ways.as_slice() {
            [] => None,
            [way] if part.is_done() && way.len() == 1 => way.first().copied().map(Self::Direct),
            _ => Some(Self::Found(Box::new(part))),
        }
    }
}

/// Searches all parts.
fn go(search: &mut PathSearch<'_, '_>, object: ObjectIndex) -> Vec<Vec<ObjectIndex>> {
    // From the object up to the roots.
    let mut parts = Vec::new();
    let (mut below, mut behind) = (object, search.dominated(object));
    for (dominator, dominated) in dominators(search, object) {
        let Some(ways) = Ways::new(search, below, behind, Some(dominator)) else { return Vec::new() };
        parts.push(ways);
        (below, behind) = (dominator, dominated);
    }
    if below == object || !search.starts.contains(below) {
        let Some(ways) = Ways::new(search, below, behind, None) else { return Vec::new() };
        parts.push(ways);
    }
    let mut beyond = 0;
    loop {
        let mut is_done = true;
        for part in &mut parts {
            if let Ways::Found(part) = part
                && let Some(least) = part.least()
            {
                part.go_on(search, least.saturating_add(beyond));
                is_done &= part.is_done();
            }
        }
        let choices = Choices::new(&parts, search.most, if is_done { usize::MAX } else { beyond });
        if is_done || choices.ends.len() >= search.most || search.budget.is_spent() {
            let ends = choices.ends.iter();
            return ends.map(|(_, end)| put_together(&parts, choices.steps(*end), object)).collect();
        }
        beyond += 1;
    }
}

/// The dominators through which all paths to an object lead, up to the first where paths start; and the positions that
/// each dominates.
fn dominators(search: &PathSearch<'_, '_>, object: ObjectIndex) -> Vec<(ObjectIndex, Range<TreePosition>)> {
    let (tree, starts) = (&search.edges.graph.tree, search.starts);
    let mut found = Vec::new();
    if starts.contains(object) {
        return found;
    }
    let mut position = tree.reachable_position(object);
    while let Some(dominator) = position.and_then(|position| tree.dominator(position)) {
        position = Some(dominator);
        let Some(object) = tree.object_at(dominator) else { break };
        // Where a thread's stack holds something below, there are paths that do not lead through it.
        let dominated = search.dominated_at(dominator);
        if !dominated.is_empty() {
            found.push((object, dominated));
            if starts.contains(object) {
                break;
            }
        }
    }
    found
}

/// Which ways are taken in the parts that have several.
#[derive(Debug, Default)]
struct Choices {
    /// A choice by part, way and the choice in the parts before.
    steps: Vec<SearchStep>,
    /// The last steps of all choices, shortest path first: how much longer than the shortest, and the step.
    ends: Vec<(usize, Option<usize>)>,
}

#[derive(Debug, Clone, Copy)]
struct SearchStep {
    part: usize,
    way: usize,
    before: Option<usize>,
}

impl Choices {
    /// The choices that make the shortest paths: up to `most`, of paths that are up to `beyond` links longer than the
    /// shortest.
    fn new(parts: &[Ways], most: usize, beyond: usize) -> Self {
        let mut choices = Self { steps: Vec::new(), ends: vec![(0, None)] };
        for (number, part) in parts.iter().enumerate() {
            let Ways::Found(part) = part else { continue };
            let Some(least) = part.least().filter(|_| part.ways.len() > 1) else { continue };
            let longer = |way: usize| part.ways.get(way).map_or(usize::MAX, |way| way.len() - least);
            // Both lists ascend. Each choice goes through the ways in their order; the shortest sum is next.
            let ends = std::mem::take(&mut choices.ends);
            let mut heap: BinaryHeap<_> =
                ends.iter().enumerate().map(|(at, (sum, _))| Reverse((*sum, at, 0))).collect();
            while let Some(Reverse((sum, at, way))) = heap.pop() {
                if sum > beyond || choices.ends.len() >= most {
                    break;
                }
                let Some((shorter, before)) = ends.get(at).copied() else { continue };
                choices.ends.push((sum, Some(choices.steps.len())));
                choices.steps.push(SearchStep { part: number, way, before });
                if way + 1 < part.ways.len() {
                    heap.push(Reverse((shorter.saturating_add(longer(way + 1)), at, way + 1)));
                }
            }
        }
        choices
    }

    /// The steps of a choice, from the roots to the object.
    fn steps(&self, end: Option<usize>) -> impl Iterator<Item = SearchStep> {
        let step = |at: Option<usize>| at.and_then(|at| self.steps.get(at)).copied();
        std::iter::successors(step(end), move |last| step(last.before))
    }
}

/// A path from its parts.
fn put_together(
    parts: &[Ways],
    choice: impl Iterator<Item = SearchStep>,
    object: ObjectIndex,
) -> Vec<ObjectIndex> {
    let mut path = Vec::new();
    let mut chosen = choice.peekable();
    for (number, part) in parts.iter().enumerate().rev() {
        let way = chosen.next_if(|step| step.part == number).map_or(0, |step| step.way);
        match part {
            Ways::Direct(start) => path.push(*start),
            Ways::Found(part) => path.extend(part.ways.get(way).into_iter().flatten()),
        }
    }
    path.push(object);
    path
}
