//! Shortest paths from the GC roots to an object.
//!
//! A path is a chain of objects, each holding the next, from a root to the object. No other object on it is a root at
//! which paths start (the path from there is shorter and says the same), and none occurs twice. Paths are sorted by
//! length, in the same order each time. Objects on a thread's stack are roots, not references of the thread.
//!
//! [`paths`] starts at all roots of kinds that are not excluded; excluded roots are treated like other objects. So a
//! path that starts in a thread's stack ends the search there: [`super::beyond_frames`] continues it.
//!
//! All paths to an object lead through its dominators. So the search is split into parts, from dominator to dominator,
//! each searched separately: a long way from a root is mostly a short way from the next dominator. Paths are assembled
//! from the ways of all parts. To have the shortest, each part is searched as far beyond its shortest way as the
//! requested paths need.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::search::{Budget, Instances, PathSearch, SearchPart};
use super::starts::{StartRoots, Starts};
use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

/// Maximum number of ways by which a search continues from one object.
const MAX_WAYS: usize = 1 << 14;
/// Factor by which the number of ways grows with each retry that found too few.
const MORE_WAYS: usize = 16;

/// Result of a search for paths to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShortestPaths {
    /// Objects from a root to the object, by index; shortest first.
    pub paths: Vec<Vec<ObjectIndex>>,
    /// `true` if every path goes through an excluded reference.
    pub only_excluded: bool,
    /// `true` if there is no other path; `false` if the search gave up.
    pub are_all: bool,
}

/// Finds up to `most` paths to an object. Skips `excluded` references; if there is no path then, follows all
/// references, still from the same roots.
pub fn paths(edges: &Edges<'_>, object: ObjectIndex, most: usize, excluded: Exclusions) -> ShortestPaths {
    paths_within(edges, object, most, excluded, &mut Budget::without_limit())
}

/// Finds paths like [`paths`], within a budget. If it is spent, returns the paths found so far: the first is the shortest.
pub fn paths_within(
    edges: &Edges<'_>,
    object: ObjectIndex,
    most: usize,
    excluded: Exclusions,
    budget: &mut Budget,
) -> ShortestPaths {
    let starts = Starts::new(&edges.roots, excluded, StartRoots::All);
    let mut found = search(edges, &starts, object, most, excluded, budget);
    let is_reachable = edges.dump.graph.tree.reachable_position(object).is_some();
    let is_none = found.paths.is_empty() && !budget.is_spent();
    if is_none && !excluded.follows_all() && is_reachable {
        found = search(edges, &starts, object, most, excluded.following_all(), budget);
        found.only_excluded = !found.paths.is_empty();
    }
    found
}

/// Searches from given roots, without the excluded references.
pub(super) fn search<'a>(
    edges: &Edges<'a>,
    starts: &Starts<'_, 'a>,
    object: ObjectIndex,
    most: usize,
    excluded: Exclusions,
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
            // A retry may have found fewer.
            let paths = if paths.len() < before.len() { before } else { paths };
            return ShortestPaths { paths, ..ShortestPaths::default() };
        }
        let is_enough = paths.len() >= most;
        // With one way the search still continues from every object, so if it finds no path there is none.
        let are_all = !is_enough && (!search.left_out || paths.is_empty());
        if are_all || is_enough || ways >= MAX_WAYS {
            return ShortestPaths { paths, only_excluded: false, are_all };
        }
        before = std::mem::take(&mut paths);
        ways = ways.saturating_mul(MORE_WAYS).min(MAX_WAYS);
    }
}

/// Ways in one part of the paths, from a dominator to the next.
enum Ways {
    /// The only way: one reference.
    Direct(ObjectIndex),
    /// The ways found so far.
    Found(Box<SearchPart>),
}

impl Ways {
    /// Starts the search for ways from `start` to an object that dominates the positions `behind`; `None` if there are
    /// none.
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

/// Searches all parts and returns the assembled paths.
fn go(search: &mut PathSearch<'_, '_>, object: ObjectIndex) -> Vec<Vec<ObjectIndex>> {
    // From the object up to the roots.
    let mut parts = Vec::new();
    let (mut below, mut behind) = (object, search.dominated_range(object));
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
                && let Some(least) = part.shortest_length()
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

/// Returns the dominators through which all paths to an object lead, up to the first at which paths start, and the
/// positions that each dominates.
fn dominators(search: &PathSearch<'_, '_>, object: ObjectIndex) -> Vec<(ObjectIndex, Range<TreePosition>)> {
    let (tree, starts) = (&search.edges.dump.graph.tree, search.starts);
    let mut found = Vec::new();
    if starts.contains(object) {
        return found;
    }
    let mut position = tree.reachable_position(object);
    while let Some(dominator) = position.and_then(|position| tree.dominator(position)) {
        position = Some(dominator);
        let Some(object) = tree.object_at(dominator) else { break };
        // If a thread's stack holds something below, some paths do not lead through this dominator.
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

/// Combinations of ways in the parts that have several.
#[derive(Debug, Default)]
struct Choices {
    /// Chosen ways as linked lists: part, way and previous step.
    steps: Vec<SearchStep>,
    /// Last step of each combination, shortest path first: the excess over the shortest length, and the step.
    ends: Vec<(usize, Option<usize>)>,
}

/// A step of a combination: the way chosen in one part.
#[derive(Debug, Clone, Copy)]
struct SearchStep {
    part: usize,
    way: usize,
    before: Option<usize>,
}

impl Choices {
    /// Returns the combinations for the shortest paths: up to `most`, up to `beyond` links longer than the shortest.
    fn new(parts: &[Ways], most: usize, beyond: usize) -> Self {
        let mut choices = Self { steps: Vec::new(), ends: vec![(0, None)] };
        for (number, part) in parts.iter().enumerate() {
            let Ways::Found(part) = part else { continue };
            let Some(least) = part.shortest_length().filter(|_| part.ways.len() > 1) else { continue };
            let longer = |way: usize| part.ways.get(way).map_or(usize::MAX, |way| way.len() - least);
            // Both lists ascend. Each combination takes the ways in order; the smallest sum is next.
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

    /// Returns the steps of a combination, from the roots to the object.
    fn steps(&self, end: Option<usize>) -> impl Iterator<Item = SearchStep> {
        let step = |at: Option<usize>| at.and_then(|at| self.steps.get(at)).copied();
        std::iter::successors(step(end), move |last| step(last.before))
    }
}

/// Assembles a path from its parts.
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
