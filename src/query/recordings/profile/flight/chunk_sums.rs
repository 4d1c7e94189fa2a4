//! Sums over the events of one chunk, before chunks are merged.

use std::collections::HashMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::metadata::Class;
use hprof_jfr::values::{Constant, ConstantNumber};
use hprof_jfr::{Chunk, ChunkSpan, Event, FlightError, NumberFields, Record, Recording};

use super::super::events::{AllocationEvent, MonitorEvent, SampleEvent, SiteEvent, current_name};
use super::heap::{HeapEventKind, HeapEvents};
use super::mallocs::{ChunkMallocs, FREE, Malloc, MallocLog};
use super::memory_over_time::{MemoryEventKind, MemorySums};
use super::names::{ConstantNames, RecordedThread};
use super::site_sums::{SiteSums, Sum};
use super::stacks::{ChunkStacks, ClassTable, NO_STACK, StackIndex, StackTable, chunk_problems};
use super::{EventCount, FlightJvm, Want};

/// Sums over the events of one chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkSums {
    pub(super) counts: Vec<EventCount>,
    pub(super) stacks: StackTable,
    /// Number of events whose stack the chunk does not contain.
    pub(super) lost_stacks: u64,
    /// Names of classes by class number.
    pub(super) classes: Vec<Arc<str>>,
    /// Number of samples by stack and state, for each type of sample event.
    pub(super) samples: [FxHashMap<(StackIndex, StateNumber), u64>; SampleEvent::ALL.len()],
    /// Names of the states of sampled threads, by number from 1.
    pub(super) states: Vec<Arc<str>>,
    /// Allocations by stack and class, for each type of allocation event.
    pub(super) allocations: [SiteSums; AllocationEvent::ALL.len()],
    /// Waits by stack and class of the monitor, for each type of wait event.
    pub(super) waits: [SiteSums; 3],
    /// Starts and ends of threads, in the order of the file.
    pub(super) threads: Vec<ThreadChange>,
    /// Names of the threads of stacks by serial number, if threads were requested. The file chooses the numbers, so the hash is
    /// seeded.
    pub(super) stack_threads: HashMap<u32, Arc<str>>,
    /// Number of samples lost according to the JVM.
    pub(super) lost_samples: u64,
    /// Number of starts and ends of threads that were not read because there were too many.
    pub(super) left_out_threads: u64,
    /// Events about the heap.
    pub(super) heap: HeapEvents,
    /// Figures about memory.
    pub(super) memory: MemorySums,
    /// Mallocs and frees by address, if they were requested.
    pub(super) mallocs: ChunkMallocs,
    pub(super) jvm: Option<FlightJvm>,
    pub(super) problems: Vec<String>,
}

/// Number of the state of a sampled thread; 0 if the event has none.
pub(super) type StateNumber = u8;

/// Start or end of a thread.
#[derive(Debug, Clone)]
pub(super) struct ThreadChange {
    pub(super) thread: Arc<RecordedThread>,
    pub(super) stack: StackIndex,
    pub(super) is_end: bool,
}

/// Kind of an event type, which decides how its events are counted.
#[derive(Debug, Clone, Copy)]
enum SumKind {
    Sample(usize),
    Allocation(usize),
    /// Malloc, which is counted as an allocation and by its address.
    Malloc(usize),
    Free,
    Wait(usize),
    Thread {
        is_end: bool,
    },
    LostSamples,
    Jvm,
    /// Event about the heap, about memory, or about both.
    Heap {
        heap: Option<HeapEventKind>,
        memory: Option<MemoryEventKind>,
    },
}

/// Fields of events that are counted: stack, thread, class, and two amounts, of which the first that is not 0 counts.
type SumFields = NumberFields<5>;

/// Field name that stands for a missing field.
const NONE: &str = "";

