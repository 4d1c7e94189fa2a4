//! The table `waste`.

use std::borrow::Cow;
use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_analyses::waste::{FieldGroupBy, FieldSum, WasteQuery, WasteRow, waste};
use hprof_base::dictionary::names;
use hprof_base::fact::Fact;

/// Row of `waste`: a kind of waste and one of its fields, or the sum over all objects of a kind without fields.
struct WasteEntry<'w> {
    kind: &'w WasteRow,
    field: Cow<'w, FieldSum>,
}

/// Returns the columns of the table.
fn columns<'w>() -> FactColumns<'w, WasteEntry<'w>> {
    const NO_FIELD: &str = "only GC roots hold the objects, or the kind has no fields";
    // Declared before the facts of the field, whose condition includes groups of fields.
    let own = vec![
        Fact::new(names::FIELD, |entry: &WasteEntry<'w>| entry.field.name().into()).or_null(NO_FIELD),
        Fact::new(names::KIND, |entry: &WasteEntry<'w>| entry.kind.kind.name.into()),
        Fact::new(names::CLASS, |entry: &WasteEntry<'w>| entry.field.class.as_deref().into())
            .or_null(NO_FIELD),
        Fact::new(names::KIND_OBJECTS, |entry: &WasteEntry<'w>| entry.kind.count.into()),
        Fact::new(names::KIND_WASTED_BYTES, |entry: &WasteEntry<'w>| entry.kind.wasted_bytes.into()),
        Fact::new(names::KIND_ADDED_BYTES, |entry: &WasteEntry<'w>| entry.kind.added_bytes.into()),
    ];
    let mut facts = fact_columns::own_columns(own);
    facts.extend(fact_columns::columns(FieldSum::facts(), |entry: &WasteEntry<'w>| &*entry.field));
    let shown = [
        names::KIND,
        names::FIELD,
        names::CLASS,
        names::IS_STATIC,
        names::OBJECTS,
        names::WASTED_BYTES,
        names::KIND_OBJECTS,
        names::KIND_WASTED_BYTES,
        names::KIND_ADDED_BYTES,
    ];
    FactColumns::new(&shown, &[names::KIND, names::CLASS], facts)
}

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "waste".into(),
        meaning: "Memory wasted by one kind of waste in one field, or in all if the kind has no fields"
            .into(),
        order: "kinds by bytes, largest first; within a kind, fields by bytes, largest first".into(),
        columns: columns().definitions(),
    }
}

/// Adds the rows.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let question = WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Field, examples: 0 };
    let found = waste(&context.dump, &question)?;
    let columns = columns();
    for kind in &found.rows {
        let none = kind.fields.is_empty().then(|| Cow::Owned(kind.sum()));
        for field in kind.fields.iter().map(Cow::Borrowed).chain(none) {
            columns.add_with_names(&WasteEntry { kind, field }, context.dump.summary, rows);
        }
    }
    Ok(())
}
