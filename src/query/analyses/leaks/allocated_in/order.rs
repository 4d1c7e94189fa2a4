//! Order of the lines that allocated objects of a class: first the line that allocated the live objects, rather than garbage.
//!
//! Sampled objects that were alive decide: how many are held by the field that holds the suspect, then how many there are.
//! Otherwise the bytes decide: a line whose objects all remain alive has allocated about as many bytes as are alive. A line
//! with much less cannot have allocated them; a line with much more mostly allocates garbage, or only some of its objects
//! remain alive. If no line fits, or the few sampled live objects are from other lines, the order is uncertain: lines of such
//! objects are first, then lines that fit, then the nearest.

use std::cmp::Reverse;

use super::{Certainty, LeakSite, MIN_SAMPLES, SampleSum};
use hprof_base::share::percent;
use hprof_base::sorting::SortRows;

/// Minimum number of sampled objects that were alive and are held as in the dump, to decide the order.
const MIN_ALIKE: u64 = 3;
/// Minimum number of sampled objects that were alive, to decide the order.
const MIN_OLD: u64 = 5;
/// Minimum number of sampled live objects that contradict the bytes.
const MIN_CONTRADICTING: u64 = 2;
/// Minimum share of the suspect in the bytes of a class, in percent, for sampled objects to decide.
const NEARLY_ALL: u64 = 80;
/// Minimum share of the suspect in the bytes of a class, in percent, for sampled objects to contradict the bytes.
const HALF: u64 = 50;
/// Minimum number of samples of a line for it to fit the live bytes; certainty requires [`MIN_SAMPLES`].
const MIN_FITTING: u64 = 5;
/// Maximum bytes that all lines allocated, as a percentage of the live bytes, for a class that is hardly ever garbage.
const NO_GARBAGE: u64 = 150;

/// Counts of the sampled objects of a class that were alive when the recording was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OldSums {
    /// Number of all objects, including those without a known stack.
    pub(super) all: u64,
    /// Number of objects that are held by the same field as in the dump.
    pub(super) alike: u64,
    /// `true` if the holder of any of the objects is known.
    pub(super) has_chains: bool,
    /// Share of the suspect in the bytes of the class in the dump, in percent: sampled objects may belong to other holders.
    pub(super) suspect_percent: u64,
}

/// Orders the lines, and returns the reason. `live` is the minimum and the maximum of the live bytes that may have
/// been allocated during the recording.
pub(super) fn order(sites: &mut [LeakSite], live: (u64, u64), old: OldSums) -> Certainty {
    sites.sort_rows_by_key(|site| {
        (Reverse(has_frame(site)), Reverse(site.like.bytes), Reverse(site.site.sum.bytes))
    });
    let decided = certain_site(sites, live, old);
    let all = all_of(sites);
    let rest = match decided {
        Some((at, _)) => {
            sites.get_mut(..=at).unwrap_or_default().rotate_right(1);
            sites.get_mut(1..).unwrap_or_default()
        }
        None => &mut *sites,
    };
    rest.sort_rows_by_key(|site| {
        let old_objects = if old.suspect_percent > HALF { site.old_objects } else { 0 };
        let fit = fit_of(site, all, live);
        let by_bytes = [fit == Fit::AsMuch && is_called(site), fit == Fit::AsMuch, fit != Fit::Less];
        let distance = distance(site.like.bytes, live.1);
        (Reverse((has_frame(site), site.held_alike, old_objects, by_bytes)), distance)
    });
    decided.map_or(Certainty::Unsure, |(_, sure)| sure)
}

/// Returns the index of the certain line, and the reason.
fn certain_site(sites: &[LeakSite], live: (u64, u64), old: OldSums) -> Option<(usize, Certainty)> {
    let only = |sure, is_most: &dyn Fn(&LeakSite) -> bool| {
        Some((sites.iter().position(|site| has_frame(site) && is_most(site))?, sure))
    };
    if old.alike >= MIN_ALIKE {
        return only(Certainty::HeldAlike, &|site| site.held_alike > old.alike / 2);
    }
    // Chains to other fields contradict, and the sampled objects may belong to other holders.
    if old.all >= MIN_OLD && !old.has_chains && old.suspect_percent >= NEARLY_ALL {
        return only(Certainty::OldObjects, &|site| is_clearly_most(site.old_objects, old.all));
    }
    let (at, sure) = by_bytes(sites, live, old.suspect_percent)?;
    let all_old = total(sites, |site| site.old_objects);
    let elsewhere = all_old.saturating_sub(sites.get(at)?.old_objects);
    let is_contradicted =
        old.suspect_percent > HALF && all_old >= MIN_CONTRADICTING && elsewhere > all_old / 2;
    (!is_contradicted).then_some((at, sure))
}

