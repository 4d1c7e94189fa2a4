//! `monitors --waits`: events of threads at monitors.

use crate::cli::prelude::*;
use crate::cli::recording::columns::{self, RecordingSummary};
use crate::cli::shared::recording::RecordedProfile;
use hprof_query::dictionary::Name;
use hprof_query::recordings::monitors::{self, WaitQuery, WaitRow};
use hprof_query::recordings::traces;
use hprof_report::escape;

/// Shows totals of WAIT, WAITED, SLEEP and EXIT lines.
pub(super) fn show(
    cx: &RunContext,
    recorded: &RecordedProfile,
    question: &WaitQuery,
    output: &Output,
) -> anyhow::Result<Outcome> {
    let profile = &recorded.profile;
    let (rows, matching) = monitors::waits(&profile.waits, question);
    let threads = traces::started_threads(profile);
    let summary = RecordingSummary { matching, shown: rows.len(), of: profile.waits.len() };
    let rows = rows.into_iter().map(|row| WaitLine {
        name: row.thread.and_then(|serial| threads.get(&serial)).map(|thread| &*thread.name),
        waits: row,
    });
    let answer = Answer::new(columns(), rows)
        .with_summary(&summary_columns(), &summary)
        .matching(matching, "rows")
        .if_empty(NoRows::Nothing);
    let rows = recorded.show(cx, "monitors", output, answer)?;
    Ok(recorded.outcome(rows > 0))
}

/// A row of the result, and the name of its thread.
struct WaitLine<'a> {
    waits: WaitRow,
    name: Option<&'a str>,
}

impl WaitLine<'_> {
    fn title(&self) -> String {
        let monitor = self.waits.monitor.as_deref().unwrap_or("<asleep>");
        self.name.map_or_else(|| monitor.to_owned(), |name| format!("{monitor} by {}", escape::quoted(name)))
    }
}

fn columns<'a>() -> Columns<'a, WaitLine<'a>> {
    let count = |name: Name, of: fn(&WaitRow) -> u64| {
        Column::new(name, move |row: &WaitLine<'a>| of(&row.waits).into())
    };
    let time = |name: Name, of: fn(&WaitRow) -> i64| {
        Column::new(name, move |row: &WaitLine<'a>| of(&row.waits).into())
    };
    let columns = Columns::new([
        Column::new(names::MONITOR, |row: &WaitLine<'a>| row.waits.monitor.as_deref().into())
            .or_null("the thread slept, without a monitor"),
        Column::new(names::THREAD_SERIAL, |row: &WaitLine<'a>| row.waits.thread.into())
            .or_null("the agent did not know it"),
        Column::new(names::THREAD_NAME, |row: &WaitLine<'a>| row.name.into())
            .or_null("the thread has no start record"),
        count(names::WAITS, |row| row.waits),
        count(names::TIMED, |row| row.timed),
        count(names::WAITED, |row| row.waited),
        time(names::TIME_WAITED, |row| row.time_waited),
        count(names::SLEEPS, |row| row.sleeps),
        time(names::TIME_SLEPT, |row| row.time_slept),
        count(names::EXITS, |row| row.exits),
    ]);
    let shown = |name: Name| TableColumn::new(name, name.key);
    columns.table([
        shown(names::WAITS),
        shown(names::TIMED).fit(Fit::Secondary { priority: 2 }),
        shown(names::WAITED),
        TableColumn::new(names::TIME_WAITED, "time waited")
            .cell(|row: &WaitLine<'a>| row.waits.time_waited.to_string()),
        shown(names::SLEEPS).fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::TIME_SLEPT, "time slept")
            .cell(|row: &WaitLine<'a>| row.waits.time_slept.to_string())
            .fit(Fit::Secondary { priority: 3 }),
        shown(names::EXITS).fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::THREAD_SERIAL, "thread")
            .cell(|row: &WaitLine<'a>| row.waits.thread.map(|serial| serial.to_string()).unwrap_or_default()),
        TableColumn::table_only("monitor, and thread's name", Align::Left, WaitLine::title)
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

fn summary_columns() -> Columns<'static, RecordingSummary<usize>> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::LINES), |summary: &RecordingSummary<usize>| summary.of.into()),
        columns::matching(),
        columns::left_out(),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "monitors",
        variant: "`--waits`",
        about: "WAIT, WAITED, SLEEP and EXIT lines. A row is a class of monitors and a thread, most lines first.",
        rows: columns().fields(),
        summary: summary_columns().fields(),
    }
}
