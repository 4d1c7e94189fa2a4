//! Comparison of two recordings: allocation sites, samples and times.
//!
//! Serial numbers of traces change from run to run. Rows are matched by the frames of their traces as shown: class,
//! method, source and line; classes by the stems of their names (`stable_names::stem`). Rows of one file that are equal in
//! this way are merged.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use hprof_format::percent::{percent, two_decimals};
use rustc_hash::FxHashMap;

use hprof_base::change::{Change, Status};
use hprof_base::naming::pattern::{self, ClassPattern};
use hprof_base::naming::stable_names;
use hprof_base::sorting::SortRows;
use hprof_values::TraceSerial;

use super::cputime;
use super::profile::{Frame, Profile, Sites, Times, Traces};
use super::sites::Totals;
use super::stack_filter::StackFilter;

/// Compared rows of two recordings, with the stacks that they refer to.
#[derive(Debug, Clone)]
pub struct ComparedRows<R> {
    /// Distinct stacks, numbered from 1 in the order in which they occur. Class names are stems.
    pub stacks: Traces,
    /// Compared rows, largest growth first.
    pub rows: Vec<R>,
}

/// Sort key of compared allocation sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeOrder {
    /// By growth of live bytes, then of allocated bytes; largest first.
    #[default]
    LiveBytes,
    /// By growth of live instances, then of allocated instances; largest first.
    LiveInstances,
    /// By class name only.
    Class,
}

/// Comparison of one allocation site in two recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteRow {
    /// Stem of the class name, equal in every run.
    pub class: Arc<str>,
    /// Number of the stack in [`ComparedRows::stacks`].
    pub stack: TraceSerial,
    /// Status of the row.
    pub status: Status,
    /// Bytes of live objects.
    pub live_bytes: Change,
    /// Number of live objects.
    pub live_instances: Change,
    /// Bytes ever allocated; `None` if only one file recorded freed objects.
    pub allocated_bytes: Option<Change>,
    /// Number of objects ever allocated; `None` if only one file recorded freed objects.
    pub allocated_instances: Option<Change>,
}

/// Comparison of the samples of one stack in two recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRow {
    /// Number of the stack in [`ComparedRows::stacks`].
    pub stack: TraceSerial,
    /// Status of the row.
    pub status: Status,
    /// Number of samples.
    pub samples: Change,
    /// Percentage of all samples of each recording.
    pub self_percent: Percent,
}

/// Comparison of the measured time of one stack in two recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedTimeRow {
    /// Number of the stack in [`ComparedRows::stacks`].
    pub stack: TraceSerial,
    /// Method named by the rows of the table.
    pub method: Option<Arc<str>>,
    /// Status of the row.
    pub status: Status,
    /// Number of calls.
    pub count: Change,
    /// Percentage of the total time of each recording.
    pub self_percent: Percent,
    /// Time in milliseconds, estimated; `None` if a file states no total.
    pub self_ms: Option<Change>,
}

/// A percentage in both recordings, to two decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Percent {
    /// Old percentage.
    pub old: f64,
    /// New percentage.
    pub new: f64,
}

impl Percent {
    fn rounded(old: f64, new: f64) -> Self {
        Self { old: two_decimals(old), new: two_decimals(new) }
    }

    /// Returns the growth in percentage points: the difference between the two rounded percentages.
    pub fn delta(self) -> f64 {
        // Never -0.
        two_decimals(self.new - self.old) + 0.0
    }
}

