//! Search for the objects of given classes with the largest retained size, without looking up the size of each.
//!
//! A first pass over all objects marks the positions of the selected ones; a second, over the dominator tree in
//! preorder, has the retained size of every object at the end of its subtree. Both read columns sequentially: a single
//! lookup in the tree costs as much as a hundred objects of a pass.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;

use super::best::{Best, BestObjects};
use super::class_set::ClassSet;

/// Number of positions per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of threads that mark: each has marks of its own, one bit per object.
const MAX_MARKS: u32 = 4;

/// Returns the `top` objects with the largest retained size, unreachable ones last unless they are omitted (`live`),
/// ties by address.
pub(crate) fn largest(graph: &ObjectGraph, classes: &ClassSet, top: usize, live: bool) -> BestObjects {
    let tree = &graph.tree;
    // Setting bits in one shared bitmap costs more than merging a few bitmaps.
    let threads = u32::try_from(rayon::current_num_threads()).unwrap_or(1).min(MAX_MARKS);
    let share = graph.objects.len().div_ceil(threads).next_multiple_of(64);
    let all = ObjectIndex::chunks(graph.objects.indices(), share);
    let marked = all.into_par_iter().map(|chunk| PositionMarks::new(graph, classes, chunk, live));
    let (marks, total) = marked.reduce_with(PositionMarks::merge).unwrap_or_default();
    let bound = AtomicU64::new(0);
    let none =
        || LargestSearch { tree, marks: &marks, bound: &bound, best: Best::new(Some(top)), open: Vec::new() };
    let searches =
        TreePosition::chunks(tree.positions(), CHUNK).into_par_iter().fold(none, |mut search, chunk| {
            search.chunk(chunk);
            search
        });
    let best = searches.map(|search| search.best).reduce(|| Best::new(Some(top)), Best::merge);
    let mut objects = best.finish().objects;
    // Unreachable objects follow the others, by object index.
    let unreachable = (tree.reachable()..tree.objects()).map(TreePosition);
    let unreachable = unreachable.filter(|position| marks.is_marked(*position));
    objects.extend(
        unreachable.filter_map(|position| tree.object_at(position)).take(top - objects.len().min(top)),
    );
    BestObjects { objects, total }
}

/// Set of positions in the dominator tree, one bit each.
#[derive(Default)]
struct PositionMarks(Vec<u64>);

impl PositionMarks {
    /// Marks the objects of the given classes in a chunk of all objects, and counts them.
    fn new(graph: &ObjectGraph, asked: &ClassSet, chunk: Range<ObjectIndex>, live: bool) -> (Self, u64) {
        let tree = &graph.tree;
        let mut classes = graph.objects.classes(chunk.clone());
        let mut words = vec![0u64; tree.objects().div_ceil(u64::BITS) as usize];
        let mut count = 0;
        let end = if live { tree.reachable() } else { tree.objects() };
        tree.visit_positions(chunk, |TreePosition(position)| {
            let class = classes.next().flatten();
            if position < end
                && class.is_some_and(|class| asked.contains(class))
                && let Some(word) = words.get_mut((position / u64::BITS) as usize)
            {
                *word |= 1 << (position % u64::BITS);
                count += 1;
            }
        });
        (Self(words), count)
    }

    fn merge((mut marks, count): (Self, u64), (others, more): (Self, u64)) -> (Self, u64) {
        for (word, other) in marks.0.iter_mut().zip(others.0) {
            *word |= other;
        }
        (marks, count + more)
    }

    #[inline]
    fn is_marked(&self, TreePosition(position): TreePosition) -> bool {
        let word = self.0.get((position / u64::BITS) as usize);
        word.is_some_and(|word| word & (1 << (position % u64::BITS)) != 0)
    }
}

/// Pass of a thread over some chunks.
struct LargestSearch<'s> {
    tree: &'s Tree,
    marks: &'s PositionMarks,
    /// Lower bound of the largest retained sizes, shared by all threads.
    bound: &'s AtomicU64,
    best: Best,
    /// Objects of the chunk whose end is not reached: their positions, and the shallow size of all objects before.
    open: Vec<(TreePosition, u64)>,
}

impl LargestSearch<'_> {
    fn chunk(&mut self, chunk: Range<TreePosition>) {
        let tree = self.tree;
        self.open.clear();
        let mut bytes = 0u64;
        tree.visit(chunk, |position, ends, size| {
            let before = bytes;
            bytes = bytes.saturating_add(size);
            if ends == 0 {
                self.open.push((position, before));
                return;
            }
            self.offer(position, size);
            for _ in 1..ends {
                // The others start in an earlier chunk.
                let Some((position, before)) = self.open.pop() else { break };
                self.offer(position, bytes - before);
            }
        });
        // Objects whose subtree ends in a later chunk are looked up. Each dominates the next, so retained sizes
        // decrease.
        for (position, _) in std::mem::take(&mut self.open) {
            if self.marks.is_marked(position) {
                let retained = tree.retained_bytes(position);
                if retained < self.bound.load(Ordering::Relaxed) {
                    break;
                }
                self.offer(position, retained);
            }
        }
    }

    #[inline]
    fn offer(&mut self, position: TreePosition, retained: u64) {
        if retained < self.bound.load(Ordering::Relaxed) || !self.marks.is_marked(position) {
            return;
        }
        if let Some(object) = self.tree.object_at(position) {
            self.best.add((u64::MAX - retained, object));
            if let Some(worst) = self.best.worst() {
                self.bound.fetch_max(u64::MAX - worst, Ordering::Relaxed);
            }
        }
    }
}
