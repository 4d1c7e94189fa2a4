//! CPU SAMPLES by trace, method, class or package.

use std::cmp::Reverse;
use std::collections::HashMap;

use hprof_format::percent::{percent, ratio, two_decimals};
use hprof_values::{TraceSerial, names};

use super::profile::{Frame, Samples, Traces};
use super::stack_filter::StackFilter;
use hprof_base::sorting::SortRows;

/// Query for CPU SAMPLES.
#[derive(Debug, Clone, Default)]
pub struct CpuQuery {
    /// Filter of traces by their frames.
    pub filter: StackFilter,
    /// Minimum share of all samples that a row needs, from 0 to 1.
    pub cutoff: f64,
    /// Order of the rows.
    pub sort_by: CpuOrder,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Order of rows of CPU SAMPLES. Rows with equal keys are ordered by rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CpuOrder {
    /// By samples, descending; for groups, by samples in the group itself.
    #[default]
    Samples,
    /// By samples in the group or in anything that it called, descending. For groups only.
    Total,
    /// By serial number of the trace.
    Trace,
    /// By name.
    Name,
}

/// Samples of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedSamples {
    /// Rank among all traces, from 1: by samples if rows are sorted by samples or totals, else in the order of the file.
    pub rank: u64,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Number of samples.
    pub samples: u64,
    /// Percentage of all samples, to two decimals.
    pub self_percent: f64,
    /// Percentage of all samples in this row and all rows ranked before it, to two decimals.
    pub accumulated_percent: f64,
    /// Method of the trace's innermost frame.
    pub method: Option<String>,
}

/// Samples of a method, class or package.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRow {
    /// Rank among all groups, from 1: by total samples if rows are sorted by them, else by samples in the group itself.
    pub rank: u64,
    /// Name of the method, class or package; `None` for samples of traces without frames, or whose frame has no class.
    pub name: Option<String>,
    /// Samples in which the group was running.
    pub self_samples: u64,
    /// Samples in which the group was running or had called the running method; a group that occurs repeatedly in a
    /// trace counts once.
    pub total_samples: u64,
    /// `self_samples` in percent of all samples, to two decimals.
    pub self_percent: f64,
    /// `total_samples` in percent of all samples, to two decimals.
    pub total_percent: f64,
}

/// Rows of CPU SAMPLES that match a query.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuReport<R> {
    /// Rows, at most `top`.
    pub rows: Vec<R>,
    /// Number of matching rows before `top` was applied.
    pub matching: u64,
    /// Samples of the matching traces.
    pub samples: u64,
}

/// Returns samples by trace.
pub fn by_trace(samples: &Samples, traces: &Traces, question: &CpuQuery) -> CpuReport<RankedSamples> {
    let stacks = question.filter.matcher(traces);
    let mut accumulated = 0.0;
    let mut rows = Vec::new();
    let mut all = samples.rows.clone();
    // Ranks are computed before rows are left out: they count all traces, as in the file.
    if matches!(question.sort_by, CpuOrder::Samples | CpuOrder::Total) {
        all.sort_rows_by_key(|(_, count)| Reverse(*count));
    }
    for (rank, (trace, count)) in (1..).zip(all) {
        let part = percent(count, samples.total);
        accumulated += part;
        if stacks.matches(trace) && !is_below(count, samples.total, question.cutoff) {
            rows.push(RankedSamples {
                rank,
                trace,
                samples: count,
                self_percent: two_decimals(part),
                accumulated_percent: two_decimals(accumulated),
                method: None,
            });
        }
    }
    match question.sort_by {
        CpuOrder::Samples | CpuOrder::Total => {}
        CpuOrder::Trace => rows.sort_rows_by_key(|row| row.trace),
        CpuOrder::Name => rows.sort_rows_by_cached_key(|row| method(samples, traces, row.trace)),
    }
    let sum = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.samples));
    let matching = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    for row in &mut rows {
        row.method = method(samples, traces, row.trace);
    }
    CpuReport { rows, matching, samples: sum }
}

/// Returns the method of a trace's innermost frame, or the one that the row of a text names if the file lacks the trace.
fn method(samples: &Samples, traces: &Traces, trace: TraceSerial) -> Option<String> {
    let named = || samples.methods.get(&trace).filter(|_| traces.get(trace).is_none());
    traces.method(trace).or_else(|| named().map(|name| name.to_string()))
}

/// Key by which [`by_group`] groups samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuGroupBy {
    /// Methods, by class and name.
    Method,
    /// Classes.
    Class,
    /// Packages.
    Package,
}

impl CpuGroupBy {
    /// Returns the name of the group that a frame belongs to.
    fn name(self, frame: &Frame) -> Option<String> {
        match self {
            Self::Method => Some(frame.qualified_method()),
            Self::Class => frame.class.as_deref().map(str::to_owned),
            Self::Package => frame.class.as_deref().map(|class| match names::package(class) {
                "" => "<unnamed package>".to_owned(),
                package => package.to_owned(),
            }),
        }
    }
}

