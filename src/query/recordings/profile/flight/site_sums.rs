//! Maps from stack and class to sums of events.

use std::collections::HashMap;

use super::stacks::{NO_STACK, StackIndex};

/// Number of events, and their total bytes or nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) events: u64,
    pub(super) amount: u64,
}

impl Sum {
    /// Adds another sum.
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.amount = self.amount.saturating_add(other.amount);
    }
}

/// Map from stack and class to values. Most stacks allocate objects of only one class.
#[derive(Debug)]
pub(super) struct SiteMap<V> {
    /// First class of each stack, with its value.
    first: Vec<Option<(u32, V)>>,
    /// Values of further classes. The file chooses the pairs of stack and class, so the hash is seeded.
    other: HashMap<(StackIndex, u32), V>,
}

/// Sums by stack and class.
pub(super) type SiteSums = SiteMap<Sum>;

impl<V> Default for SiteMap<V> {
    fn default() -> Self {
        Self { first: Vec::new(), other: HashMap::new() }
    }
}

impl<V> SiteMap<V> {
    /// Returns the value of a stack and class.
    #[inline]
    pub(super) fn get_mut(&mut self, stack: StackIndex, class: u32) -> Option<&mut V> {
        match self.first.get_mut(stack as usize) {
            Some(None) => None,
            Some(Some((known, value))) if *known == class => Some(value),
            _ => self.other.get_mut(&(stack, class)),
        }
    }

    /// Sets the value of a stack and class that has no value. Stacks are numbered from 0, so the table is not longer than the
    /// number of stacks.
    pub(super) fn insert(&mut self, stack: StackIndex, class: u32, value: V) {
        let at = stack as usize;
        if stack != NO_STACK && at >= self.first.len() {
            self.first.resize_with(at + 1, || None);
        }
        match self.first.get_mut(at).filter(|first| first.is_none()) {
            Some(first) => *first = Some((class, value)),
            None => _ = self.other.insert((stack, class), value),
        }
    }

    /// Returns whether there are no values.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.other.is_empty()
    }

    /// Returns all stacks, classes and values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StackIndex, u32, &V)> {
        let first = (0..).zip(&self.first).filter_map(|(stack, first)| Some((stack, first.as_ref()?)));
        let first = first.map(|(stack, (class, value))| (stack, *class, value));
        first.chain(self.other.iter().map(|((stack, class), value)| (*stack, *class, value)))
    }
}

impl SiteSums {
    /// Adds a sum to the value of a stack and class.
    pub(super) fn add(&mut self, stack: StackIndex, class: u32, sum: Sum) {
        match self.get_mut(stack, class) {
            Some(known) => known.add(sum),
            None => self.insert(stack, class, sum),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the pairs of stack and class: without a seed it could choose those that collide.
    #[test]
    fn the_hash_is_seeded() {
        assert!(is_seeded(&SiteSums::default().other));
    }

    #[test]
    fn classes_of_a_stack_are_apart() {
        let mut sums = SiteSums::default();
        for (stack, class, amount) in [(2, 7, 1), (2, 7, 2), (2, 8, 10), (NO_STACK, 7, 5), (0, 0, 3)] {
            sums.add(stack, class, Sum { events: 1, amount });
        }
        let mut all: Vec<_> =
            sums.iter().map(|(stack, class, sum)| (stack, class, sum.events, sum.amount)).collect();
        all.sort_unstable();
        assert_eq!(all, [(0, 0, 1, 3), (2, 7, 2, 3), (2, 8, 1, 10), (NO_STACK, 7, 1, 5)]);
    }
}
