//! Growth of classes over class histograms of a running JVM.
//!
//! A class histogram also counts garbage that was not collected yet, so nearly all classes grow until the next collection, and
//! classes of which many objects come and go rise and fall. A class is growing if
//!
//! 1. it grew in every round,
//! 2. its growth is beyond its ups and downs: the slope of its regression line over time is greater than 0 at the level of one
//!    in a thousand (Student's t), or it grew in so many rounds that this would hardly happen by chance, and
//! 3. garbage was collected between the first round and the last: some class shrank, or the JVM collected before each round, and
//! 4. it does not grow so fast that the heap would be full in ten times the time of the rounds. The JVM collects the old
//!    generation before that, and until then objects that died there are counted.
//!
//! In at least [`MIN_ROUNDS`] rounds: with fewer, nothing but an exactly straight line is beyond chance.

use std::cell::Cell;

use super::Growth;
use super::classes::ClassCensus;
use super::trend::{self, Least, TrendFilter, TrendRow};

/// Minimum number of rounds in which growth is told from ups and downs.
pub const MIN_ROUNDS: usize = 5;

/// Number of times that growth fits into the free heap; growth that is faster may be garbage of the old generation.
const MAX_TIMES: u64 = 10;

/// Number of rounds in which growth in every round is beyond chance: of all orders of eight numbers, one in 40,320 rises.
const RISING_ROUNDS: usize = 8;

/// Denominator of the minimum growth, as a fraction of the smallest heap.
const LEAST_PART: u64 = 10_000;
/// Minimum growth in bytes: less is noise of the JVM itself.
const LEAST_BYTES: u64 = 16 << 10;

/// Critical values of Student's t distribution at the one-sided level of 0.001, for 1, 2, ... degrees of freedom. For more
/// degrees of freedom, the last one is used.
const CRITICAL: [f64; 10] = [318.3, 22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14];

/// Class counts at one time.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// Counts and sizes of the classes of the question.
    pub census: ClassCensus,
    /// Counts and sizes of all classes, if the question is about some of them.
    pub all: Option<ClassCensus>,
    /// Time in milliseconds since 1970; 0 if unknown.
    pub created_ms: u64,
    /// `true` if only reachable objects are counted.
    pub is_collected: bool,
    /// Maximum size of the heap in bytes, if known.
    pub heap_max_bytes: Option<u64>,
}

/// Origin of the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsOrigin {
    /// One histogram after the other, of one process.
    Series,
    /// Files and processes that the user chose: fewer than [`MIN_ROUNDS`] are compared like dumps.
    Chosen,
}

/// Reliability of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundsVerdict {
    /// Growth was told from ups and downs.
    Judged,
    /// There are fewer than [`MIN_ROUNDS`] rounds.
    TooFew,
    /// No class shrank: all objects since the first round are counted, garbage included.
    NoCollection,
}

/// Growth over rounds.
#[derive(Debug, Clone)]
pub struct RoundsTrend {
    /// Rows by class or package.
    pub rows: Vec<TrendRow>,
    /// Minimum changes of the rows.
    pub least: Least,
    /// Reliability of the rows.
    pub verdict: RoundsVerdict,
    /// Number of rows that grew in every round, but so fast that they may be garbage.
    pub fast_rows: u64,
    /// Hours from the last round until the heap is full, if the growing classes continue to grow at their rate; `None` if
    /// nothing grows, or times or the maximum size of the heap are unknown.
    pub hours_until_full: Option<f64>,
}

impl Round {
    /// Returns the counts and sizes of all classes.
    fn all_classes(&self) -> &ClassCensus {
        self.all.as_ref().unwrap_or(&self.census)
    }

    /// Returns the size of all objects in bytes.
    pub fn heap_bytes(&self) -> u64 {
        self.all_classes().total.shallow_bytes
    }
}

