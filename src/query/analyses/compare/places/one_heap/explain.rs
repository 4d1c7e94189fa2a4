//! The places that explain one heap: the deepest that still account for it.
//!
//! From the top down, a place is replaced by the places below it as long as one of them has most of its retained size, or
//! several together have enough of it. The walk ends at places whose retained size many elements share: the elements are stored
//! there, and the size of their contents follows from their number. No resulting place contains another.

use hprof_base::share::is_share;
use std::cmp::Reverse;

use super::super::labels::Via;
use super::AlignedPlaces;

/// Minimum percentage of a place's retained size that a single place below must have to replace it.
const MOST: u64 = 70;
/// Minimum percentage of a place's retained size that several places below must have together to replace it.
const TOGETHER: u64 = 50;
/// Minimum percentage of a place's retained size that its elements must have.
const OF_ELEMENTS: u64 = 80;
/// Minimum percentage of the elements' retained size that the elements at one place must have to be reported.
const OF_MOST: u64 = 50;
/// Minimum percentage for the elements at one place to count as the only kind.
const OF_ONE_KIND: u64 = 80;
/// Percentage of the objects from which on they count as all objects.
const OF_ALL: u64 = 99;
/// Maximum percentage of the elements' retained size in a single element.
const AT_MOST_IN_ONE: u64 = 50;
/// Maximum number of nested places that are examined.
const MAX_STEPS: usize = 64;
/// Minimum number of elements that count as many.
const MANY: u64 = 10;
/// Minimum number of nodes of a place for each head.
const MIN_NODES: u64 = 10;

/// Many similar objects at a place or immediately below it, which share most of its retained size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceElements {
    /// Place of the elements that retain the most.
    pub place: u32,
    /// Number of all elements.
    pub objects: u64,
    /// Retained size of all elements.
    pub retained_bytes: u64,
    /// `true` if some of the elements are at other places than `place`.
    pub is_mostly: bool,
    /// `true` if the elements at `place` have nearly all of the retained size of all elements.
    pub is_of_one_kind: bool,
    /// Number of heads (objects that no other object of the place holds) if there are at least ten times as many
    /// objects, as in chains and trees. Otherwise 0.
    pub heads: u64,
    /// `true` if the number is a lower bound: elements of objects that are nested in other objects of their place count
    /// elsewhere.
    pub is_lower_bound: bool,
}

/// The places that explain a heap, each with its elements, and the size of the largest remaining place.
#[derive(Debug, Default)]
pub(super) struct Explanation {
    pub(super) places: Vec<(u32, Option<PlaceElements>)>,
    pub(super) largest_left: u64,
}

/// Returns the places that explain one heap; each retains at least `least` bytes. A single object for which `is_store` is true
/// is not replaced by the places below it.
pub(super) fn explain(aligned: &AlignedPlaces, least: u64, is_store: impl Fn(u32) -> bool) -> Explanation {
    let bytes = |place: u32| aligned.figures(0, place).retained_bytes;
    let least = least.max(1);
    let mut found = Explanation::default();
    let mut stack = Vec::new();
    let mut split = |places: &[u32], except: Option<u32>, stack: &mut Vec<u32>| {
        for place in places.iter().copied().filter(|place| Some(*place) != except) {
            if bytes(place) >= least {
                stack.push(place)
            } else {
                found.largest_left = found.largest_left.max(bytes(place))
            }
        }
    };
    split(&aligned.top, None, &mut stack);
    // The retained size of a nesting place includes objects that belong to a place above it.
    let has_nesting = |place: u32| {
        let parts = aligned.children(place).iter();
        parts.into_iter().any(|part| aligned.is_nesting(*part) && bytes(*part) >= least)
    };
    let mut own = 0;
    while let Some(place) = stack.pop() {
        let (path, elements) = fullest(aligned, place);
        // The siblings of the places on the path to the elements.
        for (above, below) in path.iter().zip(path.iter().skip(1)).filter(|(above, _)| !has_nesting(**above))
        {
            own = own.max(aligned.figures(0, *above).own_bytes);
            split(aligned.children(*above), Some(*below), &mut stack);
        }
        let place = path.last().copied().unwrap_or(place);
        if elements.is_none() && !is_store(place) && !aligned.is_nesting(place) && !has_nesting(place) {
            // A sentence about an object is more informative than its fields, or than several of its elements.
            let is_said = aligned.label(place).has_sentence;
            let is_field = |part: u32| matches!(aligned.label(part).via, Via::Field { .. });
            let parts = || aligned.children(place).iter().copied().filter(|part| bytes(*part) >= least);
            let largest = parts().filter(|part| !is_said || !is_field(*part)).map(bytes).max().unwrap_or(0);
            let sum = parts().map(bytes).fold(0, u64::saturating_add);
            let whole = bytes(place);
            if is_share(largest, whole, MOST) || !is_said && is_share(sum, whole, TOGETHER) {
                own = own.max(aligned.figures(0, place).own_bytes);
                split(aligned.children(place), None, &mut stack);
                continue;
            }
        }
        found.places.push((place, elements));
    }
    found.largest_left = found.largest_left.max(own);
    found
}

