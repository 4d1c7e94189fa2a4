//! `monitors`: contention, monitor dumps and waits.

mod dumps;
mod waits;

use crate::cli::prelude::*;
use crate::cli::shared::args;
use crate::cli::shared::keys::word_of;
use crate::cli::shared::recording::{RecordedFile, RecordedInput, RecordedProfile, WITH_FLIGHT};
use crate::cli::shared::stack::StackedOutput;
use hprof_query::naming::pattern::{ClassPattern, MethodPattern};
use hprof_query::recordings::cputime::{TimeOrder, TimeQuery};
use hprof_query::recordings::monitors::WaitQuery;
use hprof_query::recordings::profile::binary::Want;
use hprof_query::recordings::profile::flight::{FlightFacts, MonitorEvent};
use hprof_query::recordings::stack_filter::StackFilter;

use super::no_match;
use super::times::{self, TimeKind};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli monitors java.hprof.txt
  hprof-cli monitors java.hprof.txt --monitor 'com.acme.**' --stack
  hprof-cli monitors recording.jfr --event park --stack
  hprof-cli monitors java.hprof.txt --dumps
  hprof-cli monitors java.hprof.txt --waits --format csv";

/// Values of `--sort`.
const SORT: &[Keyword<TimeOrder>] = &[
    ("time", TimeOrder::Time, "Most time first"),
    ("count", TimeOrder::Count, "Most contentions first"),
    ("trace", TimeOrder::Trace, "By trace serial number"),
    ("method", TimeOrder::Method, "By method name"),
];

/// Values of `--event`.
const EVENT: &[Keyword<MonitorEvent>] = &[
    ("enter", MonitorEvent::Enter, "jdk.JavaMonitorEnter: threads that waited to enter a monitor"),
    ("wait", MonitorEvent::Wait, "jdk.JavaMonitorWait: threads that waited to be notified"),
    ("park", MonitorEvent::Park, "jdk.ThreadPark: threads that were parked, as by java.util.concurrent"),
];

/// Show monitor contention, monitor dumps and waits
///
/// Reads text reports that the HPROF agent wrote with monitor=y. MONITOR TIME is the contention,
/// MONITOR DUMP the state of all threads and monitors at one moment; WAIT, WAITED, SLEEP and EXIT lines
/// are events. Shows the first of these that the file contains, unless --dumps or --waits is given. Of a
/// recording of Flight Recorder, shows the time that threads waited to enter a monitor, or in other events
/// (--event).
#[derive(Debug, clap::Args)]
#[command(mut_arg("dump", |dump| dump.help(WITH_FLIGHT)))]
pub(crate) struct MonitorsArgs {
    #[command(flatten)]
    input: RecordedInput,

    /// Events to count in a recording of Flight Recorder [default: the first of these that it contains]
    #[arg(
        long,
        value_name = "KIND",
        value_parser = keys(EVENT),
        conflicts_with_all = ["dumps", "waits"],
        help_heading = "Input"
    )]
    event: Option<MonitorEvent>,

    /// Only monitors of classes that match PATTERN, for example `com.acme.**`
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    monitor: Vec<ClassPattern>,

    /// Only traces with a frame of a method that matches PATTERN, for example `run`; only for contention
    #[arg(long, value_name = "PATTERN", help_heading = "Filter")]
    method: Vec<MethodPattern>,

    /// Omit rows below this fraction of the total, for example 0.0001; only for contention
    #[arg(long, value_name = "RATIO", default_value = "0", value_parser = args::ratio, help_heading = "Filter")]
    cutoff: f64,

    /// Show monitor dumps: the states of threads, and the owners and waiters of monitors
    #[arg(long, conflicts_with = "waits", help_heading = "Output")]
    dumps: bool,

    /// Show WAIT, WAITED, SLEEP and EXIT events, grouped by monitor class and thread
    #[arg(long, help_heading = "Output")]
    waits: bool,

    /// Sort order of contention [default: file order, by time]
    #[arg(
        long,
        value_name = "KEY",
        value_parser = keys(SORT),
        conflicts_with_all = ["dumps", "waits"],
        help_heading = "Output"
    )]
    sort: Option<TimeOrder>,

    #[command(flatten)]
    shown: StackedOutput,
}

/// Kind of monitor data to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MonitorView {
    Contention,
    Dumps,
    Waits,
}

