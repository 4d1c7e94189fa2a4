//! The tables `sites`, `samples` and `traces`: facts recorded by a profiler.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_base::dictionary::names;
use hprof_index::Quiet;
use hprof_model::threads::frames::NATIVE;
use hprof_recordings::profile::binary::{self, Want};
use hprof_recordings::profile::{Profile, Traces};
use hprof_recordings::{cpu, sites};

fn profile(context: &Context<'_>, sites: bool) -> io::Result<Profile> {
    binary::read(context.dump.heap, Want { sites, traces: true, ..Want::default() }, &Quiet)
        .map_err(io::Error::other)
}

fn trace() -> Column {
    Column::of(names::TRACE)
}

fn method() -> Column {
    Column::of(names::METHOD).or_null("the trace has no frames, or is not in the dump")
}

/// Returns the definition of `sites`.
pub(crate) fn sites() -> Definition {
    Definition {
        name: "sites".into(),
        meaning: "Allocation site of objects of a class, as `sites` shows; empty for dumps without allocation traces".into(),
        order: "as `sites` lists them: by live bytes, or as recorded".into(),
        columns: vec![
            Column::of(names::RANK),
            Column::of(names::CLASS).few(),
            trace(),
            Column::of(names::LIVE_BYTES),
            Column::of(names::LIVE_INSTANCES),
            Column::of(names::ALLOCATED_BYTES),
            Column::of(names::ALLOCATED_INSTANCES),
            Column::of(names::ORIGIN).few(),
            method(),
        ],
    }
}

/// Makes the rows of `sites`.
pub(crate) fn make_sites(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let mut profile = profile(context, true)?;
    // HotSpot gives all objects the trace 1, which is a placeholder: the histogram contains the same.
    if profile.sites.is_none() && context.dump.summary.facts().max_trace.get() > 1 {
        profile.sites =
            binary::sites_of_objects(context.dump.heap, &context.sizes, &Quiet).map_err(io::Error::other)?;
    }
    let Some(of) = &profile.sites else { return Ok(()) };
    for row in sites::sites(of, &profile.traces, &sites::SiteQuery::default()).rows {
        let site = row.site;
        rows.count(row.rank)
            .text(&*site.class)
            .count(u64::from(site.trace.0))
            .count(site.live_bytes)
            .count(site.live_instances)
            .count(site.allocated_bytes)
            .count(site.allocated_instances)
            .text(of.origin.name())
            .text(row.method.as_deref())
            .end();
    }
    Ok(())
}

/// Returns the definition of `samples`.
pub(crate) fn samples() -> Definition {
    Definition {
        name: "samples".into(),
        meaning: "Number of samples of a stack trace, as `cpu` shows; empty for dumps without CPU samples"
            .into(),
        order: "by samples, most first".into(),
        columns: vec![
            Column::of(names::RANK),
            trace(),
            Column::of(names::SAMPLES),
            Column::of(names::SELF_PERCENT),
            Column::of(names::ACCUMULATED_PERCENT),
            method(),
        ],
    }
}

/// Makes the rows of `samples`.
pub(crate) fn make_samples(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let profile = profile(context, false)?;
    let Some(samples) = &profile.samples else { return Ok(()) };
    for row in cpu::by_trace(samples, &profile.traces, &cpu::CpuQuery::default()).rows {
        rows.count(row.rank)
            .count(u64::from(row.trace.0))
            .count(row.samples)
            .real(row.self_percent)
            .real(row.accumulated_percent)
            .text(row.method.as_deref())
            .end();
    }
    Ok(())
}

/// Returns the definition of `traces`.
pub(crate) fn traces() -> Definition {
    let unknown = "the dump does not say";
    Definition {
        name: "traces".into(),
        meaning: "A frame of a stack trace, of threads and of allocations; one row without a frame for an empty trace".into(),
        order: "traces as in the file; frames innermost first".into(),
        columns: vec![
            Column::of(names::TRACE),
            Column::of(names::THREAD_SERIAL).or_null("the trace names none"),
            Column::of(names::FRAME_NUMBER)
                .or_null("the trace is empty"),
            Column::of(names::CLASS).few().or_null(unknown),
            Column::of(names::METHOD).few().or_null(unknown),
            Column::of(names::SOURCE).few().or_null(unknown),
            Column::of(names::LINE).or_null(unknown),
            Column::of(names::IS_NATIVE),
        ],
    }
}

/// Makes the rows of `traces`.
pub(crate) fn make_traces(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let traces: Traces = profile(context, false)?.traces;
    for trace in traces.iter() {
        let mut frames = (0u64..).zip(traces.frames(trace)).map(Some).peekable();
        let none = frames.peek().is_none().then_some(None);
        for frame in frames.chain(none) {
            let number = frame.map(|(number, _)| number);
            let frame = frame.map(|(_, frame)| frame);
            rows.count(u64::from(trace.serial.0))
                .count(Some(trace.thread).filter(|serial| *serial > 0).map(u64::from))
                .count(number)
                .text(frame.and_then(|frame| frame.class.as_deref()))
                .text(frame.and_then(|frame| frame.method.as_deref()))
                .text(frame.and_then(|frame| frame.source.as_deref()))
                .count(frame.and_then(|frame| frame.line()).map(u64::from))
                .boolean(frame.is_some_and(|frame| frame.line == NATIVE))
                .end();
        }
    }
    Ok(())
}
