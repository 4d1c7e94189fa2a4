//! Allocations and sampled old objects of one chunk.

use std::sync::Arc;

use hprof_index::storage::human_bytes::group_digits;
use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::metadata::Class;
use hprof_jfr::{Chunk, ChunkSpan, Event, FlightError, NumberFields, Record};

use super::super::super::events::{AllocationEvent, SiteEvent, current_name};
use super::super::chunk_sums::MAX_JVM_TEXT;
use super::super::heap::{HeapEventKind, HeapEvents};
use super::super::names::ConstantNames;
use super::super::site_sums::SiteMap;
use super::super::stacks::{self, ChunkStacks, ClassTable, StackTable, chunk_problems};
use super::old_objects::{OldObject, OldObjects};
use super::{AllocationRow, MAX_ROWS, MAX_STARTS, RecordedJvm, SampleSum, TIME_PARTS};

/// Stack index of events without a stack.
pub(super) const NO_STACK: u32 = stacks::NO_STACK;

/// ID of the first recording of a JVM.
const FIRST_RECORDING: i64 = 1;
/// Maximum number of old-object events that are read in a chunk. The JVM samples 256 objects by default.
const MAX_OLD_OBJECTS: u64 = 1 << 11;
/// Maximum length in bytes of the texts of all chains of a chunk.
const MAX_CHAIN_TEXTS: usize = 1 << 23;

/// Key of a row: type of event, index of the class and index of the stack.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowKey {
    pub(super) event: AllocationEvent,
    pub(super) class: u32,
    pub(super) stack: u32,
}

/// Allocations of a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkAllocations {
    pub(super) tables: StackTable,
    pub(super) classes: Vec<Arc<str>>,
    /// Sums by key, in the order in which the keys first occurred.
    pub(super) rows: Vec<(RowKey, AllocationRow)>,
    pub(super) old_objects: Vec<OldObject>,
    pub(super) jvm: Option<RecordedJvm>,
    pub(super) started_ms: Vec<i64>,
    pub(super) first_started_ms: Option<i64>,
    pub(super) heap: HeapEvents,
    pub(super) left_out: u64,
    pub(super) problems: Vec<String>,
}

/// Kind of an event that is read.
#[derive(Debug, Clone, Copy)]
enum ChunkEventKind {
    Allocation(AllocationEvent),
    OldObject,
    Heap(HeapEventKind),
    Jvm,
    Recording,
}

/// Fields of an event: stack, time, class, two amounts, of which the first that is not 0 counts, and size. Only allocations
/// have fields other than the stack.
type AllocationFields = NumberFields<6>;

impl ChunkEventKind {
    /// Returns the kind of the events of a type, and the names of the fields after the stack.
    fn from_class(class: &Class) -> Option<(Self, [&'static str; 5])> {
        let name = current_name(&class.name);
        // Only events about all allocations: live objects and native memory are something else.
        let mut of_heap = [SiteEvent::Samples, SiteEvent::Buffers].into_iter().flat_map(SiteEvent::events);
        if let Some(event) = of_heap.find(|event| event.name() == name).copied() {
            let [first, second] = event.weights();
            let names = ["startTime", "objectClass", first, second, "allocationSize"];
            return Some((Self::Allocation(event), names));
        }
        let kind = match &*name {
            "jdk.OldObjectSample" => Self::OldObject,
            "jdk.JVMInformation" => Self::Jvm,
            "jdk.ActiveRecording" => Self::Recording,
            name => Self::Heap(HeapEventKind::from_event_name(name)?),
        };
        Some((kind, [""; 5]))
    }
}

impl ChunkAllocations {
    /// Reads the events of a chunk. `span_nanos` is the start and end of the recording.
    pub(super) fn read(file: &[u8], span: &ChunkSpan, span_nanos: (i64, i64)) -> Result<Self, FlightError> {
        let chunk = Chunk::read_selecting(file, span, |class| ChunkEventKind::from_class(class).is_some())?;
        let kinds: Vec<Option<(ChunkEventKind, AllocationFields)>> =
            (chunk.metadata.classes.iter().enumerate())
                .map(|(at, class)| {
                    let (kind, [time, about, first, second, size]) = ChunkEventKind::from_class(class)?;
                    let [time, first, second, size] = [time, first, second, size].map(Integer);
                    let wanted = [Key("stackTrace"), time, Key(about), first, second, size];
                    Some((kind, chunk.numbers(at, wanted)))
                })
                .collect();
        let mut reading = Reading {
            chunk: &chunk,
            span_nanos,
            found: Self::default(),
            names: ConstantNames::of_chunk(&chunk),
            stacks: ChunkStacks::default(),
            classes: ClassTable::default(),
            places: Default::default(),
            old_object_events: 0,
            old_objects: OldObjects::new(MAX_CHAIN_TEXTS),
            jvm: None,
        };
        chunk.selected_events().for_each(|event| {
            if let Some(Some((kind, fields))) = kinds.get(event.class) {
                reading.event(*kind, fields, &event);
            }
        });
        let Reading { mut found, stacks, classes, names, jvm, old_object_events, .. } = reading;
        found.jvm = jvm.map(|fields| jvm_of(&fields));
        found.problems = chunk_problems(&chunk, span, &stacks, &names);
        let not_read = old_object_events.saturating_sub(MAX_OLD_OBJECTS);
        if not_read > 0 {
            let (events, at) = (group_digits(not_read), span.start);
            found.problems.push(format!(
                "too many events about old objects: {events} were skipped (at offset {at:#x})"
            ));
        }
        found.tables = stacks.finish();
        found.classes = classes.finish();
        Ok(found)
    }
}

/// State while reading the events of a chunk.
struct Reading<'c> {
    chunk: &'c Chunk<'c>,
    span_nanos: (i64, i64),
    found: ChunkAllocations,
    names: ConstantNames,
    stacks: ChunkStacks,
    classes: ClassTable,
    /// Indexes into `found.rows`, by type of event.
    places: [SiteMap<usize>; AllocationEvent::ALL.len()],
    /// Number of old-object events.
    old_object_events: u64,
    old_objects: OldObjects<'c>,
    /// Last event that describes the JVM. Only the last one is read, as each can refer to long texts.
    jvm: Option<Record<'c>>,
}

