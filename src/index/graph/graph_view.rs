//! View of the graph for its algorithms: adjacency lists, labels, roots.

use super::adjacency::AdjacencyView;
pub use super::numbers::NONE;
use crate::storage::prefetch::prefetch;

/// A graph of nodes `0..len`, as the algorithms read it.
#[derive(Clone, Copy)]
pub(crate) struct GraphView<'a> {
    /// Targets of each node, except the target of its label.
    pub(crate) lists: AdjacencyView<'a>,
    pub(crate) labels: &'a Labels<'a>,
    /// Children of the virtual root, ascending.
    pub(crate) roots: &'a [u32],
}

/// Edges that many nodes share: each node has a label, and an edge to the target of its label.
///
/// In a heap, that target is an object's class object. There are as many such edges as objects, and most lead
/// to roots, so they are not in the adjacency lists.
#[derive(Debug)]
pub struct Labels<'a> {
    /// Label of each node, `width` bytes each, little-endian.
    pub(crate) column: &'a [u8],
    pub(crate) width: u8,
    /// Target of each label: a node or [`NONE`].
    pub targets: &'a [u32],
}

impl Labels<'_> {
    /// Returns the label of a node; a label beyond `targets` has no target.
    #[inline(always)]
    pub fn label_of(&self, node: u32) -> usize {
        let at = node as usize;
        let byte = |at: usize| self.column.get(at).map_or(0, |byte| usize::from(*byte));
        match self.width {
            1 => byte(at),
            2 => byte(2 * at) | byte(2 * at + 1) << 8,
            3 => byte(3 * at) | byte(3 * at + 1) << 8 | byte(3 * at + 2) << 16,
            _ => byte(4 * at) | byte(4 * at + 1) << 8 | byte(4 * at + 2) << 16 | byte(4 * at + 3) << 24,
        }
    }

    /// Returns the label of a node if `targets` has an entry for it.
    #[inline(always)]
    pub fn label_with_target(&self, node: u32) -> Option<usize> {
        Some(self.label_of(node)).filter(|label| *label < self.targets.len())
    }

    /// Prefetches the label of a node.
    #[inline(always)]
    pub fn prefetch(&self, node: u32) {
        prefetch(self.column, node as usize * usize::from(self.width));
    }

    /// Returns the target of a label, or [`NONE`].
    #[inline(always)]
    pub fn target(&self, label: usize) -> u32 {
        self.targets.get(label).copied().unwrap_or(NONE)
    }
}
