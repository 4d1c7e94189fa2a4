//! `summary`: counts of what a profiler recorded.

use crate::cli::prelude::*;
use crate::cli::shared::heap_columns;
use crate::cli::shared::recording::{
    RecordedFile, RecordedInput, RecordedProfile, SHOWN_STATES, WITH_FLIGHT,
};
use hprof_index::Heap;
use hprof_parser::record::{ControlSettings, HeapSummary};
use hprof_query::dictionary::Name;
use hprof_query::histogram::objects_by_kind;
use hprof_query::recordings::profile::Profile;
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::heap::HeapOverTime;
use hprof_query::recordings::profile::flight::memory_over_time::MemoryOverTime;
use hprof_query::recordings::profile::flight::{
    EventCount, FlightFacts, FlightJvm, MonitorEvent, SampleEvent,
};
use hprof_query::recordings::profile::text::TextReport;
use hprof_query::recordings::sites::Totals;
use hprof_query::recordings::summary::{self, SiteCount};
use hprof_report::number::format_count as plural;
use hprof_report::table::TableBuilder;

use super::columns;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli summary java.hprof
  hprof-cli summary java.hprof.txt --run 1
  hprof-cli summary java.hprof --format json | jq '.rows[0].heap_summaries'";

/// Summarize what the HPROF agent or Flight Recorder recorded
///
/// Shows HEAP SUMMARY, CONTROL SETTINGS and the numbers of threads, traces, sites and samples recorded in a binary dump
/// or text report; of a recording of Flight Recorder also its JVM, its duration and its types of events. Use `info` for
/// the heap dump itself.
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.help(WITH_FLIGHT)))]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    input: RecordedInput,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &SummaryArgs) -> anyhow::Result<Outcome> {
    let opened = args.input.open(cx, Want { sites: true, traces: false, ..Want::default() })?;
    let facts = RecordingFacts::new(&opened);
    let events = facts.flight.map(|flight| Section::Table(event_table(flight)));
    let lines = Section::Table(TableBuilder::pairs(lines(&facts)));
    let is_heap_alone = matches!(opened.file, RecordedFile::Binary(_)) && facts.is_heap_alone();
    let answer = events
        .into_iter()
        .fold(Answer::new(columns(), [facts]).with_section_above(lines), Answer::with_section_above);
    opened.show(cx, "summary", &args.output, answer)?;
    if is_heap_alone {
        let path = args.input.input.path().display().to_string();
        args.input.note(
            cx,
            &format!("the file contains a heap dump and no other recorded data; `hprof-cli {path}` gives an overview \
                      of the heap"),
        );
    }
    Ok(opened.outcome(true))
}

/// Counts and totals of a recording in any format.
struct RecordingFacts<'a> {
    profile: &'a Profile,
    recorded: summary::ProfileCounts,
    heap: Option<HeapFacts>,
    /// Number of the run that was read, and number of runs in the file; only for text reports.
    runs: Option<(u32, u32)>,
    not_understood: u64,
    flight: Option<&'a FlightFacts>,
    heap_over_time: Option<&'a HeapOverTime>,
    memory_over_time: Option<&'a MemoryOverTime>,
}

/// Totals of a HEAP DUMP.
#[derive(Clone, Copy)]
struct HeapFacts {
    objects: u64,
    /// Number of objects stated in the first line of a text report's HEAP DUMP.
    stated_objects: Option<u64>,
    stated_bytes: Option<u64>,
    /// Number of class objects.
    classes: u64,
    roots: u64,
}

impl<'a> RecordingFacts<'a> {
    /// Returns whether the file contains a heap dump and nothing recorded by an agent.
    fn is_heap_alone(&self) -> bool {
        let Profile { sites, samples, times, heap_summaries, settings, .. } = self.profile;
        let recorded = sites.is_some() || samples.is_some() || times.is_some();
        self.heap.is_some() && !recorded && heap_summaries.is_empty() && settings.is_empty()
    }

