//! Figures of places: retained size of the places that match a pattern.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{LeftOut, MeasureDetails, Measurement, NamedKind};
use crate::compare::places::{AlignedPlaces, DumpPlaces};
use hprof_base::naming::suggestions;
use hprof_model::objects::selection::glob_matches;

/// Maximum number of place names compared with a pattern that matches none.
const MAX_NAMES: usize = 10_000;

/// Places of a dump, as found and as a tree.
#[derive(Debug, Clone)]
pub struct PlacesOfDump {
    pub(super) places: DumpPlaces,
    named: NamedPlaces,
}

impl PlacesOfDump {
    pub(super) fn new(places: DumpPlaces) -> Self {
        let named = NamedPlaces::new(&[&places]);
        Self { places, named }
    }

    /// Returns the parts of the heap that the figures omit.
    pub(super) fn left_out(&self) -> LeftOut {
        if self.places.is_cut { LeftOut::Places } else { LeftOut::Nothing }
    }

    /// Measures the joint retained size of the places that match a pattern.
    pub(super) fn retained_size(&self, pattern: &str) -> Measurement {
        let bytes = |aligned: &AlignedPlaces, place: u32| {
            i64::try_from(aligned.figures(0, place).retained_bytes).unwrap_or(i64::MAX)
        };
        let matching = self.named.matching(pattern, bytes);
        let sum = matching.iter().fold(0, |sum: i64, one| sum.saturating_add(one.amount));
        // The first, if several are equal.
        let most = matching.iter().rev().max_by_key(|one| one.amount);
        let most = most.map(|most| MeasureDetails::Most {
            name: most.name.clone(),
            amount: most.amount.unsigned_abs(),
            of: matching.len() as u64,
        });
        let measured = Measurement::new(sum.unsigned_abs(), self.places.reachable_bytes);
        Measurement {
            left_out: self.left_out(),
            ..measured.with(most.unwrap_or_else(|| self.no_match(pattern)))
        }
    }

    fn no_match(&self, pattern: &str) -> MeasureDetails {
        let named = self.named.like(pattern);
        let texts: Vec<String> = named.places().take(MAX_NAMES).map(|place| named.text(place)).collect();
        let suggestions =
            suggestions::names_like(pattern.trim_matches('*'), texts.iter().map(String::as_str));
        let suggestions = suggestions.into_iter().map(str::to_owned).collect();
        MeasureDetails::NoMatch { named: NamedKind::Place, pattern: pattern.to_owned(), suggestions }
    }
}

/// Places of several dumps: found by any of their keys, named by informative keys only.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedPlaces {
    /// Places with all keys; `None` if `telling` has all keys.
    whole: Option<AlignedPlaces>,
    /// For each place of `whole`: index of the place of `telling` that contains it.
    told_at: Vec<u32>,
    /// Places with informative keys only, as `diff` shows them.
    pub(super) telling: AlignedPlaces,
}

/// Places that match a pattern and have the same name.
pub(super) struct Matching {
    pub(super) name: String,
    pub(super) amount: i64,
}

impl NamedPlaces {
    pub(super) fn new(dumps: &[&DumpPlaces]) -> Self {
        let whole = AlignedPlaces::with_all_keys(dumps);
        match whole.telling() {
            Some((telling, told_at)) => Self { whole: Some(whole), told_at, telling },
            None => Self { telling: whole, ..Self::default() },
        }
    }

    /// Returns the places to suggest if a pattern matches none: places with all keys if the pattern contains a key.
    fn like(&self, pattern: &str) -> &AlignedPlaces {
        self.whole.as_ref().filter(|_| pattern.contains('{')).unwrap_or(&self.telling)
    }

    /// Returns the places whose text matches a pattern, with or without map keys. Places below a match are omitted, since their
    /// objects are part of the match. Places that `diff` shows as one are one match if all of them match.
    pub(super) fn matching(
        &self,
        pattern: &str,
        amount: impl Fn(&AlignedPlaces, u32) -> i64,
    ) -> Vec<Matching> {
        let Some(whole) = &self.whole else {
            let one =
                |place| Matching { name: self.telling.text(place), amount: amount(&self.telling, place) };
            return matching(&self.telling, pattern).into_iter().map(one).collect();
        };
        let mut places_of: Vec<u32> = vec![0; self.telling.parents.len()];
        for told in &self.told_at {
            if let Some(places) = places_of.get_mut(*told as usize) {
                *places += 1;
            }
        }
        let found = matching(whole, pattern);
        let told_at = |place: u32| self.told_at.get(place as usize).copied().unwrap_or(u32::MAX);
        let mut found_of: FxHashMap<u32, u32> = FxHashMap::default();
        for place in &found {
            *found_of.entry(told_at(*place)).or_default() += 1;
        }
        let is_whole = |told: u32| found_of.get(&told) == places_of.get(told as usize);
        let mut is_told: FxHashSet<u32> = FxHashSet::default();
        let mut all = Vec::new();
        for place in found {
            let told = told_at(place);
            if !is_whole(told) {
                all.push(Matching { name: whole.text(place), amount: amount(whole, place) });
            } else if is_told.insert(told) {
                all.push(Matching { name: self.telling.text(told), amount: amount(&self.telling, told) });
            }
        }
        all
    }
}

/// Returns the places whose text matches a pattern, without those below a match.
fn matching(aligned: &AlignedPlaces, pattern: &str) -> Vec<u32> {
    let mut is_below: Vec<bool> = Vec::with_capacity(aligned.parents.len());
    let mut found = Vec::new();
    // Each place comes after its parent.
    for (place, above) in (0u32..).zip(&aligned.parents) {
        let is_in = above.is_some_and(|above| is_below.get(above as usize).copied().unwrap_or(false));
        let is_top = !is_in && aligned.spellings(place).iter().any(|text| glob_matches(pattern, text));
        if is_top {
            found.push(place);
        }
        is_below.push(is_in || is_top);
    }
    found
}
