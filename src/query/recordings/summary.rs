//! Counts of the facts in a profile.

use super::profile::{Origin, Profile};
use super::sites::{Totals, totals};

/// Number of recorded facts of each kind in a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProfileCounts {
    /// Number of traces.
    pub traces: u64,
    /// Number of distinct frames.
    pub frames: u64,
    /// Number of threads that were started.
    pub threads_started: u64,
    /// Number of these threads that ended.
    pub threads_ended: u64,
    /// Allocation sites, if the writer recorded any.
    pub sites: Option<SiteCount>,
    /// Number of samples and number of rows, if there are CPU SAMPLES.
    pub samples: Option<(u64, u64)>,
    /// Total milliseconds and number of rows, if there is CPU TIME.
    pub cpu_time: Option<(i64, u64)>,
    /// Number of rows of `cpu=old`.
    pub calls: u64,
    /// Total milliseconds and number of rows, if there is MONITOR TIME.
    pub contention: Option<(i64, u64)>,
    /// Number of MONITOR DUMPs.
    pub monitor_dumps: u64,
    /// Number of WAIT, WAITED, SLEEP and EXIT lines.
    pub waits: u64,
}

/// Sums over allocation sites, as listed and as stated by the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SiteCount {
    /// Sums over the sites in the file.
    pub listed: Totals,
    /// Sums stated by the file, which include sites that the writer left out; `rows` is 0.
    pub stated: Option<Totals>,
}

/// Counts the contents of a profile.
pub fn profile_counts(profile: &Profile) -> ProfileCounts {
    let sites = profile.sites.as_ref().filter(|sites| sites.origin != Origin::Objects);
    ProfileCounts {
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
        assert_eq!(profile_counts(&Profile::default()), ProfileCounts::default());
        let site = Site { live_bytes: 3, live_instances: 1, ..Site::default() };
        let mut profile = Profile {
            threads: vec![StartedThread { ended: true, ..Default::default() }, StartedThread::default()],
            sites: Some(Sites {
                origin: Origin::Recorded,
                rows: vec![site.clone(), site],
                total: Some(Site { live_bytes: 100, ..Site::default() }),
                event: None,
                by_allocation: false,
                date: None,
            }),
            ..Profile::default()
        };
        let counted = profile_counts(&profile);
        assert_eq!((counted.threads_started, counted.threads_ended), (2, 1));
        let stated = Totals { live_bytes: 100, ..Totals::default() };
        let listed = Totals { rows: 2, live_bytes: 6, live_instances: 2, ..Totals::default() };
        assert_eq!(counted.sites, Some(SiteCount { listed, stated: Some(stated) }));
        // Sites counted over the objects were not recorded.
        if let Some(sites) = &mut profile.sites {
            sites.origin = Origin::Objects;
        }
        assert_eq!(profile_counts(&profile).sites, None);
    }
}
