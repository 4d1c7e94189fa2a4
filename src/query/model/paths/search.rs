//! Backward search for paths, from an object to the roots.
//!
//! The search is breadth-first, so it visits nothing farther away than the paths that it finds.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;

use crate::objects::object_set::Bits;
use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_base::parallel;

use super::starts::Starts;

/// Maximum number of steps along chains to find out whether an object is already on a path; beyond that, such paths are
/// left out. Only very long chains with side chains get there.
const MAX_STEPS: u64 = 1 << 26;
/// Maximum number of ways that lead to an object again; further ones are left out.
const MAX_AGAIN: usize = 1 << 22;
/// Maximum number of scans of all objects for instances of some classes; after that the instances of all classes are
/// listed.
const MAX_SCANS: u32 = 4;
/// Number of steps along a chain that take as long as one referrer.
const STEPS_OF_ONE: u64 = 16;
/// Number of objects whose classes are compared in the time of one referrer.
const OBJECTS_OF_ONE: u64 = 64;
/// Objects per chunk of a thread.
const PART: u32 = 1 << 16;

/// No further link.
const END: u32 = u32::MAX;
/// Dominated positions of an object that is not reachable.
const NOTHING: Range<TreePosition> = TreePosition(0)..TreePosition(0);

/// Number of referrers that a search may examine before it gives up. Counts, unlike times, are the same in every run.
#[derive(Debug, Clone)]
pub struct Budget {
    left: u64,
    is_spent: bool,
}

impl Budget {
    /// Returns a budget for a search that never gives up.
    pub const fn without_limit() -> Self {
        Self::new(u64::MAX)
    }

    /// Returns a budget of this number of referrers. Other work counts as a number of referrers.
    pub const fn new(referrers: u64) -> Self {
        Self { left: referrers, is_spent: false }
    }

    /// Returns whether a search gave up.
    pub const fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Returns the number of referrers that are left.
    pub const fn remaining_referrers(&self) -> u64 {
        self.left
    }

    /// Spends a number of referrers. Returns `false` if fewer are left.
    fn spend(&mut self, referrers: u64) -> bool {
        match self.left.checked_sub(referrers) {
            Some(left) if !self.is_spent => self.left = left,
            _ => self.is_spent = true,
        }
        !self.is_spent
    }
}

/// State shared by all parts of a search. No two parts visit the same object.
pub(crate) struct PathSearch<'s, 'a> {
    pub(crate) edges: &'s Edges<'a>,
    /// Roots at which paths start.
    pub(crate) starts: &'s Starts<'s, 'a>,
    /// Maximum number of paths.
    pub(crate) most: usize,
    /// Maximum number of ways by which the search continues from one object.
    ways: usize,
    excluded: Exclusions,
    instances: &'s mut Instances,
    pub(crate) budget: &'s mut Budget,
    seen: Bits,
    /// Number of times that each object was reached again.
    again: FxHashMap<ObjectIndex, usize>,
    times_again: usize,
    steps: u64,
    /// `true` if something was skipped because it would take too long.
    pub(crate) left_out: bool,
    /// Positions of threads whose stacks hold objects at which paths start, ascending.
    guards: Vec<TreePosition>,
}

