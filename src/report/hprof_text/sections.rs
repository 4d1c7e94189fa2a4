//! All sections of a text report except the HEAP DUMP. [`hprof_format::text`] formats the lines.

use std::io::{self, Write};

use hprof_format::percent::percent;
use hprof_format::text;

use super::date::ctime;
use hprof_query::recordings::profile::{Profile, Samples, Sites, ThreadEvent};

/// Writes the header of the file. The first line is as in the agent's files, the explanation is our own.
pub(super) fn header(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    text::head(out, &ctime(profile.created.as_deref()), EXPLANATION)
}

const EXPLANATION: &str = "\
Written by hprof-cli, in the text format of the HPROF agent.
Times are in UTC. Object ids are hexadecimal, all other numbers decimal.

The start and the end of a thread are lines of their own, with its object id
(obj), its serial number (id), its name and its group.

A trace is a call stack, innermost frame first, with its serial number and, if
the dump contains it, its thread.

The heap dump lists GC roots (ROOT), classes (CLS), instances (OBJ) and arrays
(ARR): the object id, the shallow size in bytes (sz), the trace where it was
allocated, and every reference that is not null.

Sites are classes and the traces where their objects were allocated: bytes and
objects that are alive, and that were ever allocated.

CPU samples count how often each trace was found running.
";

pub(super) fn threads(out: &mut dyn Write, profile: &Profile, events: &[ThreadEvent]) -> io::Result<()> {
    let mut started = profile.threads.iter();
    for event in events {
        match event {
            ThreadEvent::Start => {
                let Some(thread) = started.next() else { continue };
                let (object, serial) = (thread.object.0, thread.serial);
                let (name, group) = (&thread.name, &thread.group);
                text::thread_start(out, &text::ThreadStart { object, serial, name, group })?;
            }
            ThreadEvent::End(serial) => text::thread_end(out, *serial)?,
        }
    }
    Ok(())
}

pub(super) fn traces(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    for trace in profile.traces.iter() {
        let frames = profile.traces.frames(trace).map(|frame| text::FrameLine {
            class: frame.class.as_deref(),
            method: frame.method.as_deref(),
            source: frame.source.as_deref(),
            line: frame.line,
        });
        text::trace(out, trace.serial.0, trace.thread, frames)?;
    }
    Ok(())
}

pub(super) fn sites(out: &mut dyn Write, sites: &Sites) -> io::Result<()> {
    let order = if sites.by_allocation { text::SiteOrder::Allocated } else { text::SiteOrder::Live };
    text::sites_begin(out, order, &ctime(sites.date.as_deref()))?;
    for (rank, site) in (1u64..).zip(&sites.rows) {
        let row = text::SiteRow {
            rank,
            percent: (site.self_percent, site.accumulated_percent),
            live_bytes: site.live_bytes,
            live_objects: site.live_instances,
            allocated_bytes: site.allocated_bytes,
            allocated_objects: site.allocated_instances,
            trace: site.trace.0,
            class: &site.class,
        };
        text::site(out, &row)?;
    }
    text::sites_end(out)
}

pub(super) fn samples(out: &mut dyn Write, profile: &Profile, samples: &Samples) -> io::Result<()> {
    let mut accumulated = 0.0;
    let rows = (1u64..).zip(&samples.rows).map(|(rank, (trace, count))| {
        let percent = percent(*count, samples.total);
        accumulated += percent;
        let frame = profile.traces.get(*trace).and_then(|trace| profile.traces.frames(trace).next());
        text::CostRow {
            rank,
            percent: (percent, accumulated),
            count: *count,
            trace: trace.0,
            method: frame.map(|frame| (frame.class.as_deref(), frame.method.as_deref())),
        }
    });
    text::costs(out, text::Costs::Samples, samples.total, &ctime(samples.date.as_deref()), rows)
}
