//! The tables `threads`, `frames` and `locals`.
//!
//! A dump can contain a million virtual threads with their stacks: threads are found once, and read together with their
//! rows.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::super::{
    Batch, Column, ColumnNames, Context, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableQuery, Wanted,
};
use super::once;
use hprof_base::dictionary::names;
use hprof_index::model::summary::ClassNumber;
use hprof_model::threads::frames::NATIVE;
use hprof_model::threads::{
    JavaThread, Local, ThreadKind, ThreadOrder, ThreadQuery, ThreadRow, ThreadState, Threads, Wait,
};

/// Threads per chunk.
const CHUNK: usize = 1 << 10;

/// Approximate number of frames and locals of a thread.
const USUAL_FRAMES: f64 = 10.0;

/// Kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadTableKind {
    /// A row for each thread.
    Threads,
    /// A row for each frame.
    Frames,
    /// A row for each object that a stack holds.
    Locals,
}

/// One of the tables.
pub(crate) struct ThreadTable<'a> {
    context: Arc<Context<'a>>,
    of: ThreadTableKind,
    definition: Definition,
}

impl<'a> ThreadTable<'a> {
    pub(crate) fn open(context: Arc<Context<'a>>, of: ThreadTableKind) -> Box<dyn Table + 'a> {
        Box::new(Self { context, of, definition: definition(of) })
    }

    /// Returns the threads, by object ID.
    fn found(&self) -> (&Threads<'a>, &[ThreadRow]) {
        let (threads, rows) = once(&self.context.threads, || {
            let threads = Threads::new(&self.context.dump);
            let rows =
                threads.find(&ThreadQuery { sort_by: ThreadOrder::Address, ..ThreadQuery::default() }).rows;
            (threads, rows)
        });
        (threads, rows)
    }
}

/// Returns the definition of a table.
pub(crate) fn definition(of: ThreadTableKind) -> Definition {
    let unknown = "not known";
    match of {
        ThreadTableKind::Threads => Definition {
            name: "threads".into(),
            meaning: "A Thread object, as `threads` shows".into(),
            order: "by ID".into(),
            columns: vec![
                Column::of(names::OBJECT),
                Column::of(names::NAME).or_null("the dump has none"),
                Column::of(names::STATE).few().or_null(unknown),
                Column::of(names::WAITING).few().or_null("it does not wait, or it is not known"),
                Column::of(names::CLASS).few().or_null("the dump does not name it"),
                Column::of(names::THREAD_ID).or_null(unknown),
                Column::of(names::IS_DAEMON).or_null(unknown),
                Column::of(names::PRIORITY).or_null(unknown),
                Column::of(names::THREAD_GROUP).or_null("it has none, or it is not known"),
                Column::of(names::IS_VIRTUAL),
                Column::of(names::IS_OUT_OF_MEMORY),
                Column::of(names::BLOCKER).or_null("null"),
                Column::of(names::BLOCKER_CLASS)
                    .few()
                    .or_null("no `blocker`, or the dump does not name its class"),
                Column::of(names::CARRIER).or_null("it is none"),
                Column::of(names::SHALLOW_BYTES),
                Column::of(names::RETAINED_BYTES).or_null("it is unreachable"),
                Column::of(names::FRAME_COUNT),
                Column::of(names::LOCAL_COUNT),
                Column::of(names::TRACE).or_null("it has none"),
            ],
        },
        ThreadTableKind::Frames => Definition {
            name: "frames".into(),
            meaning: "A frame of a thread's stack".into(),
            order: "by thread; frames innermost first".into(),
            columns: vec![
                Column::of(names::THREAD),
                Column::of(names::FRAME_NUMBER),
                Column::of(names::CLASS).or_null("the dump does not name it"),
                Column::of(names::METHOD).or_null("the dump does not name it"),
                Column::of(names::SOURCE).or_null(unknown),
                Column::of(names::LINE).or_null(unknown),
                Column::of(names::IS_NATIVE),
                Column::of(names::LOCAL_COUNT),
            ],
        },
        ThreadTableKind::Locals => Definition {
            name: "locals".into(),
            meaning: "An object that a thread's stack holds; of a frame each once for each kind of root"
                .into(),
            order: "by thread; frames innermost first, objects in no frame last".into(),
            columns: vec![
                Column::of(names::THREAD),
                Column::of(names::FRAME_NUMBER).or_null("it is in no known frame"),
                Column::of(names::OBJECT),
                Column::of(names::CLASS).few().or_null("the dump does not name it"),
                Column::of(names::KIND).few(),
                Column::of(names::RETAINED_BYTES).or_null("it is unreachable"),
                Column::of(names::LABEL).or_null("there are none").secret(),
            ],
        },
    }
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
        let (_, rows) = self.found();
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

    fn read(&self, chunk: &TableChunk, _: Wanted, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(range) = chunk else { return Ok(()) };
        let Range { start, end } = range.clone();
        let (threads, rows) = self.found();
        for (at, row) in (start..).zip(rows.get(start..end.min(rows.len())).unwrap_or_default()) {
            let thread = threads.thread(row);
            let before = batch.rows;
            match self.of {
                ThreadTableKind::Threads => thread_row(row, &thread, batch),
                ThreadTableKind::Frames => frame_rows(&thread, batch),
                ThreadTableKind::Locals => local_rows(&thread, batch),
            }
            // The thread and the position among its rows: the same for every query.
            let first = i64::try_from(at).unwrap_or(0) << 32;
            batch.row_numbers.extend((first..).take(batch.rows - before));
        }
        Ok(())
    }
}

fn number(class: Option<ClassNumber>) -> Option<u32> {
    class.map(|class| class.0)
}

fn thread_row(row: &ThreadRow, thread: &JavaThread, batch: &mut Batch) {
    let locals = thread.frames.iter().map(|frame| frame.locals.len()).sum::<usize>() + thread.locals.len();
    batch.column(0).id(Some(thread.object));
    batch.column(1).text(thread.name.as_deref());
    batch.column(2).text(thread.doing.state.map(ThreadState::name));
    batch.column(3).text(thread.doing.wait.map(Wait::name));
    batch.column(4).name(number(thread.class));
    batch.column(5).integer(thread.thread_id);
    batch.column(6).boolean(thread.is_daemon);
    batch.column(7).integer(thread.priority);
    batch.column(8).text(thread.group.as_deref());
    batch.column(9).boolean(Some(thread.kind == ThreadKind::Virtual));
    batch.column(10).boolean(Some(thread.is_out_of_memory));
    batch.column(11).id(thread.blocker.map(|blocker| blocker.id));
    batch.column(12).name(thread.blocker.and_then(|blocker| number(blocker.class)));
    batch.column(13).id(thread.carrier);
    batch.column(14).count(Some(thread.shallow_bytes));
    batch.column(15).count(thread.retained_bytes);
    batch.column(16).count(Some(row.frames()));
    batch.column(17).count(Some(locals as u64));
    batch.column(18).count(row.trace().map(|trace| trace.0.into()));
    batch.rows += 1;
}

fn frame_rows(thread: &JavaThread, batch: &mut Batch) {
    for (number, stack) in (0u64..).zip(&thread.frames) {
        let frame = &stack.frame;
        batch.column(0).id(Some(thread.object));
        batch.column(1).count(Some(number));
        batch.column(2).text(frame.class.as_deref());
        batch.column(3).text(frame.method.as_deref());
        batch.column(4).text(frame.source.as_deref());
        batch.column(5).count(frame.line().map(u64::from));
        batch.column(6).boolean(Some(frame.line == NATIVE));
        batch.column(7).count(Some(stack.locals.len() as u64));
        batch.rows += 1;
    }
}

fn local_rows(thread: &JavaThread, batch: &mut Batch) {
    let in_frames = (0u64..).zip(&thread.frames).map(|(number, stack)| (Some(number), &stack.locals));
    for (frame, locals) in in_frames.chain([(None, &thread.locals)]) {
        for local in locals {
            local_row(thread, frame, local, batch);
        }
    }
}

fn local_row(thread: &JavaThread, frame: Option<u64>, local: &Local, batch: &mut Batch) {
    batch.column(0).id(Some(thread.object));
    batch.column(1).count(frame);
    batch.column(2).id(Some(local.object.id));
    batch.column(3).name(number(local.object.class));
    batch.column(4).text(Some(local.kind.name()));
    batch.column(5).count(local.retained_bytes);
    batch.column(6).text(local.label.as_deref());
    batch.rows += 1;
}
