//! `monitors --dumps`: the states of threads and monitors at one moment.

use std::collections::HashMap;

use crate::cli::prelude::*;
use crate::cli::recording::columns::{self, RecordingSummary};
use crate::cli::shared::recording::RecordedProfile;
use crate::cli::shared::stack::StackArgs;
use hprof_query::dictionary::Name;
use hprof_query::naming::pattern::{self, ClassPattern};
use hprof_query::recordings::profile::{Monitor, MonitorDump, StartedThread, Traces};
use hprof_query::recordings::traces;
use hprof_report::value::{id, list};
use hprof_values::{ObjectId, TraceSerial};

/// Maximum number of threads in a table cell.
const LISTED: usize = 6;

/// Shows the MONITOR DUMPs, limited to monitors whose classes match.
pub(super) fn show(
    cx: &RunContext,
    recorded: &RecordedProfile,
    monitors: &[ClassPattern],
    top: Option<usize>,
    stack: &StackArgs,
    output: &Output,
) -> anyhow::Result<Outcome> {
    let profile = &recorded.profile;
    let (all, traces) = (&profile.monitor_dumps, &profile.traces);
    let shown = all.len().min(top.unwrap_or(usize::MAX));
    let names = traces::started_threads(profile);
    let dumps = || {
        (1..).zip(all.iter().take(shown)).map(|(number, dump)| ShownDump::new(number, dump, &names, monitors))
    };
    if output.format() == Format::Csv {
        recorded.show(
            cx,
            "monitors",
            output,
            Answer::new(item_columns(), dumps().flat_map(ShownDump::items)),
        )?;
    } else {
        let summary = RecordingSummary { matching: all.len() as u64, shown, of: () };
        let mut answer = Answer::new(columns(traces, stack), dumps())
            .with_summary(&summary_columns(), &summary)
            .matching(summary.matching, "dumps");
        if output.format() == Format::Table {
            let sections = dumps().flat_map(|dump| dump.sections(traces, stack));
            answer = sections.fold(answer, Answer::with_section_above);
        }
        recorded.show(cx, "monitors", output, answer)?;
    }
    let is_any = monitors.is_empty() || dumps().any(|dump| !dump.monitors.is_empty());
    Ok(recorded.outcome(shown > 0 && is_any))
}

/// A MONITOR DUMP, as a row of the result.
struct ShownDump<'a> {
    number: u64,
    threads: Vec<ShownThread<'a>>,
    monitors: Vec<ShownMonitor<'a>>,
}

/// A thread in a MONITOR DUMP.
struct ShownThread<'a> {
    serial: u32,
    name: Option<&'a str>,
    state: &'a str,
    trace: TraceSerial,
}

/// A monitor in a MONITOR DUMP, and the name of its owner.
struct ShownMonitor<'a> {
    monitor: &'a Monitor,
    owner_name: Option<&'a str>,
}

/// A row of CSV: a thread, or a monitor and its owner.
struct MonitorDumpLine<'a> {
    number: u64,
    serial: Option<u32>,
    name: Option<&'a str>,
    thread: Option<ShownThread<'a>>,
    monitor: Option<ShownMonitor<'a>>,
}

impl<'a> ShownDump<'a> {
    fn new(
        number: u64,
        dump: &'a MonitorDump,
        names: &HashMap<u32, &'a StartedThread>,
        wanted: &[ClassPattern],
    ) -> Self {
        let name = |serial: u32| names.get(&serial).map(|thread| &*thread.name);
        let thread = |(serial, trace, state): &'a (u32, TraceSerial, String)| ShownThread {
            serial: *serial,
            name: name(*serial),
            state,
            trace: *trace,
        };
        let monitors = dump.monitors.iter().filter(|monitor| pattern::any_matches(wanted, &monitor.name));
        let named = |monitor: &'a Monitor| ShownMonitor {
            monitor,
            owner_name: monitor.owner.and_then(|(serial, _)| name(serial)),
        };
        Self {
            number,
            threads: dump.threads.iter().map(thread).collect(),
            monitors: monitors.map(named).collect(),
        }
    }

    fn items(self) -> impl Iterator<Item = MonitorDumpLine<'a>> {
        let number = self.number;
        let thread = move |thread: ShownThread<'a>| MonitorDumpLine {
            number,
            serial: Some(thread.serial),
            name: thread.name,
            thread: Some(thread),
            monitor: None,
        };
        let monitor = move |named: ShownMonitor<'a>| MonitorDumpLine {
            number,
            serial: named.owner(),
            name: named.owner_name,
            thread: None,
            monitor: Some(named),
        };
        self.threads.into_iter().map(thread).chain(self.monitors.into_iter().map(monitor))
    }

    /// Returns the MONITOR DUMP as tables.
    fn sections(self, traces: &'a Traces, stack: &StackArgs) -> Vec<Section> {
        let blank = || Section::Line(String::new());
        let mut sections = Vec::new();
        if self.number > 1 {
            sections.push(blank());
        }
        sections.push(Section::Line(format!("MONITOR DUMP {}", self.number)));
        let threads = thread_columns(traces, stack);
        let lines = |thread: &ShownThread<'a>| stack.lines(traces, thread.trace);
        sections.push(Section::table_with(&threads, self.threads, lines));
        if !self.monitors.is_empty() {
            sections.extend([blank(), Section::table(&monitor_columns(), self.monitors)]);
        }
        sections
    }
}

