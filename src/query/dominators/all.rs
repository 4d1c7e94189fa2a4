//! Every reachable object with its retained size and its dominator, part by part: for answers of millions of rows.

use std::ops::Range;

use crate::index::ObjectGraph;
use crate::index::graph::tree::Tree;
use crate::index::model::summary::ClassNumber;

use super::preorder::{self, Preorder};

/// Objects of a part.
const PART: u32 = 1 << 16;

/// A reachable object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// Object id.
    pub id: u64,
    /// Its class, if the dump tells.
    pub class: Option<ClassNumber>,
    /// What it takes itself.
    pub shallow_bytes: u64,
    /// What would be freed with it.
    pub retained_bytes: u64,
    /// Object id of its immediate dominator; `None` if nothing but the roots dominates it.
    pub dominator: Option<u64>,
}

/// The parts of all reachable objects, in preorder.
pub fn parts(tree: &Tree) -> Vec<Range<u32>> {
    preorder::parts(0..tree.reachable(), PART)
}

/// The rows of a part, in preorder of the dominator tree. Parts do not depend on one another.
pub fn rows(graph: &ObjectGraph, part: Range<u32>) -> Vec<Row> {
    let tree = &graph.tree;
    let mut rows = objects(graph, part.clone());
    // The objects that the pass is in: depth, position, shallow bytes of this part before it.
    let mut open: Vec<(u32, u32, u64)> = Vec::new();
    // The dominator of objects that have theirs in an earlier part, for objects at one depth.
    let mut outside: Option<(u32, Option<u64>)> = None;
    let mut bytes = 0u64;
    let id = |rows: &[Row], position: u32| rows.get((position - part.start) as usize).map(|row| row.id);
    let mut pass = Preorder::new(tree, part.clone());
    for (position, depth) in pass.by_ref() {
        close(&mut open, &mut rows, part.start, depth, bytes);
        let dominator = match open.last() {
            Some((_, dominator, _)) => id(&rows, *dominator),
            None => match outside {
                Some((known, dominator)) if known == depth => dominator,
                _ => {
                    let object = tree.dominator(position).and_then(|dominator| tree.object_at(dominator));
                    let dominator = object.and_then(|object| graph.objects.addresses.id_of(object));
                    outside = Some((depth, dominator));
                    dominator
                }
            },
        };
        let shallow_bytes = tree.shallow_bytes(position);
        if let Some(row) = rows.get_mut((position - part.start) as usize) {
            row.shallow_bytes = shallow_bytes;
            row.dominator = dominator;
        }
        open.push((depth, position, bytes));
        bytes = bytes.saturating_add(shallow_bytes);
    }
    let next_depth = if part.end < tree.reachable() { pass.next_depth() } else { 0 };
    close(&mut open, &mut rows, part.start, next_depth, bytes);
    // What is still open reaches into the parts behind.
    for (_, position, _) in open {
        if let Some(row) = rows.get_mut((position - part.start) as usize) {
            row.retained_bytes = tree.retained_bytes(position);
        }
    }
    rows
}

/// Ends what objects of this depth and below dominate.
fn close(open: &mut Vec<(u32, u32, u64)>, rows: &mut [Row], first: u32, depth: u32, bytes: u64) {
    while let Some((_, position, before)) = open.pop_if(|(open, ..)| *open >= depth) {
        if let Some(row) = rows.get_mut((position - first) as usize) {
            row.retained_bytes = bytes - before;
        }
    }
}

/// Ids and classes of the objects of a part. They are looked up in the order of addresses, since they lie so in memory.
fn objects(graph: &ObjectGraph, part: Range<u32>) -> Vec<Row> {
    let mut rows = vec![Row::default(); part.len()];
    let mut objects: Vec<(u32, u32)> = graph.tree.objects_at(part).zip(0u32..).collect();
    objects.sort_unstable();
    for (object, at) in objects {
        if let Some(row) = rows.get_mut(at as usize) {
            row.id = graph.objects.addresses.id_of(object).unwrap_or(0);
            row.class = graph.objects.class(object);
        }
    }
    rows
}
