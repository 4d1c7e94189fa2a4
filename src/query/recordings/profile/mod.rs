//! Facts recorded by a profiler, except the heap: threads, stack traces, allocation sites, samples, times and monitors.
//!
//! The HPROF agent writes these facts as binary records or as text (`java.hprof.txt`). [`Profile`] covers both, so
//! commands do not depend on the kind of file.

pub mod binary;
mod events;
pub mod flight;
mod object_sites;
mod site_records;
mod sites;
pub mod text;
mod traces;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::date;

use hprof_values::{ObjectId, TraceSerial};

use events::{MonitorEvent, SampleEvent};

pub use sites::{Origin, Site, Sites};
pub use traces::{Frame, Trace, Traces};

/// Facts recorded by a profiler, from any file format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Format name and version as the file states them, such as `JAVA PROFILE 1.0.1`; empty if the file states none
    /// (`cpu=old`).
    pub format: String,
    /// Creation time in RFC 3339, without a zone if the file has none (texts contain local time).
    pub created: Option<String>,
    /// Threads that were started, in the order of the file.
    pub threads: Vec<StartedThread>,
    /// Stack traces.
    pub traces: Traces,
    /// Allocation sites, if any exist and they were requested.
    pub sites: Option<Sites>,
    /// CPU SAMPLES.
    pub samples: Option<Samples>,
    /// CPU TIME (ms); in texts only.
    pub times: Option<Times>,
    /// Table of `cpu=old`; in texts only.
    pub calls: Vec<Call>,
    /// MONITOR TIME; in texts only.
    pub contention: Option<Times>,
    /// MONITOR DUMP, in the order of the file; in texts only.
    pub monitor_dumps: Vec<MonitorDump>,
    /// WAIT, WAITED, SLEEP and EXIT lines, in the order of the file; in texts only.
    pub waits: Vec<Wait>,
    /// HEAP SUMMARY records, in the order of the file; in binaries only.
    pub heap_summaries: Vec<hprof_parser::record::HeapSummary>,
    /// CONTROL SETTINGS records, in the order of the file; in binaries only.
    pub settings: Vec<hprof_parser::record::ControlSettings>,
}

/// A thread that was started: START THREAD, `THREAD START`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedThread {
    /// Thread serial number.
    pub serial: u32,
    /// Object ID of the thread.
    pub object: ObjectId,
    /// Serial number of the trace in which the thread was started; 0 for none, and in texts.
    pub trace: TraceSerial,
    /// Name of the thread.
    pub name: Arc<str>,
    /// Name of the thread group.
    pub group: Arc<str>,
    /// Name of the thread group's parent; `None` in texts.
    pub parent_group: Option<Arc<str>>,
    /// `true` if the thread ended.
    pub ended: bool,
}

impl StartedThread {
    /// Returns the thread without its names, which are values of the program.
    #[must_use]
    pub fn without_names(self) -> Self {
        let name = format!("thread {}", self.serial).into();
        Self { name, group: Arc::default(), parent_group: None, ..self }
    }
}

/// Start or end of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEvent {
    /// Start of the next thread in [`Profile::threads`].
    Start,
    /// End of the thread with this serial number.
    End(u32),
}

/// CPU SAMPLES: number of samples by trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Number of all samples, including samples of traces that the writer left out.
    pub total: u64,
    /// Trace serial number and number of samples; most samples first.
    pub rows: Vec<(TraceSerial, u64)>,
    /// Time of writing, in the format of [`Profile::created`].
    pub date: Option<String>,
    /// Events that were counted, in recordings of Flight Recorder.
    pub event: Option<SampleEvent>,
    /// `true` if the samples were taken in real time, and those of running threads are counted.
    pub is_wall_clock: bool,
    /// Methods that the rows of a text name, if the file does not contain their traces.
    pub methods: BTreeMap<TraceSerial, Box<str>>,
}

/// CPU TIME (ms): time spent in each trace. MONITOR TIME: time that each trace spent waiting to enter monitors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Total in milliseconds, as the file states it; the agent writes garbage if it overflows 31 bits.
    pub total_ms: i64,
    /// Rows, in the order of the file.
    pub rows: Vec<TimeRow>,
    /// Time of writing, in the format of [`Profile::created`].
    pub date: Option<String>,
    /// Events that were counted, in recordings of Flight Recorder.
    pub event: Option<MonitorEvent>,
}

