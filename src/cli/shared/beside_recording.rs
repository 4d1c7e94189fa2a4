//! `--recording FILE`: a recording of Flight Recorder that is given with a dump.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hprof_index::Dump;
use hprof_jfr::Recording;
use hprof_query::dictionary::names;
use hprof_query::leaks::Leaks;
use hprof_query::leaks::allocated_in::process::{
    CommonFacts, Contradiction, SameProcess, dump_nanos, same_process, unrecorded_nanos,
};
use hprof_query::recordings::profile::date_of_nanos;
use hprof_query::recordings::profile::flight::FlightFile;
use hprof_query::recordings::profile::flight::allocations::{self, Allocations};
use hprof_query::recordings::profile::flight::heap::{Collection, HeapOverTime};
use hprof_query::recordings::profile::flight::heap_trend::HeapTrend;
use hprof_report::column::{Column, Columns};
use hprof_report::escape;
use hprof_report::number::{group_digits, human_bytes};
use hprof_report::value::list;

use crate::cli::Outcome;

use super::args::Input;
use super::context::RunContext;
use super::durations::{long_time, seconds};
use super::heap_columns;
use super::terminal::progress_bar::Bar;

/// Recording of the process that was dumped.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RecordingArg {
    /// Recording of Flight Recorder (.jfr) of the same process: show the source lines that allocated the accumulating
    /// objects (see docs/jfr.md)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, help_heading = "Input")]
    recording: Option<PathBuf>,
}

/// A recording that was given with a dump, and the allocations in it.
#[derive(Debug)]
pub(crate) struct BesideRecording {
    path: PathBuf,
    allocations: Allocations,
}

/// A recording that was given with a dump, and the result of comparing the two.
#[derive(Debug, Clone)]
pub(crate) struct ComparedRecording {
    path: String,
    same_process: SameProcess,
    start: Option<String>,
    end: Option<String>,
    pid: Option<i64>,
    is_damaged: bool,
    warnings: Vec<String>,
    /// Heap over time; `None` if the recording is of another process, or shows no trend.
    heap: Option<HeapBesideDump>,
}

/// Heap over time, compared with the time of the dump.
#[derive(Debug, Clone)]
struct HeapBesideDump {
    trend: HeapTrend,
    /// Last garbage collection before the dump.
    before_dump: Option<Collection>,
    floors: Vec<Collection>,
    /// Description in a line.
    text: String,
}

impl RecordingArg {
    /// Returns the path of the recording, if one was given.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.recording.as_deref()
    }

    /// Checks that the file is a recording, if one was given.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a recording of Flight Recorder.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Some(path) = &self.recording else { return Ok(()) };
        if FlightFile::is_recording_file(path)? { Ok(()) } else { Err(not_one(path)) }
    }

    /// Reads the recording, if one was given.
    ///
    /// # Errors
    /// If it cannot be read, or is not a recording of Flight Recorder.
    pub(crate) fn read(&self, cx: &RunContext, input: &Input) -> anyhow::Result<Option<BesideRecording>> {
        let Some(path) = &self.recording else { return Ok(None) };
        let shown = path.display();
        let bar = Bar::new(cx, input.quiet);
        let scratch = input.index_dir().map(Path::to_owned);
        let file = FlightFile::open(path, scratch, &bar)?.ok_or_else(|| not_one(path))?;
        let recording =
            Recording::new(file.bytes()).map_err(|error| anyhow::anyhow!("cannot read {shown}: {error}"))?;
        let mut allocations = input.with_threads(|| allocations::read(&recording))?;
        allocations.problems.extend(file.unpack_error().map(str::to_owned));
        Ok(Some(BesideRecording { path: path.clone(), allocations }))
    }
}

fn not_one(path: &Path) -> anyhow::Error {
    let shown = path.display();
    anyhow::anyhow!("{shown} is not a recording of Flight Recorder; --recording takes a .jfr file")
}

