//! Fields that hold what is wasted, and what they are put together by.

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::WasteSearch;
use crate::sorting::SortRows;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_parser::{ObjectId, names};

/// By what an object refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReferredBy {
    /// A field that the class declares, by number.
    Field(u32),
    /// A static field of the class, by number.
    Static(u32),
    /// An object of the class, not known how: by an element of an array, by a thread's stack.
    Object,
}

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Label {
    pub(super) class: ClassNumber,
    pub(super) by: ReferredBy,
}

/// Nothing but a root holds it.
pub(super) const NOTHING: Label = Label { class: ClassNumber(u32::MAX), by: ReferredBy::Object };

/// By field: how many objects, and their bytes.
pub(super) type Sums = FxHashMap<Label, (u64, u64)>;

/// What fields are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldGroupBy {
    /// Not at all.
    Field,
    /// The class that declares the field.
    Class,
    /// The class loader of that class.
    Loader,
    /// The package of that class.
    Package,
}

/// A field that holds waste, or a group of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSum {
    /// The class that declares the field; or the class, the package, the name of the loader. `None` if nothing but a thread's
    /// stack or another GC root holds it, and for the boot loader.
    pub class: Option<Arc<str>>,
    /// The field; `None` if it is not known, and of groups.
    pub field: Option<Arc<str>>,
    /// The class loader, if these are groups by loader.
    pub loader: Option<ObjectId>,
    /// Whether the field is static.
    pub is_static: bool,
    /// How many objects it holds.
    pub count: u64,
    /// What would be freed of them.
    pub wasted_bytes: u64,
}

impl FieldSum {
    /// `com.acme.Row.currency`: class and field; or the class, the package, the loader.
    pub fn name(&self) -> Option<String> {
        let class = self.class.as_ref()?;
        Some(self.field.as_ref().map_or_else(|| class.to_string(), |field| format!("{class}.{field}")))
    }
}

/// What a group is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum FieldGroupKey<'a> {
    Field(&'a str, &'a str, bool),
    Name(&'a str),
    Loader(ObjectId),
    None,
}

/// Names fields and puts them together, most bytes first. A name is kept once, however long it is and however many fields
/// have it.
pub(super) fn named(search: &WasteSearch<'_>, sums: Sums, group_by: FieldGroupBy) -> Vec<FieldSum> {
    let mut groups: FxHashMap<FieldGroupKey<'_>, (u64, u64)> = FxHashMap::default();
    for (label, (count, bytes)) in sums {
        let sum = groups.entry(key(search.summary, label, group_by)).or_default();
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
    let object = search.graph.objects.addresses.index_of(loader)?;
    let class = search.summary.loader_class(loader).unwrap_or("?");
    Some(search.labels.label(object).map_or_else(|| class.to_owned(), |label| format!("{class} {label}")))
}

fn key<'a>(summary: &'a Summary, Label { class, by }: Label, group_by: FieldGroupBy) -> FieldGroupKey<'a> {
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
            // An array, or an object of which no field is known to.
            ReferredBy::Object => FieldGroupKey::Name(name),
        },
        FieldGroupBy::Class => FieldGroupKey::Name(name),
        FieldGroupBy::Package => FieldGroupKey::Name(names::package(name)),
        FieldGroupBy::Loader => FieldGroupKey::Loader(row.loader.into()),
    }
}
