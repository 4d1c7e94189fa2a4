//! The core of a graph: the nodes that remain when leaf objects are peeled, numbered densely, with the edges
//! between them that matter.
//!
//! The core number of a node is its rank in a bitmap. Each word is stored with the number of bits set before
//! it, so a lookup touches one cache line (G. Jacobson: Space-efficient Static Trees and Graphs, FOCS 1989;
//! interleaved as in S. Vigna: Broadword Implementation of Rank/Select Queries, WEA 2008). Edges are stored
//! as compressed sparse rows: counted first, then filled in.

use std::io;
use std::ops::Range;

use rayon::prelude::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::adjacency::{GROUP, Targets};
use super::graph_view::GraphView;
use super::peel::PeelView;
use crate::storage::scratch::{Array, ScratchArena};

/// Nodes in a chunk: a whole number of groups and of bitmap words.
const CHUNK: u32 = 1 << 16;

/// Nodes of the core: those that are not peeled, with their roots.
pub(crate) struct Core {
    words: Array<Word>,
    /// Number of nodes.
    count: u32,
    /// Roots, as core numbers.
    pub(crate) roots: Vec<u32>,
}

/// Edges between nodes of the core except those to roots, with the results of the depth-first search for each node: both are
/// read together.
pub(crate) struct Edges {
    /// Start of the targets of each [`BLOCK`] of core numbers.
    pub(crate) bases: Vec<u64>,
    /// Records, by core number.
    pub(crate) records: Array<NodeRecord>,
    /// Targets, as core numbers.
    pub(crate) targets: Array<u32>,
}

/// Record of a node of the core: a quarter of a cache line.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(crate) struct NodeRecord {
    /// Start of the targets, relative to the base of the block.
    start: u32,
    /// Number of targets.
    count: u32,
    /// Preorder number of the node, from 1; 0 if it was not reached.
    pub(crate) number: u32,
    /// Preorder number of the node from which it was reached; 0 for the virtual root.
    pub(crate) parent: u32,
}

/// Number of core numbers that share a base, as a power of two.
const BLOCK: u32 = 14;

impl NodeRecord {
    /// Returns the range of the node's targets in [`Edges::targets`]. `node` is the core number of this record.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn targets(self, bases: &[u64], node: u32) -> Range<usize> {
        let start = bases[(node >> BLOCK) as usize] as usize + self.start as usize;
        start..start + self.count as usize
    }
}

impl Edges {
    /// Returns the number of edges.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }
}

/// A bitmap word: one bit for each of 64 nodes, set if the node is in the core, with the number of bits set
/// before the word.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Word {
    bits: u64,
    before: u32,
    reserved: u32,
}

/// Mapping of nodes to core numbers.
#[derive(Clone, Copy)]
pub(crate) struct CoreNumbers<'a> {
    words: &'a [Word],
}

impl<'a> CoreNumbers<'a> {
    /// Returns the core number of a node, which must be in the core.
    #[inline(always)]
    pub(crate) fn number_of(self, node: u32) -> u32 {
        let Word { bits, before, .. } = self.words[(node / 64) as usize];
        before + (bits & ((1u64 << (node % 64)) - 1)).count_ones()
    }

    /// Returns the range of core numbers of each chunk of nodes: start and end (exclusive).
    fn bounds(self) -> impl Iterator<Item = (usize, usize)> + 'a {
        let chunk_words = CHUNK as usize / 64;
        let count = self.words.last().map_or(0, |word| word.before + word.bits.count_ones());
        let at = move |word: usize| self.words.get(word).map_or(count, |word| word.before) as usize;
        (0..self.words.len().div_ceil(chunk_words))
            .map(move |chunk| (at(chunk * chunk_words), at((chunk + 1) * chunk_words)))
    }

    /// Splits a column by core number into one slice for each chunk of nodes.
    fn by_chunk<T: Send>(self, mut column: &mut [T]) -> rayon::vec::IntoIter<&mut [T]> {
        let parts: Vec<&mut [T]> = self
            .bounds()
            .map(|(first, end)| {
                let (part, rest) = std::mem::take(&mut column).split_at_mut(end - first);
                column = rest;
                part
            })
            .collect();
        parts.into_par_iter()
    }

    /// Returns the node of each core number.
    pub(crate) fn nodes(self, arena: &ScratchArena) -> io::Result<Array<u32>> {
        let count = self.bounds().last().map_or(0, |(_, end)| end);
        let mut nodes = arena.array::<u32>(count)?;
        self.by_chunk(&mut nodes).enumerate().for_each(|(chunk, part)| {
            let words = self.words.iter().enumerate().skip(chunk * (CHUNK as usize / 64));
            let mut places = part.iter_mut();
            for (word, bits) in words.take(CHUNK as usize / 64) {
                let mut bits = bits.bits;
                while bits != 0 {
                    if let Some(place) = places.next() {
                        *place = u32::try_from(word * 64).unwrap_or(u32::MAX) + bits.trailing_zeros();
                    }
                    bits &= bits - 1;
                }
            }
        });
        Ok(nodes)
    }
}

