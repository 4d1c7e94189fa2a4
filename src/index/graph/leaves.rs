//! Attaches peeled leaf objects to the dominator tree: the dominator of each is the nearest common dominator
//! of the nodes that refer to it.
//!
//! That is their nearest common ancestor in the dominator tree. In the core it is found by heavy paths: each
//! node belongs to a path that continues to the child with the largest subtree, so that any path to the root
//! crosses a logarithmic number of heavy paths (D. Harel, R. E. Tarjan: Fast Algorithms for Finding Nearest
//! Common Ancestors, SIAM Journal on Computing 13(2), 1984; paths are climbed here, without the tables for
//! constant time). Of several nodes only the first and the last in preorder matter: their nearest common
//! ancestor is that of all.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::adjacency::{AdjacencyView, GROUP};
use super::core::{Core, CoreNumbers};
use super::graph_view::{GraphView, NONE};
use super::peel::{HUB, MAX_LEVEL, PeelView};
use super::semi_nca::Dominators;
use crate::storage::scratch::{Array, ScratchArena, atomic_u32};

/// Dominator number of the virtual root.
pub(crate) const OUTSIDE: u32 = u32::MAX - 1;

/// Nodes in a chunk.
const CHUNK: usize = 1 << 16;

/// Immediate dominators of all nodes, in the core or peeled.
pub(crate) struct DominatorForest {
    /// Dominator of each node: a node, [`OUTSIDE`], or [`NONE`] if it cannot be reached. A node to which only
    /// unreachable nodes refer may have one of them as dominator.
    pub(crate) dominators: Array<u32>,
    /// Nodes of the core in preorder of the search, from 1: dominators come first.
    pub(crate) order: Array<u32>,
    /// Preorder number of the dominator, by preorder number; 0 for the virtual root.
    pub(crate) core: Array<u32>,
    pub(crate) reached: usize,
}

/// Merges the dominators of core and leaf objects. `referrers` is the transpose.
pub(crate) fn attach(
    arena: &ScratchArena,
    graph: &GraphView<'_>,
    core: Core,
    peeled: PeelView<'_>,
    mut found: Dominators,
    referrers: AdjacencyView<'_>,
) -> io::Result<DominatorForest> {
    let numbers = core.numbers();
    let nodes = numbers.nodes(arena)?;
    {
        let nodes = &*nodes;
        (found.order.par_iter_mut().skip(1).take(found.reached - 1)).for_each(|at| *at = nodes[*at as usize]);
    }
    drop(nodes);
    // The largest first: it reuses the memory of the core's records.
    let mut places = arena.zeroed_array::<HeavyPathNode>(found.reached)?;
    let mut dominators = arena.array::<u32>(peeled.states().len())?;
    let several = {
        let dominators = &mut *dominators;
        let (order, above) = (&*found.order, &*found.dominators);
        let several = leaves(arena, dominators, peeled, referrers)?;
        for number in 1..found.reached {
            let above = above[number] as usize;
            dominators[order[number] as usize] = if above == 0 { OUTSIDE } else { order[above] };
        }
        several
    };
    let hubs = graph.labels.targets.iter().any(|hub| *hub != NONE && peeled.level(*hub) == HUB);
    if hubs || !several.is_empty() {
        heavy_paths(&mut places, &found.dominators, found.reached);
        let meeting = Meeting {
            numbers,
            peeled,
            walk_numbers: &found.numbers,
            order: &found.order,
            above: &found.dominators,
            dominators: atomic_u32(&mut dominators),
            places: &places,
        };
        // Each level depends on higher levels alone.
        let levels = several.chunk_by(|one, other| peeled.level(*one) == peeled.level(*other));
        for level in levels {
            level.par_chunks(SETTLED).for_each(|nodes| {
                nodes.iter().for_each(|node| meeting.settle(*node, None, referrers));
            });
        }
        for (hub, span) in meeting.nodes_of_hubs(graph) {
            meeting.settle(hub, span, referrers);
        }
    }
    Ok(DominatorForest { dominators, order: found.order, core: found.dominators, reached: found.reached })
}

/// Placeholder for the dominator of a peeled node with several referrers, until it is found.
const SEVERAL: u32 = u32::MAX - 2;

