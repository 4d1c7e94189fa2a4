//! The table `arrays`.

use std::io;
use std::sync::Arc;

use super::object_chunks;
use super::of_classes::{Columns, OfClasses};
use super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, Lookup, Operator, PreparedData, Table, TableChunk,
    TableContext, TableQuery, classes,
};
use hprof_base::dictionary::{names, nulls};
use hprof_index::model::tables::ClassKind;
use hprof_model::objects::class_set::ClassSet;

const ID: usize = 0;
const CLASS_ID: usize = 1;
const CLASS: usize = 2;
const ELEMENT: usize = 3;
const LENGTH: usize = 4;
const SHALLOW: usize = 5;
const RETAINED: usize = 6;
const COLUMNS: Columns =
    Columns { id: ID, class: CLASS, length: LENGTH, shallow_bytes: SHALLOW, retained_bytes: RETAINED };

/// Table with a row for each array.
pub(super) struct Arrays<'a> {
    objects: OfClasses<'a>,
    definition: Definition,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    Definition {
        name: "arrays".into(),
        meaning: "An array".into(),
        order: "by object ID".into(),
        columns: vec![
            Column::new(names::OBJECT),
            Column::new(names::CLASS_OBJECT).or_null(nulls::NO_CLASS_OBJECT),
            Column::new(names::CLASS).few(),
            Column::new(names::ELEMENT).few(),
            Column::new(names::LENGTH).or_null("the record of the array cannot be read"),
            Column::new(names::SHALLOW_BYTES),
            Column::new(names::RETAINED_BYTES).or_null(nulls::UNREACHABLE),
        ],
    }
}

impl<'a> Arrays<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        let all = context.dump.summary.numbered_classes();
        let arrays = all.filter(|(_, class)| class.kind() != ClassKind::Instance).map(|(number, _)| number);
        let classes = ClassSet::from_classes(context.dump.summary, &arrays.collect::<Vec<_>>());
        Self { objects: OfClasses { context, classes }, definition: definition() }
    }
}

impl Table for Arrays<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.objects.rows()
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![
            Lookup { column: ID, operator: Operator::Equal, rows: 1.0 },
            Lookup { column: CLASS, operator: Operator::Equal, rows: 1000.0 },
            Lookup { column: CLASS_ID, operator: Operator::Equal, rows: 1000.0 },
        ]
    }

    fn orders(&self) -> Vec<usize> {
        self.objects.orders(ID)
    }

    fn names(&self, column: usize) -> ColumnNames {
        if column == CLASS { self.objects.context.class_names.clone() } else { ColumnNames::default() }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        let context = &self.objects.context;
        Ok(match question {
            TableQuery::Of(ID, _, key) => object_chunks::of_id(context, key),
            TableQuery::Of(_, _, key) => object_chunks::of_classes(context, &classes::find(context, key)),
            _ => object_chunks::all_objects(context),
        })
    }

    fn prepare(&self, wanted: ColumnSet, stop: &(dyn Fn() -> bool + Sync)) -> Option<PreparedData> {
        self.objects.prepare(&COLUMNS, wanted, stop)
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let context = &*self.objects.context;
        self.objects.add_rows(&COLUMNS, chunk, wanted, batch, |batch, class, _| {
            batch.column(CLASS_ID).id(class.and_then(|class| context.class_id(class)));
            let kind = class.and_then(|class| context.dump.summary.class(class)).map(|class| class.kind());
            batch.column(ELEMENT).text(Some(match kind {
                Some(ClassKind::PrimitiveArray(element)) => element.java_name(),
                _ => "object",
            }));
        });
        Ok(())
    }
}
