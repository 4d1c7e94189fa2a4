//! Walks along references that do not step on some objects.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::index::ObjectGraph;
use crate::index::graph::adjacency::AdjacencyView;
use crate::index::graph::graph_view::{Labels, NONE};
use crate::index::graph::numbers::ObjectIndex;

use super::preorder::Start;

/// Objects that one thread visits before work is shared out again.
const BUDGET: usize = 1 << 16;
/// Objects that are not worth another thread.
const FEW: usize = 256;
/// Objects ahead of which memory is asked for, in each of two steps.
const AHEAD: usize = 8;

/// Marks all objects that the start leads to without stepping on those of `set`, and those of `set` too.
pub(super) fn walk(graph: &ObjectGraph, start: Start, set: &RoaringBitmap) -> Marks {
    let tree = &graph.tree;
    let visited = Marks::new(graph.objects.len());
    for object in set {
        visited.mark(ObjectIndex(object));
    }
    let within = match start {
        Start::Roots => None,
        Start::Object(position) => Some(position..tree.end(position)),
    };
    let is_within = |object: ObjectIndex| match &within {
        None => true,
        Some(within) => tree.position(object).is_some_and(|position| within.contains(&position)),
    };
    let mut frontier = match start {
        Start::Roots => graph.roots.objects(),
        Start::Object(position) => tree.object_at(position).into_iter().collect(),
    };
    frontier.retain(|object| visited.mark(*object));
    let outward = Outward::new(graph);
    let visit = |share: &[ObjectIndex]| {
        let mut stack = share.to_vec();
        outward.go(&mut stack, BUDGET, |target| visited.mark(target) && is_within(target));
        stack
    };
    while !frontier.is_empty() {
        let share = (frontier.len() / rayon::current_num_threads() / 4).max(FEW);
        frontier = frontier.par_chunks(share).flat_map_iter(visit).collect();
    }
    visited
}

/// What objects refer to, their class objects included. All of it is checked first.
#[derive(Debug)]
pub(super) struct Outward<'a> {
    lists: AdjacencyView<'a>,
    labels: Labels<'a>,
}

impl<'a> Outward<'a> {
    pub(super) fn new(graph: &'a ObjectGraph) -> Self {
        Self { lists: graph.references.view(), labels: graph.labels() }
    }

    /// Calls `is_next` with what the objects on a stack refer to, and puts what it takes on the stack, until so many
    /// objects were visited or none is left.
    ///
    /// Each object would wait for the place of its list, and then for the list. So each is taken from the stack some steps
    /// early, to ask for both.
    #[inline(always)]
    pub(super) fn go(
        &self,
        stack: &mut Vec<ObjectIndex>,
        budget: usize,
        mut is_next: impl FnMut(ObjectIndex) -> bool,
    ) {
        let (mut places, mut lists) = ([None; AHEAD], [None; AHEAD]);
        let (mut taken, mut visited, mut step) = (0usize, 0, 0);
        while visited < budget && (visited < taken || !stack.is_empty()) {
            let slot = step % AHEAD;
            step += 1;
            let next = stack.pop();
            if let Some(ObjectIndex(object)) = next {
                taken += 1;
                self.lists.prefetch_place(object);
                self.labels.prefetch(object);
            }
            let next = std::mem::replace(&mut places[slot], next);
            if let Some(ObjectIndex(object)) = next {
                self.lists.prefetch_list(object);
            }
            let Some(here) = std::mem::replace(&mut lists[slot], next) else { continue };
            visited += 1;
            let class = self.labels.target(self.labels.of(here.0));
            let class = Some(ObjectIndex(class)).filter(|class| class.0 != NONE);
            stack.extend(self.lists.list(here.0).chain(class).filter(|target| is_next(*target)));
        }
        stack.extend(places.into_iter().chain(lists).flatten());
    }
}

/// A set of objects that several threads add to.
pub(super) struct Marks(Vec<AtomicU64>);

impl Marks {
    pub(super) fn new(objects: u32) -> Self {
        Self((0..objects.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Adds an object: whether it was not there.
    #[inline]
    pub(super) fn mark(&self, ObjectIndex(object): ObjectIndex) -> bool {
        let Some(word) = self.0.get((object / 64) as usize) else { return false };
        let bit = 1 << (object % 64);
        // Most objects are met several times: looking is cheaper than writing.
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Takes an object out.
    pub(super) fn unmark(&mut self, ObjectIndex(object): ObjectIndex) {
        if let Some(word) = self.0.get_mut((object / 64) as usize) {
            *word.get_mut() &= !(1 << (object % 64));
        }
    }

    #[inline]
    pub(super) fn contains(&self, ObjectIndex(object): ObjectIndex) -> bool {
        let word = self.0.get((object / 64) as usize).map_or(0, |word| word.load(Ordering::Relaxed));
        word & (1 << (object % 64)) != 0
    }
}
