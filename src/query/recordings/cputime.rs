//! CPU TIME (ms), MONITOR TIME and calls of `cpu=old`: time as measured by the agent.

use std::cmp::Reverse;

use super::profile::{Call, Method, TimeRow, Traces};
use super::stack_filter::StackFilter;
use hprof_base::naming::pattern::{self, ClassPattern};
use hprof_base::sorting::SortRows;
use hprof_format::percent::ratio;

/// Query for rows of CPU TIME or MONITOR TIME.
#[derive(Debug, Clone, Default)]
pub struct TimeQuery {
    /// Filter of traces by their frames.
    pub filter: StackFilter,
    /// Patterns of the method's name, or of the monitor's class in MONITOR TIME; any if empty.
    pub names: Vec<ClassPattern>,
    /// Minimum share of the total time that a row needs, from 0 to 1.
    pub cutoff: f64,
    /// Order of the rows; that of the file by default.
    pub sort_by: Option<TimeOrder>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Order of rows of CPU TIME, MONITOR TIME or `cpu=old`. Equal rows stay in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrder {
    /// By time, descending.
    Time,
    /// By number of calls or contentions, descending.
    Count,
    /// By serial number of the trace.
    Trace,
    /// By the method's name.
    Method,
}

/// Row of CPU TIME or MONITOR TIME with its rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedTime<'a> {
    /// Rank among all rows, from 1: by the figure that rows are sorted by, else in the order of the file.
    pub rank: u64,
    /// Row of the file.
    pub time: &'a TimeRow,
    /// Method of the trace's innermost frame.
    pub method: Option<String>,
    /// Time in milliseconds: measured, or else estimated from the percentage of the total; `None` if the total is unusable.
    pub self_ms: Option<u64>,
}

/// Rows with times that match a query.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeReport<R> {
    /// Rows, at most `top`.
    pub rows: Vec<R>,
    /// Number of matching rows before `top` was applied.
    pub matching: u64,
}

/// Returns matching rows of CPU TIME or MONITOR TIME.
pub fn times<'a>(
    rows: &'a [TimeRow],
    total_ms: i64,
    traces: &Traces,
    question: &TimeQuery,
) -> TimeReport<RankedTime<'a>> {
    let stacks = question.filter.matcher(traces);
    let is_meant = |row: &TimeRow| {
        stacks.matches(row.trace)
            && row.self_percent / 100.0 >= question.cutoff
            && (question.names.is_empty()
                || row.name.as_ref().is_some_and(|name| pattern::any_matches(&question.names, name)))
    };
    let mut all: Vec<&TimeRow> = rows.iter().collect();
    // Ranks are computed before rows are left out: they count all rows, as in the file.
    match question.sort_by {
        None | Some(TimeOrder::Trace | TimeOrder::Method) => {}
        Some(TimeOrder::Time) => all.sort_rows_by(|a, b| b.self_percent.total_cmp(&a.self_percent)),
        Some(TimeOrder::Count) => all.sort_rows_by_key(|row| Reverse(row.count)),
    }
    let mut found: Vec<(u64, &TimeRow)> = (1..).zip(all).filter(|(_, row)| is_meant(row)).collect();
    match question.sort_by {
        None | Some(TimeOrder::Time | TimeOrder::Count) => {}
        Some(TimeOrder::Trace) => found.sort_rows_by_key(|(_, row)| row.trace),
        Some(TimeOrder::Method) => found.sort_rows_by_cached_key(|(_, row)| traces.method(row.trace)),
    }
    let matching = found.len() as u64;
    let rows = (found.into_iter().take(question.top.unwrap_or(usize::MAX)))
        .map(|(rank, time)| RankedTime {
            rank,
            time,
            method: traces.method(time.trace),
            self_ms: time.milliseconds().or_else(|| milliseconds(time.self_percent, total_ms)),
        })
        .collect();
    TimeReport { rows, matching }
}

