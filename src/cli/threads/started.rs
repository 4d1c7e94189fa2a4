//! `threads --started`: the threads that were started while a profiler ran.

use hprof_query::recordings::profile::StartedThread;
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::started_threads::{self, StartedThreadQuery, StartedThreads};
use hprof_report::table::Style;
use hprof_report::value::id;
use hprof_values::{ObjectId, TraceSerial};

use crate::cli::prelude::*;
use crate::cli::shared::messages;
use crate::cli::shared::recording::RecordedInput;

pub(super) fn run(
    cx: &RunContext,
    input: &RecordedInput,
    question: &StartedThreadQuery,
    format: OutputFormat,
    style: Style,
) -> anyhow::Result<Outcome> {
    let recorded = input.open(cx, Want::default())?;
    if recorded.profile.threads.is_empty() {
        input.note(
            cx,
            "the file does not record which threads were started; only files of the HPROF agent and Flight Recorder \
             do",
        );
    }
    let found = started_threads::threads(&recorded.profile.threads, question);
    let answer = Answer::new(columns(), found.rows.iter().copied())
        .with_summary(&summary_columns(), &found)
        .matching(found.matching, "threads")
        .if_empty(NoRows::Nothing);
    let rows = recorded.show_as(cx, "threads", format, style, answer)?;
    if found.matching == 0 && !recorded.profile.threads.is_empty() {
        let threads = group_digits(recorded.profile.threads.len() as u64);
        input.note(cx, &format!("none of the {threads} threads match"));
        if let Some(wanted) = &question.name {
            messages::about_started(cx, input.input.quiet, wanted, &recorded.profile.threads);
        }
    }
    Ok(recorded.outcome(rows > 0))
}

/// Returns the stack trace where a thread was started, if known.
fn trace(thread: &StartedThread) -> Option<TraceSerial> {
    Some(thread.trace).filter(|trace| *trace != TraceSerial::NONE)
}

/// Returns the object ID of a thread, if known.
fn object(thread: &StartedThread) -> Option<ObjectId> {
    Some(thread.object).filter(|object| object.0 != 0)
}

fn columns<'a>() -> Columns<'a, &'a StartedThread> {
    let columns = Columns::new([
        Column::new(names::THREAD_SERIAL, |thread: &&StartedThread| thread.serial.into()),
        Column::new(names::OBJECT, |thread: &&StartedThread| object(thread).map(id).into())
            .or_null("in recordings of Flight Recorder"),
        Column::new(names::NAME, |thread: &&'a StartedThread| Value::from(&*thread.name)),
        Column::new(names::THREAD_GROUP, |thread: &&'a StartedThread| Value::from(&*thread.group)),
        Column::new(names::PARENT_GROUP, |thread: &&'a StartedThread| thread.parent_group.as_deref().into())
            .or_null("in text reports; not stated"),
        Column::new(names::TRACE, |thread: &&StartedThread| trace(thread).into())
            .or_null("in text reports; none"),
        Column::new(names::IS_ENDED, |thread: &&StartedThread| thread.ended.into()),
    ]);
    columns.table([
        TableColumn::new(names::THREAD_SERIAL, "thread")
            .cell(|thread: &&StartedThread| thread.serial.to_string()),
        TableColumn::new(names::OBJECT, "object"),
        TableColumn::new(names::TRACE, "trace")
            .cell(|thread: &&StartedThread| trace(thread).map(|trace| trace.to_string()).unwrap_or_default()),
        TableColumn::new(names::IS_ENDED, "ended"),
        TableColumn::new(names::THREAD_GROUP, "group").fit(Fit::Secondary { priority: 0 }).cell(
            |thread: &&StartedThread| match &thread.parent_group {
                Some(parent) => format!("{} in {parent}", thread.group),
                None => thread.group.to_string(),
            },
        ),
        TableColumn::new(names::NAME, "name").fit(Fit::Cut { priority: 0 }),
    ])
}

fn summary_columns<'a>() -> Columns<'a, StartedThreads<'a>> {
    Columns::new([
        super::matching(|found: &StartedThreads<'a>| found.matching),
        super::left_out(|found: &StartedThreads<'a>| found.matching.saturating_sub(found.rows.len() as u64)),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "threads",
        variant: "`--started`",
        about: "A row is a thread that was started while the profiler ran, in the order of the file.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }
}
