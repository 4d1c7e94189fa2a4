//! Facts of recorded rows: traces, samples and allocation sites.

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

use crate::allocation_sites::AllocationSite;
use crate::cpu::RankedSamples;
use crate::profile::Trace;
use crate::sites::RankedSite;

impl Trace {
    /// Returns the facts of a trace, without its frames.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![Self::serial_fact(), Self::thread_fact()]
    }

    /// Returns the serial number as a fact.
    pub fn serial_fact() -> Fact<Self> {
        Fact::new(names::TRACE, |trace: &Self| trace.serial.into())
    }

    /// Returns the serial number of the thread as a fact.
    pub fn thread_fact() -> Fact<Self> {
        let thread = |trace: &Self| Some(trace.thread).filter(|thread| *thread != 0).into();
        Fact::new(names::THREAD_SERIAL, thread)
            .or_null("the trace has no thread: the agent records threads only with `thread=y`")
    }
}

impl RankedSamples {
    /// Returns the facts of the samples of a trace.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::RANK, |row: &Self| row.rank.into()),
            Fact::new(names::TRACE, |row: &Self| row.trace.into()),
            Fact::new(names::SAMPLES, |row: &Self| row.samples.into()),
            Fact::new(names::SELF_PERCENT, |row: &Self| row.self_percent.into()),
            Fact::new(names::ACCUMULATED_PERCENT, |row: &Self| row.accumulated_percent.into()),
            Fact::new(names::METHOD, |row: &Self| row.method.as_ref().into()).or_null(nulls::NO_FRAME),
        ]
    }
}

impl RankedSite {
    /// Returns `count`; `None` for a site that is estimated from samples, for which this count is unknown.
    fn unless_sampled(&self, count: u64) -> Option<u64> {
        (self.site.samples == 0).then_some(count)
    }

    /// Returns the facts of an allocation site.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::RANK, |row: &Self| row.rank.into()),
            Fact::new(names::CLASS, |row: &Self| (&*row.site.class).into()),
            Fact::new(names::TRACE, |row: &Self| row.site.trace.into()),
            Fact::new(names::LIVE_BYTES, |row: &Self| row.unless_sampled(row.site.live_bytes).into())
                .or_null(nulls::SAMPLED),
            Fact::new(names::LIVE_INSTANCES, |row: &Self| row.unless_sampled(row.site.live_instances).into())
                .or_null(nulls::SAMPLED),
            Fact::new(names::ALLOCATED_BYTES, |row: &Self| row.site.allocated_bytes.into()),
            Fact::new(names::ALLOCATED_INSTANCES, |row: &Self| {
                row.unless_sampled(row.site.allocated_instances).into()
            })
            .or_null(nulls::SAMPLED),
            Fact::new(names::SELF_PERCENT, |row: &Self| row.self_percent.into()),
            Fact::new(names::ACCUMULATED_PERCENT, |row: &Self| row.accumulated_percent.into()),
            Fact::new(names::METHOD, |row: &Self| row.method.as_ref().into()).or_null(nulls::NO_FRAME),
            Fact::new(names::SAMPLES, |row: &Self| {
                Some(row.site.samples).filter(|samples| *samples > 0).into()
            })
            .or_null("the site is not estimated from samples"),
        ]
    }
}

impl AllocationSite {
    /// Returns the facts of a site.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![Self::frame_fact(), Self::rate_fact()]
    }

    /// Returns the frame as a fact.
    pub fn frame_fact() -> Fact<Self> {
        Fact::new(names::FRAME, |site: &Self| site.frame.as_ref().map(ToString::to_string).into())
            .or_null("the samples have no stack")
    }

    /// Returns the allocation rate as a fact.
    pub fn rate_fact() -> Fact<Self> {
        Fact::new(names::RATE, |site: &Self| site.rate().name().into())
    }
}
