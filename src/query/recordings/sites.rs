//! Query for allocation sites by class, method or trace.

use std::cmp::Reverse;

use super::profile::{Site, Sites, Traces};
use super::stack_filter::StackFilter;
use hprof_base::naming::pattern::{self, ClassPattern, MethodPattern};
use hprof_base::share::hundredths;
use hprof_base::sorting::SortRows;
use hprof_format::percent::ratio;
use hprof_values::TraceSerial;

/// Query for allocation sites.
#[derive(Debug, Clone, Default)]
pub struct SiteQuery {
    /// Patterns of classes; all if empty.
    pub classes: Vec<ClassPattern>,
    /// Patterns of methods, one of which must occur in the stack.
    pub methods: Vec<MethodPattern>,
    /// Serial numbers of traces; any if empty.
    pub traces: Vec<TraceSerial>,
    /// Minimum share of all live or all allocated bytes that a site needs, from 0 to 1.
    pub cutoff: f64,
    /// Order of the rows; `None` for the order of the file.
    pub sort_by: Option<SiteOrder>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Order of allocation sites. Equal rows stay in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteOrder {
    /// By live bytes, descending.
    Live,
    /// By live instances, descending.
    LiveInstances,
    /// By allocated bytes, descending.
    Allocated,
    /// By allocated instances, descending.
    AllocatedInstances,
    /// By class name.
    Class,
    /// By serial number of the trace.
    Trace,
}

/// Allocation site with its rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedSite {
    /// Rank among all sites, from 1: by the figure that rows are sorted by, else in the order of the file.
    pub rank: u64,
    /// Site with its figures.
    pub site: Site,
    /// Method of the innermost frame of the site's trace; for native memory, without async-profiler's own functions.
    pub method: Option<String>,
    /// Percentage of the figure by which rows are sorted, to two decimals; otherwise of live bytes, as in the file.
    pub self_percent: f64,
    /// Percentage of this row and all rows ranked before it, to two decimals.
    pub accumulated_percent: f64,
}

/// Sums over allocation sites.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of sites.
    pub rows: u64,
    /// Live bytes.
    pub live_bytes: u64,
    /// Live instances.
    pub live_instances: u64,
    /// Allocated bytes.
    pub allocated_bytes: u64,
    /// Allocated instances.
    pub allocated_instances: u64,
    /// Number of samples; if it is not 0, only allocated bytes are known.
    pub samples: u64,
}

/// Allocation sites that match a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SiteReport {
    /// Sites, at most `top`.
    pub rows: Vec<RankedSite>,
    /// Sums over all matching sites, including those beyond `top`.
    pub matching: Totals,
}

/// Returns the sites that match a query.
pub fn sites(sites: &Sites, traces: &Traces, question: &SiteQuery) -> SiteReport {
    let filter = StackFilter { methods: question.methods.clone(), ..StackFilter::default() };
    let stacks = filter.matcher(traces);
    let is_meant = |site: &Site| {
        (question.traces.is_empty() || question.traces.contains(&site.trace))
            && !is_below(site, sites.total.as_ref(), question.cutoff)
            && pattern::any_matches(&question.classes, &site.class)
            && stacks.matches(site.trace)
    };
    let mut all: Vec<&Site> = sites.rows.iter().collect();
    // Ranks are computed before rows are left out: they count all sites, as in the file.
    match question.sort_by {
        None | Some(SiteOrder::Class | SiteOrder::Trace) => {}
        Some(SiteOrder::Live) => all.sort_rows_by_key(|site| Reverse(site.live_bytes)),
        Some(SiteOrder::LiveInstances) => all.sort_rows_by_key(|site| Reverse(site.live_instances)),
        Some(SiteOrder::Allocated) => all.sort_rows_by_key(|site| Reverse(site.allocated_bytes)),
        Some(SiteOrder::AllocatedInstances) => all.sort_rows_by_key(|site| Reverse(site.allocated_instances)),
    }
    let mut found: Vec<(u64, &Site)> = (1..).zip(all).filter(|(_, site)| is_meant(site)).collect();
    match question.sort_by {
        Some(SiteOrder::Class) => found.sort_rows_by(|(_, a), (_, b)| a.class.cmp(&b.class)),
        Some(SiteOrder::Trace) => found.sort_rows_by_key(|(_, site)| site.trace),
        _ => {}
    }
    let matching = totals(found.iter().map(|(_, site)| *site));
    // Percentages as in the file, unless rows are sorted by another figure: percentages of live bytes would not be in order.
    let figure: Option<fn(&Site) -> u64> = match question.sort_by {
        None | Some(SiteOrder::Live | SiteOrder::Class | SiteOrder::Trace) => None,
        Some(SiteOrder::LiveInstances) => Some(|site| site.live_instances),
        Some(SiteOrder::Allocated) => Some(|site| site.allocated_bytes),
        Some(SiteOrder::AllocatedInstances) => Some(|site| site.allocated_instances),
    };
    let whole = figure.map_or(0, |figure| {
        let sum = || sites.rows.iter().fold(0u64, |sum, site| sum.saturating_add(figure(site)));
        sites.total.as_ref().map_or_else(sum, figure)
    });
    let mut before = 0u64;
    let rows = (found.into_iter().take(question.top.unwrap_or(usize::MAX)))
        .map(|(rank, site)| {
            let (self_percent, accumulated_percent) = match figure {
                None => (site.self_percent, site.accumulated_percent),
                Some(figure) => {
                    before = before.saturating_add(figure(site));
                    (hundredths(figure(site), whole), hundredths(before, whole))
                }
            };
            let method = match sites.event {
                Some(event) if event.is_native() => traces.method_below_hooks(site.trace),
                _ => traces.method(site.trace),
            };
            let site = site.clone();
            RankedSite { rank, site, method, self_percent, accumulated_percent }
        })
        .collect();
    SiteReport { rows, matching }
}

