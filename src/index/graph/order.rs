//! Ordering of a dominator tree: preorder, siblings by retained size.
//!
//! Retained sizes are sums over subtrees, added up from the leaves. A bucket sort by retained size, largest
//! first, puts each dominator before the nodes it dominates and siblings in their order; then one pass
//! assigns positions.
//!
//! All threads take part in everything but that pass and the sums within the core. Memory is reused as soon
//! as its contents are no longer needed.

use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rayon::prelude::*;

use super::graph_view::NONE;
use super::leaves::{DominatorForest, OUTSIDE};
use super::peel::{MAX_LEVEL, PeelView};
use super::tree::APART;
use crate::storage::prefetch::prefetch;
use crate::storage::scratch::{Array, Plain, ScratchArena, atomic_u32, atomic_u64};
use hprof_input::progress::Progress;

/// Weight of each node, in one byte each where possible.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Weights in units; [`APART`] for nodes in `apart`.
    pub(crate) codes: Array<u8>,
    /// Larger weights, in units, ascending by node.
    pub(crate) apart: Vec<(u32, u64)>,
    /// Size of a unit in bytes, a power of two.
    pub(crate) unit: u64,
}

impl Weights {
    /// Returns a view of the weights for traversals.
    pub(crate) fn view(&self) -> WeightsView<'_> {
        WeightsView { codes: &self.codes, apart: &self.apart, unit: self.unit }
    }
}

/// View of [`Weights`] as plain slices.
#[derive(Clone, Copy)]
pub(crate) struct WeightsView<'a> {
    codes: &'a [u8],
    apart: &'a [(u32, u64)],
    pub(crate) unit: u64,
}

impl WeightsView<'_> {
    /// Returns the weight of a node in units.
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

/// A dominator tree with its nodes in order: positions and subtrees.
pub(crate) struct OrderedTree {
    /// Position by node; unreachable nodes come last, ascending.
    pub(crate) positions: Array<u32>,
    /// Node by position.
    pub(crate) nodes: Array<u32>,
    /// End of the subtree (exclusive), by position.
    pub(crate) ends: Array<u32>,
    /// Number of reachable nodes.
    pub(crate) reachable: u32,
}

/// Distance in nodes at which parents are prefetched.
const AHEAD: usize = 16;
/// Nodes in a chunk.
const CHUNK: usize = 1 << 16;

/// Puts the dominator tree in order: computes retained weights, and assigns a position to each node.
pub(crate) fn order(
    arena: &ScratchArena,
    forest: DominatorForest,
    peeled: PeelView<'_>,
    weights: WeightsView<'_>,
    progress: &dyn Progress,
) -> io::Result<OrderedTree> {
    let apart = weights.apart.iter().fold(0u64, |sum, (_, units)| sum.saturating_add(*units));
    let most = apart.saturating_add(u64::from(APART) * weights.codes.len() as u64);
    // Retained weights up to 32 GiB, in units of 8 bytes, take half the memory.
    if u32::try_from(most).is_ok() {
        order_by::<u32>(arena, forest, peeled, weights, progress)
    } else {
        order_by::<u64>(arena, forest, peeled, weights, progress)
    }
}

fn order_by<S: RetainedSum>(
    arena: &ScratchArena,
    forest: DominatorForest,
    peeled: PeelView<'_>,
    weights: WeightsView<'_>,
    progress: &dyn Progress,
) -> io::Result<OrderedTree> {
    progress.begin("adding up retained sizes", 0);
    let nodes = forest.dominators.len();
    let mut counts = arena.array::<u32>(nodes)?;
    let mut retained = arena.array::<S>(nodes)?;
    (retained.par_chunks_mut(CHUNK).zip(counts.par_chunks_mut(CHUNK)).enumerate()).for_each(
        |(chunk, (retained, counts))| {
            counts.fill(1);
            for (node, retained) in (number(chunk * CHUNK)..).zip(retained) {
                *retained = S::from_units(weights.units(node));
            }
        },
    );
    let DominatorForest { dominators, core, order, reached } = forest;
    {
        let sums = Sums::<S> { retained: S::as_atomic(&mut retained), counts: atomic_u32(&mut counts) };
        add_up_leaves(&dominators, peeled, &sums);
        let walked = order.get(..reached).unwrap_or_default();
        add_up_core(arena, walked, core.get(..reached).unwrap_or_default(), &sums)?;
    }
    drop((order, core));
    progress.begin("sorting by retained size", 0);
    let sorted = sort(arena, &dominators, &retained, &counts, weights)?;
    drop(retained);
    progress.begin("placing nodes in the tree", 0);
    assign(arena, dominators, sorted, counts)
}

