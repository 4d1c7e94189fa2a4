//! Walks along references that avoid a set of objects.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use roaring::RoaringBitmap;

use hprof_index::ObjectGraph;
use hprof_index::graph::adjacency::{AdjacencyView, Targets};
use hprof_index::graph::graph_view::{Labels, NONE};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;

use crate::objects::object_set::Number;
use hprof_base::parallel;

use super::preorder::Start;

/// Number of objects that one thread visits before work is redistributed.
const BUDGET: usize = 1 << 16;
/// Number of objects that are not worth another thread.
const FEW: usize = 256;
/// Prefetch distance in objects, for each of two steps.
const AHEAD: usize = 8;

/// Marks the objects of `set`, and all objects reachable from the start without stepping on them.
pub(super) fn walk(graph: &ObjectGraph, start: Start, set: &RoaringBitmap) -> Marks {
    walk_along(graph, start, set, |_, _| true)
}

/// Marks the objects of `set`, and all objects reachable from the start without stepping on them, along references that
/// `is_followed` accepts, given the referring and the referenced object.
pub(super) fn walk_along(
    graph: &ObjectGraph,
    start: Start,
    set: &RoaringBitmap,
    is_followed: impl Fn(ObjectIndex, ObjectIndex) -> bool + Sync,
) -> Marks {
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
    follow(graph, frontier, |from, target| {
        is_followed(from, target) && visited.mark(target) && is_within(target)
    });
    visited
}

/// Marks an object and all objects reachable from it.
pub(crate) fn walk_from(graph: &ObjectGraph, start: ObjectIndex) -> Marks {
    let visited = Marks::new(graph.objects.len());
    visited.mark(start);
    follow(graph, vec![start], |_, target| visited.mark(target));
    visited
}

/// Follows references from the objects of `frontier` to those that `is_next` accepts, given the referring and the referenced
/// object, and on from these.
fn follow(
    graph: &ObjectGraph,
    mut frontier: Vec<ObjectIndex>,
    is_next: impl Fn(ObjectIndex, ObjectIndex) -> bool + Sync,
) {
    let outward = Outward::new(graph);
    let visit = |share: &[ObjectIndex]| {
        let mut stack = share.to_vec();
        outward.go(&mut stack, BUDGET, &is_next);
        stack
    };
    while !frontier.is_empty() {
        let share = (frontier.len() / rayon::current_num_threads() / 4).max(FEW);
        frontier = parallel::map(&frontier.chunks(share).collect::<Vec<_>>(), visit).concat();
    }
}

/// Reader of the references of objects and of their classes. All data is validated on creation.
#[derive(Debug)]
pub(crate) struct Outward<'a> {
    pub(super) lists: AdjacencyView<'a>,
    pub(super) labels: Labels<'a>,
}

impl<'a> Outward<'a> {
    pub(crate) fn new(graph: &'a ObjectGraph) -> Self {
        Self { lists: graph.references.view(), labels: graph.labels() }
    }

    /// Returns the references of an object, except that to its class object.
    #[inline]
    pub(crate) fn references(&self, object: ObjectIndex) -> Targets<'a> {
        self.lists.list(object.0)
    }

    /// Returns the class of an object.
    #[inline]
    pub(crate) fn class(&self, object: ObjectIndex) -> Option<ClassNumber> {
        u32::try_from(self.labels.label_with_target(object.0)?).ok().map(ClassNumber)
    }

    /// Prefetches the position of an object's adjacency list, and its class.
    #[inline(always)]
    pub(crate) fn prefetch_place(&self, object: ObjectIndex) {
        self.lists.prefetch_place(object.0);
        self.labels.prefetch(object.0);
    }

    /// Prefetches an object's adjacency list; its position should be cached already.
    #[inline(always)]
    pub(crate) fn prefetch_list(&self, object: ObjectIndex) {
        self.lists.prefetch_list(object.0);
    }

    /// Calls `is_next` with each object on a stack and its targets, and pushes the targets that it accepts, until this
    /// many objects were visited or none is left.
    ///
    /// Each object would wait for the position of its list, and then for the list. Therefore each is taken from the
    /// stack some steps early, to prefetch both.
    #[inline(always)]
    pub(crate) fn go(
        &self,
        stack: &mut Vec<ObjectIndex>,
        budget: usize,
        mut is_next: impl FnMut(ObjectIndex, ObjectIndex) -> bool,
    ) {
        // Objects whose position and whose adjacency list were prefetched.
        let mut slots: [(Option<ObjectIndex>, Option<ObjectIndex>); AHEAD] = Default::default();
        let (mut taken, mut visited, mut step) = (0usize, 0, 0);
        while visited < budget && (visited < taken || !stack.is_empty()) {
            let Some((place, list)) = slots.get_mut(step % AHEAD) else { break };
            step += 1;
            let next = stack.pop();
            if let Some(object) = next {
                taken += 1;
                self.prefetch_place(object);
            }
            let next = std::mem::replace(place, next);
            if let Some(object) = next {
                self.prefetch_list(object);
            }
            let Some(here) = std::mem::replace(list, next) else { continue };
            visited += 1;
            let class = self.labels.target(self.labels.label_of(here.0));
            let class = Some(ObjectIndex(class)).filter(|class| class.0 != NONE);
            stack.extend(self.references(here).chain(class).filter(|target| is_next(here, *target)));
        }
        stack.extend(slots.into_iter().flat_map(|(place, list)| [place, list]).flatten());
    }
}

/// A set of numbers that several threads can add to.
pub(crate) struct Marks<N = ObjectIndex>(Vec<AtomicU64>, PhantomData<fn(N)>);

impl<N: Number> Marks<N> {
    /// Creates an empty set of numbers below `limit`.
    pub(crate) fn new(limit: u32) -> Self {
        Self((0..limit.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(), PhantomData)
    }

    /// Adds a number; returns `true` if it was absent.
    #[inline]
    pub(crate) fn mark(&self, number: N) -> bool {
        let number = number.number();
        let Some(word) = self.0.get((number / 64) as usize) else { return false };
        let bit = 1 << (number % 64);
        // Most objects are found several times: reading is cheaper than writing.
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Removes all numbers, and calls `taken` with each in ascending order.
    pub(crate) fn take(&mut self, mut taken: impl FnMut(N)) {
        for (first, word) in (0u32..).step_by(64).zip(&mut self.0) {
            let mut bits = std::mem::take(word.get_mut());
            while bits != 0 {
                taken(N::from_number(first + bits.trailing_zeros()));
                bits &= bits - 1;
            }
        }
    }

    /// Removes a number.
    pub(crate) fn unmark(&mut self, number: N) {
        if let Some(word) = self.0.get_mut((number.number() / 64) as usize) {
            *word.get_mut() &= !(1 << (number.number() % 64));
        }
    }

    #[inline]
    pub(crate) fn contains(&self, number: N) -> bool {
        self.word(number) & (1 << (number.number() % 64)) != 0
    }

    /// Returns the 64 bits that include the bit of `number`.
    #[inline]
    pub(crate) fn word(&self, number: N) -> u64 {
        self.0.get((number.number() / 64) as usize).map_or(0, |word| word.load(Ordering::Relaxed))
    }
}
