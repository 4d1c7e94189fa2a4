//! The graph as its algorithms take it: rows, labels, roots.

use super::rows::View;

/// A graph of nodes `0..len`.
#[derive(Clone, Copy)]
pub(crate) struct Links<'a> {
    /// The targets of each node, but for that of its label.
    pub(crate) rows: View<'a>,
    pub(crate) labels: &'a Labels<'a>,
    /// Nodes that are reached from outside, ascending.
    pub(crate) roots: &'a [u32],
}

/// Edges that many nodes have in common: each node has a label, and an edge to the node that its label stands for.
///
/// In a heap, that is an object's class object. There are as many such edges as objects, and hardly any matters.
#[derive(Debug)]
pub(crate) struct Labels<'a> {
    /// The label of each node, `width` bytes each, little-endian.
    pub(crate) column: &'a [u8],
    pub(crate) width: u8,
    /// What a label stands for: a node, or [`NONE`].
    pub(crate) targets: &'a [u32],
    /// Nodes with that label.
    pub(crate) counts: &'a [u64],
}

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

impl Labels<'_> {
    /// The label of a node. One that has no target gives none.
    #[inline(always)]
    pub(crate) fn of(&self, node: u32) -> usize {
        let at = node as usize;
        let byte = |at: usize| self.column.get(at).map_or(0, |byte| usize::from(*byte));
        match self.width {
            1 => byte(at),
            2 => byte(2 * at) | byte(2 * at + 1) << 8,
            3 => byte(3 * at) | byte(3 * at + 1) << 8 | byte(3 * at + 2) << 16,
            _ => byte(4 * at) | byte(4 * at + 1) << 8 | byte(4 * at + 2) << 16 | byte(4 * at + 3) << 24,
        }
    }

    /// The node that a label stands for.
    #[inline(always)]
    pub(crate) fn target(&self, label: usize) -> u32 {
        self.targets.get(label).copied().unwrap_or(NONE)
    }
}

/// Which nodes' label edges are followed.
///
/// An edge into a node that the roots alone dominate changes no dominator, and so does one from below the target's own
/// dominator. So of the many edges into a label's node a sample is taken; in the tree that comes of it all others are
/// checked (see `docs/decisions/0006`). Those into roots need no sample.
#[derive(Debug, Clone)]
pub(crate) struct Witnesses {
    /// By label: the nodes whose hash has none of these bits are followed; [`NEVER`] for no node.
    masks: Vec<u32>,
    /// Other nodes that are followed, ascending.
    extra: Vec<u32>,
}

const NEVER: u32 = u32::MAX;
/// About so many nodes of a label are followed at least, if it has as many.
const SAMPLE: u64 = 32;

impl Witnesses {
    /// A sample of each label's nodes.
    pub(crate) fn sample(links: &Links<'_>) -> Self {
        let Labels { targets, counts, .. } = links.labels;
        let masks = targets.iter().zip(counts.iter()).map(|(target, count)| {
            if *target == NONE || links.roots.binary_search(target).is_ok() {
                return NEVER;
            }
            // At most half of all bits.
            let every = (count / SAMPLE).clamp(1, 1 << 30).next_power_of_two();
            u32::try_from(every - 1).unwrap_or(NEVER >> 1)
        });
        Self { masks: masks.collect(), extra: Vec::new() }
    }

    /// Follows all nodes of a label.
    pub(crate) fn follow_all(&mut self, label: usize) {
        if let Some(mask) = self.masks.get_mut(label).filter(|mask| **mask != NEVER) {
            *mask = 0;
        }
    }

    /// Follows these nodes too.
    pub(crate) fn follow(&mut self, nodes: impl IntoIterator<Item = u32>) {
        self.extra.extend(nodes);
        self.extra.sort_unstable();
        self.extra.dedup();
    }

    /// Whether the edges into a label's node are followed at all.
    pub(crate) fn matters(&self, label: usize) -> bool {
        self.masks.get(label).is_some_and(|mask| *mask != NEVER)
    }

    /// The node to which the label of `node` stands, if that edge is followed.
    #[inline(always)]
    pub(crate) fn target(&self, labels: &Labels<'_>, node: u32) -> Option<u32> {
        let label = labels.of(node);
        let mask = self.masks.get(label).copied().unwrap_or(NEVER);
        if mask == NEVER {
            return None;
        }
        let chosen = hash(node) & mask == 0 || (!self.extra.is_empty() && self.extra.binary_search(&node).is_ok());
        chosen.then(|| labels.target(label))
    }
}

/// Spreads neighbouring nodes.
#[inline(always)]
fn hash(node: u32) -> u32 {
    let mixed = node.wrapping_mul(0x9e37_79b1);
    mixed ^ (mixed >> 15)
}
