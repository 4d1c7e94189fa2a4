//! Depth-first numbers of the core, and the tree of the walk.

use std::io;

use super::core::{Core, Edges};
use crate::index::storage::prefetch::prefetch;
use crate::index::storage::scratch::{Array, Room, Stack};

/// A walk. Number 0 is the outside, from which all roots are reached. Numbers of nodes are in their records.
pub(crate) struct Walk {
    /// Core numbers in the order of the walk; the first stands for the outside.
    pub(crate) order: Array<u32>,
    /// The number of the parent of each node, in the order of the walk.
    pub(crate) parents: Array<u32>,
    /// Nodes reached, the outside included: numbers are below it.
    pub(crate) reached: usize,
}

/// Rows longer than this are not asked for ahead: their targets would push out what is needed first.
const SHORT: usize = 16;

/// Walks the core depth first from its roots.
pub(crate) fn walk(room: &Room, core: &Core, edges: &mut Edges) -> io::Result<Walk> {
    let nodes = core.len();
    let mut order = room.array::<u32>(nodes + 1)?;
    let mut parents = room.array::<u32>(nodes + 1)?;
    let reached = {
        let (order, parents) = (&mut *order, &mut *parents);
        let (bases, records, targets) = (&*edges.bases, &mut *edges.records, &*edges.targets);
        // The outside.
        (order[0], parents[0]) = (0, 0);
        // A node may be there several times; the last one that put it there is its parent, which makes it a depth-first
        // tree. That is noted with the node.
        let mut stack = Stack::<u32>::new(room);
        core.roots.iter().rev().try_for_each(|root| stack.push(*root))?;
        let mut next = 1u32;
        while let Some(node) = stack.pop() {
            let record = &mut records[node as usize];
            if record.number != 0 {
                continue;
            }
            let number = next;
            next += 1;
            record.number = number;
            order[number as usize] = node;
            parents[number as usize] = record.parent;
            let row = &targets[record.targets(bases, node)];
            if row.len() <= SHORT {
                for target in row {
                    prefetch(records, *target as usize);
                }
            }
            for target in row.iter().rev() {
                let record = &mut records[*target as usize];
                if record.number == 0 {
                    record.parent = number;
                    prefetch(targets, record.targets(bases, *target).start);
                    stack.push(*target)?;
                }
            }
        }
        next as usize
    };
    Ok(Walk { order, parents, reached })
}