impl ShownMonitor<'_> {
    fn owner(&self) -> Option<u32> {
        self.monitor.owner.map(|(serial, _)| serial)
    }

    fn entry_count(&self) -> Option<u32> {
        self.monitor.owner.map(|(_, count)| count)
    }
}

impl MonitorDumpLine<'_> {
    fn kind(&self) -> &'static str {
        match &self.monitor {
            None => "thread",
            Some(named) if named.monitor.raw => "raw monitor",
            Some(_) => "monitor",
        }
    }
}

/// Returns the serial number of a thread; `None` if the agent did not know it.
fn known_thread(serial: u32) -> Option<u32> {
    Some(serial).filter(|serial| *serial != 0)
}

/// Returns waiting threads as a list.
fn waiters(threads: &[u32]) -> Value<'static> {
    list(threads.iter().map(|serial| known_thread(*serial)))
}

/// Formats threads for a table cell.
fn threads_text(threads: &[u32]) -> String {
    let name =
        |serial: &u32| known_thread(*serial).map_or_else(|| "?".to_owned(), |serial| serial.to_string());
    let mut names: Vec<String> = threads.iter().take(LISTED).map(name).collect();
    if threads.len() > LISTED {
        names.push(format!("… {} more", threads.len() - LISTED));
    }
    names.join(" ")
}

