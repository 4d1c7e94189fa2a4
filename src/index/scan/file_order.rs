//! The sub-records of a heap dump in file order, in chunks that several threads take in turn.
//!
//! For output in file order, such as a report. A chunk is about a megabyte of sub-records; a long array
//! of references is a chunk of its own, or several, so that the output for a chunk stays small.

use std::ops::Range;

use hprof_parser::heap::{self, HeapVisitor, ObjectArray};
use hprof_parser::resync::{self, KnownClasses};
use hprof_values::{IdSize, ObjectId};

use crate::model::summary::Summary;
use crate::model::tables::{NONE, SegmentRow};
use crate::records::chunks::{self, RecordChunk};
use crate::storage::id_map::IdMap;

/// Approximate size of a chunk in bytes; a segment of up to one and a half times that size is one chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// Number of elements above which an array of references is divided, and number of elements in a
/// chunk of it.
const LONG_ARRAY: u32 = 1 << 17;

/// A chunk of a heap dump, or part of a long array in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedChunk {
    chunk: RecordChunk,
    /// Range of elements, if the chunk is part of a long array.
    pub elements: Option<Range<u32>>,
}

impl OrderedChunk {
    /// Returns the number of bytes of the dump in the chunk.
    pub fn bytes(&self) -> u64 {
        match &self.elements {
            None => (self.chunk.end - self.chunk.start) as u64,
            Some(elements) if elements.start == 0 => (self.chunk.end - self.chunk.start) as u64,
            Some(_) => 0,
        }
    }
}

/// Iterator over the chunks of a heap dump, in file order.
pub struct OrderedChunks<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
    /// Current segment.
    segment: Option<RecordChunk>,
    /// Position in the current segment.
    at: usize,
    /// Segments after the current one.
    segments: &'a [SegmentRow],
    /// Current long array: its record, next element, and length.
    array: Option<(RecordChunk, u32, u32)>,
    classes: &'a Classes,
}

/// Size of the instances of each class, by which objects are found after damage.
#[derive(Debug)]
pub struct Classes(IdMap<ObjectId, Option<u64>>);

impl Classes {
    /// Computes the sizes for the classes of a dump.
    pub fn new(summary: &Summary) -> Self {
        let table = summary.class_table();
        // Classes in a cycle of superclasses, and their subclasses, are unknown.
        let sums = table.derive(|number, above: Option<&Option<u64>>| {
            let has_superclass = summary.class(number).is_some_and(|class| class.super_class.get() != NONE);
            let above = above.copied().unwrap_or((!has_superclass).then_some(0));
            above.map(|above| above.saturating_add(table.own_field_bytes(number).into()))
        });
        let known = summary.classes().iter().zip(sums).filter(|(class, _)| class.id.get() != 0);
        Self(known.map(|(class, sum)| (class.id.into(), sum.filter(|_| class.is_dumped()))).collect())
    }
}

impl KnownClasses for Classes {
    fn class(&self, id: ObjectId) -> Option<Option<u64>> {
        self.0.get(&id).copied()
    }
}

impl<'a> OrderedChunks<'a> {
    /// Creates the chunks of the heap dump that `summary` describes.
    pub fn new(bytes: &'a [u8], summary: &'a Summary, classes: &'a Classes) -> Self {
        let segments = summary.segments();
        let mut chunks =
            Self { bytes, id_size: summary.id_size(), segment: None, at: 0, segments, array: None, classes };
        chunks.finish_segment();
        chunks
    }

    /// Returns the part of a segment that is in the file.
    fn chunk(&self, segment: &SegmentRow) -> Option<RecordChunk> {
        let offset = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let (start, end) = (offset(segment.start.get()), offset(segment.end.get()));
        (start < end).then_some(RecordChunk { start, end, limit: end })
    }

    /// Returns the number of bytes of the dump that remain.
    pub fn bytes(&self) -> u64 {
        let rest = self.segments.iter().filter_map(|segment| self.chunk(segment));
        self.segment.into_iter().chain(rest).map(|chunk| (chunk.end - chunk.start) as u64).sum()
    }

