//! Allocation sites of a profile.

use std::sync::Arc;

use super::events::SiteEvent;
use hprof_format::percent::{ratio, two_decimals};
use hprof_values::TraceSerial;

/// Source of the figures of allocation sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Counted by the writer: ALLOC SITES records, or SITES of a text.
    Recorded,
    /// Counted over the objects of the heap dump. Freed objects are unknown, so allocated figures equal live ones.
    Objects,
    /// Estimated from samples, as Flight Recorder takes them. Live figures and numbers of objects are unknown and set to 0.
    Sampled,
}

impl Origin {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Objects => "objects",
            Self::Sampled => "sampled",
        }
    }
}

/// Allocation site: a class and an allocation stack trace, with figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// Class in Java source form.
    pub class: Arc<str>,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Bytes of live objects.
    pub live_bytes: u64,
    /// Number of live objects.
    pub live_instances: u64,
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Number of objects ever allocated.
    pub allocated_instances: u64,
    /// Number of samples from which the figures are estimated; 0 if they are exact.
    pub samples: u64,
    /// Percentage of all live bytes, to two decimals, as the reports print it.
    pub self_percent: f64,
    /// Percentage of all live bytes in this site and all sites before it in the report, to two decimals.
    pub accumulated_percent: f64,
}

/// Allocation sites of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Sites {
    /// Source of the figures.
    pub origin: Origin,
    /// Sites, most live bytes first, or in the order of the file.
    pub rows: Vec<Site>,
    /// Sums over all sites, including sites that the writer left out; `class` and `trace` are meaningless. `None` if unknown (a
    /// text contains only percentages).
    pub total: Option<Site>,
    /// Events that were counted, in recordings of Flight Recorder.
    pub event: Option<SiteEvent>,
    /// `true` if the file orders sites by allocated bytes instead of live bytes.
    pub by_allocation: bool,
    /// Time of writing, in the format of [`super::Profile::created`].
    pub date: Option<String>,
}

impl Sites {
    /// Sets the percentages of all rows, in the order of the rows.
    pub(super) fn fill_percentages(&mut self) {
        let bytes = |site: &Site| match self.origin {
            Origin::Sampled => site.allocated_bytes,
            Origin::Recorded | Origin::Objects => site.live_bytes,
        };
        let sum = self.rows.iter().fold(0u64, |sum, site| sum.saturating_add(bytes(site)));
        let whole = self.total.as_ref().map_or(sum, bytes);
        let mut accumulated = 0.0;
        for site in &mut self.rows {
            let part = ratio(bytes(site), whole);
            accumulated += part;
            site.self_percent = percent(part);
            site.accumulated_percent = percent(accumulated);
        }
    }
}

/// Returns a ratio in percent with two decimals, as the reports print it.
pub(crate) fn percent(ratio: f64) -> f64 {
    two_decimals(ratio * 100.0)
}
