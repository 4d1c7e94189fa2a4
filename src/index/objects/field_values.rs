//! Reading fields of instances by name.

use crate::index::storage::id_map::IdMap;

use crate::hprof::{BasicType, be_value};

use crate::index::model::summary::{ClassNumber, Summary};

/// Class id -> class number.
pub(crate) type ClassIds = IdMap<u64, ClassNumber>;

/// The class numbers of all classes that have a class object.
pub(crate) fn class_ids(summary: &Summary) -> ClassIds {
    summary
        .numbered_classes()
        .map(|(number, class)| (class.id.get(), number))
        .filter(|(id, _)| *id != 0)
        .collect()
}

/// The value of the first field called `name`, of the class itself or of the nearest superclass that has it.
pub(crate) fn field(
    summary: &Summary,
    classes: &ClassIds,
    class: u64,
    bytes: &[u8],
    name: &str,
) -> Option<(BasicType, u64)> {
    let id_size = summary.id_size();
    let mut at = 0;
    let mut class = classes.get(&class).copied();
    // A chain longer than there are classes is a cycle.
    for _ in 0..=summary.classes().len() {
        let row = summary.class(class?)?;
        for (field, kind) in summary.fields(row) {
            if field == name {
                return Some((kind, be_value(bytes, at, kind, id_size)?));
            }
            at += kind.dump_bytes(id_size);
        }
        class = summary.super_class(row);
    }
    None
}

/// The value of a reference field; `None` also for null.
pub(crate) fn reference(
    summary: &Summary,
    classes: &ClassIds,
    class: u64,
    bytes: &[u8],
    name: &str,
) -> Option<u64> {
    match field(summary, classes, class, bytes, name)? {
        (BasicType::Object, id) => Some(id).filter(|id| *id != 0),
        _ => None,
    }
}