    /// Returns the walker of chunks, for other threads.
    pub fn walker(&self) -> ChunkWalk<'a> {
        ChunkWalk { bytes: self.bytes, id_size: self.id_size, classes: self.classes }
    }

    /// Moves to the next segment.
    fn finish_segment(&mut self) {
        self.segment = None;
        while self.segment.is_none()
            && let Some((next, rest)) = self.segments.split_first()
        {
            self.segment = self.chunk(next);
            self.segments = rest;
        }
        self.at = self.segment.map_or(0, |chunk| chunk.start);
    }
}

/// Walker over the sub-records of chunks, for any thread.
#[derive(Clone, Copy)]
pub struct ChunkWalk<'a> {
    bytes: &'a [u8],
    id_size: IdSize,
    classes: &'a Classes,
}

impl<'a> ChunkWalk<'a> {
    /// Walks over a chunk, and continues after damage.
    pub fn chunk<V: HeapVisitor<'a>>(&self, chunk: &OrderedChunk, visitor: &mut V) {
        chunks::walk(self.bytes, self.id_size, self.classes, &chunk.chunk, visitor, |_, _| {});
    }
}

impl Iterator for OrderedChunks<'_> {
    type Item = OrderedChunk;

    fn next(&mut self) -> Option<OrderedChunk> {
        if self.array.is_some() {
            return self.next_of_array();
        }
        let segment = self.segment?;
        let start = self.at;
        if segment.end - start <= CHUNK_BYTES + CHUNK_BYTES / 2 {
            self.finish_segment();
            return Some(OrderedChunk { chunk: RecordChunk { start, ..segment }, elements: None });
        }
        let mut walk_to_array = UpToLongArray::default();
        let until = start.saturating_add(CHUNK_BYTES).min(segment.end);
        let walked = heap::walk(self.bytes, self.id_size, start, until, segment.limit, &mut walk_to_array);
        let mut end = walked.next;
        if let Some(array) = walk_to_array.long {
            let chunk = RecordChunk { start: array.start, end: array.end, limit: segment.limit };
            self.array = Some((chunk, 0, walk_to_array.length));
            (end, self.at) = (array.start, array.end);
        } else if walked.error.is_some() {
            // The thread that walks over the chunk skips damaged regions; here, the next chunk must start
            // at an object again.
            let found =
                resync::find(self.bytes, self.id_size, end + 1, segment.end, segment.limit, self.classes);
            end = found.unwrap_or(segment.end);
            self.at = end;
        } else {
            self.at = end;
        }
        if self.at >= segment.end {
            self.finish_segment();
        }
        if end == start {
            // A long array starts here.
            return self.next_of_array();
        }
        Some(OrderedChunk { chunk: RecordChunk { start, end, limit: segment.limit }, elements: None })
    }
}

impl OrderedChunks<'_> {
    fn next_of_array(&mut self) -> Option<OrderedChunk> {
        let (chunk, first, length) = self.array.take()?;
        let end = first.saturating_add(LONG_ARRAY).min(length);
        self.array = (end < length).then_some((chunk, end, length));
        Some(OrderedChunk { chunk, elements: Some(first..end) })
    }
}

/// Skips sub-records up to a long array of references.
#[derive(Default)]
struct UpToLongArray {
    long: Option<Range<usize>>,
    length: u32,
}

