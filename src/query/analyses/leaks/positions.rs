//! Positions of suspects in the dominator tree: their sizes, and the size that several have in common.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::Tree;

use super::{Suspect, SuspectKind, SuspectRule};

/// Returns the sum of the retained sizes of objects, of which none may dominate another.
pub(super) fn retained_bytes(tree: &Tree, positions: &[TreePosition]) -> u64 {
    positions.iter().fold(0, |sum, position| sum.saturating_add(tree.retained_bytes(*position)))
}

/// Returns whether a position is in `others` or below one of them. The others must be ascending, and none may dominate another.
pub(super) fn is_within(tree: &Tree, position: TreePosition, others: &[TreePosition]) -> bool {
    let before = others.split_at(others.partition_point(|other| *other <= position)).0;
    before.last().is_some_and(|above| position < tree.end(*above))
}

/// Returns the size that both `some` and `others` retain, by the dominator tree. In each list no object may dominate another;
/// `others` must be ascending.
pub(super) fn common_bytes(tree: &Tree, some: &[TreePosition], others: &[TreePosition]) -> u64 {
    let common = some.iter().map(|position| {
        if is_within(tree, *position, others) {
            return tree.retained_bytes(*position);
        }
        let behind = others.split_at(others.partition_point(|other| other <= position)).1;
        let below = behind.partition_point(|other| *other < tree.end(*position));
        retained_bytes(tree, behind.split_at(below).0)
    });
    common.fold(0, u64::saturating_add)
}

/// Returns the positions where the memory of a suspect accumulates: its members, or the object that its evidence is about.
pub(super) fn accumulated_at(
    graph: &ObjectGraph,
    suspect: &Suspect,
    positions: &[TreePosition],
) -> Vec<TreePosition> {
    let base = || graph.tree.position(graph.objects.addresses.index_of(suspect.base.object)?);
    match suspect.kind {
        SuspectKind::Single if suspect.rule == SuspectRule::Mat => base().into_iter().collect(),
        SuspectKind::Single | SuspectKind::Group => positions.to_vec(),
    }
}
