//! Places that explain growth, as deep as possible.
//!
//! Each place is examined separately, regardless of the change above it: growth of one part can be offset by shrinkage of
//! another.
//! A change is followed down from the top. Below a place that holds different things (a class object, a map by names,
//! an object with several caches), each part that changed is followed separately, if the parts together account for the
//! change of the place, or grew by so much more that the place hides it. Otherwise, where the number of objects at a
//! place grew, that is the cause, and growth below them is its consequence; from there a single place below is followed
//! only while it has at least [`MAJORITY`] percent of that growth (Eclipse MAT follows the largest child while it has
//! 70 percent of its parent). If that leads from objects of the program to a multiple of them, the former are what the
//! program adds: sessions, not the items in their carts. So no place in the result contains another.

use std::cmp::Reverse;

use super::AlignedPlaces;
use super::labels::Via;
use crate::compare::Growth;
use hprof_base::change::Change;
use hprof_base::share::is_share;
use hprof_base::sorting::SortRows;
use hprof_values::names;

/// Minimum percentage of a growth that a single place below must have to explain it.
const MAJORITY: u64 = 70;

/// Minimum number of objects that count as units of growth: fewer objects are holders of what grew.
const MANY: u64 = 10;
/// Minimum number of objects added at the deepest place for each added unit, for the units to be shown instead.
const MULTIPLE: u64 = 2;

/// Returns the places that explain the changes from the first dump to the last that are at least `least` bytes, largest
/// growth first.
pub fn explaining_places(aligned: &AlignedPlaces, least: u64) -> Vec<u32> {
    GrowthSearch::new(aligned, least, |_| true).run()
}

/// Returns the places that explain changes as [`explaining_places`] does, for one kind of growth only.
pub fn explaining_places_of(aligned: &AlignedPlaces, least: u64, growth: Growth) -> Vec<u32> {
    let is_it = |place: u32| {
        let figures: Vec<u64> =
            (0..aligned.dumps()).map(|dump| aligned.figures(dump, place).retained_bytes).collect();
        Growth::from_figures(&figures) == Some(growth)
    };
    GrowthSearch::new(aligned, least, is_it).run()
}

/// Explanation of a place's change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChangeExplanation {
    /// There is nothing to explain.
    #[default]
    Nothing,
    /// The change of the place itself.
    Itself,
    /// The deepest place that has most of the change.
    Deepest,
    /// The places below, which account for the entire change.
    Parts,
    /// The places below have changes of their own, which do not account for this one.
    Below,
}

/// Explained change of a place: number of bytes grown and number of bytes shrunk.
#[derive(Debug, Clone, Copy, Default)]
struct ExplainedChange {
    grown: u64,
    shrunk: u64,
}

impl ExplainedChange {
    fn new(change: i64) -> Self {
        let size = change.unsigned_abs();
        if change > 0 { Self { grown: size, shrunk: 0 } } else { Self { grown: 0, shrunk: size } }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            grown: self.grown.saturating_add(other.grown),
            shrunk: self.shrunk.saturating_add(other.shrunk),
        }
    }

    fn size(self) -> u64 {
        self.grown.saturating_add(self.shrunk)
    }
}

/// Search for the places that explain growth.
struct GrowthSearch<'a> {
    aligned: &'a AlignedPlaces,
    /// By place: `true` if the growth of the place itself is explained; otherwise only growth below it.
    is_kind: Vec<bool>,
    least: u64,
    /// Explanation of each place.
    explained: Vec<ChangeExplanation>,
    moved: Vec<ExplainedChange>,
}

impl<'a> GrowthSearch<'a> {
    fn new(aligned: &'a AlignedPlaces, least: u64, is_kind: impl Fn(u32) -> bool) -> Self {
        Self {
            aligned,
            is_kind: aligned.places().map(is_kind).collect(),
            least,
            explained: vec![ChangeExplanation::default(); aligned.parents.len()],
            moved: vec![ExplainedChange::default(); aligned.parents.len()],
        }
    }

    fn run(mut self) -> Vec<u32> {
        // Each place comes after its parent.
        for place in self.aligned.places().rev() {
            let (explained, moved) = self.explain(place);
            if let (Some(at), Some(sum)) =
                (self.explained.get_mut(place as usize), self.moved.get_mut(place as usize))
            {
                (*at, *sum) = (explained, moved);
            }
        }
        let mut found = Vec::new();
        let mut stack = self.filter_explained(&self.aligned.top);
        while let Some(place) = stack.pop() {
            match self.explanation(place) {
                ChangeExplanation::Nothing => {}
                ChangeExplanation::Itself => found.push(place),
                ChangeExplanation::Deepest => found.push(self.deepest(place)),
                ChangeExplanation::Parts => {
                    stack.extend(self.without_company(self.filter_explained(self.aligned.children(place))));
                }
                ChangeExplanation::Below => stack.extend(self.filter_explained(self.aligned.children(place))),
            }
        }
        found.sort_rows_by_key(|place| (Reverse(self.aligned.delta(*place)), *place));
        found
    }

