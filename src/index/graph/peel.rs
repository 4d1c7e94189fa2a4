//! Taking the leaves off: nodes from which no cycle can be reached within a few steps.
//!
//! Many objects of a heap refer to nothing, and many of the rest to little that matters. Nothing is
//! dominated through them but what hangs below them, so the walk and the search for dominators need not see them: once
//! the dominators of the rest are known, theirs is the nearest common dominator of the nodes that refer to them.
//!
//! Edges into roots matter to nobody, as nothing but the outside dominates a root. A node that a label stands for (a
//! class object) is a leaf if it refers to roots only, as the class objects of arrays do: then the edges of its
//! instances need not be looked at until all others are placed. If it refers to more, its instances stay in the core.

use std::io;
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;

use super::adjacency::{GROUP, Targets};
use super::links::{Links, NONE};
use crate::index::storage::scratch::{Array, Room, atomic_u8};

/// A root: edges into it matter to nobody.
const ROOT: u8 = 0x80;
/// A node that a label stands for, with edges that matter: it stays, and so do the nodes with that label.
const KEPT: u8 = 0x40;
/// The level of a peeled node: higher than those of the peeled nodes it refers to.
const LEVEL: u8 = 0x3f;
/// The level of a peeled node that a label stands for: below that of its label's nodes.
pub(crate) const HUB: u8 = 1;
/// Peeled nodes of more levels are not worth it: how far a node is from the core has a bound.
pub(crate) const MAX_LEVEL: u8 = 40;
/// Groups that one thread looks at in one go.
const CHUNK: u32 = 1 << 14;
/// Rounds that take off less than one of so many nodes are the last.
const WORTH: usize = 50;
const MAX_ROUNDS: usize = 12;

/// What peeling brought.
pub(crate) struct States {
    states: Array<u8>,
    kept: Vec<bool>,
}

impl States {
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

#[inline(always)]
fn matters(state: u8) -> bool {
    state & (ROOT | LEVEL) == 0
}

/// Peels a graph.
pub(crate) fn peel(room: &Room, links: &Links<'_>) -> io::Result<States> {
    let mut states = room.zeroed::<u8>(links.rows.len() as usize)?;
    let kept = take_off(atomic_u8(&mut states), links);
    Ok(States { states, kept })
}

/// Sets the state of each node. Tells which labels' nodes keep their edges to what the label stands for.
fn take_off(states: &[AtomicU8], links: &Links<'_>) -> Vec<bool> {
    let nodes = states.len();
    for root in links.roots {
        states[*root as usize].fetch_or(ROOT, Ordering::Relaxed);
    }
    let is_root = |node: u32| states[node as usize].load(Ordering::Relaxed) & ROOT != 0;
    for hub in links.labels.targets {
        if *hub != NONE && !is_root(*hub) {
            // A class object's own class object must not matter either.
            let own = links.labels.target(links.labels.of(*hub));
            let is_leaf = (own == NONE || own == *hub || is_root(own)) && links.rows.row(*hub).all(is_root);
            states[*hub as usize].store(if is_leaf { HUB } else { KEPT }, Ordering::Relaxed);
        }
    }
    // Labels whose nodes stay.
    let kept: Vec<bool> = (links.labels.targets.iter())
        .map(|hub| *hub != NONE && states[*hub as usize].load(Ordering::Relaxed) & KEPT != 0)
        .collect();
    let groups = links.rows.len().div_ceil(GROUP);
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
                    links.rows.group(group, |node, targets| {
                        peeled += usize::from(try_peel(states, links, &kept, node, targets));
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
fn try_peel(states: &[AtomicU8], links: &Links<'_>, kept: &[bool], node: u32, targets: Targets<'_>) -> bool {
    let own = states[node as usize].load(Ordering::Relaxed);
    if own & (KEPT | LEVEL) != 0 {
        return false;
    }
    let mut level = HUB;
    for target in targets {
        let state = states[target as usize].load(Ordering::Relaxed);
        if matters(state) {
            return false;
        }
        if state & ROOT == 0 {
            level = level.max(state & LEVEL);
        }
    }
    if level >= MAX_LEVEL || kept.get(links.labels.of(node)).is_some_and(|kept| *kept) {
        return false;
    }
    states[node as usize].store(own | (level + 1), Ordering::Relaxed);
    true
}
