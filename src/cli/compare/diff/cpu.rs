//! `diff --group-by cpu`, `cputime`: CPU samples and CPU times of two runs.

use crate::cli::compare::pair::{ChangeColumns, Old};
use crate::cli::prelude::*;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile, same_samples};
use crate::cli::shared::stack::StackArgs;
use hprof_query::change::Change;
use hprof_query::dictionary::ComparedValue;
use hprof_query::recordings::compare::{self, ComparedTimeRow, SampleRow};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::SampleEvent;
use hprof_query::recordings::profile::{Profile, Traces};
use hprof_query::recordings::stack_filter::StackFilter;
use hprof_report::number::format_signed;
use hprof_values::TraceSerial;

use super::DiffArgs;
use super::kind::DiffKind;
use super::recorded::{self, Recordings};
use super::shown::{self, Counts};

/// Definition of the kind `cpu`.
pub(super) const SAMPLES: DiffKind = DiffKind {
    name: "cpu",
    summary: "CPU SAMPLES of recordings, by stack",
    about: "A row is a sampled stack, whatever the serial numbers of its traces. Runs differ in length: rows are \
            sorted by the growth of `self_percent`. The agent omits traces with few samples (`cutoff`): a trace that \
            is new or gone may have had too few samples in the other file.",
    unit: "stacks",
    options: &["PATTERN", "--stack"],
    compare: run,
    rows: || columns(&Traces::default(), &StackArgs::ALL).fields(),
    summary_fields: || Columns::new(summary_columns()).fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let mut source = recorded::open(args, |input| {
        open(cx, input, |recorded| {
            let profile = &recorded.profile;
            let instead = match (&profile.times, profile.calls.is_empty()) {
                (Some(_), _) => "; the file contains CPU TIME, which --group-by cputime compares",
                (None, false) => "; the file contains calls (cpu=old), which `hprof-cli cputime` shows",
                (None, true) => "",
            };
            profile.samples.is_none().then(|| match &recorded.file {
                RecordedFile::Flight { .. } => format!("no CPU samples: {}", recorded.why_no_samples()),
                RecordedFile::Binary(_) | RecordedFile::Text { .. } => {
                    format!("no CPU SAMPLES: the HPROF agent records them with cpu=samples{instead}")
                }
            })
        })
    })?;
    same_samples(&mut source.old, &mut source.new)?;
    for recorded in [&source.old, &source.new] {
        recorded.lost_samples_note(None, true).iter().for_each(|lost| recorded::note(cx, args, lost));
    }
    let (old, new) = (&source.old.profile, &source.new.profile);
    let compared = compare::samples(old, new, &filter(args));
    let total = |profile: &Profile| profile.samples.as_ref().map_or(0, |samples| samples.total);
    let totals = Change { old: total(old), new: total(new) };
    let counts = Counts::from_statuses(compared.rows.iter().map(|row| row.status));
    let event = new.samples.as_ref().and_then(|samples| samples.event);
    let lost = [&source.old, &source.new].map(|recorded| recorded.lost_samples(None));
    let summary = CpuDiffSummary {
        old: Old::from_source(&source.old),
        changed: counts.changed,
        totals: SampleDiffTotals { samples: totals, event, lost },
    };
    show(cx, args, &source, counts, (&compared.stacks, |row: &&SampleRow| row.stack), |format| {
        let rows = shown::rows(args, format, &compared.rows, |row| row.status);
        Answer::new(columns(&compared.stacks, &args.stack), rows)
            .with_summary(&Columns::new(summary_columns()), &summary)
            .total([
                ("samples +/-", format_signed(totals.delta())),
                ("samples", group_digits(totals.new)),
                (METHOD, "whole run".to_owned()),
            ])
    })
}

/// Definition of the kind `cputime`.
pub(super) const TIMES: DiffKind = DiffKind {
    name: "cputime",
    summary: "CPU TIME of text reports, by stack",
    about: "A row is a stack whose time was measured, otherwise as `--group-by cpu`.",
    unit: "stacks",
    options: &["PATTERN", "--stack"],
    compare: run_times,
    rows: || time_columns(&Traces::default(), &StackArgs::ALL).fields(),
    summary_fields: || Columns::new(time_summary_columns()).fields(),
};