/// Computes the growth of classes or packages over rounds, the oldest first. `least` overrides the minimum change from the first
/// round to the last.
pub fn rounds(
    rounds: &[&Round],
    origin: RoundsOrigin,
    which: TrendFilter,
    least: Option<u64>,
) -> RoundsTrend {
    let verdict = verdict(rounds);
    let smallest = rounds.iter().map(|round| round.heap_bytes()).min().unwrap_or(0);
    let bytes = least.unwrap_or_else(|| smallest.div_ceil(LEAST_PART).max(LEAST_BYTES)).max(1);
    let least = Least { growing: bytes, others: bytes };
    let times = times(rounds);
    let free = free_bytes(rounds);
    let fast_rows = Cell::new(0u64);
    let growth = |figures: &[u64]| {
        let grows = match (verdict, origin) {
            (RoundsVerdict::Judged, _) if grows_fast(figures, free) => {
                let is_growing = Growth::from_figures(figures) == Some(Growth::EveryStep)
                    && is_beyond_chance(&times, figures);
                fast_rows.set(fast_rows.get().saturating_add(u64::from(is_growing)));
                false
            }
            (RoundsVerdict::Judged, _) => is_beyond_chance(&times, figures),
            (RoundsVerdict::TooFew, RoundsOrigin::Chosen) => true,
            (RoundsVerdict::TooFew | RoundsVerdict::NoCollection, _) => false,
        };
        // What grew and stopped may be garbage, or a cache that is full.
        Growth::from_figures(figures)
            .map(|growth| if growth == Growth::EveryStep && grows { growth } else { Growth::Varies })
    };
    let censuses: Vec<&ClassCensus> = rounds.iter().map(|round| &round.census).collect();
    let rows = trend::class_rows(&censuses, which, least, growth);
    let hours_until_full = hours_until_full(rounds, &rows);
    RoundsTrend { rows, least, verdict, fast_rows: fast_rows.get(), hours_until_full }
}

/// Returns the class that grew most from one round to another, with its growth in bytes; `None` if none grew.
pub fn grew_most<'r>(from: &Round, to: &'r Round) -> Option<(&'r super::classes::ComparedKey, u64)> {
    let grown = |(key, figures): (&'r super::classes::ComparedKey, &super::classes::ComparedFigures)| {
        let before = from.census.rows.get(key).map_or(0, |figures| figures.shallow_bytes);
        (key, figures.shallow_bytes.saturating_sub(before))
    };
    // The order of a map is random: of equal growth, the first name.
    let most = to.census.rows.iter().map(grown).max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(a.0)));
    most.filter(|(_, bytes)| *bytes > 0)
}

fn verdict(rounds: &[&Round]) -> RoundsVerdict {
    if rounds.len() < MIN_ROUNDS {
        return RoundsVerdict::TooFew;
    }
    let mut pairs =
        rounds.windows(2).filter_map(|pair| Some((pair.first()?.all_classes(), pair.last()?.all_classes())));
    let shrank = |(old, new): (&ClassCensus, &ClassCensus)| {
        let now = |key| new.rows.get(key).map_or(0, |figures| figures.instances);
        old.rows.iter().any(|(key, figures)| now(key) < figures.instances)
    };
    if rounds.iter().all(|round| round.is_collected) || pairs.any(shrank) {
        RoundsVerdict::Judged
    } else {
        RoundsVerdict::NoCollection
    }
}

/// Returns the free bytes of the heap with as little garbage as in any round; `None` if its maximum size is unknown, or if garbage
/// is not counted.
fn free_bytes(rounds: &[&Round]) -> Option<u64> {
    let smallest = rounds.iter().map(|round| round.heap_bytes()).min()?;
    let max = rounds.last()?.heap_max_bytes?;
    (!rounds.iter().all(|round| round.is_collected)).then(|| max.saturating_sub(smallest))
}

/// Returns whether figures grow so fast that they may be garbage of the old generation.
fn grows_fast(figures: &[u64], free: Option<u64>) -> bool {
    let grown = figures.last().unwrap_or(&0).saturating_sub(*figures.first().unwrap_or(&0));
    free.is_some_and(|free| grown.saturating_mul(MAX_TIMES) > free)
}

/// Returns the times of the rounds in milliseconds since the first one, or their numbers if not all times are known.
#[allow(clippy::cast_precision_loss)]
fn times(rounds: &[&Round]) -> Vec<f64> {
    let first = rounds.first().map_or(0, |round| round.created_ms);
    let ascends = |pair: &[&Round]| matches!(pair, [old, new] if old.created_ms < new.created_ms);
    if first > 0 && rounds.windows(2).all(ascends) {
        rounds.iter().map(|round| round.created_ms.saturating_sub(first) as f64).collect()
    } else {
        (0..rounds.len()).map(|number| number as f64).collect()
    }
}

/// Line fitted to points by least squares.
struct Regression {
    slope: f64,
    /// Slope divided by its standard error.
    t: f64,
}

