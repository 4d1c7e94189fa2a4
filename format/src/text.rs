//! Lines and sections of a text report, except its HEAP DUMP.
//!
//! Words, columns and their widths are those of the agent of JDK 8 (`hprof_io.c`), so that programs that
//! read its files can read these: columns have a minimum width and widen for larger numbers. Names are
//! escaped, so that none can look like a record. Every function returns the errors of its writer.

use std::io::{self, Write};

use crate::escape;

/// Text for an unknown class.
pub const UNKNOWN_CLASS: &str = "<Unknown Class>";
/// Text for an unknown method.
pub const UNKNOWN_METHOD: &str = "<Unknown Method>";
/// Text for an unknown source file.
pub const UNKNOWN_SOURCE: &str = "<Unknown Source>";

/// Writes `JAVA PROFILE 1.0.1, created DATE`, an explanation, and the line that ends the head.
///
/// `date` is in the form of [`crate::date::ctime`]; `explanation` ends with a line feed.
pub fn head(out: &mut dyn Write, date: &str, explanation: &str) -> io::Result<()> {
    write!(out, "JAVA PROFILE 1.0.1, created {date}\n\n{explanation}\n--------\n\n")
}

/// Start of a thread.
#[derive(Debug, Clone, Copy)]
pub struct ThreadStart<'a> {
    /// Object ID of the thread.
    pub object: u64,
    /// Thread serial number.
    pub serial: u32,
    /// Name of the thread.
    pub name: &'a str,
    /// Name of the thread group.
    pub group: &'a str,
}

/// Writes `THREAD START (obj=..., id = ..., name="...", group="...")`.
pub fn thread_start(out: &mut dyn Write, thread: &ThreadStart<'_>) -> io::Result<()> {
    writeln!(
        out,
        "THREAD START (obj={:x}, id = {}, name=\"{}\", group=\"{}\")",
        thread.object,
        thread.serial,
        escape::text(thread.name),
        escape::text(thread.group)
    )
}

/// Writes `THREAD END (id = ...)`.
pub fn thread_end(out: &mut dyn Write, serial: u32) -> io::Result<()> {
    writeln!(out, "THREAD END (id = {serial})")
}

/// A frame of a stack trace.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameLine<'a> {
    /// Class name in Java source form.
    pub class: Option<&'a str>,
    /// Method name.
    pub method: Option<&'a str>,
    /// Source file.
    pub source: Option<&'a str>,
    /// Line number; -1 unknown, -2 compiled method, -3 native method.
    pub line: i32,
}

/// Writes `TRACE N:`, with the thread unless it is 0, and its frames or `<empty>`.
pub fn trace<'a>(
    out: &mut dyn Write,
    serial: u32,
    thread: u32,
    frames: impl IntoIterator<Item = FrameLine<'a>>,
) -> io::Result<()> {
    write!(out, "TRACE {serial}:")?;
    if thread != 0 {
        write!(out, " (thread={thread})")?;
    }
    writeln!(out)?;
    let mut empty = true;
    for frame in frames {
        self::frame(out, &frame)?;
        empty = false;
    }
    if empty { writeln!(out, "\t<empty>") } else { Ok(()) }
}

fn frame<'a>(out: &mut dyn Write, frame: &FrameLine<'a>) -> io::Result<()> {
    let text = |text: Option<&'a str>, none: &'a str| escape::text(text.unwrap_or(none));
    let class = text(frame.class, UNKNOWN_CLASS);
    let method = text(frame.method, UNKNOWN_METHOD);
    let source = text(frame.source, UNKNOWN_SOURCE);
    write!(out, "\t{class}.{method}({source}:")?;
    match frame.line {
        -1 => writeln!(out, "Unknown line)"),
        -2 => writeln!(out, "Compiled method)"),
        -3 => writeln!(out, "Native method)"),
        line => writeln!(out, "{line})"),
    }
}

/// Order of SITES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteOrder {
    /// By live bytes.
    Live,
    /// By allocated bytes.
    Allocated,
}

