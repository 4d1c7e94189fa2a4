//! Heap over time: what collections left, and whether that grows.

use std::fmt;

use rustc_hash::FxHashMap;

use hprof_index::storage::human_bytes::{HumanBytes, grouped};
use hprof_jfr::{Chunk, Record, Value};

use super::class_counts::{ClassCounts, ClassOverTime};
use super::stacks::Names;
use crate::sorting::SortRows;

/// Minimum number of collections to tell a leak from a spike.
pub const MIN_COLLECTIONS: usize = 12;
/// Minimum number of full collections, which leave no garbage, to look at these alone.
pub const MIN_FULL_COLLECTIONS: usize = 4;
/// Names of collections of the whole heap that stop the program (`GCName` in JDK's `gcName.hpp`). Concurrent ones, such as
/// `G1Old`, end while the program allocates.
const FULL: [&str; 5] = ["G1Full", "SerialOld", "ParallelOld", "PSMarkSweep", "MarkSweepCompact"];
/// Number of parts of the recording whose floors are compared. The first part, in which a program starts, is not.
const PARTS: usize = 4;
/// Maximum number of collections, and of events about the heap of a chunk.
const MAX_COLLECTIONS: usize = 1 << 20;

/// Heap over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapOverTime {
    /// Collections, in the order of time.
    pub collections: Vec<Collection>,
    /// Memory limit of the container in bytes, if the JVM ran in one that has a limit.
    pub memory_limit_bytes: Option<u64>,
    /// Classes whose objects were counted, those that grew most first.
    pub classes: Vec<ClassOverTime>,
    /// Number of events that were not read, since there were too many. Without them there is no trend.
    pub left_out: u64,
}

/// The heap after a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collection {
    /// End, in nanoseconds since 1970.
    pub nanos: i64,
    /// Number of the collection in its JVM.
    pub gc_id: i64,
    /// Bytes used before.
    pub before_bytes: Option<u64>,
    /// Bytes used after.
    pub used_bytes: u64,
    /// Committed bytes after.
    pub committed_bytes: u64,
    /// Bytes of metaspace used after.
    pub metaspace_bytes: Option<u64>,
    /// `true` if the whole heap was collected while the program stood still.
    pub is_full: bool,
}

/// Trend of the floor: the least that collections of a part of the recording left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapTrend {
    /// Verdict.
    pub verdict: HeapVerdict,
    /// Number of collections that were looked at.
    pub collections: u64,
    /// `true` if these are full collections.
    pub is_full: bool,
    /// Floor of the second part of the recording; of all of it if there are too few collections.
    pub first_floor_bytes: u64,
    /// Floor of the last part of the recording; of all of it if there are too few collections.
    pub last_floor_bytes: u64,
    /// Floor of the third part of the recording.
    middle_floor_bytes: u64,
    /// Maximum that a collection of the last three parts left; of all of them if there are too few.
    pub peak_bytes: u64,
    /// Memory limit of the container in bytes, if the JVM ran in one that has a limit.
    pub memory_limit_bytes: Option<u64>,
    /// Class that grew most of those whose objects were counted, if one grew.
    pub most_grown: Option<ClassOverTime>,
}

/// Verdict about a trend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapVerdict {
    /// There are too few collections.
    TooFew,
    /// The floor rises: what a leak looks like.
    Rising,
    /// The floor falls.
    Falling,
    /// The floors are within a tenth, and some collections left at least twice as much.
    Spike,
    /// The floors are within a tenth.
    Flat,
    /// The floors differ, without one direction.
    Unsteady,
}

impl HeapVerdict {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooFew => "too_few",
            Self::Rising => "rising",
            Self::Falling => "falling",
            Self::Spike => "spike",
            Self::Flat => "flat",
            Self::Unsteady => "unsteady",
        }
    }
}