impl SumKind {
    /// Returns the kind of the events of a type, and the names of the fields for the class and the amounts.
    fn from_class(class: &Class, want: &Want) -> Option<(Self, [&'static str; 3])> {
        let name = &*current_name(&class.name);
        if want.site_event == Some(SiteEvent::UnfreedMemory) {
            let malloc = AllocationEvent::Malloc;
            match name {
                FREE => return Some((Self::Free, ["startTime", "address", NONE])),
                _ if name == malloc.name() => {
                    return Some((Self::Malloc(malloc as usize), ["startTime", "address", "size"]));
                }
                _ => {}
            }
        }
        if let Some(kind) = SampleEvent::ALL.iter().position(|event| event.name() == name) {
            return Some((Self::Sample(kind), ["state", "samples", NONE]));
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
            "jdk.CPUTimeSamplesLost" => return Some((Self::LostSamples, [NONE, "lostSamples", NONE])),
            "jdk.JVMInformation" => Self::Jvm,
            name => {
                let (heap, memory) =
                    (HeapEventKind::from_event_name(name), MemoryEventKind::from_class(class));
                if heap.is_none() && memory.is_none() {
                    return None;
                }
                Self::Heap { heap, memory }
            }
        };
        Some((kind, [NONE; 3]))
    }
}

impl ChunkSums {
    /// Reads the events of a chunk; if threads are wanted, stacks of different threads are told apart.
    pub(super) fn read(
        recording: &Recording<'_>,
        span: &ChunkSpan,
        want: &Want,
    ) -> Result<Self, FlightError> {
        let file = recording.bytes();
        let start_nanos = recording.chunks().first().map_or(0, |chunk| chunk.header.start_nanos);
        let chunk = Chunk::read_selecting(file, span, |class| SumKind::from_class(class, want).is_some())?;
        let mut sums = Self::default();
        let kinds: Vec<Option<(SumKind, SumFields)>> = (chunk.metadata.classes.iter().enumerate())
            .map(|(at, class)| {
                let (kind, [about, first, second]) = SumKind::from_class(class, want)?;
                // A sample is taken by another thread. For starts and ends, the thread of the event does not belong to the
                // stack.
                let thread = match kind {
                    SumKind::Thread { .. } => NONE,
                    _ if !want.threads => NONE,
                    _ if class.field("sampledThread").is_some() => "sampledThread",
                    _ => "eventThread",
                };
                let [first, second] = [first, second].map(Integer);
                let [stack, thread] = ["stackTrace", thread].map(Key);
                let about = match kind {
                    SumKind::Malloc(_) | SumKind::Free => Integer(about),
                    _ => Key(about),
                };
                Some((kind, chunk.numbers(at, [stack, thread, about, first, second])))
            })
            .collect();
        let mut counting = Counting {
            chunk: &chunk,
            sums: &mut sums,
            names: ConstantNames::of_chunk(&chunk),
            stacks: ChunkStacks::default(),
            classes: ClassTable::default(),
            states: StateTable::default(),
            mallocs: MallocLog::default(),
            start_nanos,
            jvm: None,
        };
        chunk.selected_events().for_each(|event| {
            if let Some(Some((kind, fields))) = kinds.get(event.class) {
                counting.event(*kind, fields, &event);
            }
        });
        let Counting { stacks, classes, states, mallocs, names, jvm, .. } = counting;
        sums.mallocs = mallocs.finish(&chunk);
        sums.states = states.names;
        sums.jvm = jvm.map(|fields| jvm_of(&fields));
        sums.lost_stacks = stacks.lost();
        sums.problems = chunk_problems(&chunk, span, &stacks, &names);
        sums.stacks = stacks.finish();
        sums.classes = classes.finish();
        // Types that are not described have no name, and a damaged chunk can contain millions of them.
        let not_described: Arc<str> = NOT_DESCRIBED.into();
        let counts = chunk.counts.iter().map(|count| EventCount {
            name: match count.type_id {
                hprof_jfr::chunk::METADATA => "jdk.Metadata".into(),
                hprof_jfr::chunk::CHECKPOINT => "jdk.Checkpoint".into(),
                id => Arc::clone(chunk.metadata.class(id).map_or(&not_described, |class| &class.name)),
            },
            events: count.events,
            bytes: count.bytes,
        });
        sums.counts = counts.collect();
        Ok(sums)
    }
}

/// Common name of all event types that the metadata does not describe.
const NOT_DESCRIBED: &str = "(types not described)";
/// Maximum length in bytes of a text in which a JVM describes itself: options and arguments are as long as those of a process
/// may be.
pub(super) const MAX_JVM_TEXT: usize = 1 << 21;
/// Maximum number of starts and ends of threads that are read in a chunk.
const MAX_THREADS: usize = 1 << 20;

/// Returns the JVM's description of itself from the fields of an event.
fn jvm_of(fields: &Record<'_>) -> FlightJvm {
    let text = |name| fields.text(name, MAX_JVM_TEXT).unwrap_or_default().into_owned();
    FlightJvm {
        name: text("jvmName"),
        version: text("jvmVersion"),
        options: text("jvmArguments"),
        command: text("javaArguments"),
        pid: fields.integer("pid"),
    }
}

/// State while counting the events of a chunk.
struct Counting<'c, 's> {
    chunk: &'c Chunk<'c>,
    sums: &'s mut ChunkSums,
    names: ConstantNames,
    stacks: ChunkStacks,
    classes: ClassTable,
    states: StateTable,
    mallocs: MallocLog,
    /// Start of the recording, in nanoseconds since 1970.
    start_nanos: i64,
    /// Last event that describes the JVM. Only the last one is read, as each can refer to long texts.
    jvm: Option<Record<'c>>,
}

impl<'c> Counting<'c, '_> {
    fn event(&mut self, kind: SumKind, of: &SumFields, event: &Event<'c>) {
        let fields = &event.fields;
        match kind {
            SumKind::Sample(kind) => {
                let [stack, thread, state, weight, _] = fields.numbers(of);
                let stack = self.stack(of, stack, thread);
                let state = self.states.number(of.constant(self.chunk, 2, state), &mut self.names);
                if let Some(samples) = self.sums.samples.get_mut(kind) {
                    // One event of async-profiler stands for all samples of a thread that did not run in between.
                    let sum = samples.entry((stack, state)).or_default();
                    *sum = sum.saturating_add(positive(weight).unwrap_or(1));
                }
            }
            SumKind::Allocation(kind) => {
                let [stack, thread, class, first, second] = fields.numbers(of);
                let (stack, class) = (self.stack(of, stack, thread), self.class(of, class));
                let bytes = positive(first).or_else(|| positive(second)).unwrap_or(0);
                if let Some(sums) = self.sums.allocations.get_mut(kind) {
                    sums.add(stack, class, Sum { events: 1, amount: bytes });
                }
            }
            SumKind::Malloc(kind) => {
                let [stack, thread, ticks, address, size] = fields.numbers(of);
                let stack = self.stack(of, stack, thread);
                let bytes = positive(size).unwrap_or(0);
                if let Some(sums) = self.sums.allocations.get_mut(kind) {
                    let class = self.classes.number(None, &mut self.names);
                    sums.add(stack, class, Sum { events: 1, amount: bytes });
                }
                self.mallocs.add(ticks, address, Some(Malloc { bytes, stack }));
            }
            SumKind::Free => {
                let [_, _, ticks, address, _] = fields.numbers(of);
                self.mallocs.add(ticks, address, None);
            }
            SumKind::Wait(kind) => {
                let [stack, thread, class, duration, _] = fields.numbers(of);
                let (stack, class) = (self.stack(of, stack, thread), self.class(of, class));
                let nanos = duration.map(|ticks| self.chunk.duration_nanos(ticks));
                if let Some(sums) = self.sums.waits.get_mut(kind) {
                    sums.add(stack, class, Sum { events: 1, amount: positive(nanos).unwrap_or(0) });
                }
            }
            SumKind::Thread { .. } if self.sums.threads.len() >= MAX_THREADS => {
                self.sums.left_out_threads += 1
            }
            SumKind::Thread { is_end } => {
                let Some(thread) = self.names.thread_in(fields, "thread") else { return };
                let [stack, ..] = fields.numbers(of);
                let stack = self.stack(of, stack, None);
                self.sums.threads.push(ThreadChange { thread, stack, is_end });
            }
            SumKind::LostSamples => {
                let [.., lost, _] = fields.numbers(of);
                let lost = positive(lost).unwrap_or(0);
                self.sums.lost_samples = self.sums.lost_samples.saturating_add(lost);
            }
            SumKind::Heap { heap, memory } => {
                if let Some(kind) = memory {
                    self.sums.memory.read(kind, self.start_nanos, (self.chunk, fields), &mut self.names);
                }
                if let Some(kind) = heap {
                    self.sums.heap.read(kind, self.chunk, fields, &mut self.names);
                }
            }
            SumKind::Jvm => self.jvm = Some(*fields),
        }
    }

