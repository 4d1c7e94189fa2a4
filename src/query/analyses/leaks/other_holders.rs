//! Other holders of accumulated objects, which are freed only if all holders release them.
//!
//! Objects that several holders reference are dominated by none of them. From a sample of the objects, references are followed
//! back as long as there is a single referrer, and then to the objects below the common dominator that contain the referrers.
//! Objects that are found for nearly all of the sample are holders.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

use hprof_base::sorting::SortRows;
use hprof_model::objects::reference_names::Edges;
use hprof_model::objects::strength::Exclusions;

use super::contents;

/// Maximum number of objects in a sample.
const SAMPLE: usize = 32;
/// Minimum number of objects for a sample.
const MANY: usize = 10;
/// Maximum number of referrers of an object that are examined.
const MAX_REFERRERS: usize = 64;
/// Maximum number of single referrers that are followed one after another.
const MAX_HOPS: usize = 8;
/// Maximum number of objects searched backwards from one object.
const MAX_NEAR: usize = 256;
/// Maximum number of holders.
const MAX_HOLDERS: usize = 64;

/// Returns the objects that hold nearly all of the given objects, except objects that contain `known`.
pub(super) fn other_holders(
    edges: &Edges<'_>,
    positions: &[TreePosition],
    known: &[TreePosition],
) -> Vec<ObjectIndex> {
    if positions.len() < MANY {
        return Vec::new();
    }
    let tree = &edges.dump.graph.tree;
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

/// Returns the nearest of the `wanted` objects that leads to nearly all of the given objects, regardless of the objects in
/// between. Objects that contain `known` are excluded.
pub(super) fn common_holder(
    edges: &Edges<'_>,
    positions: &[TreePosition],
    known: &[TreePosition],
    wanted: &dyn Fn(ObjectIndex) -> bool,
) -> Option<ObjectIndex> {
    let tree = &edges.dump.graph.tree;
    let step = positions.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<ObjectIndex> =
        positions.iter().step_by(step).filter_map(|position| tree.object_at(*position)).collect();
    if positions.len() < MANY {
        return None;
    }
    // Number of samples, and sum of the ranks by distance.
    let mut found: FxHashMap<ObjectIndex, (u64, usize)> = FxHashMap::default();
    for object in &sample {
        for (rank, object) in backwards(edges, *object).into_iter().enumerate().skip(1) {
            let (count, ranks) = found.entry(object).or_default();
            *count += 1;
            *ranks += rank;
        }
    }
    let contains_known = |object| {
        tree.reachable_position(object)
            .is_none_or(|position| known.iter().any(|known| tree.dominates(position, *known)))
    };
    let mut found: Vec<(ObjectIndex, (u64, usize))> = found
        .into_iter()
        .filter(|(object, (count, _))| {
            contents::is_most(*count, sample.len() as u64) && !contains_known(*object)
        })
        .collect();
    found.sort_rows_by_key(|(object, (_, ranks))| (*ranks, *object));
    found.into_iter().map(|(object, _)| object).find(|object| wanted(*object))
}

/// Returns an object and the objects that lead to it by strong references, nearest first.
fn backwards(edges: &Edges<'_>, object: ObjectIndex) -> Vec<ObjectIndex> {
    let mut seen = vec![object];
    let mut at = 0;
    while let Some(to) = seen.get(at).copied().filter(|_| seen.len() < MAX_NEAR) {
        for from in edges.dump.graph.referrers(to).take(MAX_REFERRERS) {
            let is_held =
                edges.is_followed(from, to, Exclusions::all_but_strong()) && !edges.is_stack_only(from, to);
            if is_held && !seen.contains(&from) {
                seen.push(from);
            }
        }
        at += 1;
    }
    seen
}

/// Follows single strong references back. Returns the last object found, and its referrers.
fn referrers(edges: &Edges<'_>, position: TreePosition) -> (TreePosition, Vec<TreePosition>) {
    let tree = &edges.dump.graph.tree;
    let mut at = position;
    for _ in 0..MAX_HOPS {
        let Some(object) = tree.object_at(at) else { break };
        let counts = |from: &ObjectIndex| {
            edges.is_followed(*from, object, Exclusions::all_but_strong())
                && !edges.is_stack_only(*from, object)
        };
        let all = edges.dump.graph.referrers(object).take(MAX_REFERRERS).filter(counts);
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