/// Returns samples by method, class or package.
pub fn by_group(
    samples: &Samples,
    traces: &Traces,
    question: &CpuQuery,
    by: CpuGroupBy,
) -> CpuReport<GroupRow> {
    let mut groups = CpuGroups::new(traces, by);
    let stacks = question.filter.matcher(traces);
    let mut sum = 0u64;
    for (number, (serial, count)) in (1u64..).zip(samples.rows.iter().copied()) {
        if stacks.matches(serial) {
            sum = sum.saturating_add(count);
            let frames = traces.get(serial).map(|trace| traces.numbers(trace)).unwrap_or_default();
            groups.count(number, frames, count);
        }
    }
    let mut rows = groups.rows(samples.total, question.sort_by);
    rows.retain(|row| !is_below(row.total_samples, samples.total, question.cutoff));
    match question.sort_by {
        CpuOrder::Samples | CpuOrder::Total | CpuOrder::Trace => {}
        CpuOrder::Name => rows.sort_rows_by(|a, b| a.name.cmp(&b.name)),
    }
    let matching = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    CpuReport { rows, matching, samples: sum }
}

/// Sums of samples by group.
struct CpuGroups {
    /// Index of the group of each frame, by frame number.
    of_frame: Vec<usize>,
    groups: Vec<CpuGroup>,
}

#[derive(Debug, Default)]
struct CpuGroup {
    name: Option<String>,
    self_samples: u64,
    total_samples: u64,
    /// Number of the last row that was counted, so that recursion counts once.
    counted: u64,
}

/// Group without a name.
const NAMELESS: usize = 0;

impl CpuGroups {
    fn new(traces: &Traces, by: CpuGroupBy) -> Self {
        let mut groups = vec![CpuGroup::default()];
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut of_frame = Vec::with_capacity(traces.different_frames());
        for frame in (0u32..).map_while(|number| traces.frame(number)) {
            of_frame.push(by.name(frame).map_or(NAMELESS, |name| {
                *numbers.entry(name).or_insert_with_key(|name| {
                    groups.push(CpuGroup { name: Some(name.clone()), ..CpuGroup::default() });
                    groups.len() - 1
                })
            }));
        }
        Self { of_frame, groups }
    }

    /// Counts a row's samples; rows are numbered from 1.
    fn count(&mut self, row: u64, frames: &[u32], samples: u64) {
        let of_frame = |number: &u32| self.of_frame.get(*number as usize).copied().unwrap_or(NAMELESS);
        let innermost = frames.first().map_or(NAMELESS, of_frame);
        if let Some(group) = self.groups.get_mut(innermost) {
            group.self_samples = group.self_samples.saturating_add(samples);
        }
        for number in frames.iter().map(of_frame).chain([innermost]) {
            if let Some(group) = self.groups.get_mut(number)
                && group.counted != row
            {
                group.counted = row;
                group.total_samples = group.total_samples.saturating_add(samples);
            }
        }
    }

