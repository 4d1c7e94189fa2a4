//! Sums over the events of a chunk.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::metadata::Class;
use hprof_jfr::{Chunk, ChunkSpan, Event, FlightError, NumberFields, Record};

use super::super::events::{AllocationEvent, MonitorEvent, SampleEvent};
use super::heap::{HeapEventKind, HeapEvents};
use super::stacks::{ClassTable, NO_STACK, Names, StackIndex, StackTable, Stacks, chunk_problems};
use super::{EventCount, FlightJvm, Want};

/// Number of events, and what they state: bytes or nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) events: u64,
    pub(super) amount: u64,
}

/// Sums by stack and class.
type ByClass = FxHashMap<(StackIndex, u32), Sum>;

/// Sums over a chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkSums {
    pub(super) counts: Vec<EventCount>,
    pub(super) stacks: StackTable,
    /// Number of events whose stack the chunk does not contain.
    pub(super) lost_stacks: u64,
    /// Names of classes.
    pub(super) classes: Vec<Arc<str>>,
    /// By kind: samples of each stack.
    pub(super) samples: [FxHashMap<StackIndex, u64>; 3],
    /// By kind: allocations of a class in each stack.
    pub(super) allocations: [ByClass; 3],
    /// By kind: waits for objects of a class in each stack.
    pub(super) waits: [ByClass; 3],
    /// Starts and ends of threads, in the order of the file.
    pub(super) threads: Vec<ThreadChange>,
    /// Threads of stacks, if they were requested: serial number and name.
    pub(super) stack_threads: FxHashMap<u32, String>,
    /// Events about the heap.
    pub(super) heap: HeapEvents,
    pub(super) jvm: Option<FlightJvm>,
    pub(super) problems: Vec<String>,
}

/// Start or end of a thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadChange {
    pub(super) serial: u32,
    pub(super) name: String,
    pub(super) group: String,
    pub(super) parent_group: Option<String>,
    pub(super) stack: StackIndex,
    pub(super) is_end: bool,
}

/// How events of a type are counted.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Sample(usize),
    Allocation(usize),
    Wait(usize),
    Thread { is_end: bool },
    Jvm,
    Heap(HeapEventKind),
}

/// Fields of events that are counted: stack, thread, class, and two amounts, of which the first that is not 0 counts.
type Fields = NumberFields<5>;

/// Name of no field.
const NONE: &str = "";

