//! Facts of class loaders.

use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;

use super::loader_sets::LoaderRow;

impl LoaderRow {
    /// Returns the facts of a loader, or of the loaders that a row represents.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::OBJECT, |loader: &Self| loader.row.id.non_null().into())
                .or_null(nulls::BOOT_LOADER),
            Fact::new(names::CLASS, |loader: &Self| {
                loader.row.class.filter(|_| !loader.row.id.is_null()).into()
            })
            .or_null("it is the boot loader, or the loader is not in the dump"),
            Fact::new(names::LABEL, |loader: &Self| loader.row.label.as_ref().into())
                .or_null("the loader has no label")
                .secret(),
            Fact::new(names::PARENT, |loader: &Self| loader.row.parent.into())
                .or_null("the parent is unknown, or the loaders of the row have different parents"),
            Fact::new(names::LOADERS, |loader: &Self| loader.row.loaders().into()),
            Fact::new(names::CLASSES, |loader: &Self| loader.row.classes.into()),
            Fact::new(names::INSTANCES, |loader: &Self| loader.row.instances.into()),
            Fact::new(names::SHALLOW_BYTES, |loader: &Self| loader.row.shallow_bytes.into()),
            Fact::new(names::RETAINED_BYTES, |loader: &Self| loader.retained_bytes().into())
                .or_null("no loader of the row is reachable, or it is the boot loader"),
            Fact::new(names::RETAINED_OBJECTS, |loader: &Self| {
                loader.with_classes.map(|retained| retained.objects).into()
            })
            .or_null("no loader of the row is reachable, or `retained_bytes` covers only the loader object"),
            Fact::new(names::LOADER_GROUP, |loader: &Self| loader.group.map(|group| group as u64 + 1).into())
                .or_null("no other loader defines classes with the same names"),
        ]
    }
}
