//! Transposed adjacency lists: the referrers of each node.
//!
//! The edges of as many buckets as fit into the memory budget are partitioned at a time
//! ([`super::transpose`]); each pass reads all lists again.

use std::io;

use rayon::prelude::*;

use super::adjacency::{AdjacencyView, EncodedLists, Encoder, GROUP};
use super::transpose::{BUCKET, Buckets, EDGE_BYTES, EdgeSink, bucket_count, buckets, too_many};
use crate::storage::scratch::ScratchArena;

/// Groups in a chunk.
const CHUNK: u32 = 1 << 12;
/// Buckets per thread that are encoded while the previous ones are written.
const BUCKETS_OF_A_THREAD: usize = 4;

/// Number of edges above which a bucket is sorted in the scratch arena.
const LARGE: usize = 1 << 20;

/// Transposes lists, in about `memory` bytes, and passes the new lists to `take`, in order.
///
/// # Errors
/// Returns the errors of `take`, or an error if there is neither memory nor disk space.
pub(crate) fn transpose_lists(
    arena: &ScratchArena,
    rows: AdjacencyView<'_>,
    edges: u64,
    memory: u64,
    mut take: impl FnMut(EncodedLists) -> io::Result<()> + Send,
) -> io::Result<()> {
    let nodes = rows.len();
    let groups = nodes.div_ceil(GROUP);
    let chunks = groups.div_ceil(CHUNK) as usize;
    let each = |chunk: usize, sink: &mut EdgeSink| {
        let first = u32::try_from(chunk).unwrap_or(u32::MAX).saturating_mul(CHUNK);
        for group in first..first.saturating_add(CHUNK).min(groups) {
            rows.group(group, |node, targets| targets.for_each(|target| sink.edge(target.0, node)));
        }
    };
    let at_once = BUCKETS_OF_A_THREAD * rayon::current_num_threads();
    for range in passes(rows, edges, memory) {
        let first = range.start;
        let made = buckets(arena, range, edges, chunks, each)?;
        let mut ready: Vec<EncodedLists> = Vec::new();
        let mut next = 0;
        while next < made.len() || !ready.is_empty() {
            let now = next..(next + at_once).min(made.len());
            next = now.end;
            // Finished buckets are written while the next ones are encoded.
            let (written, encoded) = rayon::join(
                || ready.drain(..).try_for_each(&mut take),
                || {
                    now.into_par_iter()
                        .map(|bucket| encode(arena, &made, bucket, first, nodes))
                        .collect::<io::Result<_>>()
                },
            );
            written?;
            ready = encoded?;
        }
    }
    Ok(())
}

/// Returns ranges of buckets whose edges fit into memory.
fn passes(rows: AdjacencyView<'_>, edges: u64, memory: u64) -> Vec<std::ops::Range<u32>> {
    let count = bucket_count(rows.len());
    if edges.saturating_mul(EDGE_BYTES) <= memory {
        return std::iter::once(0..count).collect();
    }
    let mut sizes = vec![0u64; count as usize];
    for group in 0..rows.len().div_ceil(GROUP) {
        rows.group(group, |_, targets| {
            targets.for_each(|target| {
                if let Some(size) = sizes.get_mut((target.0 / BUCKET) as usize) {
                    *size += EDGE_BYTES;
                }
            });
        });
    }
    let (mut ranges, mut start, mut sum) = (Vec::new(), 0, 0);
    for (bucket, size) in (0u32..).zip(sizes) {
        if sum > 0 && sum + size > memory {
            ranges.push(start..bucket);
            (start, sum) = (bucket, 0);
        }
        sum += size;
    }
    ranges.push(start..count);
    ranges
}