impl<'a> HeapVisitor<'a> for UpToLongArray {
    fn object_array(&mut self, record: ObjectArray<'a>) {
        if record.length > LONG_ARRAY {
            self.long = Some(record.offset..record.end);
            self.length = record.length;
        }
    }
    fn go_on(&mut self) -> bool {
        self.long.is_none()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use crate::{Heap, Options, Quiet};
    use hprof_parser::heap::{Instance, PrimitiveArray};
    use hprof_parser::heap_tag;

    const CLASS: u64 = 0x10;
    const ELEMENTS: u32 = 300_000;

    fn u4(out: &mut Vec<u8>, number: u32) {
        out.extend_from_slice(&number.to_be_bytes());
    }

    /// Returns the sub-record of a byte array, with 4-byte IDs.
    fn bytes_of(id: u32, length: u32) -> Vec<u8> {
        let mut out = vec![heap_tag::PRIMITIVE_ARRAY];
        for number in [id, 1, length] {
            u4(&mut out, number);
        }
        out.push(8);
        out.resize(out.len() + length as usize, 0);
        out
    }

    fn array_of(id: u32, length: u32) -> Vec<u8> {
        let mut out = vec![heap_tag::OBJECT_ARRAY];
        for number in [id, 1, length, CLASS as u32] {
            u4(&mut out, number);
        }
        out.resize(out.len() + 4 * length as usize, 7);
        out
    }

    /// Returns the class dump of all arrays of references in these tests.
    fn class() -> Vec<u8> {
        let mut out = vec![heap_tag::CLASS];
        u4(&mut out, CLASS as u32);
        out.resize(out.len() + 4 + 6 * 4 + 4 + 3 * 2, 0);
        out
    }

    /// Returns this number of sub-records of byte arrays, about a kilobyte each.
    fn kilobytes(count: u32) -> Vec<u8> {
        (1..=count).flat_map(|number| bytes_of(number * 0x1000, 1000)).collect()
    }

    fn dump(segments: &[Vec<u8>]) -> Vec<u8> {
        let mut out = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        for body in segments {
            out.extend_from_slice(&[0x1C, 0, 0, 0, 0]);
            u4(&mut out, u32::try_from(body.len()).unwrap());
            out.extend_from_slice(body);
        }
        out
    }

    /// Visited items: start of each record; long arrays once for each range of elements.
    #[derive(Debug, Default, PartialEq)]
    struct VisitedItems(Vec<usize>);

    impl<'a> HeapVisitor<'a> for VisitedItems {
        fn instance(&mut self, record: Instance<'a>) {
            self.0.push(record.offset);
        }
        fn object_array(&mut self, record: ObjectArray<'a>) {
            self.0.push(record.offset);
        }
        fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
            self.0.push(record.offset);
        }
    }

    /// Returns all chunks of a dump after checking them: together they contain every byte of every
    /// segment once and in order, long arrays are divided, and the visited items are the same as without
    /// chunks.
    fn chunks(segments: &[Vec<u8>]) -> Vec<OrderedChunk> {
        let bytes = dump(segments);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dump.hprof");
        std::fs::write(&path, &bytes).unwrap();
        let options = Options { index_dir: Some(dir.path().join("index")), ..Options::default() };
        let heap = Heap::open(&path, &options, &Quiet).unwrap();
        let classes = Classes::new(heap.summary());
        let all = OrderedChunks::new(&bytes, heap.summary(), &classes);
        let (walk, total) = (all.walker(), all.bytes());
        let chunks: Vec<OrderedChunk> = all.collect();

        let mut places = chunks.iter().filter(|chunk| chunk.elements.as_ref().is_none_or(|of| of.start == 0));
        let mut stated = 0;
        for segment in heap.summary().segments() {
            let (start, end) = (segment.start.get() as usize, segment.end.get() as usize);
            let mut at = start;
            while at < end {
                let chunk = places.next().unwrap();
                assert_eq!((chunk.chunk.start, chunk.chunk.limit), (at, end));
                assert!(chunk.chunk.end > at, "an empty chunk");
                at = chunk.chunk.end;
                stated += chunk.bytes();
            }
            assert_eq!(at, end, "the last chunk ends with its segment");
        }
        assert_eq!((places.next(), stated), (None, total));
        assert_eq!(chunks.iter().map(OrderedChunk::bytes).sum::<u64>(), total);

        let (mut by_parts, mut by_segments) = (VisitedItems::default(), VisitedItems::default());
        for chunk in &chunks {
            let before = by_parts.0.len();
            walk.chunk(chunk, &mut by_parts);
            if let Some(elements) = &chunk.elements {
                assert_eq!(by_parts.0.len(), before + 1, "a long array is a chunk of its own");
                assert!(elements.len() <= LONG_ARRAY as usize && !elements.is_empty());
                by_parts.0.truncate(before + usize::from(elements.start == 0));
            } else {
                let is_small = chunk.chunk.end - chunk.chunk.start <= CHUNK_BYTES + CHUNK_BYTES / 2;
                assert!(is_small || heap.summary().is_damaged(), "a chunk is small");
            }
        }
        for segment in heap.summary().segments() {
            let (start, end) = (segment.start.get() as usize, segment.end.get() as usize);
            let chunk = RecordChunk { start, end, limit: end };
            chunks::walk(&bytes, IdSize::Four, &classes, &chunk, &mut by_segments, |_, _| {});
        }
        assert_eq!(by_parts, by_segments);
        chunks
    }

