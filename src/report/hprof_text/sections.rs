//! All records of a text report but the HEAP DUMP.
//!
//! Formats are those of the agent's writer, `hprof_io.c` of JDK 8.

use std::io::{self, Write};
use std::sync::Arc;

use super::date::ctime;
use crate::query::recordings::profile::{Frame, Profile, Samples, Sites, ThreadEvent, percent_of};
use crate::report::escape;

/// The head of the file: the first line is the agent's, the words are our own.
pub(super) fn header(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    write!(
        out,
        "JAVA PROFILE 1.0.1, created {}\n\n{EXPLANATION}\n--------\n\n",
        ctime(profile.created.as_deref())
    )
}

const EXPLANATION: &str = "\
Written by hprof-cli from a binary dump, in the text format of the HPROF agent.
Times are in UTC. Object ids are hexadecimal, all other numbers decimal.

A thread starts and ends with a line of its own, with its object id (obj), its
serial number (id), its name and its group.

A trace is a call stack, innermost frame first, by its serial number. Its thread
is named where the dump names one.

The heap dump lists GC roots (ROOT), classes (CLS), instances (OBJ) and arrays
(ARR): the object id, the shallow size in bytes (sz), the trace where it was
allocated, and every reference that is not null.

Sites are classes and the traces where their objects were allocated: bytes and
objects that are alive, and that were ever allocated.

CPU samples tell how often each trace was found running.
";

pub(super) fn threads(out: &mut dyn Write, profile: &Profile, events: &[ThreadEvent]) -> io::Result<()> {
    let mut started = profile.threads.iter();
    for event in events {
        match event {
            ThreadEvent::Start => {
                let Some(thread) = started.next() else { continue };
                writeln!(
                    out,
                    "THREAD START (obj={:x}, id = {}, name=\"{}\", group=\"{}\")",
                    thread.object,
                    thread.serial,
                    escape::text(&thread.name),
                    escape::text(&thread.group)
                )?;
            }
            ThreadEvent::End(serial) => writeln!(out, "THREAD END (id = {serial})")?,
        }
    }
    Ok(())
}

pub(super) fn traces(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    for trace in profile.traces.iter() {
        write!(out, "TRACE {}:", trace.serial)?;
        if trace.thread != 0 {
            write!(out, " (thread={})", trace.thread)?;
        }
        writeln!(out)?;
        let frames = profile.traces.frames(trace);
        if frames.len() == 0 {
            writeln!(out, "\t<empty>")?;
        }
        for frame in frames {
            self::frame(out, frame)?;
        }
    }
    Ok(())
}

fn frame(out: &mut dyn Write, frame: &Frame) -> io::Result<()> {
    let text = |text: &Option<Arc<str>>, none: &'static str| {
        text.as_deref().map_or(none.into(), escape::text).into_owned()
    };
    let class = text(&frame.class, UNKNOWN_CLASS);
    let method = text(&frame.method, UNKNOWN_METHOD);
    let source = text(&frame.source, UNKNOWN_SOURCE);
    write!(out, "\t{class}.{method}({source}:")?;
    match frame.line {
        -1 => writeln!(out, "Unknown line)"),
        -2 => writeln!(out, "Compiled method)"),
        -3 => writeln!(out, "Native method)"),
        line => writeln!(out, "{line})"),
    }
}

/// What stands for a class that is not known. The agent always knows it.
const UNKNOWN_CLASS: &str = "<Unknown Class>";
const UNKNOWN_METHOD: &str = "<Unknown Method>";
const UNKNOWN_SOURCE: &str = "<Unknown Source>";

pub(super) fn sites(out: &mut dyn Write, sites: &Sites) -> io::Result<()> {
    let order = if sites.by_allocation { "allocated" } else { "live" };
    writeln!(out, "SITES BEGIN (ordered by {order} bytes) {}", ctime(sites.date.as_deref()))?;
    writeln!(out, "          percent          live          alloc'ed  stack class")?;
    writeln!(out, " rank   self  accum     bytes objs     bytes  objs trace name")?;
    for (rank, site) in (1u64..).zip(&sites.rows) {
        writeln!(
            out,
            "{rank:5} {:5.2}% {:5.2}% {:9} {:4} {:9} {:5} {:5} {}",
            site.self_percent,
            site.accumulated_percent,
            site.live_bytes,
            site.live_instances,
            site.allocated_bytes,
            site.allocated_instances,
            site.trace,
            escape::text(&site.class)
        )?;
    }
    writeln!(out, "SITES END")
}

pub(super) fn samples(out: &mut dyn Write, profile: &Profile, samples: &Samples) -> io::Result<()> {
    writeln!(out, "CPU SAMPLES BEGIN (total = {}) {}", samples.total, ctime(samples.date.as_deref()))?;
    if !samples.rows.is_empty() {
        writeln!(out, "rank   self  accum   count trace method")?;
    }
    let mut accumulated = 0.0;
    for (rank, (trace, count)) in (1u64..).zip(&samples.rows) {
        let percent = percent_of(*count, samples.total);
        accumulated += percent;
        write!(out, "{rank:4} {percent:5.2}% {accumulated:5.2}% {count:7} {trace:5}")?;
        match profile.traces.get(*trace).and_then(|trace| profile.traces.frames(trace).next()) {
            Some(frame) => {
                let class = frame.class.as_deref().map_or(UNKNOWN_CLASS.into(), escape::text);
                let method = frame.method.as_deref().map_or(UNKNOWN_METHOD.into(), escape::text);
                writeln!(out, " {class}.{method}")?;
            }
            None => writeln!(out, " <empty trace>")?,
        }
    }
    writeln!(out, "CPU SAMPLES END")
}
