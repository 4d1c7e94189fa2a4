//! The shortest paths to an object, which go on beyond objects that only happen to be locals of a thread.
//!
//! While a thread puts something into a map, the map's table is a local of its frame. A path that starts there is the
//! shortest, and tells nothing of the field that holds the map when the method has returned. So paths of two sorts are
//! searched:
//!
//! - *Through a frame*: the path starts at an object that is a root only because a thread's stack holds it (kinds java
//!   frame, JNI local, native stack, thread block). No other root is on it.
//! - *Through fields*: the path starts at an object that is a root for another reason; a thread is one, as it runs. No
//!   other such root is on it, but locals of threads may be.
//!
//! Shown are the shortest of both together. If no path through fields is among them and there is one, the shortest is added.
//! Roots of kinds that are excluded are neither: a path leads through them as through any other object.
//!
//! Both sorts are found by searches of `shortest`, so what holds for its order, its memory and its end holds here. The
//! second search is made only where a path through a frame was found: elsewhere it would find the same.

use rustc_hash::FxHashSet;

use crate::objects::reference_names::Edges;
use crate::objects::strength::Excluded;
use crate::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;

use super::search::Budget;
use super::shortest;
use super::starts::{StartRoots, Starts};

/// A path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Objects from a root to the object, by index.
    pub objects: Vec<ObjectIndex>,
    /// `true` if its first object is a root only because a thread's stack holds it.
    pub through_frame: bool,
}

/// The paths to an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundPaths {
    /// Shortest first. One more than asked for, if otherwise none led through fields.
    pub paths: Vec<Path>,
    /// `true` if these are there only if no reference is left out.
    pub only_excluded: bool,
    /// `true` if there is no other path of either sort. It is not known if the search gave up.
    pub are_all: bool,
}

impl FoundPaths {
    /// Returns whether there are paths, and all lead through frames: there is none through fields.
    pub fn only_frames(&self) -> bool {
        !self.paths.is_empty() && self.paths.iter().all(|path| path.through_frame)
    }
}

/// Finds up to `most` paths to an object, and one through fields in any case. What is `excluded` is left out; if there is
/// no path then, all references are followed, still from the same roots.
pub fn paths(edges: &Edges<'_>, object: ObjectIndex, most: usize, excluded: Excluded) -> FoundPaths {
    paths_within(edges, object, most, excluded, &mut Budget::unlimited())
}

/// The same within a budget for both searches; see [`shortest::paths_within`].
pub fn paths_within(
    edges: &Edges<'_>,
    object: ObjectIndex,
    most: usize,
    excluded: Excluded,
    budget: &mut Budget,
) -> FoundPaths {
    let shortest::ShortestPaths { paths, only_excluded, mut are_all } =
        shortest::paths_within(edges, object, most, excluded, budget);
    let fields = Starts::new(&edges.roots, excluded, StartRoots::BeyondFrames);
    let path = |objects: Vec<ObjectIndex>| {
        let through_frame = objects.first().is_some_and(|root| !fields.contains(*root));
        Path { objects, through_frame }
    };
    let mut paths: Vec<Path> = paths.into_iter().map(path).collect();
    if paths.iter().any(|path| path.through_frame) && !budget.is_spent() {
        let excluded = if only_excluded { excluded.following_all() } else { excluded };
        let found = shortest::search(edges, &fields, object, most, excluded, budget);
        are_all &= found.are_all;
        let mut others: Vec<Path> = found.paths.into_iter().map(path).collect();
        let known: FxHashSet<&[ObjectIndex]> = paths.iter().map(|path| path.objects.as_slice()).collect();
        others.retain(|other| !known.contains(other.objects.as_slice()));
        paths.append(&mut others);
        // Those of equal length stay in their order.
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