impl HeapOverTime {
    /// Describes what was not read, if there was too much.
    pub(super) fn problem(&self) -> Option<String> {
        let what = "events about the heap are not read, as there are too many";
        (self.left_out > 0).then(|| format!("{} {what}", grouped(self.left_out)))
    }

    /// Returns the last collection up to a time in nanoseconds since 1970, such as that of a dump.
    pub fn before(&self, nanos: i64) -> Option<&Collection> {
        let end = self.collections.partition_point(|collection| collection.nanos <= nanos);
        self.collections.get(..end)?.last()
    }

    /// Returns the least that collections left in each of these equal parts of the time, as far as there were any: of the
    /// collections that the trend looks at.
    pub fn floors(&self, parts: usize) -> Vec<Collection> {
        let (looked_at, _) = self.looked_at();
        let time = |at: Option<&&Collection>| at.map_or(0, |collection| i128::from(collection.nanos));
        let (start, end) = (time(looked_at.first()), time(looked_at.last()));
        let part = |collection: &Collection| {
            let since = i128::from(collection.nanos) - start;
            since * parts as i128 / (end - start + 1).max(1)
        };
        let same_part = |a: &&Collection, b: &&Collection| part(a) == part(b);
        let floor = |part: &[&Collection]| part.iter().min_by_key(|of| of.used_bytes).map(|of| **of);
        looked_at.chunk_by(same_part).filter_map(floor).collect()
    }

    /// Returns the collections that the trend looks at, and whether these are full ones.
    fn looked_at(&self) -> (Vec<&Collection>, bool) {
        let full: Vec<&Collection> = self.collections.iter().filter(|of| of.is_full).collect();
        match full.len() >= MIN_FULL_COLLECTIONS {
            true => (full, true),
            false => (self.collections.iter().collect(), false),
        }
    }

    /// Returns the trend; `None` if the recording contains no collections, or too many to read.
    pub fn trend(&self) -> Option<HeapTrend> {
        let (looked_at, is_full) = self.looked_at();
        let used: Vec<u64> = looked_at.iter().map(|of| of.used_bytes).collect();
        if self.left_out > 0 {
            return None;
        }
        let least = |used: &[u64]| used.iter().min().copied().unwrap_or(0);
        let most = |used: &[u64]| used.iter().max().copied();
        let trend = |verdict, [first, middle, last]: [u64; 3], peak_bytes| HeapTrend {
            verdict,
            collections: used.len() as u64,
            is_full,
            first_floor_bytes: first,
            middle_floor_bytes: middle,
            last_floor_bytes: last,
            peak_bytes,
            memory_limit_bytes: self.memory_limit_bytes,
            most_grown: self.classes.first().filter(|class| class.growth().is_some()).cloned(),
        };
        let peak = most(&used)?;
        if !is_full && used.len() < MIN_COLLECTIONS {
            return Some(trend(HeapVerdict::TooFew, [least(&used); 3], peak));
        }
        let bound = |part: usize| used.len() * part / PARTS;
        let part = |from: usize, to: usize| used.get(bound(from)..bound(to)).unwrap_or_default();
        let floors = [1, 2, 3].map(|at| least(part(at, at + 1)));
        let peak = most(part(1, PARTS)).unwrap_or(peak);
        let [first, middle, last] = floors;
        let (lowest, highest) = (first.min(middle).min(last), first.max(middle).max(last));
        let verdict = match () {
            () if (highest - lowest).saturating_mul(10) < lowest || highest == lowest => {
                match peak > highest && peak / 2 >= highest {
                    true => HeapVerdict::Spike,
                    false => HeapVerdict::Flat,
                }
            }
            () if first < middle && middle < last => HeapVerdict::Rising,
            () if first > middle && middle > last => HeapVerdict::Falling,
            () => HeapVerdict::Unsteady,
        };
        Some(trend(verdict, floors, peak))
    }
}

