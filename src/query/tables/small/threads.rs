//! The tables `threads`, `frames` and `locals`.
//!
//! A dump can contain a million virtual threads with their stacks: threads are found once, and read together with their
//! rows.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::super::fact_columns::{FactColumns, columns, own_columns};
use super::super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableContext, TableQuery,
};
use super::once;
use hprof_base::dictionary::names;
use hprof_base::fact::Fact;
use hprof_model::threads::frames::Frame;
use hprof_model::threads::{JavaThread, Local, StackFrame, ThreadOrder, ThreadQuery, ThreadRow, Threads};
use hprof_values::{ObjectId, TraceSerial};

/// Threads per chunk.
const CHUNK: usize = 1 << 10;

/// Approximate number of frames and locals of a thread.
const USUAL_FRAMES: f64 = 10.0;

/// Kind of table about threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadTableKind {
    /// A row for each thread.
    Threads,
    /// A row for each frame.
    Frames,
    /// A row for each object that a stack holds.
    Locals,
}

/// A table of threads, frames or locals.
pub(crate) struct ThreadTable<'a> {
    context: Arc<TableContext<'a>>,
    of: ThreadTableKind,
    definition: Definition,
    columns: ThreadColumns,
}

/// The columns of a table of threads, frames or locals.
enum ThreadColumns {
    Threads(FactColumns<'static, ThreadEntry>),
    Frames(FactColumns<'static, FrameEntry>),
    Locals(FactColumns<'static, LocalEntry>),
}

/// Row of `threads`.
struct ThreadEntry {
    thread: JavaThread,
    frames: u64,
    trace: Option<TraceSerial>,
}

impl ThreadEntry {
    fn locals(&self) -> u64 {
        let JavaThread { frames, locals, .. } = &self.thread;
        (frames.iter().map(|frame| frame.locals.len()).sum::<usize>() + locals.len()) as u64
    }
}

/// Row of `frames`.
struct FrameEntry {
    thread: ObjectId,
    number: u64,
    stack: StackFrame,
}

/// Row of `locals`.
struct LocalEntry {
    thread: ObjectId,
    frame: Option<u64>,
    local: Local,
}

impl<'a> ThreadTable<'a> {
    /// Opens a table about threads.
    pub(crate) fn open(context: Arc<TableContext<'a>>, of: ThreadTableKind) -> Box<dyn Table + 'a> {
        Box::new(Self { context, of, definition: definition(of), columns: ThreadColumns::new(of) })
    }

    /// Returns the threads, by object ID.
    fn thread_rows(&self) -> (&Threads<'a>, &[ThreadRow]) {
        let (threads, rows) = once(&self.context.threads, || {
            let threads = Threads::new(&self.context.dump);
            let rows =
                threads.find(&ThreadQuery { sort_by: ThreadOrder::Address, ..ThreadQuery::default() }).rows;
            (threads, rows)
        });
        (threads, rows)
    }
}

impl ThreadColumns {
    fn new(of: ThreadTableKind) -> Self {
        match of {
            ThreadTableKind::Threads => Self::Threads(thread_columns()),
            ThreadTableKind::Frames => Self::Frames(frame_columns()),
            ThreadTableKind::Locals => Self::Locals(local_columns()),
        }
    }

    fn definitions(&self) -> Vec<Column> {
        match self {
            Self::Threads(columns) => columns.definitions(),
            Self::Frames(columns) => columns.definitions(),
            Self::Locals(columns) => columns.definitions(),
        }
    }
}

fn thread_columns() -> FactColumns<'static, ThreadEntry> {
    let own = vec![
        Fact::new(names::FRAME_COUNT, |entry: &ThreadEntry| entry.frames.into()),
        Fact::new(names::LOCAL_COUNT, |entry: &ThreadEntry| entry.locals().into()),
        Fact::new(names::TRACE, |entry: &ThreadEntry| entry.trace.into())
            .or_null("the thread has no stack trace"),
    ];
    let mut facts = columns(JavaThread::facts(), |entry: &ThreadEntry| &entry.thread);
    facts.extend(own_columns(own));
    let shown = [
        names::OBJECT,
        names::NAME,
        names::STATE,
        names::WAITING,
        names::CLASS,
        names::THREAD_ID,
        names::IS_DAEMON,
        names::PRIORITY,
        names::THREAD_GROUP,
        names::IS_VIRTUAL,
        names::IS_OUT_OF_MEMORY,
        names::BLOCKER,
        names::BLOCKER_CLASS,
        names::CARRIER,
        names::SHALLOW_BYTES,
        names::RETAINED_BYTES,
        names::FRAME_COUNT,
        names::LOCAL_COUNT,
        names::TRACE,
    ];
    FactColumns::new(&shown, &[names::STATE, names::WAITING, names::CLASS, names::BLOCKER_CLASS], facts)
}

fn frame_columns() -> FactColumns<'static, FrameEntry> {
    let own = vec![
        Fact::new(names::THREAD, |entry: &FrameEntry| entry.thread.into()),
        Fact::new(names::FRAME_NUMBER, |entry: &FrameEntry| entry.number.into()),
        Fact::new(names::LOCAL_COUNT, |entry: &FrameEntry| (entry.stack.locals.len() as u64).into()),
    ];
    let mut facts = columns(Frame::facts(), |entry: &FrameEntry| &entry.stack.frame);
    facts.extend(own_columns(own));
    let shown = [
        names::THREAD,
        names::FRAME_NUMBER,
        names::CLASS,
        names::METHOD,
        names::SOURCE,
        names::LINE,
        names::IS_NATIVE,
        names::LOCAL_COUNT,
    ];
    FactColumns::new(&shown, &[], facts)
}

fn local_columns() -> FactColumns<'static, LocalEntry> {
    let own = vec![
        Fact::new(names::THREAD, |entry: &LocalEntry| entry.thread.into()),
        Fact::new(names::FRAME_NUMBER, |entry: &LocalEntry| entry.frame.into())
            .or_null("the object is in no known frame"),
    ];
    let mut facts = columns(Local::facts(), |entry: &LocalEntry| &entry.local);
    facts.extend(own_columns(own));
    let shown = [
        names::THREAD,
        names::FRAME_NUMBER,
        names::OBJECT,
        names::CLASS,
        names::KIND,
        names::RETAINED_BYTES,
        names::LABEL,
    ];
    FactColumns::new(&shown, &[names::CLASS, names::KIND], facts)
}

/// Returns the definition of a table about threads.
pub(crate) fn definition(of: ThreadTableKind) -> Definition {
    let (name, meaning, order) = match of {
        ThreadTableKind::Threads => ("threads", "A Thread object, as in `threads`", "by object ID"),
        ThreadTableKind::Frames => {
            ("frames", "A frame of a thread's stack", "by thread, innermost frame first")
        }
        ThreadTableKind::Locals => (
            "locals",
            "An object that a thread's stack holds; within a frame, one row for each kind of root",
            "by thread, innermost frame first, objects in no frame last",
        ),
    };
    let columns = ThreadColumns::new(of).definitions();
    Definition { name: name.into(), meaning: meaning.into(), order: order.into(), columns }
}

impl Table for ThreadTable<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        let Some((_, rows)) = self.context.threads.get() else {
            return super::USUAL_ROWS;
        };
        match self.of {
            ThreadTableKind::Threads => rows.len() as u64,
            ThreadTableKind::Frames | ThreadTableKind::Locals => {
                rows.iter().fold(0, |sum, row| sum.saturating_add(row.frames()))
            }
        }
    }

    fn lookups(&self) -> Vec<Lookup> {
        let rows = if self.of == ThreadTableKind::Threads { 1.0 } else { USUAL_FRAMES };
        vec![Lookup { column: 0, operator: Operator::Equal, rows }]
    }

    fn names(&self, column: usize) -> ColumnNames {
        let name = self.definition.columns.get(column).map(|column| &*column.name);
        if matches!(name, Some("class" | "blocker_class")) {
            self.context.class_names.clone()
        } else {
            ColumnNames::default()
        }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        let (_, rows) = self.thread_rows();
        Ok(match question {
            TableQuery::Of(_, _, LookupKey::Integer(id)) => {
                let object = self.context.object(*id);
                let at = object.and_then(|id| rows.binary_search_by_key(&id, ThreadRow::object).ok());
                at.map(|at| TableChunk::Rows(at..at + 1)).into_iter().collect()
            }
            TableQuery::Of(..) => Vec::new(),
            _ => {
                let starts = (0..rows.len()).step_by(CHUNK);
                starts.map(|start| TableChunk::Rows(start..rows.len().min(start + CHUNK))).collect()
            }
        })
    }

    fn read(&self, chunk: &TableChunk, _: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(range) = chunk else { return Ok(()) };
        let Range { start, end } = range.clone();
        let (threads, rows) = self.thread_rows();
        for (at, row) in (start..).zip(rows.get(start..end.min(rows.len())).unwrap_or_default()) {
            let thread = threads.thread(row);
            let before = batch.rows;
            match &self.columns {
                ThreadColumns::Threads(columns) => {
                    columns.add(&ThreadEntry { thread, frames: row.frames(), trace: row.trace() }, batch);
                }
                ThreadColumns::Frames(columns) => {
                    let object = thread.object;
                    for (number, stack) in (0..).zip(thread.frames) {
                        columns.add(&FrameEntry { thread: object, number, stack }, batch);
                    }
                }
                ThreadColumns::Locals(columns) => add_locals(thread, columns, batch),
            }
            // The thread and the position among its rows: the same for every query.
            let first = i64::try_from(at).unwrap_or(0) << 32;
            batch.row_numbers.extend((first..).take(batch.rows - before));
        }
        Ok(())
    }
}

fn add_locals(thread: JavaThread, columns: &FactColumns<'_, LocalEntry>, batch: &mut Batch) {
    let in_frames = (0u64..).zip(thread.frames).map(|(number, stack)| (Some(number), stack.locals));
    for (frame, locals) in in_frames.chain([(None, thread.locals)]) {
        for local in locals {
            columns.add(&LocalEntry { thread: thread.object, frame, local }, batch);
        }
    }
}
