//! The objects of one of Android's heaps.

use hprof_base::parallel;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::scan::heap_ranges::HeapRanges;

use super::object_set::Bits;
use super::reader::ObjectRecord;

/// Number of objects per chunk; a multiple of [`BLOCK`] and of 64.
const CHUNK: u32 = 1 << 16;

/// Error for a name that no heap has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoHeap {
    /// The dump does not distinguish heaps.
    #[error("the dump contains no HEAP DUMP INFO records, which name the heaps of Android dumps")]
    None,
    /// The dump distinguishes heaps, but none has this name.
    #[error("there is no heap `{0}` in the dump; the heaps are {1}")]
    Other(String, String),
}

/// Returns the objects of the heap with this name.
///
/// # Errors
/// If no heap has the name.
pub fn objects_of(name: &str, dump: &Dump<'_>) -> Result<Bits, NoHeap> {
    let numbers: Vec<u32> =
        dump.summary.heaps().filter(|(_, known)| *known == name).map(|(number, _)| number).collect();
    if numbers.is_empty() {
        let names: Vec<&str> = dump.summary.heaps().map(|(_, name)| name).collect();
        return Err(match names.as_slice() {
            [] => NoHeap::None,
            names => NoHeap::Other(name.to_owned(), names.join(", ")),
        });
    }
    let ranges = HeapRanges::read(dump.summary, dump.bytes());
    let objects = dump.objects;
    let is_of_heap = |record: Option<ObjectRecord<'_>>| {
        record.and_then(|record| ranges.heap_at(record.offset())).is_some_and(|heap| numbers.contains(&heap))
    };
    let chunks = ObjectIndex::chunks(dump.graph.objects.indices(), CHUNK);
    let parts: Vec<Vec<ObjectIndex>> = parallel::map(&chunks, |chunk| {
        let mut found = Vec::new();
        for block in ObjectIndex::chunks(chunk, BLOCK) {
            let count = block.end.0.saturating_sub(block.start.0).min(u64::BITS);
            let all = u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0);
            objects.records_of_block(block.start, all, |object, record| {
                if is_of_heap(record) {
                    found.push(object);
                }
            });
        }
        found
    });
    let mut set = Bits::new(dump.graph.objects.len());
    parts.into_iter().flatten().for_each(|object| {
        set.insert(object);
    });
    Ok(set)
}
