//! Putting a dominator tree in order: preorder, siblings by retained size.
//!
//! Retained sizes are sums over subtrees, added up leaves first. A bucket sort by retained size, largest first, puts each
//! dominator before what it dominates and siblings in their order; then one pass assigns positions.

use std::cmp::Reverse;
use std::io;

use rayon::prelude::*;

use super::graph_view::NONE;
use super::leaves::{Forest, OUTSIDE};
use super::peel::{MAX_LEVEL, Peeled};
use super::tree::APART;
use crate::index::storage::prefetch::prefetch;
use crate::index::storage::scratch::{Array, ScratchArena};

/// What each node weighs, as it is kept.
#[derive(Debug)]
pub(crate) struct Weights {
    /// In units; [`APART`] for what is listed.
    pub(crate) codes: Array<u8>,
    /// Other weights, in units, ascending by node.
    pub(crate) apart: Vec<(u32, u64)>,
    /// A power of two.
    pub(crate) unit: u64,
}

impl Weights {
    /// For walks over them.
    pub(crate) fn view(&self) -> WeightsView<'_> {
        WeightsView { codes: &self.codes, apart: &self.apart, unit: self.unit }
    }
}

/// What each node weighs, as plain slices.
#[derive(Clone, Copy)]
pub(crate) struct WeightsView<'a> {
    codes: &'a [u8],
    apart: &'a [(u32, u64)],
    pub(crate) unit: u64,
}

impl WeightsView<'_> {
    /// The weight of a node in units.
    #[inline(always)]
    pub(crate) fn units(self, node: u32) -> u64 {
        match self.codes[node as usize] {
            APART => self.units_apart(node),
            code => u64::from(code),
        }
    }

    #[cold]
    fn units_apart(self, node: u32) -> u64 {
        let at = self.apart.binary_search_by_key(&node, |(node, _)| *node);
        at.ok().and_then(|at| self.apart.get(at)).map_or(0, |(_, units)| *units)
    }
}

/// A tree in order.
pub(crate) struct Order {
    /// By node; nodes that are not reached come last, ascending.
    pub(crate) positions: Array<u32>,
    /// By position: the node.
    pub(crate) nodes: Array<u32>,
    /// By position: where the subtree ends.
    pub(crate) ends: Array<u32>,
    /// Nodes that are reached.
    pub(crate) reachable: u32,
}

/// Steps ahead of which parents are looked up.
const AHEAD: usize = 16;
/// Nodes in a chunk.
const CHUNK: usize = 1 << 16;

