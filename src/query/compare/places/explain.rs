//! The places that explain one heap: the deepest that still account for it.
//!
//! From the top down, a place is replaced by places below it while one of them has most of its retained size, or several
//! together have enough of it. The walk ends where many elements share the retained size of a place: they are what is stored
//! there, and their contents follow from their number. No row contains another.

use std::cmp::Reverse;

use super::Aligned;
use super::labels::Via;
use crate::sorting::SortRows;

/// Minimum percentage of a place's retained size that a single place below it must have to replace it.
const MOST: u64 = 70;
/// Minimum percentage of a place's retained size that the places below it must have together to replace it.
const TOGETHER: u64 = 50;
/// Minimum percentage of a place's retained size that its elements must have.
const OF_ELEMENTS: u64 = 80;
/// Maximum percentage of the elements' retained size that a single one of them may have.
const AT_MOST_IN_ONE: u64 = 50;
/// Maximum number of nested places that are examined.
const MAX_STEPS: usize = 64;
/// Minimum number of elements that count as many.
const MANY: u64 = 10;

/// A place that explains a part of the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explained {
    /// Number of the place.
    pub place: u32,
    /// Retained size of its objects.
    pub retained_bytes: u64,
    /// Elements that it stores or consists of, if they are many.
    pub elements: Option<Elements>,
}

/// Many like objects at a place or right below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    /// Place of the elements that retain most.
    pub place: u32,
    /// Number of all elements.
    pub objects: u64,
    /// Retained size of all elements.
    pub retained_bytes: u64,
    /// `true` if some elements are at places other than `place`.
    pub is_mostly: bool,
}

/// Returns the places that explain one heap, largest first; each retains at least `least` bytes.
pub fn explain(aligned: &Aligned, least: u64) -> Vec<Explained> {
    let bytes = |place: u32| aligned.figures(0, place).retained_bytes;
    let large = |places: &[u32]| -> Vec<u32> {
        places.iter().copied().filter(|place| bytes(*place) >= least.max(1)).collect()
    };
    let mut found = Vec::new();
    let mut stack = large(&aligned.top);
    while let Some(place) = stack.pop() {
        let (place, elements) = fullest(aligned, place);
        let parts = large(aligned.below(place));
        if elements.is_none() && !parts.is_empty() && !aligned.is_nesting(place) {
            let whole = bytes(place);
            let sum = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(bytes(*part)));
            let largest = parts.iter().map(|part| bytes(*part)).max().unwrap_or(0);
            if is_share(largest, whole, MOST) || is_share(sum, whole, TOGETHER) {
                stack.extend(parts);
                continue;
            }
        }
        found.push(Explained { place, retained_bytes: bytes(place), elements });
    }
    found.sort_rows_by_key(|one| (Reverse(one.retained_bytes), one.place));
    found
}

/// Returns the place at or below `place` that stores elements, and the elements. Ten results with thousands of rows each are
/// rows in results; a thousand sessions with ten items each are sessions: the elements chosen are those with the largest
/// number per container.
fn fullest(aligned: &Aligned, place: u32) -> (u32, Option<Elements>) {
    let Some(first) = elements(aligned, place) else { return (place, None) };
    let bytes = |place: u32| aligned.figures(0, place).retained_bytes;
    let per_container = |container: u32, of: &Elements| {
        let containers = if container == of.place { 1 } else { aligned.figures(0, container).objects };
        of.objects / containers.max(1)
    };
    let (mut best, mut at) = ((place, first), first.place);
    for _ in 0..MAX_STEPS {
        if let Some(found) = stored(aligned, at)
            && per_container(at, &found) > per_container(best.0, &best.1)
        {
            best = (at, found);
        }
        let below = aligned.below(at).iter().copied().max_by_key(|below| (bytes(*below), Reverse(*below)));
        match below.filter(|below| is_share(bytes(*below), bytes(place), OF_ELEMENTS)) {
            Some(below) => at = below,
            None => break,
        }
    }
    (best.0, Some(best.1))
}

/// Returns the elements that a place stores, if they are many and have most of its retained size.
pub fn elements(aligned: &Aligned, place: u32) -> Option<Elements> {
    let own = aligned.figures(0, place);
    // Links of a chain hold one another: the first of them retains all.
    let is_chain = own.following >= MANY;
    if is_chain || is_shared(own.objects, own.largest_bytes, own.retained_bytes) {
        return Some(Elements {
            place,
            objects: own.objects,
            retained_bytes: own.retained_bytes,
            is_mostly: false,
        });
    }
    stored(aligned, place)
}

/// Returns the elements immediately below a place, if they are many and have most of its retained size.
fn stored(aligned: &Aligned, place: u32) -> Option<Elements> {
    let own = aligned.figures(0, place);
    let is_element = |place: &u32| matches!(aligned.label(*place).via, Via::Unknown | Via::Value | Via::Key);
    let all: Vec<u32> = aligned.below(place).iter().copied().filter(is_element).collect();
    let values = all.iter().copied().filter(|place| aligned.label(*place).via != Via::Key);
    let figures = |place: u32| aligned.figures(0, place);
    let counted: Vec<u32> = values.collect();
    let counted = if counted.is_empty() { all.clone() } else { counted };
    let first = *counted.iter().max_by_key(|place| (figures(**place).retained_bytes, Reverse(**place)))?;
    let objects = counted.iter().fold(0, |sum: u64, place| sum.saturating_add(figures(*place).objects));
    let largest = counted.iter().map(|place| figures(*place).largest_bytes).max()?;
    let bytes = all.iter().fold(0, |sum: u64, place| sum.saturating_add(figures(*place).retained_bytes));
    let with_parts = bytes.saturating_add(own.own_bytes);
    let values = counted.iter().fold(0, |sum: u64, place| sum.saturating_add(figures(*place).retained_bytes));
    let is_of_one_kind = is_share(figures(first).retained_bytes, values, OF_ONE_KIND);
    let is_store =
        is_shared(objects, largest, bytes) && is_share(with_parts, own.retained_bytes, OF_ELEMENTS);
    (is_store && is_of_one_kind).then_some(Elements {
        place: first,
        objects,
        retained_bytes: bytes,
        is_mostly: figures(first).objects < objects,
    })
}

/// Returns `true` if there are many objects and none has most of the size.
fn is_shared(objects: u64, largest: u64, bytes: u64) -> bool {
    objects >= MANY && !is_share(largest, bytes, AT_MOST_IN_ONE + 1)
}

/// Returns `true` if `part` is at least `percent` percent of `whole`.
fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}