/// Formats a number for a table without thousands separators.
fn number(number: Option<u32>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

const NOT_STARTED: &str = "the thread has no start record";
const NOT_OWNED: &str = "no thread owns it";

fn thread_columns<'a>(traces: &'a Traces, stack: &StackArgs) -> Columns<'a, ShownThread<'a>> {
    let columns = [
        Column::new(names::THREAD_SERIAL, |thread: &ShownThread<'a>| thread.serial.into()),
        Column::new(names::THREAD_NAME, |thread: &ShownThread<'a>| thread.name.into()).or_null(NOT_STARTED),
        Column::new(names::STATE, |thread: &ShownThread<'a>| thread.state.into()),
        Column::new(names::TRACE, |thread: &ShownThread<'a>| thread.trace.into()),
    ];
    let stack = stack.column(traces, |thread: &ShownThread<'a>| thread.trace);
    Columns::new(columns.into_iter().chain(stack)).table([
        TableColumn::new(names::THREAD_SERIAL, "thread")
            .cell(|thread: &ShownThread<'a>| thread.serial.to_string()),
        TableColumn::new(names::STATE, "state"),
        columns::trace_in_table(|thread: &ShownThread<'a>| thread.trace),
        TableColumn::new(names::THREAD_NAME, "name").fit(Fit::Cut { priority: 0 }),
    ])
}

fn monitor_columns<'a>() -> Columns<'a, ShownMonitor<'a>> {
    let waiting = |name: Name, threads: fn(&Monitor) -> &[u32]| {
        Column::new(name, move |named: &ShownMonitor<'a>| waiters(threads(named.monitor)))
    };
    let columns = Columns::new([
        Column::new(names::MONITOR, |named: &ShownMonitor<'a>| named.monitor.name.as_str().into()),
        Column::new(names::OBJECT, |named: &ShownMonitor<'a>| id(named.monitor.id.map(ObjectId)))
            .or_null("not stated (JDK 5 and later)"),
        Column::new(names::IS_RAW, |named: &ShownMonitor<'a>| named.monitor.raw.into()),
        Column::new(names::OWNER_SERIAL, |named: &ShownMonitor<'a>| named.owner().into()).or_null(NOT_OWNED),
        Column::new(names::OWNER_NAME, |named: &ShownMonitor<'a>| named.owner_name.into())
            .or_null("no thread owns it, or the thread has no start record"),
        Column::new(names::ENTRY_COUNT, |named: &ShownMonitor<'a>| named.entry_count().into())
            .or_null(NOT_OWNED),
        waiting(names::WAITING_TO_ENTER, |monitor| &monitor.waiting_to_enter),
        waiting(names::WAITING_TO_BE_NOTIFIED, |monitor| &monitor.waiting_to_be_notified),
    ]);
    columns.table([
        TableColumn::new(names::OBJECT, "id"),
        TableColumn::new(names::OWNER_SERIAL, "owner").cell(|named: &ShownMonitor<'a>| number(named.owner())),
        TableColumn::new(names::ENTRY_COUNT, "entered")
            .cell(|named: &ShownMonitor<'a>| number(named.entry_count())),
        TableColumn::new(names::WAITING_TO_ENTER, "waiting to enter")
            .fit(Fit::Cut { priority: 1 })
            .cell(|named: &ShownMonitor<'a>| threads_text(&named.monitor.waiting_to_enter)),
        TableColumn::new(names::WAITING_TO_BE_NOTIFIED, "to be notified")
            .fit(Fit::Cut { priority: 1 })
            .cell(|named: &ShownMonitor<'a>| threads_text(&named.monitor.waiting_to_be_notified)),
        TableColumn::new(names::MONITOR, "monitor").fit(Fit::Shorten { priority: 0 }).cell(
            |named: &ShownMonitor<'a>| {
                format!("{}{}", if named.monitor.raw { "raw " } else { "" }, named.monitor.name)
            },
        ),
    ])
}

fn columns<'a>(traces: &'a Traces, stack: &StackArgs) -> Columns<'a, ShownDump<'a>> {
    Columns::new([
        Column::new(names::MONITOR_DUMP, |dump: &ShownDump<'a>| dump.number.into()),
        Column::records(names::THREAD_ENTRIES, thread_columns(traces, stack), |dump: &ShownDump<'a>| {
            &dump.threads
        }),
        Column::records(names::MONITORS, monitor_columns(), |dump: &ShownDump<'a>| &dump.monitors),
    ])
}

fn item_columns<'a>() -> Columns<'a, MonitorDumpLine<'a>> {
    const MONITOR: &str = "a monitor";
    const THREAD: &str = "a thread";
    let waiting = |name: Name, threads: fn(&Monitor) -> &[u32]| {
        Column::new(name, move |item: &MonitorDumpLine<'a>| {
            item.monitor.as_ref().map(|named| waiters(threads(named.monitor))).unwrap_or_default()
        })
        .or_null(THREAD)
    };
    Columns::new([
        Column::new(names::MONITOR_DUMP, |item: &MonitorDumpLine<'a>| item.number.into()),
        Column::new(names::KIND, |item: &MonitorDumpLine<'a>| item.kind().into()),
        Column::new(names::THREAD_SERIAL, |item: &MonitorDumpLine<'a>| item.serial.into()).or_null(NOT_OWNED),
        Column::new(names::THREAD_NAME, |item: &MonitorDumpLine<'a>| item.name.into()).or_null(NOT_STARTED),
        Column::new(names::STATE, |item: &MonitorDumpLine<'a>| {
            item.thread.as_ref().map(|thread| thread.state).into()
        })
        .or_null(MONITOR),
        Column::new(names::TRACE, |item: &MonitorDumpLine<'a>| {
            item.thread.as_ref().map(|thread| thread.trace).into()
        })
        .or_null(MONITOR),
        Column::new(names::MONITOR, |item: &MonitorDumpLine<'a>| {
            item.monitor.as_ref().map(|named| named.monitor.name.as_str()).into()
        })
        .or_null(THREAD),
        Column::new(names::OBJECT, |item: &MonitorDumpLine<'a>| {
            id(item.monitor.as_ref().and_then(|named| named.monitor.id).map(ObjectId))
        })
        .or_null("for threads, or not stated (JDK 5 and later)"),
        Column::new(names::ENTRY_COUNT, |item: &MonitorDumpLine<'a>| {
            item.monitor.as_ref().and_then(ShownMonitor::entry_count).into()
        })
        .or_null("for threads, or no thread owns it"),
        waiting(names::WAITING_TO_ENTER, |monitor| &monitor.waiting_to_enter),
        waiting(names::WAITING_TO_BE_NOTIFIED, |monitor| &monitor.waiting_to_be_notified),
    ])
}

fn summary_columns() -> Columns<'static, RecordingSummary<()>> {
    Columns::new([columns::matching(), columns::left_out()])
}

pub(super) fn row_schema() -> [ResultSchema; 2] {
    [
        ResultSchema {
            command: "monitors",
            variant: "`--dumps`",
            about: "A row is a MONITOR DUMP: the state of all threads and monitors at one moment. States are those of \
                    the agent: `R` runnable, `S` suspended, `SL` asleep, `CW` waiting to be notified, `MW` waiting to \
                    enter a monitor, `ZO` ended, `NS` not started, `UN` unknown; they may be preceded by `S|`, \
                    `intr|` and `native|`. `frames` of threads exist only with `--stack`. In CSV a line is a thread \
                    or a monitor, as below.",
            rows: columns(&Traces::default(), &StackArgs::ALL).fields(),
            summary: summary_columns().fields(),
        },
        ResultSchema {
            command: "monitors",
            variant: "`--dumps --format csv`",
            about: "A line is a thread or a monitor of a MONITOR DUMP. Stacks are omitted.",
            rows: item_columns().fields(),
            summary: Vec::new(),
        },
    ]
}
