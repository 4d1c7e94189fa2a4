//! Nodes of one class at a place: chains and trees, each with a head that dominates the other nodes.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;

use super::contents::is_most;
use super::suspects::accumulation_point;

/// Minimum number of nodes of a chain or tree.
const MIN_NODES: usize = 10;

/// Form of the nodes of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeForm {
    /// Each head holds a chain.
    Chains,
    /// Some heads hold a tree.
    Trees,
}

/// Returns the form of the nodes of `heads`; `count` is the total number of nodes, including small ones. `None` unless the
/// heads with many nodes of their class retain most of `bytes`. Other heads may have no further nodes.
pub(super) fn form(graph: &ObjectGraph, heads: &[TreePosition], count: u64, bytes: u64) -> Option<NodeForm> {
    let holding = heads.iter().filter(|head| holds_many(graph, **head));
    let holding = holding.fold(0u64, |sum, head| sum.saturating_add(graph.tree.retained_bytes(*head)));
    if !is_most(holding, bytes) {
        return None;
    }
    let is_chain = |head: &TreePosition| {
        accumulation_point(graph, *head).chain.is_some_and(|chain| chain.first == *head)
    };
    let are_chains = heads.len() as u64 == count && heads.iter().all(is_chain);
    Some(if are_chains { NodeForm::Chains } else { NodeForm::Trees })
}

/// Returns whether an object dominates at least [`MIN_NODES`] objects of its class, including itself.
fn holds_many(graph: &ObjectGraph, head: TreePosition) -> bool {
    let class_of = |position| graph.objects.class(graph.tree.object_at(position)?);
    let class = class_of(head);
    let below = (head.0..graph.tree.end(head).0).map(TreePosition);
    below.filter(|position| class_of(*position) == class).take(MIN_NODES).count() == MIN_NODES
}
