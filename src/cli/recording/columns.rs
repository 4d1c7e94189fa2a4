//! Columns shared by commands about recordings.

use hprof_query::dictionary::{Name, names, nulls};
use hprof_query::recordings::sites::Totals;
use hprof_report::column::{Column, Columns, Fit, TableColumn};
use hprof_values::TraceSerial;

/// Placeholder for the method of a trace without frames.
pub(super) const EMPTY: &str = "<empty>";

/// Returns the table column of a rank, without thousands separators.
pub(super) fn rank_in_table<'a, R: 'a>(rank: fn(&R) -> u64) -> TableColumn<'a, R> {
    TableColumn::new(names::RANK, "rank")
        .fit(Fit::Secondary { priority: 0 })
        .cell(move |row| rank(row).to_string())
}

/// Returns the table column of a trace's serial number, without thousands separators.
pub(super) fn trace_in_table<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> TableColumn<'a, R> {
    TableColumn::new(names::TRACE, "trace").cell(move |row| trace(row).to_string())
}

/// Returns the table column of a percentage, in the format of the agent's reports.
pub(super) fn percent_in_table<'a, R: 'a>(
    name: Name,
    title: &'static str,
    percent: fn(&R) -> f64,
) -> TableColumn<'a, R> {
    TableColumn::new(name, title).cell(move |row| format!("{:.2}%", percent(row)))
}

/// Returns the table columns of the percentages in a ranking: of the row, and accumulated over the rows so far.
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

/// Returns the columns of allocated and live bytes and instances, within `record` if given.
pub(super) fn allocation_columns<'a, R: 'a>(
    record: Option<Name>,
    sums: fn(&R) -> Totals,
) -> [Column<'a, R>; 4] {
    let column = |name: Name, value: fn(&Totals) -> u64| {
        let value = move |row: &R| Some(sums(row)).filter(|sums| sums.samples == 0).map(|sums| value(&sums));
        Column::new(name.in_record(record), move |row| value(row).into()).or_null(nulls::SAMPLED)
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

/// Returns the column of the totals of all sites, as stated by the program that wrote the file.
pub(super) fn stated_totals<'a, R: 'a>(sums: fn(&R) -> Option<Totals>) -> Column<'a, R> {
    Column::record(names::TOTAL, Columns::new(allocation_columns(None, |total| *total)), sums)
        .or_null("in text reports, or without sites")
}

/// Source of the JSON keys in addition to the rows: numbers of matching and shown rows, and further facts in `of`.
pub(super) struct RecordingSummary<T> {
    pub(super) matching: u64,
    pub(super) shown: usize,
    pub(super) of: T,
}

/// Returns the column of the number of matching rows.
pub(super) fn matching<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::new(names::MATCHING.dot(names::ROWS), |summary: &RecordingSummary<T>| summary.matching.into())
}

/// Returns the column of the number of matching rows that are not shown.
pub(super) fn left_out<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::new(names::LEFT_OUT, |summary: &RecordingSummary<T>| {
        summary.matching.saturating_sub(summary.shown as u64).into()
    })
}

/// Returns the column of the date stated in the file.
pub(super) fn date<'a, T: 'a>(date: fn(&T) -> Option<&str>) -> Column<'a, RecordingSummary<T>> {
    Column::new(names::DATE, move |summary: &RecordingSummary<T>| date(&summary.of).into())
        .or_null(nulls::NOT_STATED)
}
