//! Shortest paths to an object, continued beyond objects that are only locals of a thread.
//!
//! While a thread puts something into a map, the map's table is a local of its frame. A path that starts there is the
//! shortest, and does not show the field that holds the map after the method has returned. So two sorts of paths are
//! searched:
//!
//! - *Through a frame*: the path starts at an object that is a root only because a thread's stack holds it (kinds java
//!   frame, JNI local, native stack, thread block). No other root is on it.
//! - *Through fields*: the path starts at an object that is a root for another reason; a thread is one, as it runs. No
//!   other such root is on it, but locals of threads may be.
//!
//! The result is the shortest of both together. If it contains no path through fields and there is one, the shortest of
//! those is added. Roots of excluded kinds start neither sort: a path leads through them as through any other object.
//!
//! Both sorts use the search of `shortest`, so its order, memory limits and termination apply here. The second search
//! runs only if the first found a path through a frame: otherwise it would find the same paths.

use rustc_hash::FxHashSet;

use crate::objects::reference_names::Edges;
use crate::objects::strength::Exclusions;
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;

use super::search::Budget;
use super::shortest;
use super::starts::{StartRoots, Starts};

/// A path from a root to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPath {
    /// Objects from a root to the object, by index.
    pub objects: Vec<ObjectIndex>,
    /// `true` if the first object is a root only because a thread's stack holds it.
    pub through_frame: bool,
}

/// Result of a search for paths to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundPaths {
    /// Paths, shortest first. One more than requested if none of the shortest leads through fields.
    pub paths: Vec<ObjectPath>,
    /// `true` if every path goes through an excluded reference.
    pub only_excluded: bool,
    /// `true` if there is no other path of either sort; `false` if the search gave up.
    pub are_all: bool,
}

impl FoundPaths {
    /// Returns whether there are paths, and all lead through frames.
    pub fn only_frames(&self) -> bool {
        !self.paths.is_empty() && self.paths.iter().all(|path| path.through_frame)
    }
}

/// Finds up to `most` paths to an object, and at least one through fields if there is one. Skips `excluded` references;
/// if there is no path then, follows all references, still from the same roots.
pub fn paths(edges: &Edges<'_>, object: ObjectIndex, most: usize, excluded: Exclusions) -> FoundPaths {
    paths_within(edges, object, most, excluded, &mut Budget::without_limit())
}

/// Finds paths like [`paths`], within one budget for both searches; see [`shortest::paths_within`].
pub fn paths_within(
    edges: &Edges<'_>,
    object: ObjectIndex,
    most: usize,
    excluded: Exclusions,
    budget: &mut Budget,
) -> FoundPaths {
    let shortest::ShortestPaths { paths, only_excluded, mut are_all } =
        shortest::paths_within(edges, object, most, excluded, budget);
    let fields = Starts::new(&edges.roots, excluded, StartRoots::BeyondFrames);
    let path = |objects: Vec<ObjectIndex>| {
        let through_frame = objects.first().is_some_and(|root| !fields.contains(*root));
        ObjectPath { objects, through_frame }
    };
    let mut paths: Vec<ObjectPath> = paths.into_iter().map(path).collect();
    if paths.iter().any(|path| path.through_frame) && !budget.is_spent() {
        let excluded = if only_excluded { excluded.following_all() } else { excluded };
        let found = shortest::search(edges, &fields, object, most, excluded, budget);
        are_all &= found.are_all;
        let mut others: Vec<ObjectPath> = found.paths.into_iter().map(path).collect();
        let known: FxHashSet<&[ObjectIndex]> = paths.iter().map(|path| path.objects.as_slice()).collect();
        others.retain(|other| !known.contains(other.objects.as_slice()));
        paths.append(&mut others);
        // Stable: paths of equal length stay in their order.
        paths.sort_rows_by_key(|path| path.objects.len());
        let all = paths.len();
        let first = paths.iter().position(|path| !path.through_frame);
        let added = first.filter(|at| *at >= most).map(|at| paths.swap_remove(at));
        paths.truncate(most);
        paths.extend(added);
        are_all &= paths.len() == all;
    }
    FoundPaths { paths, only_excluded, are_all }
}
