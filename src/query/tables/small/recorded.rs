//! The tables `sites`, `samples` and `traces`: facts recorded by a profiler.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_base::dictionary::names;
use hprof_base::fact::Fact;
use hprof_index::Quiet;
use hprof_model::threads::frames::Frame;
use hprof_recordings::cpu::RankedSamples;
use hprof_recordings::profile::binary::{self, Want};
use hprof_recordings::profile::{Profile, Traces};
use hprof_recordings::{cpu, sites};
use hprof_values::TraceSerial;

fn profile(context: &Context<'_>, sites: bool) -> io::Result<Profile> {
    binary::read(context.dump.heap, Want { sites, traces: true, ..Want::default() }, &Quiet)
        .map_err(io::Error::other)
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
            Column::of(names::TRACE),
            Column::of(names::LIVE_BYTES),
            Column::of(names::LIVE_INSTANCES),
            Column::of(names::ALLOCATED_BYTES),
            Column::of(names::ALLOCATED_INSTANCES),
            Column::of(names::ORIGIN).few(),
            Column::of(names::METHOD).or_null("the trace has no frame, or is not in the file"),
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

/// Returns the columns of `samples`.
fn sample_columns() -> FactColumns<'static, RankedSamples> {
    let shown = [
        names::RANK,
        names::TRACE,
        names::SAMPLES,
        names::SELF_PERCENT,
        names::ACCUMULATED_PERCENT,
        names::METHOD,
    ];
    let facts = fact_columns::columns(RankedSamples::facts(), |row: &RankedSamples| row);
    FactColumns::new(&shown, &[], facts)
}

/// Returns the definition of `samples`.
pub(crate) fn samples() -> Definition {
    Definition {
        name: "samples".into(),
        meaning: "Number of samples of a stack trace, as `cpu` shows; empty for dumps without CPU samples"
            .into(),
        order: "by samples, most first".into(),
        columns: sample_columns().definitions(),
    }
}

/// Makes the rows of `samples`.
pub(crate) fn make_samples(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let profile = profile(context, false)?;
    let Some(samples) = &profile.samples else { return Ok(()) };
    let columns = sample_columns();
    for row in &cpu::by_trace(samples, &profile.traces, &cpu::CpuQuery::default()).rows {
        rows.add(&columns, row, context.dump.summary);
    }
    Ok(())
}

/// Row of `traces`: a frame, or an empty trace.
struct TraceEntry {
    trace: TraceSerial,
    thread: Option<u32>,
    number: Option<u64>,
    frame: Frame,
}

/// Returns the columns of `traces`.
fn trace_columns() -> FactColumns<'static, TraceEntry> {
    let own = vec![
        Fact::new(names::TRACE, |entry: &TraceEntry| entry.trace.into()),
        Fact::new(names::THREAD_SERIAL, |entry: &TraceEntry| entry.thread.into())
            .or_null("the trace names none"),
        Fact::new(names::FRAME_NUMBER, |entry: &TraceEntry| entry.number.into())
            .or_null("the trace is empty"),
    ];
    let mut facts = fact_columns::columns(Frame::facts(), |entry: &TraceEntry| &entry.frame);
    facts.extend(fact_columns::columns(own, |entry| entry));
    let shown = [
        names::TRACE,
        names::THREAD_SERIAL,
        names::FRAME_NUMBER,
        names::CLASS,
        names::METHOD,
        names::SOURCE,
        names::LINE,
        names::IS_NATIVE,
    ];
    FactColumns::new(&shown, &[names::CLASS, names::METHOD, names::SOURCE], facts)
}

/// Returns the definition of `traces`.
pub(crate) fn traces() -> Definition {
    Definition {
        name: "traces".into(),
        meaning: "A frame of a stack trace, of threads and of allocations; one row without a frame for an empty trace".into(),
        order: "traces as in the file; frames innermost first".into(),
        columns: trace_columns().definitions(),
    }
}

/// Makes the rows of `traces`.
pub(crate) fn make_traces(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let traces: Traces = profile(context, false)?.traces;
    let columns = trace_columns();
    for trace in traces.iter() {
        let mut frames = (0u64..).zip(traces.frames(trace)).map(Some).peekable();
        let none = frames.peek().is_none().then_some(None);
        for frame in frames.chain(none) {
            let entry = TraceEntry {
                trace: trace.serial,
                thread: Some(trace.thread).filter(|serial| *serial > 0),
                number: frame.map(|(number, _)| number),
                frame: frame.map_or(Frame::UNKNOWN, |(_, frame)| frame.clone()),
            };
            rows.add(&columns, &entry, context.dump.summary);
        }
    }
    Ok(())
}
