//! The table `loaders`.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_base::dictionary::names;
use hprof_model::loaders::loader_sets;
use hprof_model::loaders::{self, LoaderOrder};
use hprof_model::objects::label::Labels;

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    let alone = "none of these is reachable, or it is a loader that lives as long as the JVM";
    Definition {
        name: "loaders".into(),
        meaning: "A class loader, as `loaders` lists them".into(),
        order: "by retained bytes, most first".into(),
        columns: vec![
            Column::of(names::OBJECT).or_null("it is the boot loader"),
            Column::of(names::CLASS).few().or_null("it is the boot loader, or it is not in the dump"),
            Column::of(names::LABEL).or_null("there are none").secret(),
            Column::of(names::PARENT).or_null("it is not known, or differs"),
            Column::of(names::LOADERS),
            Column::of(names::CLASSES),
            Column::of(names::INSTANCES),
            Column::of(names::SHALLOW_BYTES),
            Column::of(names::RETAINED_BYTES).or_null("none of these is reachable, or it is the boot loader"),
            Column::of(names::RETAINED_OBJECTS).or_null(alone),
            Column::of(names::LOADER_GROUP).or_null("no other loader does"),
        ],
    }
}

/// Makes the rows.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let dump = &context.dump;
    let summary = dump.summary;
    let labels = Labels::new(dump);
    let found = loaders::loaders(&dump.objects, &labels, LoaderOrder::Retained);
    for found in &loader_sets::with_classes(dump, found, LoaderOrder::Retained)?.rows {
        let row = &found.row;
        let class = row.class.and_then(|class| summary.class(class));
        rows.id(row.id.non_null())
            .text(class.map(|class| summary.class_name(class)))
            .text(row.label.as_deref())
            .id(row.parent)
            .count(row.loaders())
            .count(row.classes)
            .count(row.instances)
            .count(row.shallow_bytes)
            .count(found.retained_bytes())
            .count(found.with_classes.map(|retained| retained.objects))
            .count(found.group.map(|group| group as u64 + 1))
            .end();
    }
    Ok(())
}
