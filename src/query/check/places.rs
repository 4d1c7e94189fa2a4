//! Figures of places: what those of a pattern retain.

use super::{Found, LeftOut, Measured, Named};
use crate::classes::suggestions;
use crate::compare::places::{Aligned, Places};
use crate::objects::selection::glob_matches;

/// Names of places that are compared with a pattern that matches none.
const MAX_NAMES: usize = 10_000;

/// The places of a dump, and the same as a tree.
#[derive(Debug, Clone)]
pub struct PlacesOfDump {
    pub(super) places: Places,
    pub(super) aligned: Aligned,
}

impl PlacesOfDump {
    pub(super) fn new(places: Places) -> Self {
        let aligned = Aligned::new(std::slice::from_ref(&places));
        Self { places, aligned }
    }

    /// What the figures leave out.
    pub(super) fn left_out(&self) -> LeftOut {
        if self.places.is_cut { LeftOut::Places } else { LeftOut::Nothing }
    }

    /// What the places of a pattern retain together.
    pub(super) fn retained(&self, pattern: &str) -> Measured {
        let found = matching(&self.aligned, pattern);
        let bytes = |place: u32| self.aligned.figures(0, place).retained_bytes;
        let sum = found.iter().fold(0, |sum: u64, place| sum.saturating_add(bytes(*place)));
        // The first of equal ones.
        let most = found.iter().rev().max_by_key(|place| bytes(**place));
        let most = most.map(|most| Found::Most {
            name: self.aligned.text(*most),
            amount: bytes(*most),
            of: found.len() as u64,
        });
        let measured = Measured::new(sum, self.places.reachable_bytes);
        Measured {
            left_out: self.left_out(),
            ..measured.with(most.unwrap_or_else(|| self.no_match(pattern)))
        }
    }

    fn no_match(&self, pattern: &str) -> Found {
        let count = u32::try_from(self.aligned.parents.len().min(MAX_NAMES)).unwrap_or(u32::MAX);
        let texts: Vec<String> = (0..count).map(|place| self.aligned.text(place)).collect();
        let suggestions =
            suggestions::names_like(pattern.trim_matches('*'), texts.iter().map(String::as_str));
        let suggestions = suggestions.into_iter().map(str::to_owned).collect();
        Found::NoMatch { named: Named::Place, pattern: pattern.to_owned(), suggestions }
    }
}

/// The places whose text is a pattern, with keys of maps or without, but not those below them; what they hold belongs to
/// them.
pub(super) fn matching(aligned: &Aligned, pattern: &str) -> Vec<u32> {
    let mut is_below: Vec<bool> = Vec::with_capacity(aligned.parents.len());
    let mut found = Vec::new();
    // Each place comes after that above it.
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