/// Writes `SITES BEGIN` and the two title lines.
pub fn sites_begin(out: &mut dyn Write, order: SiteOrder, date: &str) -> io::Result<()> {
    let order = match order {
        SiteOrder::Live => "live",
        SiteOrder::Allocated => "allocated",
    };
    writeln!(out, "SITES BEGIN (ordered by {order} bytes) {date}")?;
    writeln!(out, "          percent          live          alloc'ed  stack class")?;
    writeln!(out, " rank   self  accum     bytes objs     bytes  objs trace name")
}

/// A row of SITES.
#[derive(Debug, Clone, Copy)]
pub struct SiteRow<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Percentage of the total, and accumulated percentage up to this row.
    pub percent: (f64, f64),
    /// Live bytes.
    pub live_bytes: u64,
    /// Live objects.
    pub live_objects: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Allocated objects.
    pub allocated_objects: u64,
    /// Trace serial number.
    pub trace: u32,
    /// Class name in Java source form.
    pub class: &'a str,
}

/// Writes a row of SITES.
pub fn site(out: &mut dyn Write, row: &SiteRow<'_>) -> io::Result<()> {
    writeln!(
        out,
        "{:5} {:5.2}% {:5.2}% {:9} {:4} {:9} {:5} {:5} {}",
        row.rank,
        row.percent.0,
        row.percent.1,
        row.live_bytes,
        row.live_objects,
        row.allocated_bytes,
        row.allocated_objects,
        row.trace,
        escape::text(row.class)
    )
}

/// Writes `SITES END`.
pub fn sites_end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "SITES END")
}

/// A section of traces ranked by cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Costs {
    /// CPU SAMPLES: number of times that each trace was running.
    Samples,
    /// CPU TIME (ms).
    Times,
}

impl Costs {
    const fn name(self) -> &'static str {
        match self {
            Self::Samples => "CPU SAMPLES",
            Self::Times => "CPU TIME (ms)",
        }
    }
}

/// A row of [`Costs`].
#[derive(Debug, Clone, Copy)]
pub struct CostRow<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Percentage of the total, and accumulated percentage up to this row.
    pub percent: (f64, f64),
    /// Number of samples or calls.
    pub count: u64,
    /// Trace serial number.
    pub trace: u32,
    /// Class and method of the trace's first frame; `None` without frames.
    pub method: Option<(Option<&'a str>, Option<&'a str>)>,
}

/// Writes a whole section: the total number of samples or milliseconds, and the rows.
pub fn costs<'a>(
    out: &mut dyn Write,
    section: Costs,
    total: u64,
    date: &str,
    rows: impl IntoIterator<Item = CostRow<'a>>,
) -> io::Result<()> {
    writeln!(out, "{} BEGIN (total = {total}) {date}", section.name())?;
    for (nth, row) in rows.into_iter().enumerate() {
        if nth == 0 {
            writeln!(out, "rank   self  accum   count trace method")?;
        }
        let (part, accumulated) = row.percent;
        write!(out, "{:4} {part:5.2}% {accumulated:5.2}% {:7} {:5}", row.rank, row.count, row.trace)?;
        match row.method {
            Some((class, method)) => {
                let class = escape::text(class.unwrap_or(UNKNOWN_CLASS));
                writeln!(out, " {class}.{}", escape::text(method.unwrap_or(UNKNOWN_METHOD)))?;
            }
            None => writeln!(out, " <empty trace>")?,
        }
    }
    writeln!(out, "{} END", section.name())
}

/// Writes the title line of `cpu=old`.
pub fn calls_title(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "count callee caller time")
}

/// Writes a row of `cpu=old`: a method as `com.acme.Foo.bar(I)V`, calls, and milliseconds.
pub fn call(
    out: &mut dyn Write,
    count: u64,
    callee: Option<&str>,
    caller: Option<&str>,
    ms: u64,
) -> io::Result<()> {
    writeln!(
        out,
        "{count} {} {} {ms}",
        escape::text(callee.unwrap_or("<unknown callee>")),
        escape::text(caller.unwrap_or("<unknown caller>"))
    )
}

