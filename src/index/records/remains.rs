//! The complete records of damaged files, for copying them: each file is a part of one dump.
//!
//! The walks are those of a scan, so that the same regions are damaged, in the same words.

use std::ops::Range;

use rayon::prelude::*;

use hprof_input::progress::Progress;
use hprof_parser::Header;
use hprof_parser::class_dump::ClassDump;
use hprof_parser::heap::{HeapVisitor, Instance, ObjectArray, PrimitiveArray, RootRecord};
use hprof_parser::record::{BodyReader, LoadClass, RECORD_HEADER, Record, tag};
use hprof_parser::resync::KnownClasses;
use hprof_values::{IdSize, ObjectId, RootKind, be_id};

use super::chunks::{self, MAX_PROBLEMS, RecordChunk};
use super::preview::Preview;
use super::record_walk;
use super::top_level::{Contents, Segment};
use crate::model::problem::{Problem, ProblemKind};
use crate::storage::allowance::Allowance;
use crate::storage::human_bytes::group_digits;
use crate::storage::id_map::{IdMap, IdSet};
use crate::storage::memory::{self, NoMemory};

/// Number of bytes of a heap dump record that are walked at once; whole sub-records between two such
/// boundaries are one range.
const STEP: usize = 16 << 20;
/// Maximum size of a range of several sub-records: ranges are the pieces that a record can be divided into.
const MAX_RANGE: usize = 256 << 20;

/// Number of heap dump records that are read at once.
const BATCH: usize = 1024;

/// One file of a dump: its bytes and its top-level records.
#[derive(Debug)]
pub struct DumpPart<'a> {
    bytes: &'a [u8],
    header: Header,
    contents: Contents,
}

impl<'a> DumpPart<'a> {
    /// Reads the top-level records of `bytes`. The header of a file without one has length 0.
    ///
    /// # Errors
    /// [`NoMemory`] if their tables exceed the available memory.
    pub fn read(bytes: &'a [u8], header: Header) -> Result<Self, NoMemory> {
        let allowance = Allowance::new(memory::available(None));
        let mut contents = record_walk::read(bytes, &header, &allowance)?;
        allowance.take(contents.narrow_bytes())?;
        contents.narrow(contents.dumps.len());
        Ok(Self { bytes, header, contents })
    }

    /// Returns the bytes of the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the problems at the top level.
    pub fn problems(&self) -> &[Problem] {
        &self.contents.problems
    }

    /// Returns the minimum size of the complete file by its last record; `None` if it cannot be determined.
    pub fn expected_bytes(&self) -> Option<u64> {
        let end_known = || (!self.contents.end_unknown).then_some(self.bytes.len() as u64);
        self.contents.expected_end.or_else(end_known)
    }

    /// Returns the number of bytes at the top level that could not be read.
    pub fn skipped_bytes(&self) -> u64 {
        self.contents.skipped_bytes
    }

    /// Returns the number of damaged regions at the top level.
    pub fn lost_records(&self) -> u64 {
        self.contents.lost_records
    }

    /// Returns the number of heap dump records without a sub-record.
    pub fn empty_segments(&self) -> u64 {
        self.contents.empty_segments
    }

    /// Returns `true` if a heap dump in the file is incomplete.
    pub fn is_heap_damaged(&self) -> bool {
        let dumps = &self.contents.dumps;
        dumps.iter().any(|dump| dump.broken) || dumps.last().is_none_or(|last| !last.ended && !last.open)
    }

    /// Returns `true` if the file has a HEAP DUMP END.
    pub fn has_end(&self) -> bool {
        self.contents.has_end
    }

    /// Returns `true` if the file has a heap dump record.
    pub fn has_heap_dump(&self) -> bool {
        !self.contents.dumps.is_empty()
    }

    /// Returns `true` if the file has a STACK TRACE record.
    pub fn has_traces(&self) -> bool {
        !self.contents.traces.is_empty()
    }

    /// Returns the ranges of consecutive whole records other than heap dumps, with their headers.
    pub fn records(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.contents.records.iter().map(|records| records.start..records.end)
    }