/// Returns whether `objects` exceeds half of `all` by more than twice the standard deviation.
fn is_clearly_most(objects: u64, all: u64) -> bool {
    let others = all.saturating_sub(objects);
    objects > others && u128::from(objects - others).pow(2) > 4 * u128::from(all)
}

/// Returns the index of the line that is certain by bytes alone, and the reason. The lines must be sorted by bytes, most first.
fn by_bytes(sites: &[LeakSite], live: (u64, u64), suspect_percent: u64) -> Option<(usize, Certainty)> {
    let all = all_of(sites);
    let first = sites.first().filter(|site| has_frame(site))?.like;
    // The live objects were allocated before the recording, or not sampled.
    if all.samples < MIN_SAMPLES || fit(all, all, live) == Fit::Less {
        return None;
    }
    let others = SampleSum {
        samples: all.samples.saturating_sub(first.samples),
        bytes: all.bytes.saturating_sub(first.bytes),
    };
    let is_enough = |of: SampleSum| of.samples >= MIN_SAMPLES;
    // Even if everything that the other lines allocated is alive, the first allocated most.
    if is_enough(first) && fit(others, all, (live.0 / 2, live.1 / 2)) == Fit::Less {
        return Some((0, Certainty::OnlyLine));
    }
    // Samples are of the whole class: of several suspects that share it, each can have less than one line allocated.
    if live.1 == 0 || suspect_percent <= HALF {
        return None;
    }
    if percent(all.bytes, live.1) <= NO_GARBAGE {
        let shares = [percent(first.bytes, all.bytes), percent(first.samples, all.samples)];
        let is_most = shares.into_iter().all(|share| share > HALF);
        return is_most.then_some((0, Certainty::NoGarbage));
    }
    let only = |is_one: &dyn Fn(&LeakSite) -> bool, sure| {
        let mut found = sites.iter().enumerate().filter(|(_, site)| is_one(site));
        let (at, site) = found.next()?;
        (found.next().is_none() && is_enough(site.like)).then_some((at, sure))
    };
    let fit = |site: &LeakSite| fit_of(site, all, live);
    let fits = |site: &LeakSite| fit(site) == Fit::AsMuch;
    if sites.iter().any(fits) {
        let is_both = |site: &LeakSite| fits(site) && is_called(site);
        return only(&fits, Certainty::LiveBytes).or_else(|| only(&is_both, Certainty::LiveBytes));
    }
    only(&|site| fit(site) != Fit::Less && is_called(site), Certainty::Holder)
}

/// Returns whether the line is known, because the samples have a stack.
fn has_frame(site: &LeakSite) -> bool {
    site.site.frame.is_some()
}

/// Returns whether most bytes of the line were allocated in calls from the class that holds the objects.
fn is_called(site: &LeakSite) -> bool {
    site.site.called_bytes > site.site.sum.bytes / 2
}

/// Returns the factor between the bytes of a line and the live bytes, in thousandths. The nearer they are, the fewer of the
/// bytes must have been garbage.
fn distance(bytes: u64, live_bytes: u64) -> u128 {
    if live_bytes == 0 {
        return 0;
    }
    let (less, more) = (bytes.min(live_bytes), bytes.max(live_bytes));
    u128::from(more) * 1000 / u128::from(less.max(1))
}

fn all_of(sites: &[LeakSite]) -> SampleSum {
    let mut all = SampleSum::default();
    sites.iter().for_each(|site| all.add(site.like));
    all
}

fn total(sites: &[LeakSite], of: impl Fn(&LeakSite) -> u64) -> u64 {
    sites.iter().fold(0, |sum, site| sum.saturating_add(of(site)))
}

/// Result of comparing the bytes of a line with the live bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Less,
    AsMuch,
    More,
}

/// Compares the bytes of a line with the live bytes. A line with too few samples counts as having less.
fn fit_of(site: &LeakSite, all: SampleSum, live: (u64, u64)) -> Fit {
    if has_frame(site) && site.like.samples >= MIN_FITTING { fit(site.like, all, live) } else { Fit::Less }
}

