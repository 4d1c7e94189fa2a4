//! `cpu`: CPU samples.

use std::sync::Arc;

use crate::cli::prelude::*;
use crate::cli::shared::keys::word_of;
use crate::cli::shared::recording::{
    RecordedFile, RecordedInput, RecordedProfile, SHOWN_STATES, WITH_FLIGHT,
};
use crate::cli::shared::stack::{FrameFilter, StackArgs};
use crate::cli::shared::{args, facts};
use hprof_query::recordings::cpu::{self, CpuGroupBy, CpuOrder, CpuQuery, GroupRow, RankedSamples};
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::{FlightFacts, SampleEvent, SampleState, state_word};
use hprof_query::recordings::profile::{Profile, Samples, Traces};

use super::columns::{self, RecordingSummary};
use super::no_match;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli cpu java.hprof.txt
  hprof-cli cpu java.hprof --stack --depth 8 --top 5
  hprof-cli cpu java.hprof --group-by method --sort total
  hprof-cli cpu recording.jfr --group-by method
  hprof-cli cpu java.hprof --method 'com.acme.**' --format csv";

/// Values of `--sort`.
const SORT: &[Keyword<CpuOrder>] = &[
    ("samples", CpuOrder::Samples, "Most samples first; for groups, by self samples"),
    ("total", CpuOrder::Total, "Most total samples first; with --group-by"),
    ("trace", CpuOrder::Trace, "By trace serial number"),
    ("method", CpuOrder::Name, "By name of the method or group"),
];

/// Grouping of samples: `None` for one row per trace.
type CpuGrouping = Option<CpuGroupBy>;

/// Values of `--group-by`.
const GROUP_BY: &[Keyword<CpuGrouping>] = &[
    ("trace", None, "Stack trace"),
    ("method", Some(CpuGroupBy::Method), "Method, regardless of its callers"),
    ("class", Some(CpuGroupBy::Class), "Class"),
    ("package", Some(CpuGroupBy::Package), "Package"),
];

/// Values of `--event`.
pub(super) const EVENT: &[Keyword<SampleEvent>] = &[
    ("execution", SampleEvent::Execution, "jdk.ExecutionSample: threads that ran Java code"),
    ("native", SampleEvent::Native, "jdk.NativeMethodSample: threads in native code, where most wait"),
    ("cpu-time", SampleEvent::CpuTime, "jdk.CPUTimeSample of JDK 25: threads that used CPU time"),
    ("datadog", SampleEvent::Datadog, "datadog.ExecutionSample: threads that used CPU time"),
    (
        "wall-clock",
        SampleEvent::WallClock,
        "profiler.WallClockSample of async-profiler 4: all threads, running or not",
    ),
];

/// List CPU samples by stack trace, method, class or package
///
/// Reads the samples that the HPROF agent recorded with cpu=samples, or those of a recording of Flight Recorder. Percentages are of all samples,
/// including those of traces that the agent omitted. With --group-by, a row counts the samples in which
/// the group was running (self) and those in which it occurs anywhere in the trace (total).
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.help(WITH_FLIGHT)))]
pub(crate) struct CpuArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Events to count in a recording of Flight Recorder [default: the first that it contains of cpu-time, execution,
    /// datadog, wall-clock]
    #[arg(long, value_name = "KIND", value_parser = keys(EVENT), help_heading = "Input")]
    event: Option<SampleEvent>,

    /// Only threads in these states, for example STATE_SLEEPING [default: running threads]
    ///
    /// async-profiler writes samples of its CPU engine in STATE_DEFAULT, and wall-clock samples in STATE_RUNNABLE and
    /// STATE_SLEEPING. By default, STATE_DEFAULT is counted if there is any, else STATE_RUNNABLE. In recordings of the JDK,
    /// all samples are counted. The prefix STATE_ can be omitted.
    #[arg(long, value_name = "STATE,...", value_delimiter = ',', value_parser = state_name, help_heading = "Filter")]
    state: Vec<String>,

    #[command(flatten)]
    frames: FrameFilter,

    /// Omit rows below this fraction of the total, for example 0.0001
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Sort order
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(SORT),
        default_value = "samples",
        help_heading = "Output"
    )]
    sort: CpuOrder,

    #[command(flatten)]
    top: Top,

    /// Group rows by KEY
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(GROUP_BY),
        default_value = "trace",
        help_heading = "Output"
    )]
    group_by: CpuGrouping,

    #[command(flatten)]
    stack: StackArgs,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &CpuArgs) -> anyhow::Result<Outcome> {
    match (args.group_by, args.sort) {
        (None, CpuOrder::Total) => anyhow::bail!("--sort total needs --group-by method, class or package"),
        (Some(_), CpuOrder::Trace) => {
            anyhow::bail!(
                "--sort trace cannot be used with --group-by, whose rows are not traces; omit one of them"
            )
        }
        _ => {}
    }
    anyhow::ensure!(
        args.group_by.is_none() || !args.stack.is_shown(),
        "--stack cannot be used with --group-by, whose rows are not traces; omit one of them"
    );
    let states = args.state.clone();
    let want = Want { sites: false, traces: true, samples: args.event, states, ..Want::default() };
    let recorded = args.input.open(cx, want)?;
    let profile = &recorded.profile;
    match &recorded.file {
        RecordedFile::Flight { report, .. } => {
            check_states(&report.facts, args)?;
            note_events(cx, &recorded, &report.facts, args);
        }
        _ if args.event.is_some() => {
            anyhow::bail!("--event applies only to recordings of Flight Recorder; omit it")
        }
        _ if !args.state.is_empty() => {
            anyhow::bail!("--state applies only to recordings of Flight Recorder; omit it")
        }
        _ if profile.samples.is_none() => note(cx, profile, &args.input),
        _ => {}
    }
    let question = CpuQuery {
        filter: args.frames.filter(),
        cutoff: args.cutoff,
        sort_by: args.sort,
        top: args.top.rows(args.output.format()),
    };
    match args.group_by {
        None => by_trace(cx, &recorded, args, &question),
        Some(group_by) => by_group(cx, &recorded, args, &question, group_by),
    }
}

