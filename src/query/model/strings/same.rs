//! Groups Strings of one hash by text.
//!
//! Texts with the same hash are nearly always equal, but only a comparison is certain. Strings may share their arrays, and
//! arrays may be long: each location is compared once, regardless of the number of Strings with it.

use std::cmp::Ordering;

use crate::objects::reader::Characters;

use super::contents;
use super::find::StringItem;

/// Length up to which texts are compared String by String: grouping by location would take longer.
const SHORT: u32 = 256;

/// Sorts Strings of the same hash by text, usually one, and object ID; `counts` receives the number of Strings of each
/// text. They must be sorted by object ID before. `text` reads a text.
pub(super) fn by_text<'a>(
    items: &mut [StringItem],
    counts: &mut Vec<usize>,
    text: impl Fn(&StringItem) -> Option<Characters<'a>>,
) {
    counts.clear();
    counts.push(items.len());
    let Some((first, others)) = items.split_first() else { return };
    if others.is_empty() {
        return;
    }
    let first = text(first);
    let is_first = |item: &StringItem| match (&first, text(item)) {
        (Some(a), Some(b)) => contents::same(a, &b),
        (None, None) => true,
        _ => false,
    };
    let is_short = first.is_none_or(|first| first.len() <= SHORT as usize);
    if is_short && others.iter().all(is_first) {
        return;
    }
    items.sort_unstable_by_key(|item| (item.place(), item.string));
    let of_places = || items.chunk_by(StringItem::is_at_place_of);
    if !is_short && of_places().filter_map(<[StringItem]>::first).all(is_first) {
        items.sort_unstable_by_key(|item| item.string);
        return;
    }
    // For each location, by text: start and number of its Strings.
    let mut start = 0;
    let mut places: Vec<(Option<Characters<'a>>, usize, usize)> = of_places()
        .map(|items| {
            let place = (items.first().and_then(&text), start, items.len());
            start += items.len();
            place
        })
        .collect();
    places.sort_by(|(a, ..), (b, ..)| order(a.as_ref(), b.as_ref()));
    let mut sorted = Vec::with_capacity(items.len());
    counts.clear();
    for same in places.chunk_by(|(a, ..), (b, ..)| order(a.as_ref(), b.as_ref()).is_eq()) {
        let start = sorted.len();
        for (_, at, count) in same {
            sorted.extend_from_slice(items.get(*at..*at + *count).unwrap_or_default());
        }
        let here = sorted.get_mut(start..).unwrap_or_default();
        here.sort_unstable_by_key(|item| item.string);
        counts.push(here.len());
    }
    for (item, sorted) in items.iter_mut().zip(sorted) {
        *item = sorted;
    }
}

/// Orders two texts; unreadable ones come first.
pub(super) fn order(a: Option<&Characters<'_>>, b: Option<&Characters<'_>>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => contents::compare(a, b),
        _ => a.is_some().cmp(&b.is_some()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::cell::Cell;

    use super::super::contents::StringEncoding;
    use super::*;

    /// Returns Strings at these locations: number of each text, object IDs, and number of texts read.
    fn run(places: &[(StringEncoding, usize)], arrays: &[&'static [u8]]) -> (Vec<usize>, Vec<u32>, usize) {
        let mut items: Vec<StringItem> = places
            .iter()
            .zip(0..)
            .map(|((form, at), string)| StringItem::of_test(*form, *at, string))
            .collect();
        let (mut counts, read) = (Vec::new(), Cell::new(0));
        by_text(&mut items, &mut counts, |item| {
            read.set(read.get() + 1);
            let array = arrays.get(usize::try_from(item.place() >> 2).unwrap()).unwrap();
            Some(match item.place() & 3 {
                1 => Characters::Utf16Le(array),
                2 => Characters::Utf16Be(array),
                _ => Characters::Latin1(array),
            })
        });
        (counts, items.iter().map(|item| item.string).collect(), read.get())
    }

    #[test]
    fn texts_of_one_hash_are_told_apart() {
        let (a, b): (&[u8], &[u8]) = (&[b'a'; 1000], &[b'b'; 1000]);
        let (one, wide): (&[u8], &[u8]) = (b"a", b"a\0");
        let latin = |at| (StringEncoding::Latin1, at);
        assert_eq!(run(&[latin(1), latin(0), latin(2), latin(1)], &[a, a, a]).0, [4]);
        assert_eq!(run(&[latin(1), latin(0), latin(1)], &[one, one]), (vec![3], vec![0, 1, 2], 3));
        // `a` of two arrays, then `b`; and a short text next to a long one.
        let places = [latin(1), latin(0), latin(2), latin(1), latin(0), latin(2)];
        let (counts, order, _) = run(&places, &[a, b, a]);
        assert_eq!((counts, order), (vec![4, 2], vec![1, 2, 4, 5, 0, 3]));
        let (counts, order, _) = run(&[latin(1), latin(0), latin(1)], &[one, b]);
        assert_eq!((counts, order), (vec![1, 2], vec![1, 0, 2]));
        let (counts, order, _) = run(&[latin(0), (StringEncoding::Utf16Le, 1), latin(0)], &[one, wide]);
        assert_eq!((counts, order), (vec![3], vec![0, 1, 2]));
        assert_eq!(run(&[], &[]).0, [0]);
        // Parts of one array are compared one by one.
        let (counts, order, _) =
            run(&[(StringEncoding::Part, 0), (StringEncoding::Part, 1), (StringEncoding::Part, 0)], &[b, a]);
        assert_eq!((counts, order), (vec![1, 2], vec![1, 0, 2]));
    }

    #[test]
    fn a_place_is_read_once() {
        let (a, b): (&[u8], &[u8]) = (&[b'a'; 1000], &[b'b'; 1000]);
        let places: Vec<_> = (0..10_000).map(|at| (StringEncoding::Latin1, at % 2)).collect();
        let (counts, _, read) = run(&places, &[a, a]);
        assert!(counts == [10_000] && read <= 3, "{read}");
        let (counts, _, read) = run(&places, &[a, b]);
        assert!(counts == [5000, 5000] && read <= 5, "{read}");
    }
}
