//! The core of a graph: the nodes that are left when leaves are peeled off, numbered densely, with the edges between
//! them that matter.

use std::io;

use rayon::prelude::*;

use super::links::Links;
use super::peel::Peeled;
use super::rows::GROUP;
use crate::index::scratch::{Array, Room};

/// Nodes that one thread looks at in one go: whole groups and whole words of bits.
const CHUNK: u32 = 1 << 16;

/// The core.
pub(crate) struct Core<'r> {
    numbers: Numbers,
    /// The node of each core number.
    pub(crate) nodes: Array<'r, u32>,
    /// The roots, as core numbers.
    pub(crate) roots: Vec<u32>,
}

/// The edges of the core that matter.
pub(crate) struct Edges<'r> {
    /// Where the targets of each core number start; one more for the end.
    pub(crate) starts: Array<'r, u64>,
    /// Targets, as core numbers.
    pub(crate) targets: Array<'r, u32>,
}

/// Core numbers of nodes: a bit for each node in the core, and the number of bits before.
struct Numbers {
    words: Vec<(u64, u32)>,
}

impl Numbers {
    #[inline(always)]
    fn of(&self, node: u32) -> u32 {
        let (bits, before) = self.words[(node / 64) as usize];
        before + (bits & ((1u64 << (node % 64)) - 1)).count_ones()
    }
}

impl<'r> Core<'r> {
    /// The core number of a node that is in the core.
    #[inline(always)]
    pub(crate) fn number(&self, node: u32) -> u32 {
        self.numbers.of(node)
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Numbers the core and collects its edges.
    pub(crate) fn new(
        room: &'r Room,
        links: &Links<'_>,
        peeled: &Peeled,
    ) -> io::Result<(Self, Edges<'r>)> {
        let mut words: Vec<(u64, u32)> = (peeled.states().par_chunks(64))
            .map(|states| {
                let bit = |at: usize, state: &u8| u64::from(Peeled::is_core(*state)) << at;
                (states.iter().enumerate().fold(0, |bits, (at, state)| bits | bit(at, state)), 0)
            })
            .collect();
        let mut count = 0;
        for (bits, before) in &mut words {
            *before = count;
            count += bits.count_ones();
        }
        let numbers = Numbers { words };
        let roots: Vec<u32> = (links.roots.iter())
            .filter(|root| peeled.level(**root) == 0)
            .map(|root| numbers.of(*root))
            .collect();

        let chunks = links.rows.len().div_ceil(CHUNK);
        let parts: Vec<Part> = (0..chunks)
            .into_par_iter()
            .map(|chunk| Part::new(chunk, links, peeled, &numbers))
            .collect();
        let edges = parts.iter().map(|part| part.targets.len()).sum();
        let mut nodes = room.array::<u32>(count as usize)?;
        let mut starts = room.array::<u64>(count as usize + 1)?;
        let mut targets = room.array::<u32>(edges)?;
        let (mut node_at, mut edge_at) = (0, 0);
        {
            let (nodes, starts, targets) = (&mut *nodes, &mut *starts, &mut *targets);
            starts[0] = 0;
            for part in parts {
                for (node, end) in part.nodes.iter().zip(&part.ends) {
                    nodes[node_at] = *node;
                    node_at += 1;
                    starts[node_at] = edge_at as u64 + *end;
                }
                targets[edge_at..edge_at + part.targets.len()].copy_from_slice(&part.targets);
                edge_at += part.targets.len();
            }
        }
        Ok((Self { numbers, nodes, roots }, Edges { starts, targets }))
    }
}

/// The part of the core that one thread has made.
struct Part {
    nodes: Vec<u32>,
    /// Where the targets of each node end.
    ends: Vec<u64>,
    targets: Vec<u32>,
}

impl Part {
    fn new(chunk: u32, links: &Links<'_>, peeled: &Peeled, numbers: &Numbers) -> Self {
        let mut part = Self { nodes: Vec::new(), ends: Vec::new(), targets: Vec::new() };
        let end = (chunk + 1).saturating_mul(CHUNK).min(links.rows.len());
        for group in chunk * (CHUNK / GROUP)..end.div_ceil(GROUP) {
            links.rows.group(group, |node, row| {
                if peeled.level(node) != 0 {
                    return;
                }
                for target in row {
                    if target != node && peeled.is_target(target) {
                        part.targets.push(numbers.of(target));
                    }
                }
                let label = links.labels.of(node);
                if peeled.is_kept(label) && links.labels.target(label) != node {
                    part.targets.push(numbers.of(links.labels.target(label)));
                }
                part.nodes.push(node);
                part.ends.push(part.targets.len() as u64);
            });
        }
        part
    }
}