impl Regression {
    #[allow(clippy::cast_precision_loss)]
    fn new(x: &[f64], y: &[u64]) -> Self {
        let points = || x.iter().copied().zip(y.iter().map(|y| *y as f64));
        let count = points().count() as f64;
        let mean = |of: fn((f64, f64)) -> f64| points().map(of).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let slope = points().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
        let residuals: f64 = points().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum();
        let error = (residuals / (count - 2.0) / spread).sqrt();
        // A straight line has no error; a line through one point has no slope.
        Self { slope, t: if error > 0.0 { slope / error } else { slope * f64::INFINITY } }
    }
}

/// Returns whether figures that grew in every round grew by more than chance.
fn is_beyond_chance(times: &[f64], figures: &[u64]) -> bool {
    let critical =
        CRITICAL.get(figures.len().saturating_sub(3)).or(CRITICAL.last()).copied().unwrap_or(f64::MAX);
    figures.len() >= RISING_ROUNDS || Regression::new(times, figures).t >= critical
}

/// Computes the time until the heap is full at the joint rate of the growing rows.
#[allow(clippy::cast_precision_loss)]
fn hours_until_full(rounds: &[&Round], rows: &[TrendRow]) -> Option<f64> {
    const HOUR_MS: f64 = 3_600_000.0;
    let last = rounds.last()?;
    let max = last.heap_max_bytes?;
    let growing = || rows.iter().filter(|row| row.growth == Some(Growth::EveryStep));
    growing().next()?;
    let grown: Vec<u64> = (0..rounds.len())
        .map(|at| {
            growing().filter_map(|row| row.bytes.get(at)).fold(0u64, |sum, bytes| sum.saturating_add(*bytes))
        })
        .collect();
    // The other classes, with as little garbage as in any round.
    let others =
        rounds.iter().zip(&grown).map(|(round, grown)| round.heap_bytes().saturating_sub(*grown)).min()?;
    let free = max.saturating_sub(others).saturating_sub(*grown.last()?);
    let first = rounds.first()?.created_ms;
    if first == 0 || first >= last.created_ms {
        return None;
    }
    let Regression { slope, .. } = Regression::new(&times(rounds), &grown);
    Some(free as f64 / slope / HOUR_MS).filter(|hours| hours.is_finite() && *hours >= 0.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::compare::classes::{ComparedFigures, ComparedKey};

    fn key(name: &str) -> ComparedKey {
        ComparedKey { name: name.into(), loader: None }
    }

    /// Returns rounds, ten seconds apart, with the bytes of classes.
    fn made_rounds(classes: &[(&str, &[u64])]) -> Vec<Round> {
        let rounds = classes.first().map_or(0, |(_, bytes)| bytes.len());
        (0..rounds)
            .map(|at| {
                let mut census = ClassCensus::default();
                for (name, bytes) in classes {
                    let shallow_bytes = bytes[at];
                    let figures = ComparedFigures {
                        instances: shallow_bytes / 16,
                        shallow_bytes,
                        ..ComparedFigures::default()
                    };
                    census.rows.insert(key(name), figures);
                    census.total.shallow_bytes += shallow_bytes;
                }
                let created_ms = 1_764_533_339_000 + 10_000 * at as u64;
                Round { census, created_ms, heap_max_bytes: Some(1 << 30), ..Round::default() }
            })
            .collect()
    }

    fn names(trend: &RoundsTrend) -> Vec<&str> {
        trend.rows.iter().map(|row| &*row.key.as_ref().unwrap().name).collect()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_leak_is_told_from_what_comes_and_goes() {
        let found = made_rounds(&[
            ("Leak", &[4_000_000, 4_180_000, 4_340_000, 4_520_000, 4_690_000]),
            // Rises in every round, but by chance.
            ("Chance", &[60_000_000, 60_100_000, 90_000_000, 91_000_000, 140_000_000]),
            ("Noise", &[190 * MIB, 20 * MIB, 120 * MIB, 80 * MIB, 200 * MIB]),
            ("Stopped", &[MIB, 20 * MIB, 40 * MIB, 60 * MIB, 60 * MIB]),
            ("Tiny", &[1000, 1100, 1200, 1300, 1400]),
        ]);
        let trend =
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::Growing, None);
        assert_eq!((names(&trend), trend.verdict), (vec!["Leak"], RoundsVerdict::Judged));
        let all = rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::All, None);
        assert_eq!(names(&all), ["Leak", "Chance", "Stopped", "Noise"]);
        // 172,000 bytes in 10 s, with 154 MB besides: 1 GiB is full in 15 hours.
        let hours = trend.hours_until_full.unwrap();
        assert!((13.0..16.0).contains(&hours), "{hours}");
    }

    #[test]
    fn without_a_collection_nothing_is_growing() {
        let garbage: [(&str, &[u64]); 2] = [
            ("A", &[MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB]),
            ("B", &[MIB, 3 * MIB, 5 * MIB, 7 * MIB, 9 * MIB]),
        ];
        let mut found = made_rounds(&garbage);
        let trend =
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::Growing, None);
        assert_eq!((names(&trend), trend.verdict), (vec![], RoundsVerdict::NoCollection));
        // A class that is not shown shrank.
        let other = made_rounds(&[("C", &[MIB, MIB, 16, 32, 64])]);
        for (round, other) in found.iter_mut().zip(other) {
            round.all = Some(other.census);
        }
        assert_eq!(
            names(&rounds(
                &found.iter().collect::<Vec<_>>(),
                RoundsOrigin::Series,
                TrendFilter::Growing,
                None
            )),
            ["B", "A"]
        );
        found.iter_mut().for_each(|round| (round.all, round.is_collected) = (None, true));
        assert_eq!(
            names(&rounds(
                &found.iter().collect::<Vec<_>>(),
                RoundsOrigin::Series,
                TrendFilter::Growing,
                None
            )),
            ["B", "A"]
        );
    }

    #[test]
    fn growth_that_fills_the_heap_soon_may_be_garbage() {
        let fast: Vec<u64> = (0..5).map(|at| (100 + 40 * at) * MIB).collect();
        let mut found = made_rounds(&[("Fast", &fast), ("Noise", &[MIB, 16, MIB, 16, MIB])]);
        let trend = |found: &[Round]| {
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::Growing, None)
        };
        assert_eq!((names(&trend(&found)).len(), trend(&found).fast_rows), (0, 1));
        found.iter_mut().for_each(|round| round.heap_max_bytes = Some(16 << 30));
        assert_eq!((names(&trend(&found)), trend(&found).fast_rows), (vec!["Fast"], 0));
        found.iter_mut().for_each(|round| (round.heap_max_bytes, round.is_collected) = (Some(1 << 30), true));
        assert_eq!((names(&trend(&found)), trend(&found).fast_rows), (vec!["Fast"], 0));
    }

    #[test]
    fn few_rounds_are_compared_only_if_they_were_chosen() {
        let found = made_rounds(&[("A", &[MIB, 2 * MIB, 4 * MIB])]);
        let series =
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::Growing, None);
        let chosen =
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Chosen, TrendFilter::Growing, None);
        assert_eq!((names(&series), names(&chosen)), (vec![], vec!["A"]));
        assert_eq!((series.verdict, chosen.verdict), (RoundsVerdict::TooFew, RoundsVerdict::TooFew));
        assert!(rounds(&[], RoundsOrigin::Series, TrendFilter::All, None).rows.is_empty());
    }

    #[test]
    fn growth_that_quickens_is_named_after_more_rounds() {
        // Not so fast that the heap is full soon.
        let bytes: Vec<u64> = (0..8).map(|at| (MIB / 16) << at).collect();
        let other: Vec<u64> = (0..8).map(|at| if at % 2 == 0 { MIB } else { 32 }).collect();
        let named = |count: usize| {
            let found = made_rounds(&[("A", &bytes[..count]), ("B", &other[..count])]);
            names(&rounds(
                &found.iter().collect::<Vec<_>>(),
                RoundsOrigin::Series,
                TrendFilter::Growing,
                None,
            ))
            .len()
        };
        assert_eq!((named(5), named(8)), (0, 1));
    }

    #[test]
    fn the_largest_numbers_are_figures_too() {
        let found = made_rounds(&[
            ("A", &[0, u64::MAX / 4, u64::MAX / 3, u64::MAX / 2, u64::MAX - 1]),
            ("B", &[1, 0, 0, 0, 0]),
        ]);
        let trend =
            rounds(&found.iter().collect::<Vec<_>>(), RoundsOrigin::Series, TrendFilter::All, Some(0));
        assert_eq!(trend.rows.len(), 2);
        assert_eq!(grew_most(&found[0], &found[1]), Some((&key("A"), u64::MAX / 4)));
        assert_eq!(grew_most(&found[1], &found[1]), None);
    }
}
