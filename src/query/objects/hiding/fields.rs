//! Numeric fields that stay, and what becomes of the others.

use std::sync::LazyLock;

use hprof_parser::{BasicType, names};

/// The list of fields: what stays, and why.
const LIST: &str = include_str!("kept_fields.txt");

/// A rule of the list.
#[derive(Debug)]
pub(crate) struct KeptField {
    /// Class, or its start if `is_prefix`.
    class: &'static str,
    is_prefix: bool,
    /// Names of fields; `*` is all.
    fields: Vec<&'static str>,
}

#[cfg(test)]
impl KeptField {
    /// Returns the names of the fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.fields.iter().copied()
    }
}

/// Names of the list.
#[derive(Debug, Default)]
pub(crate) struct FieldList {
    pub(crate) stay: Vec<KeptField>,
    /// Names that are read only to show the value.
    pub(crate) shown: Vec<&'static str>,
}

pub(crate) static FIELDS: LazyLock<FieldList> = LazyLock::new(|| {
    let mut list = FieldList::default();
    for line in LIST.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("stay") => {
                let (Some(class), Some(fields)) = (words.next(), words.next()) else { continue };
                let fields = fields.split(',').collect();
                let prefix = class.strip_suffix('*');
                let (class, is_prefix) = (prefix.unwrap_or(class), prefix.is_some());
                list.stay.push(KeptField { class, is_prefix, fields });
            }
            Some("shown") => list.shown.extend(words.next().into_iter().flat_map(|names| names.split(','))),
            _ => {}
        }
    }
    list
});

/// Returns `true` if a number that the analyses read is the same in a redacted dump, or is read only to show it.
#[cfg(test)]
pub(crate) fn is_known(class: &str, field: &str) -> bool {
    let treatment = treatment(class, field, BasicType::Int);
    FIELDS.shown.contains(&field) || matches!(treatment, FieldTreatment::Stays | FieldTreatment::Counter)
}

/// Treatment of the number in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldTreatment {
    /// A reference.
    Reference,
    /// The analyser reads it.
    Stays,
    /// A counter of `java.util.concurrent.atomic`, which may be the size of a collection.
    Counter,
    /// A cached hash.
    Hash,
    /// A cached hash; negative ones are marks.
    MarkedHash,
    /// The value of a box.
    Boxed,
    /// Any other.
    Mapped,
}

/// Classes whose instances are boxes.
const BOXES: [&str; 8] = [
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Short",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Float",
    "java.lang.Double",
];
/// Classes of counters: their fields `value`, `base` and those of cells.
const COUNTERS: [&str; 5] = [
    "java.util.concurrent.atomic.AtomicInteger",
    "java.util.concurrent.atomic.AtomicLong",
    "java.util.concurrent.atomic.AtomicBoolean",
    "java.util.concurrent.atomic.Striped64",
    "java.util.concurrent.atomic.Striped64$Cell",
];

/// Returns whether the value of a field that a class declares says nothing but how the heap is built.
pub(crate) fn is_structure(class: &str, field: &str, kind: BasicType) -> bool {
    matches!(treatment(class, field, kind), FieldTreatment::Reference | FieldTreatment::Stays)
}

/// Returns the treatment of a field that a class declares.
pub(crate) fn treatment(class: &str, field: &str, kind: BasicType) -> FieldTreatment {
    if kind == BasicType::Object {
        return FieldTreatment::Reference;
    }
    let class = names::java_class_name(class);
    if COUNTERS.contains(&&*class) && matches!(field, "value" | "base") {
        return FieldTreatment::Counter;
    }
    let is_kept = |rule: &KeptField| {
        let is_class = if rule.is_prefix { class.starts_with(rule.class) } else { *class == *rule.class };
        is_class && rule.fields.iter().any(|name| *name == field || *name == "*")
    };
    if kind == BasicType::Boolean || FIELDS.stay.iter().any(is_kept) {
        FieldTreatment::Stays
    } else if BOXES.contains(&&*class) && field == "value" {
        FieldTreatment::Boxed
    } else if field == "hash" && class.starts_with("java.util.concurrent.ConcurrentHashMap") {
        FieldTreatment::MarkedHash
    } else if matches!(field, "hash" | "hashCode" | "h") {
        FieldTreatment::Hash
    } else {
        FieldTreatment::Mapped
    }
}