impl<'s, 'a> PathSearch<'s, 'a> {
    pub(crate) fn new(
        (edges, starts): (&'s Edges<'a>, &'s Starts<'s, 'a>),
        [most, ways]: [usize; 2],
        excluded: Exclusions,
        (instances, budget): (&'s mut Instances, &'s mut Budget),
    ) -> Self {
        let position = |object: &ObjectIndex| edges.dump.graph.tree.reachable_position(*object);
        // Threads are roots.
        let mut guards: Vec<TreePosition> = starts.threads().iter().filter_map(position).collect();
        guards.sort_unstable();
        Self {
            edges,
            starts,
            most,
            ways,
            excluded,
            instances,
            budget,
            seen: Bits::new(edges.dump.graph.objects.len()),
            again: FxHashMap::default(),
            times_again: 0,
            steps: 0,
            left_out: false,
            guards,
        }
    }

    /// Returns the positions of the objects to which all paths lead through `object`, itself included; empty if
    /// unknown.
    ///
    /// The dominator tree covers more references and more roots than this search follows: an object that dominates
    /// another there does so here. The exception is what a thread's stack holds: the tree reaches it through the
    /// thread, while here paths may start there. Above such starts the range is unknown.
    pub(crate) fn dominated_range(&self, object: ObjectIndex) -> Range<TreePosition> {
        let position = self.edges.dump.graph.tree.reachable_position(object);
        position.map_or(NOTHING, |position| self.dominated_at(position))
    }

    /// Returns the positions of the objects to which all paths lead through the object at a position, itself included; empty if
    /// unknown.
    pub(crate) fn dominated_at(&self, position: TreePosition) -> Range<TreePosition> {
        let end = self.edges.dump.graph.tree.end(position);
        let guard = self.guards.get(self.guards.partition_point(|guard| *guard < position));
        if guard.is_some_and(|guard| *guard < end) { NOTHING } else { position..end }
    }
}

/// An object on a way to the target, and the previous link towards the target.
#[derive(Debug, Clone, Copy)]
struct Link {
    object: ObjectIndex,
    next: u32,
}

/// One part of the search: ways to an object from one of its dominators, or from any root.
#[derive(Debug)]
pub(crate) struct SearchPart {
    object: ObjectIndex,
    /// Object at which ways start; `None` for all roots.
    start: Option<ObjectIndex>,
    /// Objects that were reached, nearest first.
    links: Vec<Link>,
    /// Links of the current level, from which the search continues.
    level: Range<usize>,
    /// Number of links of the ways found at the next level.
    length: usize,
    /// Class objects whose instances are still to be visited: they hold the class object, too.
    classes: Vec<(ClassNumber, usize)>,
    /// Positions of the objects that the target dominates: every way from there comes back.
    behind: Range<TreePosition>,
    /// Ways from the start to the target, which is not included; shortest first.
    pub(crate) ways: Vec<Vec<ObjectIndex>>,
}

impl SearchPart {
    /// Starts a search for ways from `start` to an object that dominates the positions `behind`.
    pub(crate) fn new(
        search: &mut PathSearch<'_, '_>,
        object: ObjectIndex,
        behind: Range<TreePosition>,
        start: Option<ObjectIndex>,
    ) -> Self {
        search.seen.insert(object);
        let mut part = Self {
            object,
            start,
            links: vec![Link { object, next: END }],
            level: 0..1,
            length: 1,
            classes: Vec::new(),
            behind,
            ways: Vec::new(),
        };
        if start.is_none() && search.starts.contains(object) {
            part.ways.push(Vec::new());
        }
        part
    }

    /// Returns whether all ways were found.
    pub(crate) fn is_done(&self) -> bool {
        self.level.is_empty() && self.classes.is_empty()
    }

    /// Returns the number of links of the shortest way.
    pub(crate) fn shortest_length(&self) -> Option<usize> {
        self.ways.first().map(Vec::len)
    }

    /// Searches until the shortest ways are found.
    pub(crate) fn begin(&mut self, search: &mut PathSearch<'_, '_>) {
        while self.ways.is_empty() && !self.is_done() && !search.budget.is_spent() {
            self.advance(search);
        }
    }

    /// Continues the search until all ways of up to `length` links are found.
    pub(crate) fn go_on(&mut self, search: &mut PathSearch<'_, '_>, length: usize) {
        while self.length <= length
            && !self.is_done()
            && !self.has_enough_paths(search)
            && !search.budget.is_spent()
        {
            self.advance(search);
        }
    }

    fn has_enough_paths(&self, search: &PathSearch<'_, '_>) -> bool {
        self.ways.len() >= search.most
    }

    /// Advances the breadth-first search by one level.
    fn advance(&mut self, search: &mut PathSearch<'_, '_>) {
        for at in self.level.clone() {
            let Some(&Link { object, .. }) = self.links.get(at) else { break };
            let behind = if at == 0 { self.behind.clone() } else { search.dominated_range(object) };
            for holder in search.edges.dump.graph.referrers(object) {
                if !search.budget.spend(1) {
                    return;
                }
                self.look(search, holder, at, &behind);
                if self.has_enough_paths(search) {
                    return;
                }
            }
            self.classes.extend(search.edges.class_with_objects(object).map(|class| (class, at)));
        }
        self.look_at_instances(search);
        if !self.has_enough_paths(search) {
            self.level = self.level.end..self.links.len();
            self.length += 1;
        }
    }

    /// Visits the instances of classes as holders of their class objects.
    fn look_at_instances(&mut self, search: &mut PathSearch<'_, '_>) {
        let mut links = std::mem::take(&mut self.classes);
        if links.is_empty() {
            return;
        }
        links.sort_unstable();
        let mut classes: Vec<ClassNumber> = links.iter().map(|(class, _)| *class).collect();
        classes.dedup();
        let graph = search.edges.dump.graph;
        if !search.budget.spend(search.instances.cost(graph)) {
            return;
        }
        let found = search.instances.of_classes(graph, &classes);
        for (class, at) in links {
            let Some(&Link { object, .. }) = self.links.get(at) else { return };
            let behind = search.dominated_range(object);
            let first = found.partition_point(|(other, _)| *other < class);
            let own = found.get(first..).unwrap_or_default().iter();
            for (_, holder) in own.take_while(|(other, _)| *other == class) {
                if !search.budget.spend(1) {
                    return;
                }
                // Holders that also refer to it by a field were visited before.
                if !search.edges.dump.graph.references(*holder).any(|target| target == object) {
                    self.look(search, *holder, at, &behind);
                }
                if self.has_enough_paths(search) {
                    return;
                }
            }
        }
    }

