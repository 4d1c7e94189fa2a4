//! The tables `sites`, `samples` and `traces`: facts recorded by a profiler.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_base::dictionary::names;
use hprof_base::fact::Fact;
use hprof_index::Quiet;
use hprof_model::threads::frames::Frame;
use hprof_recordings::cpu::RankedSamples;
use hprof_recordings::profile::binary::{self, Want};
use hprof_recordings::profile::{Origin, Profile, Trace, Traces};
use hprof_recordings::sites::RankedSite;
use hprof_recordings::{cpu, sites};

fn profile(context: &TableContext<'_>, sites: bool) -> io::Result<Profile> {
    binary::read(context.dump.heap, Want { sites, traces: true, ..Want::default() }, &Quiet)
        .map_err(io::Error::other)
}

/// Row of `sites`.
struct SiteEntry {
    row: RankedSite,
    origin: Origin,
}

/// Returns the columns of `sites`.
fn site_columns() -> FactColumns<'static, SiteEntry> {
    let own = vec![Fact::new(names::ORIGIN, |entry: &SiteEntry| entry.origin.name().into())];
    let mut facts = fact_columns::columns(RankedSite::facts(), |entry: &SiteEntry| &entry.row);
    facts.extend(fact_columns::own_columns(own));
    let shown = [
        names::RANK,
        names::CLASS,
        names::TRACE,
        names::LIVE_BYTES,
        names::LIVE_INSTANCES,
        names::ALLOCATED_BYTES,
        names::ALLOCATED_INSTANCES,
        names::ORIGIN,
        names::METHOD,
    ];
    // A heap dump has no samples of allocations.
    let known = [names::LIVE_BYTES, names::LIVE_INSTANCES, names::ALLOCATED_INSTANCES];
    FactColumns::new(&shown, &[names::CLASS, names::ORIGIN], facts).never_null(&known)
}

/// Returns the definition of `sites`.
pub(crate) fn sites() -> Definition {
    Definition {
        name: "sites".into(),
        meaning: "An allocation site of objects of a class, as in `sites`; empty for dumps without allocation traces".into(),
        order: "as in `sites`: by live bytes, or as recorded".into(),
        columns: site_columns().definitions(),
    }
}

/// Adds the rows of `sites`.
pub(crate) fn make_sites(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let mut profile = profile(context, true)?;
    // HotSpot gives all objects the trace 1, which is a placeholder: the histogram contains the same.
    if profile.sites.is_none() && context.dump.summary.facts().max_trace.get() > 1 {
        profile.sites =
            binary::sites_of_objects(context.dump.heap, &context.sizes, &Quiet).map_err(io::Error::other)?;
    }
    let Some(of) = &profile.sites else { return Ok(()) };
    let columns = site_columns();
    for row in sites::sites(of, &profile.traces, &sites::SiteQuery::default()).rows {
        columns.add_with_names(&SiteEntry { row, origin: of.origin }, context.dump.summary, rows);
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
    let facts = fact_columns::own_columns(RankedSamples::facts());
    FactColumns::new(&shown, &[], facts)
}

/// Returns the definition of `samples`.
pub(crate) fn samples() -> Definition {
    Definition {
        name: "samples".into(),
        meaning: "The number of samples of a stack trace, as in `cpu`; empty for dumps without CPU samples"
            .into(),
        order: "by samples, largest number first".into(),
        columns: sample_columns().definitions(),
    }
}

/// Adds the rows of `samples`.
pub(crate) fn make_samples(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let profile = profile(context, false)?;
    let Some(samples) = &profile.samples else { return Ok(()) };
    let columns = sample_columns();
    for row in &cpu::by_trace(samples, &profile.traces, &cpu::CpuQuery::default()).rows {
        columns.add_with_names(row, context.dump.summary, rows);
    }
    Ok(())
}

/// Row of `traces`: a frame, or an empty trace.
struct TraceEntry<'t> {
    trace: &'t Trace,
    number: Option<u64>,
    frame: Frame,
}

/// Returns the columns of `traces`.
fn trace_columns<'t>() -> FactColumns<'t, TraceEntry<'t>> {
    let own = vec![
        Fact::new(names::FRAME_NUMBER, |entry: &TraceEntry<'t>| entry.number.into())
            .or_null("the trace is empty"),
    ];
    let mut facts = fact_columns::columns(Trace::facts(), |entry: &TraceEntry<'t>| entry.trace);
    facts.extend(fact_columns::columns(Frame::facts(), |entry: &TraceEntry<'t>| &entry.frame));
    facts.extend(fact_columns::own_columns(own));
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
        meaning: "A frame of a stack trace of a thread or an allocation; an empty trace has one row without a frame".into(),
        order: "by trace as in the file; within a trace innermost frame first".into(),
        columns: trace_columns().definitions(),
    }
}

/// Adds the rows of `traces`.
pub(crate) fn make_traces(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let traces: Traces = profile(context, false)?.traces;
    let columns = trace_columns();
    for trace in traces.iter() {
        let mut frames = (0u64..).zip(traces.frames(trace)).map(Some).peekable();
        let none = frames.peek().is_none().then_some(None);
        for frame in frames.chain(none) {
            let entry = TraceEntry {
                trace,
                number: frame.map(|(number, _)| number),
                frame: frame.map_or(Frame::UNKNOWN, |(_, frame)| frame.clone()),
            };
            columns.add_with_names(&entry, context.dump.summary, rows);
        }
    }
    Ok(())
}