/// Integer type of retained weights.
trait RetainedSum: Plain + Copy + Default + Send + Sync {
    /// The corresponding atomic type.
    type Shared: Sync;
    fn from_units(units: u64) -> Self;
    fn units(self) -> u64;
    fn plus(self, more: Self) -> Self;
    fn as_atomic(sums: &mut [Self]) -> &[Self::Shared];
    fn get(shared: &Self::Shared) -> Self;
    fn set(shared: &Self::Shared, sum: Self);
    fn add(shared: &Self::Shared, more: Self);
}

macro_rules! sums {
    ($($kind:ty, $shared:ty, $of_slice:ident, $add:expr;)*) => { $(
        impl RetainedSum for $kind {
            type Shared = $shared;

            fn from_units(units: u64) -> Self {
                Self::try_from(units).unwrap_or(Self::MAX)
            }
            fn units(self) -> u64 {
                self.into()
            }
            fn plus(self, more: Self) -> Self {
                self.saturating_add(more)
            }
            fn as_atomic(sums: &mut [Self]) -> &[Self::Shared] {
                $of_slice(sums)
            }
            fn get(shared: &Self::Shared) -> Self {
                shared.load(Ordering::Relaxed)
            }
            fn set(shared: &Self::Shared, sum: Self) {
                shared.store(sum, Ordering::Relaxed);
            }
            #[inline(always)]
            fn add(shared: &Self::Shared, more: Self) {
                let add: fn(&$shared, $kind) = $add;
                add(shared, more);
            }
        }
    )* };
}

sums! {
    // For trees whose total weight is less than 2^32: nothing overflows.
    u32, AtomicU32, atomic_u32, |sum, more| {
        sum.fetch_add(more, Ordering::Relaxed);
    };
    // For all others. A file can contain weights whose sum overflows: sums saturate.
    u64, AtomicU64, atomic_u64, |sum, more| {
        let plus = |sum: u64| Some(sum.saturating_add(more));
        let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, plus);
    };
}

/// Partial sums of the retained weight and number of nodes of each subtree.
struct Sums<'a, S: RetainedSum> {
    retained: &'a [S::Shared],
    counts: &'a [AtomicU32],
}

