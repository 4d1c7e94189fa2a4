//! What tables have in common whose rows are the objects of some classes.

use std::sync::Arc;

use super::tree_rows::TreeLookup;
use super::{Batch, Chunk, Context, Prepared, Wanted};
use crate::index::graph::numbers::ObjectIndex;
use crate::query::objects::class_set::ClassSet;
use crate::query::objects::reader::Record;

/// A pass over the whole tree takes about as long as lookups of this part of all objects.
const MANY: u64 = 8;

/// The objects of some classes.
pub(super) struct OfClasses<'a> {
    pub(super) context: Arc<Context<'a>>,
    pub(super) classes: ClassSet,
}

impl<'a> OfClasses<'a> {
    /// How many there are.
    pub(super) fn rows(&self) -> u64 {
        let summary = self.context.summary;
        let of = |class| summary.class(class).map_or(0, |class| class.objects.get());
        self.classes.classes().map(of).sum()
    }

    /// What speeds up their retained sizes, if they are many of all objects.
    pub(super) fn prepare(&self, stop: &(dyn Fn() -> bool + Sync)) -> Option<Prepared> {
        let are_many = self.rows() >= u64::from(self.context.graph.objects.len()) / MANY;
        if are_many { self.context.prepare_tree(stop).map(Prepared) } else { None }
    }

    /// The columns by which they are in order: that of IDs.
    pub(super) fn orders(&self, id: usize) -> Vec<usize> {
        self.context.ids_ascend().then_some(id).into_iter().collect()
    }

    /// Adds what an object takes, and what it retains, to these columns.
    pub(super) fn add_sizes(
        &self,
        lookup: &TreeLookup<'_>,
        object: ObjectIndex,
        [shallow, retained]: [usize; 2],
        wanted: Wanted,
        batch: &mut Batch,
    ) {
        let position = lookup.tree.position(object);
        batch.column(shallow).count(position.map(|position| lookup.tree.shallow_bytes(position)));
        if wanted.has(retained) {
            batch
                .column(retained)
                .count(position.and_then(|position| lookup.retained_bytes(object, position)));
        }
    }

    /// Calls `visit` with the records of those objects of a chunk that are of these classes.
    pub(super) fn each_record(&self, chunk: &Chunk, mut visit: impl FnMut(ObjectIndex, Option<Record<'a>>)) {
        let Context { graph, objects, .. } = &*self.context;
        match chunk {
            Chunk::Rows(_) | Chunk::Elements(..) => {}
            Chunk::Objects(range) | Chunk::ObjectsWith(_, range) => {
                for (first, wanted) in self.classes.blocks(graph, range.clone()) {
                    objects.records_of_block(first, wanted, &mut visit);
                }
            }
            Chunk::Listed(list, range) | Chunk::With(_, list, range) => {
                for object in list.part(range.clone()) {
                    if graph.objects.class(object).is_some_and(|class| self.classes.contains(class)) {
                        visit(object, objects.record(object));
                    }
                }
            }
        }
    }
}