/// Compares the allocation sites of the given classes, or of all classes if none are given.
pub fn sites(
    old: &Profile,
    new: &Profile,
    classes: &[ClassPattern],
    sort_by: ChangeOrder,
) -> ComparedRows<SiteRow> {
    let mut stacks = DistinctStacks::default();
    let of = |sites: &Option<Sites>| sites.as_ref().map(|sites| sites.origin);
    let has_allocated = of(&old.sites) == of(&new.sites);
    let mut rows: Sums<(Arc<str>, TraceSerial), Totals> = Sums::default();
    for (side, profile) in [old, new].into_iter().enumerate() {
        let mut numbers = StackNumbers::new(&mut stacks, &profile.traces);
        let all = profile.sites.iter().flat_map(|sites| &sites.rows);
        for site in all.filter(|site| pattern::any_matches(classes, &site.class)) {
            let key = (numbers.stacks.name(&site.class), numbers.stack_number(site.trace));
            add(&mut rows, key, side, |sum: &mut Totals| *sum = sum.plus(site));
        }
    }
    let mut rows: Vec<SiteRow> = rows
        .into_iter()
        .map(|((class, stack), [old, new])| {
            let (before, after) = (old.unwrap_or_default(), new.unwrap_or_default());
            let change = |of: fn(&Totals) -> u64| Change { old: of(&before), new: of(&after) };
            let live = [change(|sum| sum.live_bytes), change(|sum| sum.live_instances)];
            let allocated = [change(|sum| sum.allocated_bytes), change(|sum| sum.allocated_instances)];
            let compared = live.iter().chain(allocated.iter().filter(|_| has_allocated));
            let is_same = compared.copied().all(|change| change.old == change.new);
            let [live_bytes, live_instances] = live;
            let [allocated_bytes, allocated_instances] = allocated.map(|it| has_allocated.then_some(it));
            SiteRow {
                class,
                stack,
                status: Status::from_presence(old.is_some(), new.is_some(), is_same),
                live_bytes,
                live_instances,
                allocated_bytes,
                allocated_instances,
            }
        })
        .collect();
    rows.sort_rows_by(|a, b| {
        let grown = |row: &SiteRow| {
            let (live, allocated) = match sort_by {
                ChangeOrder::LiveBytes => (Some(row.live_bytes), row.allocated_bytes),
                ChangeOrder::LiveInstances => (Some(row.live_instances), row.allocated_instances),
                ChangeOrder::Class => (None, None),
            };
            [live, allocated].map(|change| Reverse(change.map_or(0, Change::delta)))
        };
        let class = || a.class.cmp(&b.class);
        grown(a).cmp(&grown(b)).then_with(class).then_with(|| stacks.order(a.stack, b.stack))
    });
    ComparedRows { stacks: stacks.traces, rows }
}

/// Compares CPU SAMPLES of stacks that match the filter.
pub fn samples(old: &Profile, new: &Profile, filter: &StackFilter) -> ComparedRows<SampleRow> {
    let mut stacks = DistinctStacks::default();
    let mut rows: Sums<TraceSerial, u64> = Sums::default();
    for (side, profile) in [old, new].into_iter().enumerate() {
        let wanted = filter.matcher(&profile.traces);
        let mut numbers = StackNumbers::new(&mut stacks, &profile.traces);
        for (trace, samples) in profile.samples.iter().flat_map(|samples| &samples.rows) {
            if wanted.matches(*trace) {
                let stack = numbers.stack_number(*trace);
                add(&mut rows, stack, side, |sum: &mut u64| *sum = sum.saturating_add(*samples));
            }
        }
    }
    let total = |profile: &Profile| profile.samples.as_ref().map_or(0, |samples| samples.total);
    let totals = (total(old), total(new));
    let rows = rows.into_iter().map(|(stack, [old, new])| {
        let samples = Change { old: old.unwrap_or(0), new: new.unwrap_or(0) };
        let self_percent = Percent::rounded(percent(samples.old, totals.0), percent(samples.new, totals.1));
        let is_same = samples.old == samples.new && totals.0 == totals.1;
        SampleRow {
            stack,
            status: Status::from_presence(old.is_some(), new.is_some(), is_same),
            samples,
            self_percent,
        }
    });
    let mut rows: Vec<SampleRow> = rows.collect();
    rows.sort_rows_by(|a, b| {
        let by = |row: &SampleRow| (grown(row.self_percent), Reverse(row.samples.delta()));
        by(a).cmp(&by(b)).then_with(|| stacks.order(a.stack, b.stack))
    });
    ComparedRows { stacks: stacks.traces, rows }
}

