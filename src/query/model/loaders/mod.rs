//! Class loaders, and classes that more than one of them defines.

mod deployments;
mod facts;
mod loader_set;
pub mod loader_sets;
mod loader_states;

use std::cmp::Reverse;

use hprof_index::DumpGraph;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_index::storage::id_map::IdMap;
use hprof_values::{BasicType, ObjectId};

use super::histogram;
use crate::objects::class_set::ClassSet;
use crate::objects::label::Labels;
use crate::objects::reader::ObjectReader;
use hprof_base::sorting::SortRows;

/// Superclass of all loaders.
const CLASS_LOADER: &str = "java.lang.ClassLoader";

/// Order of class loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoaderOrder {
    /// Largest retained size first; loaders that are not reachable objects last.
    #[default]
    Retained,
    /// Most defined classes first.
    Classes,
    /// Most instances of defined classes first.
    Instances,
    /// Largest shallow size of these instances first.
    Shallow,
}

/// A class loader, or several that share a row, with its classes and sizes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassLoaderRow {
    /// Object ID; 0 is the boot loader.
    pub id: ObjectId,
    /// Further loaders that the row represents: those of generated classes have one row for each class of loaders.
    pub others: Vec<ObjectId>,
    /// Class of the loader; `None` for the boot loader, and if the loader is not in the dump.
    pub class: Option<ClassNumber>,
    /// Name of the loader, if it has one.
    pub label: Option<String>,
    /// Object ID of the parent loader; 0 is the boot loader, `None` if it is unknown or several loaders have different
    /// ones.
    pub parent: Option<ObjectId>,
    /// Number of classes that the loader defines.
    pub classes: u64,
    /// Number of objects of those classes.
    pub instances: u64,
    /// Shallow size of those objects.
    pub shallow_bytes: u64,
    /// Retained size of the loader object; `None` if it is not a reachable object.
    pub retained_bytes: Option<u64>,
}

impl ClassLoaderRow {
    /// Returns the IDs of the loaders that the row represents.
    pub fn ids(&self) -> impl Iterator<Item = ObjectId> + '_ {
        std::iter::once(self.id).chain(self.others.iter().copied())
    }

    /// Returns the number by which rows are sorted.
    pub(super) fn figure(&self, sort_by: LoaderOrder) -> u64 {
        match sort_by {
            LoaderOrder::Retained => self.retained_bytes.map_or(0, |bytes| bytes.saturating_add(1)),
            LoaderOrder::Classes => self.classes,
            LoaderOrder::Instances => self.instances,
            LoaderOrder::Shallow => self.shallow_bytes,
        }
    }

    /// Returns the number of loaders that the row represents.
    pub fn loaders(&self) -> u64 {
        1 + self.others.len() as u64
    }

    /// Adds a row of another loader of the same class.
    pub(super) fn add(&mut self, row: &Self) {
        self.others.push(row.id);
        self.label = None;
        self.parent = self.parent.filter(|parent| row.parent == Some(*parent));
        self.classes += row.classes;
        self.instances += row.instances;
        self.shallow_bytes = self.shallow_bytes.saturating_add(row.shallow_bytes);
        self.retained_bytes = match (self.retained_bytes, row.retained_bytes) {
            (Some(all), Some(one)) => Some(all.saturating_add(one)),
            (all, one) => all.or(one),
        };
    }
}

