//! Fields that hold what is wasted, and what they are put together by.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::Search;
use super::holding::{By, Label, Sums};
use crate::hprof::{ObjectId, names};

/// What fields are put together by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
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
    /// `com.acme.Row.currency`: class and field; or the class, the package, the loader. `None` if nothing but a thread's stack
    /// or another GC root holds it, and for the boot loader.
    pub name: Option<String>,
    /// The class loader, if these are groups by loader.
    pub loader: Option<ObjectId>,
    /// Whether the field is static.
    pub is_static: bool,
    /// How many objects it holds.
    pub count: u64,
    /// What would be freed of them.
    pub wasted_bytes: u64,
}

/// What a group is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Field(String, bool),
    Name(String),
    Loader(ObjectId),
    None,
}

/// Names fields and puts them together, most bytes first.
pub(super) fn named(search: &Search<'_>, sums: Sums, group_by: GroupBy) -> Vec<FieldSum> {
    let summary = search.summary;
    let mut groups: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
    for (label, (count, bytes)) in sums {
        let sum = groups.entry(key(search, label, group_by)).or_default();
        *sum = (sum.0 + count, sum.1.saturating_add(bytes));
    }
    let loader_name = |loader: ObjectId| {
        let object = search.graph.objects.addresses.index_of(loader)?;
        let class = summary.loader_class(loader).unwrap_or("?");
        Some(search.labels.label(object).map_or_else(|| class.to_owned(), |label| format!("{class} {label}")))
    };
    let mut rows: Vec<FieldSum> = (groups.into_iter())
        .map(|(key, (count, wasted_bytes))| {
            let (name, loader, is_static) = match key {
                Key::Field(name, is_static) => (Some(name), None, is_static),
                Key::Name(name) => (Some(name), None, false),
                Key::Loader(loader) => (loader_name(loader), Some(loader), false),
                Key::None => (None, None, false),
            };
            FieldSum { name, loader, is_static, count, wasted_bytes }
        })
        .collect();
    rows.sort_by(|a, b| {
        let order = |row: &FieldSum| (Reverse((row.wasted_bytes, row.count)), row.loader, row.is_static);
        order(a).cmp(&order(b)).then_with(|| a.name.cmp(&b.name))
    });
    rows
}

fn key(search: &Search<'_>, Label { class, by }: Label, group_by: GroupBy) -> Key {
    let summary = search.summary;
    let Some(row) = summary.class(class) else { return Key::None };
    let name = summary.class_name(row);
    match group_by {
        GroupBy::Field => match by {
            By::Field(at) => {
                let field = summary.fields(row).nth(at as usize).map_or("?", |(field, _)| field);
                Key::Field(format!("{name}.{field}"), false)
            }
            By::Static(at) => {
                let field = summary.statics(row).nth(at as usize).map_or("?", |(field, ..)| field);
                Key::Field(format!("{name}.{field}"), true)
            }
            // An array, or an object of which no field is known to.
            By::Object => Key::Name(name.to_owned()),
        },
        GroupBy::Class => Key::Name(name.to_owned()),
        GroupBy::Package => Key::Name(names::package(name).to_owned()),
        GroupBy::Loader => Key::Loader(row.loader.into()),
    }
}