    /// Returns the ranges of elements into which long arrays are divided.
    fn ranges(chunks: &[OrderedChunk]) -> Vec<Range<u32>> {
        chunks.iter().filter_map(|chunk| chunk.elements.clone()).collect()
    }

    fn cut_array() -> Vec<Range<u32>> {
        vec![0..LONG_ARRAY, LONG_ARRAY..2 * LONG_ARRAY, 2 * LONG_ARRAY..ELEMENTS]
    }

    #[test]
    fn segments_that_are_not_large_are_parts() {
        let long_in_small = [class(), array_of(1, LONG_ARRAY + 1)].concat();
        let cut = chunks(&[class(), kilobytes(1500), Vec::new(), long_in_small, kilobytes(1)]);
        assert_eq!((cut.len(), ranges(&cut)), (4, Vec::new()));
    }

    #[test]
    fn large_segments_are_cut_between_records() {
        let cut = chunks(&[kilobytes(10), [class(), kilobytes(5000)].concat(), kilobytes(10)]);
        assert_eq!(cut.len(), 2 + 5);
        // Less than half a chunk is left: it belongs to the previous chunk.
        let lengths: Vec<u64> = cut.iter().map(OrderedChunk::bytes).collect();
        let small = lengths.iter().filter(|length| **length < CHUNK_BYTES as u64 / 2).count();
        assert_eq!(small, 2, "{lengths:?}");
    }

    #[test]
    fn long_arrays_are_cut_wherever_they_stand() {
        let long = || array_of(1, ELEMENTS);
        // In a segment of its own, one is too small to be divided with 4-byte IDs; two are not.
        assert_eq!(ranges(&chunks(&[[class(), long()].concat()])), []);
        let alone = chunks(&[class(), array_of(1, 2 * ELEMENTS)]);
        assert_eq!((alone.len(), ranges(&alone).len()), (1 + 5, 5));
        for (before, after, plain) in [(0, 900, 1 + 1), (900, 0, 1 + 1), (700, 700, 1 + 2)] {
            let cut = chunks(&[class(), [kilobytes(before), long(), kilobytes(after)].concat()]);
            assert_eq!((ranges(&cut), cut.len()), (cut_array(), plain + 3));
        }
        // Consecutive; the rest is small enough to stay whole.
        let cut = chunks(&[[class(), long(), long(), long(), kilobytes(100)].concat()]);
        assert_eq!((ranges(&cut), cut.len()), ([cut_array(), cut_array()].concat(), 1 + 6 + 1));
        // More than a chunk before the array.
        let cut = chunks(&[[class(), kilobytes(2500), long(), kilobytes(1200)].concat()]);
        assert_eq!((ranges(&cut), cut.len()), (cut_array(), 3 + 3 + 1));
    }

    #[test]
    fn damage_is_passed_over_by_the_part_that_holds_it() {
        for at in [0, 1, 700, 1040, 2999] {
            let good = |count: usize| kilobytes(u32::try_from(count).unwrap());
            let body = [class(), good(at), vec![0xEE; 5000], good(3000 - at)].concat();
            let cut = chunks(&[body, [class(), vec![0xEE; 3 << 20]].concat(), kilobytes(2)]);
            assert!(cut.len() >= 5 && ranges(&cut).is_empty());
        }
        // Followed by a long array, and by one that the end of the file truncates.
        let body = [class(), kilobytes(100), vec![0xEE; 50], kilobytes(30), array_of(9, ELEMENTS)].concat();
        assert_eq!(ranges(&chunks(&[[body, kilobytes(900)].concat()])), cut_array());
        let mut cut = array_of(9, 3 * ELEMENTS);
        cut.truncate(3 << 20);
        assert_eq!(ranges(&chunks(&[[class(), kilobytes(100), cut].concat()])), []);
    }
}
