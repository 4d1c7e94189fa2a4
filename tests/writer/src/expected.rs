//! Expected results of reading a dump written from a model.
//!
//! Computed from the model alone, so they apply to every form of the dump. Objects whose class is not
//! named in the dump (no LOAD CLASS) have no class name here.

use std::collections::{BTreeMap, BTreeSet};

use super::basic::{Root, Value};
use super::class::ClassId;
use super::model::{Body, HeapModel, Item};

/// The four kinds of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// From an INSTANCE DUMP.
    Instance,
    /// From an OBJECT ARRAY DUMP.
    ObjectArray,
    /// From a PRIMITIVE ARRAY DUMP, with or without data.
    PrimitiveArray,
    /// From a CLASS DUMP.
    Class,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedObject {
    /// ID.
    pub id: u64,
    /// Kind.
    pub kind: ObjectKind,
    /// Class of the instance; for a class object, the class that it represents.
    pub class: Option<ClassId>,
    /// Name of that class in Java source form, if the dump names it.
    pub class_name: Option<String>,
    /// Number of elements of an array, otherwise 0.
    pub elements: u32,
    /// Size in the heap in bytes, as modeled or given.
    pub size: u64,
    /// Stack trace serial number.
    pub trace: u32,
    /// Non-null references by field name, element (`[3]`) or name of the static field, in the dump's
    /// order.
    pub references: Vec<(String, u64)>,
}

/// Totals for instances of classes of one name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of instances.
    pub instances: u64,
    /// Size in the heap in bytes.
    pub bytes: u64,
}

/// Expected results of a correct reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// All dumped objects, including class objects, by ascending ID.
    pub objects: Vec<ExpectedObject>,
    /// Instances and arrays (without class objects) by class name.
    pub by_class: BTreeMap<String, Totals>,
    /// Number of roots by tag, including duplicates.
    pub roots: BTreeMap<u8, u64>,
    /// Every root in the order of adding.
    pub root_list: Vec<(u64, Root)>,
    /// Number of dangling references in fields, elements and static fields.
    pub dangling_references: u64,
}

impl Expected {
    /// Returns the number of objects of a kind.
    pub fn count(&self, kind: ObjectKind) -> u64 {
        self.objects.iter().filter(|o| o.kind == kind).count() as u64
    }

    /// Returns the number of instances of classes of a name.
    pub fn instances(&self, class_name: &str) -> u64 {
        self.by_class.get(class_name).map_or(0, |totals| totals.instances)
    }

    /// Returns the object with an ID.
    pub fn object(&self, id: u64) -> Option<&ExpectedObject> {
        self.objects.binary_search_by_key(&id, |o| o.id).ok().map(|i| &self.objects[i])
    }

    fn of(model: &HeapModel) -> Self {
        let mut objects: Vec<ExpectedObject> = model
            .classes
            .iter()
            .filter(|class| class.dumps > 0)
            .map(|class| ExpectedObject {
                id: class.id.0,
                kind: ObjectKind::Class,
                class: Some(class.id),
                class_name: model.shown_name(class.id),
                elements: 0,
                size: class.size,
                trace: class.trace,
                references: non_null(class.statics.iter().map(|(name, value)| (name.clone(), *value))),
            })
            .collect();
        for object in &model.objects {
            let (kind, class, class_name, elements, references) = match &object.body {
                Body::Instance { class, values } => {
                    let names = model.all_fields(*class).into_iter().map(|(name, _)| name);
                    let references = non_null(names.zip(values.iter().copied()));
                    (ObjectKind::Instance, Some(*class), model.shown_name(*class), 0, references)
                }
                Body::ObjectArray { class, elements } => {
                    let labelled =
                        elements.iter().enumerate().map(|(i, e)| (format!("[{i}]"), Value::Object(*e)));
                    let count = u32::try_from(elements.len()).expect("checked when it was added");
                    (
                        ObjectKind::ObjectArray,
                        Some(*class),
                        model.shown_name(*class),
                        count,
                        non_null(labelled),
                    )
                }
                Body::Primitive(elements) => {
                    let name = format!("{}[]", elements.ty().java_name());
                    (ObjectKind::PrimitiveArray, None, Some(name), elements.count(), Vec::new())
                }
            };
            let (id, size, trace) = (object.id.0, object.size, object.trace);
            objects.push(ExpectedObject { id, kind, class, class_name, elements, size, trace, references });
        }
        objects.sort_by_key(|o| o.id);

        let mut by_class: BTreeMap<String, Totals> = BTreeMap::new();
        for object in objects.iter().filter(|o| o.kind != ObjectKind::Class) {
            if let Some(name) = &object.class_name {
                let totals = by_class.entry(name.clone()).or_default();
                totals.instances += 1;
                totals.bytes += object.size;
            }
        }
        let root_list: Vec<(u64, Root)> = model
            .items
            .iter()
            .filter_map(
                |item| {
                    if let Item::Root(object, root) = item { Some((*object, *root)) } else { None }
                },
            )
            .collect();
        let mut roots = BTreeMap::new();
        for (_, root) in &root_list {
            *roots.entry(root.tag()).or_insert(0) += 1;
        }
        let present: BTreeSet<u64> = objects.iter().map(|o| o.id).collect();
        let missing =
            |o: &ExpectedObject| o.references.iter().filter(|(_, to)| !present.contains(to)).count() as u64;
        let dangling_references = objects.iter().map(missing).sum();
        Self { objects, by_class, roots, root_list, dangling_references }
    }
}

impl HeapModel {
    /// Returns the expected results of a correct reader, which are independent of the form.
    pub fn expected(&self) -> Expected {
        Expected::of(self)
    }

    fn shown_name(&self, class: ClassId) -> Option<String> {
        let def = self.class_def(class);
        (def.loads > 0).then(|| def.name.clone())
    }
}

fn non_null(values: impl Iterator<Item = (String, Value)>) -> Vec<(String, u64)> {
    values
        .filter_map(|(label, value)| match value {
            Value::Object(id) if id != 0 => Some((label, id)),
            _ => None,
        })
        .collect()
}
