//! How objects are shown in every command.

use std::path::Path;

use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_parser::ObjectId;
use hprof_query::objects::{meaning, object_id};
use hprof_report::escape;
use hprof_report::value::Value;

/// The name of an object's class.
pub(crate) fn class_name(summary: &Summary, class: Option<ClassNumber>) -> Option<&str> {
    class.and_then(|class| summary.class(class)).map(|class| summary.class_name(class))
}

/// An object in a table: its class, its id, and the label that tells it from others.
pub(crate) fn describe(class: Option<&str>, id: ObjectId, label: Option<&str>) -> String {
    match (class, label) {
        (Some("java.lang.Class"), Some(label)) => format!("class {label} {id:#x}"),
        (class, None) => format!("{} {id:#x}", class.unwrap_or(UNKNOWN)),
        (class, Some(label)) => format!("{} {id:#x} {}", class.unwrap_or(UNKNOWN), quoted(class, label)),
    }
}

/// As [`describe`], where the id has a column of its own: names are shortened to fit the terminal, IDs are not.
pub(crate) fn describe_without_id(class: Option<&str>, label: Option<&str>) -> String {
    match (class, label) {
        (Some("java.lang.Class"), Some(label)) => format!("class {label}"),
        (class, None) => class.unwrap_or(UNKNOWN).to_owned(),
        (class, Some(label)) => format!("{} {}", class.unwrap_or(UNKNOWN), quoted(class, label)),
    }
}

/// A label in quotes, but for what the program says of a collection, a buffer or a thread's value.
fn quoted(class: Option<&str>, label: &str) -> String {
    let starts = |start: &str| label.starts_with(start);
    let is_said = match class {
        Some("java.lang.String" | "java.lang.Thread") | None => false,
        Some(class) => {
            starts("size=") || starts("pos=") || starts("of ") && class.starts_with("java.lang.ThreadLocal")
        }
    };
    if is_said { label.to_owned() } else { escape::quoted(label) }
}

/// A double in JSON: what that has no number for is a text.
pub(crate) fn double(value: f64) -> Value<'static> {
    if value.is_finite() { value.into() } else { meaning::double(value).into() }
}

/// A float in JSON, with the digits that Java gives it, not those of the double.
pub(crate) fn float(value: f32) -> Value<'static> {
    if value.is_finite() {
        value.to_string().parse::<f64>().unwrap_or(0.0).into()
    } else {
        meaning::float(value).into()
    }
}

/// The class of an object, where the dump does not name it.
pub(crate) const UNKNOWN: &str = "<unknown class>";

/// The loader of the classes of the JDK itself, which is no object.
pub(crate) const BOOT_LOADER: &str = "<boot loader>";

/// A class loader in words: its class, and its id.
pub(crate) fn loader(id: ObjectId, class: Option<&str>) -> String {
    match (id, class) {
        (ObjectId::NULL, _) => BOOT_LOADER.to_owned(),
        (id, Some(class)) => format!("{class} @ {id:#x}"),
        (id, None) => format!("{id:#x}"),
    }
}

/// A class loader in words, by its object ID.
pub(crate) fn loader_text(summary: &Summary, id: ObjectId) -> String {
    loader(id, summary.loader_class(id))
}

/// What is said of an object ID that no object has, with the nearest that objects have; or the one that is meant if the digits
/// were hexadecimal.
pub(crate) fn not_found(id: ObjectId, path: &Path, nearest: &[ObjectId]) -> String {
    let text = format!("there is no object {id:#x} in {}", path.display());
    if let Some(meant) = object_id::with_digits_of(id).filter(|meant| nearest == [*meant]) {
        return format!("{text}; {} was read as decimal: {meant:#x} is an object", id.0);
    }
    let nearest: Vec<String> = nearest.iter().map(|id| format!("{id:#x}")).collect();
    if nearest.is_empty() { text } else { format!("{text}; the nearest objects are {}", nearest.join(", ")) }
}
