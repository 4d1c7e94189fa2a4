//! The table `roots`.

use std::io;
use std::sync::Arc;

use super::{
    Batch, Column, ColumnNames, Context, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableQuery, Wanted,
};
use hprof_base::dictionary::names;

/// Table with a row for each root.
pub(super) struct Roots<'a> {
    context: Arc<Context<'a>>,
    definition: Definition,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    Definition {
        name: "roots".into(),
        meaning: "A GC root whose object is in the dump; an object can have several".into(),
        order: "as in the dump".into(),
        columns: vec![
            Column::of(names::OBJECT),
            Column::of(names::KIND).few(),
            Column::of(names::THREAD).or_null("it belongs to no thread, or to one that is not in the dump"),
            Column::of(names::FRAME_NUMBER).or_null("it has none"),
            Column::of(names::CLASS).few().or_null("the dump does not say"),
            Column::of(names::IS_ASSUMED),
        ],
    }
}

impl<'a> Roots<'a> {
    pub(super) fn new(context: Arc<Context<'a>>) -> Self {
        Self { context, definition: definition() }
    }
}

impl Table for Roots<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.context.dump.graph.roots.rows.len() as u64
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![Lookup { column: 0, operator: Operator::Equal, rows: 1.0 }]
    }

    fn names(&self, column: usize) -> ColumnNames {
        if column == 4 { self.context.class_names.clone() } else { ColumnNames::default() }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        let TableQuery::Of(_, _, key) = question else {
            return Ok(vec![TableChunk::Rows(0..self.context.dump.graph.roots.rows.len())]);
        };
        let object = if let LookupKey::Integer(id) = key { self.context.object(*id) } else { None };
        let Some(object) = object else { return Ok(Vec::new()) };
        let rows = self.context.edges().roots.numbers_of_object(object);
        Ok(rows.map(|row| TableChunk::Rows(row..row + 1)).collect())
    }

    fn read(&self, chunk: &TableChunk, _: Wanted, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(rows) = chunk else { return Ok(()) };
        let graph = self.context.dump.graph;
        for root in graph.roots.rows.get(rows.clone()).unwrap_or_default() {
            batch.rows += 1;
            batch.column(0).id(self.context.id(root.object));
            batch.column(1).text(Some(root.kind.name()));
            batch.column(2).id(root.thread.and_then(|thread| self.context.id(thread)));
            batch.column(3).count(root.frame.map(u64::from));
            batch.column(4).name(graph.objects.class(root.object).map(|class| class.0));
            batch.column(5).boolean(Some(root.is_assumed));
        }
        Ok(())
    }
}
