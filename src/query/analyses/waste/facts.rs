//! Facts about the fields that hold waste.

use hprof_base::dictionary::names;
use hprof_base::fact::Fact;

use super::FieldSum;

impl FieldSum {
    /// Returns the facts about a field, or a group of fields.
    pub fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::FIELD, |field: &Self| field.name().into()).or_null(
                "only GC roots hold the objects, or fields are grouped by loader and these are of the boot loader",
            ),
            Fact::new(names::IS_STATIC, |field: &Self| field.is_static.into()),
            Fact::new(names::LOADER_OBJECT, |field: &Self| field.loader.into())
                .or_null("fields are not grouped by loader"),
            Fact::new(names::OBJECTS, |field: &Self| field.count.into()),
            Fact::new(names::WASTED_BYTES, |field: &Self| field.wasted_bytes.into()),
        ]
    }
}
