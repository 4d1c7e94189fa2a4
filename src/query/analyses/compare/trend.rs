//! Trends over three or more dumps: classes and places that grow in every step, and those that have stopped growing.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use super::Growth;
use super::classes::{ClassCensus, ComparedKey};
use super::places::{AlignedPlaces, DumpPlaces, explaining_places, explaining_places_of, least_of};
use hprof_base::change::Change;
use hprof_base::sorting::SortRows;

/// Row of a trend: a class or a place, with its figures by dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrendRow {
    /// Key of the class or package; `None` for places.
    pub key: Option<ComparedKey>,
    /// Labels of the place, from the top; empty for classes.
    pub labels: Vec<String>,
    /// The place on one line.
    pub text: String,
    /// Bytes by dump: shallow size of a class, retained size of a place.
    pub bytes: Vec<u64>,
    /// Number of objects by dump.
    pub objects: Vec<u64>,
    /// Trend of the bytes; `None` if they did not change.
    pub growth: Option<Growth>,
}

impl TrendRow {
    /// Returns the growth in bytes from the first dump to the last.
    pub fn delta(&self) -> i64 {
        ends(&self.bytes).delta()
    }

    /// Returns the growth in objects from the first dump to the last.
    pub fn objects_delta(&self) -> i64 {
        ends(&self.objects).delta()
    }
}

fn ends(figures: &[u64]) -> Change {
    Change { old: figures.first().copied().unwrap_or(0), new: figures.last().copied().unwrap_or(0) }
}

/// Denominator of the minimum change, as a fraction of the largest heap, for rows that have stopped growing or vary: smaller
/// changes are noise.
const LEAST_PART_OF_OTHERS: u64 = 100;

/// Minimum changes in bytes from the first dump to the last for a row to be reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Least {
    /// Minimum change of rows that grow in every step.
    pub growing: u64,
    /// Minimum change of all other rows.
    pub others: u64,
}

impl Least {
    fn new(given: Option<u64>, heaps: &[u64]) -> Self {
        let of_heap = || heaps.iter().copied().max().unwrap_or(0).div_ceil(LEAST_PART_OF_OTHERS);
        Self {
            growing: given.unwrap_or_else(|| least_of(heaps)).max(1),
            others: given.unwrap_or_else(of_heap).max(1),
        }
    }

    fn min_bytes(self, growth: Option<Growth>) -> u64 {
        if growth == Some(Growth::EveryStep) { self.growing } else { self.others }
    }
}

/// Selection of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrendFilter {
    /// Rows that grow in every step, and rows that have stopped growing.
    Growing,
    /// All rows that changed.
    All,
}

impl TrendFilter {
    fn contains(self, growth: Option<Growth>) -> bool {
        match (self, growth) {
            (_, None) => false,
            (Self::All, Some(_)) => true,
            (Self::Growing, Some(growth)) => growth != Growth::Varies,
        }
    }
}

/// Computes rows by class, with figures in the order of the dumps. `least` overrides the minimum change from the first
/// dump to the last.
pub fn classes(dumps: &[ClassCensus], which: TrendFilter, least: Option<u64>) -> (Vec<TrendRow>, Least) {
    let heaps: Vec<u64> = dumps.iter().map(|dump| dump.total.shallow_bytes).collect();
    let least = Least::new(least, &heaps);
    let dumps: Vec<&ClassCensus> = dumps.iter().collect();
    (class_rows(&dumps, which, least, Growth::from_figures), least)
}

/// Computes rows by class; `growth` classifies the bytes of a row.
pub(super) fn class_rows(
    dumps: &[&ClassCensus],
    which: TrendFilter,
    least: Least,
    growth: impl Fn(&[u64]) -> Option<Growth>,
) -> Vec<TrendRow> {
    let keys: FxHashSet<&ComparedKey> = dumps.iter().flat_map(|dump| dump.rows.keys()).collect();
    let row = |key: &ComparedKey| {
        let figures = || dumps.iter().map(|dump| dump.rows.get(key).copied().unwrap_or_default());
        let bytes: Vec<u64> = figures().map(|figures| figures.shallow_bytes).collect();
        TrendRow {
            key: Some(key.clone()),
            labels: Vec::new(),
            text: String::new(),
            objects: figures().map(|figures| figures.instances).collect(),
            growth: growth(&bytes),
            bytes,
        }
    };
    let is_told = |row: &TrendRow| {
        which.contains(row.growth) && row.delta().unsigned_abs() >= least.min_bytes(row.growth)
    };
    sorted(keys.into_iter().map(row).filter(is_told).collect())
}

/// Computes rows by place, with figures in the order of the dumps. `least` overrides the minimum change from the first dump to
/// the last.
pub fn places(dumps: &[DumpPlaces], which: TrendFilter, least: Option<u64>) -> (Vec<TrendRow>, Least) {
    let heaps: Vec<u64> = dumps.iter().map(|dump| dump.reachable_bytes).collect();
    let least = Least::new(least, &heaps);
    let aligned = AlignedPlaces::new(dumps);
    let mut found: Vec<u32> = [Growth::EveryStep, Growth::Stopped]
        .into_iter()
        .flat_map(|growth| explaining_places_of(&aligned, least.min_bytes(Some(growth)), growth))
        .collect();
    if which == TrendFilter::All {
        found.extend(explaining_places(&aligned, least.others));
    }
    // Of several places that contain one another, only the first is reported.
    let (mut told, mut above_told) = (FxHashSet::default(), FxHashSet::default());
    found.retain(|place| {
        let path = aligned.path(*place);
        let is_new = !above_told.contains(place) && !path.iter().any(|above| told.contains(above));
        if is_new {
            told.insert(*place);
            above_told.extend(path);
        }
        is_new
    });
    let row = |place: u32| {
        let figures = || (0..aligned.dumps()).map(|dump| aligned.figures(dump, place));
        let bytes: Vec<u64> = figures().map(|figures| figures.retained_bytes).collect();
        TrendRow {
            key: None,
            labels: aligned.labels(place),
            text: aligned.text(place),
            objects: figures().map(|figures| figures.objects).collect(),
            growth: Growth::from_figures(&bytes),
            bytes,
        }
    };
    let rows = found.into_iter().map(row).filter(|row| which.contains(row.growth));
    (sorted(rows.collect()), least)
}

/// Sorts rows: first rows that grow in every step, then by growth.
fn sorted(mut rows: Vec<TrendRow>) -> Vec<TrendRow> {
    rows.sort_rows_by(|a, b| {
        let order = |row: &TrendRow| (row.growth, Reverse(row.delta()));
        order(a).cmp(&order(b)).then_with(|| (&a.key, &a.labels).cmp(&(&b.key, &b.labels)))
    });
    rows
}
