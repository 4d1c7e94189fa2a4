//! The threads of a heap dump, for `threads`.

use rayon::prelude::*;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_query::threads::{
    JavaThread, Local, StackFrame, ThreadKind, ThreadQuery, ThreadReport, ThreadState, Threads,
};
use hprof_report::answer::RowLine;
use hprof_report::column::{JsonField, TableColumn};
use hprof_report::stacks::thread_dump::{self, Locals};
use hprof_report::table::Style;
use hprof_report::value::{list, record};

use crate::cli::prelude::*;
use crate::cli::shared::{facts, object, output, stack};

/// Maximum number of threads that are read before anything is shown. For more, checking the whole index takes less time.
const FEW: usize = 1 << 10;
/// Indentation of a frame in a table.
pub(super) const INDENT: usize = 8;
/// Indentation of a local variable in a table.
pub(super) const INDENT_LOCAL: usize = 12;

/// The threads that match a query.
pub(super) struct FoundThreads {
    pub(super) report: ThreadReport,
    /// `true` if the dump contains stacks, but does not say of which threads.
    pub(super) has_unassigned_stacks: bool,
    /// Data of the threads, if there are few. Otherwise they are read while they are written, as their stacks may not fit into
    /// memory.
    few: Vec<JavaThread>,
}

impl FoundThreads {
    fn rows<'a>(&'a self, threads: &'a Threads<'_>) -> impl Iterator<Item = JavaThread> + 'a {
        let rows = self.report.rows.iter().enumerate();
        rows.map(|(at, row)| self.few.get(at).cloned().unwrap_or_else(|| threads.thread(row)))
    }
}

/// Opens the dump and finds its threads.
pub(super) fn ask(
    cx: &RunContext,
    input: &Input,
    question: &ThreadQuery,
) -> anyhow::Result<(Session, FoundThreads)> {
    Session::ask(cx, input, |dump| {
        let threads = Threads::new(dump);
        let report = threads.find(question);
        // Damage to the index must be noticed here.
        let few = if report.rows.len() <= FEW {
            report.rows.par_iter().map(|row| threads.thread(row)).collect()
        } else {
            dump.graph.check_tree();
            Vec::new()
        };
        Ok(FoundThreads { report, has_unassigned_stacks: threads.has_unassigned_stacks(), few })
    })
}

/// Shows threads in the formats that all commands have; in a table with stacks and local variables if requested.
pub(super) fn show(
    cx: &RunContext,
    session: &Session,
    found: &FoundThreads,
    format: OutputFormat,
    style: Style,
    stacks: Option<Locals>,
) -> anyhow::Result<()> {
    let summary = session.heap.summary();
    let threads = Threads::new(&session.dump()?);
    let answer = Answer::new(columns(Some(summary)), found.rows(&threads))
        .with_summary(&summary_columns(), &found.report)
        .matching(found.report.matching, "threads")
        .with_lines_below(|thread| stacks.map(|locals| stack(summary, thread, locals)).unwrap_or_default())
        // Explained by a note.
        .if_empty(NoRows::Nothing);
    session.show_as(cx, "threads", format, style, answer)?;
    Ok(())
}

/// Shows threads in the format of a thread dump.
pub(super) fn show_text(
    cx: &RunContext,
    session: &Session,
    found: &FoundThreads,
    locals: Locals,
) -> anyhow::Result<()> {
    let (heap, mut out) = (&session.heap, cx.writer());
    let threads = Threads::new(&session.dump()?);
    let created = output::timestamp(heap.summary().facts().created_ms.get());
    thread_dump::head(&mut out, heap.summary(), created.as_deref())?;
    for thread in found.rows(&threads) {
        thread_dump::thread(&mut out, heap.summary(), &thread, locals)?;
    }
    output::finish_if(out, session.check())
}

/// Returns the lines of the stack below a row.
fn stack(summary: &Summary, thread: &JavaThread, locals: Locals) -> Vec<RowLine> {
    let one = |local: &Local| {
        let class = object::class_name(summary, local.object.class);
        let object = object::describe(class, local.object.id, local.label.as_deref());
        let text = format!("{}  {}  {object}", retained_text(local.retained_bytes), local.kind.name());
        RowLine { indent: INDENT_LOCAL, text }
    };
    let held = |held: &[Local]| -> Vec<RowLine> {
        held.iter().filter(|_| locals == Locals::Shown).map(one).collect()
    };
    let line = |text: String| RowLine { indent: INDENT, text };
    let mut lines = Vec::new();
    for frame in &thread.frames {
        lines.push(line(frame.frame.to_string()));
        lines.extend(held(&frame.locals));
    }
    if thread.frames_left_out > 0 {
        lines.push(line(format!("… {} more frames", group_digits(thread.frames_left_out))));
    }
    let in_no_frame = held(&thread.locals);
    if !in_no_frame.is_empty() {
        lines.push(line("<in no frame>".to_owned()));
        lines.extend(in_no_frame);
    }
    lines
}

