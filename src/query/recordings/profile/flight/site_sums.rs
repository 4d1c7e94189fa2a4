//! Sums by stack and class.

use rustc_hash::FxHashMap;

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

/// Sums by stack and class. Most stacks allocate objects of one class.
#[derive(Debug, Default)]
pub(super) struct SiteSums {
    /// By stack: the first class and its sum; one without events for none.
    first: Vec<(u32, Sum)>,
    other: FxHashMap<(StackIndex, u32), Sum>,
}

impl SiteSums {
    /// Counts an event. Stacks are numbered from 0, so the table is not longer than there are stacks.
    pub(super) fn add(&mut self, stack: StackIndex, class: u32, amount: u64) {
        let sum = Sum { events: 1, amount };
        let at = stack as usize;
        if stack != NO_STACK && at >= self.first.len() {
            self.first.extend((self.first.len()..=at).map(|_| (0, Sum::default())));
        }
        match self.first.get_mut(at) {
            Some((known, first)) if *known == class || first.events == 0 => {
                *known = class;
                first.add(sum);
            }
            _ => self.other.entry((stack, class)).or_default().add(sum),
        }
    }

    /// Returns stack, class and sum of all.
    pub(super) fn into_sums(self) -> impl Iterator<Item = (StackIndex, u32, Sum)> {
        let first = (0..).zip(self.first).filter(|(_, (_, sum))| sum.events > 0);
        let first = first.map(|(stack, (class, sum))| (stack, class, sum));
        first.chain(self.other.into_iter().map(|((stack, class), sum)| (stack, class, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
