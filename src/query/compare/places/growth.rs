//! Which places explain what grew: the deepest that still do.
//!
//! A growth is followed down from the top. Below a place that holds different things - a class object, a map by names, an
//! object with several caches - each part that grew is followed by itself, if together they account for what the place
//! grew by. Where the objects of a place have become more, that is the cause, and what grew below them is its consequence;
//! from there a single place below is followed only while it has at least [`MAJORITY`] percent of that growth (Eclipse MAT
//! follows the largest child while it has 70 percent of its parent). So no place that is found contains another.

use super::Aligned;
use super::labels::Via;
use crate::compare::{Change, Growth};
use crate::sorting::SortRows;

/// Percent of a growth that a place below has to account for.
const MAJORITY: i64 = 70;

/// The places that explain the changes from the first dump to the last that are at least `least` bytes, most growth first.
pub fn explained(aligned: &Aligned, least: u64) -> Vec<u32> {
    let deltas: Vec<i64> = aligned.places().map(|place| aligned.delta(place)).collect();
    Search { aligned, weights: &deltas, is_kind: &|_| true, least }.run()
}

/// The same of growth of one kind alone.
pub fn explained_of(aligned: &Aligned, least: u64, growth: Growth) -> Vec<u32> {
    let is_it = |place: u32| {
        let figures: Vec<u64> =
            (0..aligned.dumps()).map(|dump| aligned.figures(dump, place).retained_bytes).collect();
        Growth::of(&figures) == Some(growth)
    };
    // A place that develops in another way counts for what it has below that grows like that.
    let mut weights: Vec<i64> = vec![0; aligned.parents.len()];
    for place in aligned.places().rev() {
        let own = if is_it(place) { aligned.delta(place) } else { weight(&weights, place) };
        if let Some(weight) = weights.get_mut(place as usize) {
            *weight = own;
        }
        let parent = aligned.parents.get(place as usize).copied().flatten();
        if let Some(above) = parent.and_then(|parent| weights.get_mut(parent as usize)) {
            *above = above.saturating_add(own);
        }
    }
    Search { aligned, weights: &weights, is_kind: &is_it, least }.run()
}

fn weight(weights: &[i64], place: u32) -> i64 {
    weights.get(place as usize).copied().unwrap_or(0)
}

struct Search<'a> {
    aligned: &'a Aligned,
    /// By place: the growth that is to be explained.
    weights: &'a [i64],
    /// Whether a place has a growth of its own that is to be explained. If not it only has such places below it.
    is_kind: &'a dyn Fn(u32) -> bool,
    least: u64,
}

impl Search<'_> {
    fn run(&self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut stack = self.large(&self.aligned.top);
        while let Some(place) = stack.pop() {
            let own = self.weight(place);
            if !(self.is_kind)(place) {
                stack.extend(self.large(self.below(place)));
                continue;
            }
            if self.became_more(place) {
                found.push(self.majority(place, own));
                continue;
            }
            let large = self.large(self.below(place));
            let (mut sum, mut sizes) = (0i64, 0i64);
            for below in &large {
                let weight = self.weight(*below);
                (sum, sizes) = (sum.saturating_add(weight), sizes.saturating_add(weight.saturating_abs()));
            }
            let left = own.saturating_sub(sum).saturating_abs();
            let all = own.saturating_abs().max(sizes);
            if !large.is_empty() && left.saturating_mul(100) <= all.saturating_mul(100 - MAJORITY) {
                stack.extend(self.without_company(large));
            } else if own.unsigned_abs() >= self.least {
                found.push(place);
            }
        }
        found.sort_rows_by_key(|place| (std::cmp::Reverse(self.weight(*place)), *place));
        found
    }

    fn weight(&self, place: u32) -> i64 {
        weight(self.weights, place)
    }

    fn below(&self, place: u32) -> &[u32] {
        self.aligned.below.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// Those of some places that count.
    fn large(&self, places: &[u32]) -> Vec<u32> {
        places.iter().copied().filter(|place| self.weight(*place).unsigned_abs() >= self.least).collect()
    }

    /// Of the keys and the values of a map, which come and go together, only those that weigh more; and all that is in fields.
    fn without_company(&self, below: Vec<u32>) -> Vec<u32> {
        let via = |place: &u32| &self.aligned.label(*place).via;
        let (mut followed, entries): (Vec<u32>, Vec<u32>) = below
            .into_iter()
            .partition(|place| !matches!(via(place), Via::Key | Via::ValueOf(_) | Via::Unknown));
        let (keys, values): (Vec<u32>, Vec<u32>) =
            entries.into_iter().partition(|place| *via(place) == Via::Key);
        let size = |places: &[u32]| {
            let sizes = places.iter().map(|place| self.weight(*place).unsigned_abs());
            sizes.fold(0u64, u64::saturating_add)
        };
        followed.extend(match (keys.is_empty(), values.is_empty()) {
            (false, false) if size(&keys) > size(&values) => keys,
            (false, true) => keys,
            _ => values,
        });
        followed
    }

    /// Whether the objects at a place became more, or fewer, as its bytes did: at least two.
    fn became_more(&self, place: u32) -> bool {
        let (old, new) = self.aligned.ends(place);
        let objects = Change { old: old.objects, new: new.objects }.delta();
        objects.unsigned_abs() > 1 && objects.signum() == self.weight(place).signum()
    }

    /// The deepest place that has most of a growth.
    fn majority(&self, place: u32, growth: i64) -> u32 {
        let enough = |weight: i64| {
            weight.signum() == growth.signum()
                && weight.saturating_abs().saturating_mul(100)
                    >= growth.saturating_abs().saturating_mul(MAJORITY)
        };
        // What holds more of the same, nested in it, explains nothing.
        let is_nesting = |place: u32| self.aligned.is_nesting.get(place as usize) == Some(&true);
        let is_next =
            |below: &u32| enough(self.weight(*below)) && !is_nesting(*below) && (self.is_kind)(*below);
        let mut at = place;
        while let Some(below) = self.below(at).iter().copied().find(is_next) {
            at = below;
        }
        at
    }
}
