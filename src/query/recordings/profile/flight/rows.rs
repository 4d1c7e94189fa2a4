//! Events of a chunk one by one, with the fields that most of them have.

use std::ops::Range;
use std::sync::Arc;

use hprof_jfr::metadata::Class;
use hprof_jfr::values::Constant;
use hprof_jfr::{Chunk, ChunkSpan, FlightError, Record, Value};

use super::chunk_sums::thread_name;
use super::stacks::{Names, Stacks};
use crate::recordings::profile::Frame;
use crate::recordings::profile::events::AllocationEvent;

/// A value that many events share.
#[derive(Debug, Clone, Copy)]
pub struct Shared<V> {
    /// Equal for equal values of a column, while a chunk is visited.
    pub id: i64,
    /// Value.
    pub value: V,
}

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'e> {
    /// Name of the type, `jdk.ExecutionSample`.
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
    /// Bytes that a sample of allocations stands for.
    pub bytes: Option<u64>,
}

/// Indices of the fields of a type.
#[derive(Debug, Clone)]
struct Fields {
    start: Option<usize>,
    duration: Option<usize>,
    thread: Option<usize>,
    stack: Option<usize>,
    class: Option<usize>,
    bytes: [Option<usize>; 2],
}

impl Fields {
    /// Names of fields with a class.
    const CLASSES: [&str; 5] = ["objectClass", "monitorClass", "parkedClass", "thrownClass", "loadedClass"];

    fn of(class: &Class) -> Self {
        let field = |name: &str| class.field(name);
        // Other types have fields of these names, too.
        let allocation = AllocationEvent::ALL.into_iter().find(|event| event.name() == class.name);
        Self {
            start: field("startTime"),
            duration: field("duration"),
            // A sample is taken by another thread; starts and ends are about a thread.
            thread: ["sampledThread", "thread", "eventThread"].into_iter().find_map(field),
            stack: field("stackTrace"),
            class: Self::CLASSES.into_iter().find_map(field),
            bytes: allocation.map_or([None; 2], |event| event.weights().map(field)),
        }
    }
}

/// Visits the events of a chunk whose types are described and that start at these offsets in it, in the order of the file.
///
/// # Errors
/// If the chunk cannot be read.
pub fn visit(
    file: &[u8],
    span: &ChunkSpan,
    starts: &Range<usize>,
    mut visit: impl FnMut(EventRow<'_>),
) -> Result<(), FlightError> {
    let chunk = Chunk::read(file, span)?;
    let classes: Vec<Fields> = chunk.metadata.classes.iter().map(Fields::of).collect();
    let (mut names, mut stacks) = (Names::default(), Stacks::default());
    // Events of one thread often follow each other.
    let mut last_thread: Option<(i64, Option<Arc<str>>)> = None;
    for event in chunk.events().filter(|event| starts.contains(&event.start)) {
        let (Some(class), Some(of)) = (chunk.metadata.classes.get(event.class), classes.get(event.class))
        else {
            continue;
        };
        let fields = &event.fields;
        let thread = of.thread.and_then(|index| constant(fields, index)).and_then(|thread| {
            if last_thread.as_ref().is_none_or(|(key, _)| *key != thread.key) {
                let name = thread.record().map(|thread| thread_name(&thread));
                last_thread = Some((thread.key, name.filter(|name| !name.is_empty()).map(Into::into)));
            }
            last_thread.as_ref().and_then(|(key, name)| Some((*key, name.clone()?)))
        });
        let top = of.stack.and_then(|index| constant(fields, index));
        let top = top.map(|trace| stacks.index(trace, 0, &mut names).0);
        let named = of.class.and_then(|index| constant(fields, index));
        let named = named.and_then(|class| Some((class.key, names.class(class)?)));
        let bytes = of.bytes.iter().flatten();
        let bytes = bytes.filter_map(|index| u64::try_from(integer(fields, *index)?).ok());
        visit(EventRow {
            event: Shared { id: i64::try_from(event.class).unwrap_or(i64::MAX), value: &class.name },
            nanos: of.start.and_then(|index| integer(fields, index)).map(|ticks| chunk.nanos(ticks)),
            duration_nanos: of
                .duration
                .and_then(|index| integer(fields, index))
                .map(|ticks| chunk.duration_nanos(ticks)),
            thread: thread.as_ref().map(|(id, name)| Shared { id: *id, value: &**name }),
            top: top
                .and_then(|stack| stacks.innermost(stack))
                .map(|(id, value)| Shared { id: id.into(), value }),
            class: named.as_ref().map(|(id, name)| Shared { id: *id, value: &**name }),
            bytes: bytes
                .fold(None, |found: Option<u64>, bytes| found.filter(|found| *found > 0).or(Some(bytes))),
        });
    }
    Ok(())
}

fn constant<'c>(fields: &Record<'c>, index: usize) -> Option<Constant<'c>> {
    match fields.value(index) {
        Ok(Some(Value::Constant(constant))) => Some(constant),
        _ => None,
    }
}

fn integer(fields: &Record<'_>, index: usize) -> Option<i64> {
    match fields.value(index) {
        Ok(Some(Value::Integer(value))) => Some(value),
        _ => None,
    }
}
