//! Trend of the heap over time: whether its size after collections grows.

use std::fmt;

use hprof_index::storage::human_bytes::{HumanBytes, group_digits};

use super::class_counts::ClassOverTime;
use super::heap::{Collection, HeapOverTime};

/// Minimum number of collections for a trend, if full collections are not considered.
pub const MIN_COLLECTIONS: usize = 12;
/// Minimum number of full collections for considering only these. Full collections leave no garbage.
pub const MIN_FULL_COLLECTIONS: usize = 4;
/// Number of parts of the recording, with equally many collections, whose floors are compared. The first part, in which the
/// program starts, is ignored.
const PARTS: usize = 4;

/// Trend of the heap's floor. The floor of a part of the recording is the minimum size after a collection in that part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapTrend {
    /// Verdict about the trend.
    pub verdict: HeapVerdict,
    /// Number of collections considered.
    pub collections: u64,
    /// `true` if the considered collections are full collections.
    pub is_full: bool,
    /// Floor of the second part of the recording; of the entire recording if there are too few collections.
    pub first_floor_bytes: u64,
    /// Floor of the last part of the recording; of the entire recording if there are too few collections.
    pub last_floor_bytes: u64,
    /// Floor of the third part of the recording.
    pub middle_floor_bytes: u64,
    /// Maximum size after a collection in the last three parts; in all parts if there are too few collections.
    pub peak_bytes: u64,
    /// Size after the last collection.
    pub end_bytes: u64,
    /// Memory limit of the container in bytes, if the JVM ran in one that has a limit.
    pub memory_limit_bytes: Option<u64>,
    /// Class with the largest growth among the counted classes, if any grew.
    pub most_grown: Option<ClassOverTime>,
}

/// Verdict about the trend of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapVerdict {
    /// Too few collections for a verdict.
    TooFew,
    /// The floor rises, as it does with a leak.
    Rising,
    /// The floor falls.
    Falling,
    /// The floors differ by less than a tenth; some collection left at least twice as much, but not the last one.
    Spike,
    /// The floors differ by less than a tenth, and the last collection left at least twice as much.
    RisingAtEnd,
    /// The floors differ by less than a tenth.
    Flat,
    /// The floors differ, but neither rise nor fall steadily.
    Unsteady,
}

impl HeapVerdict {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooFew => "too_few",
            Self::Rising => "rising",
            Self::Falling => "falling",
            Self::Spike => "spike",
            Self::RisingAtEnd => "rising_at_end",
            Self::Flat => "flat",
            Self::Unsteady => "unsteady",
        }
    }
}

impl HeapOverTime {
    /// Returns, for each of `parts` equal parts of the time, the collection with the smallest size after it, skipping parts
    /// without collections. Only collections that the trend considers count.
    pub fn floors(&self, parts: usize) -> Vec<Collection> {
        let (looked_at, _) = self.looked_at();
        let time = |at: Option<&&Collection>| at.map_or(0, |collection| i128::from(collection.nanos));
        let (start, end) = (time(looked_at.first()), time(looked_at.last()));
        let part = |collection: &Collection| {
            let since = i128::from(collection.nanos) - start;
            since * parts as i128 / (end - start + 1).max(1)
        };
        let same_part = |a: &&Collection, b: &&Collection| part(a) == part(b);
        let floor = |part: &[&Collection]| part.iter().min_by_key(|of| of.used_bytes).map(|of| **of);
        looked_at.chunk_by(same_part).filter_map(floor).collect()
    }

    /// Returns the collections that the trend considers, and whether these are full ones.
    ///
    /// Only full collections, which leave no garbage, are considered if there are enough of them, with some in each compared
    /// part of the time: a JVM that runs out of memory makes many at the end, which all leave the same size. Otherwise full
    /// collections are ignored.
    fn looked_at(&self) -> (Vec<&Collection>, bool) {
        let (full, others): (Vec<&Collection>, Vec<&Collection>) =
            self.collections.iter().partition(|of| of.is_full);
        let time = |at: Option<&Collection>| at.map_or(0, |of| i128::from(of.nanos));
        let (start, end) = (time(self.collections.first()), time(self.collections.last()));
        let part = |of: &Collection| (i128::from(of.nanos) - start) * PARTS as i128 / (end - start + 1);
        let is_part = |wanted: i128| full.iter().any(|of| part(of) == wanted);
        let are_alone = full.len() >= MIN_FULL_COLLECTIONS && (1..PARTS as i128).all(is_part);
        if are_alone || others.is_empty() { (full, true) } else { (others, false) }
    }

