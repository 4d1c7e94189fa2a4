//! Order of the lines that allocated objects of a class: first the one that made what is alive, rather than garbage.
//!
//! Sampled objects that were alive decide: how many are held by the field that holds the suspect, then how many there are.
//! Without them the bytes must: a line whose objects all stay has allocated about as many bytes as are alive. A line
//! with much less cannot have made them; one with much more mostly makes garbage, or only some of its objects stay. If
//! none fits, the nearest is first, and that is not sure.

use std::cmp::Reverse;

use super::{Certainty, LeakSite, MIN_SAMPLES, SampleSum};
use crate::sorting::SortRows;

/// Minimum number of sampled objects that were alive, to decide the order.
const MIN_OLD: u64 = 5;
/// Percentage of the bytes of a class for the only line.
const NEARLY_ALL: u64 = 95;
/// Maximum percentage of the live bytes that all lines allocated, for a class that is hardly ever garbage.
const NO_GARBAGE: u64 = 150;

/// Sampled objects of a class that were alive when the recording was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OldSums {
    /// All, also those whose stack is not known.
    pub(super) all: u64,
    /// Those that the same field holds as in the dump.
    pub(super) alike: u64,
    /// Whether it is known of any how it is held.
    pub(super) has_chains: bool,
    /// Whether the suspect has most of the objects of the class in the dump: else they may be others'.
    pub(super) are_of_suspect: bool,
}

/// Orders the lines, and returns the reason. `live` are the least and the most of the bytes that are alive that may have
/// been allocated during the recording.
pub(super) fn order(sites: &mut [LeakSite], live: (u64, u64), old: OldSums) -> Certainty {
    // Samples without a stack are no line.
    let has_frame = |site: &LeakSite| site.site.frame.is_some();
    sites.sort_rows_by_key(|site| {
        (Reverse(has_frame(site)), Reverse(site.like.bytes), Reverse(site.site.sum.bytes))
    });
    let sure = decided(sites, live, old);
    sites.sort_by_key(|site| !has_frame(site));
    if sites.first().is_some_and(has_frame) { sure } else { Certainty::Unsure }
}

fn decided(sites: &mut [LeakSite], live: (u64, u64), old: OldSums) -> Certainty {
    let is_most = |part: u64, all: u64| part > all / 2;
    let has_frame = |site: &LeakSite| site.site.frame.is_some();
    if old.alike >= MIN_OLD {
        sites.sort_rows_by_key(|site| {
            (Reverse(has_frame(site)), Reverse(site.held_alike), Reverse(site.old_objects))
        });
        let is_decided = sites.first().is_some_and(|first| is_most(first.held_alike, old.alike));
        return if is_decided { Certainty::HeldAlike } else { Certainty::Unsure };
    }
    // Chains to other fields contradict, and what others hold too may be theirs.
    if old.all >= MIN_OLD && !old.has_chains && old.are_of_suspect {
        sites.sort_rows_by_key(|site| (Reverse(has_frame(site)), Reverse(site.old_objects)));
        let is_decided = sites.first().is_some_and(|first| is_most(first.old_objects, old.all));
        return if is_decided { Certainty::OldObjects } else { Certainty::Unsure };
    }
    by_bytes(sites, live)
}

/// Orders the lines by bytes alone.
fn by_bytes(sites: &mut [LeakSite], live: (u64, u64)) -> Certainty {
    let live_bytes = live.1;
    let all = SampleSum {
        samples: total(sites, |site| site.like.samples),
        bytes: total(sites, |site| site.like.bytes),
    };
    let percent = |part: u64, of: u64| u128::from(part) * 100 / u128::from(of.max(1));
    let Some(first) = sites.first() else { return Certainty::Unsure };
    // What is alive was allocated before, or not sampled.
    if fit(all, all, live) == Fit::Less {
        return Certainty::Unsure;
    }
    let shares = [percent(first.like.bytes, all.bytes), percent(first.like.samples, all.samples)];
    if shares.into_iter().all(|share| share >= NEARLY_ALL.into()) {
        return Certainty::OnlyLine;
    }
    if live_bytes == 0 {
        return Certainty::Unsure;
    }
    if percent(all.bytes, live_bytes) <= NO_GARBAGE.into() {
        let is_most = shares.into_iter().all(|share| share > 50);
        return if is_most { Certainty::NoGarbage } else { Certainty::Unsure };
    }
    let is_called = |site: &LeakSite| site.site.called_bytes > site.site.sum.bytes / 2;
    let fit = |site: &LeakSite| if site.site.frame.is_some() { fit(site.like, all, live) } else { Fit::Less };
    let fits = |site: &LeakSite| fit(site) == Fit::AsMuch;
    let is_possible = |site: &LeakSite| fit(site) != Fit::Less;
    match candidates(sites, fits) {
        0 => {}
        1 => {
            sites.sort_rows_by_key(|site| Reverse(fits(site)));
            return Certainty::LiveBytes;
        }
        _ => {
            let is_both = |site: &LeakSite| fits(site) && is_called(site);
            sites.sort_rows_by_key(|site| (Reverse(is_both(site)), Reverse(fits(site))));
            return if candidates(sites, is_both) == 1 { Certainty::LiveBytes } else { Certainty::Unsure };
        }
    }
    // The nearer it is to what is alive, the less of it must have been garbage.
    sites.sort_by(|a, b| {
        let key = |site: &LeakSite| (Reverse(is_possible(site)), excess(site, live_bytes));
        key(a).0.cmp(&key(b).0).then_with(|| key(a).1.total_cmp(&key(b).1))
    });
    let is_both = |site: &LeakSite| is_possible(site) && is_called(site);
    if candidates(sites, is_both) == 1 {
        sites.sort_rows_by_key(|site| Reverse(is_both(site)));
        return Certainty::Holder;
    }
    Certainty::Unsure
}

