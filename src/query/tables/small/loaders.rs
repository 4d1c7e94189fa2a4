//! The table `loaders`.

use std::io;

use super::super::fact_columns::{self, FactColumns};
use super::super::{Batch, Definition, TableContext};
use hprof_base::dictionary::names;
use hprof_model::loaders::loader_sets::{self, LoaderRow};
use hprof_model::loaders::{self, LoaderOrder};
use hprof_model::objects::label::Labels;

/// Returns the columns of the table.
fn columns() -> FactColumns<'static, LoaderRow> {
    let shown = [
        names::OBJECT,
        names::CLASS,
        names::LABEL,
        names::PARENT,
        names::LOADERS,
        names::CLASSES,
        names::INSTANCES,
        names::SHALLOW_BYTES,
        names::RETAINED_BYTES,
        names::RETAINED_OBJECTS,
        names::LOADER_GROUP,
    ];
    let facts = fact_columns::own_columns(LoaderRow::facts());
    FactColumns::new(&shown, &[names::CLASS], facts)
}

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "loaders".into(),
        meaning: "A class loader, as listed by `loaders`".into(),
        order: "by retained bytes, largest first".into(),
        columns: columns().definitions(),
    }
}

/// Adds the rows.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let dump = &context.dump;
    let labels = Labels::new(dump);
    let found = loaders::loaders(&dump.objects, &labels, LoaderOrder::Retained);
    let columns = columns();
    for row in &loader_sets::with_classes(dump, found, LoaderOrder::Retained)?.rows {
        columns.add_with_names(row, dump.summary, rows);
    }
    Ok(())
}