    /// Returns the offsets of the heap dump records.
    pub fn heap_records(&self) -> impl Iterator<Item = usize> + '_ {
        let segments = self.contents.dumps.iter().flat_map(|dump| &dump.segments);
        segments.map(|segment| segment.start - RECORD_HEADER)
    }

    /// Returns the ranges of the bodies of heap dump records, in file order.
    pub fn heap_ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let segments = self.contents.dumps.iter().flat_map(|dump| &dump.segments);
        segments.map(|segment| segment.start..segment.end)
    }

    /// Returns the bytes of a STRING record, in modified UTF-8; `None` if it does not exist.
    pub fn string(&self, id: u64) -> Option<&'a [u8]> {
        let at = usize::try_from(self.contents.string(id)?).ok()?;
        let record = Record::at(self.bytes, at)?;
        let text = BodyReader::new(self.bytes, self.header.id_size).string(&record);
        // The last one of a truncated file is not whole.
        text.ok().filter(|_| record.end() <= self.bytes.len() as u64).map(|(_, text)| text)
    }

    /// Returns the IDs of the strings that LOAD CLASS and STACK FRAME records refer to.
    pub fn string_uses(&self) -> impl Iterator<Item = u64> + '_ {
        let reader = BodyReader::new(self.bytes, self.header.id_size);
        let frames = self.contents.frames.iter().filter_map(move |frame| {
            let record = Record::at(self.bytes, usize::try_from(frame.offset).ok()?)?;
            reader.frame(&record).ok()
        });
        let of_frames = frames.flat_map(|frame| [frame.method, frame.signature, frame.source]);
        self.contents.loads.iter().map(|load| load.name).chain(of_frames)
    }

    /// Returns the LOAD CLASS records that name classes, one for each class.
    pub fn class_loads(&self) -> &[LoadClass] {
        &self.contents.class_loads
    }

    /// Returns the class dump at an offset.
    pub fn class_dump(&self, offset: usize) -> Option<ClassDump<'a>> {
        /// Visitor that stores a class dump.
        struct One<'b>(Option<ClassDump<'b>>);
        impl<'b> HeapVisitor<'b> for One<'b> {
            fn class(&mut self, record: ClassDump<'b>) {
                self.0 = Some(record);
            }
        }
        let mut one = One(None);
        let (bytes, id_size) = (self.bytes, self.header.id_size);
        hprof_parser::heap::visit_one(bytes, id_size, offset, bytes.len(), &mut one).ok()?;
        one.0
    }
}

/// The whole sub-records of a heap dump record, which can be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeRecords {
    /// Offset of the heap dump record.
    pub offset: usize,
    /// Number of its heap dump in the file, from 0.
    pub dump: usize,
    /// `true` if the heap dump is a single record.
    pub is_single: bool,
    /// Microseconds since the header's time.
    pub time_us: u32,
    /// Ranges of whole sub-records, in file order. The range of a giant record is divided.
    pub ranges: Vec<Range<usize>>,
}

/// Counts of whole sub-records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubRecordCounts {
    /// Instances.
    pub instances: u64,
    /// Arrays of references.
    pub object_arrays: u64,
    /// Primitive arrays.
    pub primitive_arrays: u64,
    /// Class dumps.
    pub classes: u64,
    /// GC roots.
    pub roots: u64,
    /// GC roots that are threads.
    pub thread_roots: u64,
}

impl SubRecordCounts {
    /// Returns the number of objects, including class objects.
    pub fn objects(&self) -> u64 {
        self.instances + self.object_arrays + self.primitive_arrays + self.classes
    }

    /// Subtracts the counts of `other`.
    fn subtract(&mut self, other: &Self) {
        self.instances -= other.instances;
        self.object_arrays -= other.object_arrays;
        self.primitive_arrays -= other.primitive_arrays;
        self.classes -= other.classes;
        self.roots -= other.roots;
        self.thread_roots -= other.thread_roots;
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.instances += other.instances;
        self.object_arrays += other.object_arrays;
        self.primitive_arrays += other.primitive_arrays;
        self.classes += other.classes;
        self.roots += other.roots;
        self.thread_roots += other.thread_roots;
    }
}

