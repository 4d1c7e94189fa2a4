//! Android's heaps: assignment of objects to the heaps `app`, `zygote` or `image`.
//!
//! A HEAP DUMP INFO sub-record names the heap of the objects after it, up to the next one. The index has only the names
//! of heaps, so the heap dump is scanned for these records; then the offset of an object's record determines its heap.

use hprof_parser::heap::HeapVisitor;

use crate::model::summary::Summary;
use crate::scan::file_order::{Classes, OrderedChunks};

/// Start offsets of heaps in a dump.
#[derive(Debug, Default)]
pub struct HeapRanges(Vec<(u64, u32)>);

impl HeapVisitor<'_> for HeapRanges {
    fn heap_info(&mut self, offset: usize, heap: u32, _name: u64) {
        self.0.push((offset as u64, heap));
    }
}

impl HeapRanges {
    /// Scans a dump; `bytes` are the dump's ([`crate::Heap::bytes`]).
    pub fn read(summary: &Summary, bytes: &[u8]) -> Self {
        let classes = Classes::new(summary);
        let chunks = OrderedChunks::new(bytes, summary, &classes);
        let walk = chunks.walker();
        let mut ranges = Self::default();
        chunks.for_each(|chunk| walk.chunk(&chunk, &mut ranges));
        // Segments are in the order of the file; in a damaged dump they need not be.
        ranges.0.sort_unstable();
        ranges.0.dedup_by_key(|(_, heap)| *heap);
        ranges
    }

    /// Returns the number of the heap of the object whose record is at an offset.
    pub fn heap_at(&self, offset: u64) -> Option<u32> {
        let next = self.0.partition_point(|(start, _)| *start < offset);
        next.checked_sub(1).and_then(|at| self.0.get(at)).map(|(_, heap)| *heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_reaches_up_to_the_next() {
        let mut ranges = HeapRanges::default();
        for (offset, heap) in [(10, 1), (20, 1), (30, 2)] {
            ranges.heap_info(offset, heap, 0);
        }
        assert_eq!([0, 10, 11, 25, 30, 31, 99].map(|offset| ranges.heap_at(offset)), {
            [None, None, Some(1), Some(1), Some(1), Some(2), Some(2)]
        });
    }
}
