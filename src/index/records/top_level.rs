//! Contents of a dump's top level: the locations of strings, frames and traces, the loaded classes, the
//! threads, and for each heap dump in the file the ranges of its sub-records. [`super::record_walk`]
//! fills it.

use hprof_parser::record::{LoadClass, StartThread};

use super::error::NoSuchHeapDump;
use crate::model::problem::Problem;
use crate::model::tables::PlaceRow;
use crate::storage::allowance::bytes;

/// A range of sub-records: the body of one HEAP DUMP or HEAP DUMP SEGMENT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Offset of the first sub-record.
    pub(crate) start: usize,
    /// End offset of the last sub-record (exclusive).
    pub(crate) end: usize,
}

/// One heap dump of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeapDump {
    /// Segments, in file order.
    pub(crate) segments: Vec<Segment>,
    /// Microseconds from the header's time to the first record.
    pub(crate) time_us: u32,
    /// `true` if a HEAP DUMP END terminates it (or it is a single HEAP DUMP record, which needs none).
    pub(crate) ended: bool,
    /// `true` if its length was never filled in, so that its end is unknown.
    pub(crate) open: bool,
    /// `true` if something between its segments was lost.
    pub(crate) broken: bool,
}

impl HeapDump {
    /// Returns the total size of all segments in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| (segment.end - segment.start) as u64).sum()
    }
}

/// Location of a record that has an ID or a serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordLocation {
    /// ID or serial number.
    pub(crate) id: u64,
    /// Offset of the top-level record in the file.
    pub(crate) offset: u64,
}

impl From<RecordLocation> for PlaceRow {
    fn from(location: RecordLocation) -> Self {
        Self { id: location.id.into(), offset: location.offset.into() }
    }
}

/// Contents of the top level of a dump: all records except sub-records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    /// STRING records, ascending by ID; after [`Contents::narrow`], one per ID.
    pub(crate) strings: Vec<RecordLocation>,
    /// STACK FRAME records, ascending by ID.
    pub(crate) frames: Vec<RecordLocation>,
    /// STACK TRACE records, ascending by serial number.
    pub(crate) traces: Vec<RecordLocation>,
    /// LOAD CLASS records in file order.
    pub(crate) loads: Vec<LoadClass>,
    /// Offsets of the LOAD CLASS records.
    pub(crate) load_offsets: Vec<u64>,
    /// LOAD CLASS record that names each class, after [`Contents::narrow`].
    pub(crate) class_loads: Vec<LoadClass>,
    /// Serial numbers of UNLOAD CLASS records.
    pub(crate) unloads: Vec<u32>,
    /// START THREAD records in file order.
    pub(crate) threads: Vec<StartThread>,
    /// Serial numbers of END THREAD records.
    pub(crate) ended_threads: Vec<u32>,
    /// Offsets of ALLOC SITES records.
    pub(crate) alloc_sites: Vec<u64>,
    /// Offsets of CPU SAMPLES records.
    pub(crate) cpu_samples: Vec<u64>,
    /// Offsets of HEAP SUMMARY records.
    pub(crate) heap_summaries: Vec<u64>,
    /// Offsets of CONTROL SETTINGS records.
    pub(crate) control_settings: Vec<u64>,
    /// Rows of STATED SIZES records, with the number of the heap dump that they belong to, from 1.
    pub(crate) stated_sizes: Vec<(u32, Segment)>,
    /// Ranges of consecutive whole records other than heap dumps, in file order, with their headers.
    pub(crate) records: Vec<Segment>,
    /// Heap dumps.
    pub(crate) dumps: Vec<HeapDump>,
    /// Problems at the top level: the first ones.
    pub(crate) problems: Vec<Problem>,
    /// Minimum size of the complete file, from a record that extends beyond its end.
    pub(crate) expected_end: Option<u64>,
    /// Number of bytes at the top level that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Number of damaged regions at the top level.
    pub(crate) lost_records: u64,
    /// Heap dump records without a sub-record.
    pub(crate) empty_segments: u64,
    /// `true` if there is a HEAP DUMP END.
    pub(crate) has_end: bool,
    /// `true` if the file is truncated between two records.
    pub(crate) ends_early: bool,
    /// `true` if the intended end of the file cannot be determined.
    pub(crate) end_unknown: bool,
    /// Number of heap dumps that are not in `dumps` because there are too many.
    pub(crate) more_heap_dumps: u64,
}

