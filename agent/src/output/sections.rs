//! Sections of a report: SITES, CPU SAMPLES, CPU TIME, calls, MONITOR TIME.

use hprof_format::binary::{self, Records, Totals};
use hprof_format::commands::SiteFlags;
use hprof_format::percent::percent;
use hprof_format::text;
use rustc_hash::FxHashMap;

use super::{Output, serial};
use crate::commands::SitesRequest;
use crate::names;
use crate::options::Format;
use crate::record::samples::Samples;
use crate::record::sites::{SiteCounts, SiteKey, Weight};
use crate::state::AgentState;

/// All sites with their totals.
#[derive(Debug, Default)]
pub struct AllSites {
    counts: FxHashMap<SiteKey, SiteCounts>,
    totals: Totals,
}

impl AllSites {
    /// Creates the sites from counts of live objects. Live objects whose allocation was not recorded, because they are older
    /// than the agent, are counted as allocated.
    pub fn new(state: &AgentState, live: &FxHashMap<SiteKey, Weight>) -> Self {
        let mut all: FxHashMap<SiteKey, SiteCounts> = FxHashMap::default();
        for (key, weight) in live {
            all.entry(*key).or_default().live = state.sampling.round_weight(*weight);
        }
        for (key, weight) in state.sites.allocations() {
            all.entry(key).or_default().allocated = state.sampling.round_weight(weight);
        }
        let mut totals = Totals::default();
        for counts in all.values_mut() {
            // With sampling, rounding can make the number of allocated objects smaller than the number of live ones.
            counts.allocated.objects = counts.allocated.objects.max(counts.live.objects);
            counts.allocated.bytes = counts.allocated.bytes.max(counts.live.bytes);
            totals.live_objects += counts.live.objects;
            totals.live_bytes += counts.live.bytes;
            totals.allocated_objects += counts.allocated.objects;
            totals.allocated_bytes += counts.allocated.bytes;
        }
        all.retain(|_, counts| counts.allocated.objects > 0);
        Self { counts: all, totals }
    }

    /// Returns the sites that the flags select, in their order. `written` are the sites that were written last.
    fn rows(&self, flags: SiteFlags, written: &FxHashMap<SiteKey, SiteCounts>) -> Vec<(SiteKey, SiteCounts)> {
        let mut rows: Vec<_> = self.counts.iter().map(|(key, counts)| (*key, *counts)).collect();
        if flags.has(SiteFlags::INCREMENTAL) {
            rows.retain(|(key, counts)| written.get(key) != Some(counts));
            // Objects older than the agent were counted only while they were alive.
            let gone = written.keys().filter(|key| !self.counts.contains_key(key));
            rows.extend(gone.map(|key| (*key, SiteCounts::default())));
        }
        rows.sort_unstable_by_key(|((class, trace), counts)| {
            let (live, allocated) = (u64::MAX - counts.live.bytes, u64::MAX - counts.allocated.bytes);
            let order =
                if flags.has(SiteFlags::BY_ALLOCATION) { (allocated, live) } else { (live, allocated) };
            (order, *trace, *class)
        });
        rows
    }

