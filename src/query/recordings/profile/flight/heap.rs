//! Heap over time: the heap's size after each garbage collection.

use std::collections::BTreeMap;

use hprof_index::storage::human_bytes::group_digits;
use hprof_jfr::{Chunk, Record, Value};

use super::class_counts::{ClassCounts, ClassOverTime};
use super::constants::ConstantMap;
use super::names::ConstantNames;
use hprof_base::sorting::SortRows;

/// Names of collections of the whole heap that stop the program (`GCName` in JDK's `gcName.hpp`). Concurrent ones, such as
/// `G1Old`, end while the program allocates.
const FULL: [&str; 5] = ["G1Full", "SerialOld", "ParallelOld", "PSMarkSweep", "MarkSweepCompact"];
/// Maximum number of collections, and of events about the heap in a chunk.
const MAX_COLLECTIONS: usize = 1 << 20;
/// Maximum length in bytes of the words for which texts of the JVM are searched.
const MAX_WORD: usize = 64;

/// Heap over time: collections, memory limit and counts of classes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapOverTime {
    /// Collections, in the order of time.
    pub collections: Vec<Collection>,
    /// Memory limit of the container in bytes, if the JVM ran in one that has a limit.
    pub memory_limit_bytes: Option<u64>,
    /// Classes whose objects were counted, by descending growth.
    pub classes: Vec<ClassOverTime>,
    /// Number of events that were not read because there were too many. There is no trend if it is not 0.
    pub left_out: u64,
    /// Number of counts of classes that were not read because there were too many classes.
    pub classes_left_out: u64,
}

/// Size of the heap after one garbage collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collection {
    /// End of the collection, in nanoseconds since 1970.
    pub nanos: i64,
    /// Number of the collection in its JVM.
    pub gc_id: i64,
    /// Bytes of the heap used before the collection.
    pub before_bytes: Option<u64>,
    /// Bytes of the heap used after the collection.
    pub used_bytes: u64,
    /// Bytes of the heap committed after the collection.
    pub committed_bytes: u64,
    /// Bytes of metaspace used after the collection.
    pub metaspace_bytes: Option<u64>,
    /// `true` if the whole heap was collected while the program was stopped.
    pub is_full: bool,
}

impl HeapOverTime {
    /// Returns a description of what was not read, or `None` if everything was read.
    pub(super) fn problem(&self) -> Option<String> {
        let left_out = self.left_out.saturating_add(self.classes_left_out);
        (left_out > 0)
            .then(|| format!("too many events about the heap: {} were skipped", group_digits(left_out)))
    }

    /// Returns the collections up to a time in nanoseconds since 1970, and the classes without those counted later.
    pub fn until(&self, nanos: i64) -> Self {
        let is_before = |of: &&Collection| of.nanos <= nanos;
        let classes = self.classes.iter().filter(|of| of.last.nanos <= nanos);
        Self {
            collections: self.collections.iter().take_while(is_before).copied().collect(),
            classes: classes.cloned().collect(),
            ..self.clone()
        }
    }
}

/// Facts that one event states about the heap.
#[derive(Debug, Clone, Copy)]
enum HeapEvent {
    /// Used and committed bytes of the heap, before or after a collection.
    Summary { gc_id: i64, is_after: bool, nanos: i64, used: u64, committed: u64 },
    /// Used bytes of metaspace after a collection.
    Metaspace { gc_id: i64, used: u64 },
    /// Note that a collection was a full one.
    Full { gc_id: i64 },
    /// Memory limit of the container.
    Limit(u64),
}

/// Type of the event that a [`HeapEvent`] is read from.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeapEventKind {
    Summary,
    Metaspace,
    Collection,
    Container,
    Objects { is_after_gc: bool },
}

impl HeapEventKind {
    /// Returns the kind of the events of a type with the given name.
    pub(super) fn from_event_name(name: &str) -> Option<Self> {
        Some(match name {
            "jdk.GCHeapSummary" => Self::Summary,
            "jdk.MetaspaceSummary" => Self::Metaspace,
            "jdk.GarbageCollection" => Self::Collection,
            "jdk.ContainerConfiguration" => Self::Container,
            "jdk.ObjectCount" => Self::Objects { is_after_gc: false },
            "jdk.ObjectCountAfterGC" => Self::Objects { is_after_gc: true },
            _ => return None,
        })
    }

    /// Reads the fields of an event; `None` if they state nothing about the heap.
    fn read(self, chunk: &Chunk<'_>, fields: &Record<'_>, parts: &mut HeapParts) -> Option<HeapEvent> {
        let mut is_after = || parts.part_value(fields, HeapPart::When) == Some(1);
        let gc_id = fields.integer("gcId");
        Some(match self {
            Self::Summary => HeapEvent::Summary {
                gc_id: gc_id?,
                is_after: is_after(),
                nanos: chunk.nanos(fields.integer("startTime")?),
                used: bytes(fields, "heapUsed")?,
                committed: parts.part_value(fields, HeapPart::Space)?,
            },
            Self::Metaspace if is_after() => {
                HeapEvent::Metaspace { gc_id: gc_id?, used: parts.part_value(fields, HeapPart::Metaspace)? }
            }
            Self::Metaspace | Self::Objects { .. } => return None,
            Self::Collection => (parts.part_value(fields, HeapPart::Name)? == 1)
                .then_some(HeapEvent::Full { gc_id: gc_id? })?,
            // A container without a limit has -1, or a number beyond all memory.
            Self::Container => {
                HeapEvent::Limit(bytes(fields, "memoryLimit").filter(|limit| (1..1 << 60).contains(limit))?)
            }
        })
    }
}

