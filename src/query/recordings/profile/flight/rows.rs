//! Single events of a chunk, with the fields that most events have.

use std::ops::Range;

use rustc_hash::FxHashMap;

use hprof_jfr::NumberField::{Integer, Key};
use hprof_jfr::metadata::Class;
use hprof_jfr::values::ConstantNumber;
use hprof_jfr::{Chunk, NumberField, NumberFields};

use super::names::ConstantNames;
use super::stacks::ChunkStacks;
use crate::profile::Frame;
use crate::profile::events::{AllocationEvent, SampleEvent, current_name};

/// Value that many events share, with an ID.
#[derive(Debug, Clone, Copy)]
pub struct Shared<V> {
    /// ID, equal for equal values of a column while a chunk is visited. Values that are not constants have an index and no
    /// type.
    pub id: ConstantNumber,
    /// Shared value.
    pub value: V,
}

/// Event with its common fields.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'e> {
    /// Name of the event type, such as `jdk.ExecutionSample`.
    pub event: Shared<&'e str>,
    /// Start, in nanoseconds since 1970.
    pub nanos: Option<i64>,
    /// Duration in nanoseconds.
    pub duration_nanos: Option<i64>,
    /// Name of the thread.
    pub thread: Option<Shared<&'e str>>,
    /// Innermost frame of the stack.
    pub top: Option<Shared<&'e Frame>>,
    /// Class that the event is about.
    pub class: Option<Shared<&'e str>>,
    /// Bytes that an allocation sample represents.
    pub bytes: Option<u64>,
    /// State of the sampled thread, such as `STATE_RUNNABLE`.
    pub state: Option<Shared<&'e str>>,
}

/// Maximum size in bytes of the names of classes, methods and threads of the visited events, mostly those of a part of a chunk
/// ([`PART_EVENTS`](hprof_jfr::chunk::PART_EVENTS)). Names beyond that are missing; those of a JVM are far shorter.
const MAX_NAMES: usize = 1 << 24;

/// Names of the fields that contain a class.
const CLASSES: [&str; 5] = ["objectClass", "monitorClass", "parkedClass", "thrownClass", "loadedClass"];

/// Returns the fields of a row: start, duration, thread, stack, class, state, and bytes. Of the bytes, the first that are not
/// 0 count.
fn fields(class: &Class) -> [NumberField<'static>; 8] {
    let first = |names: &[&'static str]| {
        names.iter().copied().find(|name| class.field(name).is_some()).unwrap_or_default()
    };
    // A sample is taken by another thread; starts and ends of threads are about a thread.
    let thread = first(&["sampledThread", "thread", "eventThread"]);
    // Fields of other types can have these names, too.
    let allocation = AllocationEvent::ALL.into_iter().find(|event| event.name() == current_name(&class.name));
    let [bytes, or_else] = allocation.map_or([""; 2], AllocationEvent::weights);
    let [start, duration, bytes, or_else] = ["startTime", "duration", bytes, or_else].map(Integer);
    let is_sample = SampleEvent::ALL.iter().any(|event| event.name() == current_name(&class.name));
    let state = if is_sample { "state" } else { "" };
    let [thread, stack, about, state] = [thread, "stackTrace", first(&CLASSES), state].map(Key);
    [start, duration, thread, stack, about, state, bytes, or_else]
}

/// Visits the events of a chunk whose types are described and that start in a range of offsets in the chunk, in the order of
/// the file. The range begins at the start of an event; earlier events are not read.
pub fn visit(chunk: &Chunk<'_>, starts: Range<usize>, mut visit: impl FnMut(EventRow<'_>)) {
    let mut selections: FxHashMap<usize, NumberFields<8>> = FxHashMap::default();
    let (mut names, mut stacks) = (ConstantNames::of_chunk(chunk).at_most(MAX_NAMES), ChunkStacks::default());
    for event in chunk.events_in(starts) {
        let Some(class) = event.fields.class() else { continue };
        let selection =
            selections.entry(event.class).or_insert_with(|| chunk.numbers(event.class, fields(class)));
        let [start, duration, thread, stack, about, state, bytes, or_else] = event.fields.numbers(selection);
        let thread = selection.constant(chunk, 2, thread);
        let thread = thread.and_then(|thread| Some((thread.number()?, names.thread(thread)?)));
        let thread = thread.filter(|(_, thread)| !thread.name.is_empty());
        let named = selection.constant(chunk, 4, about);
        let named = named.and_then(|class| Some((class.number()?, names.class(class)?)));
        let state = selection.constant(chunk, 5, state);
        let state = state.and_then(|state| Some((state.number()?, names.state(state)?)));
        let top = selection.constant(chunk, 3, stack);
        let top = top.and_then(|trace| stacks.innermost(trace, &mut names));
        let bytes = [bytes, or_else].into_iter().filter_map(|bytes| u64::try_from(bytes?).ok());
        visit(EventRow {
            event: Shared { id: constant_number(event.class), value: &class.name },
            nanos: start.map(|ticks| chunk.nanos(ticks)),
            duration_nanos: duration.map(|ticks| chunk.duration_nanos(ticks)),
            thread: thread.as_ref().map(|(id, thread)| Shared { id: *id, value: &*thread.name }),
            top: top.map(|(number, value)| Shared { id: constant_number(number as usize), value }),
            class: named.as_ref().map(|(id, name)| Shared { id: *id, value: &**name }),
            state: state.as_ref().map(|(id, name)| Shared { id: *id, value: &**name }),
            bytes: bytes
                .fold(None, |found: Option<u64>, bytes| found.filter(|found| *found > 0).or(Some(bytes))),
        });
    }
}

fn constant_number(number: usize) -> ConstantNumber {
    ConstantNumber { class: usize::MAX, number }
}
