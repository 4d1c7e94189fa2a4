//! All reachable objects with retained size and dominator, chunk by chunk: for results with millions of rows.

use std::ops::Range;

use hprof_index::ObjectGraph;
use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::address_index::IdReader;
use hprof_values::ObjectId;

use super::tree_nodes;

/// A reachable object with its sizes and its dominator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReachableRow {
    /// Object ID.
    pub id: ObjectId,
    /// Class, if it is in the dump.
    pub class: Option<ClassNumber>,
    /// Shallow size.
    pub shallow_bytes: u64,
    /// Retained size.
    pub retained_bytes: u64,
    /// Object ID of the immediate dominator; `None` if only the roots dominate it.
    pub dominator: Option<ObjectId>,
}

/// Rows of all reachable objects. Their data is validated first.
#[derive(Debug)]
pub struct ReachableRows<'a> {
    graph: &'a ObjectGraph,
    ids: IdReader<'a>,
    labels: Labels<'a>,
}

impl<'a> ReachableRows<'a> {
    /// Prepares rows of the objects of this graph.
    pub fn new(graph: &'a ObjectGraph) -> Self {
        graph.check_tree();
        Self { graph, ids: graph.objects.addresses.ids(), labels: graph.labels() }
    }

    /// Returns the rows of a chunk, in preorder of the dominator tree. Chunks do not depend on one another.
    pub fn chunk_rows(&self, chunk: Range<TreePosition>) -> Vec<ReachableRow> {
        let mut rows = self.objects(chunk.clone());
        let ids: Vec<ObjectId> = rows.iter().map(|row| row.id).collect();
        let nodes = tree_nodes::chunk_nodes(&self.graph.tree, chunk, &ids, |position| {
            let object = self.graph.tree.object_at(position)?;
            self.graph.objects.addresses.id_of(object)
        });
        for (row, node) in rows.iter_mut().zip(nodes) {
            row.shallow_bytes = node.shallow_bytes;
            row.retained_bytes = node.retained_bytes;
            row.dominator = node.dominator;
        }
        rows
    }

    /// Returns IDs and classes of the objects of a chunk. They are looked up in order of object index, in which they are
    /// stored.
    #[allow(clippy::cast_possible_truncation)]
    fn objects(&self, chunk: Range<TreePosition>) -> Vec<ReachableRow> {
        let mut rows = vec![ReachableRow::default(); chunk.end.at() - chunk.start.at()];
        // One number each: comparing pairs takes longer.
        let mut objects: Vec<u64> = (self.graph.tree.objects_at(chunk).zip(0u64..))
            .map(|(object, at)| u64::from(object.0) << 32 | at)
            .collect();
        objects.sort_unstable();
        let mut ids = self.ids.clone();
        let class = |object: ObjectIndex| {
            Some(ClassNumber(u32::try_from(self.labels.label_with_target(object.0)?).ok()?))
        };
        for both in objects {
            let (object, at) = (ObjectIndex((both >> 32) as u32), both as u32);
            if let Some(row) = rows.get_mut(at as usize) {
                row.id = ids.next(object).unwrap_or_default();
                row.class = class(object);
            }
        }
        rows
    }
}