impl<'c> Reading<'c> {
    fn event(&mut self, kind: ChunkEventKind, of: &AllocationFields, event: &Event<'c>) {
        let fields = &event.fields;
        match kind {
            ChunkEventKind::Allocation(event) => self.allocation(event, of, fields.numbers(of)),
            ChunkEventKind::OldObject => {
                self.old_object_events += 1;
                if self.old_object_events <= MAX_OLD_OBJECTS {
                    let [stack, ..] = fields.numbers(of);
                    let stack = self.stack(of, stack);
                    let old = self.old_objects.read(fields, stack, &mut self.names);
                    self.found.old_objects.extend(old);
                }
            }
            ChunkEventKind::Recording => {
                let start = fields.integer("recordingStart").filter(|start| *start > 0);
                if fields.integer("id") == Some(FIRST_RECORDING) {
                    self.found.first_started_ms = start;
                }
                self.found.started_ms.extend(start.filter(|start| {
                    self.found.started_ms.len() < MAX_STARTS && !self.found.started_ms.contains(start)
                }));
            }
            ChunkEventKind::Heap(kind) => self.found.heap.read(kind, self.chunk, fields, &mut self.names),
            ChunkEventKind::Jvm => self.jvm = Some(*fields),
        }
    }

    fn allocation(
        &mut self,
        event: AllocationEvent,
        of: &AllocationFields,
        [stack, time, class, first, second, size]: [Option<i64>; 6],
    ) {
        let class = of.constant(self.chunk, 2, class);
        let (stack, class) = (self.stack(of, stack), self.classes.number(class, &mut self.names));
        let positive = |value: Option<i64>| u64::try_from(value?).ok();
        let bytes = [first, second].into_iter().filter_map(positive);
        let bytes = bytes.into_iter().find(|bytes| *bytes > 0).unwrap_or(0);
        let sum = SampleSum { samples: 1, bytes };
        let Some(place) = self.row(RowKey { event, class, stack }) else {
            self.found.left_out += 1;
            return;
        };
        let part = self.part(time);
        let is_array = self.classes.name(class).is_some_and(|class| class.ends_with("[]"));
        let size = positive(size).filter(|_| is_array);
        let Some((_, row)) = self.found.rows.get_mut(place) else { return };
        row.sum.add(sum);
        if let Some(part) = row.parts.get_mut(part) {
            *part = part.saturating_add(bytes);
        }
        if let Some(size) = size {
            row.add_size(size, sum);
        }
    }

    /// Returns the index of a row; `None` if there are too many.
    fn row(&mut self, key: RowKey) -> Option<usize> {
        let RowKey { event, class, stack } = key;
        let places = self.places.get_mut(event as usize)?;
        let known = places.get_mut(stack, class).copied();
        if known.is_some() || self.found.rows.len() >= MAX_ROWS {
            return known;
        }
        let place = self.found.rows.len();
        places.insert(stack, class, place);
        self.found.rows.push((key, AllocationRow::default()));
        Some(place)
    }

    /// Returns the part of the recording's time in which an event occurred, from 0 to `TIME_PARTS - 1`.
    fn part(&self, time: Option<i64>) -> usize {
        let (start, end) = self.span_nanos;
        let Some(ticks) = time else { return 0 };
        let since = i128::from(self.chunk.nanos(ticks)) - i128::from(start);
        let all = (i128::from(end) - i128::from(start)).max(1);
        let part = since.max(0) * TIME_PARTS as i128 / all;
        usize::try_from(part).unwrap_or(usize::MAX).min(TIME_PARTS - 1)
    }

    fn stack(&mut self, of: &AllocationFields, trace: Option<i64>) -> u32 {
        let trace = of.constant(self.chunk, 0, trace);
        trace.map_or(NO_STACK, |trace| self.stacks.index(trace, 0, &mut self.names).0)
    }
}

/// Returns the JVM's description of itself from the fields of an event.
fn jvm_of(fields: &Record<'_>) -> RecordedJvm {
    let start = fields.integer("jvmStartTime").filter(|start| *start > 0);
    let text = |name| fields.text(name, MAX_JVM_TEXT);
    RecordedJvm {
        command: text("javaArguments").unwrap_or_default().into_owned(),
        pid: fields.integer("pid"),
        start_nanos: start.map(|millis| millis.saturating_mul(1_000_000)),
        starts_recording: text("jvmArguments").is_some_and(|options| starts_recording(&options)),
    }
}

/// Returns whether JVM options start a recording together with the JVM, without delay.
fn starts_recording(options: &str) -> bool {
    options.split_once("-XX:StartFlightRecording").is_some_and(|(_, rest)| !rest.contains("delay="))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_start_a_recording() {
        for (options, is_started) in [
            ("", false),
            ("-Xmx1g -XX:+FlightRecorder", false),
            ("-Xmx1g -XX:StartFlightRecording -Da=b", true),
            ("-XX:StartFlightRecording:settings=profile,filename=a b.jfr", true),
            ("-XX:StartFlightRecording=settings=profile,delay=20s", false),
        ] {
            assert_eq!(starts_recording(options), is_started, "{options}");
        }
    }
}