/// Field of heap events whose value is a structure or a constant. Any number of events can share a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeapPart {
    /// Time of the measurement: 1 for after a collection.
    When,
    /// Name of a collection: 1 for a full one.
    Name,
    /// Committed bytes of the heap.
    Space,
    /// Used bytes of metaspace.
    Metaspace,
}

/// Values of the constants that heap events refer to, by field. Each constant is read once.
#[derive(Debug, Default)]
struct HeapParts {
    when: ConstantMap<Option<u64>>,
    name: ConstantMap<Option<u64>>,
    space: ConstantMap<Option<u64>>,
    metaspace: ConstantMap<Option<u64>>,
}

impl HeapParts {
    fn part_value(&mut self, fields: &Record<'_>, part: HeapPart) -> Option<u64> {
        let (field, known) = match part {
            HeapPart::When => ("when", &mut self.when),
            HeapPart::Name => ("name", &mut self.name),
            HeapPart::Space => ("heapSpace", &mut self.space),
            HeapPart::Metaspace => ("metaspace", &mut self.metaspace),
        };
        match fields.get(field)? {
            Value::Record(value) => part.read(&value),
            Value::Constant(constant) => match known.get(&constant) {
                Some(known) => *known,
                None => {
                    let value = part.read(&constant.record()?);
                    known.insert(&constant, value);
                    value
                }
            },
            _ => None,
        }
    }
}

impl HeapPart {
    fn read(self, value: &Record<'_>) -> Option<u64> {
        match self {
            Self::When => Some(value.text("when", MAX_WORD)?.starts_with("After").into()),
            Self::Name => {
                let name = value.text("gcName", MAX_WORD).or_else(|| value.text("name", MAX_WORD))?;
                Some(FULL.contains(&&*name).into())
            }
            Self::Space => bytes(value, "committedSize"),
            Self::Metaspace => bytes(value, "used"),
        }
    }
}

fn bytes(of: &Record<'_>, name: &str) -> Option<u64> {
    of.integer(name).and_then(|bytes| u64::try_from(bytes).ok())
}

/// Heap events of a chunk, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct HeapEvents {
    events: Vec<HeapEvent>,
    parts: HeapParts,
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
        names: &mut ConstantNames,
    ) {
        if let HeapEventKind::Objects { is_after_gc } = kind {
            return self.classes.read(is_after_gc, chunk, fields, names);
        }
        if self.events.len() >= MAX_COLLECTIONS {
            self.left_out += 1;
        } else {
            self.events.extend(kind.read(chunk, fields, &mut self.parts));
        }
    }
}

/// Collections under construction, while events are added.
#[derive(Debug, Default)]
pub(super) struct Collecting {
    collections: Vec<PartialCollection>,
    /// Index of the last collection with each collection number.
    last: BTreeMap<i64, usize>,
    memory_limit_bytes: Option<u64>,
    classes: ClassCounts,
    left_out: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct PartialCollection {
    gc_id: i64,
    before: Option<u64>,
    /// Time, used bytes and committed bytes after the collection.
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

    /// Adds an event. Events of a collection are not always ordered by time, and each JVM numbers collections from the start.
    fn add(&mut self, event: HeapEvent) {
        match event {
            HeapEvent::Summary { gc_id, is_after: true, nanos, used, committed } => {
                let of = self.collection_without(gc_id, |of| of.after.is_some());
                of.after = Some((nanos, used, committed));
            }
            HeapEvent::Summary { gc_id, used, .. } => {
                self.collection_without(gc_id, |of| of.before.is_some()).before = Some(used);
            }
            HeapEvent::Metaspace { gc_id, used } => {
                self.collection_without(gc_id, |of| of.metaspace.is_some()).metaspace = Some(used);
            }
            HeapEvent::Full { gc_id } => self.collection_without(gc_id, |of| of.is_full).is_full = true,
            HeapEvent::Limit(bytes) => self.memory_limit_bytes = Some(bytes),
        }
    }

    /// Returns the last collection with a number; a new one if there is none, or if `has` returns `true` for the last one.
    fn collection_without(
        &mut self,
        gc_id: i64,
        has: impl Fn(&PartialCollection) -> bool,
    ) -> &mut PartialCollection {
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

    /// Returns the collections whose size after the collection is known.
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
        HeapOverTime {
            collections,
            memory_limit_bytes: self.memory_limit_bytes,
            classes,
            classes_left_out,
            left_out: self.left_out,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_jfr::Recording;
    use hprof_writer::flight::every_kind;

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
        let problem = "too many events about the heap: 5 were skipped";
        assert_eq!(heap.problem().as_deref(), Some(problem));
    }

    /// Each constant can be long, and any number of events can refer to it.
    #[test]
    fn constants_of_events_are_read_once() {
        let bytes = every_kind(true).finish();
        let chunk = Chunk::read(&bytes, &Recording::new(&bytes).unwrap().chunks()[0]).unwrap();
        let (mut heap, mut names) = (HeapEvents::default(), ConstantNames::new(usize::MAX));
        for event in chunk.events().chain(chunk.events()) {
            if let Some(kind) = HeapEventKind::from_event_name(&event.fields.class().unwrap().name) {
                heap.read(kind, &chunk, &event.fields, &mut names);
            }
        }
        assert_eq!(heap.events.len(), 2 * 5);
        // `Before` and `After`, and the name of one collection.
        assert_eq!((heap.parts.when.len(), heap.parts.name.len()), (2, 1));
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
        let until = |nanos| found.until(nanos).collections.iter().map(|of| of.nanos).collect::<Vec<_>>();
        assert_eq!((until(25), until(20), until(9)), (vec![10, 20], vec![10, 20], vec![]));
    }
}
