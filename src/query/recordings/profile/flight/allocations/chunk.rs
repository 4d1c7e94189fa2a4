//! Allocations and old objects of a chunk.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::metadata::Class;
use hprof_jfr::{Chunk, ChunkSpan, Event, FlightError, Record, Value};

use super::super::AllocationEvent;
use super::super::chunk_sums::{constant, integer};
use super::super::heap::{HeapEventKind, HeapEvents};
use super::super::stacks::{self, Names, StackTable, Stacks};
use super::old_objects::{self, OldObject};
use super::{AllocationRow, MAX_ROWS, RecordedJvm, SampleSum, TIME_PARTS};

/// Index of no stack.
pub(super) const NO_STACK: u32 = stacks::NO_STACK;

/// Maximum number of old objects of a chunk. The JVM samples 256 by default.
const MAX_OLD_OBJECTS: usize = 1 << 11;
/// Maximum length in bytes of the texts of all chains of a chunk.
const MAX_CHAIN_TEXTS: usize = 1 << 23;

/// Kind of event, index of the class and of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) event: AllocationEvent,
    pub(super) class: u32,
    pub(super) stack: u32,
}

/// Allocations of a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkAllocations {
    pub(super) tables: StackTable,
    pub(super) classes: Vec<Arc<str>>,
    pub(super) rows: FxHashMap<Key, AllocationRow>,
    pub(super) old_objects: Vec<OldObject>,
    pub(super) jvm: Option<RecordedJvm>,
    pub(super) heap: HeapEvents,
    pub(super) left_out: u64,
    pub(super) problems: Vec<FlightError>,
}

/// Events that are read, with indices of fields.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Allocation(AllocationEvent, Fields),
    OldObject { stack: usize },
    Heap(HeapEventKind),
    Jvm,
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    time: usize,
    stack: usize,
    class: usize,
    amounts: [usize; 2],
    size: usize,
}

impl Kind {
    fn of(class: &Class) -> Option<Self> {
        let field = |name| class.field(name).unwrap_or(usize::MAX);
        if let Some(event) = AllocationEvent::ALL.into_iter().find(|event| event.name() == class.name) {
            return Some(Self::Allocation(
                event,
                Fields {
                    time: field("startTime"),
                    stack: field("stackTrace"),
                    class: field("objectClass"),
                    amounts: event.weights().map(field),
                    size: field("allocationSize"),
                },
            ));
        }
        match class.name.as_str() {
            "jdk.OldObjectSample" => Some(Self::OldObject { stack: field("stackTrace") }),
            "jdk.JVMInformation" => Some(Self::Jvm),
            name => HeapEventKind::of(name).map(Self::Heap),
        }
    }
}

impl ChunkAllocations {
    /// Reads the events of a chunk of a recording that lasts from one time to another.
    pub(super) fn read(file: &[u8], span: &ChunkSpan, span_nanos: (i64, i64)) -> Result<Self, FlightError> {
        let chunk = Chunk::read(file, span)?;
        let kinds: Vec<Option<Kind>> = chunk.metadata.classes.iter().map(Kind::of).collect();
        let mut reading = Reading {
            chunk: &chunk,
            span_nanos,
            found: Self { problems: chunk.problems.clone(), ..Self::default() },
            names: Names::default(),
            stacks: Stacks::default(),
            classes: FxHashMap::default(),
            chain_texts: MAX_CHAIN_TEXTS,
        };
        for event in chunk.events() {
            if let Some(Some(kind)) = kinds.get(event.class) {
                reading.event(*kind, &event);
            }
        }
        let Reading { mut found, stacks, .. } = reading;
        found.tables = stacks.finish();
        Ok(found)
    }
}

/// State while the events of a chunk are read.
struct Reading<'c> {
    chunk: &'c Chunk<'c>,
    span_nanos: (i64, i64),
    found: ChunkAllocations,
    names: Names,
    stacks: Stacks,
    /// Index of each class, by the key of its constant.
    classes: FxHashMap<i64, u32>,
    /// Bytes that texts of chains may still take.
    chain_texts: usize,
}

impl<'c> Reading<'c> {
    fn event(&mut self, kind: Kind, event: &Event<'c>) {
        let fields = &event.fields;
        match kind {
            Kind::Allocation(event, of) => self.allocation(event, of, fields),
            Kind::OldObject { stack } => {
                if self.found.old_objects.len() < MAX_OLD_OBJECTS {
                    let stack = self.stack(stack, fields);
                    let old = old_objects::read(fields, stack, &mut self.names, &mut self.chain_texts);
                    self.found.old_objects.extend(old);
                }
            }
            Kind::Heap(kind) => self.found.heap.read(kind, self.chunk, fields, &mut self.names),
            Kind::Jvm => {
                let start = fields.integer("jvmStartTime").filter(|start| *start > 0);
                self.found.jvm = Some(RecordedJvm {
                    command: fields.text("javaArguments").unwrap_or_default().into_owned(),
                    pid: fields.integer("pid"),
                    start_nanos: start.map(|millis| millis.saturating_mul(1_000_000)),
                });
            }
        }
    }

    fn allocation(&mut self, event: AllocationEvent, of: Fields, fields: &Record<'c>) {
        let (stack, class) = (self.stack(of.stack, fields), self.class(of.class, fields));
        let bytes = of.amounts.iter().filter_map(|amount| integer(fields, *amount));
        let bytes = bytes.into_iter().find(|bytes| *bytes > 0).unwrap_or(0);
        let sum = SampleSum { samples: 1, bytes };
        let key = Key { event, class, stack };
        if self.found.rows.len() >= MAX_ROWS && !self.found.rows.contains_key(&key) {
            self.found.left_out += 1;
            return;
        }
        let part = self.part(of.time, fields);
        let is_array = self.found.classes.get(class as usize).is_some_and(|class| class.ends_with("[]"));
        let size = integer(fields, of.size).filter(|_| is_array);
        let row = self.found.rows.entry(key).or_default();
        row.sum.add(sum);
        if let Some(part) = row.parts.get_mut(part) {
            *part = part.saturating_add(bytes);
        }
        if let Some(size) = size {
            row.add_size(size, sum);
        }
    }

    /// Returns the part of the recording's time in which an event is.
    fn part(&self, time: usize, fields: &Record<'c>) -> usize {
        let (start, end) = self.span_nanos;
        let Ok(Some(Value::Integer(ticks))) = fields.value(time) else { return 0 };
        let since = i128::from(self.chunk.nanos(ticks)) - i128::from(start);
        let all = (i128::from(end) - i128::from(start)).max(1);
        let part = since.max(0) * TIME_PARTS as i128 / all;
        usize::try_from(part).unwrap_or(usize::MAX).min(TIME_PARTS - 1)
    }

    fn stack(&mut self, field: usize, fields: &Record<'c>) -> u32 {
        constant(fields, field).map_or(NO_STACK, |trace| self.stacks.index(trace, 0, &mut self.names).0)
    }

    fn class(&mut self, field: usize, fields: &Record<'c>) -> u32 {
        let class = constant(fields, field);
        let key = class.map_or(0, |class| class.key);
        if let Some(known) = self.classes.get(&key) {
            return *known;
        }
        let name = class.and_then(|class| self.names.class(class)).unwrap_or_else(|| "".into());
        let number = u32::try_from(self.found.classes.len()).unwrap_or(u32::MAX);
        self.found.classes.push(name);
        self.classes.insert(key, number);
        number
    }
}
