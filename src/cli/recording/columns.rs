//! Columns shared by commands about recordings.

use hprof_query::dictionary::{Name, names};
use hprof_query::recordings::sites::Totals;
use hprof_report::column::{Column, Columns, Fit, TableColumn};
use hprof_values::TraceSerial;

/// Placeholder for the method of a trace without frames.
pub(super) const EMPTY: &str = "<empty>";

/// The rank, without thousands separators.
pub(super) fn rank_in_table<'a, R: 'a>(rank: fn(&R) -> u64) -> TableColumn<'a, R> {
    TableColumn::new(names::RANK, "rank")
        .fit(Fit::Secondary { priority: 0 })
        .cell(move |row| rank(row).to_string())
}

/// The trace, without thousands separators.
pub(super) fn trace_in_table<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> TableColumn<'a, R> {
    TableColumn::new(names::TRACE, "trace").cell(move |row| trace(row).to_string())
}

/// A percentage in the format of the agent's reports.
pub(super) fn percent_in_table<'a, R: 'a>(
    name: Name,
    title: &'static str,
    percent: fn(&R) -> f64,
) -> TableColumn<'a, R> {
    TableColumn::new(name, title).cell(move |row| format!("{:.2}%", percent(row)))
}

/// The percentages of a ranking: of the row, and accumulated.
pub(super) fn percents_in_table<'a, R: 'a>(
    own: fn(&R) -> f64,
    accumulated: fn(&R) -> f64,
) -> [TableColumn<'a, R>; 2] {
    [
        percent_in_table(names::SELF_PERCENT, "self", own),
        percent_in_table(names::ACCUMULATED_PERCENT, "accum", accumulated)
            .fit(Fit::Secondary { priority: 1 }),
    ]
}

/// Allocated and live amounts, within `record`.
pub(super) fn allocation_columns<'a, R: 'a>(
    record: Option<Name>,
    sums: fn(&R) -> Totals,
) -> [Column<'a, R>; 4] {
    let column = |name: Name, value: fn(&Totals) -> u64| {
        let value = move |row: &R| Some(sums(row)).filter(|sums| sums.samples == 0).map(|sums| value(&sums));
        Column::new(name.in_record(record), move |row| value(row).into()).or_null("of samples")
    };
    [
        column(names::LIVE_BYTES, |sums| sums.live_bytes),
        column(names::LIVE_INSTANCES, |sums| sums.live_instances),
        Column::new(names::ALLOCATED_BYTES.in_record(record), move |row: &R| {
            sums(row).allocated_bytes.into()
        }),
        column(names::ALLOCATED_INSTANCES, |sums| sums.allocated_instances),
    ]
}

/// The totals of all sites according to the writer.
pub(super) fn stated_totals<'a, R: 'a>(sums: fn(&R) -> Option<Totals>) -> Column<'a, R> {
    Column::record(names::TOTAL, Columns::new(allocation_columns(None, |total| *total)), sums)
        .or_null("in text reports, or without sites")
}

/// Keys besides the rows: how many match and are shown, and further facts in `of`.
pub(super) struct RecordingSummary<T> {
    pub(super) matching: u64,
    pub(super) shown: usize,
    pub(super) of: T,
}

pub(super) fn matching<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::new(names::MATCHING.dot(names::ROWS), |summary: &RecordingSummary<T>| summary.matching.into())
}

pub(super) fn left_out<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::new(names::LEFT_OUT, |beside: &RecordingSummary<T>| {
        beside.matching.saturating_sub(beside.shown as u64).into()
    })
}

pub(super) fn date<'a, T: 'a>(date: fn(&T) -> Option<&str>) -> Column<'a, RecordingSummary<T>> {
    Column::new(names::DATE, move |summary: &RecordingSummary<T>| date(&summary.of).into())
        .or_null("not stated")
}
