//! Rankings by time: CPU TIME in `cputime`, MONITOR TIME in `monitors`. They differ in what a row is named after.

use crate::cli::Outcome;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::recording::{Recorded, RecordedInput};
use crate::cli::shared::session::Source;
use crate::cli::shared::stack::{StackArgs, StackedOutput};
use hprof_query::dictionary::names;
use hprof_query::recordings::cputime::{self, Question, Row};
use hprof_query::recordings::profile::{Profile, Times, Traces};
use hprof_report::answer::{Answer, Declared, NoRows};
use hprof_report::column::{Column, Columns, Fit};
use hprof_report::number::grouped;

use super::columns::{self, Beside};
use super::no_match;

/// What took the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// CPU TIME: methods.
    CpuTime,
    /// MONITOR TIME: threads that wait to enter monitors.
    Contention,
}

impl Of {
    fn command(self) -> &'static str {
        match self {
            Self::CpuTime => "cputime",
            Self::Contention => "monitors",
        }
    }

    /// The title of the column of names.
    fn title(self) -> &'static str {
        match self {
            Self::CpuTime => "method",
            Self::Contention => "monitor and method",
        }
    }

    /// What the file states.
    fn stated(self, profile: &Profile) -> Option<&Times> {
        match self {
            Self::CpuTime => profile.times.as_ref(),
            Self::Contention => profile.contention.as_ref(),
        }
    }
}

/// Shows a ranking.
pub(super) fn show(
    cx: &RunContext,
    input: &RecordedInput,
    recorded: &Recorded,
    of: Of,
    question: &Question,
    StackedOutput { stack, output, .. }: &StackedOutput,
) -> anyhow::Result<Outcome> {
    let traces = &recorded.profile.traces;
    let stated = of.stated(&recorded.profile);
    let (rows, total_ms) = stated.map_or((&[][..], 0), |stated| (&stated.rows[..], stated.total_ms));
    let cputime::Answer { rows, matching } = cputime::times(rows, total_ms, traces, question);
    let beside = Beside { matching, shown: rows.len(), of: stated };
    let mut answer = Answer::new(columns(of, traces, stack), rows)
        .beside(&beside_columns(), &beside)
        .matching(matching, "rows")
        .without_rows(NoRows::Nothing);
    if beside.of.is_some() {
        let total = u64::try_from(total_ms).map(grouped).unwrap_or_default();
        answer = answer.total([("ms", total), (of.title(), "whole time".to_owned())]);
    }
    let answer = stack.below(answer, traces, |row: &Row<'_>| row.time.trace);
    let rows = recorded.show(cx, of.command(), output, answer)?;
    if let (Some(table), 0) = (beside.of, matching) {
        no_match::note(cx, input, "row", &question.filter, traces);
        let names = || table.rows.iter().filter_map(|row| row.name.as_deref());
        no_match::classes(cx, input, &question.names, names);
    }
    Ok(recorded.outcome(rows > 0))
}

/// The method as the row names it, or else the trace.
fn method<'r>(row: &'r Row<'_>) -> Option<&'r str> {
    row.time.name.as_deref().or(row.method.as_deref())
}

fn columns<'a>(of: Of, traces: &'a Traces, stack: &StackArgs) -> Columns<'a, Row<'a>> {
    let [self_percent, accumulated_percent] =
        columns::percents(|row: &Row<'a>| row.time.self_percent, |row| row.time.accumulated_percent);
    let mut columns = vec![
        columns::rank(|row: &Row<'a>| row.rank),
        columns::trace(|row: &Row<'a>| row.time.trace),
        Column::of(names::COUNT, |row: &Row<'a>| row.time.count.into()).header("count").place(4),
        self_percent,
        accumulated_percent,
    ];
    let name = |column: Column<'a, Row<'a>>| {
        column.header(of.title()).place(columns::NAME).fit(Fit::Shorten { priority: 0 })
    };
    match of {
        Of::CpuTime => columns.push(
            name(Column::of(names::METHOD, |row: &Row<'a>| method(row).into()))
                .or_null("the trace has no frame")
                .cell(|row| method(row).unwrap_or(columns::EMPTY).to_owned()),
        ),
        Of::Contention => columns.extend([
            name(Column::of(names::MONITOR, |row: &Row<'a>| row.time.name.as_deref().into()))
                .or_null("not stated")
                .cell(|row| {
                    let method =
                        row.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
                    format!("{}{method}", row.time.name.as_deref().unwrap_or("<unknown>"))
                }),
            Column::of(names::METHOD, |row: &Row<'a>| row.method.as_deref().into())
                .or_null("the trace has no frame"),
        ]),
    }
    columns.push(
        Column::of(names::SELF_MS, |row: &Row<'a>| row.self_ms.into())
            .or_null("the total is negative")
            .header("ms")
            .place(3)
            .cell(|row| row.self_ms.map(|ms| format!("~{}", grouped(ms))).unwrap_or_default()),
    );
    Columns::new(columns.into_iter().chain(stack.column(traces, |row: &Row<'a>| row.time.trace)))
}

fn beside_columns<'a>() -> Columns<'a, Beside<Option<&'a Times>>> {
    Columns::new([
        Column::of(names::TOTAL.dot(names::SELF_MS), |beside: &Beside<Option<&'a Times>>| {
            beside.of.map(|stated| stated.total_ms).into()
        })
        .or_null("the file holds no such times"),
        columns::matching(),
        columns::left_out(),
        columns::date(|of: &Option<&'a Times>| of.and_then(|stated| stated.date.as_deref())),
    ])
}

pub(super) fn declared(of: Of) -> Declared {
    let (variant, about) = match of {
        Of::CpuTime => (
            "",
            "A row is a trace with CPU time. Rows are in the order of the file, which is by time. `frames` is there with \
             `--stack` only; in CSV it is a list of texts, `CLASS.METHOD(SOURCE:LINE)`.",
        ),
        Of::Contention => (
            "Contention",
            "MONITOR TIME: the default if the file holds it. A row is a trace in which threads had to wait for a monitor. \
             Rows are in the order of the file, which is by time. `frames` is there with `--stack` only; in CSV it is a \
             list of texts, `CLASS.METHOD(SOURCE:LINE)`.",
        ),
    };
    Declared {
        command: of.command(),
        variant,
        about,
        rows: columns(of, &Traces::default(), &StackArgs::ALL).fields(),
        beside: beside_columns().fields(),
    }
}