/// Returns the path from `place` to the place at or below it that stores elements, and the elements: those with the
/// largest number per container. For ten results with thousands of rows each, these are the rows; for a thousand sessions
/// with ten items each, the sessions.
fn fullest(aligned: &AlignedPlaces, place: u32) -> (Vec<u32>, Option<PlaceElements>) {
    let first = match elements(aligned, place) {
        Some(first) if !aligned.label(place).has_sentence => first,
        found => return (vec![place], found),
    };
    let bytes = |place: u32| aligned.figures(0, place).retained_bytes;
    let per_container = |container: u32, of: &PlaceElements| {
        let containers = if container == of.place { 1 } else { aligned.figures(0, container).objects };
        of.objects / containers.max(1)
    };
    let mut path = vec![place];
    let (mut best, mut at, mut length) = ((place, first), first.place, 1);
    for _ in 0..MAX_STEPS {
        if path.last() != Some(&at) {
            path.push(at);
        }
        if let Some(found) = stored_elements(aligned, at)
            && per_container(at, &found) > per_container(best.0, &best.1)
        {
            (best, length) = ((at, found), path.len());
        }
        let below = aligned.children(at).iter().copied().max_by_key(|below| (bytes(*below), Reverse(*below)));
        match below.filter(|below| is_share(bytes(*below), bytes(place), OF_ELEMENTS)) {
            Some(below) => at = below,
            None => break,
        }
    }
    path.truncate(length);
    (path, Some(best.1))
}

/// Returns the elements that a place stores, if there are many and they have most of its retained size.
fn elements(aligned: &AlignedPlaces, place: u32) -> Option<PlaceElements> {
    let own = aligned.figures(0, place);
    // Each link of a chain holds the next: the first one retains all.
    let are_nodes = own.following >= MANY;
    let heads = if are_nodes { own.objects.saturating_sub(own.following) } else { 0 };
    if are_nodes || is_shared(own.objects, own.largest_bytes, own.retained_bytes) {
        return Some(PlaceElements {
            place,
            objects: own.objects,
            retained_bytes: own.retained_bytes,
            is_mostly: false,
            is_of_one_kind: true,
            heads: if own.objects / MIN_NODES >= heads { heads } else { 0 },
            is_lower_bound: false,
        });
    }
    stored_elements(aligned, place)
}

/// Returns the elements immediately below a place, if there are many and they have most of its retained size.
fn stored_elements(aligned: &AlignedPlaces, place: u32) -> Option<PlaceElements> {
    let own = aligned.figures(0, place);
    let is_element = |place: &u32| matches!(aligned.label(*place).via, Via::Unknown | Via::Value | Via::Key);
    let all: Vec<u32> = aligned.children(place).iter().copied().filter(is_element).collect();
    let values: Vec<u32> =
        all.iter().copied().filter(|place| aligned.label(*place).via != Via::Key).collect();
    // A set has only keys.
    let counted = if values.is_empty() { &all } else { &values };
    let figures = |place: &u32| aligned.figures(0, *place);
    let sum = |of: &[u32], value: fn(&super::PlaceFigures) -> u64| {
        of.iter().fold(0u64, |sum, place| sum.saturating_add(value(&figures(place))))
    };
    let first = *counted.iter().max_by_key(|place| (figures(place).retained_bytes, Reverse(**place)))?;
    let (first_objects, objects) = (figures(&first).objects, sum(counted, |of| of.objects));
    // The locks of a queue are not elements.
    let objects = if is_share(first_objects, objects, OF_ALL) { first_objects } else { objects };
    let largest = counted.iter().map(|place| figures(place).largest_bytes).max()?;
    let bytes = sum(&all, |of| of.retained_bytes);
    let (first_bytes, values) = (figures(&first).retained_bytes, sum(counted, |of| of.retained_bytes));
    let is_store = is_shared(objects, largest, bytes)
        && is_share(bytes.saturating_add(own.own_bytes), own.retained_bytes, OF_ELEMENTS);
    (is_store && is_share(first_bytes, values, OF_MOST)).then_some(PlaceElements {
        place: first,
        objects,
        retained_bytes: bytes,
        is_mostly: first_objects < objects,
        is_of_one_kind: is_share(first_bytes, values, OF_ONE_KIND),
        heads: 0,
        is_lower_bound: aligned.is_nesting(place),
    })
}

/// Returns whether there are many objects and no single one has most of the retained size.
fn is_shared(objects: u64, largest: u64, bytes: u64) -> bool {
    objects >= MANY && !is_share(largest, bytes, AT_MOST_IN_ONE + 1)
}
