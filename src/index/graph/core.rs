//! The core of a graph: the nodes that are left when leaves are peeled off, numbered densely, with the edges between
//! them that matter.

use std::io;

use rayon::prelude::*;

use super::links::Links;
use super::peel::Peeled;
use super::rows::{GROUP, Targets};
use crate::index::prefetch::prefetch;
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
    /// For each [`BLOCK`] of core numbers where their targets start.
    bases: Vec<u64>,
    /// Where the targets of each core number start, from its base on; one more for the end.
    starts: Array<'r, u32>,
    /// Targets, as core numbers.
    targets: Array<'r, u32>,
}

/// Core numbers whose edges are counted from one base, in bits.
const BLOCK: u32 = 14;

impl Edges<'_> {
    /// For walks over them.
    pub(crate) fn view(&self) -> EdgesView<'_> {
        EdgesView { bases: &self.bases, starts: &self.starts, targets: &self.targets }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.targets.len()
    }
}

/// The edges of the core as plain slices.
#[derive(Clone, Copy)]
pub(crate) struct EdgesView<'a> {
    bases: &'a [u64],
    starts: &'a [u32],
    targets: &'a [u32],
}

impl<'a> EdgesView<'a> {
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn start(&self, node: usize) -> usize {
        self.bases[node >> BLOCK] as usize + self.starts[node] as usize
    }

    /// The targets of a core number.
    #[inline(always)]
    pub(crate) fn of(&self, node: u32) -> &'a [u32] {
        &self.targets[self.start(node as usize)..self.start(node as usize + 1)]
    }

    /// Asks for where the targets of a core number start.
    #[inline(always)]
    pub(crate) fn ask_start(&self, node: u32) {
        prefetch(self.starts, node as usize);
    }

    /// Asks for the targets of a core number.
    #[inline(always)]
    pub(crate) fn ask_targets(&self, node: u32) {
        prefetch(self.targets, self.start(node as usize));
    }
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

        let collector = Collector { links, peeled, numbers: &numbers };
        let mut nodes = room.array::<u32>(count as usize)?;
        let mut starts = room.array::<u32>(count as usize + 1)?;
        // First how many targets each has, then where they start.
        collector.parts(&mut nodes).zip(collector.parts(&mut starts)).enumerate().for_each(
            |(chunk, (nodes, counts))| collector.count(chunk, nodes, counts),
        );
        let (bases, edges) = sum_up(&mut starts, count as usize)?;
        let mut targets = room.array::<u32>(edges)?;
        {
            let view = EdgesView { bases: &bases, starts: &starts, targets: &[] };
            let mut rest = &mut *targets;
            let parts: Vec<&mut [u32]> = collector
                .bounds()
                .map(|(first, end)| {
                    let length = view.start(end) - view.start(first);
                    let (part, after) = std::mem::take(&mut rest).split_at_mut(length);
                    rest = after;
                    part
                })
                .collect();
            parts.into_par_iter().enumerate().for_each(|(chunk, part)| collector.fill(chunk, part));
        }
        Ok((Self { numbers, nodes, roots }, Edges { bases, starts, targets }))
    }
}

/// Turns the counts of the targets of `count` core numbers into where they start. Returns the bases and the number of
/// all targets.
fn sum_up(starts: &mut [u32], count: usize) -> io::Result<(Vec<u64>, usize)> {
    let mut bases = Vec::with_capacity((count >> BLOCK) + 1);
    let (mut sum, mut base) = (0u64, 0u64);
    for (node, start) in starts.iter_mut().enumerate().take(count + 1) {
        if node.is_multiple_of(1 << BLOCK) {
            base = sum;
            bases.push(base);
        }
        let targets = if node < count { *start } else { 0 };
        let many = || io::Error::other("some objects next to each other refer to too many others");
        *start = u32::try_from(sum - base).map_err(|_| many())?;
        sum += u64::from(targets);
    }
    let edges = usize::try_from(sum).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok((bases, edges))
}

/// Collects the core, a chunk of nodes after another.
struct Collector<'a> {
    links: &'a Links<'a>,
    peeled: &'a Peeled,
    numbers: &'a Numbers,
}

impl Collector<'_> {
    /// The first core number of each chunk, and the one behind its last.
    fn bounds(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let nodes = self.links.rows.len();
        let words = &self.numbers.words;
        let at = |node: u32| words.get((node / 64) as usize).map(|(_, before)| *before as usize);
        let count = words.last().map_or(0, |(bits, before)| (before + bits.count_ones()) as usize);
        let bounds: Vec<(usize, usize)> = (0..nodes.div_ceil(CHUNK))
            .map(|chunk| {
                let end = (chunk + 1).checked_mul(CHUNK).filter(|end| *end < nodes).and_then(at);
                (at(chunk * CHUNK).unwrap_or(count), end.unwrap_or(count))
            })
            .collect();
        bounds.into_iter()
    }

    /// The part of a column by core number that belongs to each chunk.
    fn parts<'c>(&self, mut column: &'c mut [u32]) -> rayon::vec::IntoIter<&'c mut [u32]> {
        let parts: Vec<&mut [u32]> = self
            .bounds()
            .map(|(first, end)| {
                let (part, rest) = std::mem::take(&mut column).split_at_mut(end - first);
                column = rest;
                part
            })
            .collect();
        parts.into_par_iter()
    }

    /// Calls `visit` with each node of a chunk that is in the core.
    #[inline(always)]
    fn each(&self, chunk: usize, mut visit: impl FnMut(u32, Targets<'_>)) {
        let chunk = u32::try_from(chunk).unwrap_or(u32::MAX);
        let end = (chunk + 1).saturating_mul(CHUNK).min(self.links.rows.len());
        for group in chunk * (CHUNK / GROUP)..end.div_ceil(GROUP) {
            self.links.rows.group(group, |node, row| {
                if self.peeled.level(node) == 0 {
                    visit(node, row);
                }
            });
        }
    }

    /// The targets of a node that are in the core and matter.
    #[inline(always)]
    fn targets(&self, node: u32, row: Targets<'_>, mut take: impl FnMut(u32)) {
        for target in row {
            if target != node && self.peeled.is_target(target) {
                take(target);
            }
        }
        let label = self.links.labels.of(node);
        if self.peeled.is_kept(label) && self.links.labels.target(label) != node {
            take(self.links.labels.target(label));
        }
    }

    fn count(&self, chunk: usize, nodes: &mut [u32], counts: &mut [u32]) {
        let mut places = nodes.iter_mut().zip(counts);
        self.each(chunk, |node, row| {
            if let Some((place, count)) = places.next() {
                *place = node;
                *count = 0;
                self.targets(node, row, |_| *count += 1);
            }
        });
    }

    fn fill(&self, chunk: usize, targets: &mut [u32]) {
        let mut places = targets.iter_mut();
        self.each(chunk, |node, row| {
            self.targets(node, row, |target| {
                if let Some(place) = places.next() {
                    *place = self.numbers.of(target);
                }
            });
        });
    }
}
