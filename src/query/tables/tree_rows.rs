//! What the dominator tree says of all objects, by object: for who reads most of them in the order of their IDs. Found in
//! passes over the tree, it takes a tenth of the time of lookups.

use std::io;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::index::ObjectGraph;
use crate::index::graph::numbers::ObjectIndex;
use crate::index::storage::scratch::{Array, atomic_u64};
use crate::query::dominators::nodes;

/// Words of an object.
const WORDS: usize = 2;
/// No object has this number.
const NOBODY: u32 = u32::MAX;

/// A reachable object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TreeRow {
    /// What would be freed with it.
    pub(super) retained_bytes: u64,
    /// Objects that dominate it.
    pub(super) depth: u32,
    /// Its immediate dominator; `None` if nothing but the roots dominates it.
    pub(super) dominator: Option<ObjectIndex>,
}

/// All objects: 16 bytes each.
#[derive(Debug)]
pub(super) struct TreeRows(Array<u64>);

impl TreeRows {
    /// Of all objects; `None` if memory does not suffice. Objects lie anywhere in the tree, so a file would be read and
    /// written page by page for each of them, which takes longer than lookups do.
    pub(super) fn new(graph: &ObjectGraph) -> io::Result<Option<Self>> {
        let tree = &graph.tree;
        let room = graph.room();
        let words = WORDS.saturating_mul(graph.objects.len() as usize);
        if (words as u64).saturating_mul(8) > room.left() / 2 {
            return Ok(None);
        }
        let mut all = room.array::<u64>(words)?;
        let shared = atomic_u64(&mut all);
        nodes::chunks(tree).into_par_iter().for_each(|chunk| {
            let first = chunk.start.at();
            let objects: Vec<ObjectIndex> = tree.objects_at(chunk.clone()).collect();
            let inside = |at: Option<usize>| at.and_then(|at| objects.get(at)).copied();
            let nodes = nodes::of_chunk(tree, chunk, |position| {
                inside(position.at().checked_sub(first)).or_else(|| tree.object_at(position))
            });
            for (object, node) in objects.iter().zip(nodes) {
                let dominator = node.dominator.map_or(NOBODY, |dominator| dominator.0);
                let at = object.0 as usize * WORDS;
                if let Some([retained, place]) = shared.get(at..at + WORDS) {
                    retained.store(node.retained_bytes, Ordering::Relaxed);
                    place.store(u64::from(dominator) << 32 | u64::from(node.depth), Ordering::Relaxed);
                }
            }
        });
        Ok(Some(Self(all)))
    }

    /// What is said of an object, which is reachable: nothing is said of others.
    #[inline]
    pub(super) fn of(&self, object: ObjectIndex) -> Option<TreeRow> {
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