/// Returns how far the bytes of a line are from those that are alive.
fn excess(site: &LeakSite, live_bytes: u64) -> f64 {
    ((site.like.bytes.max(1) as f64) / (live_bytes.max(1) as f64)).ln().abs()
}

fn total(sites: &[LeakSite], of: impl Fn(&LeakSite) -> u64) -> u64 {
    sites.iter().fold(0, |sum, site| sum.saturating_add(of(site)))
}

fn candidates(sites: &[LeakSite], is_one: impl Fn(&LeakSite) -> bool) -> usize {
    sites.iter().filter(|site| is_one(site)).count()
}

/// Bytes of a line compared with those that are alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Less,
    AsMuch,
    More,
}

/// Compares the bytes of a line with those that are alive. Of few samples the bytes are not exact: twice the standard
/// deviation is allowed, and 20 percent for a recording that does not end with the dump. The weights of samples differ
/// widely if the JVM skips some, so the share of the line in the number of samples may count as well as that in the bytes.
fn fit(of: SampleSum, all: SampleSum, (least, most): (u64, u64)) -> Fit {
    let samples = of.samples;
    if samples < MIN_SAMPLES {
        return Fit::Less;
    }
    let by_count = u128::from(all.bytes) * u128::from(samples) / u128::from(all.samples.max(1));
    let [bytes, by_count] = [of.bytes as f64, by_count as f64];
    let tolerance = 1.2 + 2.0 / (samples as f64).sqrt();
    match () {
        () if bytes.max(by_count) * tolerance < least as f64 => Fit::Less,
        () if bytes.min(by_count) > most as f64 * tolerance => Fit::More,
        () => Fit::AsMuch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::allocation_sites::AllocationSite;

    const MIB: u64 = 1 << 20;

    /// A line: number, mebibytes with a sample each half, share that a holder calls, old objects, those held alike.
    fn line(number: i32, mib: u64, is_called: bool, old_objects: u64, held_alike: u64) -> LeakSite {
        let frame = crate::threads::frames::Frame { line: number, ..crate::threads::frames::Frame::UNKNOWN };
        let mut site = AllocationSite::at(Some(frame), &[]);
        site.sum = SampleSum { samples: mib * 2, bytes: mib * MIB };
        site.called_bytes = if is_called { site.sum.bytes } else { 0 };
        LeakSite { like: site.sum, site, old_objects, held_alike }
    }

    fn ordered(mut sites: Vec<LeakSite>, live_mib: u64) -> (Vec<i32>, &'static str) {
        let sum = |of: fn(&LeakSite) -> u64| sites.iter().map(of).sum();
        let alike = sum(|site| site.held_alike);
        let old =
            OldSums { all: sum(|site| site.old_objects), alike, has_chains: alike > 0, are_of_suspect: true };
        ordered_by(&mut sites, live_mib, old)
    }

    fn ordered_by(sites: &mut [LeakSite], live_mib: u64, old: OldSums) -> (Vec<i32>, &'static str) {
        let sure = order(sites, (live_mib * MIB, live_mib * MIB), old);
        (
            sites.iter().filter_map(|site| site.site.frame.as_ref()).map(|frame| frame.line).collect(),
            sure.name(),
        )
    }

    #[test]
    fn sampled_objects_that_stayed_alive_decide() {
        let sites = || vec![line(1, 900, false, 3, 0), line(2, 100, false, 30, 0)];
        assert_eq!(ordered(sites(), 900), (vec![2, 1], "old_objects"));
        let mut held = sites();
        held.push(line(3, 10, false, 6, 6));
        assert_eq!(ordered(held, 900), (vec![3, 2, 1], "held_alike"));
        // Too few to decide, or not most.
        assert_eq!(ordered(vec![line(1, 900, false, 1, 0), line(2, 100, false, 3, 0)], 100).1, "live_bytes");
        assert_eq!(ordered(vec![line(1, 900, false, 8, 0), line(2, 100, false, 8, 0)], 100).1, "unsure");
    }

    #[test]
    fn sampled_objects_that_may_be_others_do_not_decide() {
        let old = OldSums { all: 33, alike: 0, has_chains: false, are_of_suspect: true };
        let by = |old| {
            let mut sites = vec![line(1, 900, false, 3, 0), line(2, 100, false, 30, 0)];
            ordered_by(&mut sites, 900, old)
        };
        assert_eq!(by(old), (vec![2, 1], "old_objects"));
        // Held by other fields; of a class of which most objects are elsewhere.
        assert_eq!(by(OldSums { has_chains: true, ..old }), (vec![1, 2], "no_garbage"));
        assert_eq!(by(OldSums { are_of_suspect: false, ..old }), (vec![1, 2], "no_garbage"));
        // One object in transit.
        assert_eq!(by(OldSums { has_chains: true, alike: 1, ..old }), (vec![1, 2], "no_garbage"));
        // Most have no stack.
        assert_eq!(by(OldSums { all: 200, ..old }), (vec![2, 1], "unsure"));
    }

    #[test]
    fn a_line_is_not_sure_if_less_was_sampled_than_is_alive() {
        assert_eq!(ordered(vec![line(1, 20, false, 0, 0)], 2000), (vec![1], "unsure"));
        assert_eq!(ordered(vec![line(1, 20, false, 0, 0)], 20), (vec![1], "only_line"));
    }

    #[test]
    fn samples_without_a_stack_are_no_line() {
        let mut sites = vec![line(1, 20, false, 0, 0)];
        sites[0].site.frame = None;
        assert_eq!(ordered(sites, 20), (vec![], "unsure"));
        let mut sites = vec![line(1, 900, false, 0, 0), line(2, 20, false, 0, 0)];
        sites[0].site.frame = None;
        assert_eq!(ordered(sites, 900), (vec![2], "unsure"));
    }

    #[test]
    fn two_lines_that_both_leak_are_not_one() {
        assert_eq!(ordered(vec![line(1, 50, false, 0, 0), line(2, 50, false, 0, 0)], 100).1, "unsure");
        assert_eq!(ordered(vec![line(1, 60, false, 0, 0), line(2, 40, false, 0, 0)], 100).1, "no_garbage");
    }

    #[test]
    fn bytes_that_are_alive_decide_without_them() {
        let two = || vec![line(1, 900, false, 0, 0), line(2, 100, false, 0, 0)];
        assert_eq!(ordered(two(), 95), (vec![2, 1], "live_bytes"));
        assert_eq!(ordered(two(), 800), (vec![1, 2], "no_garbage"));
        assert_eq!(ordered(two(), 0), (vec![1, 2], "unsure"));
        assert_eq!(
            ordered(vec![line(1, 900, false, 0, 0), line(2, 20, false, 0, 0)], 10),
            (vec![1, 2], "only_line")
        );
        // The nearest is first if none fits; one with less than is alive is last.
        let three = vec![line(1, 900, false, 0, 0), line(2, 100, false, 0, 0), line(3, 12, false, 0, 0)];
        assert_eq!(ordered(three, 30), (vec![2, 1, 3], "unsure"));
    }

    /// As in a recording whose weights differ widely: 27 of 126 samples, but 5 percent of the bytes.
    #[test]
    fn shares_by_samples_count_as_well_as_those_by_bytes() {
        let mut sites = vec![line(1, 95, false, 0, 0), line(2, 5, false, 0, 0)];
        for (site, samples) in sites.iter_mut().zip([99, 27]) {
            site.like.samples = samples;
        }
        assert_eq!(ordered(sites, 18), (vec![2, 1], "live_bytes"));
    }

    #[test]
    fn the_class_that_holds_the_objects_decides_between_lines_that_fit() {
        let sites =
            |one, other| vec![line(1, 900, false, 0, 0), line(2, 110, one, 0, 0), line(3, 100, other, 0, 0)];
        assert_eq!(ordered(sites(false, false), 100), (vec![2, 3, 1], "unsure"));
        assert_eq!(ordered(sites(false, true), 100), (vec![3, 2, 1], "live_bytes"));
        assert_eq!(ordered(sites(true, true), 100), (vec![2, 3, 1], "unsure"));
        // Only some of its objects stay.
        let sites = vec![line(1, 900, true, 0, 0), line(2, 400, false, 0, 0)];
        assert_eq!(ordered(sites, 100), (vec![1, 2], "holder"));
    }

    #[test]
    fn hostile_sums() {
        assert_eq!(ordered(Vec::new(), 1), (Vec::new(), "unsure"));
        let mut sites = vec![line(1, 1, true, u64::MAX, u64::MAX), line(2, 1, true, u64::MAX, 1)];
        let most = OldSums { all: u64::MAX, alike: u64::MAX, has_chains: true, are_of_suspect: true };
        assert_eq!(order(&mut sites, (u64::MAX, u64::MAX), most).name(), "held_alike");
        let huge = SampleSum { samples: u64::MAX, bytes: u64::MAX };
        let mut sites: Vec<LeakSite> =
            (0..2).map(|at| LeakSite { like: huge, ..line(at, 1, true, 0, 0) }).collect();
        order(&mut sites, (1, 1), OldSums::default());
        order(&mut sites, (u64::MAX, u64::MAX), OldSums::default());
    }
}