/// Returns a percentage of a total in milliseconds; `None` if the total is negative.
pub(super) fn milliseconds(percent: f64, total_ms: i64) -> Option<u64> {
    let total = u64::try_from(total_ms).ok()?;
    // The file has two decimals: a product of integers is not rounded twice.
    let hundredths = (percent * 100.0).round();
    if !(0.0..=10_000.0).contains(&hundredths) {
        return None;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 10000.
    let hundredths = hundredths as u64;
    u64::try_from((u128::from(total) * u128::from(hundredths) + 5_000) / 10_000).ok()
}

/// Query for calls in the table of `cpu=old`.
#[derive(Debug, Clone, Default)]
pub struct CallQuery {
    /// Filter that the caller or the callee must match.
    pub filter: StackFilter,
    /// Minimum share of the total time that a call needs, from 0 to 1.
    pub cutoff: f64,
    /// Order of the rows; that of the file by default. Calls have no trace.
    pub sort_by: Option<TimeOrder>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Call of `cpu=old` with its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRow<'a> {
    /// Rank among all calls, from 1: by the figure that rows are sorted by, else in the order of the file.
    pub rank: u64,
    /// Call in the file.
    pub call: &'a Call,
}

/// Returns the calls that match a query.
pub fn calls<'a>(calls: &'a [Call], question: &CallQuery) -> TimeReport<CallRow<'a>> {
    let whole = calls.iter().fold(0u64, |sum, call| sum.saturating_add(positive(call.time_ms)));
    let is_meant = |call: &Call| {
        let methods = [&call.callee, &call.caller].into_iter().flatten();
        question.filter.matches_any(methods.map(|method| (method.class.as_str(), method.name.as_str())))
            && ratio(positive(call.time_ms), whole) >= question.cutoff
    };
    let mut all: Vec<&Call> = calls.iter().collect();
    match question.sort_by {
        None | Some(TimeOrder::Trace | TimeOrder::Method) => {}
        Some(TimeOrder::Time) => all.sort_rows_by_key(|call| Reverse(call.time_ms)),
        Some(TimeOrder::Count) => all.sort_rows_by_key(|call| Reverse(call.count)),
    }
    let mut rows: Vec<CallRow<'a>> = (1..)
        .zip(all)
        .filter(|(_, call)| is_meant(call))
        .map(|(rank, call)| CallRow { rank, call })
        .collect();
    let key =
        |method: &Option<Method>| method.as_ref().map(|method| (method.class.clone(), method.name.clone()));
    if question.sort_by == Some(TimeOrder::Method) {
        rows.sort_rows_by_cached_key(|row| key(&row.call.callee));
    }
    let matching = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    TimeReport { rows, matching }
}