    fn new(opened: &'a RecordedProfile) -> Self {
        let profile = &opened.profile;
        let mut recorded = summary::profile_counts(profile);
        match &opened.file {
            RecordedFile::Binary(heap) => {
                // The traces themselves are not read for this count.
                recorded.traces = heap.summary().traces().len() as u64;
                recorded.frames = heap.summary().frames().len() as u64;
                Self {
                    profile,
                    recorded,
                    heap: binary_heap(heap),
                    runs: None,
                    not_understood: 0,
                    flight: None,
                    heap_over_time: None,
                    memory_over_time: None,
                }
            }
            RecordedFile::Text { report, .. } => Self {
                profile,
                recorded,
                heap: text_heap(report),
                runs: Some((report.run, report.runs)),
                not_understood: report.not_understood,
                flight: None,
                heap_over_time: None,
                memory_over_time: None,
            },
            RecordedFile::Flight { report, .. } => Self {
                profile,
                // A thread that waits to be notified, or is parked, does not contend.
                recorded: summary::ProfileCounts {
                    contention: report.facts.wait_total(MonitorEvent::Enter),
                    ..recorded
                },
                heap: None,
                runs: None,
                not_understood: 0,
                flight: Some(&report.facts),
                heap_over_time: opened.heap_over_time(),
                memory_over_time: opened.memory_over_time(),
            },
        }
    }

    /// Returns the total in milliseconds and the number of rows of the waits of a type in a recording of Flight Recorder.
    fn wait_total(&self, event: MonitorEvent) -> Option<(i64, u64)> {
        self.flight?.wait_total(event)
    }
}

fn binary_heap(heap: &Heap) -> Option<HeapFacts> {
    let summary = heap.summary();
    if summary.facts().heap_dumps.get() == 0 {
        return None;
    }
    let objects @ [_, _, _, classes] = objects_by_kind(summary);
    Some(HeapFacts {
        objects: objects.iter().sum(),
        stated_objects: None,
        stated_bytes: None,
        classes,
        roots: summary.roots().len() as u64,
    })
}

fn text_heap(report: &TextReport) -> Option<HeapFacts> {
    let heap = report.heap.as_ref()?;
    Some(HeapFacts {
        objects: heap.class_objects.saturating_add(heap.instances).saturating_add(heap.arrays),
        stated_objects: heap.stated_objects,
        stated_bytes: heap.stated_bytes,
        classes: heap.class_objects,
        roots: heap.roots,
    })
}

/// Flag of a CONTROL SETTINGS record: allocation traces are recorded.
const ALLOCATION_TRACES: u32 = 1;
/// Flag of a CONTROL SETTINGS record: CPU samples are recorded.
const CPU_SAMPLING: u32 = 2;