fn run_times(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let source = recorded::open(args, |input| {
        open(cx, input, |RecordedProfile { profile, .. }| {
            let instead = match (&profile.samples, profile.calls.is_empty()) {
                (Some(_), _) => "; the file contains CPU SAMPLES, which --group-by cpu compares",
                (None, false) => "; the file contains calls (cpu=old), which `hprof-cli cputime` shows",
                (None, true) => "",
            };
            let none = "no CPU TIME: the HPROF agent records it with cpu=times, in text reports only";
            profile.times.is_none().then(|| format!("{none}{instead}"))
        })
    })?;
    let (old, new) = (&source.old.profile, &source.new.profile);
    let compared = compare::times(old, new, &filter(args));
    let total = |profile: &Profile| profile.times.as_ref().map_or(0, |times| times.total_ms);
    let totals = [total(old), total(new)];
    let counts = Counts::from_statuses(compared.rows.iter().map(|row| row.status));
    let summary = CpuDiffSummary { old: Old::from_source(&source.old), changed: counts.changed, totals };
    show(cx, args, &source, counts, (&compared.stacks, |row: &&ComparedTimeRow| row.stack), |format| {
        let rows = shown::rows(args, format, &compared.rows, |row| row.status);
        Answer::new(time_columns(&compared.stacks, &args.stack), rows)
            .with_summary(&Columns::new(time_summary_columns()), &summary)
    })
}

/// Opens a file. Fails if `missing` returns a description of missing data.
fn open(
    cx: &RunContext,
    input: &RecordedInput,
    missing: fn(&RecordedProfile) -> Option<String>,
) -> anyhow::Result<RecordedProfile> {
    let recorded = input.open(cx, Want { sites: false, traces: true, ..Want::default() })?;
    match missing(&recorded) {
        Some(missing) => anyhow::bail!("{} contains {missing}", recorded.header().path),
        None => Ok(recorded),
    }
}

fn filter(args: &DiffArgs) -> StackFilter {
    StackFilter { classes: args.patterns.clone(), ..StackFilter::default() }
}

/// Shows rows that are stacks. `counts` are the numbers of all and of changed rows.
fn show<'a, R: 'a>(
    cx: &RunContext,
    args: &'a DiffArgs,
    source: &Recordings,
    counts: Counts,
    (stacks, stack): (&'a Traces, fn(&&'a R) -> TraceSerial),
    answer: impl Fn(Format) -> Answer<'a, &'a R>,
) -> anyhow::Result<Outcome> {
    let names = || {
        let profiles = [&source.old.profile, &source.new.profile].into_iter();
        profiles.flat_map(|profile| profile.traces.all_frames()).filter_map(|frame| frame.class.as_deref())
    };
    recorded::show(cx, args, source, counts, names, |format| {
        args.stack.add_stacks(answer(format), stacks, stack)
    })
}

/// Title of the method column.
const METHOD: &str = "method";
/// Placeholder for the method of a stack without frames.
const EMPTY: &str = "<empty>";

