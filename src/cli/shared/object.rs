//! Formatting of objects, shared by all commands.

use std::path::Path;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_query::naming::object_id;
use hprof_query::objects::meaning;
use hprof_report::escape;
use hprof_report::value::Value;
use hprof_values::ObjectId;

/// Returns the name of an object's class.
pub(crate) fn class_name(summary: &Summary, class: Option<ClassNumber>) -> Option<&str> {
    class.and_then(|class| summary.class(class)).map(|class| summary.class_name(class))
}

/// Describes an object in a table: class, ID, and the label that distinguishes it from others.
pub(crate) fn describe(class: Option<&str>, id: ObjectId, label: Option<&str>) -> String {
    match (class, label) {
        (Some("java.lang.Class"), Some(label)) => format!("class {label} {id:#x}"),
        (class, None) => format!("{} {id:#x}", class.unwrap_or(UNKNOWN)),
        (class, Some(label)) => {
            format!("{} {id:#x} {}", class.unwrap_or(UNKNOWN), quoted_label(class, label))
        }
    }
}

/// Describes an object like [`describe`], but for tables with an ID column: names are shortened to fit the terminal.
pub(crate) fn describe_without_id(class: Option<&str>, label: Option<&str>) -> String {
    match (class, label) {
        (Some("java.lang.Class"), Some(label)) => format!("class {label}"),
        (class, None) => class.unwrap_or(UNKNOWN).to_owned(),
        (class, Some(label)) => format!("{} {}", class.unwrap_or(UNKNOWN), quoted_label(class, label)),
    }
}

/// Quotes a label, except for descriptions of collections, buffers and values of threads.
fn quoted_label(class: Option<&str>, label: &str) -> String {
    let starts = |start: &str| label.starts_with(start);
    let is_said = match class {
        Some("java.lang.String" | "java.lang.Thread") | None => false,
        Some(class) => {
            starts("size=") || starts("pos=") || starts("of ") && class.starts_with("java.lang.ThreadLocal")
        }
    };
    if is_said { label.to_owned() } else { escape::quoted(label) }
}

/// Converts a double to JSON; values without a JSON number become texts.
pub(crate) fn double(value: f64) -> Value<'static> {
    if value.is_finite() { value.into() } else { meaning::double(value).into() }
}

/// Converts a float to JSON with the digits that Java prints, not with those of the equal double.
pub(crate) fn float(value: f32) -> Value<'static> {
    if value.is_finite() {
        value.to_string().parse::<f64>().unwrap_or(0.0).into()
    } else {
        meaning::float(value).into()
    }
}

/// Placeholder for the class of an object whose name is not in the dump.
pub(crate) const UNKNOWN: &str = "<unknown class>";

/// Name of the boot loader, which defines the JDK's own classes and is not an object.
pub(crate) const BOOT_LOADER: &str = "<boot loader>";

/// Describes a class loader: class and ID.
pub(crate) fn loader(id: ObjectId, class: Option<&str>) -> String {
    match (id, class) {
        (ObjectId::NULL, _) => BOOT_LOADER.to_owned(),
        (id, Some(class)) => format!("{class} @ {id:#x}"),
        (id, None) => format!("{id:#x}"),
    }
}

/// Describes the class loader with this object ID.
pub(crate) fn loader_text(summary: &Summary, id: ObjectId) -> String {
    loader(id, summary.loader_class(id))
}

/// Returns the message that an object ID does not exist, with the nearest IDs; or with the intended ID if the digits were
/// meant as hexadecimal.
pub(crate) fn not_found(id: ObjectId, path: &Path, nearest: &[ObjectId]) -> String {
    let text = format!("no object {id:#x} in {}", path.display());
    if let Some(meant) = object_id::with_digits_of(id).filter(|meant| nearest == [*meant]) {
        return format!("{text}; {} was read as decimal: {meant:#x} is an object", id.0);
    }
    let nearest: Vec<String> = nearest.iter().map(|id| format!("{id:#x}")).collect();
    if nearest.is_empty() { text } else { format!("{text}; the nearest objects are {}", nearest.join(", ")) }
}
