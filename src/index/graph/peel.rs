//! Peeling of leaf objects: nodes from which no cycle can be reached within a few steps.
//!
//! Nodes without outgoing edges that matter are removed, then those whose edges all lead to removed nodes,
//! and so on: repeated pruning of nodes of out-degree 0. Many objects of a heap refer to nothing, and many of
//! the rest only to such objects. A peeled node dominates only peeled nodes, so the depth-first search and
//! the search for dominators can skip it. Its own dominator is the nearest common dominator of the nodes that
//! refer to it ([`super::leaves`]).
//!
//! Edges to roots do not matter, as only the virtual root dominates a root. The target of a label (a class
//! object) is a leaf if it refers to roots only, as the class objects of arrays do: then the edges of its
//! instances are not needed until all other nodes are attached. If it refers to other nodes, its instances
//! are not peeled.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;

use super::adjacency::{GROUP, Targets};
use super::graph_view::{GraphView, NONE};
use crate::storage::scratch::{Array, ScratchArena, atomic_u8};

/// Flag of a root: edges to it do not matter.
const ROOT: u8 = 0x80;
/// Flag of a label's target with edges that matter: neither the target nor the nodes with that label are peeled.
const KEPT: u8 = 0x40;
/// Bits of the level of a peeled node, which is higher than those of the peeled nodes it refers to.
const LEVEL: u8 = 0x3f;
/// Level of a peeled node that is the target of a label: lower than those of the label's nodes.
pub(crate) const HUB: u8 = 1;
/// Highest level: limits the distance of a node from the core.
pub(crate) const MAX_LEVEL: u8 = 40;
/// Groups in a chunk.
const CHUNK: u32 = 1 << 14;
/// Reciprocal of the share of nodes that a round must peel for another round to follow.
const WORTH: usize = 50;
const MAX_ROUNDS: usize = 12;

/// Peeling state of each node: flags and level.
pub(crate) struct PeelStates {
    states: Array<u8>,
    kept: Vec<bool>,
}

impl PeelStates {
    /// Returns a view of the states for traversals.
    pub(crate) fn view(&self) -> PeelView<'_> {
        PeelView { states: &self.states, kept: &self.kept }
    }
}

/// View of the peeling states for traversals.
#[derive(Clone, Copy)]
pub(crate) struct PeelView<'a> {
    states: &'a [u8],
    /// By label: `true` if the edges to its target are in the core.
    kept: &'a [bool],
}

impl<'a> PeelView<'a> {
    /// Returns the level of a node; 0 for a node of the core.
    #[inline(always)]
    pub(crate) fn level(self, node: u32) -> u8 {
        self.states[node as usize] & LEVEL
    }

    /// Returns `true` if edges to a node matter to the core: it is neither a root nor peeled.
    #[inline(always)]
    pub(crate) fn is_target(self, node: u32) -> bool {
        matters(self.states[node as usize])
    }

    /// Returns `true` if the edge from a node of the core to the target of its label is in the core.
    #[inline(always)]
    pub(crate) fn is_kept(self, label: usize) -> bool {
        self.kept.get(label).is_some_and(|kept| *kept)
    }

    /// Returns `true` if a node is a root.
    #[inline(always)]
    pub(crate) fn is_root(self, node: u32) -> bool {
        self.states[node as usize] & ROOT != 0
    }

    /// Returns `true` if any node of a group is in the core.
    #[inline(always)]
    pub(crate) fn has_core(self, group: u32) -> bool {
        of_group(self.states, group).iter().any(|state| Self::is_core(*state))
    }

    /// Returns the states of all nodes.
    pub(crate) fn states(self) -> &'a [u8] {
        self.states
    }

    /// Returns `true` if a node with this state is in the core.
    #[inline(always)]
    pub(crate) fn is_core(state: u8) -> bool {
        state & LEVEL == 0
    }

    /// Returns the level of a node with this state.
    #[inline(always)]
    pub(crate) fn level_of(state: u8) -> u8 {
        state & LEVEL
    }
}

