//! Places of one heap, and the places among them that explain it.

mod explain;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod titles;

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::TreePosition;
use hprof_values::ObjectId;

use super::{AlignedPlaces, DumpPlaces, PlaceFigures};
use crate::frameworks::Naming;
use hprof_base::sorting::SortRows;

pub use explain::PlaceElements;
pub use titles::library;

/// Places of one heap, without uninformative keys.
#[derive(Debug, Clone, Default)]
pub struct OneHeap {
    /// Places of the heap.
    pub aligned: AlignedPlaces,
    /// Large objects at each place, in ascending order of position.
    members: Vec<Vec<TreePosition>>,
}

/// One or several places with the same title that explain a part of the heap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedPlace {
    /// Number of the place; of several places, the one that retains the most.
    pub place: u32,
    /// Numbers of the other places with the same title.
    pub others: Vec<u32>,
    /// Retained size of the objects at the places.
    pub retained_bytes: u64,
    /// Number of objects at the places.
    pub objects: u64,
    /// Elements that the places store or consist of, if there are many.
    pub elements: Option<PlaceElements>,
}

/// The places that explain a heap, largest first, and the size of the largest remaining place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainedHeap {
    /// Explaining places, none of which contains another.
    pub places: Vec<ExplainedPlace>,
    /// Upper limit of the retained size of any other place that contains no explaining place.
    pub largest_left: u64,
}

impl ExplainedHeap {
    /// Returns the retained size of the largest place.
    pub fn largest_bytes(&self) -> u64 {
        self.places.first().map_or(self.largest_left, |one| one.retained_bytes)
    }
}

impl OneHeap {
    /// Creates the places of a heap from [`DumpPlaces::of_large`].
    pub fn new(mut places: DumpPlaces) -> Self {
        let members = std::mem::take(&mut places.members);
        let (all, at) = AlignedPlaces::from_dumps(&[places]);
        let (aligned, told_at) = match all.telling() {
            Some((aligned, told_at)) => (aligned, told_at),
            None => {
                let same = all.places().collect();
                (all, same)
            }
        };
        let mut of_place = vec![Vec::new(); aligned.parents.len()];
        for (members, place) in members.into_iter().zip(at.into_iter().flatten()) {
            let told = place.and_then(|place| told_at.get(place as usize));
            if let Some(all) = told.and_then(|place| of_place.get_mut(*place as usize)) {
                all.extend(members);
            }
        }
        of_place.iter_mut().for_each(|members: &mut Vec<TreePosition>| members.sort_unstable());
        Self { aligned, members: of_place }
    }

    /// Returns the places that explain the heap and retain at least `least` bytes. A single object for which `is_store` is
    /// true, which may have elements of several classes, is not replaced by places below it.
    pub fn explain(&self, least: u64, is_store: impl Fn(ObjectId) -> bool) -> ExplainedHeap {
        let is_store = |place: u32| {
            let figures = self.aligned.figures(0, place);
            figures.objects == 1 && is_store(figures.example)
        };
        let found = explain::explain(&self.aligned, least, is_store);
        let mut by_title: FxHashMap<(String, Option<String>), Vec<ExplainedPlace>> = FxHashMap::default();
        for (place, elements) in found.places {
            let PlaceFigures { retained_bytes, objects, .. } = self.aligned.figures(0, place);
            let class = elements.and_then(|elements| self.aligned.label(elements.place).class.as_deref());
            let title = (self.aligned.title(place).text, class.map(str::to_owned));
            let one = ExplainedPlace { place, others: Vec::new(), retained_bytes, objects, elements };
            by_title.entry(title).or_default().push(one);
        }
        let mut places: Vec<ExplainedPlace> = by_title.into_values().filter_map(merge_places).collect();
        places.sort_rows_by_key(|one| (Reverse(one.retained_bytes), one.place));
        ExplainedHeap { places, largest_left: found.largest_left }
    }

    /// Returns the large objects at explained places, ascending. No object dominates another.
    pub fn members(&self, explained: &ExplainedPlace) -> Vec<TreePosition> {
        let places = std::iter::once(&explained.place).chain(&explained.others);
        let members = places.filter_map(|place| self.members.get(*place as usize));
        let mut all: Vec<TreePosition> = members.flatten().copied().collect();
        all.sort_unstable();
        all
    }

    /// Returns the names that framework rules give to single objects, followed by the field that holds the object if several
    /// objects have the same name.
    pub fn titles(&self) -> FxHashMap<ObjectId, String> {
        let aligned = &self.aligned;
        let named = aligned.places().filter(|place| {
            let label = aligned.label(*place);
            label.called.is_some() && label.naming != Naming::Many && aligned.figures(0, *place).objects == 1
        });
        named.map(|place| (aligned.figures(0, place).example, aligned.title(place).text)).collect()
    }

    /// Returns explained places and their elements in words: `HashMap sessions of Chat: 12,000 x Session`.
    pub fn description(&self, explained: &ExplainedPlace) -> String {
        self.aligned.description(explained)
    }

    /// Returns the name that the elements share by a framework's rule, if any: `coroutines in OrderService.price`.
    pub fn name_of_elements(&self, elements: &PlaceElements) -> Option<&str> {
        let label = self.aligned.label(elements.place);
        label.called.as_deref().filter(|_| label.naming == Naming::Many)
    }
}

/// Merges places with the same title.
fn merge_places(mut all: Vec<ExplainedPlace>) -> Option<ExplainedPlace> {
    all.sort_rows_by_key(|one| (Reverse(one.retained_bytes), one.place));
    let mut all = all.into_iter();
    let mut first = all.next()?;
    for one in all {
        first.others.push(one.place);
        first.retained_bytes = first.retained_bytes.saturating_add(one.retained_bytes);
        first.objects = first.objects.saturating_add(one.objects);
        if let (Some(elements), Some(more)) = (&mut first.elements, one.elements) {
            elements.objects = elements.objects.saturating_add(more.objects);
            elements.retained_bytes = elements.retained_bytes.saturating_add(more.retained_bytes);
            elements.heads = match (elements.heads, more.heads) {
                (0, _) | (_, 0) => 0,
                (heads, more) => heads.saturating_add(more),
            };
            elements.is_mostly |= more.is_mostly;
            elements.is_lower_bound |= more.is_lower_bound;
            elements.is_of_one_kind &= more.is_of_one_kind;
        }
    }
    Some(first)
}
