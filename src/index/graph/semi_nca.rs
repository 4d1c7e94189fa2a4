//! Dominators by SEMI-NCA: semidominators bottom up with path compression, then the nearest common ancestors
//! of parents and semidominators top down.
//!
//! L. Georgiadis, R. E. Tarjan, R. F. Werneck: Finding Dominators in Practice, Journal of Graph Algorithms
//! and Applications 10(1), 2006. The algorithm is from L. Georgiadis: Linear-Time Algorithms for Dominators
//! and Related Problems, PhD thesis, Princeton 2005. Everything is in preorder numbers of the depth-first
//! search; nothing recurses.

use std::io;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::core::{Core, Edges};
use super::depth_first::DepthFirst;
use super::transpose::{self, EdgeSink, Transpose, TransposedView, bucket_count};
use crate::storage::prefetch::prefetch;
use crate::storage::scratch::{Array, ScratchArena, ScratchStack, atomic_u32};

/// Link of a node to its ancestors in the forest of processed nodes.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Link {
    /// Nearest ancestor up to which the path is not compressed.
    ancestor: u32,
    /// Smallest semidominator on the path from that ancestor down to this node.
    label: u32,
}

/// Core nodes in a chunk.
const CHUNK: usize = 1 << 16;
/// Distance in nodes at which sources are prefetched.
const AHEAD: usize = 16;
/// Maximum number of prefetched sources per node.
const AHEAD_SOURCES: usize = 4;
/// Distance in nodes at which the ancestors of sources are prefetched.
const AHEAD_ANCESTORS: usize = 8;

/// Computes the immediate dominator of each node, both as preorder numbers; 0 is the virtual root.
pub(crate) fn dominators(
    arena: &ScratchArena,
    core: &Core,
    edges: Edges,
    mut walk: DepthFirst,
) -> io::Result<Dominators> {
    let reached = walk.reached;
    let mut is_root = vec![0u64; reached.div_ceil(64)];
    for root in &core.roots {
        let number = edges.records[*root as usize].number as usize;
        is_root[number / 64] |= 1 << (number % 64);
    }
    let sources = sources(arena, edges, reached)?;
    let mut links = arena.array::<Link>(reached)?;
    let mut semis = arena.array::<u32>(reached)?;
    semidominators(arena, sources.view(), &walk.parents, &is_root, &mut links, &mut semis)?;
    drop((sources, links));
    climb(arena, &mut walk.parents, &semis)?;
    drop(semis);
    // The inverse of `order`, made only now: meanwhile all memory was in use.
    let mut numbers = arena.zeroed_array::<u32>(core.len())?;
    {
        let numbers = atomic_u32(&mut numbers);
        walk.order[..reached].par_chunks(CHUNK).enumerate().for_each(|(chunk, nodes)| {
            let first = usize::from(chunk == 0);
            for (at, node) in nodes.iter().enumerate().skip(first) {
                let number = u32::try_from(chunk * CHUNK + at).unwrap_or(u32::MAX);
                numbers[*node as usize].store(number, Ordering::Relaxed);
            }
        });
    }
    Ok(Dominators { numbers, order: walk.order, dominators: walk.parents, reached })
}

/// Immediate dominators of the nodes of the core.
pub(crate) struct Dominators {
    /// Preorder number by core number; 0 for unreachable nodes.
    pub(crate) numbers: Array<u32>,
    /// Core number by preorder number.
    pub(crate) order: Array<u32>,
    /// Preorder number of the dominator, by preorder number.
    pub(crate) dominators: Array<u32>,
    pub(crate) reached: usize,
}

/// Returns the transposed edges between reached nodes, in preorder numbers, without the edges of the search tree.
fn sources(arena: &ScratchArena, edges: Edges, reached: usize) -> io::Result<Transpose> {
    let (bases, records, targets) = (&*edges.bases, &*edges.records, &*edges.targets);
    let each = |chunk: usize, sink: &mut EdgeSink| {
        let first = chunk * CHUNK;
        let part = records.get(first..records.len().min(first + CHUNK)).unwrap_or_default();
        for (node, record) in (u32::try_from(first).unwrap_or(u32::MAX)..).zip(part) {
            if record.number == 0 {
                continue;
            }
            let row = &targets[record.targets(bases, node)];
            for target in row {
                let other = records[*target as usize];
                if other.parent != record.number {
                    sink.edge(other.number, record.number);
                }
            }
        }
    };
    let count = bucket_count(u32::try_from(reached).unwrap_or(u32::MAX));
    let chunks = records.len().div_ceil(CHUNK);
    let made = transpose::buckets(arena, 0..count, targets.len() as u64, chunks, each)?;
    drop(edges);
    made.transpose(arena)
}

