//! Transposition of edges: from the sources of each target to the targets' sources.
//!
//! Scattering sources to the lists of their targets would miss the cache with each edge. Instead, all threads
//! first partition the edges by the high bits of their targets (radix partitioning) into buckets of 65,536
//! targets, each thread into memory of its own; then each bucket is sorted within the cache by distribution
//! counting (D. E. Knuth: The Art of Computer Programming 3, 5.2, algorithm D).

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::storage::scratch::{Array, ScratchArena};

const BUCKET_BITS: u32 = 16;
/// Targets in a bucket.
pub(crate) const BUCKET: u32 = 1 << BUCKET_BITS;
/// Edges in a block, the unit in which a thread assigns memory to its buckets.
const BLOCK: usize = 1 << 10;
/// Minimum and maximum number of edges in a slab, as powers of two: the unit of allocation from the arena. Large slabs are on
/// huge pages, which matters because each bucket is written at a different address.
const SLAB_BITS: std::ops::RangeInclusive<u32> = 12..=20;
/// Number of edges that a bucket collects in the cache before they are written to its block.
const STAGE: usize = 32;
/// 16-bit words of an edge: the target in its bucket, and the halves of the source.
const PARTS: usize = 3;
/// Size of an edge in a bucket, in bytes.
pub(crate) const EDGE_BYTES: u64 = 2 * PARTS as u64;

/// Returns the number of buckets for `targets` targets.
pub(crate) fn bucket_count(targets: u32) -> u32 {
    targets.div_ceil(BUCKET)
}

/// Receives the edges of one thread.
pub(crate) struct EdgeSink {
    arena: ScratchArena,
    /// Number of edges in a slab, as a power of two.
    slab_bits: u32,
    slabs: Vec<Array<u16>>,
    /// Number of blocks taken from the slabs.
    blocks: usize,
    buckets: Vec<Fill>,
    /// First target of the range.
    first: u32,
    error: Option<io::Error>,
}

/// Edges of one thread in a bucket.
#[derive(Debug)]
struct Fill {
    /// Numbers of the bucket's blocks; all but the last one are full.
    blocks: Vec<u32>,
    /// Position of the next edge, counted over all slabs.
    next: usize,
    /// Edges that are not written to a block yet.
    staged: [[u16; PARTS]; STAGE],
    count: usize,
}

impl EdgeSink {
    fn new(arena: &ScratchArena, range: &Range<u32>, slab_bits: u32) -> Self {
        let buckets = range.clone().map(|_| Fill::new()).collect();
        let first = range.start << BUCKET_BITS;
        Self { arena: arena.clone(), slab_bits, slabs: Vec::new(), blocks: 0, buckets, first, error: None }
    }

    /// Adds an edge if its target is in the range.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn edge(&mut self, target: u32, source: u32) {
        let bucket = (target.wrapping_sub(self.first) >> BUCKET_BITS) as usize;
        let Some(fill) = self.buckets.get_mut(bucket) else { return };
        if let Some(place) = fill.staged.get_mut(fill.count) {
            *place = [target as u16, source as u16, (source >> 16) as u16];
        }
        fill.count += 1;
        if fill.count == STAGE {
            self.put(bucket);
        }
    }

    /// Writes the staged edges to the bucket's block.
    fn put(&mut self, bucket: usize) {
        // A block is a whole number of stages.
        if self.buckets[bucket].next.is_multiple_of(BLOCK) {
            self.start_block(bucket);
        }
        let fill = &mut self.buckets[bucket];
        let edges = &fill.staged[..fill.count];
        if let Some(slab) = self.slabs.get_mut(fill.next >> self.slab_bits) {
            let place = (fill.next & ((1 << self.slab_bits) - 1)) * PARTS;
            slab[place..place + edges.len() * PARTS].copy_from_slice(edges.as_flattened());
        }
        fill.next += edges.len();
        fill.count = 0;
    }

    /// Writes all staged edges to the blocks of their buckets.
    fn put_all(&mut self) {
        for bucket in 0..self.buckets.len() {
            if self.buckets[bucket].count > 0 {
                self.put(bucket);
            }
        }
    }

    #[cold]
    fn start_block(&mut self, bucket: usize) {
        if self.blocks * BLOCK == self.slabs.len() << self.slab_bits {
            match self.arena.array(PARTS << self.slab_bits) {
                Ok(slab) => self.slabs.push(slab),
                Err(error) => self.error = Some(error),
            }
        }
        let block = self.blocks;
        self.blocks += 1;
        self.buckets[bucket].blocks.push(u32::try_from(block).unwrap_or(u32::MAX));
        self.buckets[bucket].next = block * BLOCK;
    }
}