fn columns<'a>() -> Columns<'a, RecordingFacts<'a>> {
    let count = |name: Name, of: fn(&summary::ProfileCounts) -> u64| {
        Column::new(name, move |facts: &RecordingFacts<'a>| of(&facts.recorded).into())
    };
    Columns::new([
        Column::new(names::CREATED, |facts: &RecordingFacts<'a>| facts.profile.created.as_deref().into())
            .or_null(nulls::NOT_STATED),
        Column::new(names::FORMAT, |facts: &RecordingFacts<'a>| {
            Some(facts.profile.format.as_str()).filter(|format| !format.is_empty()).into()
        })
        .or_null("`cpu=old` states none"),
        Column::new(names::RUN, |facts: &RecordingFacts<'a>| facts.runs.map(|(run, _)| run).into())
            .or_null("in binary dumps"),
        Column::new(names::RUNS, |facts: &RecordingFacts<'a>| facts.runs.map(|(_, runs)| runs).into())
            .or_null("in binary dumps"),
        Column::records(
            names::HEAP_SUMMARIES,
            Columns::new(columns::allocation_columns(None, sums)),
            |facts: &RecordingFacts<'a>| &facts.profile.heap_summaries,
        ),
        Column::records(names::CONTROL_SETTINGS, setting_columns(), |facts: &RecordingFacts<'a>| {
            &facts.profile.settings
        }),
        count(names::TRACES, |recorded| recorded.traces),
        count(names::FRAME_COUNT, |recorded| recorded.frames),
        count(names::THREADS_STARTED, |recorded| recorded.threads_started),
        count(names::THREADS_ENDED, |recorded| recorded.threads_ended),
        Column::record(names::SITES, site_columns(), |facts: &RecordingFacts<'a>| facts.recorded.sites)
            .or_null("none were recorded"),
        part(names::CPU_SAMPLES, names::SAMPLES, |facts| facts.recorded.samples),
        part(names::CPU_TIME, names::TOTAL_MS, |facts| facts.recorded.cpu_time),
        count(names::CALLS, |recorded| recorded.calls),
        part(names::CONTENTION, names::TOTAL_MS, |facts| facts.recorded.contention),
        part(names::MONITOR_WAITS, names::TOTAL_MS, |facts| facts.wait_total(MonitorEvent::Wait)),
        part(names::PARKS, names::TOTAL_MS, |facts| facts.wait_total(MonitorEvent::Park)),
        count(names::MONITOR_DUMPS, |recorded| recorded.monitor_dumps),
        count(names::WAITS, |recorded| recorded.waits),
        Column::record(names::HEAP_DUMP_COUNTS, heap_columns(), |facts: &RecordingFacts<'a>| facts.heap)
            .or_null("the file, or the run, contains none"),
        Column::records(names::HEAP_OVER_TIME, heap_columns::collection(), |facts: &RecordingFacts<'a>| {
            facts.heap_over_time.map(|heap| heap.collections.as_slice()).unwrap_or_default()
        }),
        Column::record(names::HEAP_TREND, heap_columns::heap_trend(), |facts: &RecordingFacts<'a>| {
            facts.heap_over_time?.trend()
        })
        .or_null(nulls::NO_HEAP_TREND),
        Column::records(names::COUNTED_CLASSES, heap_columns::class(), |facts: &RecordingFacts<'a>| {
            facts.heap_over_time.map(|heap| heap.classes.as_slice()).unwrap_or_default()
        }),
        Column::records(names::MEMORY_OVER_TIME, heap_columns::figure(), |facts: &RecordingFacts<'a>| {
            facts.memory_over_time.map(|memory| memory.figures.as_slice()).unwrap_or_default()
        }),
        Column::record(names::FLIGHT, flight_columns(), |facts: &RecordingFacts<'a>| facts.flight)
            .or_null(nulls::ONLY_FLIGHT_RECORDER),
        Column::new(names::LINES_NOT_UNDERSTOOD, |facts: &RecordingFacts<'a>| facts.not_understood.into()),
    ])
}

/// Returns the columns of a part of the file, such as the samples: number of rows, and stated totals.
fn part<'a, T: Copy + Into<Value<'static>> + 'a>(
    name: Name,
    sum: Name,
    of: fn(&RecordingFacts<'a>) -> Option<(T, u64)>,
) -> Column<'a, RecordingFacts<'a>> {
    let columns = Columns::new([
        Column::new(names::ROWS, |part: &(T, u64)| part.1.into()),
        Column::new(sum, |part: &(T, u64)| part.0.into()),
    ]);
    Column::record(name, columns, of).or_null("the file contains none")
}

fn sums(summary: &HeapSummary) -> Totals {
    Totals {
        rows: 0,
        live_bytes: summary.live_bytes.into(),
        live_instances: summary.live_instances.into(),
        allocated_bytes: summary.allocated_bytes,
        allocated_instances: summary.allocated_instances,
        samples: 0,
    }
}

fn setting_columns<'a>() -> Columns<'a, ControlSettings> {
    let bit =
        |name: Name, bit: u32| Column::new(name, move |of: &ControlSettings| (of.flags & bit != 0).into());
    Columns::new([
        bit(names::IS_ALLOCATION_TRACED, ALLOCATION_TRACES),
        bit(names::IS_CPU_SAMPLED, CPU_SAMPLING),
        Column::new(names::DEPTH, |of: &ControlSettings| of.depth.into()),
    ])
}

fn site_columns<'a>() -> Columns<'a, SiteCount> {
    let mut columns = vec![Column::new(names::ROWS, |sites: &SiteCount| sites.listed.rows.into())];
    columns.extend(columns::allocation_columns(Some(names::LISTED), |sites: &SiteCount| sites.listed));
    columns.push(columns::stated_totals(|sites: &SiteCount| sites.stated));
    Columns::new(columns)
}

fn heap_columns<'a>() -> Columns<'a, HeapFacts> {
    Columns::new([
        Column::new(names::OBJECTS, |heap: &HeapFacts| heap.objects.into()),
        Column::new(names::CLASSES, |heap: &HeapFacts| heap.classes.into()),
        Column::new(names::ROOT_COUNT, |heap: &HeapFacts| heap.roots.into()),
        Column::new(names::STATED_OBJECTS, |heap: &HeapFacts| heap.stated_objects.into())
            .or_null("in binary dumps, or not stated"),
        Column::new(names::STATED_BYTES, |heap: &HeapFacts| heap.stated_bytes.into())
            .or_null("in binary dumps, or not stated"),
    ])
}

fn flight_columns<'a>() -> Columns<'a, &'a FlightFacts> {
    let jvm = |name, of: fn(&FlightJvm) -> &str| {
        Column::new(name, move |facts: &&'a FlightFacts| facts.jvm.as_ref().map(of).into())
            .or_null("not in the recording")
    };
    Columns::new([
        Column::new(names::CHUNKS, |facts: &&FlightFacts| facts.chunks.into()),
        Column::new(names::UNFINISHED_CHUNKS, |facts: &&FlightFacts| facts.unfinished_chunks.into()),
        Column::new(names::DURATION_MS, |facts: &&FlightFacts| duration_ms(facts).into()),
        jvm(names::JVM_NAME, |jvm| &jvm.name),
        jvm(names::JVM_VERSION, |jvm| &jvm.version),
        jvm(names::JVM_OPTIONS, |jvm| &jvm.options),
        jvm(names::COMMAND, |jvm| &jvm.command),
        Column::new(names::PID, |facts: &&FlightFacts| facts.jvm.as_ref().and_then(|jvm| jvm.pid).into())
            .or_null("not in the recording"),
        Column::new(names::TRUNCATED_TRACES, |facts: &&FlightFacts| facts.truncated_stacks.into()),
        Column::new(names::LOST_STACKS, |facts: &&FlightFacts| facts.lost_stacks.into()),
        Column::new(names::LOST_SAMPLES, |facts: &&FlightFacts| facts.lost_samples.into()),
        Column::new(names::PROBLEM_COUNT, |facts: &&FlightFacts| facts.problem_count.into()),
        Column::records(names::EVENT_TYPES, event_columns(), |facts: &&FlightFacts| &facts.events),
    ])
}

fn event_columns<'a>() -> Columns<'a, EventCount> {
    Columns::new([
        Column::new(names::EVENT, |count: &EventCount| (&*count.name).into()),
        Column::new(names::EVENTS, |count: &EventCount| count.events.into()),
        Column::new(names::EVENT_BYTES, |count: &EventCount| count.bytes.into()),
    ])
}

fn duration_ms(facts: &FlightFacts) -> u64 {
    u64::try_from(facts.duration_nanos / 1_000_000).unwrap_or(0)
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "summary",
        variant: "",
        about: "Exactly one row: counts and sizes of the recorded data.",
        rows: columns().fields(),
        summary: Vec::new(),
    }]
}