/// Contents of the heap dumps of a part.
#[derive(Debug, Clone, Default)]
pub struct HeapRemains {
    /// Heap dump records, in file order.
    pub segments: Vec<WholeRecords>,
    /// Counts of sub-records.
    pub counts: SubRecordCounts,
    /// Offsets of class dumps, ascending.
    pub class_dumps: Vec<usize>,
    /// Classes of arrays of references.
    pub array_classes: IdSet<ObjectId>,
    /// Instances of classes that were not known when they were read, by class.
    pub of_unknown_classes: IdMap<ObjectId, u64>,
    /// Instances with more or fewer bytes than their class declares.
    pub odd_instances: u64,
    /// Problems of the first damaged regions.
    pub problems: Vec<Problem>,
    /// Number of damaged regions.
    pub damaged_regions: u64,
    /// Number of bytes in the damaged regions.
    pub skipped_bytes: u64,
}

impl HeapRemains {
    /// Adds the contents of the next heap dump record.
    fn add(&mut self, records: WholeRecords, found: Self) {
        self.segments.push(records);
        self.counts.add(&found.counts);
        self.class_dumps.extend(found.class_dumps);
        self.array_classes.extend(found.array_classes);
        for (class, count) in found.of_unknown_classes {
            *self.of_unknown_classes.entry(class).or_default() += count;
        }
        self.odd_instances += found.odd_instances;
        self.damaged_regions += found.damaged_regions;
        self.skipped_bytes += found.skipped_bytes;
        self.problems.extend(found.problems);
        self.problems.truncate(MAX_PROBLEMS);
    }
}

/// The classes at the start of the parts' heap dumps, by which objects are found after a damaged region.
#[derive(Debug)]
pub struct ClassPreview(Preview);

impl ClassPreview {
    /// Reads the start of the heap dumps of all parts.
    pub fn read(parts: &[DumpPart<'_>]) -> Option<Self> {
        let id_size = parts.first()?.header.id_size;
        Some(Self(Preview::of_parts(id_size, parts.iter().map(|part| (part.bytes, &part.contents)))))
    }
}

/// Visitor that collects the whole sub-records of one heap dump record.
struct RemainsCollector<'k> {
    known: &'k Preview,
    found: HeapRemains,
    last_array_class: ObjectId,
    /// Offset of the last object.
    last: usize,
}

impl<'k> RemainsCollector<'k> {
    fn new(known: &'k Preview) -> Self {
        Self { known, found: HeapRemains::default(), last_array_class: ObjectId::NULL, last: 0 }
    }
}

impl<'a> HeapVisitor<'a> for RemainsCollector<'_> {
    fn instance(&mut self, record: Instance<'a>) {
        self.last = record.offset;
        self.found.counts.instances += 1;
        match self.known.class(record.class) {
            Some(Some(bytes)) => self.found.odd_instances += u64::from(bytes != record.fields.len() as u64),
            _ => *self.found.of_unknown_classes.entry(record.class).or_default() += 1,
        }
    }
    fn object_array(&mut self, record: ObjectArray<'a>) {
        self.last = record.offset;
        self.found.counts.object_arrays += 1;
        if record.class != self.last_array_class {
            self.last_array_class = record.class;
            self.found.array_classes.insert(record.class);
        }
    }
    fn primitive_array(&mut self, record: PrimitiveArray<'a>) {
        self.last = record.offset;
        self.found.counts.primitive_arrays += 1;
    }
    fn class(&mut self, record: ClassDump<'a>) {
        self.found.counts.classes += 1;
        self.found.class_dumps.push(record.offset);
    }
    fn root(&mut self, _: usize, root: RootRecord) {
        self.found.counts.roots += 1;
        self.found.counts.thread_roots += u64::from(root.kind == RootKind::ThreadObject);
    }
}

