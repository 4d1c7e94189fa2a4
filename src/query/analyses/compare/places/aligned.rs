//! The places of several dumps as one tree.

use std::borrow::Borrow;

use rustc_hash::FxHashMap;

use hprof_base::change::Change;
use hprof_values::ObjectId;

use super::labels::{PlaceLabel, Pool, Via};
use super::structures::{PlaceStructures, StructureMembership};
use super::{DumpPlace, DumpPlaces};
use crate::frameworks::Naming;

/// Objects of one dump at a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PlaceFigures {
    /// Number of objects at the place.
    pub objects: u64,
    /// Shallow size of the objects, including the parts of collections.
    pub own_bytes: u64,
    /// Retained size of the objects.
    pub retained_bytes: u64,
    /// Retained size of the largest object.
    pub largest_bytes: u64,
    /// Number of the objects that another object of the place immediately dominates.
    pub following: u64,
    /// ID of one of the objects; null if there are none.
    #[serde(with = "hprof_base::kept::object_id")]
    pub example: ObjectId,
}

impl PlaceFigures {
    /// Adds the figures of two places that are merged.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            own_bytes: self.own_bytes.saturating_add(other.own_bytes),
            retained_bytes: self.retained_bytes.saturating_add(other.retained_bytes),
            largest_bytes: self.largest_bytes.max(other.largest_bytes),
            following: self.following.saturating_add(other.following),
            example: if self.example.is_null() { other.example } else { self.example },
        }
    }
}

/// Places of several dumps as one tree. The virtual root is not included.
#[derive(Debug, Clone, Default)]
pub struct AlignedPlaces {
    /// By place: its parent, or `None` at the top. Parents come before their children.
    pub parents: Vec<Option<u32>>,
    /// By place: `true` if some objects below it belong to a place above it.
    pub is_nesting: Vec<bool>,
    /// By place: number of its label.
    pub(super) label_of: Vec<u32>,
    pub(super) labels: Vec<PlaceLabel>,
    /// Figures by dump and place.
    pub(super) figures: Vec<Vec<PlaceFigures>>,
    /// Bytes of the reachable objects of each dump.
    pub reachable_bytes: Vec<u64>,
    /// By place: its children.
    pub below: Vec<Vec<u32>>,
    /// Top-level places.
    pub top: Vec<u32>,
    /// `true` if keys of maps and names of threads are hidden.
    pub(super) hides_values: bool,
}

impl AlignedPlaces {
    /// Aligns the places of several dumps by their labels. The values of maps share one place unless their keys are informative
    /// ([`Self::telling`]).
    pub fn new(dumps: &[impl Borrow<DumpPlaces>]) -> Self {
        let whole = Self::with_all_keys(dumps);
        whole.telling().map_or(whole, |(telling, _)| telling)
    }

    /// Aligns the places of several dumps as [`Self::new`] does, but retains all keys of maps.
    pub fn with_all_keys(dumps: &[impl Borrow<DumpPlaces>]) -> Self {
        Self::from_dumps(dumps).0
    }

    /// Aligns the places of several dumps with all keys. The second result contains, by dump and place of that dump, the
    /// aligned place; `None` for the nodes and arrays of a structure, which are at the place above.
    pub(super) fn from_dumps(dumps: &[impl Borrow<DumpPlaces>]) -> (Self, Vec<Vec<Option<u32>>>) {
        let structures =
            PlaceStructures::from_dumps(dumps.iter().map(|dump| dump.borrow().structures.as_slice()));
        let mut labels: Pool<PlaceLabel> = Pool::new();
        let mut aligned = Self::default();
        let mut known: FxHashMap<(Option<u32>, u32), u32> = FxHashMap::default();
        let mut all_at = Vec::with_capacity(dumps.len());
        for dump in dumps.iter().map(Borrow::borrow) {
            let numbers: Vec<u32> = dump.labels.iter().map(|label| labels.number(label.clone())).collect();
            let mut figures = vec![PlaceFigures::default(); aligned.parents.len()];
            // By place of the dump: the aligned place, and the structure.
            let mut places: Vec<(u32, StructureMembership)> = Vec::with_capacity(dump.places.len());
            for place in &dump.places {
                let DumpPlace { parent, label, is_nesting, .. } = *place;
                let parent = parent.and_then(|parent| places.get(parent as usize).copied());
                let above = parent.map(|(_, within)| within).unwrap_or_default();
                let of_dump = dump.labels.get(label as usize);
                let within = of_dump.map(|label| structures.membership(above, label)).unwrap_or_default();
                if let Some((number, _)) = parent.filter(|_| within.is_part) {
                    places.push((number, within));
                    if let Some(at) = figures.get_mut(number as usize) {
                        at.own_bytes = at.own_bytes.saturating_add(place.own_bytes);
                    }
                    continue;
                }
                let label = match of_dump {
                    Some(label) if above.is_part => labels.number(structures.label_below(above, label)),
                    _ => numbers.get(label as usize).copied().unwrap_or(u32::MAX),
                };
                let number = aligned.number(&mut known, parent.map(|(number, _)| number), label);
                places.push((number, within));
                aligned.mark_nesting(number, is_nesting);
                figures.resize(aligned.parents.len(), PlaceFigures::default());
                if let Some(at) = figures.get_mut(number as usize) {
                    *at = at.plus(place.figures());
                }
            }
            aligned.figures.push(figures);
            aligned.reachable_bytes.push(dump.reachable_bytes);
            aligned.hides_values |= dump.hides_values;
            let at = places.iter().map(|(number, within)| (!within.is_part).then_some(*number));
            all_at.push(at.collect());
        }
        for figures in &mut aligned.figures {
            figures.resize(aligned.parents.len(), PlaceFigures::default());
        }
        aligned.labels = labels.all;
        (aligned.with_children(), all_at)
    }

