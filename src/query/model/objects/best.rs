//! The first objects in some order, without sorting all of them.

use rayon::prelude::*;

use hprof_index::graph::numbers::ObjectIndex;

/// The first objects in some order, and the number of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BestObjects {
    /// The first objects, in order.
    pub objects: Vec<ObjectIndex>,
    /// Number of all objects that were added.
    pub total: u64,
}

/// Collector of the first objects in some order.
#[derive(Debug, Clone)]
pub(crate) struct Best<K = u64> {
    most: usize,
    kept: Vec<(K, ObjectIndex)>,
    /// Last one of the objects that are known to be better than all others.
    worst: Option<(K, ObjectIndex)>,
    pub(super) total: u64,
}

impl<K: Ord + Clone + Send> Best<K> {
    pub(crate) fn new(top: Option<usize>) -> Self {
        Self { most: top.unwrap_or(usize::MAX).max(1), kept: Vec::new(), worst: None, total: 0 }
    }

    /// Returns the worst key that can still be among the best.
    pub(crate) fn worst(&self) -> Option<&K> {
        self.worst.as_ref().map(|(key, _)| key)
    }

    /// Adds an object with its key.
    #[inline]
    pub(crate) fn add(&mut self, key: (K, ObjectIndex)) {
        if self.worst.as_ref().is_some_and(|worst| key > *worst) {
            return;
        }
        self.kept.push(key);
        if self.kept.len() >= self.most.saturating_mul(2) {
            self.cut();
        }
    }

    /// Removes all but the first objects. Drops half of the objects, so that the cost per object is small.
    fn cut(&mut self) {
        if self.kept.len() > self.most {
            let (_, worst, _) = self.kept.select_nth_unstable(self.most - 1);
            self.worst = Some(worst.clone());
            self.kept.truncate(self.most);
        }
    }

    /// Adds the objects of another collector.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.total += other.total;
        other.kept.into_iter().for_each(|key| self.add(key));
        self
    }

    /// Returns the first objects in order.
    pub(crate) fn finish(mut self) -> BestObjects {
        self.cut();
        self.kept.par_sort_unstable();
        BestObjects { objects: self.kept.into_iter().map(|(_, object)| object).collect(), total: self.total }
    }
}
