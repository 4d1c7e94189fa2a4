//! Passes over the dominator tree that visit each object with its class.

use std::ops::Range;

use rayon::prelude::*;

use hprof_index::ObjectGraph;
use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::tables::NONE;

use super::preorder;

/// Positions that are looked up before the pass over them.
const BATCH: u32 = 1 << 18;
/// Positions that one thread takes at a time.
pub(super) const CHUNK: u32 = 1 << 14;
/// Prefetch distance in objects.
const AHEAD: usize = 16;

/// Calls `visit` with the objects at the given positions, in order, and the numbers of their classes; [`NONE`] if unknown.
/// Classes are scattered over memory, so they are prefetched.
pub(super) fn each_class(
    tree: &Tree,
    labels: &Labels<'_>,
    positions: Range<TreePosition>,
    mut visit: impl FnMut(ObjectIndex, u32),
) {
    let mut objects = Vec::with_capacity(positions.end.0.saturating_sub(positions.start.0) as usize);
    tree.visit_objects(positions, |object| objects.push(object));
    for (at, object) in objects.iter().enumerate() {
        if let Some(ahead) = objects.get(at + AHEAD) {
            labels.prefetch(ahead.0);
        }
        let class = labels.label_with_target(object.0).and_then(|class| u32::try_from(class).ok());
        visit(*object, class.unwrap_or(NONE));
    }
}

/// Visits the objects at the given positions in preorder: position, depth, the result of `look_up` for the object and the
/// number of its class ([`NONE`] if unknown), shallow bytes.
pub fn pass<T: Copy + Default + Send + Sync>(
    graph: &ObjectGraph,
    positions: Range<TreePosition>,
    look_up: impl Fn(ObjectIndex, u32) -> T + Sync,
    mut visit: impl FnMut(TreePosition, u32, T, u64) + Send,
) {
    let (tree, labels) = (&graph.tree, graph.labels());
    // Looked up by all threads, ahead of the pass, which is single-threaded.
    let look_up = |batch: Range<TreePosition>| -> Vec<T> {
        let mut found = vec![T::default(); (batch.end.0 - batch.start.0) as usize];
        let chunks = TreePosition::chunks(batch, CHUNK);
        chunks.into_par_iter().zip(found.par_chunks_mut(CHUNK as usize)).for_each(|(chunk, places)| {
            let mut places = places.iter_mut();
            each_class(tree, &labels, chunk, |object, class| {
                if let Some(place) = places.next() {
                    *place = look_up(object, class);
                }
            });
        });
        found
    };
    let batches = TreePosition::chunks(positions, BATCH);
    let mut here = batches.first().map(|batch| look_up(batch.clone())).unwrap_or_default();
    for (number, batch) in batches.iter().enumerate() {
        let next = batches.get(number + 1).cloned();
        let (next, ()) = rayon::join(
            || next.map(look_up).unwrap_or_default(),
            || {
                let mut here = here.iter();
                preorder::visit(tree, batch.clone(), |position, depth, bytes| {
                    if let Some(found) = here.next() {
                        visit(position, depth, *found, bytes);
                    }
                });
            },
        );
        here = next;
    }
}