impl Kind {
    /// Returns how events of a type are counted, with the names of the fields for the class and the amounts.
    fn of(class: &Class) -> Option<(Self, [&'static str; 3])> {
        let name = class.name.as_str();
        if let Some(kind) = SampleEvent::ALL.iter().position(|event| event.name() == name) {
            return Some((Self::Sample(kind), [NONE; 3]));
        }
        for (kind, event) in AllocationEvent::ALL.into_iter().enumerate() {
            if event.name() == name {
                let [first, second] = event.weights();
                return Some((Self::Allocation(kind), ["objectClass", first, second]));
            }
        }
        for (kind, event) in MonitorEvent::ALL.into_iter().enumerate() {
            if event.name() == name {
                return Some((Self::Wait(kind), [event.class(), "duration", NONE]));
            }
        }
        let kind = match name {
            "jdk.ThreadStart" => Self::Thread { is_end: false },
            "jdk.ThreadEnd" => Self::Thread { is_end: true },
            "jdk.JVMInformation" => Self::Jvm,
            name => Self::Heap(HeapEventKind::of(name)?),
        };
        Some((kind, [NONE; 3]))
    }
}

impl ChunkSums {
    /// Reads the events of a chunk.
    pub(super) fn read(file: &[u8], span: &ChunkSpan, want: Want) -> Result<Self, FlightError> {
        let chunk = Chunk::read(file, span)?;
        let mut sums = Self::default();
        let kinds: Vec<Option<(Kind, Fields)>> = (chunk.metadata.classes.iter().enumerate())
            .map(|(at, class)| {
                let (kind, [about, first, second]) = Kind::of(class)?;
                // A sample is taken by another thread. The one of a start or an end is no part of its stack.
                let thread = match kind {
                    Kind::Thread { .. } => NONE,
                    _ if !want.threads => NONE,
                    _ if class.field("sampledThread").is_some() => "sampledThread",
                    _ => "eventThread",
                };
                let amounts = [first, second].map(Integer);
                let [stack, thread, about] = ["stackTrace", thread, about].map(Key);
                Some((kind, chunk.numbers(at, [stack, thread, about, amounts[0], amounts[1]])))
            })
            .collect();
        let mut counting = Counting {
            chunk: &chunk,
            sums: &mut sums,
            names: Names::of_chunk(span),
            stacks: Stacks::default(),
            classes: ClassTable::default(),
        };
        for event in chunk.events() {
            if let Some(Some((kind, fields))) = kinds.get(event.class) {
                counting.event(*kind, fields, &event);
            }
        }
        let Counting { stacks, classes, names, .. } = counting;
        sums.lost_stacks = stacks.lost();
        sums.problems = chunk_problems(&chunk, span, &stacks, &names);
        sums.stacks = stacks.finish();
        sums.classes = classes.finish();
        // Types that are not described have no name, and a damaged chunk can contain millions of them.
        let name = |id| chunk.metadata.class(id).map_or(NOT_DESCRIBED, |class| &class.name).to_owned();
        let counts = chunk.counts.iter().map(|count| EventCount {
            name: match count.type_id {
                hprof_jfr::chunk::METADATA => "jdk.Metadata".to_owned(),
                hprof_jfr::chunk::CHECKPOINT => "jdk.Checkpoint".to_owned(),
                id => name(id),
            },
            events: count.events,
            bytes: count.bytes,
        });
        sums.counts = counts.collect();
        Ok(sums)
    }
}

/// Name of all types that the metadata does not describe.
const NOT_DESCRIBED: &str = "(types not described)";

/// State while the events of a chunk are counted.
struct Counting<'c, 's> {
    chunk: &'c Chunk<'c>,
    sums: &'s mut ChunkSums,
    names: Names,
    stacks: Stacks,
    classes: ClassTable,
}

impl<'c> Counting<'c, '_> {
    fn event(&mut self, kind: Kind, of: &Fields, event: &Event<'c>) {
        let fields = &event.fields;
        match kind {
            Kind::Sample(kind) => {
                let [stack, thread, ..] = fields.numbers(of);
                let stack = self.stack(of, stack, thread);
                if let Some(samples) = self.sums.samples.get_mut(kind) {
                    *samples.entry(stack).or_default() += 1;
                }
            }
            Kind::Allocation(kind) => {
                let [stack, thread, class, first, second] = fields.numbers(of);
                let key = (self.stack(of, stack, thread), self.class(of, class));
                let amounts = [first, second].map(|amount| u64::try_from(amount?).ok());
                let bytes = amounts.into_iter().flatten().find(|bytes| *bytes > 0).unwrap_or(0);
                add(self.sums.allocations.get_mut(kind), key, bytes);
            }
            Kind::Wait(kind) => {
                let [stack, thread, class, duration, _] = fields.numbers(of);
                let key = (self.stack(of, stack, thread), self.class(of, class));
                let nanos = duration.map_or(0, |ticks| self.chunk.duration_nanos(ticks));
                add(self.sums.waits.get_mut(kind), key, u64::try_from(nanos).unwrap_or(0));
            }
            Kind::Thread { is_end } => {
                let Some(thread) = fields.record("thread") else { return };
                let [stack, ..] = fields.numbers(of);
                let stack = self.stack(of, stack, None);
                let group = thread.record("group");
                let name = |group: &Record<'c>| group.text("name").map(std::borrow::Cow::into_owned);
                self.sums.threads.push(ThreadChange {
                    serial: serial(&thread),
                    name: thread_name(&thread),
                    group: group.as_ref().and_then(name).unwrap_or_default(),
                    parent_group: group.and_then(|group| group.record("parent")).as_ref().and_then(name),
                    stack,
                    is_end,
                });
            }
            Kind::Heap(kind) => self.sums.heap.read(kind, self.chunk, fields, &mut self.names),
            Kind::Jvm => {
                let text = |name| fields.text(name).unwrap_or_default().into_owned();
                self.sums.jvm = Some(FlightJvm {
                    name: text("jvmName"),
                    version: text("jvmVersion"),
                    options: text("jvmArguments"),
                    command: text("javaArguments"),
                    pid: fields.integer("pid"),
                });
            }
        }
    }

    /// Returns the index of a stack; of a thread, if there is one.
    fn stack(&mut self, of: &Fields, trace: Option<i64>, thread: Option<i64>) -> StackIndex {
        let Some(trace) = of.constant(self.chunk, 0, trace) else { return NO_STACK };
        let serial = of.constant(self.chunk, 1, thread).and_then(|thread| {
            let serial = serial(&thread.record()?);
            Some((serial, thread))
        });
        let number = serial.map_or(0, |(serial, _)| serial);
        let (index, is_new) = self.stacks.index(trace, number, &mut self.names);
        if let (true, Some((serial, thread))) = (is_new, serial)
            && !self.sums.stack_threads.contains_key(&serial)
            && let Some(thread) = thread.record()
        {
            self.sums.stack_threads.insert(serial, thread_name(&thread));
        }
        index
    }

    fn class(&mut self, of: &Fields, class: Option<i64>) -> u32 {
        self.classes.number(of.constant(self.chunk, 2, class), &mut self.names)
    }
}

fn add(sums: Option<&mut ByClass>, key: (StackIndex, u32), amount: u64) {
    if let Some(sums) = sums {
        let sum = sums.entry(key).or_default();
        sum.events += 1;
        sum.amount = sum.amount.saturating_add(amount);
    }
}

/// Added to the operating system's ID of a thread that is none of Java.
const NATIVE_THREAD: u32 = 1 << 31;

/// Returns the serial number of a thread: Java's, else that of the operating system, which is marked.
fn serial(thread: &Record<'_>) -> u32 {
    let of = |name| thread.integer(name).and_then(|id| u32::try_from(id).ok()).filter(|id| *id > 0);
    of("javaThreadId").unwrap_or_else(|| of("osThreadId").unwrap_or(0) | NATIVE_THREAD)
}

pub(super) fn thread_name(thread: &Record<'_>) -> String {
    let names = ["javaName", "osName"].into_iter().filter_map(|name| thread.text(name));
    names.map(std::borrow::Cow::into_owned).find(|name| !name.is_empty()).unwrap_or_default()
}