/// Returns the rows of the table: label and value.
fn lines(facts: &RecordingFacts<'_>) -> Vec<(&'static str, String)> {
    let (profile, recorded) = (facts.profile, &facts.recorded);
    let mut lines = Vec::new();
    let mut line = |key: &'static str, value: String| lines.push((key, value));
    let format = if profile.format.is_empty() { "not stated" } else { &profile.format };
    line("format", format.to_owned());
    line("created", profile.created.clone().unwrap_or_else(|| "not stated".to_owned()));
    if let Some((run, runs)) = facts.runs
        && runs > 1
    {
        line("run", format!("{run} of {runs}"));
    }
    if let Some(flight) = facts.flight {
        flight_lines(flight, &mut line);
    }
    for summary in &profile.heap_summaries {
        let live = (u64::from(summary.live_bytes), u64::from(summary.live_instances));
        line("HEAP SUMMARY", format!("live {}", bytes(live)));
        line("", format!("allocated {}", bytes((summary.allocated_bytes, summary.allocated_instances))));
    }
    for settings in &profile.settings {
        let on = |bit: u32| if settings.flags & bit != 0 { "on" } else { "off" };
        line(
            "CONTROL SETTINGS",
            format!(
                "allocation traces {}, CPU sampling {}, depth {}",
                on(ALLOCATION_TRACES),
                on(CPU_SAMPLING),
                settings.depth
            ),
        );
    }
    line(
        "traces",
        format!("{}, with {} frames", group_digits(recorded.traces), group_digits(recorded.frames)),
    );
    let (started, ended) = (group_digits(recorded.threads_started), group_digits(recorded.threads_ended));
    line("threads", format!("{started} started, {ended} of them ended"));
    match &recorded.sites {
        None => line("sites", "none".to_owned()),
        Some(sites) => site_lines(sites, &mut line),
    }
    line("CPU samples", total_text(recorded.samples.map(|(all, rows)| (group_digits(all), rows))));
    if facts.flight.is_none() {
        line("CPU time", total_text(recorded.cpu_time.map(milliseconds)));
        line("calls", number(recorded.calls));
    }
    line("contention", total_text(recorded.contention.map(milliseconds)));
    if facts.flight.is_some() {
        line("waits", total_text(facts.wait_total(MonitorEvent::Wait).map(milliseconds)));
        line("parked", total_text(facts.wait_total(MonitorEvent::Park).map(milliseconds)));
        if let Some(heap) = facts.heap_over_time {
            heap_over_time_lines(heap, &mut line);
        }
        if let Some(memory) = facts.memory_over_time {
            heap_columns::figure_lines(memory).into_iter().for_each(|(label, text)| line(label, text));
        }
        return lines;
    }
    line("monitor dumps", number(recorded.monitor_dumps));
    line("waits", number(recorded.waits));
    match &facts.heap {
        None => line("heap dump", "none".to_owned()),
        Some(heap) => {
            line(
                "heap dump",
                format!(
                    "{} objects, {} of them classes, {} roots",
                    group_digits(heap.objects),
                    group_digits(heap.classes),
                    group_digits(heap.roots)
                ),
            );
            if let Some(objects) = heap.stated_objects {
                let bytes = heap
                    .stated_bytes
                    .map(|bytes| format!(", {} bytes", group_digits(bytes)))
                    .unwrap_or_default();
                line("  stated", format!("{} objects{bytes}", group_digits(objects)));
            }
        }
    }
    if facts.not_understood > 0 {
        line("not parsed", format!("{} lines", group_digits(facts.not_understood)));
    }
    lines
}

