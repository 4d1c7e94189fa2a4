//! The search for paths, from an object backwards to where it is held from.
//!
//! It goes level by level, so it looks at no more than is as near as the paths that it finds.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;

use crate::objects::object_set::Bits;
use crate::objects::reference_names::Edges;
use crate::objects::strength::Excluded;
use crate::parallel;

use super::starts::Starts;

/// Links of chains that are looked at to find out whether an object is on a path already; beyond, such paths are left
/// out. It takes a very long chain with side-chains to get there.
const MAX_STEPS: u64 = 1 << 26;
/// Ways that lead again to an object that was there before; beyond, they are left out.
const MAX_AGAIN: usize = 1 << 22;
/// Times that all objects are looked at for instances of some classes, before the instances of all classes are listed.
const MAX_SCANS: u32 = 4;
/// Steps along a chain that take as long as a look at a referrer, and objects whose classes are compared in that time.
const STEPS_OF_ONE: u64 = 16;
const OBJECTS_OF_ONE: u64 = 64;
/// Objects that a thread looks at in one go.
const PART: u32 = 1 << 16;

/// No further link.
const END: u32 = u32::MAX;
/// What an object dominates that is not reachable.
const NOTHING: Range<TreePosition> = TreePosition(0)..TreePosition(0);

/// How much a search may look at before it gives up. What is counted is the same in every run: time is not.
#[derive(Debug, Clone)]
pub struct Budget {
    left: u64,
    is_spent: bool,
}

impl Budget {
    /// A search that never gives up.
    pub const fn unlimited() -> Self {
        Self::of(u64::MAX)
    }

    /// A search that gives up when it has looked at so many referrers. What else takes time counts as some.
    pub const fn of(referrers: u64) -> Self {
        Self { left: referrers, is_spent: false }
    }

    /// Returns whether a search gave up.
    pub const fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Takes what is about to be looked at; `false` if there is not as much left.
    fn spend(&mut self, referrers: u64) -> bool {
        match self.left.checked_sub(referrers) {
            Some(left) if !self.is_spent => self.left = left,
            _ => self.is_spent = true,
        }
        !self.is_spent
    }
}

/// What is searched, and what all parts of a search share. No two parts come to the same object.
pub(crate) struct PathSearch<'s, 'a> {
    pub(crate) edges: &'s Edges<'a>,
    /// Where paths start.
    pub(crate) starts: &'s Starts<'s, 'a>,
    /// Paths that are wanted.
    pub(crate) most: usize,
    /// Ways by which it goes on from one object.
    ways: usize,
    excluded: Excluded,
    instances: &'s mut Instances,
    pub(crate) budget: &'s mut Budget,
    seen: Bits,
    /// How often objects were reached again.
    again: FxHashMap<ObjectIndex, usize>,
    times_again: usize,
    steps: u64,
    /// `true` if something was not looked at because it would take too long.
    pub(crate) left_out: bool,
    /// Positions of threads whose stacks hold objects at which paths start, ascending.
    guards: Vec<TreePosition>,
}

impl<'s, 'a> PathSearch<'s, 'a> {
    pub(crate) fn new(
        (edges, starts): (&'s Edges<'a>, &'s Starts<'s, 'a>),
        [most, ways]: [usize; 2],
        excluded: Excluded,
        (instances, budget): (&'s mut Instances, &'s mut Budget),
    ) -> Self {
        let position = |object: &ObjectIndex| edges.graph.tree.reachable_position(*object);
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
            seen: Bits::new(edges.graph.objects.len()),
            again: FxHashMap::default(),
            times_again: 0,
            steps: 0,
            left_out: false,
            guards,
        }
    }

    /// Positions of the objects to which all paths lead through `object`, and of itself; none if that is not known.
    ///
    /// The dominator tree is one of more references than are followed here, and of more roots: what dominates an object
    /// there does so here. Only what a thread's stack holds is reached through the thread in the tree, while here paths
    /// may start there: above such starts it is not known.
    pub(crate) fn dominated(&self, object: ObjectIndex) -> Range<TreePosition> {
        let position = self.edges.graph.tree.reachable_position(object);
        position.map_or(NOTHING, |position| self.dominated_at(position))
    }

    /// The same of the object at a position.
    pub(crate) fn dominated_at(&self, position: TreePosition) -> Range<TreePosition> {
        let end = self.edges.graph.tree.end(position);
        let guard = self.guards.get(self.guards.partition_point(|guard| *guard < position));
        if guard.is_some_and(|guard| *guard < end) { NOTHING } else { position..end }
    }
}

/// An object that leads to the one sought, and the link of the chain towards it.
#[derive(Debug, Clone, Copy)]
struct Link {
    object: ObjectIndex,
    next: u32,
}

/// A part of the search: the ways to an object from one that holds it, or from any root.
#[derive(Debug)]
pub(crate) struct SearchPart {
    object: ObjectIndex,
    /// Where ways start; `None` for all roots.
    start: Option<ObjectIndex>,
    /// Objects that were reached, nearest first.
    links: Vec<Link>,
    /// Those that were reached last, from which to go on.
    level: Range<usize>,
    /// Links of the ways that are found by going on.
    length: usize,
    /// Class objects whose instances are still to be looked at: they hold it too.
    classes: Vec<(ClassNumber, usize)>,
    /// Positions of what the object dominates: from there every way comes back.
    behind: Range<TreePosition>,
    /// Ways from the start to the object, which is not in them; shortest first.
    pub(crate) ways: Vec<Vec<ObjectIndex>>,
}

