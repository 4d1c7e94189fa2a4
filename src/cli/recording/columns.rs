//! Columns shared by commands about recordings.

use hprof_query::dictionary::{Name, names};
use hprof_query::recordings::sites::Totals;
use hprof_report::column::{Column, Columns, Fit};
use hprof_values::TraceSerial;

/// Positions of columns in rankings; positions in between belong to the ranked items.
pub(super) const RANK: usize = 0;
pub(super) const SELF: usize = 1;
pub(super) const ACCUMULATED: usize = 2;
pub(super) const TRACE: usize = 8;
pub(super) const NAME: usize = 9;

/// Placeholder for the method of a trace without frames.
pub(super) const EMPTY: &str = "<empty>";

pub(super) fn rank<'a, R: 'a>(rank: fn(&R) -> u64) -> Column<'a, R> {
    let column = Column::of(names::RANK, move |row| rank(row).into());
    column
        .header("rank")
        .place(RANK)
        .fit(Fit::Secondary { priority: 0 })
        .cell(move |row| rank(row).to_string())
}

/// The trace, only in JSON and CSV.
pub(super) fn dummy_trace<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> Column<'a, R> {
    Column::of(names::TRACE, move |row| trace(row).into())
}

pub(super) fn trace<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> Column<'a, R> {
    let column = dummy_trace(trace);
    column.header("trace").place(TRACE).cell(move |row| trace(row).to_string())
}

/// A percentage, which tables show in the format of the agent's reports.
pub(super) fn percent<'a, R: 'a>(name: Name, title: &'static str, percent: fn(&R) -> f64) -> Column<'a, R> {
    let column = Column::of(name, move |row| percent(row).into());
    column.header(title).cell(move |row| format!("{:.2}%", percent(row)))
}

/// The percentages of a ranking: of the row, and accumulated.
pub(super) fn percents<'a, R: 'a>(own: fn(&R) -> f64, accumulated: fn(&R) -> f64) -> [Column<'a, R>; 2] {
    [
        percent(names::SELF_PERCENT, "self", own).place(SELF),
        percent(names::ACCUMULATED_PERCENT, "accum", accumulated)
            .place(ACCUMULATED)
            .fit(Fit::Secondary { priority: 1 }),
    ]
}

/// Allocated and live amounts, within `record`.
pub(super) fn allocated<'a, R: 'a>(record: Option<Name>, sums: fn(&R) -> Totals) -> [Column<'a, R>; 4] {
    let column = |name: Name, value: fn(&Totals) -> u64| {
        let value = move |row: &R| Some(sums(row)).filter(|sums| sums.samples == 0).map(|sums| value(&sums));
        Column::of(name.within(record), move |row| value(row).into()).or_null("of samples")
    };
    [
        column(names::LIVE_BYTES, |sums| sums.live_bytes),
        column(names::LIVE_INSTANCES, |sums| sums.live_instances),
        Column::of(names::ALLOCATED_BYTES.within(record), move |row: &R| sums(row).allocated_bytes.into()),
        column(names::ALLOCATED_INSTANCES, |sums| sums.allocated_instances),
    ]
}

/// The totals of all sites according to the writer.
pub(super) fn stated<'a, R: 'a>(sums: fn(&R) -> Option<Totals>) -> Column<'a, R> {
    Column::record(names::TOTAL, Columns::new(allocated(None, |total| *total)), sums)
        .or_null("in text reports, or without sites")
}

/// Keys besides the rows: how many match and are shown, and further facts in `of`.
pub(super) struct RecordingSummary<T> {
    pub(super) matching: u64,
    pub(super) shown: usize,
    pub(super) of: T,
}

pub(super) fn matching<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::of(names::MATCHING.dot(names::ROWS), |beside: &RecordingSummary<T>| beside.matching.into())
}

pub(super) fn left_out<'a, T: 'a>() -> Column<'a, RecordingSummary<T>> {
    Column::of(names::LEFT_OUT, |beside: &RecordingSummary<T>| {
        beside.matching.saturating_sub(beside.shown as u64).into()
    })
}

pub(super) fn date<'a, T: 'a>(date: fn(&T) -> Option<&str>) -> Column<'a, RecordingSummary<T>> {
    Column::of(names::DATE, move |beside: &RecordingSummary<T>| date(&beside.of).into()).or_null("not stated")
}