/// A row of MONITOR TIME.
#[derive(Debug, Clone, Copy)]
pub struct ContentionRow<'a> {
    /// Rank, from 1.
    pub rank: u64,
    /// Percentage of the total, and accumulated percentage up to this row.
    pub percent: (f64, f64),
    /// Number of times that the monitor was contended at the trace.
    pub count: u64,
    /// Trace serial number.
    pub trace: u32,
    /// Class name of the monitor in Java source form.
    pub class: &'a str,
}

/// Writes MONITOR TIME: the total number of milliseconds lost, and the rows.
pub fn contention<'a>(
    out: &mut dyn Write,
    total_ms: u64,
    date: &str,
    rows: impl IntoIterator<Item = ContentionRow<'a>>,
) -> io::Result<()> {
    writeln!(out, "MONITOR TIME BEGIN (total = {total_ms} ms) {date}")?;
    writeln!(out, "rank   self  accum   count trace monitor")?;
    for row in rows {
        let (part, accumulated) = row.percent;
        writeln!(
            out,
            "{:4} {part:5.2}% {accumulated:5.2}% {:7} {:5} {} (Java)",
            row.rank,
            row.count,
            row.trace,
            escape::text(row.class)
        )?;
    }
    writeln!(out, "MONITOR TIME END")
}

/// A monitor of MONITOR DUMP.
#[derive(Debug, Clone, Default)]
pub struct Monitor<'a> {
    /// JVM signature of the monitor's class, `Ljava/lang/Object;`.
    pub signature: &'a str,
    /// Serial number of the owner thread (`None`: unknown thread), and the number of times that it has
    /// entered.
    pub owner: Option<(u32, u32)>,
    /// Serial numbers of threads that wait to enter; 0 for an unknown thread.
    pub entering: Vec<u32>,
    /// Serial numbers of threads that wait to be notified.
    pub notified: Vec<u32>,
}

/// Writes `MONITOR DUMP BEGIN`.
pub fn monitor_dump_begin(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "MONITOR DUMP BEGIN")
}

/// Writes a thread of MONITOR DUMP; `status` is one of the agent's codes: R, SL, MW, CW, NS, ZO, UN,
/// prefixed with `S|`, `intr|` and `native|`.
pub fn thread_state(out: &mut dyn Write, thread: u32, trace: u32, status: &str) -> io::Result<()> {
    writeln!(out, "    THREAD {thread}, trace {trace}, status: {status}")
}

/// Writes a monitor of MONITOR DUMP.
pub fn monitor(out: &mut dyn Write, monitor: &Monitor<'_>) -> io::Result<()> {
    let signature = escape::text(monitor.signature);
    match monitor.owner {
        Some((thread, entries)) => {
            writeln!(out, "    MONITOR {signature}")?;
            writeln!(out, "\towner: thread {thread}, entry count: {entries}")?;
        }
        None => writeln!(out, "    MONITOR {signature} unowned")?,
    }
    for (title, threads) in
        [("waiting to enter:", &monitor.entering), ("waiting to be notified:", &monitor.notified)]
    {
        write!(out, "\t{title}")?;
        for (nth, thread) in threads.iter().enumerate() {
            write!(out, "{}", if nth == 0 { " " } else { ", " })?;
            match thread {
                0 => write!(out, "<unknown thread>")?,
                thread => write!(out, "thread {thread}")?,
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes `MONITOR DUMP END`.
pub fn monitor_dump_end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "MONITOR DUMP END")
}

/// Start or end of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait<'a> {
    /// `Object.wait`: signature of the monitor's class, timeout in milliseconds (0: none).
    Wait(&'a str, i64),
    /// Return from the wait, after this number of milliseconds.
    Waited(&'a str, i64),
}

/// Writes a WAIT or WAITED line.
pub fn wait(out: &mut dyn Write, wait: Wait<'_>, thread: u32) -> io::Result<()> {
    match wait {
        Wait::Wait(class, ms) => {
            write!(out, "WAIT: MONITOR {}, timeout={ms}, ", escape::text(class))?;
        }
        Wait::Waited(class, ms) => {
            write!(out, "WAITED: MONITOR {}, time_waited={ms}, ", escape::text(class))?;
        }
    }
    match thread {
        0 => writeln!(out, "<unknown thread>"),
        thread => writeln!(out, "thread {thread}"),
    }
}