impl SearchPart {
    /// The ways from `start` to an object that dominates the positions `behind`.
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

    /// Returns whether there is no other way.
    pub(crate) fn is_done(&self) -> bool {
        self.level.is_empty() && self.classes.is_empty()
    }

    /// Links of the shortest way.
    pub(crate) fn least(&self) -> Option<usize> {
        self.ways.first().map(Vec::len)
    }

    /// Finds the shortest ways.
    pub(crate) fn begin(&mut self, search: &mut PathSearch<'_, '_>) {
        while self.ways.is_empty() && !self.is_done() && !search.budget.is_spent() {
            self.advance(search);
        }
    }

    /// Finds all ways of up to `length` links.
    pub(crate) fn go_on(&mut self, search: &mut PathSearch<'_, '_>, length: usize) {
        while self.length <= length && !self.is_done() && !self.is_enough(search) && !search.budget.is_spent()
        {
            self.advance(search);
        }
    }

    fn is_enough(&self, search: &PathSearch<'_, '_>) -> bool {
        self.ways.len() >= search.most
    }

    /// Goes one level on.
    fn advance(&mut self, search: &mut PathSearch<'_, '_>) {
        for at in self.level.clone() {
            let Some(&Link { object, .. }) = self.links.get(at) else { break };
            let behind = if at == 0 { self.behind.clone() } else { search.dominated(object) };
            for holder in search.edges.graph.referrers(object) {
                if !search.budget.spend(1) {
                    return;
                }
                self.look(search, holder, at, &behind);
                if self.is_enough(search) {
                    return;
                }
            }
            self.classes.extend(search.edges.class_with_objects(object).map(|class| (class, at)));
        }
        self.look_at_instances(search);
        if !self.is_enough(search) {
            self.level = self.level.end..self.links.len();
            self.length += 1;
        }
    }

    /// The instances of a class hold its class object.
    fn look_at_instances(&mut self, search: &mut PathSearch<'_, '_>) {
        let mut links = std::mem::take(&mut self.classes);
        if links.is_empty() {
            return;
        }
        links.sort_unstable();
        let mut classes: Vec<ClassNumber> = links.iter().map(|(class, _)| *class).collect();
        classes.dedup();
        let graph = search.edges.graph;
        if !search.budget.spend(search.instances.cost(graph)) {
            return;
        }
        let found = search.instances.of(graph, &classes);
        for (class, at) in links {
            let Some(&Link { object, .. }) = self.links.get(at) else { return };
            let behind = search.dominated(object);
            let first = found.partition_point(|(other, _)| *other < class);
            let own = found.get(first..).unwrap_or_default().iter();
            for (_, holder) in own.take_while(|(other, _)| *other == class) {
                if !search.budget.spend(1) {
                    return;
                }
                // One that also holds it in a field was looked at before.
                if !search.edges.graph.references(*holder).any(|target| target == object) {
                    self.look(search, *holder, at, &behind);
                }
                if self.is_enough(search) {
                    return;
                }
            }
        }
    }

    /// Looks at an object that holds the one of a link, which dominates the positions `behind`. That a thread's stack holds
    /// an object is a root of that object, not a link.
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
        let Some(position) = edges.graph.tree.reachable_position(holder) else { return };
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
        // There are fewer objects than END, and ways that lead again are limited.
        if let Ok(next) = u32::try_from(at)
            && self.links.len() < END as usize
        {
            self.links.push(Link { object: holder, next });
        }
    }

    /// Returns whether an object that was there before may be taken once more: on other ways it was on, not on this one.
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

    /// A way from where it starts over a link to the object.
    fn end(&mut self, start: ObjectIndex, at: usize) {
        let mut way = vec![start];
        let mut next = u32::try_from(at).unwrap_or(END);
        // The first link is the object itself.
        while next > 0
            && let Some(link) = self.links.get(next as usize)
        {
            way.push(link.object);
            next = link.next;
        }
        self.ways.push(way);
    }
}

/// Finds the instances of classes.
#[derive(Default)]
pub(crate) struct Instances {
    scans: u32,
    /// The objects of all classes, ascending, once they are listed.
    all: Option<Vec<(ClassNumber, ObjectIndex)>>,
}

impl Instances {
    /// What it takes to find the instances of some classes, as referrers that are looked at.
    fn cost(&self, graph: &ObjectGraph) -> u64 {
        let all = u64::from(graph.objects.len());
        match &self.all {
            _ if self.scans < MAX_SCANS => all / OBJECTS_OF_ONE,
            // They are sorted.
            None => all,
            Some(_) => 1,
        }
    }

    /// The objects of some classes, which ascend: class and object, ascending.
    fn of(&mut self, graph: &ObjectGraph, classes: &[ClassNumber]) -> Vec<(ClassNumber, ObjectIndex)> {
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

/// All objects of the classes that are wanted: class and object, ascending.
fn scan(graph: &ObjectGraph, wanted: impl Fn(ClassNumber) -> bool + Sync) -> Vec<(ClassNumber, ObjectIndex)> {
    let chunks = ObjectIndex::chunks(graph.objects.all(), PART);
    let parts: Vec<Vec<(ClassNumber, ObjectIndex)>> = parallel::map(&chunks, |chunk| {
        let all = ObjectIndex::range(chunk.clone()).zip(graph.objects.classes(chunk));
        let classes = all.filter_map(|(object, class)| Some((class?, object)));
        classes.filter(|(class, _)| wanted(*class)).collect()
    });
    let mut found = parts.concat();
    found.par_sort_unstable();
    found
}
