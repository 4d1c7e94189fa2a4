//! The class histogram: how many objects there are of each class, and what they take.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::hprof::names;
use crate::index::sizes::Sizes;
use crate::index::summary::{ClassNumber, Summary};
use crate::index::tables::{ClassKind, ClassRow};

use super::pattern::{ClassPattern, any_matches};

/// What a row of the histogram stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupBy {
    /// A class; classes of the same name from several loaders are several.
    #[default]
    Class,
    /// All classes of a package; arrays belong to their elements' package.
    Package,
    /// All classes of a loader.
    Loader,
}

/// The order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortBy {
    /// Most bytes first.
    #[default]
    Bytes,
    /// Most instances first.
    Instances,
    /// By name.
    Name,
}

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Which classes; all if there is no pattern.
    pub patterns: Vec<ClassPattern>,
    /// What a row stands for.
    pub group_by: GroupBy,
    /// The order of rows.
    pub sort_by: SortBy,
    /// How many rows are kept; all by default.
    pub top: Option<usize>,
}

/// A class loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loader {
    /// Object id; 0 is the boot loader.
    pub id: u64,
    /// The name of its class, if the loader is in the dump.
    pub class: Option<String>,
}

/// A row of the histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The class's name in Java source form, or the package's; empty when grouped by loader.
    pub name: String,
    /// The loader; `None` when grouped by package, and for classes whose class object is not in the dump.
    pub loader: Option<Loader>,
    /// Object id of the class object, if the row is of one class that has one.
    pub class_object: Option<u64>,
    /// Classes that the row is of.
    pub classes: u64,
    /// Number of objects.
    pub instances: u64,
    /// What they take together.
    pub shallow_bytes: u64,
}

/// Sums over rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of rows.
    pub rows: u64,
    /// Number of objects.
    pub instances: u64,
    /// What they take together.
    pub shallow_bytes: u64,
}

/// A histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// The rows that are kept, in the order asked for.
    pub rows: Vec<Row>,
    /// Sums over all rows, also those that `top` leaves out.
    pub total: Totals,
}

/// Objects of a class: those dumped as such; for java.lang.Class also all class objects.
pub fn instances(summary: &Summary, number: ClassNumber, class: &ClassRow) -> u64 {
    let class_objects =
        if summary.java_lang_class() == Some(number) { summary.facts().class_objects.get() } else { 0 };
    class.objects.get() + class_objects
}

/// Answers a question.
pub fn histogram(summary: &Summary, sizes: &Sizes, question: &Question) -> Histogram {
    let classes = summary.numbered_classes().filter_map(|(number, class)| {
        let instances = instances(summary, number, class);
        let name = summary.class_name(class);
        (instances > 0 && any_matches(&question.patterns, name)).then(|| Row {
            name: name.to_owned(),
            loader: class.is_dumped().then(|| loader(summary, class)),
            class_object: Some(class.id.get()).filter(|_| class.is_dumped()),
            classes: 1,
            instances,
            shallow_bytes: sizes.total(number),
        })
    });
    let mut rows: Vec<Row> = match question.group_by {
        GroupBy::Class => classes.collect(),
        GroupBy::Package => group(classes, |row| (names::package(&row.name).to_owned(), None), package_label),
        GroupBy::Loader => group(
            classes,
            |row| (String::new(), row.loader.clone().map(|loader| loader.id)),
            |_| String::new(),
        ),
    };
    let key = |row: &Row| (row.name.clone(), row.loader.as_ref().map(|loader| loader.id), row.class_object);
    match question.sort_by {
        SortBy::Bytes => rows.sort_by_cached_key(|row| (Reverse(row.shallow_bytes), key(row))),
        SortBy::Instances => rows.sort_by_cached_key(|row| (Reverse(row.instances), key(row))),
        SortBy::Name => rows.sort_by_cached_key(key),
    }
    let total = Totals {
        rows: rows.len() as u64,
        instances: rows.iter().map(|row| row.instances).sum(),
        shallow_bytes: rows.iter().fold(0, |sum, row| sum.saturating_add(row.shallow_bytes)),
    };
    rows.truncate(question.top.unwrap_or(usize::MAX));
    Histogram { rows, total }
}

fn loader(summary: &Summary, class: &ClassRow) -> Loader {
    let id = class.loader.get();
    Loader { id, class: summary.loader_class(id).map(str::to_owned) }
}

/// Packages that have no name of their own.
fn package_label(row: &Row) -> String {
    match names::package(&row.name) {
        "" if is_primitive_array(&row.name) => "<primitive arrays>".to_owned(),
        "" => "<unnamed package>".to_owned(),
        package => package.to_owned(),
    }
}

fn is_primitive_array(name: &str) -> bool {
    let element = name.trim_end_matches("[]");
    element != name && crate::hprof::BasicType::PRIMITIVES.iter().any(|kind| kind.java_name() == element)
}

/// Adds up rows of the same key.
fn group(
    rows: impl Iterator<Item = Row>,
    key: impl Fn(&Row) -> (String, Option<u64>),
    label: impl Fn(&Row) -> String,
) -> Vec<Row> {
    let mut groups: FxHashMap<(String, Option<u64>, String), Row> = FxHashMap::default();
    for row in rows {
        let (name, loader) = key(&row);
        let label = label(&row);
        let group = groups.entry((name, loader, label.clone())).or_insert_with(|| Row {
            name: label,
            loader: row.loader.clone().filter(|_| loader.is_some()),
            class_object: None,
            classes: 0,
            instances: 0,
            shallow_bytes: 0,
        });
        group.classes += row.classes;
        group.instances += row.instances;
        group.shallow_bytes = group.shallow_bytes.saturating_add(row.shallow_bytes);
    }
    groups.into_values().collect()
}

/// Number of objects by kind: instances, object arrays, primitive arrays, class objects.
pub fn objects_by_kind(summary: &Summary) -> [u64; 4] {
    let [mut instances, mut object_arrays, mut primitive_arrays] = [0; 3];
    for class in summary.classes() {
        let count = match class.kind() {
            ClassKind::Instance => &mut instances,
            ClassKind::ObjectArray => &mut object_arrays,
            ClassKind::PrimitiveArray(_) => &mut primitive_arrays,
        };
        *count += class.objects.get();
    }
    [instances, object_arrays, primitive_arrays, summary.facts().class_objects.get()]
}