/// Parses the name of a state, with or without its prefix, which is removed.
fn state_name(text: &str) -> Result<String, String> {
    let name = text.to_ascii_uppercase().replace('-', "_");
    let name = state_word(&name);
    if name.is_empty() { Err("expected the name of a state".to_owned()) } else { Ok(name.to_owned()) }
}

/// Checks that the recording contains samples in each requested state.
fn check_states(facts: &FlightFacts, args: &CpuArgs) -> anyhow::Result<()> {
    let of_event = |state: &&SampleState| match args.event {
        Some(event) => state.event == event,
        None => SampleEvent::PREFERRED.contains(&state.event),
    };
    let named = |state: &SampleState| Some((Arc::clone(state.state.as_ref()?), state.samples));
    let there: Vec<_> = facts.sample_states.iter().filter(of_event).filter_map(named).collect();
    for wanted in &args.state {
        if !there.iter().any(|(name, _)| state_word(name) == wanted) {
            let shown = there.iter().map(|(name, samples)| format!("{name} ({})", group_digits(*samples)));
            let shown = shown.take(SHOWN_STATES).collect::<Vec<_>>().join(", ");
            let shown = if shown.is_empty() { "samples without states".to_owned() } else { shown };
            anyhow::bail!("no samples in state {wanted}; the recording contains {shown}");
        }
    }
    Ok(())
}

/// Returns the numbers of samples that are counted only if their states are requested.
fn uncounted_states(facts: &FlightFacts, args: &CpuArgs) -> Vec<String> {
    let is_asked = |state: &&SampleState| args.event.is_none_or(|event| state.event == event);
    let states = facts.sample_states.iter().filter(is_asked).filter(|state| !state.is_counted);
    let shown = states.map(|state| {
        let name = state.state.as_deref().unwrap_or("no state");
        format!("{} {} in {name}", group_digits(state.samples), state.event.name())
    });
    shown.take(SHOWN_STATES).collect()
}

/// Prints a note that there are no samples, and what the file contains instead.
fn note(cx: &RunContext, profile: &Profile, input: &RecordedInput) {
    let instead = match (profile.times.is_some(), profile.calls.is_empty()) {
        (true, _) => "the file contains CPU TIME: `hprof-cli cputime` shows it",
        (false, false) => "the file contains calls (cpu=old): `hprof-cli cputime` shows them",
        (false, true) => "",
    };
    input.note(cx, "no CPU SAMPLES: the HPROF agent records them with cpu=samples");
    input.hint(cx, instead);
}