impl BesideRecording {
    /// Adds allocations to the suspects, and compares the recording with the dump.
    pub(crate) fn add_to(&self, leaks: &mut Leaks, cx: &RunContext, dump: &Dump<'_>) -> ComparedRecording {
        leaks.add_recording(dump, &self.allocations);
        let same_process = same_process(dump, &self.allocations);
        let path = self.path.to_string_lossy().into_owned();
        let mut warnings: Vec<String> =
            self.allocations.problems.iter().map(|problem| format!("{path}: {problem}")).collect();
        let doubt = match &same_process {
            SameProcess::Yes => None,
            SameProcess::No(why) => Some(contradiction(why, cx.hides_values)),
            SameProcess::Unknown(common) => not_known(*common),
        };
        warnings.extend(doubt.map(|doubt| format!("{path}: {doubt}")));
        let unrecorded = unrecorded_nanos(dump.heap, &self.allocations);
        if !matches!(same_process, SameProcess::No(_)) && unrecorded >= HOUR_NANOS {
            let hours = group_digits(unrecorded / HOUR_NANOS);
            warnings.push(format!(
                "{path}: the recording ended {hours} h before the dump was made, and does not contain later \
                 allocations"
            ));
        }
        if self.allocations.left_out > 0 {
            warnings.push(format!(
                "{path}: {} samples are not counted because there are too many distinct stacks",
                group_digits(self.allocations.left_out)
            ));
        }
        let is_same = !matches!(same_process, SameProcess::No(_));
        let heap =
            HeapBesideDump::from_heap(&self.allocations.heap, dump_nanos(dump.heap)).filter(|_| is_same);
        ComparedRecording {
            path,
            heap,
            same_process,
            start: date_of_nanos(self.allocations.span_nanos.0),
            end: date_of_nanos(self.allocations.span_nanos.1),
            pid: self.allocations.jvm.as_ref().and_then(|jvm| jvm.pid),
            is_damaged: !self.allocations.problems.is_empty(),
            warnings,
        }
    }
}

impl HeapBesideDump {
    fn from_heap(heap: &HeapOverTime, dumped: Option<i64>) -> Option<Self> {
        // Times of dumps are in whole milliseconds. The last one includes the collection that the dump itself causes.
        let before = dumped.map(|dumped| heap.until(dumped.saturating_add(MILLISECOND_NANOS - 1)));
        let trend = before.as_ref().unwrap_or(heap).trend()?;
        let before_dump = before.and_then(|heap| heap.collections.last().copied());
        let moment = dumped.zip(before_dump).map(|(dumped, before)| {
            let since = Duration::from_nanos(u64::try_from(dumped.saturating_sub(before.nanos)).unwrap_or(0));
            let since = if since < LONG { seconds(since) } else { long_time(since) };
            let left = human_bytes(before.used_bytes);
            format!("; the last recorded collection before the dump, {since} earlier, left {left}")
        });
        let text = format!("{trend}{}", moment.unwrap_or_default());
        Some(Self { trend, before_dump, floors: heap.floors(FLOORS), text })
    }
}

impl ComparedRecording {
    /// Returns a line about the heap over time, if the recording has collections of this heap.
    pub(crate) fn heap_line(&self) -> Option<String> {
        self.heap.as_ref().map(|heap| format!("Heap over time: {}", heap.text))
    }

    /// Returns the path of the recording, as given.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the outcome of a run: if there is a recording and it is damaged, the result is treated as damaged.
    pub(crate) fn outcome(recording: Option<&Self>, outcome: Outcome) -> Outcome {
        if recording.is_some_and(|recording| recording.is_damaged) { Outcome::Damaged } else { outcome }
    }

    /// Returns the warnings about the recording.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }

    /// Prints the warnings about the recording.
    pub(crate) fn warn(&self, cx: &RunContext) {
        self.warnings.iter().for_each(|warning| cx.emit("warning", warning));
    }