impl Contents {
    /// Returns the number of the requested heap dump, from 1; the last by default, 0 if there is none.
    ///
    /// # Errors
    /// [`NoSuchHeapDump`].
    pub(crate) fn heap_dump_number(&self, wanted: Option<u32>) -> Result<usize, NoSuchHeapDump> {
        let there = self.dumps.len();
        let Some(wanted) = wanted else { return Ok(there) };
        let number = usize::try_from(wanted).ok().filter(|number| (1..=there).contains(number));
        number.ok_or(NoSuchHeapDump { wanted, there })
    }

    /// Returns the memory that [`Contents::narrow`] allocates, in bytes.
    pub(crate) fn narrow_bytes(&self) -> u64 {
        let loads = self.loads.len();
        bytes::<RecordLocation>(loads).saturating_add(bytes::<LoadClass>(loads))
    }

    /// Keeps, of records with the same ID, those that belong to heap dump `number`, from 1: files of
    /// several runs reuse IDs. These are the last ones before the dump's end, or else the first ones
    /// after it.
    pub(crate) fn narrow(&mut self, number: usize) {
        let dump = number.checked_sub(1).and_then(|at| self.dumps.get(at));
        let end = dump.and_then(|dump| dump.segments.last()).map_or(u64::MAX, |segment| segment.end as u64);
        for places in [&mut self.strings, &mut self.frames, &mut self.traces] {
            keep_one_each(places, end);
        }
        let placed = self.loads.iter().zip(&self.load_offsets);
        let mut places: Vec<RecordLocation> =
            placed.clone().map(|(load, offset)| RecordLocation { id: load.id.0, offset: *offset }).collect();
        keep_one_each(&mut places, end);
        let naming = placed.filter(|(load, offset)| find_location(&places, load.id.0) == Some(**offset));
        self.class_loads = naming.map(|(load, _)| *load).collect();
    }

    /// Returns the IDs of the class objects that LOAD CLASS records before the end of `dump` name. Later
    /// ones may belong to another run of the JVM, with different addresses.
    pub(crate) fn loaded_before_end_of(&self, dump: &HeapDump) -> Vec<u64> {
        let end = dump.segments.last().map_or(u64::MAX, |segment| segment.end as u64);
        let placed = self.loads.iter().zip(&self.load_offsets);
        placed.filter(|(_, offset)| **offset < end).map(|(load, _)| load.id.0).collect()
    }

    /// Returns `true` if an agent recorded something other than a heap dump: such files need not contain one.
    pub(crate) fn has_recordings(&self) -> bool {
        let offsets = [&self.alloc_sites, &self.cpu_samples, &self.heap_summaries, &self.control_settings];
        offsets.iter().any(|offsets| !offsets.is_empty())
            || !self.threads.is_empty()
            || !self.ended_threads.is_empty()
    }

    /// Returns `true` if the dump was made from a text report: such dumps state the sizes of all objects.
    pub(crate) fn is_from_text(&self) -> bool {
        !self.stated_sizes.is_empty()
    }

    /// Returns the offset of the STRING record with this ID.
    pub(crate) fn string(&self, id: u64) -> Option<u64> {
        find_location(&self.strings, id)
    }
}

/// Returns the offset for `id` in ascending locations.
pub(crate) fn find_location(places: &[RecordLocation], id: u64) -> Option<u64> {
    let at = places.binary_search_by_key(&id, |place| place.id).ok()?;
    places.get(at).map(|place| place.offset)
}

/// Sorts by ID and keeps, of equal IDs, the last before `end`, or else the first after it.
fn keep_one_each(places: &mut Vec<RecordLocation>, end: u64) {
    if places.is_sorted_by(|a, b| a.id < b.id) {
        return;
    }
    // Those after `end` first, in descending order; then those before it, ascending: the last of a group
    // is kept.
    places.sort_unstable_by_key(|place| {
        let before = place.offset < end;
        (place.id, before, if before { place.offset } else { u64::MAX - place.offset })
    });
    places.reverse();
    places.dedup_by_key(|place| place.id);
    places.reverse();
}
