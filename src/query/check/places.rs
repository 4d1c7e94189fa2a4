//! Figures of places: what those of a pattern retain, and by how much they or any place grew.

use super::{Found, Limits, Measured, Named};
use crate::query::classes::suggestions;
use crate::query::compare::places::{Aligned, Changes, Places, least_of};
use crate::query::objects::selection::glob_matches;

/// Names of places that are compared with a pattern that matches none.
const MAX_NAMES: usize = 10_000;

/// The places whose text is a pattern, without those below them; what they hold belongs to them.
fn matching(aligned: &Aligned, pattern: &str) -> Vec<u32> {
    let mut is_below: Vec<bool> = Vec::with_capacity(aligned.parents.len());
    let mut found = Vec::new();
    // Each place comes after that above it.
    for (place, above) in (0u32..).zip(&aligned.parents) {
        let is_in = above.is_some_and(|above| is_below.get(above as usize).copied().unwrap_or(false));
        let is_top = !is_in && glob_matches(pattern, &aligned.text(place));
        if is_top {
            found.push(place);
        }
        is_below.push(is_in || is_top);
    }
    found
}

/// What some places of a dump retain together.
fn sum(aligned: &Aligned, dump: usize, places: &[u32]) -> u64 {
    let bytes = places.iter().map(|place| aligned.figures(dump, *place).retained_bytes);
    bytes.fold(0, u64::saturating_add)
}

/// What was found of a pattern: which place of several has most, or that there is none.
fn most(aligned: &Aligned, pattern: &str, places: &[u32], figure: impl Fn(u32) -> u64) -> Found {
    // The first of equal ones.
    let most = places.iter().rev().max_by_key(|place| figure(**place));
    let Some(most) = most else {
        let count = u32::try_from(aligned.parents.len().min(MAX_NAMES)).unwrap_or(u32::MAX);
        let texts: Vec<String> = (0..count).map(|place| aligned.text(place)).collect();
        let like = suggestions::names_like(pattern.trim_matches('*'), texts.iter().map(String::as_str));
        let like = like.into_iter().map(str::to_owned).collect();
        return Found::NoMatch { named: Named::Place, pattern: pattern.to_owned(), like };
    };
    Found::Most { name: aligned.text(*most), amount: figure(*most), of: places.len() as u64 }
}

/// What the places of a pattern retain together.
pub(super) fn retained(places: &Places, pattern: &str) -> Measured {
    let whole = places.reachable_bytes;
    let aligned = Aligned::new(std::slice::from_ref(places));
    let found = matching(&aligned, pattern);
    let bytes = |place| aligned.figures(0, place).retained_bytes;
    Measured::new(sum(&aligned, 0, &found), whole).with(most(&aligned, pattern, &found, bytes))
}

/// By how much the places of a pattern grew; without one, the place that grew most. Below 0 if they shrank; 0 if no place
/// grew by as much as one is told for, and the limit is not less.
pub(super) fn growth(old: &Places, new: &Places, pattern: Option<&str>, limits: Limits) -> Measured {
    let whole = old.reachable_bytes;
    let grown = |amount, found| Measured { amount, ..Measured::new(0, whole) }.with(found);
    if let Some(pattern) = pattern {
        let aligned = Aligned::new(&[old.clone(), new.clone()]);
        let found = matching(&aligned, pattern);
        let [before, after] = [0, 1].map(|dump| sum(&aligned, dump, &found));
        let delta = crate::query::compare::Change { old: before, new: after }.delta();
        let bytes = |place| aligned.figures(1, place).retained_bytes;
        return grown(delta, most(&aligned, pattern, &found, bytes));
    }
    let told = least_of(&[old.reachable_bytes, new.reachable_bytes]);
    // What a limit is about has to be told.
    let least = limits.least_of(whole).map_or(told, |limit| told.min(limit.saturating_add(1)));
    let changes = Changes::new(old.clone(), new.clone(), Some(least));
    let first = changes.rows.first().filter(|row| row.retained_bytes.delta() > 0);
    first.map_or_else(
        || grown(0, Found::Nothing),
        |row| {
            let amount = row.retained_bytes.delta();
            grown(amount, Found::Most { name: row.text.clone(), amount: amount.unsigned_abs(), of: 1 })
        },
    )
}