    /// Visits a holder of a link's object, which dominates the positions `behind`. An object on a thread's stack is a
    /// root, not a link from the thread.
    #[inline]
    fn look(
        &mut self,
        search: &mut PathSearch<'_, '_>,
        holder: ObjectIndex,
        at: usize,
        behind: &Range<TreePosition>,
    ) {
        let edges = search.edges;
        let Some(&Link { object, .. }) = self.links.get(at) else { return };
        if self.start.map_or_else(|| search.starts.contains(holder), |start| start == holder) {
            if holder != self.object
                && edges.is_followed(holder, object, search.excluded)
                && !edges.is_stack_only(holder, object)
            {
                self.end(holder, at);
            }
            return;
        }
        let Some(position) = edges.dump.graph.tree.reachable_position(holder) else { return };
        if behind.contains(&position) || self.behind.contains(&position) {
            return;
        }
        let is_again = search.seen.contains(holder);
        if is_again && !self.may_go_again(search, holder, at)
            || !edges.is_followed(holder, object, search.excluded)
            || edges.is_stack_only(holder, object)
        {
            return;
        }
        search.seen.insert(holder);
        if is_again {
            *search.again.entry(holder).or_default() += 1;
            search.times_again += 1;
        }
        // The number of objects is below END, and repeated ways are limited.
        if let Ok(next) = u32::try_from(at)
            && self.links.len() < END as usize
        {
            self.links.push(Link { object: holder, next });
        }
    }

    /// Returns whether a visited object may be taken again: if it is on other ways but not on this one.
    fn may_go_again(&self, search: &mut PathSearch<'_, '_>, holder: ObjectIndex, at: usize) -> bool {
        if search.ways == 1 {
            search.left_out = true;
            return false;
        }
        let mut next = u32::try_from(at).unwrap_or(END);
        while let Some(link) = self.links.get(next as usize) {
            search.steps += 1;
            if link.object == holder {
                return false;
            }
            let is_affordable = !search.steps.is_multiple_of(STEPS_OF_ONE) || search.budget.spend(1);
            if search.steps > MAX_STEPS || !is_affordable {
                search.left_out = true;
                return false;
            }
            next = link.next;
        }
        let before = search.again.get(&holder).copied().unwrap_or(0) + 1;
        let may_go = before < search.ways && search.times_again < MAX_AGAIN;
        search.left_out |= !may_go;
        may_go
    }

    /// Adds the path from `start` through a link to the target.
    fn end(&mut self, start: ObjectIndex, at: usize) {
        let mut way = vec![start];
        let mut next = u32::try_from(at).unwrap_or(END);
        // The first link is the target itself.
        while next > 0
            && let Some(link) = self.links.get(next as usize)
        {
            way.push(link.object);
            next = link.next;
        }
        self.ways.push(way);
    }
}

/// Finder of the instances of classes, which caches a list of them.
#[derive(Default)]
pub(crate) struct Instances {
    scans: u32,
    /// Objects of all classes with their class, ascending, once they have been listed.
    all: Option<Vec<(ClassNumber, ObjectIndex)>>,
}

impl Instances {
    /// Returns the cost of finding the instances of the given classes, in referrers.
    fn cost(&self, graph: &ObjectGraph) -> u64 {
        let all = u64::from(graph.objects.len());
        match &self.all {
            _ if self.scans < MAX_SCANS => all / OBJECTS_OF_ONE,
            // The list is sorted.
            None => all,
            Some(_) => 1,
        }
    }

    /// Returns the instances of the given classes, which must ascend: class and object, ascending.
    fn of_classes(
        &mut self,
        graph: &ObjectGraph,
        classes: &[ClassNumber],
    ) -> Vec<(ClassNumber, ObjectIndex)> {
        if self.scans < MAX_SCANS {
            self.scans += 1;
            return scan(graph, |class| classes.binary_search(&class).is_ok());
        }
        let all = self.all.get_or_insert_with(|| scan(graph, |_| true));
        let mut found = Vec::new();
        for class in classes {
            let first = all.partition_point(|(other, _)| other < class);
            let own = all.get(first..).unwrap_or_default().iter().take_while(|(other, _)| other == class);
            found.extend(own);
        }
        found
    }
}

/// Scans all objects for instances of matching classes: class and object, ascending.
fn scan(graph: &ObjectGraph, wanted: impl Fn(ClassNumber) -> bool + Sync) -> Vec<(ClassNumber, ObjectIndex)> {
    let chunks = ObjectIndex::chunks(graph.objects.indices(), PART);
    let parts: Vec<Vec<(ClassNumber, ObjectIndex)>> = parallel::map(&chunks, |chunk| {
        let all = ObjectIndex::range(chunk.clone()).zip(graph.objects.classes(chunk));
        let classes = all.filter_map(|(object, class)| Some((class?, object)));
        classes.filter(|(class, _)| wanted(*class)).collect()
    });
    let mut found = parts.concat();
    found.par_sort_unstable();
    found
}