impl Core {
    /// Returns the mapping of nodes to core numbers.
    pub(crate) fn numbers(&self) -> CoreNumbers<'_> {
        CoreNumbers { words: &self.words }
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// Numbers the core and collects its edges.
    pub(crate) fn new(
        arena: &ScratchArena,
        graph: &GraphView<'_>,
        peeled: PeelView<'_>,
    ) -> io::Result<(Self, Edges)> {
        let mut words = arena.array::<Word>(peeled.states().len().div_ceil(64))?;
        words.par_iter_mut().zip(peeled.states().par_chunks(64)).for_each(|(word, states)| {
            let bit = |at: usize, state: &u8| u64::from(PeelView::is_core(*state)) << at;
            word.bits = states.iter().enumerate().fold(0, |bits, (at, state)| bits | bit(at, state));
        });
        let mut count = 0;
        for word in words.iter_mut() {
            word.before = count;
            count += word.bits.count_ones();
        }
        let numbers = CoreNumbers { words: &words };
        let roots: Vec<u32> = (graph.roots.iter())
            .filter(|root| peeled.level(**root) == 0)
            .map(|root| numbers.number_of(*root))
            .collect();

        let collector = CoreCollector { graph, peeled, numbers };
        let mut records = arena.zeroed_array::<NodeRecord>(count as usize)?;
        // Count the targets of each node first, then compute where they start.
        (numbers.by_chunk(&mut records).enumerate())
            .for_each(|(chunk, records)| collector.count(chunk, records));
        let (bases, edges) = sum_up(&mut records)?;
        let mut targets = arena.array::<u32>(edges)?;
        {
            let records = &*records;
            let start = |number: usize| match records.get(number) {
                Some(record) => record.targets(&bases, u32::try_from(number).unwrap_or(u32::MAX)).start,
                None => edges,
            };
            let mut rest = &mut *targets;
            let parts: Vec<&mut [u32]> = numbers
                .bounds()
                .map(|(first, end)| {
                    let (part, after) = std::mem::take(&mut rest).split_at_mut(start(end) - start(first));
                    rest = after;
                    part
                })
                .collect();
            parts.into_par_iter().enumerate().for_each(|(chunk, part)| collector.fill(chunk, part));
        }
        Ok((Self { words, count, roots }, Edges { bases, records, targets }))
    }
}

/// Sets the start of the targets of each record from the counts. Returns the bases and the number of all
/// targets.
fn sum_up(records: &mut [NodeRecord]) -> io::Result<(Vec<u64>, usize)> {
    let mut bases = Vec::with_capacity((records.len() >> BLOCK) + 1);
    let (mut sum, mut base) = (0u64, 0u64);
    for (number, record) in records.iter_mut().enumerate() {
        if number.is_multiple_of(1 << BLOCK) {
            base = sum;
            bases.push(base);
        }
        let many = |_| {
            io::Error::other(
                "too many references: 16,384 consecutive objects have more than 4,294,967,295 references",
            )
        };
        record.start = u32::try_from(sum - base).map_err(many)?;
        sum += u64::from(record.count);
    }
    let edges = usize::try_from(sum).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok((bases, edges))
}

/// Collector of the nodes and edges of the core, chunk by chunk.
struct CoreCollector<'a> {
    graph: &'a GraphView<'a>,
    peeled: PeelView<'a>,
    numbers: CoreNumbers<'a>,
}

impl CoreCollector<'_> {
    /// Calls `visit` with each node of a chunk that is in the core.
    #[inline(always)]
    fn for_each_node(&self, chunk: usize, mut visit: impl FnMut(u32, Targets<'_>)) {
        let chunk = u32::try_from(chunk).unwrap_or(u32::MAX);
        let end = (chunk + 1).saturating_mul(CHUNK).min(self.graph.lists.len());
        let groups = chunk * (CHUNK / GROUP)..end.div_ceil(GROUP);
        for group in groups.filter(|group| self.peeled.has_core(*group)) {
            self.graph.lists.group(group, |node, row| {
                if self.peeled.level(node) == 0 {
                    visit(node, row);
                }
            });
        }
    }

    /// Calls `take` with each target of a node that is in the core and is not a root.
    #[inline(always)]
    fn targets(&self, node: u32, row: Targets<'_>, mut take: impl FnMut(u32)) {
        for target in row {
            if target.0 != node && self.peeled.is_target(target.0) {
                take(target.0);
            }
        }
        let label = self.graph.labels.label_of(node);
        if self.peeled.is_kept(label) && self.graph.labels.target(label) != node {
            take(self.graph.labels.target(label));
        }
    }

    fn count(&self, chunk: usize, records: &mut [NodeRecord]) {
        let mut places = records.iter_mut();
        self.for_each_node(chunk, |node, row| {
            if let Some(record) = places.next() {
                self.targets(node, row, |_| record.count += 1);
            }
        });
    }

    fn fill(&self, chunk: usize, targets: &mut [u32]) {
        let mut places = targets.iter_mut();
        self.for_each_node(chunk, |node, row| {
            self.targets(node, row, |target| {
                if let Some(place) = places.next() {
                    *place = self.numbers.number_of(target);
                }
            });
        });
    }
}