/// The sentence about a trend.
impl fmt::Display for HeapTrend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, middle, last, peak] =
            [self.first_floor_bytes, self.middle_floor_bytes, self.last_floor_bytes, self.peak_bytes]
                .map(HumanBytes);
        let plural = if self.collections == 1 { "" } else { "s" };
        let full = if self.is_full { "full " } else { "" };
        let count = format!("{} {full}collection{plural}", grouped(self.collections));
        match self.verdict {
            HeapVerdict::TooFew => {
                write!(f, "{count}: too few to tell a leak from a spike (at least {MIN_COLLECTIONS})")?;
            }
            HeapVerdict::Rising => {
                write!(f, "the floor after {count} rose from {first} to {last}, as that of a leak does")?;
            }
            HeapVerdict::Falling => write!(f, "the floor after {count} fell from {first} to {last}")?,
            HeapVerdict::Spike => {
                write!(
                    f,
                    "the floor after {count} stayed within a tenth ({first}, then {last}), but up to {peak} were used after \
                     one, which is "
                )?;
                f.write_str(if self.is_full {
                    "a spike, not a leak"
                } else {
                    "a spike, or garbage in the old generation, not a leak"
                })?;
            }
            HeapVerdict::Flat => {
                write!(
                    f,
                    "the floor after {count} stayed within a tenth ({first}, then {last}): no sign of a leak"
                )?;
            }
            HeapVerdict::Unsteady => {
                write!(
                    f,
                    "the floor after {count} went from {first} over {middle} to {last}, in no one direction: this tells \
                     neither of a leak nor of none"
                )?;
            }
        }
        if self.verdict == HeapVerdict::Rising && !self.is_full {
            f.write_str("; without enough full collections, it can contain garbage")?;
        }
        if let Some(ClassOverTime { class, counts, first, last }) = &self.most_grown {
            let (first, last) = (HumanBytes(first.bytes), HumanBytes(last.bytes));
            write!(
                f,
                "; of the classes that were counted, {class} grew most, from {first} to {last} in {counts} counts"
            )?;
        }
        Ok(())
    }
}

/// An event about the heap.
#[derive(Debug, Clone, Copy)]
enum HeapEvent {
    /// Use of the heap.
    Summary { gc_id: i64, is_after: bool, nanos: i64, used: u64, committed: u64 },
    /// Use of metaspace after a collection.
    Metaspace { gc_id: i64, used: u64 },
    /// Full collection.
    Full { gc_id: i64 },
    /// Memory limit of the container.
    Limit(u64),
}

/// Type of a [`HeapEvent`].
#[derive(Debug, Clone, Copy)]
pub(super) enum HeapEventKind {
    Summary,
    Metaspace,
    Collection,
    Container,
    Objects,
}

impl HeapEventKind {
    /// Returns the kind of the events of a type.
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "jdk.GCHeapSummary" => Self::Summary,
            "jdk.MetaspaceSummary" => Self::Metaspace,
            "jdk.GarbageCollection" => Self::Collection,
            "jdk.ContainerConfiguration" => Self::Container,
            "jdk.ObjectCount" | "jdk.ObjectCountAfterGC" => Self::Objects,
            _ => return None,
        })
    }

    /// Reads an event; `None` if it says nothing about the heap.
    fn read(self, chunk: &Chunk<'_>, fields: &Record<'_>) -> Option<HeapEvent> {
        let bytes = |of: &Record<'_>, name| of.integer(name).and_then(|bytes| u64::try_from(bytes).ok());
        let is_after = || match fields.get("when") {
            Some(Value::Constant(when)) => {
                when.record().and_then(|when| when.text("when")).is_some_and(|when| when.starts_with("After"))
            }
            _ => false,
        };
        let gc_id = fields.integer("gcId");
        Some(match self {
            Self::Summary => HeapEvent::Summary {
                gc_id: gc_id?,
                is_after: is_after(),
                nanos: chunk.nanos(fields.integer("startTime")?),
                used: bytes(fields, "heapUsed")?,
                committed: bytes(&fields.record("heapSpace")?, "committedSize")?,
            },
            Self::Metaspace if is_after() => {
                HeapEvent::Metaspace { gc_id: gc_id?, used: bytes(&fields.record("metaspace")?, "used")? }
            }
            Self::Metaspace | Self::Objects => return None,
            Self::Collection => {
                let name = fields.record("name")?;
                let name = name.text("gcName").or_else(|| name.text("name"))?;
                FULL.contains(&&*name).then_some(HeapEvent::Full { gc_id: gc_id? })?
            }
            // A container without a limit has -1, or a number beyond all memory.
            Self::Container => {
                HeapEvent::Limit(bytes(fields, "memoryLimit").filter(|limit| (1..1 << 60).contains(limit))?)
            }
        })
    }
}

