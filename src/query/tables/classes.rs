//! The table `classes`.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableContext, TableQuery,
};
use hprof_base::dictionary::names;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassRow;
use hprof_model::histogram;
use hprof_model::histogram::hierarchy;
use hprof_values::ObjectId;

/// Table with a row for each class.
pub(super) struct Classes<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let no_object = "the dump does not contain its class object";
    Definition {
        name: "classes".into(),
        meaning: "A class that has a class object or instances in the dump".into(),
        order: "by class number".into(),
        columns: vec![
            Column::new(names::CLASS_OBJECT).or_null(no_object),
            Column::new(names::CLASS).few(),
            Column::new(names::LOADER_OBJECT)
                .or_null("the class is of the boot loader, or the loader is not in the dump"),
            Column::new(names::SUPERCLASS_OBJECT)
                .or_null("the class has no superclass, or the superclass is not in the dump"),
            Column::new(names::CLASS_NUMBER),
            Column::new(names::INSTANCES),
            Column::new(names::SHALLOW_BYTES),
            Column::new(names::LOADER_CLASS)
                .few()
                .or_null("the class is of the boot loader, or the loader is not in the dump"),
            Column::new(names::PACKAGE).few(),
        ],
    }
}

impl<'a> Classes<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        Self { context, definition: definition() }
    }

    /// Returns the classes with these numbers that the command `classes` also lists.
    fn shown_classes(&self, numbers: Range<usize>) -> impl Iterator<Item = (ClassNumber, &ClassRow)> {
        let summary = self.context.dump.summary;
        let classes = summary.numbered_classes().take(numbers.end).skip(numbers.start);
        classes.filter(|(number, _)| hierarchy::is_shown(summary, *number))
    }
}

impl Table for Classes<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.shown_classes(0..self.context.dump.summary.classes().len()).count() as u64
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![
            Lookup { column: 0, operator: Operator::Equal, rows: 1.0 },
            Lookup { column: 1, operator: Operator::Equal, rows: 1.0 },
        ]
    }

    fn names(&self, column: usize) -> ColumnNames {
        if column == 1 { self.context.class_names.clone() } else { ColumnNames::default() }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        Ok(match question {
            TableQuery::Of(_, _, key) => {
                let found = find(&self.context, key).into_iter();
                found.map(|class| TableChunk::Rows(class.0 as usize..class.0 as usize + 1)).collect()
            }
            _ => vec![TableChunk::Rows(0..self.context.dump.summary.classes().len())],
        })
    }

    fn read(&self, chunk: &TableChunk, _: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(rows) = chunk else { return Ok(()) };
        let TableContext { dump, sizes, .. } = &*self.context;
        let summary = dump.summary;
        for (number, class) in self.shown_classes(rows.clone()) {
            batch.column(0).id(class.class_object());
            batch.column(1).name(Some(number.0));
            batch.column(2).id(ObjectId::from(class.loader).non_null());
            let superclass = summary.class_table().superclass(number);
            batch.column(3).id(superclass.and_then(|class| self.context.class_id(class)));
            batch.column(4).count(Some(number.0.into()));
            batch.column(5).count(Some(histogram::instances(summary, number, class)));
            batch.column(6).count(Some(sizes.total(number)));
            batch.column(7).text(summary.loader_class(class.loader.into()));
            batch.column(8).text(Some(&histogram::package_label(summary.class_name(class))));
            batch.rows += 1;
        }
        Ok(())
    }
}

/// Returns the numbers of the classes with this name, or of the class with this class object.
pub(super) fn find(context: &TableContext<'_>, key: &LookupKey) -> Vec<ClassNumber> {
    match key {
        LookupKey::Integer(id) => context.class_of_id(*id).into_iter().collect(),
        LookupKey::Text(name) => context.classes_named(name).to_vec(),
    }
}