impl Fill {
    fn new() -> Self {
        Self { blocks: Vec::new(), next: 0, staged: [[0; PARTS]; STAGE], count: 0 }
    }

    /// Returns the number of edges that were written to blocks.
    fn edges(&self) -> usize {
        let Some(full) = self.blocks.len().checked_sub(1) else { return 0 };
        // The end of a full block equals the start of another one.
        full * BLOCK + (self.next - 1) % BLOCK + 1
    }
}

/// Edges by bucket of their targets.
pub(crate) struct Buckets {
    parts: Vec<EdgeSink>,
    count: usize,
}

/// Partitions about `edges` edges into the buckets of `range`. `each` is called once for each chunk, and
/// passes its edges to the sink.
pub(crate) fn buckets(
    arena: &ScratchArena,
    range: Range<u32>,
    edges: u64,
    chunks: usize,
    each: impl Fn(usize, &mut EdgeSink) + Sync,
) -> io::Result<Buckets> {
    let next = AtomicUsize::new(0);
    let threads = rayon::current_num_threads();
    let slab_bits = (edges / threads as u64 / 8).max(1).ilog2().clamp(*SLAB_BITS.start(), *SLAB_BITS.end());
    let parts: Vec<EdgeSink> = (0..threads)
        .into_par_iter()
        .map(|_| {
            let mut sink = EdgeSink::new(arena, &range, slab_bits);
            loop {
                let chunk = next.fetch_add(1, Ordering::Relaxed);
                if chunk >= chunks || sink.error.is_some() {
                    sink.put_all();
                    return sink.error.take().map_or(Ok(sink), Err);
                }
                each(chunk, &mut sink);
            }
        })
        .collect::<io::Result<_>>()?;
    Ok(Buckets { parts, count: range.len() })
}

impl Buckets {
    /// Returns the number of buckets.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of edges in a bucket.
    pub(crate) fn edges(&self, bucket: usize) -> usize {
        self.parts.iter().filter_map(|part| part.buckets.get(bucket)).map(Fill::edges).sum()
    }

    /// Calls `visit` with the target (in its bucket) and the source of each edge of a bucket.
    #[inline(always)]
    fn for_each_edge(&self, bucket: usize, mut visit: impl FnMut(usize, u32)) {
        for part in &self.parts {
            let Some(fill) = part.buckets.get(bucket) else { continue };
            let mut left = fill.edges();
            for block in &fill.blocks {
                let first = *block as usize * BLOCK;
                let Some(slab) = part.slabs.get(first >> part.slab_bits) else { continue };
                let count = left.min(BLOCK);
                left -= count;
                let start = (first & ((1 << part.slab_bits) - 1)) * PARTS;
                for edge in slab[start..start + count * PARTS].chunks_exact(PARTS) {
                    visit(usize::from(edge[0]), u32::from(edge[1]) | (u32::from(edge[2]) << 16));
                }
            }
        }
    }

    /// Sorts the edges of a bucket by target. Fills `starts` with the start of each target's sources (and the
    /// end of the last ones, if there is room); the length of `sources` must be the number of edges. The
    /// sources of a target are in no particular order.
    pub(crate) fn sort(&self, bucket: usize, starts: &mut [u32], sources: &mut [u32]) {
        // Counted two entries further: sums are one entry further, and become starts as lists are filled.
        let mut ends = vec![0u32; BUCKET as usize + 2];
        self.for_each_edge(bucket, |target, _| ends[target + 2] += 1);
        let mut sum = 0;
        for end in &mut ends {
            sum += *end;
            *end = sum;
        }
        let count = starts.len().min(BUCKET as usize + 1);
        starts[..count].copy_from_slice(&ends[1..=count]);
        self.for_each_edge(bucket, |target, source| {
            let place = &mut ends[target + 1];
            sources[*place as usize] = source;
            *place += 1;
        });
    }

