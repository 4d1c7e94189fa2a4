//! Growth between two dumps, by place.

use super::{AlignedPlaces, DumpPlaces, PlaceFigures, Via, explaining_places};
use hprof_base::change::{Change, Status};
use hprof_values::ObjectId;

/// Changes below this fraction of the larger heap (1/`LEAST_PART`) are not reported.
const LEAST_PART: u64 = 1000;

/// A place that explains growth or shrinkage between two dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceChange {
    /// Labels of the place, from the top.
    pub labels: Vec<String>,
    /// The place on one line.
    pub text: String,
    /// Status of the place: new, gone, changed or the same.
    pub status: Status,
    /// Number of objects at the place.
    pub objects: Change,
    /// Retained size of the objects.
    pub retained_bytes: Change,
    /// Outermost map that contains the place; `None` if no map does, or if keys are shown.
    pub map: Option<MapAbove>,
    /// ID of one of the objects in the new dump; null if there are none.
    pub example: ObjectId,
}

/// Outermost map above a place, if the values of the map share one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapAbove {
    /// The place of the map on one line.
    pub text: String,
    /// Retained size of the maps at that place.
    pub retained_bytes: Change,
}

impl MapAbove {
    fn for_place(aligned: &AlignedPlaces, place: u32) -> Option<Self> {
        let path = aligned.path(place);
        let is_value = |place: &u32| aligned.label(*place).via == Via::Value;
        let (map, _) = path.iter().zip(path.iter().skip(1)).find(|(_, below)| is_value(below))?;
        let retained = |figures: PlaceFigures| figures.retained_bytes;
        let (old, new) = aligned.ends(*map);
        let retained_bytes = Change { old: retained(old), new: retained(new) };
        Some(Self { text: aligned.text(*map), retained_bytes })
    }
}

/// Growth between two dumps, by place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Places that explain the growth, largest growth first. No place contains another.
    pub rows: Vec<PlaceChange>,
    /// Size of all reachable objects.
    pub reachable_bytes: Change,
    /// Smallest change that is reported, in bytes.
    pub least: u64,
}

impl Changes {
    /// Compares two dumps. `least` is the smallest change to report; by default a thousandth of the larger heap.
    pub fn new(old: DumpPlaces, new: DumpPlaces, least: Option<u64>) -> Self {
        let reachable_bytes = Change { old: old.reachable_bytes, new: new.reachable_bytes };
        let least = least.unwrap_or_else(|| least_of(&[old.reachable_bytes, new.reachable_bytes])).max(1);
        let aligned = AlignedPlaces::new(&[old, new]);
        let row = |place: u32| {
            let (old, new) = (aligned.figures(0, place), aligned.figures(1, place));
            let change = |of: fn(PlaceFigures) -> u64| Change { old: of(old), new: of(new) };
            PlaceChange {
                labels: aligned.labels(place),
                text: aligned.text(place),
                status: Status::from_presence(old.objects > 0, new.objects > 0, false),
                objects: change(|figures| figures.objects),
                retained_bytes: change(|figures| figures.retained_bytes),
                map: MapAbove::for_place(&aligned, place),
                example: new.example,
            }
        };
        let rows = explaining_places(&aligned, least).into_iter().map(row).collect();
        Self { rows, reachable_bytes, least }
    }

    /// Returns the total growth of all places that grew.
    pub fn grown_bytes(&self) -> u64 {
        self.sum(|delta| delta > 0)
    }

    /// Returns the total growth, including growth that no place explains. If something shrank, the heap grew by less than this.
    pub fn all_grown_bytes(&self) -> u64 {
        let shrunk = i64::try_from(self.sum(|delta| delta < 0)).unwrap_or(i64::MAX);
        let all = self.reachable_bytes.delta().saturating_add(shrunk);
        u64::try_from(all).unwrap_or(0).max(self.grown_bytes())
    }

    fn sum(&self, is_meant: impl Fn(i64) -> bool) -> u64 {
        let deltas = self.rows.iter().map(|row| row.retained_bytes.delta()).filter(|delta| is_meant(*delta));
        deltas.fold(0, |sum, delta| sum.saturating_add(delta.unsigned_abs()))
    }
}

/// Returns the default of the smallest reported change for heaps of these sizes.
pub fn least_of(heaps: &[u64]) -> u64 {
    heaps.iter().copied().max().unwrap_or(0).div_ceil(LEAST_PART).max(1)
}
