//! What a profiler recorded, counted: one row of figures.

use super::profile::{Origin, Profile};
use super::sites::{Totals, totals};

/// What there is in a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// Traces.
    pub traces: u64,
    /// Different frames.
    pub frames: u64,
    /// Threads that were started.
    pub threads_started: u64,
    /// Of these, that ended.
    pub threads_ended: u64,
    /// Allocation sites, if the writer recorded any.
    pub sites: Option<SiteCount>,
    /// All samples, and rows, if there are CPU SAMPLES.
    pub samples: Option<(u64, u64)>,
    /// Milliseconds altogether, and rows, if there is CPU TIME.
    pub cpu_time: Option<(i64, u64)>,
    /// Rows of `cpu=old`.
    pub calls: u64,
    /// Milliseconds altogether, and rows, if there is MONITOR TIME.
    pub contention: Option<(i64, u64)>,
    /// MONITOR DUMPs.
    pub monitor_dumps: u64,
    /// WAIT, WAITED, SLEEP and EXIT lines.
    pub waits: u64,
}

/// Allocation sites, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCount {
    /// Sums over the sites of the file.
    pub listed: Totals,
    /// The file's own sums, also over sites that the writer left out, if it states them; `rows` is 0.
    pub stated: Option<Totals>,
}

/// Counts what there is.
pub fn recorded(profile: &Profile) -> Recorded {
    let sites = profile.sites.as_ref().filter(|sites| sites.origin == Origin::Recorded);
    Recorded {
        traces: profile.traces.len() as u64,
        frames: profile.traces.different_frames() as u64,
        threads_started: profile.threads.len() as u64,
        threads_ended: profile.threads.iter().filter(|thread| thread.ended).count() as u64,
        sites: sites.map(|sites| SiteCount {
            listed: totals(sites.rows.iter()),
            stated: sites.total.as_ref().map(|total| Totals { rows: 0, ..totals([total].into_iter()) }),
        }),
        samples: profile.samples.as_ref().map(|samples| (samples.total, samples.rows.len() as u64)),
        cpu_time: profile.times.as_ref().map(|times| (times.total_ms, times.rows.len() as u64)),
        calls: profile.calls.len() as u64,
        contention: profile.contention.as_ref().map(|times| (times.total_ms, times.rows.len() as u64)),
        monitor_dumps: profile.monitor_dumps.len() as u64,
        waits: profile.waits.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::{Site, Sites, StartedThread};
    use super::*;

    #[test]
    fn figures_of_a_profile() {
        assert_eq!(recorded(&Profile::default()), Recorded::default());
        let site = Site { live_bytes: 3, live_instances: 1, ..Site::default() };
        let mut profile = Profile {
            threads: vec![StartedThread { ended: true, ..Default::default() }, StartedThread::default()],
            sites: Some(Sites {
                origin: Origin::Recorded,
                rows: vec![site.clone(), site],
                total: Some(Site { live_bytes: 100, ..Site::default() }),
                by_allocation: false,
                date: None,
            }),
            ..Profile::default()
        };
        let counted = recorded(&profile);
        assert_eq!((counted.threads_started, counted.threads_ended), (2, 1));
        let stated = Totals { live_bytes: 100, ..Totals::default() };
        let listed = Totals { rows: 2, live_bytes: 6, live_instances: 2, ..Totals::default() };
        assert_eq!(counted.sites, Some(SiteCount { listed, stated: Some(stated) }));
        // What was counted here was not recorded.
        if let Some(sites) = &mut profile.sites {
            sites.origin = Origin::Objects;
        }
        assert_eq!(recorded(&profile).sites, None);
    }
}
