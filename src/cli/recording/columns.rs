//! Columns that several commands about recordings declare.

use hprof_parser::TraceSerial;
use hprof_query::recordings::sites::Totals;
use hprof_report::column::{Column, Columns, Fit, Kind};

/// Places in the tables of rankings; those between are of what is ranked.
pub(super) const RANK: usize = 0;
pub(super) const SELF: usize = 1;
pub(super) const ACCUMULATED: usize = 2;
pub(super) const TRACE: usize = 8;
pub(super) const NAME: usize = 9;

/// What the rank of most rows is.
pub(super) const PLACE_IN_FILE: &str = "place in the file, from 1, whatever `--sort` and the filters do";

/// What stands for the method of a trace without frames.
pub(super) const EMPTY: &str = "<empty>";

pub(super) fn rank<'a, R: 'a>(meaning: &'static str, rank: fn(&R) -> u64) -> Column<'a, R> {
    let column = Column::integer("rank", meaning, move |row| rank(row).into());
    column
        .header("rank")
        .place(RANK)
        .fit(Fit::Secondary { priority: 0 })
        .cell(move |row| rank(row).to_string())
}

/// The trace in JSON and CSV only.
pub(super) fn dummy_trace<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> Column<'a, R> {
    Column::integer("trace", "serial number of the stack trace", move |row| trace(row).into())
}

pub(super) fn trace<'a, R: 'a>(trace: fn(&R) -> TraceSerial) -> Column<'a, R> {
    let column = dummy_trace(trace);
    column.header("trace").place(TRACE).cell(move |row| trace(row).to_string())
}

/// A percentage, which tables show as the agent's reports print it.
pub(super) fn percent<'a, R: 'a>(
    key: &'static str,
    title: &'static str,
    meaning: &'static str,
    percent: fn(&R) -> f64,
) -> Column<'a, R> {
    let column = Column::new(key, Kind::Float, meaning, move |row| percent(row).into());
    column.header(title).cell(move |row| format!("{:.2}%", percent(row)))
}

/// The percentages of a ranking, of a row and of all up to it; `meaning` is of the first.
pub(super) fn percents<'a, R: 'a>(
    meaning: &'static str,
    own: fn(&R) -> f64,
    accumulated: fn(&R) -> f64,
) -> [Column<'a, R>; 2] {
    let sum = "the same of this row and all before it in the file together";
    [
        percent("self_percent", "self", meaning, own).place(SELF),
        percent("accumulated_percent", "accum", sum, accumulated)
            .place(ACCUMULATED)
            .fit(Fit::Secondary { priority: 1 }),
    ]
}

/// What was allocated, and what of it is alive. `prefix` is that of the keys.
pub(super) fn allocated<'a, R: 'a>(prefix: &'static str, sums: fn(&R) -> Totals) -> [Column<'a, R>; 4] {
    let column = |key: &str, meaning, value: fn(&Totals) -> u64| {
        Column::integer(format!("{prefix}{key}"), meaning, move |row| value(&sums(row)).into())
    };
    [
        column("live_bytes", "bytes that were allocated and are alive", |sums| sums.live_bytes),
        column("live_instances", "objects that were allocated and are alive", |sums| sums.live_instances),
        column("allocated_bytes", "bytes that were ever allocated", |sums| sums.allocated_bytes),
        column("allocated_instances", "objects that were ever allocated", |sums| sums.allocated_instances),
    ]
}

/// What the writer states of all sites.
pub(super) fn stated<'a, R: 'a>(sums: fn(&R) -> Option<Totals>) -> Column<'a, R> {
    let meaning = "sums over all sites as the writer states them, also over those that it left out";
    Column::record("total", meaning, Columns::new(allocated("", |total| *total)), sums)
        .or_null("texts state none; there are no sites")
}

/// What stands beside rows: how many match and are shown, and `of` what else there is to say.
pub(super) struct Beside<T> {
    pub(super) matching: u64,
    pub(super) shown: usize,
    pub(super) of: T,
}

pub(super) fn matching<'a, T: 'a>() -> Column<'a, Beside<T>> {
    Column::integer(
        "matching.rows",
        "rows that match, also those that `--top` leaves out",
        |beside: &Beside<T>| beside.matching.into(),
    )
}

pub(super) fn left_out<'a, T: 'a>() -> Column<'a, Beside<T>> {
    Column::integer("left_out", "rows that match and that `--top` leaves out", |beside: &Beside<T>| {
        beside.matching.saturating_sub(beside.shown as u64).into()
    })
}

pub(super) fn date<'a, T: 'a>(date: fn(&T) -> Option<&str>) -> Column<'a, Beside<T>> {
    let meaning = "when the rows were written down; of texts a local time without a zone";
    Column::new("date", Kind::Time, meaning, move |beside: &Beside<T>| date(&beside.of).into())
        .or_null("not stated")
}
