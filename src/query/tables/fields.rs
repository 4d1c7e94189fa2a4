//! The table `fields`.

use std::io;
use std::sync::{Arc, OnceLock};

use super::{
    Batch, Column, ColumnNames, ColumnSet, Definition, Lookup, LookupKey, Operator, Table, TableChunk,
    TableContext, TableQuery,
};
use hprof_base::dictionary::{names, nulls};
use hprof_index::model::summary::ClassNumber;
use hprof_model::objects::hiding;
use hprof_model::objects::reader::Bits;
use hprof_values::BasicType;

/// Table with a row for each field that a class declares: its instance fields, then its static fields.
pub(super) struct Fields<'a> {
    context: Arc<TableContext<'a>>,
    definition: Definition,
    /// Number of the first row of each class, followed by the total number of rows.
    first: OnceLock<Vec<usize>>,
}

/// Returns the definition of the table.
pub(super) fn definition() -> Definition {
    let instance = "the field is not static, or values are hidden";
    Definition {
        name: "fields".into(),
        meaning: "A field that a class declares".into(),
        order: "by class, instance fields first".into(),
        columns: vec![
            Column::new(names::CLASS_OBJECT).or_null(nulls::NO_CLASS_OBJECT),
            Column::new(names::CLASS).few(),
            Column::new(names::NAME).few(),
            Column::new(names::TYPE).few(),
            Column::new(names::FIELD_NUMBER),
            Column::new(names::IS_STATIC),
            Column::new(names::TARGET).or_null("the field is null, not static, or of a primitive type"),
            Column::new(names::VALUE).or_null(instance).secret(),
        ],
    }
}

impl<'a> Fields<'a> {
    pub(super) fn new(context: Arc<TableContext<'a>>) -> Self {
        Self { context, definition: definition(), first: OnceLock::new() }
    }

    fn row_starts(&self) -> &[usize] {
        self.first.get_or_init(|| {
            let classes = self.context.dump.summary.classes().iter();
            let mut rows = 0usize;
            let mut first = vec![0];
            first.extend(classes.map(|class| {
                rows += usize::from(class.fields.get()) + usize::from(class.statics.get());
                rows
            }));
            first
        })
    }
}

impl Table for Fields<'_> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn rows(&self) -> u64 {
        self.row_starts().last().map_or(0, |rows| *rows as u64)
    }

    fn lookups(&self) -> Vec<Lookup> {
        vec![
            Lookup { column: 0, operator: Operator::Equal, rows: 8.0 },
            Lookup { column: 1, operator: Operator::Equal, rows: 8.0 },
        ]
    }

    fn names(&self, column: usize) -> ColumnNames {
        if column == 1 { self.context.class_names.clone() } else { ColumnNames::default() }
    }

    fn chunks(&self, question: &TableQuery) -> io::Result<Vec<TableChunk>> {
        // A chunk is a range of classes, by number.
        let classes = self.context.dump.summary.classes().len();
        let of = |class: ClassNumber| TableChunk::Rows(class.0 as usize..class.0 as usize + 1);
        Ok(match question {
            TableQuery::Of(_, _, key @ (LookupKey::Integer(_) | LookupKey::Text(_))) => {
                super::classes::find(&self.context, key).into_iter().map(of).collect()
            }
            _ => (0..classes)
                .step_by(256)
                .map(|start| TableChunk::Rows(start..(start + 256).min(classes)))
                .collect(),
        })
    }

    fn read(&self, chunk: &TableChunk, wanted: ColumnSet, batch: &mut Batch) -> io::Result<()> {
        let TableChunk::Rows(classes) = chunk else { return Ok(()) };
        let summary = self.context.dump.summary;
        for (number, class) in summary.numbered_classes().take(classes.end).skip(classes.start) {
            let fields = summary.fields(class).map(|(name, kind)| (name, kind, None));
            let statics =
                summary.statics(class).map(|(name, kind, bits)| (name, kind, Some(Bits { kind, bits })));
            let id = self.context.class_id(number);
            for (place, (name, kind, value)) in (0u64..).zip(fields.chain(statics)) {
                batch.rows += 1;
                batch.row_numbers.push(i64::from(number.0) << 32 | place.cast_signed());
                batch.column(0).id(id);
                batch.column(1).name(Some(number.0));
                batch.column(2).text(Some(name));
                batch.column(3).text(Some(type_name(kind)));
                batch.column(4).count(Some(place));
                batch.column(5).boolean(Some(value.is_some()));
                batch.column(6).id(value.and_then(Bits::reference));
                if wanted.has(7) {
                    let is_shown = !summary.hides_values() || hiding::is_shown(summary, number, name, kind);
                    let text = value.filter(|_| is_shown).and_then(primitive);
                    batch.column(7).text(text.as_deref());
                }
            }
        }
        Ok(())
    }
}

/// Returns the type of a field.
fn type_name(kind: BasicType) -> &'static str {
    if kind == BasicType::Object { "object" } else { kind.java_name() }
}

/// Formats a primitive value as Java does; `None` for a reference.
fn primitive(value: Bits) -> Option<String> {
    Some(match value.kind {
        BasicType::Object => return None,
        BasicType::Boolean => (value.bits != 0).to_string(),
        BasicType::Float => value.as_float().to_string(),
        BasicType::Double => f64::from_bits(value.bits).to_string(),
        BasicType::Char => value.as_character().into(),
        _ => value.integer()?.to_string(),
    })
}
