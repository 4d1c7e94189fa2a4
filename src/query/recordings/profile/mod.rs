//! What a profiler recorded, beside the heap: threads, stack traces, allocation sites, samples, times and monitors.
//!
//! The HPROF agent writes these facts as binary records or as text (`java.hprof.txt`). [`Profile`] is both: commands
//! answer from it, whichever file it came from.

pub mod binary;
mod object_sites;
mod site_records;
mod sites;
pub mod text;
mod traces;

use jiff::SignedDuration;
use jiff::civil::date;

use hprof_parser::{ObjectId, TraceSerial};

pub(crate) use sites::ratio;
pub use sites::{Origin, Site, Sites};
pub use traces::{Frame, Trace, Traces};

/// What a profiler recorded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// The format's name and version as the file states it, `JAVA PROFILE 1.0.1`; empty if it does not (`cpu=old`).
    pub format: String,
    /// When it was made: RFC 3339, without a zone where the file names none (texts hold local time).
    pub created: Option<String>,
    /// Threads that were started, in the order of the file.
    pub threads: Vec<StartedThread>,
    /// Stack traces.
    pub traces: Traces,
    /// Allocation sites, if there are any and they were asked for.
    pub sites: Option<Sites>,
    /// CPU SAMPLES.
    pub samples: Option<Samples>,
    /// CPU TIME (ms): from texts only.
    pub times: Option<Times>,
    /// The table of `cpu=old`: from texts only.
    pub calls: Vec<Call>,
    /// MONITOR TIME: from texts only.
    pub contention: Option<Times>,
    /// MONITOR DUMP, in the order of the file: from texts only.
    pub monitor_dumps: Vec<MonitorDump>,
    /// WAIT, WAITED, SLEEP and EXIT lines, in the order of the file: from texts only.
    pub waits: Vec<Wait>,
    /// HEAP SUMMARY records, in the order of the file: from binaries only.
    pub heap_summaries: Vec<hprof_parser::record::HeapSummary>,
    /// CONTROL SETTINGS records, in the order of the file: from binaries only.
    pub settings: Vec<hprof_parser::record::ControlSettings>,
}

/// A thread that was started: START THREAD, `THREAD START`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedThread {
    /// Thread serial number.
    pub serial: u32,
    /// Object ID of the thread.
    pub object: ObjectId,
    /// Serial number of the trace where it was started; 0 for none, and in texts.
    pub trace: TraceSerial,
    /// Name.
    pub name: String,
    /// Name of its group.
    pub group: String,
    /// Name of the group's parent; `None` in texts.
    pub parent_group: Option<String>,
    /// `true` if it ended.
    pub ended: bool,
}

/// A thread starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadEvent {
    /// The next of [`Profile::threads`] starts.
    Start,
    /// The thread with this serial number ends.
    End(u32),
}

/// CPU SAMPLES: how often a trace was found running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Samples {
    /// All samples, also those of traces that the writer left out.
    pub total: u64,
    /// Trace serial number and samples, most first.
    pub rows: Vec<(TraceSerial, u64)>,
    /// When they were written down, as [`Profile::created`].
    pub date: Option<String>,
}

/// CPU TIME (ms): time spent in each trace. MONITOR TIME: time lost in each waiting to enter monitors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Milliseconds altogether, as the file states them; the agent writes garbage when they overflow 31 bits.
    pub total_ms: i64,
    /// The rows, in the order of the file.
    pub rows: Vec<TimeRow>,
    /// When they were written down, as [`Profile::created`].
    pub date: Option<String>,
}

/// A row of CPU TIME or MONITOR TIME.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeRow {
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Calls, or contentions.
    pub count: u64,
    /// Part of the total.
    pub self_percent: f64,
    /// Part of this row and all before.
    pub accumulated_percent: f64,
    /// The method as the row names it (`<empty trace>` is none), or the monitor's class.
    pub name: Option<String>,
}

/// A row of `cpu=old`: calls of one method by another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of calls.
    pub count: u64,
    /// The method that was called; `None` if the agent did not know.
    pub callee: Option<Method>,
    /// The method that called; `None` if the agent did not know.
    pub caller: Option<Method>,
    /// Milliseconds.
    pub time_ms: i64,
}

/// A method with its signature.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Method {
    /// Class in Java source form.
    pub class: String,
    /// Name.
    pub name: String,
    /// JVM signature, `(I)V`.
    pub signature: String,
}

/// MONITOR DUMP: the state of threads and monitors at a moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitorDump {
    /// Thread serial number, trace serial number, state (`R`, `CW`, `S|MW`, ...).
    pub threads: Vec<(u32, TraceSerial, String)>,
    /// The monitors.
    pub monitors: Vec<Monitor>,
}

/// A monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Monitor {
    /// Class in Java source form, or a raw monitor's name.
    pub name: String,
    /// Object ID, or a raw monitor's address, if the file states it.
    pub id: Option<u64>,
    /// `true` if it is a monitor of the JVM itself, not of an object.
    pub raw: bool,
    /// Serial number of the thread that owns it, and how often it has entered.
    pub owner: Option<(u32, u32)>,
    /// Threads that wait to enter; 0 for one that the agent did not know.
    pub waiting_to_enter: Vec<u32>,
    /// Threads that wait to be notified; 0 for one that the agent did not know.
    pub waiting_to_be_notified: Vec<u32>,
}

/// A WAIT, WAITED, SLEEP or EXIT line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// What happened.
    pub kind: WaitKind,
    /// Class of the monitor in Java source form; `None` for SLEEP.
    pub monitor: Option<String>,
    /// Timeout (WAIT, SLEEP) or time waited (WAITED), as the file states it.
    pub time: Option<i64>,
    /// Serial number of the thread, if the agent knew it.
    pub thread: Option<u32>,
}

/// What happened to a thread at a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// It began to wait.
    Wait,
    /// It has waited.
    Waited,
    /// It slept.
    Sleep,
    /// It left the monitor.
    Exit,
}

/// A time as RFC 3339: milliseconds since 1970 and microseconds after that. `None` for none (0), and for what no
/// calendar holds.
pub fn rfc3339(milliseconds: u64, microseconds: u32) -> Option<String> {
    if milliseconds == 0 {
        return None;
    }
    let later = milliseconds.saturating_add(u64::from(microseconds) / 1000);
    let since_1970 = SignedDuration::from_millis(later.try_into().ok()?);
    // Not a `Timestamp`: its last day is the one before the last of the year 9999.
    let time = date(1970, 1, 1).at(0, 0, 0, 0).checked_add(since_1970).ok()?;
    Some(format!("{time:.3}Z"))
}

/// A part of a whole in per cent, not rounded.
pub fn percent_of(part: u64, whole: u64) -> f64 {
    ratio(part, whole) * 100.0
}