/// Returns the states of the nodes of a group.
#[inline(always)]
fn of_group<T>(states: &[T], group: u32) -> &[T] {
    let first = (group * GROUP) as usize;
    states.get(first..states.len().min(first + GROUP as usize)).unwrap_or_default()
}

#[inline(always)]
fn matters(state: u8) -> bool {
    state & (ROOT | LEVEL) == 0
}

/// Peels the leaf objects of a graph: sets the peeling state of each node.
pub(crate) fn peel(arena: &ScratchArena, graph: &GraphView<'_>) -> io::Result<PeelStates> {
    let mut states = arena.zeroed_array::<u8>(graph.lists.len() as usize)?;
    let kept = peel_nodes(atomic_u8(&mut states), graph);
    Ok(PeelStates { states, kept })
}

/// Sets the state of each node. Returns, by label, `true` if the edges to its target are in the core.
fn peel_nodes(states: &[AtomicU8], graph: &GraphView<'_>) -> Vec<bool> {
    let nodes = states.len();
    for root in graph.roots {
        states[*root as usize].fetch_or(ROOT, Ordering::Relaxed);
    }
    let is_root = |node: u32| states[node as usize].load(Ordering::Relaxed) & ROOT != 0;
    for hub in graph.labels.targets {
        if *hub != NONE && !is_root(*hub) {
            // A class object's own class object must not matter either.
            let own = graph.labels.target(graph.labels.label_of(*hub));
            let is_leaf = (own == NONE || own == *hub || is_root(own))
                && graph.lists.list(*hub).all(|target| is_root(target.0));
            states[*hub as usize].store(if is_leaf { HUB } else { KEPT }, Ordering::Relaxed);
        }
    }
    // Labels whose nodes are not peeled.
    let kept: Vec<bool> = (graph.labels.targets.iter())
        .map(|hub| *hub != NONE && states[*hub as usize].load(Ordering::Relaxed) & KEPT != 0)
        .collect();
    let groups = graph.lists.len().div_ceil(GROUP);
    let chunks = groups.div_ceil(CHUNK);
    for round in 0..MAX_ROUNDS {
        // Threads see each other's levels as soon as they are set: which nodes are peeled may depend on that,
        // the dominator tree does not. Alternating the direction takes lists in either order in one round.
        let peeled: usize = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                let mut peeled = 0;
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(groups);
                let mut look = |group: u32| {
                    // In most groups, all nodes are peeled after a round: their lists need not be read again.
                    if of_group(states, group)
                        .iter()
                        .all(|state| state.load(Ordering::Relaxed) & (KEPT | LEVEL) != 0)
                    {
                        return;
                    }
                    graph.lists.group(group, |node, targets| {
                        peeled += usize::from(try_peel(states, graph, &kept, node, targets));
                    });
                };
                if round % 2 == 0 {
                    range.for_each(&mut look)
                } else {
                    range.rev().for_each(&mut look)
                }
                peeled
            })
            .sum();
        if peeled < nodes / WORTH {
            break;
        }
    }
    kept
}

#[inline(always)]
fn try_peel(
    states: &[AtomicU8],
    graph: &GraphView<'_>,
    kept: &[bool],
    node: u32,
    targets: Targets<'_>,
) -> bool {
    let own = states[node as usize].load(Ordering::Relaxed);
    if own & (KEPT | LEVEL) != 0 {
        return false;
    }
    let mut level = HUB;
    for target in targets {
        let state = states[target.at()].load(Ordering::Relaxed);
        if matters(state) {
            return false;
        }
        if state & ROOT == 0 {
            level = level.max(state & LEVEL);
        }
    }
    if level >= MAX_LEVEL || kept.get(graph.labels.label_of(node)).is_some_and(|kept| *kept) {
        return false;
    }
    states[node as usize].store(own | (level + 1), Ordering::Relaxed);
    true
}