/// Returns whether both shares of a site, of all live and of all allocated bytes, are below the cutoff, compared as the agent
/// does.
fn is_below(site: &Site, total: Option<&Site>, cutoff: f64) -> bool {
    let part = match total {
        Some(total) => {
            let live = ratio(site.live_bytes, total.live_bytes);
            live.max(ratio(site.allocated_bytes, total.allocated_bytes))
        }
        // A text contains only the percentage, to two decimals.
        None => site.self_percent / 100.0,
    };
    part < cutoff
}

/// Returns the sums over the given sites.
pub fn totals<'a>(sites: impl Iterator<Item = &'a Site>) -> Totals {
    sites.fold(Totals::default(), Totals::plus)
}

impl Totals {
    /// Returns the totals with a site added.
    pub(super) fn plus(self, site: &Site) -> Self {
        Self {
            rows: self.rows + 1,
            live_bytes: self.live_bytes.saturating_add(site.live_bytes),
            live_instances: self.live_instances.saturating_add(site.live_instances),
            allocated_bytes: self.allocated_bytes.saturating_add(site.allocated_bytes),
            allocated_instances: self.allocated_instances.saturating_add(site.allocated_instances),
            samples: self.samples.saturating_add(site.samples),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::profile::Origin;
    use super::super::stack_filter::tests::traces;
    use super::*;

    fn site(class: &str, trace: u32, live: (u64, u64), allocated: (u64, u64), self_percent: f64) -> Site {
        Site {
            class: class.into(),
            trace: TraceSerial(trace),
            live_bytes: live.0,
            live_instances: live.1,
            allocated_bytes: allocated.0,
            allocated_instances: allocated.1,
            samples: 0,
            self_percent,
            accumulated_percent: 0.0,
        }
    }

    fn sample() -> Sites {
        Sites {
            origin: Origin::Recorded,
            rows: vec![
                site("byte[]", 3, (500, 5), (900, 50), 50.0),
                site("a.B", 1, (250, 10), (250, 10), 25.0),
                site("a.C", 2, (250, 1), (1000, 4), 25.0),
            ],
            total: Some(site("", 0, (1000, 16), (2150, 64), 0.0)),
            event: None,
            by_allocation: false,
            date: None,
        }
    }

    fn ranks(sites: &Sites, question: &SiteQuery) -> Vec<u64> {
        let traces = traces(&[(1, &[("m.M", "run")]), (3, &[("m.M", "go"), ("m.M", "main")])]);
        super::sites(sites, &traces, question).rows.iter().map(|row| row.rank).collect()
    }

    /// Returns the traces, which identify the sites of the sample, with their ranks.
    fn ranked_traces(question: &SiteQuery) -> Vec<(u32, u64)> {
        let sites = sample();
        let answer = super::sites(&sites, &Traces::default(), question);
        answer.rows.iter().map(|row| (row.site.trace.0, row.rank)).collect()
    }

    #[test]
    fn ranks_are_of_the_figure_that_rows_are_sorted_by() {
        for (sort_by, expected) in [
            (None, [(3, 1), (1, 2), (2, 3)]),
            (Some(SiteOrder::Live), [(3, 1), (1, 2), (2, 3)]),
            (Some(SiteOrder::LiveInstances), [(1, 1), (3, 2), (2, 3)]),
            (Some(SiteOrder::Allocated), [(2, 1), (3, 2), (1, 3)]),
            (Some(SiteOrder::AllocatedInstances), [(3, 1), (1, 2), (2, 3)]),
            // Not sorted by a figure: ranks of the file.
            (Some(SiteOrder::Class), [(1, 2), (2, 3), (3, 1)]),
            (Some(SiteOrder::Trace), [(1, 2), (2, 3), (3, 1)]),
        ] {
            assert_eq!(
                ranked_traces(&SiteQuery { sort_by, ..SiteQuery::default() }),
                expected,
                "{sort_by:?}"
            );
        }
        // Ranked among all sites, including those that do not match.
        let by_class = SiteQuery {
            classes: vec!["a.B".parse().unwrap()],
            sort_by: Some(SiteOrder::Allocated),
            ..SiteQuery::default()
        };
        assert_eq!(ranked_traces(&by_class), [(1, 3)]);
    }

    #[test]
    fn the_cutoff_keeps_what_is_on_it() {
        let at = |cutoff| SiteQuery { cutoff, sort_by: Some(SiteOrder::Allocated), ..SiteQuery::default() };
        assert_eq!(ranks(&sample(), &at(0.25)), [1, 2, 3]);
        // Share of live or of allocated bytes: the third site has 46.5 percent of all allocated bytes.
        assert_eq!(ranks(&sample(), &at(0.250_000_1)), [1, 2]);
        assert_eq!(ranks(&sample(), &at(0.47)), [2]);
        // A text contains only percentages; any share of 0 is below the cutoff.
        assert_eq!(ranks(&Sites { total: None, ..sample() }, &at(0.25)), [1, 2, 3]);
        assert_eq!(ranks(&Sites { total: None, ..sample() }, &at(0.3)), [2]);
        let nothing = Sites { total: Some(Site::default()), ..sample() };
        assert_eq!((ranks(&nothing, &at(0.0)).len(), ranks(&nothing, &at(0.1)).len()), (3, 0));
    }

    #[test]
    fn percentages_are_of_what_rows_are_sorted_by() {
        let percents = |sort_by| {
            let sample = sample();
            let question = SiteQuery { sort_by, ..SiteQuery::default() };
            let answer = super::sites(&sample, &Traces::default(), &question);
            let rows = answer.rows.iter().map(|row| (row.rank, row.self_percent, row.accumulated_percent));
            rows.collect::<Vec<_>>()
        };
        // As the file states them.
        assert_eq!(percents(None), [(1, 50.0, 0.0), (2, 25.0, 0.0), (3, 25.0, 0.0)]);
        // 1000, 900 and 250 of 2150.
        assert_eq!(
            percents(Some(SiteOrder::Allocated)),
            [(1, 46.51, 46.51), (2, 41.86, 88.37), (3, 11.63, 100.0)]
        );
        let instances = [(1, 78.13, 78.13), (2, 15.63, 93.75), (3, 6.25, 100.0)];
        assert_eq!(percents(Some(SiteOrder::AllocatedInstances)), instances);
    }

    #[test]
    fn filters_and_sums() {
        let by = |classes: &[&str], methods: &[&str], traces: &[u32]| SiteQuery {
            classes: classes.iter().map(|text| text.parse().unwrap()).collect(),
            methods: methods.iter().map(|text| text.parse().unwrap()).collect(),
            traces: traces.iter().copied().map(TraceSerial).collect(),
            ..SiteQuery::default()
        };
        assert_eq!(ranks(&sample(), &by(&["a.*"], &[], &[])), [2, 3]);
        assert_eq!(ranks(&sample(), &by(&[], &["main"], &[])), [1]);
        assert_eq!(ranks(&sample(), &by(&[], &[], &[2, 9])), [3]);
        let sites = sample();
        let answer =
            super::sites(&sites, &Traces::default(), &SiteQuery { top: Some(1), ..by(&["a.*"], &[], &[]) });
        assert_eq!((answer.rows.len(), answer.matching.rows), (1, 2));
        assert_eq!((answer.matching.live_bytes, answer.matching.allocated_instances), (500, 14));
        assert_eq!(answer.rows.first().unwrap().method, None);
    }
}
