//! Android's heaps: assignment of objects to the heaps `app`, `zygote` or `image`.
//!
//! A HEAP DUMP INFO sub-record names the heap of the objects after it, up to the next one. The index has only the names
//! of heaps, so the heap dump is scanned for these records; then the offset of an object's record determines its heap.

use hprof_base::parallel;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::scan::file_order::{Classes, OrderedChunks};
use hprof_parser::heap::HeapVisitor;

use super::object_set::Bits;
use super::reader::Record;

/// Number of objects per chunk; a multiple of [`BLOCK`] and of 64.
const CHUNK: u32 = 1 << 16;

/// Error for a name that no heap has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoHeap {
    /// The dump does not distinguish heaps.
    #[error("the dump contains no HEAP DUMP INFO records: only Android dumps distinguish heaps")]
    None,
    /// The dump distinguishes heaps, but none has this name.
    #[error("there is no heap `{0}` in the dump; its heaps are {1}")]
    Other(String, String),
}

/// Start offsets of heaps.
#[derive(Debug, Default)]
struct Infos(Vec<(usize, u32)>);

impl<'a> HeapVisitor<'a> for Infos {
    fn heap_info(&mut self, offset: usize, heap: u32, _name: u64) {
        self.0.push((offset, heap));
    }
}

impl Infos {
    /// Returns the heap of the object whose record is at an offset.
    fn at(&self, offset: usize) -> Option<u32> {
        let next = self.0.partition_point(|(start, _)| *start < offset);
        next.checked_sub(1).and_then(|at| self.0.get(at)).map(|(_, heap)| *heap)
    }
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
    let classes = Classes::new(dump.summary);
    let chunks = OrderedChunks::new(dump.bytes(), dump.summary, &classes);
    let walk = chunks.walker();
    let mut infos = Infos::default();
    chunks.for_each(|chunk| walk.chunk(&chunk, &mut infos));
    // Segments are in the order of the file; in a damaged dump they need not be.
    infos.0.sort_unstable();
    infos.0.dedup_by_key(|(_, heap)| *heap);
    let objects = dump.objects;
    let is_meant = |record: Option<Record<'_>>| {
        let offset = match record? {
            Record::Instance(record) => record.offset,
            Record::ObjectArray(record) => record.offset,
            Record::PrimitiveArray(record) => record.offset,
            Record::Class(record) => record.offset,
        };
        infos.at(offset).filter(|heap| numbers.contains(heap))
    };
    let chunks = ObjectIndex::chunks(dump.graph.objects.all(), CHUNK);
    let parts: Vec<Vec<ObjectIndex>> = parallel::map(&chunks, |chunk| {
        let mut found = Vec::new();
        for block in ObjectIndex::chunks(chunk, BLOCK) {
            let count = block.end.0.saturating_sub(block.start.0).min(u64::BITS);
            let all = u64::MAX.checked_shr(u64::BITS - count).unwrap_or(0);
            objects.records_of_block(block.start, all, |object, record| {
                if is_meant(record).is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_reaches_up_to_the_next() {
        let mut infos = Infos::default();
        for (offset, heap) in [(10, 1), (20, 1), (30, 2)] {
            infos.heap_info(offset, heap, 0);
        }
        assert_eq!([0, 10, 11, 25, 30, 31, 99].map(|offset| infos.at(offset)), {
            [None, None, Some(1), Some(1), Some(1), Some(2), Some(2)]
        });
    }
}