/// Events about the heap of a chunk, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct HeapEvents {
    events: Vec<HeapEvent>,
    classes: ClassCounts,
    left_out: u64,
}

impl HeapEvents {
    /// Reads an event.
    pub(super) fn read(
        &mut self,
        kind: HeapEventKind,
        chunk: &Chunk<'_>,
        fields: &Record<'_>,
        names: &mut Names,
    ) {
        if matches!(kind, HeapEventKind::Objects) {
            return self.classes.read(chunk, fields, names);
        }
        let Some(event) = kind.read(chunk, fields) else { return };
        match self.events.len() < MAX_COLLECTIONS {
            true => self.events.push(event),
            false => self.left_out += 1,
        }
    }
}

/// Collections while events are added.
#[derive(Debug, Default)]
pub(super) struct Collecting {
    collections: Vec<PartialCollection>,
    /// Place of the last collection of each number.
    last: FxHashMap<i64, usize>,
    memory_limit_bytes: Option<u64>,
    classes: ClassCounts,
    left_out: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct PartialCollection {
    gc_id: i64,
    before: Option<u64>,
    /// Time, used and committed bytes.
    after: Option<(i64, u64, u64)>,
    metaspace: Option<u64>,
    is_full: bool,
}

impl Collecting {
    /// Adds the events of a chunk.
    pub(super) fn add_all(&mut self, chunk: HeapEvents) {
        self.left_out += chunk.left_out;
        self.classes.add_all(chunk.classes);
        for event in chunk.events {
            match self.collections.len() < MAX_COLLECTIONS {
                true => self.add(event),
                false => self.left_out += 1,
            }
        }
    }

    /// Adds an event. Events of a collection are not always in the order of time, and numbers start anew with each JVM.
    fn add(&mut self, event: HeapEvent) {
        match event {
            HeapEvent::Summary { gc_id, is_after: true, nanos, used, committed } => {
                let of = self.of(gc_id, |of| of.after.is_some());
                of.after = Some((nanos, used, committed));
            }
            HeapEvent::Summary { gc_id, used, .. } => {
                self.of(gc_id, |of| of.before.is_some()).before = Some(used);
            }
            HeapEvent::Metaspace { gc_id, used } => {
                self.of(gc_id, |of| of.metaspace.is_some()).metaspace = Some(used);
            }
            HeapEvent::Full { gc_id } => self.of(gc_id, |of| of.is_full).is_full = true,
            HeapEvent::Limit(bytes) => self.memory_limit_bytes = Some(bytes),
        }
    }

    /// Returns the collection of a number; a new one if the known one has the fact.
    fn of(&mut self, gc_id: i64, has: impl Fn(&PartialCollection) -> bool) -> &mut PartialCollection {
        let known = self.last.get(&gc_id).copied();
        let known = known.filter(|at| self.collections.get(*at).is_some_and(|of| !has(of)));
        let at = known.unwrap_or(self.collections.len());
        if known.is_none() {
            self.last.insert(gc_id, at);
            self.collections.push(PartialCollection { gc_id, ..PartialCollection::default() });
        }
        #[allow(clippy::indexing_slicing)] // `at` is the place of one.
        &mut self.collections[at]
    }

