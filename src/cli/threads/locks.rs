//! Locks with their owners and waiting threads, for `threads --locks`.

use hprof_index::model::summary::Summary;
use hprof_query::threads::Threads;
use hprof_query::threads::locks::{Lock, LockThread, Locks};
use hprof_report::answer::RowLine;
use hprof_report::number::format_count;
use hprof_report::table::Style;
use hprof_report::value::{id, list};

use crate::cli::prelude::*;
use crate::cli::shared::object;

use super::heap::{INDENT, class_name};

/// Maximum number of lines about waiting threads below a lock in a table.
const SHOWN_WAITERS: usize = 10;

/// Opens the dump and finds its locks.
pub(super) fn ask(cx: &RunContext, input: &Input) -> anyhow::Result<(Session, Locks)> {
    Session::ask(cx, input, |dump| Ok(Threads::new(dump).locks(dump)))
}

/// Shows the first `top` locks.
pub(super) fn show(
    cx: &RunContext,
    session: &Session,
    found: &Locks,
    format: OutputFormat,
    (style, top): (Style, Option<usize>),
) -> anyhow::Result<()> {
    let summary = session.heap.summary();
    let rows = found.rows.iter().take(top.unwrap_or(usize::MAX)).cloned();
    let answer = Answer::new(columns(Some(summary)), rows)
        .with_summary(&summary_columns(), found)
        .matching(found.rows.len() as u64, "locks")
        .with_lines_below(waiters)
        // Explained by a note.
        .if_empty(NoRows::Nothing);
    session.show_as(cx, "threads", format, style, answer)?;
    Ok(())
}

/// Prints notes about deadlocks, and about what the dump does not contain.
pub(super) fn notes(cx: &RunContext, found: &Locks) {
    if found.rows.is_empty() {
        cx.emit("note", "no thread owns a lock or waits for one");
    }
    let is_inferred = found.rows.iter().any(|lock| lock.is_inferred);
    if is_inferred {
        cx.emit("note", INFERRED);
    }
    if found.unknown_waits > 0 {
        let threads = format_count(found.unknown_waits, "BLOCKED thread");
        cx.emit(
            "note",
            &format!(
                "of {threads}, the dump does not contain the monitor: the innermost frame holds no object"
            ),
        );
    }
}

/// Note about monitors.
const INFERRED: &str = "heap dumps contain neither the owners of monitors nor which monitor a thread waits for: both are inferred \
     from the objects on the threads' stacks; `jcmd PID Thread.print` states them";

/// Returns the lines about the threads that wait for a lock.
fn waiters(lock: &Lock) -> Vec<RowLine> {
    let line = |text: String| RowLine { indent: INDENT, text };
    let waiting = |thread: &LockThread| line(format!("waits: {}", thread_text(thread)));
    let mut lines: Vec<RowLine> = lock.waiters.iter().take(SHOWN_WAITERS).map(waiting).collect();
    let more = lock.waiters.len().saturating_sub(SHOWN_WAITERS) as u64;
    if more > 0 {
        lines.push(line(format!("… {}", format_count(more, "more thread"))));
    }
    lines
}

fn thread_text(thread: &LockThread) -> String {
    match &thread.name {
        Some(name) => format!("{name} {:#x}", thread.thread.id),
        None => format!("{:#x}", thread.thread.id),
    }
}

fn owner_text(lock: &Lock) -> String {
    let owner = lock
        .owner
        .as_ref()
        .map(|owner| owner.name.clone().unwrap_or_else(|| format!("{:#x}", owner.thread.id)));
    match owner {
        Some(owner) if lock.is_inferred => format!("{owner} (inferred)"),
        owner => owner.unwrap_or_default(),
    }
}

/// Returns the columns for locks. Which columns there are does not depend on `summary`.
fn columns<'a>(summary: Option<&'a Summary>) -> Columns<'a, Lock> {
    let (owner, waiters) = (thread_columns(), thread_columns());
    let columns = Columns::new([
        Column::new(names::OBJECT, |lock: &Lock| id(lock.object.id)),
        Column::new(names::CLASS, move |lock: &Lock| class_name(summary, lock.object.class))
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LOCK_KIND, |lock: &Lock| lock.kind.name().into()),
        Column::new(names::LOCK_FIELD, |lock: &Lock| lock.field.as_ref().into())
            .or_null("no field outside of java.util.concurrent.locks refers to it"),
        Column::with_fields(names::LOCK_OWNER, owner.fields(), move |lock: &Lock| {
            lock.owner.as_ref().map_or(Value::Null, |thread| owner.record(thread))
        })
        .csv(|lock: &Lock| lock.owner.as_ref().map(thread_text).into())
        .or_null("nobody owns it, or the owner is unknown"),
        Column::with_fields(names::WAITERS, waiters.fields(), move |lock: &Lock| {
            list(lock.waiters.iter().map(|thread| waiters.record(thread)))
        })
        .csv(|lock: &Lock| lock.waiters.iter().map(thread_text).collect::<Vec<_>>().join("; ").into()),
        Column::new(names::IS_INFERRED, |lock: &Lock| lock.is_inferred.into()),
        Column::new(names::DEADLOCK, |lock: &Lock| lock.deadlock.into()).or_null("it is part of no deadlock"),
    ]);
    columns.table([
        TableColumn::new(names::DEADLOCK, "deadlock")
            .cell(|lock: &Lock| lock.deadlock.map(|number| number.to_string()).unwrap_or_default()),
        TableColumn::new(names::WAITERS, "waiting")
            .cell(|lock: &Lock| group_digits(lock.waiters.len() as u64)),
        TableColumn::new(names::LOCK_KIND, "kind"),
        TableColumn::new(names::LOCK_OWNER, "owner").fit(Fit::Cut { priority: 1 }).cell(owner_text),
        TableColumn::new(names::OBJECT, "object"),
        TableColumn::new(names::LOCK_FIELD, "lock").fit(Fit::Cut { priority: 0 }).cell(move |lock: &Lock| {
            let class = summary.and_then(|summary| object::class_name(summary, lock.object.class));
            lock.field.clone().unwrap_or_else(|| class.unwrap_or(object::UNKNOWN).to_owned())
        }),
    ])
}

fn thread_columns<'c>() -> Columns<'c, LockThread> {
    Columns::new([
        Column::new(names::THREAD, |thread: &LockThread| id(thread.thread.id)),
        Column::new(names::NAME, |thread: &LockThread| thread.name.as_ref().into())
            .or_null("the name is not in the dump, or is hidden"),
    ])
}

fn summary_columns() -> Columns<'static, Locks> {
    Columns::new([
        Column::new(names::MATCHING.dot(names::ROWS), |found: &Locks| (found.rows.len() as u64).into()),
        Column::new(names::DEADLOCKS, |found: &Locks| found.deadlocks.into()),
        Column::new(names::UNKNOWN_WAITS, |found: &Locks| found.unknown_waits.into()),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "threads",
        variant: "`--locks`",
        about: "A row is a lock that a thread owns or waits for, those of deadlocks first. A deadlock is a circle of threads \
                of which each waits for a lock that the next one owns.",
        rows: columns(None).fields(),
        summary: summary_columns().fields(),
    }
}