/// Computes the semidominator of each node.
fn semidominators(
    arena: &ScratchArena,
    sources: TransposedView<'_>,
    parents: &[u32],
    is_root: &[u64],
    links: &mut [Link],
    semis: &mut [u32],
) -> io::Result<()> {
    for (number, (link, parent)) in (0u32..).zip(links.iter_mut().zip(parents)) {
        *link = Link { ancestor: *parent, label: number };
    }
    let mut path = ScratchStack::<u32>::new(arena);
    for number in (1..links.len()).rev() {
        if let Some(soon) = number.checked_sub(AHEAD) {
            for source in sources.sources_of(soon).iter().take(AHEAD_SOURCES) {
                prefetch(links, *source as usize);
            }
        }
        if let Some(soon) = number.checked_sub(AHEAD_ANCESTORS) {
            for source in sources.sources_of(soon).iter().take(AHEAD_SOURCES) {
                prefetch(links, links[*source as usize].ancestor as usize);
            }
        }
        let mut semi = parents[number];
        if is_root[number / 64] >> (number % 64) & 1 != 0 {
            semi = 0;
        } else {
            for source in sources.sources_of(number) {
                let label = if (*source as usize) <= number {
                    *source
                } else {
                    least_above(links, &mut path, *source as usize, number)?
                };
                semi = semi.min(label);
            }
        }
        semis[number] = semi;
        links[number].label = semi;
    }
    Ok(())
}

/// Average number of single steps up the tree per node before jumps are used.
const PLAIN: usize = 8;

/// Turns parents into dominators, in place: the dominator of a node is the nearest of its parent's dominators
/// whose preorder number is not higher than its semidominator. All of them precede the node.
fn climb(arena: &ScratchArena, parents: &mut [u32], semis: &[u32]) -> io::Result<()> {
    let mut left = PLAIN.saturating_mul(semis.len());
    for number in 1..semis.len() {
        let mut dominator = parents[number];
        while dominator > semis[number] {
            dominator = parents[dominator as usize];
            left = left.saturating_sub(1);
        }
        parents[number] = dominator;
        // A long list whose items are also referenced from elsewhere: the path up from each of them is long.
        if left == 0 {
            return climb_by_jumps(arena, parents, semis, number + 1);
        }
    }
    Ok(())
}

/// Jump pointer of a processed node.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Jump {
    depth: u32,
    /// One of its dominators, direct or not. They are chosen so that a path up that takes jumps where
    /// possible has a logarithmic number of steps.
    to: u32,
}

/// Turns parents into dominators like [`climb`], from node `first` on, with jump pointers. Earlier nodes are already processed.
///
/// E. W. Myers: An Applicative Random-Access Stack, Information Processing Letters 17(5), 1983.
fn climb_by_jumps(arena: &ScratchArena, parents: &mut [u32], semis: &[u32], first: usize) -> io::Result<()> {
    let mut jumps = arena.array::<Jump>(semis.len())?;
    let jumps = &mut *jumps;
    // The virtual root.
    jumps[0] = Jump::default();
    for number in 1..semis.len() {
        let mut dominator = parents[number];
        if number >= first {
            while dominator > semis[number] {
                let far = jumps[dominator as usize].to;
                dominator = if far > semis[number] { far } else { parents[dominator as usize] };
            }
            parents[number] = dominator;
        }
        let above = jumps[dominator as usize];
        let far = jumps[above.to as usize];
        // Two jumps of the same length make one.
        let to = if above.depth - far.depth == far.depth - jumps[far.to as usize].depth {
            far.to
        } else {
            dominator
        };
        jumps[number] = Jump { depth: above.depth + 1, to };
    }
    Ok(())
}

/// Returns the smallest semidominator on the path from `node` up to the first unprocessed ancestor, and
/// compresses the path. Nodes above `last` are processed.
#[inline(always)]
fn least_above(
    links: &mut [Link],
    path: &mut ScratchStack<u32>,
    node: usize,
    last: usize,
) -> io::Result<u32> {
    let mut at = node;
    while links[at].ancestor as usize > last {
        #[allow(clippy::cast_possible_truncation)]
        path.push(at as u32)?;
        at = links[at].ancestor as usize;
    }
    let Link { ancestor, label: mut least } = links[at];
    while let Some(below) = path.pop() {
        let link = &mut links[below as usize];
        least = least.min(link.label);
        *link = Link { ancestor, label: least };
    }
    Ok(least)
}
