//! Commands about recordings of a profiler.

pub(super) mod columns;
pub(crate) mod convert;
pub(crate) mod cpu;
pub(crate) mod cputime;
pub(crate) mod flamegraph;
pub(crate) mod monitors;
mod no_match;
mod site_events;
pub(crate) mod sites;
pub(crate) mod summary;
mod times;
pub(crate) mod traces;
