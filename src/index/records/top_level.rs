//! What the top level of a dump holds: the locations of strings, frames and traces, the loaded classes, the threads, and for
//! each heap dump in the file the ranges of its sub-records. [`super::record_walk`] fills it.

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
    /// Offset just past the last.
    pub(crate) end: usize,
}

/// One heap dump of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HeapDump {
    /// Its segments, in the order of the file.
    pub(crate) segments: Vec<Segment>,
    /// Time since the header's, in microseconds, of its first record.
    pub(crate) time_us: u32,
    /// Whether a HEAP DUMP END closes it (or it is one HEAP DUMP record, which needs none).
    pub(crate) ended: bool,
    /// Whether its length was never filled in, so that nobody can tell whether its end is there.
    pub(crate) open: bool,
    /// Whether something between its segments was lost.
    pub(crate) broken: bool,
}

impl HeapDump {
    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| (segment.end - segment.start) as u64).sum()
    }
}

/// The location of a record that has an ID or a serial number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RecordLocation {
    /// The id or serial number.
    pub(crate) id: u64,
    /// Offset of its top-level record in the file.
    pub(crate) offset: u64,
}

impl From<RecordLocation> for PlaceRow {
    fn from(location: RecordLocation) -> Self {
        Self { id: location.id.into(), offset: location.offset.into() }
    }
}

/// What stands at the top level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    /// STRING records, ascending by id; after [`Contents::narrow`], of each id one.
    pub(crate) strings: Vec<RecordLocation>,
    /// STACK FRAME records, ascending by id.
    pub(crate) frames: Vec<RecordLocation>,
    /// STACK TRACE records, ascending by serial number.
    pub(crate) traces: Vec<RecordLocation>,
    /// LOAD CLASS records in the order of the file.
    pub(crate) loads: Vec<LoadClass>,
    /// Their offsets.
    pub(crate) load_offsets: Vec<u64>,
    /// After [`Contents::narrow`], the LOAD CLASS record that names each class.
    pub(crate) class_loads: Vec<LoadClass>,
    /// Serial numbers of UNLOAD CLASS records.
    pub(crate) unloads: Vec<u32>,
    /// START THREAD records in the order of the file.
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
    /// The heap dumps.
    pub(crate) dumps: Vec<HeapDump>,
    /// What is wrong at the top level: the first places.
    pub(crate) problems: Vec<Problem>,
    /// Where the file has to end at least, as a record says that reaches beyond its end.
    pub(crate) expected_end: Option<u64>,
    /// Bytes at the top level that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Places at the top level where records are lost.
    pub(crate) lost_records: u64,
    /// Heap dump records without a sub-record.
    pub(crate) empty_segments: u64,
    /// Whether there is a HEAP DUMP END.
    pub(crate) has_end: bool,
    /// Whether the file ends between two records, before its time.
    pub(crate) ends_early: bool,
    /// Whether nobody can tell where the file had to end.
    pub(crate) end_unknown: bool,
    /// Heap dumps that are not among `dumps`, as there are too many.
    pub(crate) more_heap_dumps: u64,
}

impl Contents {
    /// The number of the heap dump that is asked for, from 1; the last by default, 0 if there is none.
    ///
    /// # Errors
    /// [`NoSuchHeapDump`].
    pub(crate) fn heap_dump_number(&self, wanted: Option<u32>) -> Result<usize, NoSuchHeapDump> {
        let there = self.dumps.len();
        let Some(wanted) = wanted else { return Ok(there) };
        let number = usize::try_from(wanted).ok().filter(|number| (1..=there).contains(number));
        number.ok_or(NoSuchHeapDump { wanted, there })
    }

    /// Bytes that [`Contents::narrow`] allocates.
    pub(crate) fn narrow_bytes(&self) -> u64 {
        let loads = self.loads.len();
        bytes::<RecordLocation>(loads).saturating_add(bytes::<LoadClass>(loads))
    }

    /// Keeps of records with the same id those that belong to heap dump `number`, from 1: files of several runs use ids
    /// again. Those are the last ones before the dump's end, or the first ones behind it.
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

    /// Ids of the class objects that LOAD CLASS records before the end of `dump` name. Those behind it may be of another
    /// run of the JVM, in which the addresses are others.
    pub(crate) fn loaded_before_end_of(&self, dump: &HeapDump) -> Vec<u64> {
        let end = dump.segments.last().map_or(u64::MAX, |segment| segment.end as u64);
        let placed = self.loads.iter().zip(&self.load_offsets);
        placed.filter(|(_, offset)| **offset < end).map(|(load, _)| load.id.0).collect()
    }

    /// Whether an agent has recorded something besides a heap dump: files of such recordings need none.
    pub(crate) fn has_recordings(&self) -> bool {
        let offsets = [&self.alloc_sites, &self.cpu_samples, &self.heap_summaries, &self.control_settings];
        offsets.iter().any(|offsets| !offsets.is_empty())
            || !self.threads.is_empty()
            || !self.ended_threads.is_empty()
    }

    /// The offset of the STRING record with this id.
    pub(crate) fn string(&self, id: u64) -> Option<u64> {
        find_location(&self.strings, id)
    }
}

/// The offset that belongs to `id` in places that ascend.
pub(crate) fn find_location(places: &[RecordLocation], id: u64) -> Option<u64> {
    let at = places.binary_search_by_key(&id, |place| place.id).ok()?;
    places.get(at).map(|place| place.offset)
}

/// Sorts by id and keeps of equal ids the last before `end`, or else the first behind it.
fn keep_one_each(places: &mut Vec<RecordLocation>, end: u64) {
    if places.is_sorted_by(|a, b| a.id < b.id) {
        return;
    }
    // Behind `end` first, from far to near; then before it, from first to last: the last of a group is the one.
    places.sort_unstable_by_key(|place| {
        let before = place.offset < end;
        (place.id, before, if before { place.offset } else { u64::MAX - place.offset })
    });
    places.reverse();
    places.dedup_by_key(|place| place.id);
    places.reverse();
}
