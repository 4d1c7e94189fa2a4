//! Passes over the dominator tree: all objects of a range of positions with their depths, one after another.
//!
//! A single lookup in the tree costs some hundred steps; a pass costs a few per object.

use std::ops::Range;

use hprof_base::parallel;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::graph::tree::{ByPosition, Children, Tree};

/// Number of positions per chunk.
const CHUNK: u32 = 1 << 16;
/// Maximum number of children counted one by one; with more, everything that they dominate is examined instead.
const FEW: usize = 1 << 10;
/// Number of objects that a pass visits in the time of one lookup.
const STEPS_OF_LOOKUP: usize = 64;

/// Positions of reachable objects and their depths.
#[derive(Debug, Clone)]
pub struct Preorder<'a> {
    ends: ByPosition<'a>,
    next: TreePosition,
    end: TreePosition,
    depth: u32,
}

impl<'a> Preorder<'a> {
    /// Creates a pass over the reachable objects of a range of positions; unreachable ones are omitted.
    pub fn new(tree: &'a Tree, positions: Range<TreePosition>) -> Self {
        let end = positions.end.min(TreePosition(tree.reachable()));
        let depth = if positions.start < end { tree.depth(positions.start) } else { 0 };
        Self { ends: tree.ends(positions.start..end), next: positions.start, end, depth }
    }
}

impl Iterator for Preorder<'_> {
    /// Position and depth.
    type Item = (TreePosition, u32);

    #[inline]
    fn next(&mut self) -> Option<(TreePosition, u32)> {
        if self.next >= self.end {
            return None;
        }
        let here = (self.next, self.depth);
        let ends = u32::try_from(self.ends.next()?).unwrap_or(u32::MAX);
        self.depth = self.depth.saturating_add(1).saturating_sub(ends);
        self.next.0 += 1;
        Some(here)
    }
}

/// Calls `visit` with position, depth and shallow size of the reachable objects of a range of positions. Returns the
/// depth of the object after them.
pub fn visit(
    tree: &Tree,
    positions: Range<TreePosition>,
    mut visit: impl FnMut(TreePosition, u32, u64),
) -> u32 {
    let mut depth = if positions.start.0 < tree.reachable() { tree.depth(positions.start) } else { 0 };
    tree.visit(positions, |position, ends, bytes| {
        visit(position, depth, bytes);
        depth = depth.saturating_add(1).saturating_sub(u32::try_from(ends).unwrap_or(u32::MAX));
    });
    depth
}

/// Top of a part of the dominator tree: the roots, or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The roots: all reachable objects are below.
    Roots,
    /// The object at a position.
    Object(TreePosition),
}

impl Start {
    /// Returns the immediately dominated objects, by position, largest first.
    pub fn children(self, tree: &Tree) -> Children<'_> {
        match self {
            Self::Roots => tree.top(),
            Self::Object(position) => tree.children(position),
        }
    }

    /// Returns the positions of all dominated objects, without the start itself, and the depth of its children.
    pub fn dominated_range(self, tree: &Tree) -> (Range<TreePosition>, u32) {
        match self {
            Self::Roots => (tree.positions(), 0),
            Self::Object(position) => (
                TreePosition(position.0.saturating_add(1))..tree.end(position),
                tree.depth(position).saturating_add(1),
            ),
        }
    }

    /// Returns the immediately dominated objects if they are few enough, compared with all dominated ones, to be looked
    /// up one by one rather than in a pass.
    pub fn few_children(self, tree: &Tree) -> Option<Vec<TreePosition>> {
        let (below, _) = self.dominated_range(tree);
        let most = FEW.max(below.end.0.saturating_sub(below.start.0) as usize / STEPS_OF_LOOKUP);
        let mut children = self.children(tree);
        let few: Vec<TreePosition> = children.by_ref().take(most).collect();
        children.next().is_none().then_some(few)
    }

    /// Returns the number of immediately dominated objects.
    pub fn child_count(self, tree: &Tree) -> u64 {
        let (positions, depth) = self.dominated_range(tree);
        let count = |chunk| u64::from(tree.count_to_depth(chunk, depth));
        // Most objects dominate few.
        if positions.end.0.saturating_sub(positions.start.0) <= CHUNK {
            return count(positions);
        }
        parallel::map(&TreePosition::chunks(positions, CHUNK), count).into_iter().sum()
    }
}
