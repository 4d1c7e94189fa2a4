//! Positions in the dominator tree that suspects are about: their sizes, and what several have in common.

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::Tree;

use super::{Suspect, SuspectKind, SuspectRule};

/// Returns the sum of the retained sizes of objects of which none dominates another.
pub(super) fn retained_bytes(tree: &Tree, positions: &[TreePosition]) -> u64 {
    positions.iter().fold(0, |sum, position| sum.saturating_add(tree.retained_bytes(*position)))
}

/// Returns the size that both `some` and `others` retain, by the dominator tree. In each list no object dominates
/// another; `others` are ascending.
pub(super) fn common_bytes(tree: &Tree, some: &[TreePosition], others: &[TreePosition]) -> u64 {
    let sum = |positions: &mut dyn Iterator<Item = TreePosition>| {
        positions.fold(0, |sum: u64, position| sum.saturating_add(tree.retained_bytes(position)))
    };
    let common = some.iter().map(|position| {
        let (before, behind) = others.split_at(others.partition_point(|other| other <= position));
        match before.last() {
            Some(above) if tree.end(*above) > *position => sum(&mut std::iter::once(*position)),
            _ => sum(&mut behind.iter().copied().take_while(|below| *below < tree.end(*position))),
        }
    });
    common.fold(0, u64::saturating_add)
}

/// Returns the positions where a suspect accumulates: those of its members, or of the base of its evidence.
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