    /// Returns the collections of which it is known what they left.
    pub(super) fn finish(self) -> HeapOverTime {
        let found = self.collections.into_iter().filter_map(|of| {
            let (nanos, used_bytes, committed_bytes) = of.after?;
            Some(Collection {
                nanos,
                gc_id: of.gc_id,
                before_bytes: of.before,
                used_bytes,
                committed_bytes,
                metaspace_bytes: of.metaspace,
                is_full: of.is_full,
            })
        });
        let mut collections: Vec<Collection> = found.collect();
        collections.sort_rows_by_key(|collection| collection.nanos);
        let (classes, classes_left_out) = self.classes.finish();
        let left_out = self.left_out + classes_left_out;
        HeapOverTime { collections, memory_limit_bytes: self.memory_limit_bytes, classes, left_out }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn heap(used: impl IntoIterator<Item = u64>, old: impl Fn(usize) -> bool) -> HeapOverTime {
        let mut collecting = Collecting::default();
        for (at, used) in used.into_iter().enumerate() {
            let gc_id = i64::try_from(at).unwrap();
            let of = |is_after, used| HeapEvent::Summary {
                gc_id,
                is_after,
                nanos: 10 - 20 * gc_id,
                used,
                committed: 1000,
            };
            collecting.add(of(true, used));
            collecting.add(of(false, used + 50));
            if old(at) {
                collecting.add(HeapEvent::Full { gc_id });
            }
        }
        collecting.finish()
    }

    fn verdict(used: &[u64]) -> HeapVerdict {
        // Times fall with the number.
        heap(used.iter().rev().copied(), |_| false).trend().unwrap().verdict
    }

    #[test]
    fn a_rising_floor_is_no_spike() {
        let rising: Vec<u64> = (0..24).map(|at| 100 + 10 * at + 40 * (at % 3)).collect();
        assert_eq!(verdict(&rising), HeapVerdict::Rising);
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert_eq!(verdict(&falling), HeapVerdict::Falling);
        // A program that starts.
        let started: Vec<u64> = (0..24).map(|at| if at < 6 { 10 * at } else { 100 + at % 3 }).collect();
        assert_eq!(verdict(&started), HeapVerdict::Flat);
        let spike: Vec<u64> = (0..24).map(|at| if at == 15 { 900 } else { 100 + at % 3 }).collect();
        assert_eq!(verdict(&spike), HeapVerdict::Spike);
        // Of young collections, it can be garbage that the next old one frees.
        let of = |is_full: bool| heap(spike.iter().copied(), |_| is_full).trend().unwrap().to_string();
        assert!(
            of(false).ends_with("a spike, or garbage in the old generation, not a leak"),
            "{}",
            of(false)
        );
        assert!(
            of(true).ends_with("up to 900 B were used after one, which is a spike, not a leak"),
            "{}",
            of(true)
        );
        assert_eq!(verdict(&rising[..11]), HeapVerdict::TooFew);
        assert_eq!(HeapOverTime::default().trend(), None);
    }

    /// Floors of the last three quarters.
    #[test]
    fn floors_that_differ_without_a_direction_tell_nothing() {
        let of = |floors: [u64; 4]| verdict(&floors.map(|floor| [floor; 6]).concat());
        assert_eq!(of([1, 100, 300, 250]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 200, 200]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 100, 400]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 105, 110]), HeapVerdict::Rising);
        assert_eq!(of([1, 100, 105, 109]), HeapVerdict::Flat);
        assert_eq!(of([900, 100, 100, 100]), HeapVerdict::Flat);
        assert_eq!(of([1, 110, 105, 100]), HeapVerdict::Falling);
        assert_eq!(of([1, 0, 0, 0]), HeapVerdict::Flat);
    }

    #[test]
    fn full_collections_count_alone() {
        // Young ones leave more and more garbage.
        let found = heap((0..40).map(|at| 100 + 10 * (at % 10)).rev(), |at| at % 10 == 9);
        let trend = found.trend().unwrap();
        assert_eq!((trend.verdict, trend.collections, trend.is_full), (HeapVerdict::Flat, 4, true));
        assert_eq!(
            trend.to_string(),
            "the floor after 4 full collections stayed within a tenth (100 B, then 100 B): no sign of a leak"
        );
    }

    /// The least of each part of the time, of full collections if they decide; the parts are of equal length, not of equally
    /// many collections.
    #[test]
    fn floors_of_parts_of_the_time() {
        let of = |collections: &[(i64, u64, bool)], parts| {
            let collections = collections.iter().map(|(nanos, used_bytes, is_full)| Collection {
                nanos: *nanos,
                used_bytes: *used_bytes,
                is_full: *is_full,
                ..Collection::default()
            });
            let heap = HeapOverTime { collections: collections.collect(), ..HeapOverTime::default() };
            heap.floors(parts).iter().map(|of| (of.nanos, of.used_bytes)).collect::<Vec<_>>()
        };
        let young = [(0, 9, false), (1, 4, false), (2, 7, false), (99, 5, false)];
        assert_eq!(of(&young, 10), [(1, 4), (99, 5)]);
        assert_eq!(of(&young, 100), [(0, 9), (1, 4), (2, 7), (99, 5)]);
        let full = [0, 30, 60, 90].map(|nanos| (nanos, 20, true));
        assert_eq!(of(&[&full[..3], &young[3..]].concat(), 1), [(99, 5)]);
        assert_eq!(of(&[&full[..], &young[3..]].concat(), 2), [(0, 20), (60, 20)]);
        assert_eq!(of(&[], 10), []);
        assert_eq!(of(&[(i64::MIN, 1, false), (i64::MAX, 2, false)], 60), [(i64::MIN, 1), (i64::MAX, 2)]);
    }

    #[test]
    fn what_exceeds_the_limit_is_counted_and_leaves_no_trend() {
        let mut collecting = Collecting::default();
        let (events, left_out) = (vec![HeapEvent::Limit(1)], 3);
        collecting.add_all(HeapEvents { events, left_out, ..HeapEvents::default() });
        let summary = |gc_id| {
            let (nanos, used, committed) = (gc_id, 1, 1);
            HeapEvent::Summary { gc_id, is_after: true, nanos, used, committed }
        };
        let most = i64::try_from(MAX_COLLECTIONS).unwrap();
        collecting
            .add_all(HeapEvents { events: (0..most + 2).map(summary).collect(), ..HeapEvents::default() });
        let heap = collecting.finish();
        assert_eq!((heap.collections.len(), heap.left_out), (MAX_COLLECTIONS, 5));
        assert_eq!(heap.trend(), None);
        assert!(heap.problem().unwrap().starts_with("5 events"));
    }

    #[test]
    fn collections_are_in_the_order_of_time_and_of_several_jvms() {
        let mut collecting = Collecting::default();
        for (nanos, used) in [(30, 3), (10, 1), (20, 2)] {
            let (gc_id, committed) = (7, 9);
            collecting.add(HeapEvent::Summary { gc_id, is_after: true, nanos, used, committed });
            collecting.add(HeapEvent::Metaspace { gc_id, used: 10 * used });
        }
        collecting.add(HeapEvent::Limit(1 << 30));
        let found = collecting.finish();
        let rows: Vec<_> =
            found.collections.iter().map(|of| (of.nanos, of.used_bytes, of.metaspace_bytes)).collect();
        assert_eq!(rows, [(10, 1, Some(10)), (20, 2, Some(20)), (30, 3, Some(30))]);
        assert_eq!(found.memory_limit_bytes, Some(1 << 30));
        assert_eq!(found.before(25).map(|of| of.nanos), Some(20));
        assert_eq!(found.before(9), None);
    }
}