    /// Returns the groups with samples, sorted by the requested figure, descending.
    fn rows(self, whole: u64, sort_by: CpuOrder) -> Vec<GroupRow> {
        let mut groups: Vec<CpuGroup> = self.groups.into_iter().filter(|group| group.counted > 0).collect();
        groups.sort_rows_by(|a, b| {
            let key = |group: &CpuGroup| (Reverse(group.self_samples), Reverse(group.total_samples));
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        if sort_by == CpuOrder::Total {
            groups.sort_rows_by_key(|group| Reverse(group.total_samples));
        }
        let row = |(rank, group): (u64, CpuGroup)| GroupRow {
            rank,
            name: group.name,
            self_samples: group.self_samples,
            total_samples: group.total_samples,
            self_percent: two_decimals(percent(group.self_samples, whole)),
            total_percent: two_decimals(percent(group.total_samples, whole)),
        };
        (1..).zip(groups).map(row).collect()
    }
}

/// Returns whether the share of samples is below the cutoff, compared as the agent does.
fn is_below(samples: u64, whole: u64, cutoff: f64) -> bool {
    ratio(samples, whole) < cutoff
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::stack_filter::tests::traces;
    use super::*;

    fn sample() -> (Samples, Traces) {
        let traces = traces(&[
            (1, &[("p.A", "run"), ("p.A", "fib"), ("p.A", "fib"), ("q.B", "main")]),
            (2, &[("p.A", "fib"), ("p.A", "fib"), ("q.B", "main")]),
            (3, &[("C", "x")]),
            (4, &[]),
        ]);
        let rows = [(2, 3), (1, 2), (3, 2), (4, 1), (9, 1)];
        let rows = rows.map(|(trace, samples)| (TraceSerial(trace), samples)).into();
        (Samples { total: 12, rows, ..Samples::default() }, traces)
    }

    #[test]
    fn percentages_are_of_all_samples_and_add_up_unrounded() {
        let (samples, traces) = sample();
        let answer = by_trace(&samples, &traces, &CpuQuery::default());
        let percents: Vec<String> = (answer.rows.iter())
            .map(|row| format!("{:.2} {:.2}", row.self_percent, row.accumulated_percent))
            .collect();
        // 16.67 + 16.67 + 25 would be 58.34.
        assert_eq!(percents, ["25.00 25.00", "16.67 41.67", "16.67 58.33", "8.33 66.67", "8.33 75.00"]);
        assert_eq!(answer.rows.first().unwrap().method.as_deref(), Some("p.A.fib"));
        assert_eq!((answer.matching, answer.samples), (5, 9));
    }

    #[test]
    fn order_cutoff_and_filters() {
        let (samples, traces) = sample();
        let ranks = |question: CpuQuery| -> Vec<u64> {
            by_trace(&samples, &traces, &question).rows.iter().map(|row| row.rank).collect()
        };
        let by = |sort_by| CpuQuery { sort_by, ..CpuQuery::default() };
        // A file in another order: the first row has rank 1, and percentages accumulate from there.
        let other = Samples { rows: samples.rows.iter().rev().copied().collect(), ..samples.clone() };
        let ranked = |sort_by| -> Vec<(u64, u32, f64)> {
            let rows = by_trace(&other, &traces, &by(sort_by)).rows;
            rows.iter().map(|row| (row.rank, row.trace.0, row.accumulated_percent)).collect()
        };
        let by_samples = [(1, 2, 25.0), (2, 3, 41.67), (3, 1, 58.33), (4, 9, 66.67), (5, 4, 75.0)];
        assert_eq!(ranked(CpuOrder::Samples), by_samples);
        let by_trace = [(4, 1, 50.0), (5, 2, 75.0), (3, 3, 33.33), (2, 4, 16.67), (1, 9, 8.33)];
        assert_eq!(ranked(CpuOrder::Trace), by_trace);
        assert_eq!(ranks(by(CpuOrder::Samples)), [1, 2, 3, 4, 5]);
        assert_eq!(ranks(by(CpuOrder::Trace)), [2, 1, 3, 4, 5]);
        assert_eq!(ranks(by(CpuOrder::Name)), [4, 5, 3, 1, 2]);
        assert_eq!(ranks(CpuQuery { cutoff: 0.25, ..CpuQuery::default() }), [1]);
        assert_eq!(ranks(CpuQuery { cutoff: 2.0 / 12.0, ..CpuQuery::default() }), [1, 2, 3]);
        assert_eq!(ranks(CpuQuery { top: Some(1), ..CpuQuery::default() }), [1]);
        let filter = StackFilter { methods: vec!["A.run".parse().unwrap()], ..StackFilter::default() };
        assert_eq!(ranks(CpuQuery { filter, ..CpuQuery::default() }), [2]);
    }

    #[test]
    fn recursion_counts_once() {
        let (samples, traces) = sample();
        let groups = |by| -> Vec<(Option<String>, u64, u64)> {
            let answer = by_group(&samples, &traces, &CpuQuery::default(), by);
            answer.rows.into_iter().map(|row| (row.name, row.self_samples, row.total_samples)).collect()
        };
        let named = |name: &str, own, total| (Some(name.to_owned()), own, total);
        assert_eq!(
            groups(CpuGroupBy::Method),
            // Equal rows are sorted by name, nameless first.
            [
                named("p.A.fib", 3, 5),
                (None, 2, 2),
                named("C.x", 2, 2),
                named("p.A.run", 2, 2),
                named("q.B.main", 0, 5),
            ]
        );
        assert_eq!(
            groups(CpuGroupBy::Class),
            [named("p.A", 5, 5), (None, 2, 2), named("C", 2, 2), named("q.B", 0, 5)]
        );
        let unnamed = named("<unnamed package>", 2, 2);
        assert_eq!(groups(CpuGroupBy::Package), [named("p", 5, 5), (None, 2, 2), unnamed, named("q", 0, 5)]);
    }

    #[test]
    fn groups_are_cut_and_sorted() {
        let (samples, traces) = sample();
        let names = |question: CpuQuery| -> Vec<(u64, Option<String>)> {
            let rows = by_group(&samples, &traces, &question, CpuGroupBy::Class).rows;
            rows.into_iter().map(|row| (row.rank, row.name)).collect()
        };
        let name = |rank, text: &str| (rank, Some(text.to_owned()));
        let total = CpuQuery { sort_by: CpuOrder::Total, cutoff: 5.0 / 12.0, ..CpuQuery::default() };
        assert_eq!(names(total), [name(1, "p.A"), name(2, "q.B")]);
        let by_name = CpuQuery { sort_by: CpuOrder::Name, top: Some(2), ..CpuQuery::default() };
        assert_eq!(names(by_name), [(2, None), name(3, "C")]);
    }

    #[test]
    fn nothing_was_sampled() {
        let answer = by_trace(&Samples::default(), &Traces::default(), &CpuQuery::default());
        assert_eq!((answer.rows.len(), answer.samples), (0, 0));
        let zero = Samples { total: 0, rows: vec![(TraceSerial(1), 0)], ..Samples::default() };
        assert!(
            by_trace(&zero, &Traces::default(), &CpuQuery::default()).rows.first().unwrap().self_percent
                == 0.0
        );
        assert_eq!(
            by_group(&zero, &Traces::default(), &CpuQuery::default(), CpuGroupBy::Method).rows.len(),
            1
        );
    }
}
