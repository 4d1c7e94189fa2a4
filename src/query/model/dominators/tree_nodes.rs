//! Dominator-tree data of each object in a range of positions, in one pass: a few steps per object, whereas a single
//! lookup takes some hundred.

use std::ops::Range;

use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::Tree;

use super::preorder;

/// Number of objects per chunk.
const CHUNK: u32 = 1 << 16;

/// Depth, sizes and dominator of a reachable object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode<T> {
    /// Number of objects that dominate it.
    pub depth: u32,
    /// Shallow size.
    pub shallow_bytes: u64,
    /// Retained size.
    pub retained_bytes: u64,
    /// Immediate dominator; `None` if only the roots dominate it.
    pub dominator: Option<T>,
}

/// Returns the chunks of all reachable objects, in preorder.
pub fn chunks(tree: &Tree) -> Vec<Range<TreePosition>> {
    TreePosition::chunks(tree.positions(), CHUNK)
}

/// Returns the objects of a chunk, by position. `names` provides dominators by position in the chunk; `outside`
/// provides those of earlier chunks, which are few. Chunks do not depend on one another.
pub fn chunk_nodes<T: Copy>(
    tree: &Tree,
    chunk: Range<TreePosition>,
    names: &[T],
    outside: impl Fn(TreePosition) -> Option<T>,
) -> Vec<TreeNode<T>> {
    let mut nodes = Vec::with_capacity(chunk.end.at() - chunk.start.at());
    // Objects that contain the current position: depth, position, shallow bytes of this chunk before it.
    let mut open: Vec<(u32, TreePosition, u64)> = Vec::new();
    // Dominator of objects whose dominator is in an earlier chunk, for objects at one depth.
    let mut known: Option<(u32, Option<T>)> = None;
    let mut bytes = 0u64;
    let next_depth = preorder::visit(tree, chunk.clone(), |position, depth, shallow_bytes| {
        close(&mut open, &mut nodes, chunk.start, depth, bytes);
        let dominator = match (open.last(), known) {
            (Some((_, dominator, _)), _) => names.get(dominator.at() - chunk.start.at()).copied(),
            (None, Some((at, dominator))) if at == depth => dominator,
            (None, _) => {
                let dominator = tree.dominator(position).and_then(&outside);
                known = Some((depth, dominator));
                dominator
            }
        };
        nodes.push(TreeNode { depth, shallow_bytes, retained_bytes: 0, dominator });
        open.push((depth, position, bytes));
        bytes = bytes.saturating_add(shallow_bytes);
    });
    let next_depth = if chunk.end.0 < tree.reachable() { next_depth } else { 0 };
    close(&mut open, &mut nodes, chunk.start, next_depth, bytes);
    // Nodes that are still open extend into the following chunks.
    for (_, position, _) in open {
        if let Some(node) = nodes.get_mut(position.at() - chunk.start.at()) {
            node.retained_bytes = tree.retained_bytes(position);
        }
    }
    nodes
}

/// Closes the objects at this depth and below.
#[inline]
fn close<T>(
    open: &mut Vec<(u32, TreePosition, u64)>,
    nodes: &mut [TreeNode<T>],
    first: TreePosition,
    depth: u32,
    bytes: u64,
) {
    while let Some((_, position, before)) = open.last().copied().filter(|(open, ..)| *open >= depth) {
        open.pop();
        if let Some(node) = nodes.get_mut(position.at() - first.at()) {
            node.retained_bytes = bytes - before;
        }
    }
}
