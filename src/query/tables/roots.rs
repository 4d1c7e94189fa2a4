//! The table `roots`.

use std::io;
use std::sync::Arc;

use super::{
    Batch, ColumnNames, ColumnSet, Context, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableQuery,
};
use hprof_base::dictionary::{Name, names};
use hprof_base::fact::FactValue;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_model::paths::root_report::RootRow;

use super::fact_columns;

/// Names of the columns that are facts of a root.
const SHOWN: [Name; 6] =
    [names::OBJECT, names::KIND, names::THREAD, names::FRAME_NUMBER, names::CLASS, names::IS_ASSUMED];

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
        columns: fact_columns::definitions(RootRow::facts(), &SHOWN, &[names::KIND, names::CLASS]),
    }
}

impl<'a> Roots<'a> {
    pub(super) fn new(context: Arc<Context<'a>>) -> Self {
        Self { context, definition: definition() }
    }

    /// Returns the fact of this name.
    fn value(&self, root: &GcRoot, name: Name) -> FactValue<'static> {
        match name {
            names::OBJECT => self.context.id(root.object).into(),
            names::KIND => root.kind.name().into(),
            names::THREAD => root.thread.and_then(|thread| self.context.id(thread)).into(),
            names::FRAME_NUMBER => root.frame.into(),
            names::CLASS => self.context.dump.graph.objects.class(root.object).into(),
            names::IS_ASSUMED => root.is_assumed.into(),
            _ => FactValue::Null,
        }
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
        if SHOWN.get(column) == Some(&names::CLASS) {
            self.context.class_names.clone()
        } else {
            ColumnNames::default()
        }
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

    fn read(&self, chunk: &TableChunk, _: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(rows) = chunk else { return Ok(()) };
        let graph = self.context.dump.graph;
        for root in graph.roots.rows.get(rows.clone()).unwrap_or_default() {
            batch.rows += 1;
            for (number, name) in SHOWN.into_iter().enumerate() {
                batch.column(number).fact(&self.value(root, name));
            }
        }
        Ok(())
    }
}
