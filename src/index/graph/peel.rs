//! Peeling leaf objects: nodes from which no cycle can be reached within a few steps.
//!
//! Nodes without outgoing edges that matter are removed, then those whose edges all lead to removed nodes, and so on:
//! repeated pruning of nodes of out-degree 0. Many objects of a heap refer to nothing, and many of the rest only to such.
//! A peeled node dominates nothing but peeled nodes, so the depth-first search and the search for dominators need not see
//! it. Its own dominator is the nearest common dominator of the nodes that refer to it ([`super::leaves`]).
//!
//! Edges into roots do not matter, as only the virtual root dominates a root. A node that a label stands for (a class
//! object) is a leaf if it refers to roots only, as the class objects of arrays do: then the edges of its instances need
//! not be looked at until all others are attached. If it refers to more, its instances stay in the core.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;

use super::adjacency::{GROUP, Targets};
use super::graph_view::{GraphView, NONE};
use crate::storage::scratch::{Array, ScratchArena, atomic_u8};

/// A root: edges into it do not matter.
const ROOT: u8 = 0x80;
/// A node that a label stands for, with edges that matter: it stays, and so do the nodes with that label.
const KEPT: u8 = 0x40;
/// The level of a peeled node: higher than those of the peeled nodes it refers to.
const LEVEL: u8 = 0x3f;
/// The level of a peeled node that a label stands for: below that of its label's nodes.
pub(crate) const HUB: u8 = 1;
/// The highest level: bounds how far a node is from the core.
pub(crate) const MAX_LEVEL: u8 = 40;
/// Groups in a chunk.
const CHUNK: u32 = 1 << 14;
/// A round that peels less than one of so many nodes is the last.
const WORTH: usize = 50;
const MAX_ROUNDS: usize = 12;

/// The state of each node.
pub(crate) struct PeelStates {
    states: Array<u8>,
    kept: Vec<bool>,
}

impl PeelStates {
    /// For walks over it.
    pub(crate) fn view(&self) -> Peeled<'_> {
        Peeled { states: &self.states, kept: &self.kept }
    }
}

/// Which nodes are peeled.
#[derive(Clone, Copy)]
pub(crate) struct Peeled<'a> {
    states: &'a [u8],
    /// By label: whether the edges to what it stands for are in the core.
    kept: &'a [bool],
}

impl<'a> Peeled<'a> {
    /// The level of a node; 0 for a node of the core.
    #[inline(always)]
    pub(crate) fn level(self, node: u32) -> u8 {
        self.states[node as usize] & LEVEL
    }

    /// Whether edges into a node matter to the core: it is no root, and not peeled.
    #[inline(always)]
    pub(crate) fn is_target(self, node: u32) -> bool {
        matters(self.states[node as usize])
    }

    /// Whether a node's edge to what its label stands for is in the core, if the node is.
    #[inline(always)]
    pub(crate) fn is_kept(self, label: usize) -> bool {
        self.kept.get(label).is_some_and(|kept| *kept)
    }

    /// Whether a node is a root.
    #[inline(always)]
    pub(crate) fn is_root(self, node: u32) -> bool {
        self.states[node as usize] & ROOT != 0
    }

    /// Whether one of the nodes of a group is in the core.
    #[inline(always)]
    pub(crate) fn has_core(self, group: u32) -> bool {
        of_group(self.states, group).iter().any(|state| Self::is_core(*state))
    }

    /// The states of all nodes, for walks over them.
    pub(crate) fn states(self) -> &'a [u8] {
        self.states
    }

    /// Whether the state is one of a node in the core.
    #[inline(always)]
    pub(crate) fn is_core(state: u8) -> bool {
        state & LEVEL == 0
    }

    /// The level that a state tells.
    #[inline(always)]
    pub(crate) fn level_of(state: u8) -> u8 {
        state & LEVEL
    }
}

/// The states of the nodes of a group.
#[inline(always)]
fn of_group<T>(states: &[T], group: u32) -> &[T] {
    let first = (group * GROUP) as usize;
    states.get(first..states.len().min(first + GROUP as usize)).unwrap_or_default()
}

#[inline(always)]
fn matters(state: u8) -> bool {
    state & (ROOT | LEVEL) == 0
}

/// Peels a graph.
pub(crate) fn peel(arena: &ScratchArena, graph: &GraphView<'_>) -> io::Result<PeelStates> {
    let mut states = arena.zeroed::<u8>(graph.lists.len() as usize)?;
    let kept = peel_nodes(atomic_u8(&mut states), graph);
    Ok(PeelStates { states, kept })
}

/// Sets the state of each node. Tells which labels' nodes keep their edges to what the label stands for.
fn peel_nodes(states: &[AtomicU8], graph: &GraphView<'_>) -> Vec<bool> {
    let nodes = states.len();
    for root in graph.roots {
        states[*root as usize].fetch_or(ROOT, Ordering::Relaxed);
    }
    let is_root = |node: u32| states[node as usize].load(Ordering::Relaxed) & ROOT != 0;
    for hub in graph.labels.targets {
        if *hub != NONE && !is_root(*hub) {
            // A class object's own class object must not matter either.
            let own = graph.labels.target(graph.labels.of(*hub));
            let is_leaf = (own == NONE || own == *hub || is_root(own))
                && graph.lists.list(*hub).all(|target| is_root(target.0));
            states[*hub as usize].store(if is_leaf { HUB } else { KEPT }, Ordering::Relaxed);
        }
    }
    // Labels whose nodes stay.
    let kept: Vec<bool> = (graph.labels.targets.iter())
        .map(|hub| *hub != NONE && states[*hub as usize].load(Ordering::Relaxed) & KEPT != 0)
        .collect();
    let groups = graph.lists.len().div_ceil(GROUP);
    let chunks = groups.div_ceil(CHUNK);
    for round in 0..MAX_ROUNDS {
        // Threads see each other's levels as they are set: which nodes are peeled may depend on that, what comes of it
        // does not. Going up and down in turn takes lists in either order in one round.
        let peeled: usize = (0..chunks)
            .into_par_iter()
            .map(|chunk| {
                let mut peeled = 0;
                let range = chunk * CHUNK..((chunk + 1) * CHUNK).min(groups);
                let mut look = |group: u32| {
                    // In most groups, all are peeled after a round: their lists need not be read again.
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
    if level >= MAX_LEVEL || kept.get(graph.labels.of(node)).is_some_and(|kept| *kept) {
        return false;
    }
    states[node as usize].store(own | (level + 1), Ordering::Relaxed);
    true
}
