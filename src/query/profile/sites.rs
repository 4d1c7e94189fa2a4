//! Allocation sites.

/// Where the figures of sites come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The writer counted allocations: ALLOC SITES records, or SITES of a text.
    Recorded,
    /// Counted here, over the objects of the heap dump. What was allocated and freed before is not known: allocated is
    /// what is there.
    Objects,
}

/// A class and an allocation stack trace, and what was allocated there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Site {
    /// Class in Java source form.
    pub class: String,
    /// Trace serial number.
    pub trace: u32,
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
    /// Whether the file is ordered by allocated bytes instead.
    pub by_allocation: bool,
    /// When they were written down, as [`super::Profile::created`].
    pub date: Option<String>,
}