/// Prints notes about the events of a Flight Recorder recording that were counted, and those that were not.
fn note_events(cx: &RunContext, recorded: &RecordedProfile, facts: &FlightFacts, args: &CpuArgs) {
    let counted = recorded.profile.samples.as_ref().and_then(|samples| samples.event);
    let others = SampleEvent::ALL.into_iter().filter(|event| Some(*event) != counted);
    let others = others.map(|event| (event, facts.events_of(event.name()))).filter(|(_, events)| *events > 0);
    let others: Vec<String> = others
        .map(|(event, events)| {
            let word = word_of(EVENT, event);
            format!("{} {} events (--event {word})", group_digits(events), event.name())
        })
        .collect();
    let wanted = args.event.map_or("CPU samples", SampleEvent::name);
    let others = others.join(" and ");
    if let Some(note) = recorded.uncounted_states_note(false).filter(|_| args.state.is_empty()) {
        args.input.note(cx, &format!("{note} (--state selects states)"));
    }
    let uncounted = uncounted_states(facts, args);
    let is_none = counted.is_none() && others.is_empty();
    if let Some(lost) = recorded.lost_samples_note(args.event, false).filter(|_| !is_none) {
        args.input.note(cx, &lost);
    }
    match counted {
        Some(event) if args.event.is_none() && !others.is_empty() => {
            let event = event.name();
            args.input
                .note(cx, &format!("only {event} events are counted; the recording also contains {others}"));
        }
        Some(_) => {}
        None if !uncounted.is_empty() => {
            let shown = uncounted.join(" and ");
            args.input.note(
                cx,
                &format!("the recording contains no samples of running threads, but {shown} (--state)"),
            );
        }
        None if is_none => {
            let why = recorded.why_no_samples();
            args.input.note(cx, &format!("the recording contains no CPU samples: {why}"));
        }
        None => args.input.note(cx, &format!("the recording contains no {wanted}; it contains {others}")),
    }
}

/// Prints a note that no sample matches.
fn nothing(cx: &RunContext, args: &CpuArgs, profile: &Profile, question: &CpuQuery, matching: u64) {
    if profile.samples.is_some() && matching == 0 {
        no_match::note(cx, &args.input, "sample", &question.filter, &profile.traces);
    }
}

fn by_trace(
    cx: &RunContext,
    recorded: &RecordedProfile,
    args: &CpuArgs,
    question: &CpuQuery,
) -> anyhow::Result<Outcome> {
    let (profile, traces) = (&recorded.profile, &recorded.profile.traces);
    let none = Samples::default();
    let samples = profile.samples.as_ref().unwrap_or(&none);
    let cpu::CpuReport { rows, matching, samples: sum } = cpu::by_trace(samples, traces, question);
    let summary = RecordingSummary {
        matching,
        shown: rows.len(),
        of: SampleTotals {
            samples,
            sum,
            lost: recorded.lost_samples(args.event),
            states: recorded.sample_states(),
        },
    };
    let mut answer = Answer::new(columns(traces, &args.stack), rows)
        .with_summary(&summary_columns(), &summary)
        .matching(matching, "traces")
        .if_empty(NoRows::Nothing);
    if profile.samples.is_some() {
        answer = answer.total([("samples", group_digits(sum)), (METHOD, "total".to_owned())]);
    }
    let answer = args.stack.add_stacks(answer, traces, |row: &RankedSamples| row.trace);
    let rows = recorded.show(cx, "cpu", &args.output, answer)?;
    nothing(cx, args, profile, question, matching);
    Ok(recorded.outcome(rows > 0))
}

fn by_group(
    cx: &RunContext,
    recorded: &RecordedProfile,
    args: &CpuArgs,
    question: &CpuQuery,
    group_by: CpuGroupBy,
) -> anyhow::Result<Outcome> {
    let (profile, none) = (&recorded.profile, Samples::default());
    let samples = profile.samples.as_ref().unwrap_or(&none);
    let cpu::CpuReport { rows, matching, samples: sum } =
        cpu::by_group(samples, &profile.traces, question, group_by);
    let summary = RecordingSummary {
        matching,
        shown: rows.len(),
        of: SampleTotals {
            samples,
            sum,
            lost: recorded.lost_samples(args.event),
            states: recorded.sample_states(),
        },
    };
    let answer = Answer::new(group_columns(group_by), rows)
        .with_summary(&summary_columns(), &summary)
        .matching(matching, "rows")
        .if_empty(NoRows::Nothing);
    let rows = recorded.show(cx, "cpu", &args.output, answer)?;
    nothing(cx, args, profile, question, matching);
    Ok(recorded.outcome(rows > 0))
}

/// Title of the method column.
const METHOD: &str = "method";

fn columns<'a>(traces: &'a Traces, stack: &StackArgs) -> Columns<'a, RankedSamples> {
    let mut columns = facts::own_columns(RankedSamples::facts());
    columns.extend(stack.column(traces, |row: &RankedSamples| row.trace));
    let mut shown = vec![columns::rank_in_table(|row: &RankedSamples| row.rank)];
    shown.extend(columns::percents_in_table(
        |row: &RankedSamples| row.self_percent,
        |row| row.accumulated_percent,
    ));
    shown.extend([
        TableColumn::new(names::SAMPLES, "samples"),
        columns::trace_in_table(|row: &RankedSamples| row.trace),
        TableColumn::new(names::METHOD, METHOD)
            .fit(Fit::Shorten { priority: 0 })
            .cell(|row: &RankedSamples| row.method.clone().unwrap_or_else(|| columns::EMPTY.to_owned())),
    ]);
    Columns::new(columns).table(shown)
}