/// A row of CPU TIME or MONITOR TIME.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeRow {
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Number of calls or contentions.
    pub count: u64,
    /// Percentage of the total.
    pub self_percent: f64,
    /// Percentage of the total in this row and all rows before it.
    pub accumulated_percent: f64,
    /// Method named in the row (`<empty trace>` for none), or the monitor's class.
    pub name: Option<String>,
    /// Time in nanoseconds; `None` if only a percentage was recorded.
    pub nanos: Option<u64>,
}

impl TimeRow {
    /// Returns the measured time in milliseconds, rounded; `None` if only a percentage was recorded.
    pub fn milliseconds(&self) -> Option<u64> {
        self.nanos.map(|nanos| nanos.saturating_add(500_000) / 1_000_000)
    }
}

/// Row of `cpu=old`: calls from one method to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of calls from the caller to the callee.
    pub count: u64,
    /// Called method; `None` if the agent did not know it.
    pub callee: Option<Method>,
    /// Calling method; `None` if the agent did not know it.
    pub caller: Option<Method>,
    /// Time in milliseconds.
    pub time_ms: i64,
}

/// A method with its signature.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method {
    /// Class in Java source form.
    pub class: String,
    /// Method name.
    pub name: String,
    /// JVM signature, such as `(I)V`.
    pub signature: String,
}

/// MONITOR DUMP: a snapshot of the states of threads and monitors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitorDump {
    /// Thread serial number, trace serial number and state (`R`, `CW`, `S|MW`, ...).
    pub threads: Vec<(u32, TraceSerial, String)>,
    /// Monitors with owners or waiting threads.
    pub monitors: Vec<Monitor>,
}

/// Monitor in a MONITOR DUMP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Monitor {
    /// Class in Java source form, or the name of a raw monitor.
    pub name: String,
    /// Object ID, or the address of a raw monitor, if the file states it.
    pub id: Option<u64>,
    /// `true` for a raw monitor of the JVM, which does not belong to an object.
    pub raw: bool,
    /// Serial number of the owning thread, and the number of times that the thread has entered the monitor.
    pub owner: Option<(u32, u32)>,
    /// Serial numbers of the threads that wait to enter; 0 for a thread unknown to the agent.
    pub waiting_to_enter: Vec<u32>,
    /// Serial numbers of the threads that wait to be notified; 0 for a thread unknown to the agent.
    pub waiting_to_be_notified: Vec<u32>,
}

/// A WAIT, WAITED, SLEEP or EXIT line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Kind of the line's event.
    pub kind: WaitKind,
    /// Class of the monitor in Java source form; `None` for SLEEP.
    pub monitor: Option<String>,
    /// Timeout (WAIT, SLEEP) or time waited (WAITED), as the file states it.
    pub time: Option<i64>,
    /// Serial number of the thread, if the agent knew it.
    pub thread: Option<u32>,
}

/// Kind of event of a thread at a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// Start of a wait.
    Wait,
    /// End of a wait.
    Waited,
    /// A sleep.
    Sleep,
    /// Exit from the monitor.
    Exit,
}

/// Formats a time as RFC 3339, given as milliseconds since 1970 plus microseconds. `None` for 0 milliseconds, and for times
/// outside the calendar.
pub fn rfc3339(milliseconds: u64, microseconds: u32) -> Option<String> {
    if milliseconds == 0 {
        return None;
    }
    let later = milliseconds.saturating_add(u64::from(microseconds) / 1000);
    let since_1970 = SignedDuration::from_millis(later.try_into().ok()?);
    // Not a `Timestamp`: its range ends on the day before the last of the year 9999.
    let time = date(1970, 1, 1).at(0, 0, 0, 0).checked_add(since_1970).ok()?;
    Some(format!("{time:.3}Z"))
}

/// Formats a time in nanoseconds since 1970 as RFC 3339; see [`rfc3339`].
pub fn date_of_nanos(nanos: i64) -> Option<String> {
    rfc3339(u64::try_from(nanos / 1_000_000).ok()?, 0)
}
