//! The table `roots`.

use std::io;
use std::sync::Arc;

use super::{
    Batch, ColumnNames, ColumnSet, Definition, Lookup, LookupKey, Operator, Table, TableChunk, TableContext,
    TableQuery,
};
use hprof_base::dictionary::{Name, names};
use hprof_base::fact::FactValue;
use hprof_index::objects::gc_roots::GcRoot;
use hprof_model::paths::root_report::RootRow;

use super::fact_columns;

/// Function for the value of a column.
type GetValue = fn(&TableContext<'_>, &GcRoot) -> FactValue<'static>;

/// Columns: facts of a root by name, and their values without a row of the command `roots`.
const COLUMNS: [(Name, GetValue); 6] = [
    (names::OBJECT, |context, root| context.id(root.object).into()),
    (names::KIND, |_, root| root.kind.name().into()),
    (names::THREAD, |context, root| root.thread.and_then(|thread| context.id(thread)).into()),
    (names::FRAME_NUMBER, |_, root| root.frame.into()),
    (names::CLASS, |context, root| context.dump.graph.objects.class(root.object).into()),
    (names::IS_ASSUMED, |_, root| root.is_assumed.into()),
];

/// Table with a row for each root.
pub(super) struct Roots<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    Definition {
        name: "roots".into(),
        meaning: "A GC root whose object is in the dump; an object can be several GC roots".into(),
        order: "as in the dump".into(),
        columns: fact_columns::definitions(
            RootRow::facts(),
            &COLUMNS.map(|(name, _)| name),
            &[names::KIND, names::CLASS],
        ),
    }
}

impl<'a> Roots<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
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
        if COLUMNS.get(column).is_some_and(|(name, _)| *name == names::CLASS) {
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
            for (number, (_, value)) in COLUMNS.iter().enumerate() {
                batch.column(number).fact(&value(&self.context, root));
            }
        }
        Ok(())
    }
}