fn group_columns<'a>(group_by: CpuGroupBy) -> Columns<'a, GroupRow> {
    let name = match group_by {
        CpuGroupBy::Method => names::METHOD,
        CpuGroupBy::Class => names::CLASS,
        CpuGroupBy::Package => names::PACKAGE,
    };
    let columns = Columns::new([
        Column::new(names::RANK, |row: &GroupRow| row.rank.into()),
        Column::new(names::SELF_SAMPLES, |row: &GroupRow| row.self_samples.into()),
        Column::new(names::TOTAL_SAMPLES, |row: &GroupRow| row.total_samples.into()),
        Column::new(names::SELF_PERCENT, |row: &GroupRow| row.self_percent.into()),
        Column::new(names::TOTAL_PERCENT, |row: &GroupRow| row.total_percent.into()),
        Column::new(name, |row: &GroupRow| row.name.as_deref().into())
            .or_null("for traces without frames and frames without a class"),
    ]);
    columns.table([
        columns::rank_in_table(|row: &GroupRow| row.rank),
        TableColumn::new(names::SELF_SAMPLES, "self"),
        columns::percent_in_table(names::SELF_PERCENT, "%", |row: &GroupRow| row.self_percent),
        TableColumn::new(names::TOTAL_SAMPLES, "total"),
        columns::percent_in_table(names::TOTAL_PERCENT, "%", |row: &GroupRow| row.total_percent),
        TableColumn::new(name, name.key)
            .fit(Fit::Shorten { priority: 0 })
            .cell(|row: &GroupRow| row.name.clone().unwrap_or_else(|| columns::EMPTY.to_owned())),
    ])
}

/// Source of the totals of samples in a result.
struct SampleTotals<'a> {
    /// All samples of the file.
    samples: &'a Samples,
    /// Number of samples that match the filters.
    sum: u64,
    /// Number of samples that the JVM reports as lost.
    lost: u64,
    /// Samples by event type and state.
    states: &'a [SampleState],
}

fn summary_columns<'a>() -> Columns<'a, RecordingSummary<SampleTotals<'a>>> {
    Columns::new([
        Column::new(names::TOTAL.dot(names::SAMPLES), |summary: &RecordingSummary<SampleTotals<'a>>| {
            summary.of.samples.total.into()
        }),
        columns::matching(),
        Column::new(names::MATCHING.dot(names::SAMPLES), |summary: &RecordingSummary<SampleTotals<'a>>| {
            summary.of.sum.into()
        }),
        columns::left_out(),
        Column::new(names::EVENT, |summary: &RecordingSummary<SampleTotals<'a>>| {
            summary.of.samples.event.map(SampleEvent::name).into()
        })
        .or_null(nulls::ONLY_FLIGHT_RECORDER),
        Column::new(names::LOST_SAMPLES, |summary: &RecordingSummary<SampleTotals<'a>>| {
            summary.of.lost.into()
        }),
        columns::date(|of: &SampleTotals<'a>| of.samples.date.as_deref()),
        Column::new(names::IS_WALL_CLOCK, |summary: &RecordingSummary<SampleTotals<'a>>| {
            summary.of.samples.is_wall_clock.into()
        }),
        Column::records(
            names::SAMPLE_STATES,
            state_columns(),
            |summary: &RecordingSummary<SampleTotals<'a>>| summary.of.states,
        ),
    ])
}

fn state_columns<'a>() -> Columns<'a, SampleState> {
    Columns::new([
        Column::new(names::EVENT, |state: &SampleState| state.event.name().into()),
        Column::new(names::SAMPLED_STATE, |state: &SampleState| state.state.as_deref().into())
            .or_null("the events have no state"),
        Column::new(names::SAMPLES, |state: &SampleState| state.samples.into()),
        Column::new(names::IS_COUNTED_SAMPLE, |state: &SampleState| state.is_counted.into()),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |variant, about, rows| ResultSchema {
        command: "cpu",
        variant,
        about,
        rows,
        summary: summary_columns().fields(),
    };
    let group = |variant, about, group_by| schema(variant, about, group_columns(group_by).fields());
    vec![
        schema(
            "`--group-by trace`",
            "The default. A row is a trace with CPU samples, most samples first.",
            columns(&Traces::default(), &StackArgs::ALL).fields(),
        ),
        group("`--group-by method`", "A row is a method, most `self_samples` first.", CpuGroupBy::Method),
        group("`--group-by class`", "A row is a class, most `self_samples` first.", CpuGroupBy::Class),
        group("`--group-by package`", "A row is a package, most `self_samples` first.", CpuGroupBy::Package),
    ]
}