/// Reads the heap dumps of a part, on all cores.
pub fn read_heap(part: &DumpPart<'_>, preview: &ClassPreview, progress: &dyn Progress) -> HeapRemains {
    let dumps = part.contents.dumps.iter().enumerate();
    let segments: Vec<(usize, bool, Segment)> = dumps
        .flat_map(|(number, dump)| {
            let is_only = dump.segments.len() == 1;
            dump.segments.iter().map(move |segment| (number, is_only, *segment))
        })
        .collect();
    let read = |(dump, is_only, segment): &(usize, bool, Segment)| {
        let (offset, bytes) = (segment.start - RECORD_HEADER, part.bytes);
        let record = Record::at(bytes, offset);
        let is_single = *is_only && record.is_some_and(|record| record.tag == tag::HEAP_DUMP);
        let time_us = record.map_or(0, |record| record.time_us);
        let (ranges, found) = read_segment(part, preview, *segment);
        progress.advance((segment.end - segment.start) as u64);
        (WholeRecords { offset, dump: *dump, is_single, time_us, ranges }, found)
    };
    let mut all = HeapRemains::default();
    for segments in segments.chunks(BATCH) {
        let found: Vec<(WholeRecords, HeapRemains)> = segments.par_iter().map(read).collect();
        found.into_iter().for_each(|(records, found)| all.add(records, found));
    }
    if all.damaged_regions > all.problems.len() as u64 {
        all.problems.push(chunks::more_regions(all.damaged_regions));
    }
    all
}

/// Reads one heap dump record: the ranges of its whole sub-records, and their contents.
fn read_segment(
    part: &DumpPart<'_>,
    ClassPreview(known): &ClassPreview,
    segment: Segment,
) -> (Vec<Range<usize>>, HeapRemains) {
    let Segment { start, end: limit } = segment;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut add = |range: Range<usize>| {
        let joins = |last: &&mut Range<usize>| {
            last.end == range.start && last.len().saturating_add(range.len()) <= MAX_RANGE
        };
        match ranges.last_mut().filter(joins) {
            Some(last) => last.end = range.end,
            None if range.is_empty() => {}
            None => ranges.push(range),
        }
    };
    let mut collector = RemainsCollector::new(known);
    let mut at = start;
    while at < limit {
        // One walk if the record is not giant, so that a damaged region is not divided.
        let end = if limit - at <= 2 * STEP { limit } else { at + STEP };
        let chunk = RecordChunk { start: at, end, limit };
        let (bytes, id_size) = (part.bytes, part.header.id_size);
        let mut from = at;
        at = chunks::walk(bytes, id_size, known, &chunk, &mut collector, |collector, skip| {
            add(from..skip.from);
            from = skip.to;
            let found = &mut collector.found;
            found.damaged_regions += 1;
            found.skipped_bytes += (skip.to - skip.from) as u64;
            if found.problems.len() < MAX_PROBLEMS {
                found.problems.push(skip.problem(bytes));
            }
        });
        // The last sub-record of a step can be giant itself.
        let last = collector.last;
        if at - from > MAX_RANGE && (from..at).contains(&last) {
            add(from..last);
            from = last;
        }
        if u32::try_from(at - from).is_ok() {
            add(from..at);
        } else {
            // Only a record whose length has wrapped can contain it.
            let mut one = RemainsCollector::new(known);
            let _ = hprof_parser::heap::visit_one(bytes, id_size, from, limit, &mut one);
            let found = &mut collector.found;
            found.counts.subtract(&one.found.counts);
            found.damaged_regions += 1;
            found.skipped_bytes += (at - from) as u64;
            if found.problems.len() < MAX_PROBLEMS {
                found.problems.push(giant(from, at));
            }
        }
    }
    (ranges, collector.found)
}

/// Returns the problem of a sub-record that is larger than a record can state.
fn giant(from: usize, to: usize) -> Problem {
    let text = format!(
        "an object of {} bytes is not saved: a record can hold at most 4 GiB",
        group_digits((to - from) as u64)
    );
    Problem::damage(ProblemKind::BadSubRecord, text, Some(from as u64)).skipping(to - from)
}

/// Visits the whole sub-records of all segments, on all cores, each segment with a visitor of its own. Returns the
/// visitors in file order.
fn visit<'s, V>(
    part: &DumpPart<'_>,
    segments: impl IntoIterator<Item = &'s WholeRecords>,
    new: impl Fn() -> V + Sync,
) -> Vec<V>
where
    V: for<'a> HeapVisitor<'a> + Send,
{
    let walk = |segment: &WholeRecords| {
        let mut visitor = new();
        for range in &segment.ranges {
            let (bytes, id_size) = (part.bytes, part.header.id_size);
            hprof_parser::heap::walk(bytes, id_size, range.start, range.end, range.end, &mut visitor);
        }
        visitor
    };
    let segments: Vec<&WholeRecords> = segments.into_iter().collect();
    segments.into_par_iter().map(walk).collect()
}