/// Compares CPU TIME of stacks that match the filter.
pub fn times(old: &Profile, new: &Profile, filter: &StackFilter) -> ComparedRows<ComparedTimeRow> {
    #[derive(Default)]
    struct TimeSum {
        count: u64,
        percent: f64,
    }
    let mut stacks = DistinctStacks::default();
    let mut rows: Sums<(TraceSerial, Option<Arc<str>>), TimeSum> = Sums::default();
    for (side, profile) in [old, new].into_iter().enumerate() {
        let wanted = filter.matcher(&profile.traces);
        let mut numbers = StackNumbers::new(&mut stacks, &profile.traces);
        let all = profile.times.iter().flat_map(|times| &times.rows);
        for row in all.filter(|row| wanted.matches(row.trace)) {
            let stack = numbers.stack_number(row.trace);
            let method = row.name.as_deref().map(|name| numbers.stacks.method(name));
            add(&mut rows, (stack, method), side, |sum: &mut TimeSum| {
                sum.count = sum.count.saturating_add(row.count);
                sum.percent += row.self_percent;
            });
        }
    }
    let total_ms = |profile: &Profile| profile.times.as_ref().map(|times: &Times| times.total_ms);
    let totals = (total_ms(old), total_ms(new));
    let rows = rows.into_iter().map(|((stack, method), [old, new])| {
        let of = |sum: &Option<TimeSum>| sum.as_ref().map_or((0, 0.0), |sum| (sum.count, sum.percent));
        let (before, after) = (of(&old), of(&new));
        let self_percent = Percent::rounded(before.1, after.1);
        let ms = |percent, total: Option<i64>| cputime::milliseconds(percent, total?);
        let self_ms = ms(self_percent.old, totals.0).zip(ms(self_percent.new, totals.1));
        let count = Change { old: before.0, new: after.0 };
        let is_same = count.old == count.new && self_percent.old == self_percent.new && totals.0 == totals.1;
        ComparedTimeRow {
            stack,
            method,
            status: Status::from_presence(old.is_some(), new.is_some(), is_same),
            count,
            self_percent,
            self_ms: self_ms.map(|(old, new)| Change { old, new }),
        }
    });
    let mut rows: Vec<ComparedTimeRow> = rows.collect();
    rows.sort_rows_by(|a, b| {
        let by = |row: &ComparedTimeRow| (grown(row.self_percent), Reverse(row.count.delta()));
        let method = || a.method.cmp(&b.method);
        by(a).cmp(&by(b)).then_with(method).then_with(|| stacks.order(a.stack, b.stack))
    });
    ComparedRows { stacks: stacks.traces, rows }
}

/// Returns a sort key by growth, largest first: hundredths of percentage points.
#[allow(clippy::cast_possible_truncation)] // `as` saturates.
fn grown(percent: Percent) -> Reverse<i64> {
    Reverse((percent.delta() * 100.0).round() as i64)
}

/// Sums of rows in the old and in the new file by key; `None` if the file has no such row. The files choose the keys, so the
/// hash is seeded.
type Sums<K, T> = HashMap<K, [Option<T>; 2]>;

/// Updates the sum of a key on one side: 0 is the old file, 1 the new one.
fn add<K: Hash + Eq, T: Default>(rows: &mut Sums<K, T>, key: K, side: usize, add: impl FnOnce(&mut T)) {
    if let Some(sum) = rows.entry(key).or_default().get_mut(side) {
        add(sum.get_or_insert_default());
    }
}

/// Returns the name of a class that is equal in every recording. A binary file may contain only the serial number of a
/// class, which is then part of its name here.
pub(super) fn class_name(class: &str) -> Cow<'_, str> {
    let numbered = class.strip_prefix("<unknown ").and_then(|rest| rest.strip_suffix('>'));
    match numbered.and_then(|rest| rest.rsplit_once(' ')) {
        Some((what, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
            Cow::Owned(format!("<unknown {what}>"))
        }
        _ => stable_names::stem(class),
    }
}

/// Distinct stacks, distinguished by the frames shown. The files choose these, so the hashes are seeded.
#[derive(Default)]
struct DistinctStacks {
    traces: Traces,
    numbers: HashMap<Box<[u32]>, TraceSerial>,
    /// Stems of class and method names, by the name in the file.
    names: HashMap<Arc<str>, Arc<str>>,
}

impl DistinctStacks {
    /// Returns the stem of a class name.
    fn name(&mut self, class: &Arc<str>) -> Arc<str> {
        if let Some(name) = self.names.get(class) {
            return Arc::clone(name);
        }
        let common = class_name(class);
        let name = if *common == **class { Arc::clone(class) } else { Arc::from(&*common) };
        self.names.insert(Arc::clone(class), Arc::clone(&name));
        name
    }

    /// Returns the stem of a method `CLASS.METHOD`.
    fn method(&mut self, qualified: &str) -> Arc<str> {
        match qualified.rsplit_once('.') {
            Some((class, method)) => format!("{}.{method}", self.name(&class.into())).into(),
            None => qualified.into(),
        }
    }