    /// Returns the columns for facts about the recording.
    pub(crate) fn columns<'c>() -> Columns<'c, Self> {
        Columns::new([
            Column::new(names::PATH, |compared: &Self| (&compared.path).into()),
            Column::new(names::SAME_PROCESS, |compared: &Self| compared.same_process.name().into()),
            Column::new(names::START, |compared: &Self| compared.start.as_ref().into())
                .or_null("the recording does not say"),
            Column::new(names::END, |compared: &Self| compared.end.as_ref().into())
                .or_null("the recording does not say"),
            Column::new(names::PID, |compared: &Self| {
                compared.pid.and_then(|pid| u64::try_from(pid).ok()).into()
            })
            .or_null("the recording does not say"),
            Column::new(names::WARNINGS, |compared: &Self| {
                list(compared.warnings.iter().map(String::as_str))
            }),
            Column::new(names::HEAP_TEXT, |compared: &Self| {
                compared.heap.as_ref().map(|heap| heap.text.as_str()).into()
            })
            .or_null(NO_HEAP),
            Column::record(names::HEAP_TREND, heap_columns::heap_trend(), |compared: &Self| {
                compared.heap.as_ref().map(|heap| heap.trend.clone())
            })
            .or_null(NO_HEAP),
            Column::record(names::COLLECTION_BEFORE_DUMP, heap_columns::collection(), |compared: &Self| {
                compared.heap.as_ref().and_then(|heap| heap.before_dump)
            })
            .or_null("the recording has none, or the dump no time"),
            Column::records(names::FLOOR_OVER_TIME, heap_columns::floor(), |compared: &Self| {
                compared.heap.as_ref().map(|heap| heap.floors.as_slice()).unwrap_or_default()
            }),
        ])
    }
}

/// Returns the reason why it is unknown whether a recording is of the dumped process; `None` if nothing can be compared.
fn not_known(CommonFacts { pid, command }: CommonFacts) -> Option<String> {
    let equal = match (pid, command) {
        (Some(pid), true) => {
            format!("process ID {pid} and the command match")
        }
        (Some(pid), false) => format!("process ID {pid} matches"),
        (None, true) => "the command matches".to_owned(),
        (None, false) => return None,
    };
    Some(format!(
        "cannot confirm that the recording is of the dumped process: {equal}, but a process in another container can \
         have the same"
    ))
}

fn contradiction(why: &Contradiction, hides_values: bool) -> String {
    let other =
        "the recording is of another process than the dump, so its lines may not apply to these objects";
    match why {
        Contradiction::Pid(recorded, dumped) => {
            format!("{other}: its process ID is {recorded}, that of the dump is {dumped}")
        }
        Contradiction::Command(..) if hides_values => format!("{other}: the commands differ"),
        Contradiction::Command(recorded, dumped) => {
            let quoted = |command: &str| escape::quoted(&hprof_report::fit::end(command, MAX_COMMAND));
            format!("{other}: its command is {}, that of the dump is {}", quoted(recorded), quoted(dumped))
        }
        Contradiction::DumpIsOlder => format!("{other}: the dump was made before its JVM started"),
        Contradiction::RecordingIsLater => {
            "the recording starts after the dump was made, so it does not contain the allocations before the dump"
                .to_owned()
        }
    }
}

/// Condition under which there is no heap over time.
const NO_HEAP: &str =
    "the recording contains no collections before the dump or too many events, or is of another process";

/// Maximum number of time intervals for which the minimum used heap is reported.
const FLOORS: usize = 60;

/// Minimum duration that is formatted in minutes.
const LONG: Duration = Duration::from_secs(60);

/// Nanoseconds of a millisecond.
const MILLISECOND_NANOS: i64 = 1_000_000;

/// Nanoseconds of an hour.
const HOUR_NANOS: u64 = 3_600_000_000_000;

/// Maximum number of characters of a command in a warning.
const MAX_COMMAND: usize = 80;
