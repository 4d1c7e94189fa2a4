//! Columns of a dominator tree ([`super::tree`]), made from its nodes in order.

use std::collections::BTreeMap;
use std::io;

use rayon::prelude::*;
use zerocopy::little_endian::U32;

use super::order::{OrderedTree, WeightsView};
use super::tree::{APART, ApartRow, BLOCK, BlockRow};
use crate::storage::scratch::{Array, ScratchArena};

/// Columns of a dominator tree before they are bit-packed.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) ends: Array<u8>,
    pub(crate) ends_apart: Vec<ApartRow>,
    pub(crate) sizes: Array<u8>,
    pub(crate) sizes_apart: Vec<ApartRow>,
    pub(crate) blocks: Array<BlockRow>,
    pub(crate) least: [Vec<U32>; 2],
    /// Total weight of all reachable nodes, in bytes.
    pub(crate) reachable_bytes: u64,
}

impl Columns {
    /// Makes the columns of a dominator tree.
    pub(crate) fn new(
        arena: &ScratchArena,
        order: &OrderedTree,
        weights: WeightsView<'_>,
    ) -> io::Result<Self> {
        let (shape, sizes) = rayon::join(|| TreeShape::new(arena, order), || sizes(arena, order, weights));
        let TreeShape { ends, ends_apart, depths, least } = shape?;
        let (sizes, sizes_apart, sums) = sizes?;
        let reachable = order.reachable as usize;
        let rest = &sizes[reachable / BLOCK as usize * BLOCK as usize..reachable];
        let nodes = &order.nodes[reachable - rest.len()..reachable];
        let units = nodes.iter().fold(0u64, |sum, node| sum.saturating_add(weights.units(*node)));
        let before = sums.get(reachable / BLOCK as usize).copied().unwrap_or(0);
        let reachable_bytes = before.saturating_add(units.saturating_mul(weights.unit));
        let above = |least: &[u32]| -> Vec<u32> {
            least.chunks(BLOCK as usize).map(|least| least.iter().copied().min().unwrap_or(0)).collect()
        };
        let first = above(&least);
        let second = above(&first);
        let column = |least: Vec<u32>| least.into_iter().map(U32::new).collect();
        let mut blocks = arena.array::<BlockRow>(sums.len())?;
        for (block, (row, bytes)) in blocks.iter_mut().zip(sums.iter()).enumerate() {
            *row = BlockRow {
                bytes: (*bytes).into(),
                depth: depths.get(block).copied().unwrap_or(0).into(),
                least: least.get(block).copied().unwrap_or(0).into(),
            };
        }
        Ok(Self {
            ends,
            ends_apart,
            sizes,
            sizes_apart,
            blocks,
            least: [column(first), column(second)],
            reachable_bytes,
        })
    }
}

/// Shape of a dominator tree: where subtrees end, and depths by block.
struct TreeShape {
    ends: Array<u8>,
    ends_apart: Vec<ApartRow>,
    /// Depth of the first position, by block.
    depths: Array<u32>,
    /// Minimum depth, by block.
    least: Array<u32>,
}

impl TreeShape {
    fn new(arena: &ScratchArena, order: &OrderedTree) -> io::Result<Self> {
        let blocks = order.reachable.div_ceil(BLOCK) as usize;
        let mut shape = Self {
            ends: arena.zeroed_array(order.nodes.len())?,
            ends_apart: Vec::new(),
            depths: arena.zeroed_array(blocks)?,
            least: arena.zeroed_array(blocks)?,
        };
        let ends_column = &mut *shape.ends;
        let (depths, leasts) = (&mut *shape.depths, &mut *shape.least);
        // Number of subtrees that end after a position, by position. Few numbers exceed a byte.
        let mut many: BTreeMap<u32, u64> = BTreeMap::new();
        for end in order.ends.iter().take(order.reachable as usize) {
            let last = end - 1;
            let count = &mut ends_column[last as usize];
            if *count < APART - 1 {
                *count += 1;
            } else {
                *count = APART;
                *many.entry(last).or_insert(u64::from(APART) - 1) += 1;
            }
        }
        let listed = |(position, number): (&u32, &u64)| ApartRow {
            position: (*position).into(),
            number: (*number).into(),
        };
        shape.ends_apart = many.iter().map(listed).collect();
        let mut depth = 0u32;
        for (position, ends) in (0..order.reachable).zip(&*ends_column) {
            let block = (position / BLOCK) as usize;
            if position.is_multiple_of(BLOCK) {
                (depths[block], leasts[block]) = (depth, depth);
            } else {
                leasts[block] = depth.min(leasts[block]);
            }
            let ends = match *ends {
                APART => many.get(&position).copied().unwrap_or(0),
                ends => u64::from(ends),
            };
            depth = (depth + 1).saturating_sub(u32::try_from(ends).unwrap_or(u32::MAX));
        }
        Ok(shape)
    }
}

/// Returns a number as a byte, or [`APART`] if it does not fit.
fn byte(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(APART)
}

/// Returns sizes by position, the list of sizes that exceed a byte, and by block the bytes of all positions before it.
fn sizes(
    arena: &ScratchArena,
    order: &OrderedTree,
    weights: WeightsView<'_>,
) -> io::Result<(Array<u8>, Vec<ApartRow>, Array<u64>)> {
    const CHUNK: usize = 1 << 16;
    let nodes = &*order.nodes;
    let mut sizes = arena.zeroed_array::<u8>(nodes.len())?;
    let mut sums = arena.zeroed_array::<u64>(nodes.len() / BLOCK as usize + 1)?;
    let parts: Vec<Vec<ApartRow>> =
        (sizes.par_chunks_mut(CHUNK).zip(sums.par_chunks_mut(CHUNK / BLOCK as usize)))
            .enumerate()
            .map(|(chunk, (sizes, sums))| {
                let mut apart = Vec::new();
                let nodes = nodes.get(chunk * CHUNK..).unwrap_or_default();
                for (at, (size, node)) in sizes.iter_mut().zip(nodes).enumerate() {
                    let units = weights.units(*node);
                    *size = byte(units);
                    if *size == APART {
                        let position = u32::try_from(chunk * CHUNK + at).unwrap_or(u32::MAX);
                        apart.push(ApartRow { position: position.into(), number: units.into() });
                    }
                    if let Some(sum) = sums.get_mut(at / BLOCK as usize) {
                        *sum = sum.saturating_add(units.saturating_mul(weights.unit));
                    }
                }
                apart
            })
            .collect();
    let mut before = 0u64;
    for sum in &mut *sums {
        let here = *sum;
        *sum = before;
        before = before.saturating_add(here);
    }
    Ok((sizes, parts.into_iter().flatten().collect(), sums))
}