    /// Returns the totals of all sites.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

impl Output {
    /// Writes SITES or ALLOC SITES with the requested rows. Returns the number of rows whose numbers exceed the format.
    pub fn sites(&mut self, state: &AgentState, sites: AllSites, request: SitesRequest) -> usize {
        let mut out = Vec::new();
        let SitesRequest { flags, cutoff } = request;
        let rows = sites.rows(flags, &self.sites);
        let total = sites.totals.live_bytes;
        // The old agent compared only live bytes, and omitted sites with the most allocations if all of their objects were
        // dead.
        let allocated = sites.totals.allocated_bytes;
        let is_large = |counts: &SiteCounts| {
            let live = percent(counts.live.bytes, total) >= cutoff * 100.0;
            live || allocated > 0 && percent(counts.allocated.bytes, allocated) >= cutoff * 100.0
        };
        // A site that was large is written once more when it is not, so that readers know.
        let is_incremental = flags.has(SiteFlags::INCREMENTAL);
        let mut wanted = rows;
        wanted.retain(|(key, counts)| {
            is_large(counts) || is_incremental && self.sites.get(key).is_some_and(is_large)
        });
        let wanted = wanted.iter();
        let mut saturated = 0;
        match self.format() {
            Format::Text => {
                let order = if flags.has(SiteFlags::BY_ALLOCATION) {
                    text::SiteOrder::Allocated
                } else {
                    text::SiteOrder::Live
                };
                let _ = text::sites_begin(&mut out, order, &self.date());
                let mut accumulated = 0.0;
                for (rank, ((class, trace), counts)) in (1..).zip(wanted) {
                    let class = state.classes.get(*class);
                    let class = class.map_or_else(String::new, |class| names::java_class(&class.signature));
                    let part = percent(counts.live.bytes, total);
                    accumulated += part;
                    let row = text::SiteRow {
                        rank,
                        percent: (part, accumulated),
                        live_bytes: counts.live.bytes,
                        live_objects: counts.live.objects,
                        allocated_bytes: counts.allocated.bytes,
                        allocated_objects: counts.allocated.objects,
                        trace: serial(*trace),
                        class: &class,
                    };
                    let _ = text::site(&mut out, &row);
                    self.flush(&mut out, super::BUFFER);
                }
                let _ = text::sites_end(&mut out);
            }
            Format::Binary => {
                let rows: Vec<_> = wanted
                    .filter_map(|((class, trace), counts)| {
                        let class = state.classes.get(*class)?;
                        let totals = Totals {
                            live_bytes: counts.live.bytes,
                            live_objects: counts.live.objects,
                            allocated_bytes: counts.allocated.bytes,
                            allocated_objects: counts.allocated.objects,
                        };
                        let array = array_indicator(&class.signature);
                        Some(binary::Site {
                            array,
                            class: self.class_serial(class.serial),
                            trace: serial(*trace),
                            totals,
                        })
                    })
                    .collect();
                saturated = rows.iter().filter(|row| row.saturates()).count();
                // The field in the format has only four bytes, which suffice for a cutoff.
                #[allow(clippy::cast_possible_truncation)]
                let cutoff = cutoff as f32;
                Records::new(&mut out, self.micros()).alloc_sites(flags, cutoff, &sites.totals, &rows);
            }
        }
        self.flush(&mut out, 0);
        // Only commands, which arrive over a socket, request what changed.
        if state.options.net.is_some() {
            self.sites = sites.counts;
        }
        saturated
    }

    /// Writes HEAP SUMMARY to a binary file; a text has none.
    pub fn heap_summary(&mut self, totals: &Totals) {
        if self.format() == Format::Binary {
            let mut out = Vec::new();
            Records::new(&mut out, self.micros()).heap_summary(totals);
            self.flush(&mut out, 0);
        }
    }

    /// Writes CPU SAMPLES with the rows above the cutoff.
    pub fn samples(&mut self, state: &AgentState, samples: &Samples, cutoff: f64) {
        let (total, rows) = samples.counts();
        let rows: Vec<_> =
            rows.into_iter().filter(|(_, count)| percent(*count, total) >= cutoff * 100.0).collect();
        let mut out = Vec::new();
        match self.format() {
            Format::Text => {
                let rows: Vec<_> = rows.into_iter().map(|(trace, count)| (trace, count, count)).collect();
                self.costs(state, text::Costs::Samples, (total, total), &rows, &mut out);
            }
            Format::Binary => {
                let rows: Vec<_> = rows.into_iter().map(|(trace, count)| (count, serial(trace))).collect();
                Records::new(&mut out, self.micros()).cpu_samples(total, &rows);
            }
        }
        self.flush(&mut out, 0);
    }

    /// Writes rows of trace, count and cost. `total` is the printed total; percentages refer to the sum of costs.
    fn costs(
        &self,
        state: &AgentState,
        section: text::Costs,
        (printed, total): (u64, u64),
        rows: &[(u32, u64, u64)],
        out: &mut Vec<u8>,
    ) {
        let traces: Vec<_> = rows.iter().map(|(trace, ..)| state.traces.get(*trace)).collect();
        let mut accumulated = 0.0;
        let rows = (1..).zip(rows).zip(&traces).map(|((rank, (trace, count, cost)), of)| {
            let part = percent(*cost, total);
            accumulated += part;
            let place = of.as_ref().and_then(|of| of.places.first());
            text::CostRow {
                rank,
                percent: (part, accumulated),
                count: *count,
                trace: serial(*trace),
                method: place.map(|place| {
                    let frame = super::frame(place);
                    (frame.class, frame.method)
                }),
            }
        });
        let _ = text::costs(out, section, printed, &self.date(), rows);
    }

