//! Reading fields of instances by name.

use crate::hprof::{BasicType, be_value};

use crate::index::model::summary::{ClassIds, Summary};

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
    for class in summary.class_table().upwards(*classes.get(&class)?) {
        for (field, kind) in summary.fields(summary.class(class)?) {
            if field == name {
                return Some((kind, be_value(bytes, at, kind, id_size)?));
            }
            at += kind.dump_bytes(id_size);
        }
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
