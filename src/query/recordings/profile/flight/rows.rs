//! Events of a chunk one by one, with the fields that most of them have.

use std::ops::Range;
use std::sync::Arc;

use hprof_jfr::metadata::Class;
use hprof_jfr::values::Constant;
use hprof_jfr::{Chunk, ChunkSpan, FlightError, Record, Value};

use super::chunk_sums::thread_name;
use super::stacks::{Names, Stacks};
use crate::recordings::profile::Frame;

/// An event.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'e> {
    /// Name of the type, `jdk.ExecutionSample`.
    pub event: &'e str,
    /// Start, in nanoseconds since 1970.
    pub nanos: Option<i64>,
    /// Duration in nanoseconds.
    pub duration_nanos: Option<i64>,
    /// Name of the thread.
    pub thread: Option<&'e str>,
    /// Innermost frame of the stack.
    pub top: Option<&'e Frame>,
    /// Class that the event is about.
    pub class: Option<&'e str>,
    /// Bytes that the event states.
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
    bytes: Vec<usize>,
}

impl Fields {
    /// Names of fields with a class, and of fields with bytes: the first one that is not 0 counts.
    const CLASSES: [&str; 5] = ["objectClass", "monitorClass", "parkedClass", "thrownClass", "loadedClass"];
    const BYTES: [&str; 6] = ["weight", "tlabSize", "allocationSize", "objectSize", "heapUsed", "totalSize"];

    fn of(class: &Class) -> Self {
        let field = |name: &str| class.field(name);
        Self {
            start: field("startTime"),
            duration: field("duration"),
            // A sample is taken by another thread; starts and ends are about a thread.
            thread: ["sampledThread", "thread", "eventThread"].into_iter().find_map(field),
            stack: field("stackTrace"),
            class: Self::CLASSES.into_iter().find_map(field),
            bytes: Self::BYTES.into_iter().filter_map(field).collect(),
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
            last_thread.as_ref().and_then(|(_, name)| name.clone())
        });
        let top = of.stack.and_then(|index| constant(fields, index));
        let top = top.map(|trace| stacks.index(trace, 0, &mut names).0);
        let named = of.class.and_then(|index| constant(fields, index)).and_then(|class| names.class(class));
        let bytes = of.bytes.iter().filter_map(|index| u64::try_from(integer(fields, *index)?).ok());
        visit(EventRow {
            event: &class.name,
            nanos: of.start.and_then(|index| integer(fields, index)).map(|ticks| chunk.nanos(ticks)),
            duration_nanos: of
                .duration
                .and_then(|index| integer(fields, index))
                .map(|ticks| chunk.duration_nanos(ticks)),
            thread: thread.as_deref(),
            top: top.and_then(|stack| stacks.innermost(stack)),
            class: named.as_deref(),
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
