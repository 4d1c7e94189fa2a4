//! Every reachable object with its retained size and its dominator, chunk by chunk: for answers of millions of rows.

use std::ops::Range;

use crate::hprof::ObjectId;
use crate::index::ObjectGraph;
use crate::index::graph::graph_view::Labels;
use crate::index::graph::numbers::{ObjectIndex, TreePosition};
use crate::index::graph::tree::Tree;
use crate::index::model::summary::ClassNumber;
use crate::index::objects::address_index::Ids;

use super::preorder;

/// Objects of a chunk.
const CHUNK: u32 = 1 << 16;

/// A reachable object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// Object id.
    pub id: ObjectId,
    /// Its class, if the dump tells.
    pub class: Option<ClassNumber>,
    /// What it takes itself.
    pub shallow_bytes: u64,
    /// What would be freed with it.
    pub retained_bytes: u64,
    /// Object id of its immediate dominator; `None` if nothing but the roots dominates it.
    pub dominator: Option<ObjectId>,
}

/// The chunks of all reachable objects, in preorder.
pub fn chunks(tree: &Tree) -> Vec<Range<TreePosition>> {
    TreePosition::chunks(tree.all(), CHUNK)
}

/// Makes rows. All that they are made of is checked first.
#[derive(Debug)]
pub struct Rows<'a> {
    graph: &'a ObjectGraph,
    ids: Ids<'a>,
    labels: Labels<'a>,
}

impl<'a> Rows<'a> {
    /// Of the objects of this graph.
    pub fn new(graph: &'a ObjectGraph) -> Self {
        graph.check_tree();
        Self { graph, ids: graph.objects.addresses.ids(), labels: graph.labels() }
    }

    /// The rows of a chunk, in preorder of the dominator tree. Chunks do not depend on one another.
    pub fn of(&self, chunk: Range<TreePosition>) -> Vec<Row> {
        let tree = &self.graph.tree;
        let mut rows = self.objects(chunk.clone());
        // The objects that the pass is in: depth, position, shallow bytes of this chunk before it.
        let mut open: Vec<(u32, TreePosition, u64)> = Vec::new();
        // The dominator of objects that have theirs in an earlier chunk, for objects at one depth.
        let mut outside: Option<(u32, Option<ObjectId>)> = None;
        let mut bytes = 0u64;
        let id = |rows: &[Row], position: TreePosition| {
            rows.get(position.at() - chunk.start.at()).map(|row| row.id)
        };
        let next_depth = preorder::visit(tree, chunk.clone(), |position, depth, shallow_bytes| {
            close(&mut open, &mut rows, chunk.start, depth, bytes);
            let dominator = match open.last() {
                Some((_, dominator, _)) => id(&rows, *dominator),
                None => match outside {
                    Some((known, dominator)) if known == depth => dominator,
                    _ => {
                        let object = tree.dominator(position).and_then(|dominator| tree.object_at(dominator));
                        let dominator = object.and_then(|object| self.graph.objects.addresses.id_of(object));
                        outside = Some((depth, dominator));
                        dominator
                    }
                },
            };
            if let Some(row) = rows.get_mut(position.at() - chunk.start.at()) {
                row.shallow_bytes = shallow_bytes;
                row.dominator = dominator;
            }
            open.push((depth, position, bytes));
            bytes = bytes.saturating_add(shallow_bytes);
        });
        let next_depth = if chunk.end.0 < tree.reachable() { next_depth } else { 0 };
        close(&mut open, &mut rows, chunk.start, next_depth, bytes);
        // What is still open reaches into the chunks after it.
        for (_, position, _) in open {
            if let Some(row) = rows.get_mut(position.at() - chunk.start.at()) {
                row.retained_bytes = tree.retained_bytes(position);
            }
        }
        rows
    }

    /// Ids and classes of the objects of a chunk. They are looked up in the order of addresses, since they lie so in
    /// memory.
    fn objects(&self, chunk: Range<TreePosition>) -> Vec<Row> {
        let mut rows = vec![Row::default(); chunk.end.at() - chunk.start.at()];
        let mut objects: Vec<(ObjectIndex, u32)> = self.graph.tree.objects_at(chunk).zip(0u32..).collect();
        objects.sort_unstable();
        let mut ids = self.ids.clone();
        let class =
            |object: ObjectIndex| Some(ClassNumber(u32::try_from(self.labels.known(object.0)?).ok()?));
        for (object, at) in objects {
            if let Some(row) = rows.get_mut(at as usize) {
                row.id = ids.next(object).unwrap_or_default();
                row.class = class(object);
            }
        }
        rows
    }
}

/// Ends what objects of this depth and below dominate.
fn close(
    open: &mut Vec<(u32, TreePosition, u64)>,
    rows: &mut [Row],
    first: TreePosition,
    depth: u32,
    bytes: u64,
) {
    while let Some((_, position, before)) = open.pop_if(|(open, ..)| *open >= depth) {
        if let Some(row) = rows.get_mut(position.at() - first.at()) {
            row.retained_bytes = bytes - before;
        }
    }
}
