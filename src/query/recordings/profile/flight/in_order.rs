//! Chunks that are read in parallel and merged in the order of the file.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rayon::Scope;

/// Maps items in parallel, and passes each item with its result to `take`, in the order of the items and one at a time. At most
/// two results for each thread wait for an earlier result, as each takes memory.
pub(super) fn map_in_order<T: Sync, R: Send>(
    items: &[T],
    map: impl Fn(&T) -> R + Sync,
    take: impl FnMut(&T, R) + Send,
) {
    let at_once = rayon::current_num_threads().max(1) * 2;
    let state = Mutex::new(State { next: 0, taken: 0, ready: BTreeMap::new(), take: Some(take) });
    let mapping = OrderedParallelMap { items, map, state };
    // The item passed to `take`, and the items mapped before it is their turn.
    rayon::scope(|scope| {
        (0..at_once.min(items.len())).for_each(|_| scope.spawn(|scope| mapping.step(scope)));
    });
}

struct OrderedParallelMap<'t, T, R, M, K> {
    items: &'t [T],
    map: M,
    state: Mutex<State<R, K>>,
}

struct State<R, K> {
    /// Index of the next item to map.
    next: usize,
    /// Index of the next item to pass to `take`.
    taken: usize,
    ready: BTreeMap<usize, R>,
    /// `None` while a thread takes results.
    take: Option<K>,
}

impl<T: Sync, R: Send, M: Fn(&T) -> R + Sync, K: FnMut(&T, R) + Send> OrderedParallelMap<'_, T, R, M, K> {
    /// Maps one item, and takes all results whose turn has come. For each taken result, another item is mapped.
    fn step<'s>(&'s self, scope: &Scope<'s>) {
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = lock();
        let at = state.next;
        let Some(item) = self.items.get(at) else { return };
        state.next += 1;
        drop(state);
        let mapped = (self.map)(item);
        let mut state = lock();
        state.ready.insert(at, mapped);
        // Another thread is taking results; it will find this result, too.
        let Some(mut take) = state.take.take() else { return };
        loop {
            let at = state.taken;
            let (Some(item), Some(mapped)) = (self.items.get(at), state.ready.remove(&at)) else { break };
            drop(state);
            take(item, mapped);
            scope.spawn(|scope| self.step(scope));
            state = lock();
            state.taken += 1;
        }
        state.take = Some(take);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_taken_in_order_and_few_wait() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let (mapped, items) = (AtomicUsize::new(0), (0..200).collect::<Vec<usize>>());
            let mut taken = Vec::new();
            let map = |item: &usize| {
                // The first of each seven items takes long.
                let turns = if item.is_multiple_of(7) { 2_000 } else { 1 };
                (0..turns).for_each(|_| std::thread::yield_now());
                mapped.fetch_add(1, Ordering::SeqCst);
                item * 2
            };
            pool.install(|| {
                map_in_order(&items, map, |item, result| {
                    let ahead = mapped.load(Ordering::SeqCst) - taken.len();
                    assert!((1..=2 * threads).contains(&ahead), "{ahead} of {threads} threads");
                    assert_eq!(result, item * 2);
                    taken.push(*item);
                });
            });
            assert_eq!(taken, items);
            map_in_order(&[0; 0], |_| (), |_, ()| panic!("there is nothing to take"));
        }
    }
}