/// Returns the time, or 0 if it is negative because it overflowed.
fn positive(time_ms: i64) -> u64 {
    u64::try_from(time_ms).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::stack_filter::tests::traces;
    use super::*;
    use hprof_values::TraceSerial;

    fn rows() -> Vec<TimeRow> {
        let row = |trace, count, self_percent: f64, name: Option<&str>| TimeRow {
            trace,
            count,
            self_percent,
            accumulated_percent: 0.0,
            name: name.map(str::to_owned),
            nanos: None,
        };
        vec![
            row(TraceSerial(3), 1, 44.18, Some("a.A")),
            row(TraceSerial(2), 9, 44.18, Some("b.B")),
            row(TraceSerial(1), 5, 1.03, None),
        ]
    }

    #[test]
    fn order_cutoff_filters_and_estimates() {
        let (rows, traces) = (rows(), traces(&[(2, &[("z.Z", "m")]), (3, &[("y.Y", "m")])]));
        let ranked = |question: &TimeQuery| -> Vec<(u64, u32)> {
            times(&rows, 679, &traces, question).rows.iter().map(|row| (row.rank, row.time.trace.0)).collect()
        };
        let ranks = |question: TimeQuery| -> Vec<u64> { ranked(&question).iter().map(|row| row.0).collect() };
        let by = |sort_by| TimeQuery { sort_by: Some(sort_by), ..TimeQuery::default() };
        assert_eq!(ranked(&by(TimeOrder::Count)), [(1, 2), (2, 1), (3, 3)]);
        // Ranked among all rows, including those that do not match.
        let names = vec!["a.*".parse().unwrap()];
        assert_eq!(ranked(&TimeQuery { names, ..by(TimeOrder::Count) }), [(3, 3)]);
        assert_eq!(ranks(TimeQuery::default()), [1, 2, 3]);
        assert_eq!(ranks(by(TimeOrder::Time)), [1, 2, 3]);
        assert_eq!(ranks(by(TimeOrder::Trace)), [3, 2, 1]);
        assert_eq!(ranks(by(TimeOrder::Method)), [3, 1, 2]);
        assert_eq!(ranks(TimeQuery { cutoff: 0.0103, ..TimeQuery::default() }), [1, 2, 3]);
        assert_eq!(ranks(TimeQuery { cutoff: 0.0104, ..TimeQuery::default() }), [1, 2]);
        assert_eq!(ranks(TimeQuery { names: vec!["b.*".parse().unwrap()], ..TimeQuery::default() }), [2]);
        let filter = StackFilter { classes: vec!["y.Y".parse().unwrap()], ..StackFilter::default() };
        assert_eq!(ranks(TimeQuery { filter, ..TimeQuery::default() }), [1]);
        let answer = times(&rows, 679, &traces, &TimeQuery { top: Some(2), ..TimeQuery::default() });
        assert_eq!((answer.rows.first().unwrap().self_ms, answer.matching), (Some(300), 3));
        assert_eq!(answer.rows.first().unwrap().method.as_deref(), Some("y.Y.m"));
    }

    #[test]
    fn milliseconds_of_garbage_are_unknown() {
        assert_eq!(milliseconds(50.0, -7), None);
        assert_eq!(milliseconds(f64::NAN, 7), None);
        assert_eq!(milliseconds(-0.5, 7), None);
        assert_eq!(milliseconds(100.0, i64::MAX), Some(i64::MAX as u64));
        assert_eq!(milliseconds(1.03, 679), Some(7));
    }

    #[test]
    fn calls_by_either_method() {
        let method = |class: &str, name: &str| {
            Some(Method { class: class.to_owned(), name: name.to_owned(), signature: "()V".to_owned() })
        };
        let rows = [
            Call { count: 9, callee: method("a.A", "x"), caller: method("b.B", "y"), time_ms: 1 },
            Call { count: 8, callee: method("b.B", "y"), caller: None, time_ms: 3 },
            Call { count: 8, callee: None, caller: None, time_ms: 0 },
        ];
        let ranks = |question: CallQuery| -> Vec<u64> {
            super::calls(&rows, &question).rows.iter().map(|row| row.rank).collect()
        };
        let by = |sort_by| CallQuery { sort_by: Some(sort_by), ..CallQuery::default() };
        assert_eq!(ranks(CallQuery::default()), [1, 2, 3]);
        let counts = |sort_by| -> Vec<(u64, i64)> {
            let rows = super::calls(&rows, &by(sort_by)).rows;
            rows.iter().map(|row| (row.rank, row.call.time_ms)).collect()
        };
        assert_eq!(counts(TimeOrder::Time), [(1, 3), (2, 1), (3, 0)]);
        assert_eq!(counts(TimeOrder::Count), [(1, 1), (2, 3), (3, 0)]);
        assert_eq!(ranks(by(TimeOrder::Method)), [3, 1, 2]);
        assert_eq!(ranks(CallQuery { cutoff: 0.25, ..CallQuery::default() }), [1, 2]);
        let filter = StackFilter { methods: vec!["B.y".parse().unwrap()], ..StackFilter::default() };
        assert_eq!(ranks(CallQuery { filter, top: Some(1), ..CallQuery::default() }), [1]);
        assert_eq!(super::calls(&[], &CallQuery::default()).matching, 0);
    }
}
