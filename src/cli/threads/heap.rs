//! The threads of a heap dump, for `threads`.

use std::io::Write;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::model::summary::Summary;
use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::classes::suggestions;
use crate::query::objects::selection::ThreadPattern;
use crate::query::threads::{Answer, Kind, Local, Question, Row, StackFrame, State, Thread, Threads, Wait};
use crate::report::stacks::thread_dump::{self, Locals};
use crate::report::stream::Streamed;
use crate::report::table::{self, Align, Builder, Style, grouped};
use crate::report::{csv, escape, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::Input;
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output, stack};

/// So many threads are read to see that nothing is wrong with what the index says of them. For more of them all of the
/// index is looked at, which takes less time.
const FEW: usize = 1 << 10;
/// Columns of space before a frame in a table.
const INDENT: usize = 8;

/// How threads are shown.
pub(crate) struct How {
    /// The format.
    pub(crate) show: Show,
    /// Whether a table has stacks.
    pub(crate) stacks: Stacks,
    /// Whether stacks have locals.
    pub(crate) locals: Locals,
    /// How tables are shown.
    pub(crate) style: Style,
}

/// The formats: those of every command, and a thread dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// For people.
    Table,
    /// One document.
    Json,
    /// A header line, then one line a row.
    Csv,
    /// A thread dump.
    Text,
}

/// Whether stacks are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    /// They are.
    Shown,
    /// They are not.
    Hidden,
}

