//! The table `waste`.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_analyses::waste::{FieldGroupBy, FieldSum, WasteQuery, waste};
use hprof_base::dictionary::names;

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "waste".into(),
        meaning: "Wasted memory: a kind of waste and a field that holds it, as `waste` shows".into(),
        order: "kinds by bytes, most first; of a kind fields by bytes, most first".into(),
        columns: vec![
            Column::of(names::KIND).few(),
            Column::of(names::FIELD).or_null("only GC roots hold it, or the kind has no fields"),
            Column::of(names::CLASS).few().or_null("as `field`"),
            Column::of(names::IS_STATIC),
            Column::of(names::OBJECTS),
            Column::of(names::WASTED_BYTES),
            Column::of(names::KIND_OBJECTS),
            Column::of(names::KIND_WASTED_BYTES),
            Column::of(names::KIND_ADDED_BYTES),
        ],
    }
}

/// Makes the rows.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let question = WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Field, examples: 0 };
    let found = waste(&context.dump, &question)?;
    for kind in &found.rows {
        let none = kind.fields.is_empty().then_some(None);
        for field in kind.fields.iter().map(Some).chain(none) {
            rows.text(kind.kind.name)
                .text(field.and_then(FieldSum::name).as_deref())
                .text(field.and_then(|field| field.class.as_deref()))
                .boolean(field.is_some_and(|field| field.is_static))
                .count(field.map_or(kind.count, |field| field.count))
                .count(field.map_or(kind.wasted_bytes, |field| field.wasted_bytes))
                .count(kind.count)
                .count(kind.wasted_bytes)
                .count(kind.added_bytes)
                .end();
        }
    }
    Ok(())
}
