//! Rows turned around: for each node those that refer to it.

use rayon::prelude::*;

use super::rows::{Encoded, Encoder, GROUP, View};
use super::transpose::{BUCKET, Bucket, EDGE_BYTES, Sink, bucket_count, buckets};

/// Groups that one thread reads in one go.
const SEGMENT: u32 = 1 << 12;
/// Buckets for each thread that are made before they are handed on.
const WAVE: usize = 4;

/// Turns rows around, in `memory` bytes or little more, and hands the new rows to `take`, in order.
///
/// # Errors
/// What `take` returns.
pub(crate) fn turn_around<E: Send>(
    rows: View<'_>,
    edges: u64,
    memory: u64,
    mut take: impl FnMut(Encoded) -> Result<(), E> + Send,
) -> Result<(), E> {
    let nodes = rows.len();
    let groups = nodes.div_ceil(GROUP);
    let segments = groups.div_ceil(SEGMENT) as usize;
    let each = |segment: usize, sink: &mut Sink<'_>| {
        let first = u32::try_from(segment).unwrap_or(u32::MAX).saturating_mul(SEGMENT);
        for group in first..first.saturating_add(SEGMENT).min(groups) {
            rows.group(group, |node, targets| targets.for_each(|target| sink.edge(target, node)));
        }
    };
    for range in passes(rows, edges, memory) {
        let first = range.start;
        let made = buckets(range, segments, each);
        let wave = WAVE * rayon::current_num_threads();
        let mut made = made.into_iter().zip(first..);
        let mut ready: Vec<Encoded> = Vec::new();
        loop {
            let next: Vec<(Bucket, u32)> = made.by_ref().take(wave).collect();
            let is_last = next.is_empty();
            // What is ready is written while the next wave is made.
            let (written, encoded) = rayon::join(
                || ready.drain(..).try_for_each(&mut take),
                || next.into_par_iter().map(|(bucket, number)| encode(bucket, number, nodes)).collect(),
            );
            written?;
            ready = encoded;
            if is_last {
                break;
            }
        }
    }
    Ok(())
}

/// Ranges of buckets whose edges fit into memory.
fn passes(rows: View<'_>, edges: u64, memory: u64) -> Vec<std::ops::Range<u32>> {
    let count = bucket_count(rows.len());
    if edges.saturating_mul(EDGE_BYTES) <= memory {
        return std::iter::once(0..count).collect();
    }
    let mut sizes = vec![0u64; count as usize];
    for group in 0..rows.len().div_ceil(GROUP) {
        rows.group(group, |_, targets| {
            targets.for_each(|target| {
                if let Some(size) = sizes.get_mut((target / BUCKET) as usize) {
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

/// The rows of a bucket's targets.
fn encode(bucket: Bucket, number: u32, nodes: u32) -> Encoded {
    let mut sources = bucket.sort();
    let first = number * BUCKET;
    let count = BUCKET.min(nodes - first);
    let mut encoder = Encoder::new(first, 1 << 19);
    for within in 0..count as usize {
        let row = sources.of_mut(within);
        if row.len() > 1 {
            row.sort_unstable();
        }
        encoder.push_sorted(row);
    }
    encoder.finish()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::index::graph::rows::{Rows, rows_of};

    #[test]
    fn rows_are_turned_around_in_any_memory() {
        let nodes = 2 * BUCKET + 100;
        let rows: Vec<Vec<u32>> = (0..nodes)
            .map(|node| (0..node % 4).map(|i| node.wrapping_mul(2_654_435_761 + i) % nodes).collect())
            .collect();
        let forward = rows_of(&rows);
        let mut expected = vec![Vec::new(); nodes as usize];
        for node in 0..nodes {
            forward.row(node).for_each(|target| expected[target as usize].push(node));
        }
        for memory in [0, 600_000, u64::MAX] {
            let (mut bytes, mut groups, mut edges) = (Vec::new(), vec![0u64], 0);
            turn_around(forward.view(), forward.edges(), memory, |part| {
                groups.extend(part.groups.iter().scan(bytes.len() as u64, |at, length| {
                    *at += length;
                    Some(*at)
                }));
                bytes.extend(part.bytes);
                edges += part.edges;
                Ok::<(), ()>(())
            })
            .unwrap();
            let groups: Vec<_> = groups.into_iter().map(zerocopy::little_endian::U64::new).collect();
            let back = Rows { groups: groups.into(), bytes: bytes.into(), objects: nodes, edges };
            assert_eq!(back.edges(), forward.edges());
            for node in 0..nodes {
                assert_eq!(back.row(node).collect::<Vec<_>>(), expected[node as usize], "node {node}");
            }
        }
    }
}
