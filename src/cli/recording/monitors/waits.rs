//! `monitors --waits`: what threads did at monitors.

use crate::cli::Outcome;
use crate::cli::recording::columns::{self, Beside};
use crate::cli::shared::args::Output;
use crate::cli::shared::recording::Recorded;
use crate::cli::shared::session::Source;
use hprof_query::recordings::monitors::{self, WaitQuestion, WaitRow};
use hprof_query::recordings::traces;
use hprof_report::answer::{Answer, Declared, NoRows};
use hprof_report::column::{Align, Column, Columns, Fit, Kind};
use hprof_report::escape;

/// Shows WAIT, WAITED, SLEEP and EXIT lines, added up.
pub(super) fn show(recorded: &Recorded, question: &WaitQuestion, output: &Output) -> anyhow::Result<Outcome> {
    let profile = &recorded.profile;
    let (rows, matching) = monitors::waits(&profile.waits, question);
    let threads = traces::started_threads(profile);
    let beside = Beside { matching, shown: rows.len(), of: profile.waits.len() };
    let rows = rows.into_iter().map(|row| Row {
        name: row.thread.and_then(|serial| threads.get(&serial)).map(|thread| thread.name.as_str()),
        waits: row,
    });
    let answer = Answer::new(columns(), rows)
        .beside(&beside_columns(), &beside)
        .matching(matching, "rows")
        .without_rows(NoRows::Nothing);
    let rows = recorded.show("monitors", output, answer)?;
    Ok(recorded.outcome(rows > 0))
}

/// A row, and the name of its thread.
struct Row<'a> {
    waits: WaitRow,
    name: Option<&'a str>,
}

impl Row<'_> {
    fn title(&self) -> String {
        let monitor = self.waits.monitor.as_deref().unwrap_or("<asleep>");
        self.name.map_or_else(|| monitor.to_owned(), |name| format!("{monitor} by {}", escape::quoted(name)))
    }
}

fn columns<'a>() -> Columns<'a, Row<'a>> {
    let count = |key, meaning, of: fn(&WaitRow) -> u64| {
        Column::integer(key, meaning, move |row: &Row<'a>| of(&row.waits).into()).header(key)
    };
    let time = |key, title, meaning, of: fn(&WaitRow) -> i64| {
        Column::new(key, Kind::Signed, meaning, move |row: &Row<'a>| of(&row.waits).into())
            .header(title)
            .cell(move |row| of(&row.waits).to_string())
    };
    Columns::new([
        Column::text("monitor", "class of the monitor", |row: &Row<'a>| row.waits.monitor.as_deref().into())
            .or_null("asleep, not at a monitor"),
        Column::integer("thread", "serial number of the thread", |row: &Row<'a>| row.waits.thread.into())
            .or_null("the agent did not know it")
            .header("thread")
            .place(7)
            .cell(|row| row.waits.thread.map(|serial| serial.to_string()).unwrap_or_default()),
        Column::text("thread_name", "name of the thread", |row: &Row<'a>| row.name.into())
            .or_null("the thread has no start record"),
        count("waits", "WAIT lines", |row| row.waits).place(0),
        count("timed", "of these, with a timeout", |row| row.timed).place(1).fit(Fit::Secondary { priority: 2 }),
        count("waited", "WAITED lines", |row| row.waited).place(2),
        time(
            "time_waited",
            "time waited",
            "sum of the times in WAITED lines as the file states them: the agent of JDK 5 to 8 writes the low 32 bits of \
             nanoseconds, with a sign",
            |row| row.time_waited,
        )
        .place(3),
        count("sleeps", "SLEEP lines", |row| row.sleeps).place(4).fit(Fit::Secondary { priority: 1 }),
        time(
            "time_slept",
            "time slept",
            "sum of the times in SLEEP lines as the file states them",
            |row| row.time_slept,
        )
        .place(5)
        .fit(Fit::Secondary { priority: 3 }),
        count("exits", "EXIT lines", |row| row.exits).place(6).fit(Fit::Secondary { priority: 0 }),
        Column::table("monitor, and thread's name", Align::Left, Row::title)
            .place(8)
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

fn beside_columns() -> Columns<'static, Beside<usize>> {
    Columns::new([
        Column::integer("total.lines", "such lines in the run", |beside: &Beside<usize>| beside.of.into()),
        columns::matching(),
        columns::left_out(),
    ])
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "monitors",
        variant: "`--waits`",
        about: "WAIT, WAITED, SLEEP and EXIT lines. A row is a class of monitors and a thread, most lines first.",
        rows: columns().fields(),
        beside: beside_columns().fields(),
    }
}
