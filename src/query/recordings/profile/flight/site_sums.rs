//! Sums by stack and class.

use std::collections::HashMap;

use super::stacks::{NO_STACK, StackIndex};

/// Number of events, and what they state: bytes or nanoseconds.
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

/// Sums by stack and class.
#[derive(Debug, Default)]
pub(super) struct SiteSums {
    places: SiteMap,
    sums: Vec<(StackIndex, u32, Sum)>,
}

/// Places by stack and class. Most stacks allocate objects of one class.
#[derive(Debug, Default)]
pub(super) struct SiteMap {
    /// By stack: the first class and its place; [`NONE`] for none.
    first: Vec<(u32, u32)>,
    /// The file chooses which pairs of stack and class there are, so the hash has a seed.
    other: HashMap<(StackIndex, u32), u32>,
}

/// No place.
const NONE: u32 = u32::MAX;

impl SiteMap {
    /// Returns the place of a stack and class.
    #[inline]
    pub(super) fn get(&self, stack: StackIndex, class: u32) -> Option<usize> {
        let place = match self.first.get(stack as usize) {
            Some((_, NONE)) => return None,
            Some((known, place)) if *known == class => *place,
            _ => *self.other.get(&(stack, class))?,
        };
        Some(place as usize)
    }

    /// Sets the place of a stack and class. Stacks are numbered from 0, so the table is not longer than there are stacks.
    pub(super) fn insert(&mut self, stack: StackIndex, class: u32, place: usize) {
        let Ok(place) = u32::try_from(place) else { return };
        let at = stack as usize;
        if stack != NO_STACK && at >= self.first.len() {
            self.first.resize(at + 1, (0, NONE));
        }
        match self.first.get_mut(at).filter(|(_, place)| *place == NONE) {
            Some(first) => *first = (class, place),
            None => _ = self.other.insert((stack, class), place),
        }
    }
}

impl SiteSums {
    /// Counts an event.
    pub(super) fn add(&mut self, stack: StackIndex, class: u32, amount: u64) {
        let sum = Sum { events: 1, amount };
        let known = self.places.get(stack, class).and_then(|place| self.sums.get_mut(place));
        match known {
            Some((.., known)) => known.add(sum),
            None => {
                self.places.insert(stack, class, self.sums.len());
                self.sums.push((stack, class, sum));
            }
        }
    }

    /// Returns stack, class and sum of all, in the order in which they first occurred.
    pub(super) fn into_sums(self) -> impl Iterator<Item = (StackIndex, u32, Sum)> {
        self.sums.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the pairs of stack and class: without a seed it could choose those that collide.
    #[test]
    fn the_hash_has_a_seed() {
        assert!(is_seeded(&SiteMap::default().other));
    }

    #[test]
    fn classes_of_a_stack_are_apart() {
        let mut sums = SiteSums::default();
        for (stack, class, amount) in [(2, 7, 1), (2, 7, 2), (2, 8, 10), (NO_STACK, 7, 5), (0, 0, 3)] {
            sums.add(stack, class, amount);
        }
        let mut all: Vec<_> =
            sums.into_sums().map(|(stack, class, sum)| (stack, class, sum.events, sum.amount)).collect();
        all.sort_unstable();
        assert_eq!(all, [(0, 0, 1, 3), (2, 7, 2, 3), (2, 8, 1, 10), (NO_STACK, 7, 1, 5)]);
    }
}