    /// Returns the trend; `None` if the recording contains no collections, or too many to read.
    pub fn trend(&self) -> Option<HeapTrend> {
        let (looked_at, is_full) = self.looked_at();
        let used: Vec<u64> = looked_at.iter().map(|of| of.used_bytes).collect();
        if self.left_out > 0 {
            return None;
        }
        let least = |used: &[u64]| used.iter().min().copied().unwrap_or(0);
        let most = |used: &[u64]| used.iter().max().copied();
        let end_bytes = *used.last()?;
        let trend = |verdict, [first, middle, last]: [u64; 3], peak_bytes| HeapTrend {
            verdict,
            collections: used.len() as u64,
            is_full,
            first_floor_bytes: first,
            middle_floor_bytes: middle,
            last_floor_bytes: last,
            peak_bytes,
            end_bytes,
            memory_limit_bytes: self.memory_limit_bytes,
            most_grown: self.classes.first().filter(|class| class.growth().is_some()).cloned(),
        };
        let peak = most(&used)?;
        if used.len() < min_collections(is_full) {
            return Some(trend(HeapVerdict::TooFew, [least(&used); 3], peak));
        }
        let bound = |part: usize| used.len() * part / PARTS;
        let part = |from: usize, to: usize| used.get(bound(from)..bound(to)).unwrap_or_default();
        let floors = [1, 2, 3].map(|at| least(part(at, at + 1)));
        let peak = most(part(1, PARTS)).unwrap_or(peak);
        let [first, middle, last] = floors;
        let (lowest, highest) = (first.min(middle).min(last), first.max(middle).max(last));
        let is_far_above = |bytes: u64| bytes > highest && bytes / 2 >= highest;
        let verdict = match () {
            () if (highest - lowest).saturating_mul(10) < lowest || highest == lowest => {
                match (is_far_above(peak), is_far_above(end_bytes)) {
                    (_, true) => HeapVerdict::RisingAtEnd,
                    (true, false) => HeapVerdict::Spike,
                    (false, false) => HeapVerdict::Flat,
                }
            }
            () if first < middle && middle < last => HeapVerdict::Rising,
            () if first > middle && middle > last => HeapVerdict::Falling,
            () => HeapVerdict::Unsteady,
        };
        Some(trend(verdict, floors, peak))
    }
}

/// Returns the minimum number of collections for a trend.
fn min_collections(is_full: bool) -> usize {
    if is_full { MIN_FULL_COLLECTIONS } else { MIN_COLLECTIONS }
}