    /// Sorts the edges of all buckets by target.
    pub(crate) fn transpose(self, arena: &ScratchArena) -> io::Result<Transpose> {
        let mut bases = vec![0];
        for bucket in 0..self.len() {
            let edges = self.edges(bucket);
            if u32::try_from(edges).is_err() {
                return Err(too_many());
            }
            bases.push(bases[bucket] + edges);
        }
        let mut starts = arena.array::<u32>(self.len() * (BUCKET as usize + 1))?;
        let mut sources = arena.array::<u32>(bases[self.len()])?;
        {
            let mut rest = &mut *sources;
            let parts: Vec<&mut [u32]> = bases
                .windows(2)
                .map(|bounds| {
                    let (part, after) = std::mem::take(&mut rest).split_at_mut(bounds[1] - bounds[0]);
                    rest = after;
                    part
                })
                .collect();
            (starts.par_chunks_mut(BUCKET as usize + 1).zip(parts).enumerate())
                .for_each(|(bucket, (starts, sources))| self.sort(bucket, starts, sources));
        }
        Ok(Transpose { bases, starts, sources })
    }
}

/// Returns the error for a bucket with more edges than 32 bits count: references to 65,536 targets, which
/// takes a dump of more than 34 GB.
pub(crate) fn too_many() -> io::Error {
    io::Error::other("too many references: 65,536 consecutive objects have more than 4,294,967,295 referrers")
}

/// Transposed edges: the sources of each target.
pub(crate) struct Transpose {
    /// Start of the sources, by bucket.
    bases: Vec<usize>,
    /// Start of the sources of each target, by bucket, with the end of the last ones.
    starts: Array<u32>,
    sources: Array<u32>,
}

impl Transpose {
    /// Returns a view of the transposed edges for traversals.
    pub(crate) fn view(&self) -> TransposedView<'_> {
        TransposedView { bases: &self.bases, starts: &self.starts, sources: &self.sources }
    }
}

/// View of [`Transpose`] as plain slices.
#[derive(Clone, Copy)]
pub(crate) struct TransposedView<'a> {
    bases: &'a [usize],
    starts: &'a [u32],
    sources: &'a [u32],
}

impl<'a> TransposedView<'a> {
    /// Returns the sources of a target, in no particular order.
    #[inline(always)]
    pub(crate) fn sources_of(&self, target: usize) -> &'a [u32] {
        let bucket = target / BUCKET as usize;
        let (base, at) = (self.bases[bucket], target + bucket);
        &self.sources[base + self.starts[at] as usize..base + self.starts[at + 1] as usize]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_those_of_a_naive_transposition() {
        let targets = 3 * BUCKET + 17;
        let rows: Vec<Vec<u32>> = (0..5000u32)
            .map(|source| (0..source % 5).map(|i| source.wrapping_mul(2_654_435_761 + i) % targets).collect())
            .chain([(0..4000).collect()])
            .collect();
        let mut expected = vec![Vec::new(); targets as usize];
        for (source, row) in (0u32..).zip(&rows) {
            row.iter().for_each(|target| expected[*target as usize].push(source + 90_000));
        }
        let each = |chunk: usize, sink: &mut EdgeSink| {
            let first = u32::try_from(chunk * 100).unwrap();
            for (source, row) in (first..).zip(rows.iter().skip(chunk * 100).take(100)) {
                row.iter().for_each(|target| sink.edge(*target, source + 90_000));
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let count = bucket_count(targets);
        for (cut, memory) in [(0, 1 << 30), (1, 1 << 30), (count, 1 << 30), (count, 0)] {
            let arena = ScratchArena::new(dir.path().to_owned(), memory);
            for range in [0..cut, cut..count] {
                let made = buckets(&arena, range.clone(), 20_000, rows.len().div_ceil(100), each).unwrap();
                let transposed = made.transpose(&arena).unwrap();
                for within in 0..range.len() * BUCKET as usize {
                    let mut sources = transposed.view().sources_of(within).to_vec();
                    sources.sort_unstable();
                    let wanted = expected.get((range.start * BUCKET) as usize + within);
                    assert_eq!(sources, wanted.map_or(&[][..], Vec::as_slice));
                }
            }
        }
    }
}
