//! Accumulation point of many objects of one class: the object through which the shortest paths to most of them lead.
//!
//! The paths of all groups come from one search ([`hprof_model::paths::forest`]). From the roots down, the walk takes the child
//! with most members, as long as it has more than 80 percent of all members. If the members below it retain less than 70
//! percent of what the members below its parent retain, the parent is the accumulation point (Eclipse MAT, `FindLeaksQuery`).
//! All members count, whereas MAT takes a random 10,000.

use std::io;

use hprof_base::share::portion;
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::ScratchArena;
use hprof_model::objects::object_set::Bits;
use hprof_model::objects::reference_names::Edges;
use hprof_model::objects::strength::Exclusions;
use hprof_model::paths::forest::Forest;

use super::suspects::{CandidateGroup, is_drop};

/// Percentage of the members whose paths must lead through an object for the walk to continue.
const MOST_MEMBERS: u64 = 80;
/// Marker of objects that are not on the common path.
const NOWHERE: u32 = 0;

/// Common path of the members of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommonPath {
    /// Objects from a root to the accumulation point, or to the last one that most members share.
    pub(super) objects: Vec<ObjectIndex>,
    /// `true` if the last object is the accumulation point.
    pub(super) has_point: bool,
    /// Number of members whose paths lead through the last object.
    pub(super) members: u64,
    /// `true` if the path exists only because weak, soft, phantom and finalizer references are followed.
    pub(super) is_weak: bool,
}

/// Finds the common path of each group.
///
/// # Errors
/// If neither memory nor disk has space for a few numbers per object.
pub(super) fn common_paths(edges: &Edges<'_>, groups: &[CandidateGroup]) -> io::Result<Vec<CommonPath>> {
    let mut paths = vec![CommonPath::default(); groups.len()];
    let objects: Vec<Vec<ObjectIndex>> =
        groups.iter().map(|group| objects(edges.dump.graph, group)).collect();
    // Objects without a strong path are searched again through all references.
    for excluded in [Exclusions::all_but_strong(), Exclusions::NONE] {
        let open: Vec<usize> = (0..groups.len()).filter(|at| is_open(&paths, *at)).collect();
        let sought: Vec<&[ObjectIndex]> =
            open.iter().filter_map(|at| objects.get(*at)).map(Vec::as_slice).collect();
        let found = search(edges, &sought, excluded)?;
        for (at, mut path) in open.into_iter().zip(found) {
            path.is_weak = excluded.follows_all();
            if let Some(place) = paths.get_mut(at) {
                *place = path;
            }
        }
    }
    Ok(paths)
}

/// Returns whether no path to a member of the group has been found.
fn is_open(paths: &[CommonPath], at: usize) -> bool {
    paths.get(at).is_some_and(|path| path.members == 0)
}

fn objects(graph: &ObjectGraph, group: &CandidateGroup) -> Vec<ObjectIndex> {
    group.members.iter().filter_map(|position| graph.tree.object_at(*position)).collect()
}

fn search(edges: &Edges<'_>, groups: &[&[ObjectIndex]], excluded: Exclusions) -> io::Result<Vec<CommonPath>> {
    let wanted: u64 = groups.iter().map(|group| group.len() as u64).sum();
    if wanted == 0 {
        return Ok(Vec::new());
    }
    let set = |objects: &mut dyn Iterator<Item = ObjectIndex>| {
        let mut set = Bits::new(edges.dump.graph.objects.len());
        objects.for_each(|object| {
            set.insert(object);
        });
        set
    };
    let room = edges.dump.graph.room();
    let all = set(&mut groups.iter().flat_map(|group| group.iter().copied()));
    let forest = Forest::grow(&room, edges, &all, wanted, excluded)?;
    let path = |group: &&[ObjectIndex]| {
        let members = set(&mut group.iter().copied());
        common_path(&room, edges.dump.graph, &forest, group, &members)
    };
    groups.iter().map(path).collect()
}

fn common_path(
    room: &ScratchArena,
    graph: &ObjectGraph,
    forest: &Forest,
    group: &[ObjectIndex],
    members: &Bits,
) -> io::Result<CommonPath> {
    let all = group.len() as u64;
    let least = portion(all, MOST_MEMBERS);
    let mut counts = forest.counts(room, members)?;
    // Objects down from the roots that most members share, and the first one that too few share.
    let mut spine: Vec<(ObjectIndex, u64)> = Vec::new();
    for level in forest.levels() {
        let above = spine.last().map(|(object, _)| *object);
        let below = level.filter(|object| forest.holder(*object) == above);
        let counted = below.filter_map(|object| Some((object, u64::from(*counts.get(object.at())?))));
        // The one with the lowest index, if several are equal: levels ascend walk by walk.
        let best = counted.filter(|(_, count)| *count > 0).max_by_key(|(object, count)| (*count, !object.0));
        let Some(best) = best else { break };
        spine.push(best);
        if best.1 <= least {
            break;
        }
    }
    let sums = sums(graph, forest, group, &spine, &mut counts);
    let mut path = CommonPath::default();
    for (at, (object, count)) in spine.iter().enumerate() {
        if *count <= least {
            break;
        }
        path.objects.push(*object);
        path.members = *count;
        let sum = |at: usize| sums.get(at).copied().unwrap_or(0);
        let is_end = spine.len() == at + 1;
        if is_end || is_drop(sum(at + 1), sum(at)) {
            path.has_point = true;
            break;
        }
    }
    if path.members == 0 {
        // Members were found, but share nothing.
        path.members = spine.first().map_or(0, |(_, count)| *count);
    }
    Ok(path)
}

/// Returns, for each object of the common path, the retained size of the members whose paths lead through it. Overwrites
/// `scratch`.
fn sums(
    graph: &ObjectGraph,
    forest: &Forest,
    group: &[ObjectIndex],
    spine: &[(ObjectIndex, u64)],
    scratch: &mut [u32],
) -> Vec<u64> {
    // By object: 1 + index of the last object of the spine on its path.
    scratch.fill(NOWHERE);
    for (level, place) in forest.levels().zip(1u32..) {
        let own =
            usize::try_from(place).ok().and_then(|place| spine.get(place - 1)).map(|(object, _)| *object);
        for object in level {
            let above = forest.holder(object).and_then(|holder| scratch.get(holder.at())).copied();
            let here = if own == Some(object) { place } else { above.unwrap_or(NOWHERE) };
            if here != NOWHERE
                && let Some(entry) = scratch.get_mut(object.at())
            {
                *entry = here;
            }
        }
    }
    let mut sums = vec![0u64; spine.len()];
    for member in group {
        let place = scratch.get(member.at()).and_then(|place| (*place as usize).checked_sub(1));
        if let Some(sum) = place.and_then(|place| sums.get_mut(place)) {
            *sum = sum.saturating_add(graph.tree.retained_bytes_of(*member).unwrap_or(0));
        }
    }
    for at in (1..sums.len()).rev() {
        let below = sums.get(at).copied().unwrap_or(0);
        if let Some(sum) = sums.get_mut(at - 1) {
            *sum = sum.saturating_add(below);
        }
    }
    sums
}