pub(crate) fn run(cx: &RunContext, args: &MonitorsArgs) -> anyhow::Result<Outcome> {
    let want = Want { sites: false, traces: true, monitors: args.event, ..Want::default() };
    let recorded = args.input.open(cx, want)?;
    let profile = &recorded.profile;
    let flight = match &recorded.file {
        RecordedFile::Flight { report, .. } => Some(&report.facts),
        _ => None,
    };
    anyhow::ensure!(
        flight.is_some() || args.event.is_none(),
        "--event applies only to recordings of Flight Recorder; omit it"
    );
    let holds = [
        (MonitorView::Contention, profile.contention.is_some()),
        (MonitorView::Dumps, !profile.monitor_dumps.is_empty()),
        (MonitorView::Waits, !profile.waits.is_empty()),
    ];
    let first = holds.iter().find(|(_, is_there)| *is_there).map(|(what, _)| *what);
    let what = match (args.dumps, args.waits) {
        (true, _) => MonitorView::Dumps,
        (false, true) => MonitorView::Waits,
        (false, false) => first.unwrap_or(MonitorView::Contention),
    };
    match flight {
        Some(facts) => note_events(
            cx,
            args,
            (&recorded, facts),
            profile.contention.as_ref().and_then(|times| times.event),
        ),
        None if !holds.contains(&(what, true)) => args.input.note(cx, &missing(what, first)),
        None => {}
    }
    let top = args.shown.top.rows(args.shown.output.format());
    let monitors = args.monitor.clone();
    match what {
        MonitorView::Contention => {
            let question = TimeQuery {
                filter: StackFilter { methods: args.method.clone(), ..StackFilter::default() },
                names: monitors,
                cutoff: args.cutoff,
                sort_by: args.sort,
                top,
            };
            times::show(cx, &args.input, &recorded, TimeKind::Contention, &question, &args.shown)
        }
        MonitorView::Dumps => {
            let outcome = dumps::show(cx, &recorded, &monitors, top, &args.shown.stack, &args.shown.output)?;
            let all = || profile.monitor_dumps.iter().flat_map(|dump| &dump.monitors);
            no_match::classes(cx, &args.input, &monitors, || all().map(|monitor| monitor.name.as_str()));
            Ok(outcome)
        }
        MonitorView::Waits => {
            let question = WaitQuery { monitors, top };
            let outcome = waits::show(cx, &recorded, &question, &args.shown.output)?;
            let names = || profile.waits.iter().filter_map(|wait| wait.monitor.as_deref());
            no_match::classes(cx, &args.input, &question.monitors, names);
            Ok(outcome)
        }
    }
}

/// Prints notes about the events of a Flight Recorder recording that are shown, and those that are not.
fn note_events(
    cx: &RunContext,
    args: &MonitorsArgs,
    (recorded, facts): (&RecordedProfile, &FlightFacts),
    shown: Option<MonitorEvent>,
) {
    if args.dumps || args.waits {
        args.input.note(
            cx,
            "recordings of Flight Recorder contain no monitor dumps and no WAIT lines; --event selects their waits",
        );
        return;
    }
    let others = MonitorEvent::ALL.into_iter().filter(|event| Some(*event) != shown);
    let others = others.map(|event| (event, facts.events_of(event.name()))).filter(|(_, events)| *events > 0);
    let others: Vec<String> = others
        .map(|(event, events)| {
            format!("{} {} events (--event {})", group_digits(events), event.name(), word_of(EVENT, event))
        })
        .collect();
    let others = others.join(" and ");
    let wanted = args.event.map_or("events of threads that wait", MonitorEvent::name);
    match shown {
        Some(event) if args.event.is_none() && !others.is_empty() => {
            let event = event.name();
            args.input
                .note(cx, &format!("only {event} events are shown; the recording also contains {others}"));
        }
        Some(_) => {}
        None if others.is_empty() => {
            let why = recorded.why_none();
            args.input.note(cx, &format!("the recording contains no waits of threads: {why}"));
        }
        None => args.input.note(cx, &format!("the recording contains no {wanted}; it contains {others}")),
    }
}

/// Returns the message that the file lacks the requested data; `first` is other data that it contains.
fn missing(what: MonitorView, first: Option<MonitorView>) -> String {
    let missing = match (what, first) {
        (_, None) => {
            return "no monitors: the HPROF agent records them with monitor=y, in text reports only"
                .to_owned();
        }
        (MonitorView::Contention, _) => "MONITOR TIME",
        (MonitorView::Dumps, _) => "MONITOR DUMP",
        (MonitorView::Waits, _) => "WAIT or WAITED lines",
    };
    format!("the file contains no {missing}; omit --dumps and --waits to see other monitor data")
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let mut declared = vec![times::row_schema(TimeKind::Contention)];
    declared.extend(dumps::row_schema());
    declared.push(waits::row_schema());
    declared
}
