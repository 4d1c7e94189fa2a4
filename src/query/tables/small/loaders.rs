//! The table `loaders`.

use std::io;

use super::super::{Column, Context, Definition, Kind};
use super::Rows;
use crate::classes::loader_sets;
use crate::classes::loaders::{self, SortBy};
use crate::objects::label::Labels;

/// What the table has.
pub(super) fn definition() -> Definition {
    let alone = "none of these is reachable, or it is a loader that lives as long as the JVM";
    Definition {
        name: "loaders".into(),
        meaning: "A class loader, as `loaders` lists them".into(),
        order: "by retained bytes, most first".into(),
        columns: vec![
            Column::new("id", Kind::Id, "its object ID").or_null("it is the boot loader"),
            Column::new("class", Kind::Name, "its class")
                .or_null("it is the boot loader, or it is not in the dump"),
            Column::new("label", Kind::Text, "a few words that tell it from others: its name")
                .or_null("there are none")
                .secret(),
            Column::new("parent_id", Kind::Id, "the loader that it asks first; 0 is the boot loader")
                .or_null("it is not known"),
            Column::new("classes", Kind::Integer, "classes that it defines"),
            Column::new("instances", Kind::Integer, "objects of these"),
            Column::new("shallow_bytes", Kind::Integer, "what those take"),
            Column::new(
                "retained_bytes",
                Kind::Integer,
                "what would be freed with the loader, its classes and their instances together; of the platform and the \
                 application loader what the loader object alone retains",
            )
            .or_null("none of these is reachable, or it is the boot loader"),
            Column::new("retained_objects", Kind::Integer, "objects that would be freed with them").or_null(alone),
            Column::new(
                "same_classes",
                Kind::Integer,
                "the number, from 1, of the group of loaders that define classes of the same names",
            )
            .or_null("no other loader does"),
        ],
    }
}

/// The rows.
pub(super) fn make(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    let Context { heap, summary, graph, bytes, objects, .. } = context;
    let labels = Labels::new(heap, graph, bytes);
    let found = loaders::loaders(objects, &labels, SortBy::Retained);
    for found in &loader_sets::with_classes(summary, graph, found, SortBy::Retained)?.rows {
        let row = &found.row;
        let class = row.class.and_then(|class| summary.class(class));
        rows.id(row.id.non_null())
            .text(class.map(|class| summary.class_name(class)))
            .text(row.label.as_deref())
            .id(row.parent)
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