fn method<'a, R: 'a>(of: impl Fn(&R) -> Option<String> + Send + Sync + 'a) -> Column<'a, R> {
    Column::new(names::METHOD, move |row: &R| of(row).into()).or_null(nulls::NO_FRAME)
}

fn method_in_table<'a, R: 'a>(of: impl Fn(&R) -> Option<String> + Send + Sync + 'a) -> TableColumn<'a, R> {
    TableColumn::new(names::METHOD, METHOD)
        .fit(Fit::Shorten { priority: 0 })
        .cell(move |row| of(row).unwrap_or_else(|| EMPTY.to_owned()))
}

fn columns<'a>(stacks: &'a Traces, stack: &StackArgs) -> Columns<'a, &'a SampleRow> {
    let name = |row: &&SampleRow| stacks.method(row.stack);
    let samples = ChangeColumns::new(names::SAMPLES, |row: &&SampleRow| Some(row.samples));
    let mut columns = vec![
        method(name),
        stack.frames(stacks, |row: &&SampleRow| row.stack),
        shown::status(|row: &&SampleRow| row.status),
    ];
    columns.extend(recorded::percents(|row: &&SampleRow| row.self_percent));
    columns.extend(samples.columns());
    let mut shown = Vec::from(recorded::percents_in_table(|row: &&SampleRow| row.self_percent));
    shown.extend(samples.in_table(["samples +/-", "samples"]));
    shown.extend([shown::status_in_table(|row: &&SampleRow| row.status), method_in_table(name)]);
    Columns::new(columns).table(shown)
}

fn time_columns<'a>(stacks: &'a Traces, stack: &StackArgs) -> Columns<'a, &'a ComparedTimeRow> {
    let name = |row: &&ComparedTimeRow| {
        row.method.as_deref().map(str::to_owned).or_else(|| stacks.method(row.stack))
    };
    let count = ChangeColumns::new(names::COUNT, |row: &&ComparedTimeRow| Some(row.count));
    let time = ChangeColumns::new(names::SELF_MS, |row: &&ComparedTimeRow| row.self_ms)
        .or_null("the total of a run is negative");
    let mut columns = vec![
        method(name),
        stack.frames(stacks, |row: &&ComparedTimeRow| row.stack),
        shown::status(|row: &&ComparedTimeRow| row.status),
    ];
    columns.extend(recorded::percents(|row: &&ComparedTimeRow| row.self_percent));
    columns.extend([&count, &time].into_iter().flat_map(ChangeColumns::columns));
    let mut shown = Vec::from(recorded::percents_in_table(|row: &&ComparedTimeRow| row.self_percent));
    shown.extend(time.in_table(["~ms +/-", "~ms"]));
    shown.extend(count.in_table(["count +/-", "count"]));
    shown.extend([shown::status_in_table(|row: &&ComparedTimeRow| row.status), method_in_table(name)]);
    Columns::new(columns).table(shown)
}

/// Source of the JSON keys in addition to the rows.
struct CpuDiffSummary<T> {
    old: Old,
    changed: u64,
    totals: T,
}

fn common_columns<'c, T: 'c>() -> Vec<Column<'c, CpuDiffSummary<T>>> {
    let mut columns = Vec::from(Old::columns(|summary: &CpuDiffSummary<T>| &summary.old));
    columns.push(Column::new(names::TOTAL.dot(names::ROWS), |summary: &CpuDiffSummary<T>| {
        summary.changed.into()
    }));
    columns
}

/// Total numbers of samples of both runs.
struct SampleDiffTotals {
    /// Number of samples in the old and in the new run.
    samples: Change,
    /// Events that were counted, if the runs are recordings of Flight Recorder.
    event: Option<SampleEvent>,
    /// Number of samples that the JVM reports as lost, in the old and the new run.
    lost: [u64; 2],
}

fn summary_columns<'c>() -> Vec<Column<'c, CpuDiffSummary<SampleDiffTotals>>> {
    let mut columns = common_columns();
    let samples =
        ChangeColumns::new(names::TOTAL.dot(names::SAMPLES), |summary: &CpuDiffSummary<SampleDiffTotals>| {
            Some(summary.totals.samples)
        });
    columns.extend(samples.columns());
    columns.push(
        Column::new(names::EVENT, |summary: &CpuDiffSummary<SampleDiffTotals>| {
            summary.totals.event.map(SampleEvent::name).into()
        })
        .or_null(nulls::ONLY_FLIGHT_RECORDERS),
    );
    let lost = |side, of: fn([u64; 2]) -> u64| {
        Column::new(names::LOST_SAMPLES.for_side(side), move |summary: &CpuDiffSummary<SampleDiffTotals>| {
            of(summary.totals.lost).into()
        })
    };
    columns.extend([lost(ComparedValue::Old, |[old, _]| old), lost(ComparedValue::New, |[_, new]| new)]);
    columns
}

fn time_summary_columns<'c>() -> Vec<Column<'c, CpuDiffSummary<[i64; 2]>>> {
    let mut columns = common_columns();
    let total = |side, of: fn([i64; 2]) -> i64| {
        Column::new(
            names::TOTAL.dot(names::SELF_MS.for_side(side)),
            move |summary: &CpuDiffSummary<[i64; 2]>| of(summary.totals).into(),
        )
    };
    columns.extend([
        total(ComparedValue::Old, |[old, _]| old),
        total(ComparedValue::New, |[_, new]| new),
        total(ComparedValue::Delta, |[old, new]| new.saturating_sub(old)),
    ]);
    columns
}