    /// Returns the explanation of a place after all places below it have been explained.
    fn explain(&self, place: u32) -> (ChangeExplanation, ExplainedChange) {
        let parts = self.aligned.children(place).iter().map(|place| self.explained_change(*place));
        let below = parts.fold(ExplainedChange::default(), ExplainedChange::plus);
        let by_below = if below.size() == 0 {
            (ChangeExplanation::Nothing, below)
        } else {
            (ChangeExplanation::Below, below)
        };
        if !self.is_kind(place) || self.is_nesting(place) {
            return by_below;
        }
        let change = self.aligned.delta(place);
        let (own, is_large) = (ExplainedChange::new(change), change.unsigned_abs() >= self.least);
        if Self::hides(change, below) {
            return by_below;
        }
        if is_large && self.became_more(place) {
            return (ChangeExplanation::Deepest, own);
        }
        let rest = i128::from(change) - i128::from(below.grown) + i128::from(below.shrunk);
        let all = u128::from(change.unsigned_abs().max(below.size()));
        if below.size() > 0 && rest.unsigned_abs() * 100 <= all * u128::from(100 - MAJORITY) {
            return (ChangeExplanation::Parts, own);
        }
        if is_large { (ChangeExplanation::Itself, own) } else { by_below }
    }

    /// Returns whether the growth below a place exceeds the place's own change by so much that the place does not reflect it.
    /// For a place that shrank, shrinkage below it counts as well.
    fn hides(change: i64, below: ExplainedChange) -> bool {
        let most = if change < 0 { below.grown.max(below.shrunk) } else { below.grown };
        !is_most(change.unsigned_abs(), most)
    }

    fn explanation(&self, place: u32) -> ChangeExplanation {
        self.explained.get(place as usize).copied().unwrap_or_default()
    }

    fn explained_change(&self, place: u32) -> ExplainedChange {
        self.moved.get(place as usize).copied().unwrap_or_default()
    }

    fn is_kind(&self, place: u32) -> bool {
        self.is_kind.get(place as usize) == Some(&true)
    }

    /// Returns whether objects below a place are nested in similar objects: they count at the place above with the same label,
    /// and explain nothing here.
    fn is_nesting(&self, place: u32) -> bool {
        self.aligned.is_nesting.get(place as usize) == Some(&true)
    }

    /// Returns the given places whose change is explained.
    fn filter_explained(&self, places: &[u32]) -> Vec<u32> {
        places
            .iter()
            .copied()
            .filter(|place| self.explanation(*place) != ChangeExplanation::Nothing)
            .collect()
    }

    /// Drops either the keys or the values of a map, whichever changed less, since they grow together. Places in fields remain.
    fn without_company(&self, below: Vec<u32>) -> Vec<u32> {
        let via = |place: &u32| &self.aligned.label(*place).via;
        let (mut followed, entries): (Vec<u32>, Vec<u32>) = below
            .into_iter()
            .partition(|place| !matches!(via(place), Via::Key | Via::Value | Via::ValueOf(_) | Via::Unknown));
        let (keys, values): (Vec<u32>, Vec<u32>) =
            entries.into_iter().partition(|place| *via(place) == Via::Key);
        let size = |places: &[u32]| {
            let sizes = places.iter().map(|place| self.explained_change(*place).size());
            sizes.fold(0u64, u64::saturating_add)
        };
        followed.extend(match (keys.is_empty(), values.is_empty()) {
            (false, false) if size(&keys) > size(&values) => keys,
            (false, true) => keys,
            _ => values,
        });
        followed
    }

    /// Returns whether the number of objects at a place changed, by at least two, in the same direction as its bytes.
    fn became_more(&self, place: u32) -> bool {
        let (old, new) = self.aligned.ends(place);
        let objects = Change { old: old.objects, new: new.objects }.delta();
        objects.unsigned_abs() > 1 && objects.signum() == self.aligned.delta(place).signum()
    }

    /// Returns the absolute change of the number of objects at a place.
    fn object_count_change(&self, place: u32) -> u64 {
        let (old, new) = self.aligned.ends(place);
        new.objects.abs_diff(old.objects)
    }

    /// Returns whether a place gained many instances of a class of the program.
    fn are_units(&self, place: u32) -> bool {
        let label = self.aligned.label(place);
        let class = label.class.as_deref().filter(|_| !label.is_class_object);
        let is_of_program = class.is_some_and(|class| !names::is_of_jdk(class) && !class.ends_with("[]"));
        is_of_program && self.object_count_change(place) >= MANY
    }

    /// Returns the deepest place that has most of a place's change, or the place of the program's units if each unit has
    /// several objects of the deepest place.
    fn deepest(&self, place: u32) -> u32 {
        let change = self.aligned.delta(place);
        let part = |below: u32| {
            let part = self.aligned.delta(below);
            let is_next = part.signum() == change.signum()
                && is_most(part.unsigned_abs(), change.unsigned_abs())
                && !self.is_nesting(below)
                && self.is_kind(below);
            is_next.then_some((part.unsigned_abs(), Reverse(below)))
        };
        let (mut at, mut units) = (place, None);
        loop {
            units = units.or_else(|| self.are_units(at).then_some(at));
            let next = self.aligned.children(at).iter().filter_map(|below| part(*below)).max();
            let Some((_, Reverse(next))) = next else { break };
            at = next;
        }
        units
            .filter(|units| {
                self.object_count_change(at) >= self.object_count_change(*units).saturating_mul(MULTIPLE)
            })
            .unwrap_or(at)
    }
}

/// Returns whether a part is at least 70 percent of a whole.
pub(super) fn is_most(part: u64, whole: u64) -> bool {
    is_share(part, whole, MAJORITY)
}