pub(crate) fn run(input: &Input, question: &Question, how: &How) -> anyhow::Result<Outcome> {
    let (heap, graph, answer) = input.with_graph(|heap, graph| {
        let threads = Threads::new(heap, graph, heap.bytes(&Quiet)?);
        let answer = threads.find(question);
        // Threads are read again while they are written: all their stacks need not fit into memory. What is damaged in the
        // index is noticed here.
        if answer.rows.len() <= FEW {
            answer.rows.par_iter().for_each(|row| drop(threads.thread(row)));
        } else {
            graph.check_tree();
        }
        Ok(answer)
    })?;
    let threads = Threads::new(&heap, &graph, heap.bytes(&Quiet)?);
    let mut out = output::stdout();
    let view = View { heap: &heap, threads: &threads, rows: &answer.rows };
    match how.show {
        // A note says it.
        Show::Table if answer.rows.is_empty() => {}
        Show::Table => view.table(&mut out, how)?,
        Show::Csv => view.csv(&mut out)?,
        Show::Json => {
            let rows = view.all().map(|thread| RowOut::of(heap.summary(), &thread));
            output::json(&mut out, "threads", &heap, Streamed::new(rows), more(&answer))?;
        }
        Show::Text => view.text(&mut out, how.locals)?,
    }
    if how.show == Show::Table {
        output::left_out(&mut out, answer.rows.len(), answer.matching, "threads")?;
    }
    output::finish(out)?;
    anyhow::ensure!(!graph.is_damaged(), "the index was damaged while it was read; ask again");
    if answer.rows.is_empty() && !input.quiet {
        nothing(&graph, &answer, question);
    }
    Ok(match (heap.summary().is_damaged(), answer.rows.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

/// Says why there is no row, and what there is instead.
fn nothing(graph: &ObjectGraph, answer: &Answer, question: &Question) {
    if answer.threads == 0 {
        return messages::line("note", "the dump holds no threads");
    }
    messages::line("note", &format!("none of {} threads matches", grouped(answer.threads)));
    let near = match &question.name {
        Some(ThreadPattern::Object(id)) if graph.objects.addresses.index_of(*id).is_some() => {
            return messages::line("hint", &format!("{id:#x} is another object; `hprof-cli show` shows it"));
        }
        Some(ThreadPattern::Object(id)) => {
            suggestions::object_ids(graph, *id).into_iter().map(object_id).collect()
        }
        _ => answer.near.clone(),
    };
    if !near.is_empty() {
        messages::line("hint", &format!("there are {}", near.join(", ")));
    }
}

/// The keys beside the rows.
fn more(answer: &Answer) -> Value {
    let state = |(state, threads): &(Option<State>, u64)| json!({ "state": state.map(State::name), "threads": threads });
    json!({
        "states": answer.states.iter().map(state).collect::<Vec<_>>(),
        "virtual_threads": answer.virtual_threads,
        "matching": { "rows": answer.matching },
        "left_out": answer.matching.saturating_sub(answer.rows.len() as u64),
    })
}

/// The threads that are shown.
struct View<'a> {
    heap: &'a Heap,
    threads: &'a Threads<'a>,
    rows: &'a [Row],
}

impl<'a> View<'a> {
    /// One after another.
    fn all(&self) -> impl Iterator<Item = Thread> + use<'a> {
        let threads = self.threads;
        self.rows.iter().map(|row| threads.thread(row))
    }

    fn text(&self, out: &mut dyn Write, locals: Locals) -> anyhow::Result<()> {
        let summary = self.heap.summary();
        let created = output::timestamp(summary.facts().created_ms.get());
        thread_dump::head(out, summary, created.as_deref())?;
        for thread in self.all() {
            thread_dump::thread(out, summary, &thread, locals)?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let rows = self.all().map(|thread| RowOut::of_csv(self.heap.summary(), &thread));
        Ok(csv::write_flat(out, COLUMNS, rows)?)
    }

    fn table(&self, out: &mut dyn Write, how: &How) -> anyhow::Result<()> {
        let mut table = Builder::new(&[
            ("retained", Align::Right),
            ("state", Align::Left),
            ("prio", Align::Right),
            ("kind", Align::Left),
            ("group", Align::Left),
            ("object", Align::Left),
            ("name", Align::Left),
        ]);
        let mut stacks = Vec::new();
        for thread in self.all() {
            let kind = match (thread.kind, thread.is_daemon) {
                (Kind::Virtual, _) => "virtual",
                (Kind::Platform, Some(true)) => "daemon",
                (Kind::Platform, _) => "",
            };
            table.row([
                thread.retained_bytes.map_or_else(|| "unreachable".to_owned(), grouped),
                thread.doing.state.map_or("", State::name).to_owned(),
                thread.priority.map(|priority| priority.to_string()).unwrap_or_default(),
                kind.to_owned(),
                thread.group.clone().unwrap_or_default(),
                object_id(thread.object),
                thread.name.clone().unwrap_or_default(),
            ]);
            if how.stacks == Stacks::Shown {
                stacks.push(self.stack(&thread, how));
            }
        }
        if how.stacks == Stacks::Hidden {
            return Ok(table.write(out, how.style)?);
        }
        let mut text = Vec::new();
        table.write(&mut text, how.style)?;
        let text = String::from_utf8_lossy(&text);
        // A title, then a line for each row.
        let (mut lines, mut stacks) = (text.lines(), stacks.into_iter());
        if let Some(title) = lines.next() {
            writeln!(out, "{title}")?;
        }
        for line in lines {
            writeln!(out, "{line}")?;
            stacks.next().into_iter().flatten().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    /// The lines below a row.
    fn stack(&self, thread: &Thread, how: &How) -> Vec<String> {
        let room = how.style.width.map_or(usize::MAX, |width| usize::from(width).saturating_sub(INDENT));
        let mut lines = Vec::new();
        let mut line = |indent: usize, text: &str| {
            let room = room.saturating_sub(indent).max(table::NARROWEST);
            lines.push(format!("{:1$}{2}", "", INDENT + indent, table::shorten(&escape::text(text), room)));
        };
        let held = |local: &Local| {
            let class = object::class_name(self.heap.summary(), local.object.class);
            let retained = local.retained_bytes.map_or_else(|| "unreachable".to_owned(), grouped);
            let object = object::describe(class, local.object.id, local.label.as_deref());
            format!("{retained}  {}  {object}", local.kind.name())
        };
        for frame in &thread.frames {
            line(0, &frame.frame.to_string());
            if how.locals == Locals::Shown {
                frame.locals.iter().for_each(|local| line(4, &held(local)));
            }
        }
        if thread.frames_left_out > 0 {
            line(0, &format!("… {} more frames", grouped(thread.frames_left_out)));
        }
        if how.locals == Locals::Shown && !thread.locals.is_empty() {
            line(0, "<in no frame>");
            thread.locals.iter().for_each(|local| line(4, &held(local)));
        }
        lines
    }
}

/// A row. Frames and locals are lists, or in a cell of CSV lists as JSON.
#[derive(Serialize)]
struct RowOut<F, L> {
    object: String,
    class: Option<String>,
    name: Option<String>,
    thread_id: Option<i64>,
    daemon: Option<bool>,
    priority: Option<i64>,
    group: Option<String>,
    r#virtual: bool,
    state: Option<&'static str>,
    waiting: Option<&'static str>,
    blocker: Option<String>,
    blocker_class: Option<String>,
    carrier: Option<String>,
    shallow_bytes: u64,
    retained_bytes: Option<u64>,
    frames: F,
    frames_left_out: u64,
    locals: L,
}

#[derive(Serialize)]
struct FrameOut {
    class: Option<String>,
    method: Option<String>,
    source: Option<String>,
    line: Option<u32>,
    native: bool,
    locals: Vec<LocalOut>,
}

#[derive(Serialize)]
struct LocalOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    kind: &'static str,
    retained_bytes: Option<u64>,
}

/// The columns of CSV: the keys of a row.
const COLUMNS: &[&str] = &[
    "object",
    "class",
    "name",
    "thread_id",
    "daemon",
    "priority",
    "group",
    "virtual",
    "state",
    "waiting",
    "blocker",
    "blocker_class",
    "carrier",
    "shallow_bytes",
    "retained_bytes",
    "frames",
    "frames_left_out",
    "locals",
];

impl RowOut<Vec<FrameOut>, Vec<LocalOut>> {
    fn of(summary: &Summary, thread: &Thread) -> Self {
        let (frames, locals) = (FrameOut::all(summary, thread), LocalOut::all(summary, &thread.locals));
        Self::new(summary, thread, str::to_owned, frames, locals)
    }
}

impl RowOut<String, String> {
    fn of_csv(summary: &Summary, thread: &Thread) -> Self {
        let (frames, locals) = (FrameOut::all(summary, thread), LocalOut::all(summary, &thread.locals));
        let [frames, locals] = [json!(frames), json!(locals)].map(|list| object::cell(&list.to_string()));
        Self::new(summary, thread, object::cell, frames, locals)
    }
}

impl<F, L> RowOut<F, L> {
    fn new(summary: &Summary, thread: &Thread, text: AsText, frames: F, locals: L) -> Self {
        let blocker = thread.blocker.as_ref();
        Self {
            object: object_id(thread.object),
            class: object::class_name(summary, thread.class).map(text),
            name: thread.name.as_deref().map(text),
            thread_id: thread.thread_id,
            daemon: thread.is_daemon,
            priority: thread.priority,
            group: thread.group.as_deref().map(text),
            r#virtual: thread.kind == Kind::Virtual,
            state: thread.doing.state.map(State::name),
            waiting: thread.doing.wait.map(Wait::name),
            blocker: blocker.map(|blocker| object_id(blocker.id)),
            blocker_class: blocker.and_then(|blocker| object::class_name(summary, blocker.class)).map(text),
            carrier: thread.carrier.map(object_id),
            shallow_bytes: thread.shallow_bytes,
            retained_bytes: thread.retained_bytes,
            frames,
            frames_left_out: thread.frames_left_out,
            locals,
        }
    }
}

impl FrameOut {
    fn all(summary: &Summary, thread: &Thread) -> Vec<Self> {
        let own = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let out = |stack: &StackFrame| Self {
            class: own(&stack.frame.class),
            method: own(&stack.frame.method),
            source: own(&stack.frame.source),
            line: stack.frame.line(),
            native: stack::is_native(&stack.frame),
            locals: LocalOut::all(summary, &stack.locals),
        };
        thread.frames.iter().map(out).collect()
    }
}

impl LocalOut {
    fn all(summary: &Summary, locals: &[Local]) -> Vec<Self> {
        let out = |local: &Local| Self {
            object: object_id(local.object.id),
            class: object::class_name(summary, local.object.class).map(str::to_owned),
            label: local.label.clone(),
            kind: local.kind.name(),
            retained_bytes: local.retained_bytes,
        };
        locals.iter().map(out).collect()
    }
}