/// Makes the only referrer of a peeled node its dominator. Returns the nodes with several referrers, the
/// highest level first, then by number.
fn leaves(
    arena: &ScratchArena,
    dominators: &mut [u32],
    peeled: PeelView<'_>,
    referrers: AdjacencyView<'_>,
) -> io::Result<Array<u32>> {
    const LEVELS: usize = MAX_LEVEL as usize + 1;
    let counts = (dominators.par_chunks_mut(CHUNK).enumerate())
        .map(|(chunk, dominators)| {
            let mut counts = [0usize; LEVELS];
            let first = u32::try_from(chunk * CHUNK).unwrap_or(u32::MAX);
            let groups = dominators.len().div_ceil(GROUP as usize);
            for group in (first / GROUP..).take(groups) {
                referrers.group(group, |node, row| {
                    let level = peeled.level(node);
                    dominators[(node - first) as usize] = if level == 0 || level == HUB {
                        // Set later.
                        NONE
                    } else if peeled.is_root(node) {
                        OUTSIDE
                    } else if let Some(only) = row.clone().single_target() {
                        only
                    } else if row.clone().next().is_some() {
                        counts[usize::from(level)] += 1;
                        SEVERAL
                    } else {
                        NONE
                    };
                });
            }
            counts
        })
        .reduce(
            || [0; LEVELS],
            |mut counts, more| {
                counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                counts
            },
        );
    let mut several = arena.array::<u32>(counts.iter().sum())?;
    // Position of the next node of each level.
    let (mut nexts, mut sum) = ([0usize; LEVELS], 0);
    for (next, count) in nexts.iter_mut().zip(counts).rev() {
        *next = sum;
        sum += count;
    }
    let places = &mut *several;
    for (node, dominator) in (0u32..).zip(dominators) {
        if *dominator == SEVERAL {
            *dominator = NONE;
            let next = &mut nexts[usize::from(peeled.level(node))];
            places[*next] = node;
            *next += 1;
        }
    }
    Ok(several)
}

/// A node of the dominator tree, in the core or peeled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ancestor {
    /// A node of the core, by preorder number of the search; 0 is the virtual root.
    Core(u32),
    Peeled(u32),
}

/// Extent of a set of nodes in the core's preorder: its first and its last node have the same nearest common ancestor as all
/// its nodes.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// Preorder number in the dominator tree and search number of the first node, or of its nearest dominator
    /// in the core.
    first: (u32, u32),
    /// Preorder number in the dominator tree and search number of the last node, or of its nearest dominator in the core.
    last: (u32, u32),
    /// Nearest common ancestor of all, while `first` and `last` are equal.
    only: Ancestor,
}

/// Finds nearest common dominators.
///
/// Peeled nodes are at most [`super::peel::MAX_LEVEL`] steps from the core.
struct Meeting<'a> {
    /// Core numbers.
    numbers: CoreNumbers<'a>,
    peeled: PeelView<'a>,
    /// Search number by core number.
    walk_numbers: &'a [u32],
    /// Node by search number.
    order: &'a [u32],
    /// Search number of the dominator, by search number.
    above: &'a [u32],
    dominators: &'a [AtomicU32],
    /// Heavy path node by search number.
    places: &'a [HeavyPathNode],
}

/// Nodes that a thread processes at a time.
const SETTLED: usize = 1 << 12;

/// A node of the core in the dominator tree, with its heavy path.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct HeavyPathNode {
    /// Size of the subtree, including the node; then the preorder number of its next child.
    size: u32,
    /// Size of the largest child's subtree; then the node's own preorder number.
    largest: u32,
    /// Child with the largest subtree.
    heavy: u32,
    /// Head of the heavy path.
    head: u32,
}

/// Decomposes the tree of `above` into heavy paths, and numbers it in preorder.
fn heavy_paths(places: &mut [HeavyPathNode], above: &[u32], reached: usize) {
    for number in (1..reached).rev() {
        places[number].size += 1;
        let size = places[number].size;
        let above = &mut places[above[number] as usize];
        above.size += size;
        // The last child visited has the lowest number: ties can be broken either way.
        if above.largest <= size {
            (above.largest, above.heavy) = (size, index(number));
        }
    }
    // A node's own preorder number is known when it is visited; from then on `size` is the preorder
    // number of its next child.
    (places[0].size, places[0].largest) = (1, 0);
    for number in 1..reached {
        let size = places[number].size;
        let above = &mut places[above[number] as usize];
        let head = if above.heavy == index(number) { above.head } else { index(number) };
        let preorder = above.size;
        above.size += size;
        let place = &mut places[number];
        (place.head, place.largest, place.size) = (head, preorder, preorder + 1);
    }
}