    /// Writes CPU TIME (ms) to a text file; a binary file has none. Rows are trace, calls and nanoseconds without callees,
    /// sorted by nanoseconds in descending order.
    pub fn times(&mut self, state: &AgentState, rows: &[(u32, u64, u64)], cutoff: f64) {
        let total: u64 = rows.iter().map(|(_, _, nanos)| nanos).sum();
        let rows: Vec<_> =
            rows.iter().filter(|(_, _, nanos)| percent(*nanos, total) >= cutoff * 100.0).copied().collect();
        let mut out = Vec::new();
        self.costs(state, text::Costs::Times, (total / 1_000_000, total), &rows, &mut out);
        self.flush(&mut out, 0);
    }

    /// Writes the table of `cpu=old`. Rows are calls, callee, caller and nanoseconds.
    pub fn calls(&mut self, rows: &[(u64, String, Option<String>, u64)]) {
        let mut out = Vec::new();
        let _ = text::calls_title(&mut out);
        for (count, callee, caller, nanos) in rows {
            let _ = text::call(&mut out, *count, Some(callee), caller.as_deref(), nanos / 1_000_000);
        }
        self.flush(&mut out, 0);
    }

    /// Writes MONITOR TIME with the rows above the cutoff; nothing if no thread had to wait.
    pub fn contention(&mut self, state: &AgentState, cutoff: f64) {
        let rows = state.monitors.rows();
        let total: u64 = rows.iter().map(|(_, _, lost)| lost.nanos).sum();
        if total < 1_000_000 {
            return;
        }
        let rows: Vec<_> = (rows.into_iter())
            .filter(|(_, _, lost)| percent(lost.nanos, total) >= cutoff * 100.0)
            .map(|(trace, signature, lost)| (trace, names::java_class(&signature), lost))
            .collect();
        let mut accumulated = 0.0;
        let lines = (1..).zip(&rows).map(|(rank, (trace, class, lost))| {
            let part = percent(lost.nanos, total);
            accumulated += part;
            let (count, trace) = (lost.count, serial(*trace));
            text::ContentionRow { rank, percent: (part, accumulated), count, trace, class }
        });
        let mut out = Vec::new();
        let _ = text::contention(&mut out, total / 1_000_000, &self.date(), lines);
        self.flush(&mut out, 0);
    }

    /// Writes CONTROL SETTINGS to a binary file; a text has none.
    pub fn control_settings(&mut self, state: &AgentState, sampling: bool) {
        if self.format() == Format::Binary {
            let flags = u32::from(state.records_sites()) | u32::from(sampling) << 1;
            let depth = u16::try_from(state.depth()).unwrap_or(u16::MAX);
            let mut out = Vec::new();
            Records::new(&mut out, self.micros()).control_settings(flags, depth);
            self.flush(&mut out, 0);
        }
    }
}

/// Returns the array indicator in ALLOC SITES: the basic type of the elements, 2 for object arrays, 0 for other classes.
fn array_indicator(signature: &str) -> u8 {
    match signature.strip_prefix('[').and_then(|element| element.bytes().next()) {
        None => 0,
        Some(element) => basic_type(element),
    }
}

/// Returns the basic type for the first character of a signature.
pub fn basic_type(signature: u8) -> u8 {
    match signature {
        b'Z' => 4,
        b'C' => 5,
        b'F' => 6,
        b'D' => 7,
        b'B' => 8,
        b'S' => 9,
        b'I' => 10,
        b'J' => 11,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(live: u64, allocated: u64) -> SiteCounts {
        let weight = |bytes| Weight { objects: bytes / 8, bytes };
        SiteCounts { live: weight(live), allocated: weight(allocated) }
    }

    #[test]
    fn flags_select_and_sort_sites() {
        let written =
            FxHashMap::from_iter([((8, 1), counts(16, 16)), ((8, 2), counts(8, 8)), ((8, 3), counts(8, 8))]);
        let now = [((8, 1), counts(16, 16)), ((8, 2), counts(0, 8)), ((8, 4), counts(8, 80))];
        let sites = AllSites { counts: FxHashMap::from_iter(now), totals: Totals::default() };
        let traces = |flags| {
            let rows = sites.rows(flags, &written).into_iter();
            rows.map(|((_, trace), counts)| (trace, counts.live.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(traces(SiteFlags::FORCE_GC), [(1, 16), (4, 8), (2, 0)]);
        assert_eq!(traces(SiteFlags::BY_ALLOCATION), [(4, 8), (1, 16), (2, 0)]);
        // Trace 3 is that of objects older than the agent, which have all died.
        assert_eq!(traces(SiteFlags::INCREMENTAL), [(4, 8), (2, 0), (3, 0)]);
    }
}