    /// Returns the number of a frame as shown: all unknown line numbers are treated as equal.
    fn frame(&mut self, frame: &Frame) -> u32 {
        let class = frame.class.as_ref().map(|class| self.name(class));
        self.traces.intern(Frame { class, ..frame.as_shown() })
    }

    /// Returns the number of the stack with these frame numbers.
    fn number(&mut self, frames: Vec<u32>) -> TraceSerial {
        if let Some(number) = self.numbers.get(frames.as_slice()) {
            return *number;
        }
        // More than 2^32 stacks do not fit into memory.
        let number = TraceSerial(u32::try_from(self.traces.len() + 1).unwrap_or(u32::MAX));
        self.traces.add_numbers(number, 0, frames.iter().copied());
        self.numbers.insert(frames.into_boxed_slice(), number);
        number
    }

    /// Orders stacks by their frames, innermost first.
    fn order(&self, left: TraceSerial, right: TraceSerial) -> Ordering {
        let frames = |stack| self.traces.get(stack).into_iter().flat_map(|trace| self.traces.frames(trace));
        // Stacks with the same names keep the order in which they were found.
        let serials = left.cmp(&right);
        let (mut left, mut right) = (frames(left), frames(right));
        loop {
            match (left.next(), right.next()) {
                (Some(left), Some(right)) => match by_names(left, right) {
                    Ordering::Equal => {}
                    order => return order,
                },
                (left, right) => return left.is_some().cmp(&right.is_some()).then(serials),
            }
        }
    }
}

/// Orders frames of one table by their names; equal names share one allocation.
fn by_names(left: &Frame, right: &Frame) -> Ordering {
    let name = |of: fn(&Frame) -> &Option<Arc<str>>| match (of(left), of(right)) {
        (Some(left), Some(right)) if Arc::ptr_eq(left, right) => Ordering::Equal,
        (left, right) => left.cmp(right),
    };
    let names = name(|frame| &frame.class).then_with(|| name(|frame| &frame.method));
    names.then_with(|| name(|frame| &frame.source)).then_with(|| left.line.cmp(&right.line))
}

/// Numbers in [`DistinctStacks`] for the traces of one file.
struct StackNumbers<'a> {
    stacks: &'a mut DistinctStacks,
    traces: &'a Traces,
    of_trace: HashMap<TraceSerial, TraceSerial>,
    of_frame: FxHashMap<u32, u32>,
}

impl<'a> StackNumbers<'a> {
    fn new(stacks: &'a mut DistinctStacks, traces: &'a Traces) -> Self {
        Self { stacks, traces, of_trace: HashMap::new(), of_frame: FxHashMap::default() }
    }