impl<S: RetainedSum> Sums<'_, S> {
    #[inline(always)]
    fn get(&self, node: usize) -> (S, u32) {
        (S::get(&self.retained[node]), self.counts[node].load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn add(&self, node: usize, (retained, count): (S, u32)) {
        S::add(&self.retained[node], retained);
        self.counts[node].fetch_add(count, Ordering::Relaxed);
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Levels of peeled nodes; the first is the core.
const LEVELS: usize = MAX_LEVEL as usize + 1;

/// Adds the sums of each peeled node to its dominator's, level by level, so that each is complete before it
/// is added.
fn add_up_leaves<S: RetainedSum>(dominators: &[u32], peeled: PeelView<'_>, sums: &Sums<'_, S>) {
    let chunks: Vec<(usize, &[u8])> = peeled.states().chunks(CHUNK).enumerate().collect();
    let levels: Vec<[bool; LEVELS]> = (chunks.par_iter())
        .map(|(_, states)| {
            let mut levels = [false; LEVELS];
            states.iter().for_each(|state| levels[usize::from(PeelView::level_of(*state))] = true);
            levels
        })
        .collect();
    // The core is added up later.
    for level in 1..LEVELS {
        chunks.par_iter().zip(&levels).filter(|(_, levels)| levels[level]).for_each(
            |((chunk, states), _)| {
                let own = (number(chunk * CHUNK)..).zip(*states);
                let own = own.filter(|(_, state)| usize::from(PeelView::level_of(**state)) == level);
                let nodes: Vec<u32> = own.map(|(node, _)| node).collect();
                add_up_each(dominators, &nodes, sums);
            },
        );
    }
}

/// Adds the sums of each of `nodes` to its dominator's.
fn add_up_each<S: RetainedSum>(dominators: &[u32], nodes: &[u32], sums: &Sums<'_, S>) {
    // Neighbors mostly have the same dominator.
    let (mut last, mut sum) = (NONE as usize, (S::default(), 0));
    let add = |above: usize, sum: (S, u32)| {
        if above < dominators.len() {
            sums.add(above, sum);
        }
    };
    for (at, node) in nodes.iter().enumerate() {
        if let Some(soon) = nodes.get(at + AHEAD) {
            let above = dominators[*soon as usize] as usize;
            prefetch(sums.retained, above);
            prefetch(sums.counts, above);
        }
        let above = dominators[*node as usize] as usize;
        let (retained, count) = sums.get(*node as usize);
        if above == last {
            sum = (sum.0.plus(retained), sum.1 + count);
        } else {
            add(last, sum);
            (last, sum) = (above, (retained, count));
        }
    }
    add(last, sum);
}

/// Adds the sums of each node of the core to its dominator's, in reverse order of the search. Dominators are
/// close in search order and far apart as nodes, so sums are first copied into search order. `above` is by
/// search number.
fn add_up_core<S: RetainedSum>(
    arena: &ScratchArena,
    walked: &[u32],
    above: &[u32],
    sums: &Sums<'_, S>,
) -> io::Result<()> {
    let mut retained = arena.array::<S>(walked.len())?;
    let mut counts = arena.array::<u32>(walked.len())?;
    let (retained, counts) = (&mut *retained, &mut *counts);
    let chunks = |retained: &mut [S],
                  counts: &mut [u32],
                  visit: &(dyn Fn(usize, &mut S, &mut u32) + Sync)| {
        let parts =
            retained.par_chunks_mut(CHUNK).zip(counts.par_chunks_mut(CHUNK)).zip(walked.par_chunks(CHUNK));
        parts.enumerate().for_each(|(chunk, ((retained, counts), nodes))| {
            let first = usize::from(chunk == 0);
            let own = retained.iter_mut().zip(counts).zip(nodes).skip(first);
            for (at, ((retained, count), node)) in own.enumerate() {
                if let Some(soon) = nodes.get(at + first + AHEAD) {
                    prefetch(sums.retained, *soon as usize);
                    prefetch(sums.counts, *soon as usize);
                }
                visit(*node as usize, retained, count);
            }
        });
    };
    chunks(retained, counts, &|node, retained, count| (*retained, *count) = sums.get(node));
    for at in (1..walked.len()).rev() {
        let above = above[at] as usize;
        // The sums of the virtual root are not needed.
        if above > 0 {
            retained[above] = retained[above].plus(retained[at]);
            counts[above] += counts[at];
        }
    }
    chunks(retained, counts, &|node, retained, count| {
        S::set(&sums.retained[node], *retained);
        sums.counts[node].store(*count, Ordering::Relaxed);
    });
    Ok(())
}

/// Number of retained weights, in units, that have a bucket each; larger weights with the same leading bits
/// share one.
const SMALL: usize = 1 << 16;
/// Number of leading bits that select a bucket.
const LEADING: u32 = 12;
/// Number of nodes below which buckets do not pay off.
const FEW: usize = 1 << 10;
/// Number of buckets: one for each small weight, and for each length of 17 to 64 bits one for each value of the leading bits.
const BUCKETS: usize = SMALL + (48 << LEADING);

/// Returns the bucket of a retained weight: the larger the weight, the lower.
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

/// Returns the nodes that have a dominator, by retained weight, largest first, then by number: a
/// dominator comes before the nodes it dominates.
fn sort<S: RetainedSum>(
    arena: &ScratchArena,
    dominators: &[u32],
    retained: &[S],
    counts: &[u32],
    weights: WeightsView<'_>,
) -> io::Result<Array<u32>> {
    // If the weight of a node is 0, a node that it dominates may retain as much as itself.
    let weightless = weights.codes.par_iter().any(|code| *code == 0);
    let key = |node: &u32| {
        let retained = retained[*node as usize].units();
        // So it may if the sums are saturated.
        let count = if weightless || retained == u64::MAX { counts[*node as usize] } else { 0 };
        (Reverse(retained), Reverse(count), *node)
    };
    if dominators.len() < FEW {
        let nodes = (0u32..).zip(dominators).filter(|(_, dominator)| **dominator != NONE);
        let nodes: Vec<u32> = nodes.map(|(node, _)| node).collect();
        let mut sorted = arena.copy(&nodes)?;
        sorted.sort_unstable_by_key(key);
        return Ok(sorted);
    }
    // A table of buckets for each thread.
    let size = dominators.len().div_ceil(rayon::current_num_threads()).max(CHUNK);
    let starts = (0..dominators.len()).step_by(size);
    let shares: Vec<Range<usize>> = starts.map(|at| at..dominators.len().min(at + size)).collect();
    let each = |share: &Range<usize>, visit: &mut dyn FnMut(u32, usize)| {
        let nodes = (number(share.start)..).zip(&retained[share.clone()]).zip(&dominators[share.clone()]);
        nodes
            .filter(|(_, dominator)| **dominator != NONE)
            .for_each(|((node, retained), _)| visit(node, bucket(retained.units())));
    };
    let mut nexts: Vec<Vec<u32>> = (shares.par_iter())
        .map(|share| {
            let mut counts = vec![0; BUCKETS];
            each(share, &mut |_, bucket| counts[bucket] += 1);
            counts
        })
        .collect();
    // Counts become the position of the first node of each share: ascending by bucket, then by share.
    let mut listed = 0;
    let ends: Vec<usize> = (0..BUCKETS)
        .map(|bucket| {
            for share in &mut nexts {
                listed += std::mem::replace(&mut share[bucket], number(listed)) as usize;
            }
            listed
        })
        .collect();
    let mut sorted = arena.array::<u32>(listed)?;
    {
        let places = atomic_u32(&mut sorted);
        shares.par_iter().zip(nexts).for_each(|(share, mut nexts)| {
            each(share, &mut |node, bucket| {
                places[nexts[bucket] as usize].store(node, Ordering::Relaxed);
                nexts[bucket] += 1;
            });
        });
    }
    if weightless {
        sorted.par_sort_unstable_by_key(key);
    } else {
        // The buckets of large weights come first; each is sorted separately.
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
    Ok(sorted)
}

/// Assigns a position to each node: its dominator already has one, and so do its larger siblings.
fn assign(
    arena: &ScratchArena,
    dominators: Array<u32>,
    sorted: Array<u32>,
    counts: Array<u32>,
) -> io::Result<OrderedTree> {
    let nodes = dominators.len();
    // Neither the dominator nor the count of a node is needed once the node has its position: their slots
    // then store the position of its next child and, when all children are placed, the end of its subtree.
    let (mut positions, mut nexts) = (dominators, counts);
    let mut placed = vec![0u64; nodes.div_ceil(64)];
    let mut reachable = 0;
    {
        let (positions, nexts) = (&mut *positions, &mut *nexts);
        for (at, node) in sorted.iter().enumerate() {
            if let Some(later) = sorted.get(at + 2 * AHEAD) {
                prefetch(positions, *later as usize);
                prefetch(nexts, *later as usize);
            }
            if let Some(soon) = sorted.get(at + AHEAD) {
                prefetch(nexts, positions[*soon as usize] as usize);
            }
            let (node, above) = (*node as usize, positions[*node as usize]);
            let count = nexts[node];
            let position = if above == OUTSIDE {
                reachable += count;
                reachable - count
            } else {
                // Not even the dominator of an unreachable node has a position.
                if placed[above as usize / 64] >> (above % 64) & 1 == 0 {
                    continue;
                }
                let next = &mut nexts[above as usize];
                *next += count;
                *next - count
            };
            positions[node] = position;
            nexts[node] = position + 1;
            placed[node / 64] |= 1 << (node % 64);
        }
    }
    drop(sorted);
    let mut by_position = arena.array::<u32>(nodes)?;
    let mut ends = arena.array::<u32>(nodes)?;
    {
        // Number of unreachable nodes before each chunk.
        let mut before: Vec<u32> = (placed.par_chunks(CHUNK / 64))
            .map(|words| number(words.len() * 64) - words.iter().map(|word| word.count_ones()).sum::<u32>())
            .collect();
        let mut sum = reachable;
        for count in &mut before {
            sum += std::mem::replace(count, sum);
        }
        let (by_position, ends) = (atomic_u32(&mut by_position), atomic_u32(&mut ends));
        let chunks = positions.par_chunks_mut(CHUNK).zip(nexts.par_chunks(CHUNK)).zip(before);
        chunks.enumerate().for_each(|(chunk, ((positions, nexts), mut unreached))| {
            let nodes = number(chunk * CHUNK)..;
            for ((node, position), end) in nodes.zip(positions).zip(nexts) {
                if placed[node as usize / 64] >> (node % 64) & 1 == 0 {
                    *position = unreached;
                    unreached += 1;
                } else {
                    ends[*position as usize].store(*end, Ordering::Relaxed);
                }
                by_position[*position as usize].store(node, Ordering::Relaxed);
            }
        });
    }
    Ok(OrderedTree { positions, nodes: by_position, ends, reachable })
}
