//! What the tables have in common whose rows are the objects of some classes.

use std::sync::Arc;

use super::{Chunk, Context};
use crate::index::graph::numbers::ObjectIndex;
use crate::query::objects::class_set::ClassSet;
use crate::query::objects::reader::Record;

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

    /// The columns by which they are in order: that of IDs.
    pub(super) fn orders(&self, id: usize) -> Vec<usize> {
        self.context.ids_ascend().then_some(id).into_iter().collect()
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
