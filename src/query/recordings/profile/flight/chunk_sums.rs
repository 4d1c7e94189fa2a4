//! Sums over the events of a chunk.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::metadata::Class;
use hprof_jfr::values::Constant;
use hprof_jfr::{Chunk, ChunkSpan, Event, FlightError, Record, Value};

use super::super::events::{AllocationEvent, MonitorEvent, SampleEvent};
use super::heap::{HeapEventKind, HeapEvents};
use super::stacks::{NO_STACK, Names, StackIndex, StackTable, Stacks};
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
    pub(super) problems: Vec<FlightError>,
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

/// How events of a type are counted; with indices of fields.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Sample(usize),
    Allocation(usize, Fields),
    Wait(usize, Fields),
    Thread { is_end: bool },
    Jvm,
    Heap(HeapEventKind),
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    class: usize,
    amounts: [usize; 2],
}

impl Kind {
    fn of(class: &Class) -> Option<Self> {
        let name = class.name.as_str();
        let field = |name| class.field(name).unwrap_or(usize::MAX);
        if let Some(kind) = SampleEvent::ALL.iter().position(|event| event.name() == name) {
            return Some(Self::Sample(kind));
        }
        for (kind, event) in AllocationEvent::ALL.into_iter().enumerate() {
            if event.name() == name {
                let amounts = event.weights().map(field);
                return Some(Self::Allocation(kind, Fields { class: field("objectClass"), amounts }));
            }
        }
        for (kind, event) in MonitorEvent::ALL.into_iter().enumerate() {
            if event.name() == name {
                let amounts = [field("duration"); 2];
                return Some(Self::Wait(kind, Fields { class: field(event.class()), amounts }));
            }
        }
        match name {
            "jdk.ThreadStart" => Some(Self::Thread { is_end: false }),
            "jdk.ThreadEnd" => Some(Self::Thread { is_end: true }),
            "jdk.JVMInformation" => Some(Self::Jvm),
            name => HeapEventKind::of(name).map(Self::Heap),
        }
    }
}

/// Indices of fields that most events have.
#[derive(Debug, Clone, Copy)]
struct Common {
    stack: usize,
    thread: usize,
}

impl ChunkSums {
    /// Reads the events of a chunk.
    pub(super) fn read(file: &[u8], span: &ChunkSpan, want: Want) -> Result<Self, FlightError> {
        let chunk = Chunk::read(file, span)?;
        let mut sums = Self { problems: chunk.problems.clone(), ..Self::default() };
        let kinds: Vec<Option<(Kind, Common)>> = (chunk.metadata.classes.iter())
            .map(|class| {
                let field = |name| class.field(name).unwrap_or(usize::MAX);
                // A sample is taken by another thread.
                let thread = class.field("sampledThread").unwrap_or_else(|| field("eventThread"));
                Some((Kind::of(class)?, Common { stack: field("stackTrace"), thread }))
            })
            .collect();
        let mut counting = Counting {
            chunk: &chunk,
            sums: &mut sums,
            names: Names::default(),
            stacks: Stacks::default(),
            classes: FxHashMap::default(),
            by_thread: want.threads,
        };
        for event in chunk.events() {
            if let Some(Some((kind, common))) = kinds.get(event.class) {
                counting.event(*kind, *common, &event);
            }
        }
        let Counting { stacks, .. } = counting;
        sums.stacks = stacks.finish();
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
    /// Index of each class, by the key of its constant.
    classes: FxHashMap<i64, u32>,
    by_thread: bool,
}

impl<'c> Counting<'c, '_> {
    fn event(&mut self, kind: Kind, common: Common, event: &Event<'c>) {
        let fields = &event.fields;
        match kind {
            Kind::Sample(kind) => {
                let stack = self.stack(common, fields);
                if let Some(samples) = self.sums.samples.get_mut(kind) {
                    *samples.entry(stack).or_default() += 1;
                }
            }
            Kind::Allocation(kind, of) => {
                let (stack, class) = (self.stack(common, fields), self.class(of.class, fields));
                let amounts = of.amounts.map(|amount| integer(fields, amount).unwrap_or(0));
                let bytes = amounts.into_iter().find(|bytes| *bytes > 0).unwrap_or(0);
                add(self.sums.allocations.get_mut(kind), (stack, class), bytes);
            }
            Kind::Wait(kind, of) => {
                let (stack, class) = (self.stack(common, fields), self.class(of.class, fields));
                let ticks = of.amounts.map(|amount| integer(fields, amount).unwrap_or(0))[0];
                let nanos = self.chunk.duration_nanos(i64::try_from(ticks).unwrap_or(i64::MAX));
                add(self.sums.waits.get_mut(kind), (stack, class), u64::try_from(nanos).unwrap_or(0));
            }
            Kind::Thread { is_end } => {
                let Some(thread) = fields.record("thread") else { return };
                let stack = self.stack(Common { thread: usize::MAX, ..common }, fields);
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

    fn stack(&mut self, common: Common, fields: &Record<'c>) -> StackIndex {
        let Some(trace) = constant(fields, common.stack) else { return NO_STACK };
        let thread = if self.by_thread { constant(fields, common.thread) } else { None };
        let serial = thread.and_then(|thread| {
            let serial = serial(&thread.record()?);
            Some((serial, thread))
        });
        let number = serial.map_or(0, |(serial, _)| serial);
        let (index, is_new) = self.stacks.index(trace, number, &mut self.names);
        // Key 0 is that of events without a stack.
        self.sums.lost_stacks += u64::from(index == NO_STACK && trace.key != 0);
        if let (true, Some((serial, thread))) = (is_new, serial)
            && !self.sums.stack_threads.contains_key(&serial)
            && let Some(thread) = thread.record()
        {
            self.sums.stack_threads.insert(serial, thread_name(&thread));
        }
        index
    }

    fn class(&mut self, field: usize, fields: &Record<'c>) -> u32 {
        let class = constant(fields, field);
        let key = class.map_or(0, |class| class.key);
        if let Some(known) = self.classes.get(&key) {
            return *known;
        }
        let name = class.and_then(|class| self.names.class(class)).unwrap_or_else(|| "".into());
        let number = u32::try_from(self.sums.classes.len()).unwrap_or(u32::MAX);
        self.sums.classes.push(name);
        self.classes.insert(key, number);
        number
    }
}

fn add(sums: Option<&mut ByClass>, key: (StackIndex, u32), amount: u64) {
    if let Some(sums) = sums {
        let sum = sums.entry(key).or_default();
        sum.events += 1;
        sum.amount = sum.amount.saturating_add(amount);
    }
}

/// Returns the constant that a field refers to.
pub(super) fn constant<'c>(fields: &Record<'c>, index: usize) -> Option<Constant<'c>> {
    match fields.value(index) {
        Ok(Some(Value::Constant(constant))) => Some(constant),
        _ => None,
    }
}

/// Returns an integer that is not negative.
pub(super) fn integer(fields: &Record<'_>, index: usize) -> Option<u64> {
    match fields.value(index) {
        Ok(Some(Value::Integer(value))) => u64::try_from(value).ok(),
        _ => None,
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
