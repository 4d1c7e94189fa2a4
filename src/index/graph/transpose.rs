//! Turning edges around: for each target its sources.
//!
//! Scattering sources to the rows of their targets would miss the cache with each edge. So edges are first thrown into
//! buckets of 65,536 targets, by all threads, each into blocks of its own; then each bucket is counted and sorted within
//! the cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

const BUCKET_BITS: u32 = 16;
/// Targets in a bucket.
pub(crate) const BUCKET: u32 = 1 << BUCKET_BITS;
/// Edges in a block.
const BLOCK: usize = 1024;
/// Parts of 16 bits of an edge: the target in its bucket, and the halves of the source.
const PARTS: usize = 3;
/// Bytes that an edge takes in a bucket.
pub(crate) const EDGE_BYTES: u64 = 2 * PARTS as u64;

/// Takes edges.
pub(crate) struct Sink<'s> {
    buckets: &'s mut [Vec<Vec<u16>>],
    /// The first target that is taken.
    first: u32,
}

impl Sink<'_> {
    /// Takes an edge, if its target is in the range that is wanted.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn edge(&mut self, target: u32, source: u32) {
        let bucket = (target.wrapping_sub(self.first) >> BUCKET_BITS) as usize;
        let Some(blocks) = self.buckets.get_mut(bucket) else { return };
        match blocks.last_mut() {
            Some(block) if block.len() < BLOCK * PARTS => {
                block.extend_from_slice(&[target as u16, source as u16, (source >> 16) as u16]);
            }
            _ => start_block(blocks, target, source),
        }
    }
}

#[cold]
#[allow(clippy::cast_possible_truncation)]
fn start_block(blocks: &mut Vec<Vec<u16>>, target: u32, source: u32) {
    let mut block = Vec::with_capacity(BLOCK * PARTS);
    block.extend_from_slice(&[target as u16, source as u16, (source >> 16) as u16]);
    blocks.push(block);
}

/// The edges into 65,536 targets, in no order.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    blocks: Vec<Vec<u16>>,
}

/// Throws the edges into the buckets of `range` (in buckets). `each` is called once for each segment, and tells its
/// edges.
pub(crate) fn buckets(
    range: Range<u32>,
    segments: usize,
    each: impl Fn(usize, &mut Sink<'_>) + Sync,
) -> Vec<Bucket> {
    let next = AtomicUsize::new(0);
    let parts: Vec<Vec<Vec<Vec<u16>>>> = (0..rayon::current_num_threads())
        .into_par_iter()
        .map(|_| {
            let mut buckets = vec![Vec::new(); range.len()];
            let mut sink = Sink { buckets: &mut buckets, first: range.start << BUCKET_BITS };
            loop {
                let segment = next.fetch_add(1, Ordering::Relaxed);
                if segment >= segments {
                    return buckets;
                }
                each(segment, &mut sink);
            }
        })
        .collect();
    let mut buckets: Vec<Bucket> = range.map(|_| Bucket::default()).collect();
    for part in parts {
        for (bucket, blocks) in buckets.iter_mut().zip(part) {
            bucket.blocks.extend(blocks);
        }
    }
    buckets
}

/// How many buckets there are for so many targets.
pub(crate) fn bucket_count(targets: u32) -> u32 {
    targets.div_ceil(BUCKET)
}

/// The sources of 65,536 targets.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Where the sources of each target start; one more for the end.
    starts: Vec<u64>,
    sources: Vec<u32>,
}

impl Bucket {
    /// Sorts the edges by target. The sources of a target are in no order.
    pub(crate) fn sort(self) -> Sources {
        let edges: usize = self.blocks.iter().map(|block| block.len() / PARTS).sum();
        let mut starts = vec![0u64; BUCKET as usize + 1];
        for block in &self.blocks {
            for edge in block.chunks_exact(PARTS) {
                starts[usize::from(edge[0]) + 1] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0u32; edges];
        for block in self.blocks {
            for edge in block.chunks_exact(PARTS) {
                // Counts down to where the row starts.
                let place = &mut starts[usize::from(edge[0]) + 1];
                *place -= 1;
                sources[index(*place)] = u32::from(edge[1]) | (u32::from(edge[2]) << 16);
            }
        }
        // Each start has moved to the place of the one before it.
        starts.remove(0);
        starts.push(edges as u64);
        Sources { starts, sources }
    }
}

impl Sources {
    /// The sources of the target at this place of the bucket.
    #[inline(always)]
    pub(crate) fn of(&self, within: usize) -> &[u32] {
        &self.sources[index(self.starts[within])..index(self.starts[within + 1])]
    }

    /// As [`Sources::of`], to be sorted.
    #[inline(always)]
    pub(crate) fn of_mut(&mut self, within: usize) -> &mut [u32] {
        &mut self.sources[index(self.starts[within])..index(self.starts[within + 1])]
    }
}

/// A place in memory.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn index(place: u64) -> usize {
    place as usize
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
            .collect();
        let mut expected = vec![Vec::new(); targets as usize];
        for (source, row) in (0u32..).zip(&rows) {
            row.iter().for_each(|target| expected[*target as usize].push(source + 90_000));
        }
        let each = |segment: usize, sink: &mut Sink<'_>| {
            for source in (segment * 100)..(segment + 1) * 100 {
                rows[source].iter().for_each(|target| sink.edge(*target, u32::try_from(source).unwrap() + 90_000));
            }
        };
        let count = bucket_count(targets);
        for cut in [0, 1, count] {
            let parts = [0..cut, cut..count];
            let all = parts.into_iter().flat_map(|range| buckets(range, 50, each));
            for (bucket, edges) in all.enumerate() {
                let mut sources = edges.sort();
                for within in 0..BUCKET as usize {
                    sources.of_mut(within).sort_unstable();
                    let wanted = expected.get(bucket * BUCKET as usize + within);
                    assert_eq!(sources.of(within), wanted.map_or(&[][..], Vec::as_slice));
                }
            }
        }
    }
}
