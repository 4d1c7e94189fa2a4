//! Sorting of rows.
//!
//! A sort of the standard library is monomorphized for each type and closure, a thousand lines each time. Here a single
//! sort of positions is compiled, which compares through a trait object. Code that sorts millions of objects uses its
//! own.

use std::cmp::Ordering;

/// Stable sorts of tens to hundreds of thousands of rows.
pub trait SortRows<T> {
    /// Sorts like `sort_by`.
    fn sort_rows_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// Sorts like `sort_by_key`.
    fn sort_rows_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);

    /// Sorts like `sort_by_cached_key`: each key is computed once.
    fn sort_rows_by_cached_key<K: Ord>(&mut self, key: impl Fn(&T) -> K);
}

impl<T> SortRows<T> for [T] {
    fn sort_rows_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let order = order(self, &compare);
        arrange(self, order);
    }

    fn sort_rows_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.sort_rows_by(|a, b| key(a).cmp(&key(b)));
    }

    fn sort_rows_by_cached_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        let keys: Vec<K> = self.iter().map(key).collect();
        let order = order(&keys, &K::cmp);
        arrange(self, order);
    }
}

/// Returns the positions of the items in sorted order.
fn order<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> Vec<usize> {
    order_of_positions(items.len(), &|a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => a.cmp(&b),
    })
}

fn order_of_positions(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

/// Moves each item to its position, cycle by cycle of the permutation.
fn arrange<T>(items: &mut [T], mut order: Vec<usize>) {
    for start in 0..order.len() {
        let mut to = start;
        while let Some(place) = order.get_mut(to) {
            let from = std::mem::replace(place, to);
            if from == start {
                break;
            }
            items.swap(to, from);
            to = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::SortRows;

    proptest! {
        #[test]
        fn order_is_that_of_stable_sorts(keys in prop::collection::vec(0u8..20, 0..300)) {
            let rows: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = rows.clone();
            expected.sort_by_key(|row| row.0);
            let mut by_key = rows.clone();
            by_key.sort_rows_by_key(|row| row.0);
            prop_assert_eq!(&by_key, &expected);
            let mut by_cached_key = rows.clone();
            by_cached_key.sort_rows_by_cached_key(|row| row.0.to_string().len() * 100 + usize::from(row.0));
            prop_assert_eq!(&by_cached_key, &expected);

            expected.sort_by(|a, b| b.cmp(a));
            let mut by = rows;
            by.sort_rows_by(|a, b| b.cmp(a));
            prop_assert_eq!(by, expected);
        }
    }
}