/// Compares sampled bytes with the live bytes. Few samples give inexact bytes: twice the standard deviation is allowed, and 20
/// percent for a recording that does not end with the dump. The weights of samples differ widely if the JVM skips some, so the
/// line's share of the number of samples may be used instead of its share of the bytes.
fn fit(of: SampleSum, all: SampleSum, (least, most): (u64, u64)) -> Fit {
    let samples = of.samples.max(1);
    let by_count = u128::from(all.bytes) * u128::from(of.samples) / u128::from(all.samples.max(1));
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
    use hprof_model::threads::frames::Frame;
    use hprof_recordings::allocation_sites::AllocationSite;

    const MIB: u64 = 1 << 20;

    /// Creates a line from its number, its mebibytes (two samples each), whether a holder calls it, the number of old objects,
    /// and how many of these are held alike.
    fn line(number: i32, mib: u64, is_called: bool, old_objects: u64, held_alike: u64) -> LeakSite {
        let frame = Frame { line: number, ..Frame::UNKNOWN };
        let mut site = AllocationSite::new(Some(frame), &[]);
        site.sum = SampleSum { samples: mib * 2, bytes: mib * MIB };
        site.called_bytes = if is_called { site.sum.bytes } else { 0 };
        LeakSite { old_objects, held_alike, ..LeakSite::new(site) }
    }

    fn ordered(mut sites: Vec<LeakSite>, live_mib: u64) -> (Vec<i32>, &'static str) {
        let sum = |of: fn(&LeakSite) -> u64| sites.iter().map(of).sum();
        let alike = sum(|site| site.held_alike);
        let old =
            OldSums { all: sum(|site| site.old_objects), alike, has_chains: alike > 0, suspect_percent: 100 };
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
        // Too few to decide, or not the majority.
        assert_eq!(ordered(vec![line(1, 900, false, 1, 0), line(2, 100, false, 3, 0)], 100).1, "live_bytes");
        assert_eq!(ordered(vec![line(1, 900, false, 8, 0), line(2, 100, false, 8, 0)], 100).1, "unsure");
    }

    #[test]
    fn three_that_are_held_alike_decide() {
        let sites = |alike, other| vec![line(1, 900, false, other, other), line(2, 100, false, alike, alike)];
        assert_eq!(ordered(sites(3, 0), 900), (vec![2, 1], "held_alike"));
        assert_eq!(ordered(sites(2, 1), 900), (vec![2, 1], "held_alike"));
        assert_eq!(ordered(sites(2, 2), 900).1, "unsure");
        // With only two, only the order is used.
        assert_eq!(ordered(sites(2, 0), 900), (vec![2, 1], "unsure"));
    }

    /// Four of five may be chance.
    #[test]
    fn a_small_majority_of_those_that_stayed_alive_is_not_sure() {
        let sites = |one, other| vec![line(1, 900, false, other, 0), line(2, 700, false, one, 0)];
        for (one, other, sure) in
            [(5, 0, "old_objects"), (4, 1, "unsure"), (12, 4, "unsure"), (13, 3, "old_objects")]
        {
            assert_eq!(ordered(sites(one, other), 800), (vec![2, 1], sure), "{one} {other}");
        }
    }

    /// Two that stayed alive, and are from another line, are too few to decide, but enough to cast doubt.
    #[test]
    fn sampled_objects_that_stayed_alive_contradict_the_bytes() {
        let by = |one, other, suspect_percent| {
            let mut sites = vec![line(1, 900, false, one, 0), line(2, 100, false, other, 0)];
            let old = OldSums { all: one + other, suspect_percent, ..OldSums::default() };
            ordered_by(&mut sites, 800, old)
        };
        assert_eq!(by(0, 1, 100), (vec![1, 2], "only_line"));
        assert_eq!(by(0, 2, 100), (vec![2, 1], "unsure"));
        assert_eq!(by(1, 1, 100), (vec![1, 2], "only_line"));
        // They may belong to other holders.
        assert_eq!(by(0, 2, 50), (vec![1, 2], "only_line"));
        // Those without a stack are ignored.
        let mut sites = vec![line(1, 900, false, 0, 0), line(2, 100, false, 0, 0)];
        let old = OldSums { all: 4, suspect_percent: 100, ..OldSums::default() };
        assert_eq!(ordered_by(&mut sites, 800, old).1, "only_line");
    }

    /// A line with 2 percent of the bytes of a class can be the whole leak.
    #[test]
    fn the_only_line_is_one_beside_which_others_cannot_be_the_leak() {
        let tail = || vec![line(1, 2300, false, 0, 0), line(2, 42, false, 0, 0)];
        assert_eq!(ordered(tail(), 36), (vec![2, 1], "live_bytes"));
        assert_eq!(ordered(tail(), 200), (vec![1, 2], "only_line"));
        // Of 110 live ones, 60 may be from the other line.
        let sites = vec![line(1, 900, false, 0, 0), line(2, 60, false, 0, 0)];
        assert_eq!(ordered(sites, 110), (vec![1, 2], "unsure"));
    }

    /// A sixth of the objects of the largest line equals all objects of another line.
    #[test]
    fn a_small_part_of_a_class_is_not_told_by_bytes() {
        let by = |suspect_percent| {
            let mut sites =
                vec![line(1, 60, true, 80, 0), line(2, 10, true, 12, 0), line(3, 200, true, 0, 0)];
            let old = OldSums { all: 92, suspect_percent, ..OldSums::default() };
            ordered_by(&mut sites, 11, old).1
        };
        assert_eq!((by(17), by(50)), ("unsure", "unsure"));
        let mut sites = vec![line(2, 10, true, 0, 0), line(3, 200, true, 0, 0)];
        let old = OldSums { suspect_percent: 51, ..OldSums::default() };
        assert_eq!(ordered_by(&mut sites, 11, old), (vec![2, 3], "live_bytes"));
        let old = OldSums { suspect_percent: 50, ..OldSums::default() };
        assert_eq!(ordered_by(&mut sites, 11, old), (vec![2, 3], "unsure"));
        // Two suspects, each filled by one of two lines.
        let by = |suspect_percent| {
            let mut sites = vec![line(1, 85, false, 0, 0), line(2, 60, false, 0, 0)];
            ordered_by(&mut sites, 100, OldSums { suspect_percent, ..OldSums::default() }).1
        };
        assert_eq!((by(50), by(100)), ("unsure", "no_garbage"));
    }

    /// A line of few samples may have allocated the live objects, but is not certain.
    #[test]
    fn few_samples_of_a_line_are_unknown() {
        let few = |samples| {
            let mut sites = vec![line(1, 900, false, 0, 0), line(2, 50, false, 0, 0)];
            sites[1].like.samples = samples;
            ordered(sites, 80)
        };
        assert_eq!(few(20), (vec![2, 1], "live_bytes"));
        assert_eq!(few(19), (vec![2, 1], "unsure"));
        assert_eq!(few(5), (vec![2, 1], "unsure"));
        assert_eq!(few(4), (vec![1, 2], "unsure"));
        // It competes with the one that fits.
        let mut sites = vec![line(1, 900, false, 0, 0), line(2, 80, false, 0, 0), line(3, 60, false, 0, 0)];
        sites[2].like.samples = 19;
        assert_eq!(ordered(sites, 75), (vec![2, 3, 1], "unsure"));
    }

    #[test]
    fn sampled_objects_that_may_be_others_do_not_decide() {
        let old = OldSums { all: 33, alike: 0, has_chains: false, suspect_percent: 100 };
        let by = |old| {
            let mut sites = vec![line(1, 900, false, 3, 0), line(2, 100, false, 30, 0)];
            ordered_by(&mut sites, 900, old)
        };
        assert_eq!(by(old), (vec![2, 1], "old_objects"));
        // Held by other fields; of a class of which most objects are elsewhere.
        assert_eq!(by(OldSums { has_chains: true, ..old }), (vec![2, 1], "unsure"));
        assert_eq!(by(OldSums { suspect_percent: 40, ..old }), (vec![1, 2], "only_line"));
        // One object in transit.
        assert_eq!(by(OldSums { has_chains: true, alike: 1, ..old }), (vec![2, 1], "unsure"));
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
        assert_eq!(ordered(two(), 800), (vec![1, 2], "only_line"));
        assert_eq!(ordered(two(), 0), (vec![1, 2], "unsure"));
        assert_eq!(
            ordered(vec![line(1, 900, false, 0, 0), line(2, 20, false, 0, 0)], 10),
            (vec![2, 1], "unsure")
        );
        // The nearest is first if none fits; one with less than the live bytes is last.
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
        assert_eq!(ordered(sites(false, false), 100), (vec![3, 2, 1], "unsure"));
        assert_eq!(ordered(sites(false, true), 100), (vec![3, 2, 1], "live_bytes"));
        assert_eq!(ordered(sites(true, true), 100), (vec![3, 2, 1], "unsure"));
        // Only some of its objects remain alive.
        let sites = vec![line(1, 900, true, 0, 0), line(2, 400, false, 0, 0)];
        assert_eq!(ordered(sites, 100), (vec![1, 2], "holder"));
    }

    #[test]
    fn hostile_sums() {
        assert_eq!(ordered(Vec::new(), 1), (Vec::new(), "unsure"));
        let mut sites = vec![line(1, 1, true, u64::MAX, u64::MAX), line(2, 1, true, u64::MAX, 1)];
        let most = OldSums { all: u64::MAX, alike: u64::MAX, has_chains: true, suspect_percent: 100 };
        assert_eq!(order(&mut sites, (u64::MAX, u64::MAX), most).name(), "held_alike");
        let huge = SampleSum { samples: u64::MAX, bytes: u64::MAX };
        let mut sites: Vec<LeakSite> =
            (0..2).map(|at| LeakSite { like: huge, ..line(at, 1, true, 0, 0) }).collect();
        order(&mut sites, (1, 1), OldSums::default());
        order(&mut sites, (u64::MAX, u64::MAX), OldSums::default());
    }
}