/// Encodes the lists of a bucket's targets.
fn encode(
    arena: &ScratchArena,
    buckets: &Buckets,
    bucket: usize,
    first: u32,
    nodes: u32,
) -> io::Result<EncodedLists> {
    let edges = buckets.edges(bucket);
    if u32::try_from(edges).is_err() {
        return Err(too_many());
    }
    let mut starts = vec![0u32; BUCKET as usize + 1];
    // Some objects have millions of referrers.
    let (mut large, mut small);
    let sources: &mut [u32] = if edges > LARGE {
        large = arena.array::<u32>(edges)?;
        &mut large
    } else {
        small = vec![0u32; edges];
        &mut small
    };
    buckets.sort(bucket, &mut starts, sources);
    let first = (first + u32::try_from(bucket).unwrap_or(u32::MAX)) * BUCKET;
    let count = BUCKET.min(nodes - first) as usize;
    let mut encoder = Encoder::new(first, edges.min(LARGE) * 4 + count * 2);
    let mut rest = sources;
    for bounds in starts.windows(2).take(count) {
        let (row, after) = std::mem::take(&mut rest).split_at_mut((bounds[1] - bounds[0]) as usize);
        rest = after;
        if row.len() > 1 {
            row.sort_unstable();
        }
        encoder.push_sorted(row);
    }
    Ok(encoder.finish())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::adjacency::{AdjacencyLists, adjacency_of};
    use super::super::numbers::ObjectIndex;
    use super::*;

    #[test]
    fn millions_may_refer_to_one() {
        let nodes = u32::try_from(LARGE).unwrap() + 1000;
        let rows: Vec<Vec<u32>> = (0..nodes).map(|node| if node == 5 { vec![] } else { vec![3] }).collect();
        let forward = adjacency_of(&rows);
        let dir = tempfile::tempdir().unwrap();
        let arena = ScratchArena::new(dir.path().to_owned(), 0);
        let (mut bytes, mut groups) = (Vec::new(), vec![zerocopy::little_endian::U64::new(0)]);
        transpose_lists(&arena, forward.view(), forward.edges(), 1 << 30, |part| {
            for length in &part.groups {
                groups.push((groups[groups.len() - 1].get() + length).into());
            }
            bytes.extend(part.bytes);
            Ok(())
        })
        .unwrap();
        let back = AdjacencyLists {
            groups: groups.into(),
            bytes: bytes.into(),
            objects: nodes,
            edges: forward.edges(),
        };
        assert!(back.list(ObjectIndex(3)).eq((0..nodes).filter(|node| *node != 5).map(ObjectIndex)));
        assert_eq!(back.list(ObjectIndex(4)).count(), 0);
    }

    #[test]
    fn rows_are_turned_around_in_any_memory() {
        let nodes = 2 * BUCKET + 100;
        let rows: Vec<Vec<u32>> = (0..nodes)
            .map(|node| (0..node % 4).map(|i| node.wrapping_mul(2_654_435_761 + i) % nodes).collect())
            .collect();
        let forward = adjacency_of(&rows);
        let mut expected = vec![Vec::new(); nodes as usize];
        for node in 0..nodes {
            forward.list(ObjectIndex(node)).for_each(|target| expected[target.at()].push(ObjectIndex(node)));
        }
        let dir = tempfile::tempdir().unwrap();
        for memory in [0, 600_000, 1 << 30] {
            let arena = ScratchArena::new(dir.path().to_owned(), memory);
            let (mut bytes, mut groups, mut edges) = (Vec::new(), vec![0u64], 0);
            transpose_lists(&arena, forward.view(), forward.edges(), memory, |part| {
                groups.extend(part.groups.iter().scan(bytes.len() as u64, |at, length| {
                    *at += length;
                    Some(*at)
                }));
                bytes.extend(part.bytes);
                edges += part.edges;
                Ok(())
            })
            .unwrap();
            let groups: Vec<_> = groups.into_iter().map(zerocopy::little_endian::U64::new).collect();
            let back = AdjacencyLists { groups: groups.into(), bytes: bytes.into(), objects: nodes, edges };
            assert_eq!(back.edges(), forward.edges());
            for node in 0..nodes {
                assert_eq!(
                    back.list(ObjectIndex(node)).collect::<Vec<_>>(),
                    expected[node as usize],
                    "node {node}"
                );
            }
        }
    }
}
