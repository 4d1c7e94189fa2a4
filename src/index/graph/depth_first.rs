//! Depth-first search of the core: preorder numbers and the tree of the search. Iterative, with a stack that
//! is moved to the scratch arena when it grows.

use std::io;

use super::core::{Core, Edges};
use crate::storage::prefetch::prefetch;
use crate::storage::scratch::{Array, ScratchArena, ScratchStack};

/// Result of a depth-first search. Number 0 is the virtual root, whose children are all roots. The numbers of
/// nodes are in their records.
pub(crate) struct DepthFirst {
    /// Core numbers in preorder; the first entry is a placeholder for the virtual root.
    pub(crate) order: Array<u32>,
    /// Preorder number of each node's parent, by preorder number.
    pub(crate) parents: Array<u32>,
    /// Number of nodes reached, including the virtual root: all preorder numbers are lower.
    pub(crate) reached: usize,
}

/// Maximum length of a list whose targets are prefetched: targets of longer lists would evict data that is needed earlier.
const SHORT: usize = 16;

/// Searches the core depth-first from its roots.
pub(crate) fn walk(arena: &ScratchArena, core: &Core, edges: &mut Edges) -> io::Result<DepthFirst> {
    let nodes = core.len();
    let mut order = arena.array::<u32>(nodes + 1)?;
    let mut parents = arena.array::<u32>(nodes + 1)?;
    let reached = {
        let (order, parents) = (&mut *order, &mut *parents);
        let (bases, records, targets) = (&*edges.bases, &mut *edges.records, &*edges.targets);
        // The virtual root.
        (order[0], parents[0]) = (0, 0);
        // A node may be on the stack several times. The last one that pushed it is its parent, which makes
        // the tree a depth-first one; that number is in its record.
        let mut stack = ScratchStack::<u32>::new(arena);
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
    Ok(DepthFirst { order, parents, reached })
}