/// Returns the IDs of the instances of `classes`, in file order, up to a maximum number.
pub fn instances_of(
    part: &DumpPart<'_>,
    segments: &[WholeRecords],
    classes: &IdSet<ObjectId>,
    max: usize,
) -> Vec<ObjectId> {
    /// Visitor that collects the IDs of instances of the given classes.
    struct InstanceFinder<'c> {
        classes: &'c IdSet<ObjectId>,
        found: Vec<ObjectId>,
        max: usize,
    }
    impl<'a> HeapVisitor<'a> for InstanceFinder<'_> {
        fn instance(&mut self, record: Instance<'a>) {
            if self.classes.contains(&record.class) {
                self.found.push(record.id);
            }
        }
        fn go_on(&mut self) -> bool {
            self.found.len() < self.max
        }
    }
    let finders = visit(part, segments, || InstanceFinder { classes, found: Vec::new(), max });
    finders.into_iter().flat_map(|finder| finder.found).take(max).collect()
}

/// A value of a reference field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceSample {
    /// Class of the instance.
    pub class: ObjectId,
    /// Offset of the field in the instance's values.
    pub offset: usize,
    /// Object that it refers to.
    pub target: ObjectId,
}

/// Maximum number of samples of a field in a segment.
const MAX_SAMPLES: u32 = 4;
/// Maximum number of segments from which samples are taken.
const SAMPLED_SEGMENTS: usize = 256;

/// Returns a few values, not null, of fields in the instances of each segment. `fields` has the offsets of the fields
/// in the values of an instance, by class.
pub fn reference_samples(
    part: &DumpPart<'_>,
    segments: &[WholeRecords],
    fields: &IdMap<ObjectId, Vec<usize>>,
) -> Vec<ReferenceSample> {
    /// Visitor that collects values of reference fields.
    struct Sampler<'f> {
        fields: &'f IdMap<ObjectId, Vec<usize>>,
        counts: IdMap<ObjectId, u32>,
        found: Vec<ReferenceSample>,
        id_size: IdSize,
    }
    impl<'a> HeapVisitor<'a> for Sampler<'_> {
        fn instance(&mut self, record: Instance<'a>) {
            let Some(offsets) = self.fields.get(&record.class) else { return };
            let count = self.counts.entry(record.class).or_default();
            if *count >= MAX_SAMPLES {
                return;
            }
            let before = self.found.len();
            for &offset in offsets {
                let target = be_id(record.fields, offset, self.id_size).map(ObjectId);
                if let Some(target) = target.filter(|target| !target.is_null()) {
                    self.found.push(ReferenceSample { class: record.class, offset, target });
                }
            }
            *count += u32::from(self.found.len() > before);
        }
    }
    let id_size = part.header.id_size;
    let new = || Sampler { fields, counts: IdMap::default(), found: Vec::new(), id_size };
    let step = segments.len().div_ceil(SAMPLED_SEGMENTS).max(1);
    let sampled = segments.iter().step_by(step);
    visit(part, sampled, new).into_iter().flat_map(|sampler| sampler.found).collect()
}

/// Returns the ID and the class ID of each array of references among `ids`.
pub fn classes_of_arrays(
    part: &DumpPart<'_>,
    segments: &[WholeRecords],
    ids: &IdSet<ObjectId>,
) -> Vec<(ObjectId, ObjectId)> {
    /// Visitor that finds arrays of references by ID.
    struct ArrayFinder<'i> {
        ids: &'i IdSet<ObjectId>,
        found: Vec<(ObjectId, ObjectId)>,
    }
    impl<'a> HeapVisitor<'a> for ArrayFinder<'_> {
        fn object_array(&mut self, record: ObjectArray<'a>) {
            if self.ids.contains(&record.id) {
                self.found.push((record.id, record.class));
            }
        }
    }
    let finders = visit(part, segments, || ArrayFinder { ids, found: Vec::new() });
    finders.into_iter().flat_map(|finder| finder.found).collect()
}