fn flight_lines(flight: &FlightFacts, line: &mut dyn FnMut(&'static str, String)) {
    let unfinished = match flight.unfinished_chunks {
        0 => String::new(),
        chunks => format!(", {} of them unfinished", group_digits(chunks)),
    };
    let (ms, chunks) = (group_digits(duration_ms(flight)), plural(flight.chunks, "chunk"));
    line("recorded", format!("{ms} ms in {chunks}{unfinished}"));
    if let Some(jvm) = &flight.jvm {
        line("JVM", jvm.version.clone());
        line("  options", jvm.options.clone());
        line("command", jvm.command.clone());
        line("PID", jvm.pid.map(|pid| pid.to_string()).unwrap_or_default());
    }
    if flight.truncated_stacks > 0 {
        line(
            "  truncated",
            format!("{} traces lack outer frames (stackdepth)", group_digits(flight.truncated_stacks)),
        );
    }
    if flight.lost_stacks > 0 {
        line("  lost", format!("stacks of {}", plural(flight.lost_stacks, "event")));
    }
    let uncounted = flight.sample_states.iter().filter(|state| !state.is_counted).take(SHOWN_STATES);
    for state in uncounted {
        let (samples, name) = (group_digits(state.samples), state.state.as_deref().unwrap_or("no state"));
        line("not counted", format!("{samples} {} in {name}", state.event.name()));
    }
    if flight.lost_samples > 0 {
        line("lost samples", plural(flight.lost_samples, &format!("{} event", SampleEvent::CpuTime.name())));
    }
    if flight.problem_count > 0 {
        line("damage", plural(flight.problem_count, "region"));
    }
}

fn heap_over_time_lines(heap: &HeapOverTime, line: &mut dyn FnMut(&'static str, String)) {
    let (Some(trend), Some(last)) = (heap.trend(), heap.collections.last()) else { return };
    line("heap", trend.to_string());
    let (used, committed) = (human_bytes(last.used_bytes), human_bytes(last.committed_bytes));
    line("  last", format!("{used} used after the last collection, of {committed} committed"));
    if let Some(limit) = trend.memory_limit_bytes {
        line("  container", format!("memory limit {}", human_bytes(limit)));
    }
}

/// Returns the table of event types and their numbers.
fn event_table(flight: &FlightFacts) -> TableBuilder {
    let mut table =
        TableBuilder::new(&[("events", Align::Right), ("bytes", Align::Right), ("type", Align::Left)]);
    for count in &flight.events {
        table.row([group_digits(count.events), group_digits(count.bytes), count.name.to_string()]);
    }
    table
}

/// Formats a number of bytes and a number of objects.
fn bytes((bytes, objects): (u64, u64)) -> String {
    format!("{} bytes in {} objects", group_digits(bytes), group_digits(objects))
}

fn site_lines(sites: &SiteCount, line: &mut dyn FnMut(&'static str, String)) {
    if sites.listed.samples > 0 {
        let samples = group_digits(sites.listed.samples);
        line("sites", group_digits(sites.listed.rows));
        line(
            "  allocated",
            format!("{} bytes, estimated from {samples} samples", group_digits(sites.listed.allocated_bytes)),
        );
        return;
    }
    let live = |sums: &Totals| bytes((sums.live_bytes, sums.live_instances));
    let allocated = |sums: &Totals| bytes((sums.allocated_bytes, sums.allocated_instances));
    line("sites", group_digits(sites.listed.rows));
    line("  live", live(&sites.listed));
    line("  allocated", allocated(&sites.listed));
    if let Some(stated) = &sites.stated {
        line("of all sites", format!("live {}", live(stated)));
        line("", format!("allocated {}", allocated(stated)));
    }
}

fn milliseconds((total, rows): (i64, u64)) -> (String, u64) {
    (
        u64::try_from(total).map_or_else(|_| format!("{total} ms"), |ms| format!("{} ms", group_digits(ms))),
        rows,
    )
}

fn total_text(of: Option<(String, u64)>) -> String {
    of.map_or_else(|| "none".to_owned(), |(total, rows)| format!("{total} in {}", plural(rows, "trace")))
}

fn number(count: u64) -> String {
    if count == 0 { "none".to_owned() } else { group_digits(count) }
}