/// Formats a retained size for a table.
fn retained_text(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "unreachable".to_owned(), group_digits)
}

/// Returns the columns for threads. Which columns there are does not depend on `summary`.
fn columns<'a>(summary: Option<&'a Summary>) -> Columns<'a, JavaThread> {
    let (locals, frames) = (local_columns(summary), frame_columns(summary));
    let mut columns = facts::columns(JavaThread::facts(), summary, |thread: &JavaThread| thread);
    columns.extend([
        Column::with_fields(names::FRAMES, frames.fields(), move |thread: &JavaThread| {
            list(thread.frames.iter().map(|frame| frames.record(frame)))
        }),
        Column::new(names::FRAMES_LEFT_OUT, |thread: &JavaThread| thread.frames_left_out.into()),
        Column::with_fields(names::LOCALS, locals.fields(), move |thread: &JavaThread| {
            list(thread.locals.iter().map(|local| locals.record(local)))
        }),
    ]);
    Columns::new(columns).table([
        TableColumn::new(names::RETAINED_BYTES, "retained")
            .cell(|thread: &JavaThread| retained_text(thread.retained_bytes)),
        TableColumn::new(names::STATE, "state"),
        TableColumn::new(names::PRIORITY, "prio").fit(Fit::Secondary { priority: 0 }).cell(
            |thread: &JavaThread| thread.priority.map(|priority| priority.to_string()).unwrap_or_default(),
        ),
        TableColumn::new(names::IS_VIRTUAL, "kind").fit(Fit::Secondary { priority: 2 }).cell(
            |thread: &JavaThread| {
                let kind = match (thread.kind, thread.is_daemon) {
                    (ThreadKind::Virtual, _) => "virtual",
                    (ThreadKind::Platform, Some(true)) => "daemon",
                    (ThreadKind::Platform, _) => "",
                };
                kind.to_owned()
            },
        ),
        TableColumn::new(names::THREAD_GROUP, "group").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::OBJECT, "object"),
        TableColumn::new(names::NAME, "name").fit(Fit::Cut { priority: 2 }).cell(|thread: &JavaThread| {
            let name = thread.name.clone().unwrap_or_default();
            if thread.is_out_of_memory { format!("{name}  {}", super::OUT_OF_MEMORY) } else { name }
        }),
    ])
}

fn frame_columns<'a>(summary: Option<&'a Summary>) -> Columns<'a, StackFrame> {
    let locals = local_columns(summary);
    let locals_column = Column::with_fields(names::LOCALS, locals.fields(), move |stack: &StackFrame| {
        list(stack.locals.iter().map(|local| locals.record(local)))
    });
    Columns::new(stack::frame(|stack: &StackFrame| &stack.frame).into_iter().chain([locals_column]))
}

fn local_columns<'a>(summary: Option<&'a Summary>) -> Columns<'a, Local> {
    Columns::new(facts::columns(Local::facts(), summary, |local: &Local| local))
}

/// Returns the name of a class, copied: a value may borrow only from its row.
pub(super) fn class_name(summary: Option<&Summary>, class: Option<ClassNumber>) -> Value<'static> {
    summary.and_then(|summary| object::class_name(summary, class)).map(str::to_owned).into()
}

fn summary_columns() -> Columns<'static, ThreadReport> {
    let states = vec![JsonField::new(names::STATE).or_null(nulls::UNKNOWN), JsonField::new(names::THREADS)];
    Columns::new([
        Column::with_fields(names::STATES, states, |found: &ThreadReport| {
            list(found.states.iter().map(|(state, threads)| {
                record([
                    (names::STATE, state.map(ThreadState::name).into()),
                    (names::THREADS, (*threads).into()),
                ])
            }))
        }),
        Column::new(names::VIRTUAL_THREADS, |found: &ThreadReport| found.virtual_threads.into()),
        super::matching(|found: &ThreadReport| found.matching),
        super::left_out(|found: &ThreadReport| found.matching.saturating_sub(found.rows.len() as u64)),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "threads",
        variant: "",
        about: "A row is a Thread object of the heap dump. In CSV `frames` and `locals` are a cell each.",
        rows: columns(None).fields(),
        summary: summary_columns().fields(),
    }
}