/// Lists the boot loader, all loaders that classes name, and all objects that extend java.lang.ClassLoader.
pub fn loaders(objects: &ObjectReader<'_>, labels: &Labels<'_>, sort_by: LoaderOrder) -> Vec<ClassLoaderRow> {
    let (summary, graph) = (objects.summary, objects.graph);
    let sizes = Sizes::new(summary, None);
    let mut rows: IdMap<ObjectId, ClassLoaderRow> = IdMap::default();
    rows.insert(ObjectId::NULL, ClassLoaderRow::default());
    for (number, class) in summary.numbered_classes() {
        // The loader of a class that is not dumped is unknown.
        if class.is_dumped() {
            let id = class.loader.into();
            let row = rows.entry(id).or_insert_with(|| ClassLoaderRow { id, ..ClassLoaderRow::default() });
            row.classes += 1;
            row.instances += histogram::instances(summary, number, class);
            row.shallow_bytes = row.shallow_bytes.saturating_add(sizes.total(number));
        }
    }
    let class_loader = summary
        .numbered_classes()
        .find(|(_, class)| class.is_dumped() && summary.is_named(class, CLASS_LOADER));
    let is_loader = ClassSet::of_name_and_below(summary, CLASS_LOADER);
    for object in is_loader.all_objects(graph) {
        if let Some(id) = graph.objects.addresses.id_of(object) {
            rows.entry(id).or_insert_with(|| ClassLoaderRow { id, ..ClassLoaderRow::default() });
        }
    }
    let mut rows: Vec<ClassLoaderRow> = rows.into_values().collect();
    for row in rows.iter_mut().filter(|row| !row.id.is_null()) {
        if let Some(object) = graph.objects.addresses.index_of(row.id) {
            row.class = graph.objects.class(object);
            row.label = labels.label(object);
            let parent = class_loader.and_then(|(class, _)| objects.field_of(object, class, "parent"));
            row.parent =
                parent.filter(|parent| parent.kind == BasicType::Object).map(|parent| ObjectId(parent.bits));
            row.retained_bytes = graph.tree.retained_bytes_of(object);
        }
    }
    sort(&mut rows, sort_by);
    rows
}

fn sort(rows: &mut [ClassLoaderRow], sort_by: LoaderOrder) {
    rows.sort_rows_by_key(|row| (Reverse(row.figure(sort_by)), row.id));
}

/// A class whose name several loaders define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of the class.
    pub class: ClassNumber,
    /// Object ID of the class loader; 0 is the boot loader.
    pub loader: ObjectId,
    /// Name of the loader, if it has one.
    pub loader_label: Option<String>,
    /// Number of loaders that define a class of this name.
    pub loaders: u64,
    /// Number of objects of the class.
    pub instances: u64,
    /// Shallow size of those objects.
    pub shallow_bytes: u64,
    /// Retained size of the class object (mostly its static fields); `None` if it is unreachable.
    pub retained_bytes: Option<u64>,
}

/// Finds classes of the same name that different loaders define: most loaders first, then by name. Array classes are
/// omitted, since they come with the classes of their elements.
pub fn duplicates(dump: &DumpGraph<'_>, labels: &Labels<'_>) -> Vec<Duplicate> {
    let sizes = Sizes::new(dump.summary, None);
    let dumped = dump.summary.numbered_classes().filter(|(_, class)| {
        class.is_dumped()
            && class.kind() == ClassKind::Instance
            && !dump.summary.class_name(class).ends_with("[]")
    });
    let mut classes: Vec<(&str, ObjectId, ClassNumber)> =
        dumped.map(|(number, class)| (dump.summary.class_name(class), class.loader.into(), number)).collect();
    classes.sort_unstable();
    let mut duplicates: Vec<(&str, Duplicate)> = Vec::new();
    for same_name in classes.chunk_by(|a, b| a.0 == b.0) {
        let loaders = same_name.chunk_by(|a, b| a.1 == b.1).count() as u64;
        if loaders < 2 {
            continue;
        }
        for (name, loader, class) in same_name {
            let loader_object = dump.graph.objects.addresses.index_of(*loader).filter(|_| !loader.is_null());
            let row = dump.summary.class(*class);
            duplicates.push((
                name,
                Duplicate {
                    class: *class,
                    loader: *loader,
                    loader_label: loader_object.and_then(|object| labels.label(object)),
                    loaders,
                    instances: row.map_or(0, |row| histogram::instances(dump.summary, *class, row)),
                    shallow_bytes: sizes.total(*class),
                    retained_bytes: dump
                        .graph
                        .class_object(*class)
                        .and_then(|object| dump.graph.tree.retained_bytes_of(object)),
                },
            ));
        }
    }
    // The sort is stable, so the loaders of a name stay in order.
    duplicates.sort_rows_by_key(|(name, duplicate)| (Reverse(duplicate.loaders), *name));
    duplicates.into_iter().map(|(_, duplicate)| duplicate).collect()
}