    /// Returns the index of a stack, which is separate for each thread if `thread` is given.
    fn stack(&mut self, of: &SumFields, trace: Option<i64>, thread: Option<i64>) -> StackIndex {
        let Some(trace) = of.constant(self.chunk, 0, trace) else { return NO_STACK };
        let thread = of.constant(self.chunk, 1, thread).and_then(|thread| self.names.thread(thread));
        let serial = thread.as_ref().map_or(0, |thread| thread.serial);
        let (index, is_new) = self.stacks.index(trace, serial, &mut self.names);
        if let (true, Some(thread)) = (is_new, thread) {
            self.sums.stack_threads.entry(serial).or_insert_with(|| Arc::clone(&thread.name));
        }
        index
    }

    fn class(&mut self, of: &SumFields, class: Option<i64>) -> u32 {
        self.classes.number(of.constant(self.chunk, 2, class), &mut self.names)
    }
}

/// Numbers of the states of sampled threads. A JVM has about 20.
#[derive(Debug, Default)]
struct StateTable {
    names: Vec<Arc<str>>,
    /// The last state that was looked up.
    last: Option<(ConstantNumber, StateNumber)>,
}

/// Maximum number of states. Further ones have no name.
const MAX_STATES: usize = 200;

impl StateTable {
    /// Returns the number of a state.
    fn number(&mut self, state: Option<Constant<'_>>, names: &mut ConstantNames) -> StateNumber {
        let Some((state, id)) = state.and_then(|state| Some((state, state.number()?))) else { return 0 };
        if let Some((_, number)) = self.last.filter(|(known, _)| *known == id) {
            return number;
        }
        let number = names.state(state).map_or(0, |name| self.number_of_name(name));
        self.last = Some((id, number));
        number
    }

    fn number_of_name(&mut self, name: Arc<str>) -> StateNumber {
        let known = self.names.iter().position(|known| *known == name);
        let at = known.or_else(|| {
            let is_free = self.names.len() < MAX_STATES;
            is_free.then(|| self.names.push(name)).map(|()| self.names.len() - 1)
        });
        at.and_then(|at| StateNumber::try_from(at + 1).ok()).unwrap_or(0)
    }
}

/// Returns the number if it is positive.
fn positive(number: Option<i64>) -> Option<u64> {
    u64::try_from(number?).ok().filter(|number| *number > 0)
}
