//! Depth-first numbers of the core, and the tree of the walk.

use std::io;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::core::{Core, Edges};
use crate::index::prefetch::prefetch;
use crate::index::scratch::{Array, Room};

/// What the walk says of a core node.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct Visit {
    /// The node's number in the order of the walk, from 1; 0 if it was not reached.
    pub(crate) number: u32,
    /// The number of the node from which it was reached; 0 for the outside.
    pub(crate) parent: u32,
}

/// A walk. Number 0 is the outside, from which all roots are reached.
pub(crate) struct Walk<'r> {
    /// By core number.
    pub(crate) visits: Array<'r, Visit>,
    /// Core numbers in the order of the walk; the first stands for the outside.
    pub(crate) order: Array<'r, u32>,
    /// The number of the parent of each node, in the order of the walk.
    pub(crate) parents: Array<'r, u32>,
    /// Nodes reached, the outside included: numbers are below it.
    pub(crate) reached: usize,
}

/// Rows longer than this are not prefetched: their targets would push out what is needed first.
const SHORT: usize = 16;

/// Walks the core depth first from its roots.
pub(crate) fn walk<'r>(room: &'r Room, core: &Core<'_>, edges: &Edges<'_>) -> io::Result<Walk<'r>> {
    let nodes = core.len();
    let mut visits = room.zeroed::<Visit>(nodes)?;
    let mut order = room.array::<u32>(nodes + 1)?;
    let mut parents = room.array::<u32>(nodes + 1)?;
    let reached = {
        let (visits, order, parents) = (&mut *visits, &mut *order, &mut *parents);
        // The outside.
        (order[0], parents[0]) = (0, 0);
        let edges = edges.view();
        // A node may be there several times; the last one that put it there is its parent, which makes it a depth-first
        // tree. That is noted with the node.
        let mut stack: Vec<u32> = core.roots.iter().rev().copied().collect();
        let mut next = 1u32;
        while let Some(node) = stack.pop() {
            let visit = &mut visits[node as usize];
            if visit.number != 0 {
                continue;
            }
            let number = next;
            next += 1;
            visit.number = number;
            order[number as usize] = node;
            parents[number as usize] = visit.parent;
            let row = edges.of(node);
            if row.len() <= SHORT {
                for target in row {
                    prefetch(visits, *target as usize);
                    edges.ask_start(*target);
                }
            }
            for target in row.iter().rev() {
                let visit = &mut visits[*target as usize];
                if visit.number == 0 {
                    visit.parent = number;
                    edges.ask_targets(*target);
                    stack.push(*target);
                }
            }
        }
        next as usize
    };
    Ok(Walk { visits, order, parents, reached })
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn place(start: u64) -> usize {
    start as usize
}
