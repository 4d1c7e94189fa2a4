//! Other holders of accumulated objects, which are freed only if all holders release them.
//!
//! Objects that several holders reference are dominated by none of them. From a sample of the objects, references are
//! followed back as long as there is a single referrer, and then to the objects below the common dominator that contain the
//! referrers. Those that are the same for nearly all of the sample are holders.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

use crate::objects::reference_names::Edges;
use crate::objects::strength::Excluded;
use crate::sorting::SortRows;

use super::contents;

/// Number of objects examined.
const SAMPLE: usize = 32;
/// Minimum number of objects for a sample.
const MANY: usize = 10;
/// Maximum number of referrers of an object, and of single referrers followed one after another.
const MAX_REFERRERS: usize = 64;
const MAX_HOPS: usize = 8;
/// Maximum number of holders.
const MAX_HOLDERS: usize = 64;

/// Returns the holders of nearly all of some objects, except those that contain `known`.
pub(super) fn other_holders(
    edges: &Edges<'_>,
    positions: &[TreePosition],
    known: &[TreePosition],
) -> Vec<ObjectIndex> {
    if positions.len() < MANY {
        return Vec::new();
    }
    let tree = &edges.graph.tree;
    let step = positions.len().div_ceil(SAMPLE);
    let sample: Vec<TreePosition> = positions.iter().copied().step_by(step).collect();
    // By the object below the common dominator: number of samples, and the common dominator of their referrers there.
    let mut found: FxHashMap<TreePosition, (u64, TreePosition)> = FxHashMap::default();
    for position in &sample {
        let (held, referrers) = referrers(edges, *position);
        let depth = tree.dominator(held).map_or(0, |above| tree.depth(above) + 1);
        let mut own: Vec<(TreePosition, TreePosition)> =
            referrers.into_iter().map(|from| (tree.dominator_at(from, depth), from)).collect();
        own.sort_unstable();
        own.dedup_by_key(|(branch, _)| *branch);
        // Referrers that the object itself dominates do not hold it.
        for (branch, from) in own.into_iter().filter(|(branch, _)| *branch != held) {
            let (count, common) = found.entry(branch).or_insert((0, from));
            *count += 1;
            *common = tree.common_dominator(*common, from).unwrap_or(branch);
        }
    }
    let is_holder = |(branch, (count, _)): &(TreePosition, (u64, TreePosition))| {
        let is_known = known.iter().any(|known| tree.dominates(*branch, *known));
        contents::is_most(*count, sample.len() as u64) && !is_known
    };
    let mut found: Vec<(TreePosition, (u64, TreePosition))> = found.into_iter().filter(is_holder).collect();
    found.sort_rows_by_key(|(branch, _)| *branch);
    found.into_iter().take(MAX_HOLDERS).filter_map(|(_, (_, common))| tree.object_at(common)).collect()
}

/// Follows single strong references back. Returns the last object found, and its referrers.
fn referrers(edges: &Edges<'_>, position: TreePosition) -> (TreePosition, Vec<TreePosition>) {
    let tree = &edges.graph.tree;
    let mut at = position;
    for _ in 0..MAX_HOPS {
        let Some(object) = tree.object_at(at) else { break };
        let counts = |from: &ObjectIndex| {
            edges.is_followed(*from, object, Excluded::all()) && !edges.is_stack_only(*from, object)
        };
        let all = edges.graph.referrers(object).take(MAX_REFERRERS).filter(counts);
        let all: Vec<TreePosition> = all
            .filter_map(|from| tree.reachable_position(from))
            .filter(|from| !tree.dominates(at, *from))
            .collect();
        match all.as_slice() {
            [only] if tree.dominator(at).is_none_or(|above| above != *only) => at = *only,
            _ => return (at, all),
        }
    }
    (at, Vec::new())
}