    /// Returns the number of a place, adding it if it is new.
    fn number(
        &mut self,
        known: &mut FxHashMap<(Option<u32>, u32), u32>,
        parent: Option<u32>,
        label: u32,
    ) -> u32 {
        // The number of places per dump is limited, and few dumps are compared.
        let next = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        let number = *known.entry((parent, label)).or_insert(next);
        if number == next {
            self.parents.push(parent);
            self.label_of.push(label);
            self.is_nesting.push(false);
        }
        number
    }

    fn mark_nesting(&mut self, place: u32, is_nesting: bool) {
        if let Some(place) = self.is_nesting.get_mut(place as usize) {
            *place |= is_nesting;
        }
    }

    /// Fills in the children of each place and the top-level places.
    pub(super) fn with_children(mut self) -> Self {
        self.below = vec![Vec::new(); self.parents.len()];
        for (place, parent) in (0u32..).zip(&self.parents) {
            match parent.and_then(|parent| self.below.get_mut(parent as usize)) {
                Some(below) => below.push(place),
                None => self.top.push(place),
            }
        }
        self
    }

    /// Returns the places immediately below a place.
    pub fn children(&self, place: u32) -> &[u32] {
        self.below.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of dumps.
    pub fn dumps(&self) -> usize {
        self.figures.len()
    }

    /// Returns the figures of a place in one dump.
    pub fn figures(&self, dump: usize, place: u32) -> PlaceFigures {
        let figures = self.figures.get(dump).and_then(|figures| figures.get(place as usize));
        figures.copied().unwrap_or_default()
    }

    /// Returns the figures of a place in the first dump and in the last dump.
    pub(super) fn ends(&self, place: u32) -> (PlaceFigures, PlaceFigures) {
        (self.figures(0, place), self.figures(self.dumps().saturating_sub(1), place))
    }

    /// Returns the growth of a place in bytes, from the first dump to the last.
    pub fn delta(&self, place: u32) -> i64 {
        let (old, new) = self.ends(place);
        Change { old: old.retained_bytes, new: new.retained_bytes }.delta()
    }

    /// Returns the numbers of all places.
    pub fn places(&self) -> impl DoubleEndedIterator<Item = u32> + use<> {
        0..u32::try_from(self.parents.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether some objects below a place belong to a place above it.
    pub fn is_nesting(&self, place: u32) -> bool {
        self.is_nesting.get(place as usize) == Some(&true)
    }

    /// Returns the label of a place.
    pub fn label(&self, place: u32) -> &PlaceLabel {
        const NONE: &PlaceLabel = &PlaceLabel {
            via: Via::Unknown,
            class: None,
            is_class_object: false,
            called: None,
            naming: Naming::Generic,
            has_sentence: false,
        };
        let label = self.label_of.get(place as usize).and_then(|label| self.labels.get(*label as usize));
        label.unwrap_or(NONE)
    }

    /// Returns the path to a place, from the top.
    pub fn path(&self, place: u32) -> Vec<u32> {
        let above = |place: &u32| self.parents.get(*place as usize).copied().flatten();
        let mut path: Vec<u32> = std::iter::successors(Some(place), above).collect();
        path.reverse();
        path
    }
}