/// Orders a forest.
pub(crate) fn order(
    arena: &ScratchArena,
    forest: Forest,
    peeled: Peeled<'_>,
    weights: WeightsView<'_>,
) -> io::Result<Order> {
    let nodes = forest.dominators.len();
    let mut counts = arena.array::<u32>(nodes)?;
    let mut retained = arena.array::<u64>(nodes)?;
    (retained.par_chunks_mut(CHUNK).zip(counts.par_chunks_mut(CHUNK)).enumerate()).for_each(
        |(chunk, (retained, counts))| {
            counts.fill(1);
            for (node, retained) in (number(chunk * CHUNK)..).zip(retained) {
                *retained = weights.units(node);
            }
        },
    );
    add_up(arena, &forest, peeled, &mut retained, &mut counts)?;
    let Forest { dominators, order, .. } = forest;
    drop(order);
    let sorted = sort(arena, &dominators, &retained, &counts, weights)?;
    drop(retained);
    assign(arena, &dominators, &sorted, &counts)
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Adds what each node retains to its dominator's: leaves first, level by level, then the core backwards.
fn add_up(
    arena: &ScratchArena,
    forest: &Forest,
    peeled: Peeled<'_>,
    retained: &mut [u64],
    counts: &mut [u32],
) -> io::Result<()> {
    let dominators = &*forest.dominators;
    let mut ends = [0usize; MAX_LEVEL as usize + 2];
    for state in peeled.states() {
        ends[usize::from(Peeled::level_of(*state)) + 1] += 1;
    }
    // The core's own come first and are not listed.
    ends[1] = 0;
    for level in 1..ends.len() {
        ends[level] += ends[level - 1];
    }
    let mut leaves = arena.array::<u32>(ends[ends.len() - 1])?;
    {
        let leaves = &mut *leaves;
        for (node, state) in (0u32..).zip(peeled.states()) {
            let level = usize::from(Peeled::level_of(*state));
            if level > 0 {
                leaves[ends[level]] = node;
                ends[level] += 1;
            }
        }
    }
    let mut add = |list: &[u32], at: usize, ahead: Option<usize>| {
        if let Some(soon) = ahead.and_then(|at| list.get(at)) {
            let above = dominators[*soon as usize] as usize;
            prefetch(retained, above);
            prefetch(counts, above);
        }
        let node = list[at] as usize;
        let above = dominators[node] as usize;
        if above < dominators.len() {
            retained[above] = retained[above].saturating_add(retained[node]);
            counts[above] += counts[node];
        }
    };
    for at in 0..leaves.len() {
        add(&leaves, at, Some(at + AHEAD));
    }
    let order = forest.order.get(..forest.reached).unwrap_or_default();
    for at in (1..order.len()).rev() {
        add(order, at, at.checked_sub(AHEAD).filter(|at| *at > 0));
    }
    Ok(())
}

/// Retained weights below this, in units, have a bucket each; above, those that have the same leading bits share one.
const SMALL: usize = 1 << 16;
/// Leading bits that tell apart.
const LEADING: u32 = 12;
/// Buckets: the small ones, and for each length of 17 to 64 bits those of all leading bits.
const BUCKETS: usize = SMALL + (48 << LEADING);

/// The bucket of a retained weight: the larger the weight, the lower.
#[inline(always)]
fn bucket(retained: u64) -> usize {
    let at = if retained < SMALL as u64 {
        retained
    } else {
        let length = u64::BITS - retained.leading_zeros();
        let leading = (retained >> (length - 1 - LEADING)) & ((1 << LEADING) - 1);
        SMALL as u64 + (u64::from(length - 17) << LEADING) + leading
    };
    BUCKETS - 1 - usize::try_from(at).unwrap_or(BUCKETS - 1)
}

/// The nodes that have a dominator, by retained weight, largest first, then by number. So a dominator comes before what
/// it dominates.
fn sort(
    arena: &ScratchArena,
    dominators: &[u32],
    retained: &[u64],
    counts: &[u32],
    weights: WeightsView<'_>,
) -> io::Result<Array<u32>> {
    // Where something weighs nothing, what it dominates may retain as much as it does itself.
    let weightless = weights.codes.par_iter().any(|code| *code == 0);
    let mut ends = vec![0usize; BUCKETS + 1];
    for (retained, dominator) in retained.iter().zip(dominators) {
        if *dominator != NONE {
            ends[bucket(*retained) + 1] += 1;
        }
    }
    for bucket in 1..ends.len() {
        ends[bucket] += ends[bucket - 1];
    }
    let mut sorted = arena.array::<u32>(ends[BUCKETS])?;
    {
        let sorted = &mut *sorted;
        for (node, (retained, dominator)) in (0u32..).zip(retained.iter().zip(dominators)) {
            if *dominator != NONE {
                let place = &mut ends[bucket(*retained)];
                sorted[*place] = node;
                *place += 1;
            }
        }
        let key = |node: &u32| {
            let retained = retained[*node as usize];
            // So may what weighs too much to be added up.
            let count = if weightless || retained == u64::MAX { counts[*node as usize] } else { 0 };
            (Reverse(retained), Reverse(count), *node)
        };
        if weightless {
            sorted.par_sort_unstable_by_key(key);
        } else {
            // The buckets of large weights come first; each is sorted by itself.
            let large = BUCKETS - SMALL;
            let mut rest = &mut sorted[..ends[large - 1]];
            let mut buckets = Vec::new();
            let mut start = 0;
            for end in &ends[..large] {
                let (bucket, after) = std::mem::take(&mut rest).split_at_mut(end - start);
                (rest, start) = (after, *end);
                if bucket.len() > 1 {
                    buckets.push(bucket);
                }
            }
            buckets.into_par_iter().for_each(|bucket| bucket.sort_unstable_by_key(key));
        }
    }
    Ok(sorted)
}

/// Gives each node its position: its dominator has it already, and so have its larger siblings.
fn assign(arena: &ScratchArena, dominators: &[u32], sorted: &[u32], counts: &[u32]) -> io::Result<Order> {
    let nodes = dominators.len();
    // One more than the position; 0 for none.
    let mut positions = arena.zeroed::<u32>(nodes)?;
    let mut by_position = arena.array::<u32>(nodes)?;
    // By position: where the next child goes; when all have come, where the subtree ends.
    let mut ends = arena.array::<u32>(nodes)?;
    let mut top = 0;
    {
        let (positions, by_position, ends) = (&mut *positions, &mut *by_position, &mut *ends);
        for (at, node) in sorted.iter().enumerate() {
            if let Some(later) = sorted.get(at + 2 * AHEAD) {
                prefetch(positions, dominators[*later as usize] as usize);
            }
            if let Some(soon) = sorted.get(at + AHEAD) {
                let above = positions.get(dominators[*soon as usize] as usize).copied().unwrap_or(0);
                prefetch(ends, (above as usize).wrapping_sub(1));
            }
            let (index, dominator) = (*node as usize, dominators[*node as usize]);
            let count = counts[index];
            let position = if dominator == OUTSIDE {
                top += count;
                top - count
            } else {
                // Of what is not reached, not even the dominator has a position.
                let Some(above) = positions[dominator as usize].checked_sub(1) else { continue };
                let next = &mut ends[above as usize];
                *next += count;
                *next - count
            };
            positions[index] = position + 1;
            by_position[position as usize] = *node;
            ends[position as usize] = position + 1;
        }
        let mut next = top;
        for (node, position) in (0u32..).zip(positions.iter_mut()) {
            if *position == 0 {
                by_position[next as usize] = node;
                *position = next;
                next += 1;
            } else {
                *position -= 1;
            }
        }
    }
    Ok(Order { positions, nodes: by_position, ends, reachable: top })
}
