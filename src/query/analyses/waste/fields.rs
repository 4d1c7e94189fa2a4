//! Fields that hold waste, and their groups.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::WasteSearch;
use hprof_base::sorting::SortRows;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_values::{ObjectId, names};

/// How an object refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReferredBy {
    /// A field that the class declares, by number.
    Field(u32),
    /// A static field of the class, by number.
    Static(u32),
    /// An object of the class, but no known field: an element of an array, or a thread's stack.
    Object,
}

/// Field that holds objects: class and way of referring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FieldLabel {
    pub(super) class: ClassNumber,
    pub(super) by: ReferredBy,
}

/// Label of objects that only roots hold.
pub(super) const NOTHING: FieldLabel = FieldLabel { class: ClassNumber(u32::MAX), by: ReferredBy::Object };

/// Number of objects and their bytes, by field.
pub(super) type Sums = FxHashMap<FieldLabel, (u64, u64)>;

/// Grouping of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldGroupBy {
    /// No grouping.
    Field,
    /// By the class that declares the field.
    Class,
    /// By the class loader of the class that declares the field.
    Loader,
    /// By the package of the class that declares the field.
    Package,
}

/// A field that holds waste, or a group of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSum {
    /// Class that declares the field; for groups, name of the class, the package or the loader. `None` if only a thread's stack
    /// or another GC root holds the objects, and for the boot loader.
    pub class: Option<Arc<str>>,
    /// Name of the field; `None` if it is unknown, and for groups.
    pub field: Option<Arc<str>>,
    /// Class loader, for groups by loader.
    pub loader: Option<ObjectId>,
    /// `true` if the field is static.
    pub is_static: bool,
    /// Number of objects that the field holds.
    pub count: u64,
    /// Wasted bytes of these objects.
    pub wasted_bytes: u64,
}

impl FieldSum {
    /// Returns class and field, such as `com.acme.Row.currency`; for groups, the name of the class, the package or the loader.
    pub fn name(&self) -> Option<String> {
        let class = self.class.as_ref()?;
        Some(self.field.as_ref().map_or_else(|| class.to_string(), |field| format!("{class}.{field}")))
    }
}

/// Key of a group of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum FieldGroupKey<'a> {
    Field(&'a str, &'a str, bool),
    Name(&'a str),
    Loader(ObjectId),
    None,
}

/// Names fields and groups them, most bytes first. Each name is stored once, regardless of its length and the number of
/// fields that share it.
pub(super) fn field_sums(search: &WasteSearch<'_>, sums: Sums, group_by: FieldGroupBy) -> Vec<FieldSum> {
    let mut groups: FxHashMap<FieldGroupKey<'_>, (u64, u64)> = FxHashMap::default();
    for (label, (count, bytes)) in sums {
        let sum = groups.entry(key(search.dump.summary, label, group_by)).or_default();
        *sum = (sum.0 + count, sum.1.saturating_add(bytes));
    }
    let mut rows: Vec<(FieldGroupKey<'_>, (u64, u64))> = groups.into_iter().collect();
    rows.sort_rows_by_key(|(key, (count, bytes))| (Reverse((*bytes, *count)), *key));
    let mut names: FxHashMap<&str, Arc<str>> = FxHashMap::default();
    let mut shared = |name| Some(names.entry(name).or_insert_with(|| Arc::from(name)).clone());
    let row = |(key, (count, wasted_bytes))| {
        let none = FieldSum { class: None, field: None, loader: None, is_static: false, count, wasted_bytes };
        match key {
            FieldGroupKey::Field(class, field, is_static) => {
                FieldSum { class: shared(class), field: shared(field), is_static, ..none }
            }
            FieldGroupKey::Name(name) => FieldSum { class: shared(name), ..none },
            FieldGroupKey::Loader(loader) => {
                FieldSum { class: loader_name(search, loader).map(Arc::from), loader: Some(loader), ..none }
            }
            FieldGroupKey::None => none,
        }
    };
    rows.into_iter().map(row).collect()
}

fn loader_name(search: &WasteSearch<'_>, loader: ObjectId) -> Option<String> {
    let object = search.dump.graph.objects.addresses.index_of(loader)?;
    let class = search.dump.summary.loader_class(loader).unwrap_or("?");
    Some(search.labels.label(object).map_or_else(|| class.to_owned(), |label| format!("{class} {label}")))
}

fn key<'a>(
    summary: &'a Summary,
    FieldLabel { class, by }: FieldLabel,
    group_by: FieldGroupBy,
) -> FieldGroupKey<'a> {
    let Some(row) = summary.class(class) else { return FieldGroupKey::None };
    let name = summary.class_name(row);
    match group_by {
        FieldGroupBy::Field => match by {
            ReferredBy::Field(at) => FieldGroupKey::Field(
                name,
                summary.fields(row).nth(at as usize).map_or("?", |(field, _)| field),
                false,
            ),
            ReferredBy::Static(at) => FieldGroupKey::Field(
                name,
                summary.statics(row).nth(at as usize).map_or("?", |(field, ..)| field),
                true,
            ),
            // An array, or an object by an unknown field.
            ReferredBy::Object => FieldGroupKey::Name(name),
        },
        FieldGroupBy::Class => FieldGroupKey::Name(name),
        FieldGroupBy::Package => FieldGroupKey::Name(names::package(name)),
        FieldGroupBy::Loader => FieldGroupKey::Loader(row.loader.into()),
    }
}
