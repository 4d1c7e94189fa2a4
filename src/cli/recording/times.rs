//! Rankings by time: CPU TIME in `cputime`, MONITOR TIME in `monitors`. Their rows stand for different things.

use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile};
use crate::cli::shared::stack::{StackArgs, StackedOutput};
use hprof_query::recordings::cputime::{self, RankedTime, TimeQuery};
use hprof_query::recordings::profile::flight::MonitorEvent;
use hprof_query::recordings::profile::{Profile, Times, Traces};

use super::columns::{self, RecordingSummary};
use super::no_match;

/// Kind of time that is ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeKind {
    /// CPU TIME of methods.
    CpuTime,
    /// MONITOR TIME of threads that wait to enter monitors.
    Contention,
}

impl TimeKind {
    fn command(self) -> &'static str {
        match self {
            Self::CpuTime => "cputime",
            Self::Contention => "monitors",
        }
    }

    /// Returns the title of the name column.
    fn title(self) -> &'static str {
        match self {
            Self::CpuTime => "method",
            Self::Contention => "monitor and method",
        }
    }

    /// Returns the times of this kind in the file.
    fn times(self, profile: &Profile) -> Option<&Times> {
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
    recorded: &RecordedProfile,
    of: TimeKind,
    question: &TimeQuery,
    StackedOutput { stack, output, .. }: &StackedOutput,
) -> anyhow::Result<Outcome> {
    let traces = &recorded.profile.traces;
    let stated = of.times(&recorded.profile);
    let (rows, total_ms) = stated.map_or((&[][..], 0), |stated| (&stated.rows[..], stated.total_ms));
    let cputime::TimeReport { rows, matching } = cputime::times(rows, total_ms, traces, question);
    let summary = RecordingSummary { matching, shown: rows.len(), of: stated };
    let mut answer = Answer::new(columns(of, traces, stack), rows)
        .with_summary(&summary_columns(), &summary)
        .matching(matching, "rows")
        .if_empty(NoRows::Nothing);
    if summary.of.is_some() {
        let total = u64::try_from(total_ms).map(group_digits).unwrap_or_default();
        answer = answer.total([("ms", total), (of.title(), "whole time".to_owned())]);
    }
    let answer = stack.add_stacks(answer, traces, |row: &RankedTime<'_>| row.time.trace);
    let rows = recorded.show(cx, of.command(), output, answer)?;
    if let (Some(table), 0) = (summary.of, matching) {
        no_match::note(cx, input, "row", &question.filter, traces);
        let names = || table.rows.iter().filter_map(|row| row.name.as_deref());
        no_match::classes(cx, input, &question.names, names);
    }
    Ok(recorded.outcome(rows > 0))
}

/// Returns the method that the row names, or the method of its trace.
fn method<'r>(row: &'r RankedTime<'_>) -> Option<&'r str> {
    row.time.name.as_deref().or(row.method.as_deref())
}

fn columns<'a>(of: TimeKind, traces: &'a Traces, stack: &StackArgs) -> Columns<'a, RankedTime<'a>> {
    let mut columns = vec![
        Column::new(names::RANK, |row: &RankedTime<'a>| row.rank.into()),
        Column::new(names::TRACE, |row: &RankedTime<'a>| row.time.trace.into()),
        Column::new(names::COUNT, |row: &RankedTime<'a>| row.time.count.into()),
        Column::new(names::SELF_PERCENT, |row: &RankedTime<'a>| row.time.self_percent.into()),
        Column::new(names::ACCUMULATED_PERCENT, |row: &RankedTime<'a>| row.time.accumulated_percent.into()),
    ];
    match of {
        TimeKind::CpuTime => columns.push(
            Column::new(names::METHOD, |row: &RankedTime<'a>| method(row).into())
                .or_null("the trace has no frame"),
        ),
        TimeKind::Contention => columns.extend([
            Column::new(names::MONITOR, |row: &RankedTime<'a>| row.time.name.as_deref().into())
                .or_null(nulls::NOT_STATED),
            Column::new(names::METHOD, |row: &RankedTime<'a>| row.method.as_deref().into())
                .or_null("the trace has no frame"),
        ]),
    }
    columns.push(
        Column::new(names::SELF_MS, |row: &RankedTime<'a>| row.self_ms.into())
            .or_null("the total is negative"),
    );
    columns.extend(stack.column(traces, |row: &RankedTime<'a>| row.time.trace));
    Columns::new(columns).table(table_columns(of))
}

fn table_columns<'a>(of: TimeKind) -> Vec<TableColumn<'a, RankedTime<'a>>> {
    let mut shown = vec![columns::rank_in_table(|row: &RankedTime<'a>| row.rank)];
    shown.extend(columns::percents_in_table(
        |row: &RankedTime<'a>| row.time.self_percent,
        |row| row.time.accumulated_percent,
    ));
    let ms = |row: &RankedTime<'a>| {
        let about = if row.time.nanos.is_some() { "" } else { "~" };
        row.self_ms.map(|ms| format!("{about}{}", group_digits(ms))).unwrap_or_default()
    };
    let name = match of {
        TimeKind::CpuTime => TableColumn::new(names::METHOD, of.title())
            .cell(|row: &RankedTime<'a>| method(row).unwrap_or(columns::EMPTY).to_owned()),
        TimeKind::Contention => TableColumn::new(names::MONITOR, of.title()).cell(|row: &RankedTime<'a>| {
            let method = row.method.as_ref().map(|method| format!(" in {method}")).unwrap_or_default();
            format!("{}{method}", row.time.name.as_deref().unwrap_or("<unknown>"))
        }),
    };
    shown.extend([
        TableColumn::new(names::SELF_MS, "ms").cell(ms),
        TableColumn::new(names::COUNT, "count"),
        columns::trace_in_table(|row: &RankedTime<'a>| row.time.trace),
        name.fit(Fit::Shorten { priority: 0 }),
    ]);
    shown
}

fn summary_columns<'a>() -> Columns<'a, RecordingSummary<Option<&'a Times>>> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::SELF_MS), |summary: &RecordingSummary<Option<&'a Times>>| {
            summary.of.map(|stated| stated.total_ms).into()
        })
        .or_null("the file contains no such times"),
        columns::matching(),
        columns::left_out(),
        Column::new(names::EVENT, |summary: &RecordingSummary<Option<&'a Times>>| {
            summary.of.and_then(|stated| stated.event).map(MonitorEvent::name).into()
        })
        .or_null(nulls::ONLY_FLIGHT_RECORDER),
        columns::date(|of: &Option<&'a Times>| of.and_then(|stated| stated.date.as_deref())),
    ])
}

/// Returns the schema of the result.
pub(super) fn row_schema(of: TimeKind) -> ResultSchema {
    let (variant, about) = match of {
        TimeKind::CpuTime => {
            ("", "A row is a trace with CPU time. Rows are in the order of the file: most CPU time first.")
        }
        TimeKind::Contention => (
            "Contention",
            "MONITOR TIME: the default if the file contains it, and what recordings of Flight Recorder contain. A row is a \
             trace in which threads had to wait for a monitor. \
             Rows are in the order of the file, which is by time.",
        ),
    };
    ResultSchema {
        command: of.command(),
        variant,
        about,
        rows: columns(of, &Traces::default(), &StackArgs::ALL).fields(),
        summary: summary_columns().fields(),
    }
}
