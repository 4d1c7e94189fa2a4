//! Allocation sites.

use std::sync::Arc;

use crate::recordings::percent::two_decimals;
use hprof_parser::TraceSerial;

/// Where the figures of sites come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The writer counted allocations: ALLOC SITES records, or SITES of a text.
    Recorded,
    /// Counted here, over the objects of the heap dump. What was allocated and freed before is not known: allocated is
    /// what is there.
    Objects,
}

impl Origin {
    /// The name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Objects => "objects",
        }
    }
}

/// A class and an allocation stack trace, and what was allocated there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// Class in Java source form.
    pub class: Arc<str>,
    /// Trace serial number.
    pub trace: TraceSerial,
    /// Bytes of its objects that are alive.
    pub live_bytes: u64,
    /// Its objects that are alive.
    pub live_instances: u64,
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Objects ever allocated.
    pub allocated_instances: u64,
    /// Its part of all live bytes, to two decimals, as the reports print it.
    pub self_percent: f64,
    /// The part of this site and all that stand before it in the report, to two decimals.
    pub accumulated_percent: f64,
}

/// Allocation sites.
#[derive(Debug, Clone, PartialEq)]
pub struct Sites {
    /// Where the figures come from.
    pub origin: Origin,
    /// The sites, most live bytes first, or in the order of the file that they come from.
    pub rows: Vec<Site>,
    /// Sums over all sites, also those that the writer left out; `class` and `trace` say nothing. `None` if they are
    /// not known (a text states only percentages).
    pub total: Option<Site>,
    /// `true` if the file is ordered by allocated bytes instead.
    pub by_allocation: bool,
    /// When they were written down, as [`super::Profile::created`].
    pub date: Option<String>,
}

impl Sites {
    /// Gives each row its part of all live bytes, in the order of the rows.
    pub(super) fn fill_percentages(&mut self) {
        let sum = self.rows.iter().fold(0u64, |sum, site| sum.saturating_add(site.live_bytes));
        let whole = self.total.as_ref().map_or(sum, |total| total.live_bytes);
        let mut accumulated = 0.0;
        for site in &mut self.rows {
            let part = ratio(site.live_bytes, whole);
            accumulated += part;
            site.self_percent = percent(part);
            site.accumulated_percent = percent(accumulated);
        }
    }
}

/// The part of a whole; of nothing it is nothing.
#[allow(clippy::cast_precision_loss)] // As the agent does it; two decimals are shown.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A ratio as per cent with the two decimals that the reports print.
pub(crate) fn percent(ratio: f64) -> f64 {
    two_decimals(ratio * 100.0)
}
