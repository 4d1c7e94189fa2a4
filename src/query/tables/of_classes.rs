//! Common parts of tables whose rows are the instances of given classes.

use std::sync::Arc;

use super::{Batch, ColumnSet, PreparedData, TableChunk, TableContext};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reader::ObjectRecord;

/// Denominator of the fraction of all objects for which lookups take as long as a pass over the whole tree.
const MANY: u64 = 8;

/// The instances of given classes, as rows of a table.
pub(super) struct OfClasses<'a> {
    pub(super) context: Arc<TableContext<'a>>,
    pub(super) classes: ClassSet,
}

/// Column numbers of the common properties of objects.
pub(super) struct Columns {
    pub(super) id: usize,
    pub(super) class: usize,
    /// Number of elements of an array.
    pub(super) length: usize,
    pub(super) shallow_bytes: usize,
    pub(super) retained_bytes: usize,
}

impl<'a> OfClasses<'a> {
    /// Returns the number of objects.
    pub(super) fn rows(&self) -> u64 {
        let summary = self.context.dump.summary;
        let of = |class| summary.class(class).map_or(0, |class| class.objects.get());
        self.classes.classes().map(of).sum()
    }

    /// Prepares the retained sizes if they are requested for many objects.
    pub(super) fn prepare(
        &self,
        columns: &Columns,
        wanted: ColumnSet,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Option<PreparedData> {
        let are_many = wanted.has(columns.retained_bytes)
            && self.rows() >= u64::from(self.context.dump.graph.objects.len()) / MANY;
        if are_many { self.context.prepare_tree(stop).map(PreparedData) } else { None }
    }

    /// Returns the columns by which the rows can be sorted: only the given column of IDs.
    pub(super) fn orders(&self, id: usize) -> Vec<usize> {
        self.context.ids_ascend().then_some(id).into_iter().collect()
    }

    /// Adds a row for each instance of the classes in a chunk; `more` adds the remaining columns, given class and record.
    pub(super) fn add_rows(
        &self,
        columns: &Columns,
        chunk: &TableChunk,
        wanted: ColumnSet,
        batch: &mut Batch,
        mut more: impl FnMut(&mut Batch, Option<ClassNumber>, Option<ObjectRecord<'a>>),
    ) {
        let (context, lookup) = (&*self.context, self.context.in_tree());
        self.each_record(chunk, |object, record| {
            let class = context.dump.graph.objects.class(object);
            batch.rows += 1;
            batch.row_numbers.push(object.0.into());
            batch.column(columns.id).id(context.id(object));
            batch.column(columns.class).name(class.map(|class| class.0));
            batch.column(columns.length).count(record.and_then(|record| record.length()).map(u64::from));
            let position = lookup.tree.position(object);
            let shallow = position.map(|position| lookup.tree.shallow_bytes(position));
            batch.column(columns.shallow_bytes).count(shallow);
            if wanted.has(columns.retained_bytes) {
                let retained = position.and_then(|position| lookup.retained_bytes(object, position));
                batch.column(columns.retained_bytes).count(retained);
            }
            more(batch, class, record);
        });
    }

    /// Calls `visit` with the record of each instance of the classes in a chunk.
    pub(super) fn each_record(
        &self,
        chunk: &TableChunk,
        mut visit: impl FnMut(ObjectIndex, Option<ObjectRecord<'a>>),
    ) {
        let (graph, objects) = (self.context.dump.graph, &self.context.dump.objects);
        match chunk {
            TableChunk::Rows(_) | TableChunk::Elements(..) => {}
            TableChunk::Objects(range) | TableChunk::ObjectsWith(_, range) => {
                for (first, wanted) in self.classes.blocks(graph, range.clone()) {
                    objects.records_of_block(first, wanted, &mut visit);
                }
            }
            TableChunk::Listed(list, range) | TableChunk::With(_, list, range) => {
                for object in list.part(range.clone()) {
                    if graph.objects.class(object).is_some_and(|class| self.classes.contains(class)) {
                        visit(object, objects.record(object));
                    }
                }
            }
        }
    }
}