    /// Returns the stack number of a trace. A trace that is missing from the file is treated as an empty one.
    fn stack_number(&mut self, trace: TraceSerial) -> TraceSerial {
        if let Some(number) = self.of_trace.get(&trace) {
            return *number;
        }
        let own = self.traces.get(trace).map(|trace| self.traces.numbers(trace)).unwrap_or_default();
        let frames = own.iter().map(|number| match self.of_frame.get(number) {
            Some(known) => *known,
            None => {
                let frame = self.traces.frame(*number).unwrap_or(&Frame::UNKNOWN);
                let known = self.stacks.frame(frame);
                self.of_frame.insert(*number, known);
                known
            }
        });
        let frames = frames.collect();
        let number = self.stacks.number(frames);
        self.of_trace.insert(trace, number);
        number
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::profile::{Origin, Samples, Site, TimeRow as Time};
    use super::super::stack_filter::tests::traces;
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the keys: without a seed it could choose keys that collide.
    #[test]
    fn hashes_are_seeded() {
        let DistinctStacks { numbers, names, .. } = DistinctStacks::default();
        assert!(is_seeded(&numbers) && is_seeded(&names) && is_seeded(&Sums::<TraceSerial, u64>::default()));
        let (mut stacks, traces) = Default::default();
        assert!(is_seeded(&StackNumbers::new(&mut stacks, &traces).of_trace));
    }

    fn site(class: &str, trace: u32, live: u64) -> Site {
        let (class, trace) = (class.into(), TraceSerial(trace));
        let live = Site { class, trace, live_bytes: live, live_instances: 1, ..Site::default() };
        Site { allocated_bytes: live.live_bytes * 2, allocated_instances: 3, ..live }
    }

    fn with_sites(of: &[(u32, &[(&str, &str)])], origin: Origin, rows: Vec<Site>) -> Profile {
        let sites = Sites { origin, rows, total: None, event: None, by_allocation: false, date: None };
        Profile { traces: traces(of), sites: Some(sites), ..Profile::default() }
    }

    fn sample_profile(of: &[(u32, &[(&str, &str)])], total: u64, rows: &[(u32, u64)]) -> Profile {
        let rows = rows.iter().map(|(trace, samples)| (TraceSerial(*trace), *samples)).collect();
        Profile {
            traces: traces(of),
            samples: Some(Samples { total, rows, ..Samples::default() }),
            ..Profile::default()
        }
    }

    /// Joins frames, innermost first.
    fn text(stacks: &Traces, stack: TraceSerial) -> String {
        let frames = stacks.frames(stacks.get(stack).unwrap()).map(Frame::qualified_method);
        frames.collect::<Vec<_>>().join(";")
    }

    const PUT: &[(&str, &str)] = &[("a.Map", "put"), ("a.Main", "main")];

    #[test]
    fn sites_are_matched_by_frames_and_stems() {
        let lambda: &[(&str, &str)] = &[("a.Main$$Lambda$7/0x01", "run"), ("a.Main", "main")];
        let same: &[(&str, &str)] = &[("a.Main$$Lambda$9/0x0f", "run"), ("a.Main", "main")];
        let old = with_sites(
            &[(1, PUT), (2, lambda), (3, &[])],
            Origin::Recorded,
            vec![site("byte[]", 1, 100), site("a.B", 2, 10), site("a.B", 3, 5), site("a.Gone", 9, 7)],
        );
        // Different serial numbers; two traces and two loaders that look the same.
        let new = with_sites(
            &[(7, same), (8, PUT), (9, PUT)],
            Origin::Recorded,
            vec![
                site("byte[]", 9, 30),
                site("byte[]", 8, 90),
                site("byte[]", 8, 1),
                site("a.B", 7, 10),
                site("a.B", 1, 5),
            ],
        );
        let found = sites(&old, &new, &[], ChangeOrder::LiveBytes);
        let rows: Vec<(&str, String, Status, i64, u64)> = (found.rows.iter())
            .map(|row| {
                let stack = text(&found.stacks, row.stack);
                (&*row.class, stack, row.status, row.live_bytes.delta(), row.live_instances.new)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("byte[]", "a.Map.put;a.Main.main".to_owned(), Status::Changed, 21, 3),
                // A trace that is missing from the file is treated as an empty one.
                ("a.B", String::new(), Status::Same, 0, 1),
                ("a.B", "a.Main$$Lambda*.run;a.Main.main".to_owned(), Status::Same, 0, 1),
                ("a.Gone", String::new(), Status::Gone, -7, 0),
            ]
        );
        let allocated = found.rows.first().unwrap();
        assert_eq!(allocated.allocated_bytes, Some(Change { old: 200, new: 242 }));
        assert_eq!(allocated.allocated_instances, Some(Change { old: 3, new: 9 }));
        let found = sites(&old, &new, &["a.*".parse().unwrap()], ChangeOrder::Class);
        assert_eq!(found.rows.iter().map(|row| &*row.class).collect::<Vec<_>>(), ["a.B", "a.B", "a.Gone"]);
    }

    #[test]
    fn the_order_is_by_growth_of_what_lives_then_of_what_was_allocated() {
        let more = |class: &str, live, allocated| Site {
            allocated_bytes: allocated,
            allocated_instances: 100 - allocated,
            ..site(class, 1, live)
        };
        let old =
            with_sites(&[], Origin::Recorded, vec![more("a", 5, 10), more("b", 5, 10), more("c", 5, 10)]);
        let new =
            with_sites(&[], Origin::Recorded, vec![more("a", 5, 11), more("b", 5, 20), more("c", 6, 10)]);
        let order = |by| -> Vec<String> {
            sites(&old, &new, &[], by).rows.iter().map(|row| row.class.to_string()).collect()
        };
        assert_eq!(order(ChangeOrder::LiveBytes), ["c", "b", "a"]);
        assert_eq!(order(ChangeOrder::LiveInstances), ["c", "a", "b"]);
        assert_eq!(order(ChangeOrder::Class), ["a", "b", "c"]);
    }

    #[test]
    fn what_was_freed_is_not_compared_with_what_nobody_counted() {
        let old = with_sites(&[], Origin::Objects, vec![site("a.B", 1, 10)]);
        let new = with_sites(&[], Origin::Recorded, vec![site("a.B", 1, 10)]);
        let found = sites(&old, &new, &[], ChangeOrder::LiveBytes);
        let row = found.rows.first().unwrap();
        assert_eq!((row.status, row.allocated_bytes, row.allocated_instances), (Status::Same, None, None));
    }

    #[test]
    fn runs_of_different_length_are_compared_by_percent() {
        let calc: &[(&str, &str)] = &[("a.Calc", "sum")];
        let old = sample_profile(&[(1, PUT), (2, calc), (3, PUT)], 100, &[(1, 20), (2, 40), (3, 5)]);
        let new = sample_profile(&[(5, calc), (6, PUT)], 1000, &[(5, 300), (6, 300)]);
        let found = samples(&old, &new, &StackFilter::default());
        let rows: Vec<(String, u64, u64, f64, f64, f64)> = (found.rows.iter())
            .map(|row| {
                let (samples, percent) = (row.samples, row.self_percent);
                let stack = text(&found.stacks, row.stack);
                (stack, samples.old, samples.new, percent.old, percent.new, percent.delta())
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("a.Map.put;a.Main.main".to_owned(), 25, 300, 25.0, 30.0, 5.0),
                ("a.Calc.sum".to_owned(), 40, 300, 40.0, 30.0, -10.0),
            ]
        );
        let of = StackFilter { classes: vec!["a.Map".parse().unwrap()], ..StackFilter::default() };
        assert_eq!(samples(&old, &new, &of).rows.len(), 1);
        let again = samples(&old, &old, &StackFilter::default());
        assert!(again.rows.iter().all(|row| row.status == Status::Same));
    }

    #[test]
    fn times_are_matched_by_frames_and_the_name_in_the_row() {
        let timed = |serial, name: &str, count, self_percent, total_ms| Profile {
            traces: traces(&[(serial, PUT)]),
            times: Some(Times {
                total_ms,
                rows: vec![Time {
                    trace: TraceSerial(serial),
                    count,
                    self_percent,
                    accumulated_percent: self_percent,
                    name: Some(name.to_owned()),
                    nanos: None,
                }],
                date: None,
                event: None,
            }),
            ..Profile::default()
        };
        let (old, new) = (timed(1, "a.Map.put", 3, 50.0, 200), timed(4, "a.Map.put", 9, 25.5, 1000));
        let found = times(&old, &new, &StackFilter::default());
        let [row] = &found.rows[..] else { panic!("{found:?}") };
        assert_eq!((row.count.delta(), row.self_percent.delta()), (6, -24.5));
        assert_eq!(row.self_ms, Some(Change { old: 100, new: 255 }));
        let found = times(&old, &timed(4, "a.Other.put", 9, 25.5, -5), &StackFilter::default());
        let statuses: Vec<Status> = found.rows.iter().map(|row| row.status).collect();
        assert_eq!(statuses, [Status::New, Status::Gone]);
        assert!(found.rows.iter().all(|row| row.self_ms.is_none()));
    }

    #[test]
    fn frames_that_show_the_same_are_the_same() {
        let frame = |source: Option<&str>, line| Frame {
            class: Some("a.B".into()),
            method: Some("x".into()),
            source: source.map(Into::into),
            line,
        };
        let mut stacks = DistinctStacks::default();
        let same = [
            [frame(Some("B.java"), -1), frame(Some("B.java"), 0)],
            [frame(Some("B.java"), -3), frame(None, -3)],
            [frame(Some(""), 0), frame(None, -2)],
        ];
        for [one, other] in &same {
            assert_eq!(stacks.frame(one), stacks.frame(other), "{one} {other}");
            assert_eq!(one.as_shown().to_string(), other.to_string());
        }
        assert_ne!(stacks.frame(&frame(Some("B.java"), 1)), stacks.frame(&frame(Some("B.java"), 2)));
        assert_eq!(stacks.traces.different_frames(), 5);
    }

    #[test]
    fn serial_numbers_in_names_are_left_out() {
        for (class, name) in [
            ("<unknown array class 100390>", "<unknown array class>"),
            ("<unknown class 7>", "<unknown class>"),
            ("<unknown class>", "<unknown class>"),
            ("a.Main$$Lambda$7/0x01", "a.Main$$Lambda*"),
            ("byte[]", "byte[]"),
        ] {
            assert_eq!(class_name(class), name);
        }
    }
}