/// Formats a trend as a sentence.
impl fmt::Display for HeapTrend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, middle, last, peak] =
            [self.first_floor_bytes, self.middle_floor_bytes, self.last_floor_bytes, self.peak_bytes]
                .map(HumanBytes);
        let plural = if self.collections == 1 { "" } else { "s" };
        let full = if self.is_full { "full " } else { "" };
        let count = format!("{} {full}collection{plural}", group_digits(self.collections));
        match self.verdict {
            HeapVerdict::TooFew => {
                let least = min_collections(self.is_full);
                write!(
                    f,
                    "{count}: too few to distinguish a leak from a spike (at least {least} are needed)"
                )?;
            }
            HeapVerdict::Rising => {
                write!(f, "the floor after {count} rose from {first} to {last}, as is typical of a leak")?;
            }
            HeapVerdict::Falling => write!(f, "the floor after {count} fell from {first} to {last}")?,
            HeapVerdict::Spike => {
                write!(
                    f,
                    "the floor after {count} stayed within 10 percent ({first}, then {last}), but up to {peak} were in use \
                     after some of them: "
                )?;
                f.write_str(if self.is_full {
                    "a spike, not a leak"
                } else {
                    "a spike, or garbage in the old generation, not a leak"
                })?;
            }
            HeapVerdict::RisingAtEnd => {
                let end = HumanBytes(self.end_bytes);
                write!(
                    f,
                    "the floor after {count} stayed within 10 percent ({first}, then {last}), but {end} were in use after the last: \
                     the start of a leak, or a spike that has not ended"
                )?;
            }
            HeapVerdict::Flat if first.0 < middle.0 && middle.0 < last.0 => {
                write!(
                    f,
                    "the floor after {count} rose by less than 10 percent, from {first} to {last}: a slow leak, or none"
                )?;
            }
            HeapVerdict::Flat => {
                write!(
                    f,
                    "the floor after {count} stayed within 10 percent ({first}, then {last}): no sign of a fast leak"
                )?;
            }
            HeapVerdict::Unsteady => {
                write!(
                    f,
                    "the floor after {count} went from {first} to {middle}, then to {last}: no clear trend"
                )?;
            }
        }
        if self.verdict == HeapVerdict::Rising && !self.is_full {
            f.write_str("; there were too few full collections, so the floor can include garbage")?;
        }
        if let Some(ClassOverTime { class, counts, first, last, .. }) = &self.most_grown {
            let (first, last) = (HumanBytes(first.bytes), HumanBytes(last.bytes));
            write!(
                f,
                "; among the counted classes, {class} grew most, from {first} to {last} in {counts} counts"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns a heap whose collections, in order of time, left the given numbers of bytes.
    fn heap(used: impl IntoIterator<Item = u64>, is_full: impl Fn(usize) -> bool) -> HeapOverTime {
        let collection = |(at, used_bytes): (usize, u64)| Collection {
            nanos: i64::try_from(at).unwrap(),
            used_bytes,
            is_full: is_full(at),
            ..Collection::default()
        };
        let collections = used.into_iter().enumerate().map(collection).collect();
        HeapOverTime { collections, ..HeapOverTime::default() }
    }

    fn verdict(used: &[u64]) -> HeapVerdict {
        heap(used.iter().copied(), |_| false).trend().unwrap().verdict
    }

    #[test]
    fn a_rising_floor_is_no_spike() {
        let rising: Vec<u64> = (0..24).map(|at| 100 + 10 * at + 40 * (at % 3)).collect();
        assert_eq!(verdict(&rising), HeapVerdict::Rising);
        let falling: Vec<u64> = rising.iter().rev().copied().collect();
        assert_eq!(verdict(&falling), HeapVerdict::Falling);
        // A program that starts.
        let started: Vec<u64> = (0..24).map(|at| if at < 6 { 10 * at } else { 100 + at % 3 }).collect();
        assert_eq!(verdict(&started), HeapVerdict::Flat);
        let spike: Vec<u64> = (0..24).map(|at| if at == 15 { 900 } else { 100 + at % 3 }).collect();
        assert_eq!(verdict(&spike), HeapVerdict::Spike);
        // The size after young collections can include garbage that the next old one frees.
        let of = |is_full: bool| heap(spike.iter().copied(), |_| is_full).trend().unwrap().to_string();
        assert!(
            of(false).ends_with("a spike, or garbage in the old generation, not a leak"),
            "{}",
            of(false)
        );
        assert!(
            of(true).ends_with("up to 900 B were in use after some of them: a spike, not a leak"),
            "{}",
            of(true)
        );
        assert_eq!(verdict(&rising[..11]), HeapVerdict::TooFew);
        assert_eq!(HeapOverTime::default().trend(), None);
    }

    /// Floors of the last three quarters.
    #[test]
    fn floors_that_differ_without_a_direction_tell_nothing() {
        let of = |floors: [u64; 4]| verdict(&floors.map(|floor| [floor; 6]).concat());
        assert_eq!(of([1, 100, 300, 250]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 200, 200]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 100, 400]), HeapVerdict::Unsteady);
        assert_eq!(of([1, 100, 105, 110]), HeapVerdict::Rising);
        assert_eq!(of([1, 100, 105, 109]), HeapVerdict::Flat);
        assert_eq!(of([900, 100, 100, 100]), HeapVerdict::Flat);
        assert_eq!(of([1, 110, 105, 100]), HeapVerdict::Falling);
        assert_eq!(of([1, 0, 0, 0]), HeapVerdict::Flat);
    }

    #[test]
    fn full_collections_count_alone() {
        // Young collections leave more and more garbage.
        let found = heap((0..40).map(|at| 100 + 10 * (at % 10)), |at| at % 10 == 0);
        let trend = found.trend().unwrap();
        assert_eq!((trend.verdict, trend.collections, trend.is_full), (HeapVerdict::Flat, 4, true));
        assert_eq!(
            trend.to_string(),
            "the floor after 4 full collections stayed within 10 percent (100 B, then 100 B): no sign of a fast leak"
        );
    }

    /// The minimum of each part of the time, of full collections if only these are considered; the parts have equal lengths,
    /// not equal numbers of collections.
    #[test]
    fn floors_of_parts_of_the_time() {
        let of = |collections: &[(i64, u64, bool)], parts| {
            let collections = collections.iter().map(|(nanos, used_bytes, is_full)| Collection {
                nanos: *nanos,
                used_bytes: *used_bytes,
                is_full: *is_full,
                ..Collection::default()
            });
            let heap = HeapOverTime { collections: collections.collect(), ..HeapOverTime::default() };
            heap.floors(parts).iter().map(|of| (of.nanos, of.used_bytes)).collect::<Vec<_>>()
        };
        let young = [(0, 9, false), (1, 4, false), (2, 7, false), (99, 5, false)];
        assert_eq!(of(&young, 10), [(1, 4), (99, 5)]);
        assert_eq!(of(&young, 100), [(0, 9), (1, 4), (2, 7), (99, 5)]);
        let full = [0, 30, 60, 90].map(|nanos| (nanos, 20, true));
        assert_eq!(of(&[&full[..3], &young[3..]].concat(), 1), [(99, 5)]);
        assert_eq!(of(&[&full[..], &young[3..]].concat(), 2), [(0, 20), (60, 20)]);
        assert_eq!(of(&[], 10), []);
        assert_eq!(of(&[(i64::MIN, 1, false), (i64::MAX, 2, false)], 60), [(i64::MIN, 1), (i64::MAX, 2)]);
    }

    /// A JVM that runs out of memory makes full collections at the end, which all leave the same size.
    #[test]
    fn full_collections_at_the_end_are_no_trend() {
        let rising = (0..40).map(|at| 100 + 5 * at);
        let trend = heap(rising.clone().chain([300; 6]), |at| at >= 40).trend().unwrap();
        assert_eq!((trend.verdict, trend.collections, trend.is_full), (HeapVerdict::Rising, 40, false));
        // The collection for a heap dump leaves less than young collections do.
        let trend = heap(rising.chain([90]), |at| at == 40).trend().unwrap();
        assert_eq!((trend.verdict, trend.last_floor_bytes), (HeapVerdict::Rising, 250));
        // Without other collections, full ones count.
        let trend = heap([5; 3], |_| true).trend().unwrap();
        assert_eq!(
            trend.to_string(),
            "3 full collections: too few to distinguish a leak from a spike (at least 4 are needed)"
        );
        let trend = heap([5; 11], |_| false).trend().unwrap();
        assert_eq!(
            trend.to_string(),
            "11 collections: too few to distinguish a leak from a spike (at least 12 are needed)"
        );
    }

    #[test]
    fn what_rises_at_the_end_is_no_spike() {
        let used = |end: [u64; 3]| heap([[100; 21].as_slice(), &end].concat(), |_| true).trend().unwrap();
        assert_eq!(used([500, 700, 100]).verdict, HeapVerdict::Spike);
        let trend = used([500, 700, 900]);
        assert_eq!(trend.verdict, HeapVerdict::RisingAtEnd);
        let text = "but 900 B were in use after the last: the start of a leak, or a spike that has not ended";
        assert!(trend.to_string().ends_with(text), "{trend}");
    }

    #[test]
    fn a_slow_leak_is_not_denied() {
        let of = |floors: [u64; 4]| heap(floors.map(|floor| [floor; 6]).concat(), |_| true).trend().unwrap();
        let slow = of([1, 1000, 1050, 1095]);
        assert_eq!(slow.verdict, HeapVerdict::Flat);
        assert!(
            slow.to_string()
                .ends_with("rose by less than 10 percent, from 1000 B to 1.1 KiB: a slow leak, or none"),
            "{slow}"
        );
    }
}
