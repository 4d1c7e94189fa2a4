//! Records of both dumps, read in pairs, object by object.

use std::ops::Range;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::object_table::BLOCK;

use hprof_base::parallel;
use hprof_index::Dump;
use hprof_model::objects::reader::{ObjectReader, ObjectRecord};

/// Objects per task of a thread.
const CHUNK: u32 = 1 << 16;

/// Returns a reader for each dump.
pub(super) fn readers<'a>(a: &Dump<'a>, b: &Dump<'a>) -> [ObjectReader<'a>; 2] {
    [a, b].map(|dump| dump.objects)
}

/// Calls `make` for chunks of the objects that are in both dumps, in parallel.
pub(super) fn by_chunk<T: Send>(
    readers: &[ObjectReader<'_>; 2],
    make: impl Fn(Range<u32>) -> T + Sync,
) -> Vec<T> {
    let [a, b] = readers;
    let count = a.graph.objects.len().min(b.graph.objects.len());
    let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
    parallel::map(&chunks, |start| make(start..start.saturating_add(CHUNK).min(count)))
}

/// Calls `visit` for all objects that can be read in both dumps, and returns the results of the tasks.
pub(super) fn fold<T: Send>(
    readers: &[ObjectReader<'_>; 2],
    new: impl Fn() -> T + Sync,
    visit: impl Fn(&mut T, ObjectIndex, &ObjectRecord<'_>, &ObjectRecord<'_>) + Sync,
) -> Vec<T> {
    let [a, b] = readers;
    by_chunk(readers, |Range { start, end }| {
        let mut made = new();
        let mut records = Vec::new();
        for first in (start..end).step_by(BLOCK as usize) {
            let objects = (end - first).min(BLOCK);
            let wanted = if objects >= u64::BITS { u64::MAX } else { (1 << objects) - 1 };
            records.clear();
            a.records_of_block(ObjectIndex(first), wanted, |object, record| records.push((object, record)));
            b.records_of_block(ObjectIndex(first), wanted, |object, other| {
                let at = records.get((object.0 - first) as usize);
                if let (Some((_, Some(one))), Some(other)) = (at, other) {
                    visit(&mut made, object, one, &other);
                }
            });
        }
        made
    })
}