impl Meeting<'_> {
    #[inline(always)]
    fn dominator(&self, node: u32) -> u32 {
        self.dominators[node as usize].load(Ordering::Relaxed)
    }

    /// Returns the span of a single node; `None` if it cannot be reached.
    #[inline]
    fn span(&self, node: u32) -> Option<Span> {
        let mut at = node;
        // A node to which only unreachable nodes refer is below one of them.
        let number = loop {
            if at == OUTSIDE {
                break 0;
            }
            if at == NONE {
                return None;
            }
            if self.peeled.level(at) == 0 {
                match self.number(at) {
                    0 => return None,
                    number => break number,
                }
            }
            at = self.dominator(at);
        };
        let place = (self.places[number as usize].largest, number);
        Some(Span { first: place, last: place, only: self.ancestor(node) })
    }

    fn join(&self, one: Option<Span>, other: Option<Span>) -> Option<Span> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let (first, last) = (one.first.min(other.first), one.last.max(other.last));
        let only = if first == last { self.meet_below(one.only, other.only) } else { one.only };
        Some(Span { first, last, only })
    }

    /// Returns the nearest common ancestor of a span.
    fn meet(&self, span: Span) -> Ancestor {
        if span.first == span.last {
            return span.only;
        }
        Ancestor::Core(self.meet_in_core(span.first.1, span.last.1))
    }

    fn ancestor(&self, node: u32) -> Ancestor {
        if node == OUTSIDE {
            Ancestor::Core(0)
        } else if self.peeled.level(node) == 0 {
            Ancestor::Core(self.number(node))
        } else {
            Ancestor::Peeled(node)
        }
    }

    fn number(&self, node: u32) -> u32 {
        self.walk_numbers[self.numbers.number_of(node) as usize]
    }

    /// Returns the span of the nodes of each label whose target is a peeled node.
    fn nodes_of_hubs(&self, graph: &GraphView<'_>) -> Vec<(u32, Option<Span>)> {
        let labels = graph.labels;
        let mut hubs: Vec<(u32, Option<Span>)> = Vec::new();
        let slots: Vec<usize> = (labels.targets.iter())
            .map(|hub| {
                if *hub == NONE || self.peeled.level(*hub) != HUB || self.peeled.is_root(*hub) {
                    return usize::MAX;
                }
                hubs.push((*hub, None));
                hubs.len() - 1
            })
            .collect();
        let nodes = self.peeled.states().len();
        let spans = (0..nodes.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let mut spans = vec![None; hubs.len()];
                for node in chunk * CHUNK..((chunk + 1) * CHUNK).min(nodes) {
                    let node = index(node);
                    let slot = slots.get(labels.label_of(node)).and_then(|slot| spans.get_mut(*slot));
                    if let Some(span) = slot {
                        *span = self.join(*span, self.span(node));
                    }
                }
                spans
            })
            .reduce(
                || vec![None; hubs.len()],
                |one, other| one.into_iter().zip(other).map(|(one, other)| self.join(one, other)).collect(),
            );
        for ((_, span), found) in hubs.iter_mut().zip(spans) {
            *span = found;
        }
        hubs
    }

    /// Sets the dominator of a peeled node with several referrers, in addition to the nodes of `span`. Nodes
    /// of higher levels already have theirs.
    fn settle(&self, node: u32, mut span: Option<Span>, referrers: AdjacencyView<'_>) {
        for referrer in referrers.list(node) {
            span = self.join(span, self.span(referrer.0));
        }
        let dominator = match span.map(|span| self.meet(span)) {
            None => NONE,
            Some(Ancestor::Core(0)) => OUTSIDE,
            Some(Ancestor::Core(number)) => self.order[number as usize],
            Some(Ancestor::Peeled(node)) => node,
        };
        self.dominators[node as usize].store(dominator, Ordering::Relaxed);
    }

    /// Returns the nearest common dominator of two nodes below, or at, the same node of the core.
    fn meet_below(&self, mut one: Ancestor, mut other: Ancestor) -> Ancestor {
        loop {
            match (one, other) {
                _ if one == other => return one,
                (Ancestor::Core(_), Ancestor::Core(_)) => return one,
                (Ancestor::Peeled(a), Ancestor::Core(_)) => one = self.next_ancestor(a),
                (Ancestor::Core(_), Ancestor::Peeled(b)) => other = self.next_ancestor(b),
                // A dominator has a higher level than the nodes it dominates.
                (Ancestor::Peeled(a), Ancestor::Peeled(b)) => {
                    if self.peeled.level(a) <= self.peeled.level(b) {
                        one = self.next_ancestor(a);
                    } else {
                        other = self.next_ancestor(b);
                    }
                }
            }
        }
    }

    fn next_ancestor(&self, peeled: u32) -> Ancestor {
        self.ancestor(self.dominator(peeled))
    }

    fn meet_in_core(&self, mut one: u32, mut other: u32) -> u32 {
        let above = self.above;
        loop {
            let heads = (self.places[one as usize].head, self.places[other as usize].head);
            // A dominator has a lower number than the nodes it dominates.
            match heads.0.cmp(&heads.1) {
                std::cmp::Ordering::Equal => return one.min(other),
                std::cmp::Ordering::Greater => one = above[heads.0 as usize],
                std::cmp::Ordering::Less => other = above[heads.1 as usize],
            }
        }
    }
}

/// Returns `at` as a node number. Numbers of nodes fit 32 bits.
#[inline(always)]
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
