//! Facts recorded by a profiler, apart from the heap: threads, stack traces, allocation sites, samples, times and
//! monitors.
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

use std::sync::Arc;

use jiff::SignedDuration;
use jiff::civil::date;

use hprof_values::{ObjectId, TraceSerial};

use events::{MonitorEvent, SampleEvent};

pub use sites::{Origin, Site, Sites};
pub use traces::{Frame, Trace, Traces};

/// Facts recorded by a profiler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// Format name and version as the file states them, `JAVA PROFILE 1.0.1`; empty if it does not (`cpu=old`).
    pub format: String,
    /// Creation time: RFC 3339, without a zone if the file names none (texts contain local time).
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
    /// Serial number of the trace in which it was started; 0 for none, and in texts.
    pub trace: TraceSerial,
    /// Name.
    pub name: Arc<str>,
    /// Name of the thread group.
    pub group: Arc<str>,
    /// Name of the thread group's parent; `None` in texts.
    pub parent_group: Option<Arc<str>>,
    /// `true` if the thread ended.
    pub ended: bool,
}

impl StartedThread {
    /// Returns the thread without the names that the program gave, which are values.
    #[must_use]
    pub fn without_names(self) -> Self {
        let name = format!("thread {}", self.serial).into();
        Self { name, group: Arc::default(), parent_group: None, ..self }
    }
}

/// Start or end of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEvent {
    /// Start of the next of [`Profile::threads`].
    Start,
    /// End of the thread with this serial number.
    End(u32),
}

/// CPU SAMPLES: number of samples by trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// Number of all samples, including those of traces that the writer left out.
    pub total: u64,
    /// Trace serial number and number of samples, most first.
    pub rows: Vec<(TraceSerial, u64)>,
    /// Time of writing, as [`Profile::created`].
    pub date: Option<String>,
    /// Events that were counted, in recordings of Flight Recorder.
    pub event: Option<SampleEvent>,
}

/// CPU TIME (ms): time spent in each trace. MONITOR TIME: time spent in each while waiting to enter monitors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Total in milliseconds, as the file states it; the agent writes garbage if it overflows 31 bits.
    pub total_ms: i64,
    /// Rows, in the order of the file.
    pub rows: Vec<TimeRow>,
    /// Time of writing, as [`Profile::created`].
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
    /// Percentage of this row and all before it.
    pub accumulated_percent: f64,
    /// Method as the row names it (`<empty trace>` means none), or the monitor's class.
    pub name: Option<String>,
    /// Time in nanoseconds, if it was measured and not only a percentage stated.
    pub nanos: Option<u64>,
}

impl TimeRow {
    /// Returns the time in milliseconds, rounded, if it was measured.
    pub fn milliseconds(&self) -> Option<u64> {
        self.nanos.map(|nanos| nanos.saturating_add(500_000) / 1_000_000)
    }
}

/// A row of `cpu=old`: calls of one method by another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of calls.
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
    /// JVM signature, `(I)V`.
    pub signature: String,
}

/// MONITOR DUMP: a snapshot of the states of threads and monitors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitorDump {
    /// Thread serial number, trace serial number and state (`R`, `CW`, `S|MW`, ...).
    pub threads: Vec<(u32, TraceSerial, String)>,
    /// Monitors.
    pub monitors: Vec<Monitor>,
}

/// A monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Monitor {
    /// Class in Java source form, or a raw monitor's name.
    pub name: String,
    /// Object ID, or a raw monitor's address, if the file states it.
    pub id: Option<u64>,
    /// `true` if it is a raw monitor of the JVM, not of an object.
    pub raw: bool,
    /// Serial number of the owning thread, and its number of entries.
    pub owner: Option<(u32, u32)>,
    /// Serial numbers of the threads that wait to enter; 0 for one that the agent did not know.
    pub waiting_to_enter: Vec<u32>,
    /// Serial numbers of the threads that wait to be notified; 0 for one that the agent did not know.
    pub waiting_to_be_notified: Vec<u32>,
}

/// A WAIT, WAITED, SLEEP or EXIT line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Kind of event.
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

/// Formats a time as RFC 3339: milliseconds since 1970 plus microseconds. `None` for 0, and for times outside the
/// calendar.
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

/// Formats a time in nanoseconds since 1970, as [`rfc3339`].
pub fn date_of_nanos(nanos: i64) -> Option<String> {
    rfc3339(u64::try_from(nanos / 1_000_000).ok()?, 0)
}
