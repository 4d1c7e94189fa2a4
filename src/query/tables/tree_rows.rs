//! Dominator tree by object: looked up, or read for all objects in one pass. For readers of most objects in the order of their
//! IDs, the pass takes a tenth of the time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hprof_base::parallel;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::storage::scratch::{Array, atomic_u64};
use hprof_model::dominators::tree_nodes;

/// Number of 64-bit words per object.
const WORDS: usize = 2;
/// Placeholder index: no object.
const NOBODY: u32 = u32::MAX;

/// A reachable object of the dominator tree.
struct TreeRow {
    retained_bytes: u64,
    depth: u32,
    /// Immediate dominator; `None` if only the roots dominate the object.
    dominator: Option<ObjectIndex>,
}

/// Dominator tree data of all reachable objects, 16 bytes each.
#[derive(Debug)]
pub(super) struct TreeRows(Array<u64>);

impl TreeRows {
    /// Reads the tree; `None` if `stop` returns true, or if there is too little memory. Objects are scattered over
    /// the tree, so a file would be read and written page by page for each of them, which takes longer than lookups.
    pub(super) fn new(graph: &ObjectGraph, stop: &(dyn Fn() -> bool + Sync)) -> Option<Self> {
        let tree = &graph.tree;
        let room = graph.room();
        let words = WORDS.checked_mul(graph.objects.len() as usize)?;
        // Half of it: the caller needs memory as well.
        if (words as u64).checked_mul(8)? > room.remaining_bytes() / 2 {
            return None;
        }
        let mut all = room.in_memory::<u64>(words)?;
        let shared = atomic_u64(&mut all);
        parallel::for_each(&tree_nodes::chunks(tree), |chunk| {
            if stop() {
                return;
            }
            let objects: Vec<ObjectIndex> = tree.objects_at(chunk.clone()).collect();
            let nodes = tree_nodes::chunk_nodes(tree, chunk, &objects, |position| tree.object_at(position));
            for (object, node) in objects.iter().zip(nodes) {
                let dominator = node.dominator.map_or(NOBODY, |dominator| dominator.0);
                let at = object.0 as usize * WORDS;
                if let Some([retained, place]) = shared.get(at..at + WORDS) {
                    retained.store(node.retained_bytes, Ordering::Relaxed);
                    place.store(u64::from(dominator) << 32 | u64::from(node.depth), Ordering::Relaxed);
                }
            }
        });
        (!stop()).then_some(Self(all))
    }

    #[inline]
    fn row(&self, object: ObjectIndex) -> Option<TreeRow> {
        let at = object.0 as usize * WORDS;
        let [retained_bytes, place] = self.0.get(at..at + WORDS)? else { return None };
        let dominator = u32::try_from(place >> 32).unwrap_or(NOBODY);
        Some(TreeRow {
            retained_bytes: *retained_bytes,
            depth: u32::try_from(place & u64::from(u32::MAX)).unwrap_or(0),
            dominator: (dominator != NOBODY).then_some(ObjectIndex(dominator)),
        })
    }
}

/// Lookup of objects in the dominator tree by index and position; unreachable objects are not found.
pub(super) struct TreeLookup<'t> {
    pub(super) tree: &'t Tree,
    pub(super) rows: Option<Arc<TreeRows>>,
}

impl TreeLookup<'_> {
    /// Returns whether the object at a position is reachable.
    pub(super) fn is_reachable(&self, position: TreePosition) -> bool {
        position.0 < self.tree.reachable()
    }

    #[inline]
    fn row(&self, object: ObjectIndex) -> Option<TreeRow> {
        self.rows.as_ref()?.row(object)
    }

    /// Returns the retained size of an object in bytes.
    #[inline]
    pub(super) fn retained_bytes(&self, object: ObjectIndex, position: TreePosition) -> Option<u64> {
        self.is_reachable(position).then(|| match self.row(object) {
            Some(row) => row.retained_bytes,
            // An object that dominates nothing retains itself: most objects do, and checking this is faster.
            None if self.tree.ends_after(position) > 0 => self.tree.shallow_bytes(position),
            None => self.tree.retained_bytes(position),
        })
    }

    /// Returns the number of dominators of an object.
    #[inline]
    pub(super) fn depth(&self, object: ObjectIndex, position: TreePosition) -> Option<u32> {
        let depth = || self.row(object).map_or_else(|| self.tree.depth(position), |row| row.depth);
        self.is_reachable(position).then(depth)
    }

    /// Returns the immediate dominator; `None` if the object is unreachable or only the roots dominate it.
    #[inline]
    pub(super) fn dominator(&self, object: ObjectIndex, position: TreePosition) -> Option<ObjectIndex> {
        match self.row(object) {
            _ if !self.is_reachable(position) => None,
            Some(row) => row.dominator,
            None => self.tree.dominator(position).and_then(|dominator| self.tree.object_at(dominator)),
        }
    }
}
