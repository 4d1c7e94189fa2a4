//! Search for a class by name, and its details.

use crate::histogram;
use hprof_base::naming::pattern::ClassPattern;
use hprof_base::sorting::SortRows;
use hprof_index::DumpGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::layout::sizes::Sizes;
use hprof_index::model::tables::ClassKind;
use hprof_values::{BasicType, ObjectId};

use super::{ReferencedObject, Shower, ShownLoader};

/// Details of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownClass {
    /// Name in Java source form.
    pub name: String,
    /// Class object of the superclass.
    pub superclass: Option<ReferencedObject>,
    /// Class loader.
    pub loader: ShownLoader,
    /// Number of instances.
    pub instances: u64,
    /// Shallow size of the instances.
    pub shallow_bytes: u64,
    /// Size of one instance; `None` for arrays, whose sizes vary.
    pub instance_bytes: Option<u64>,
    /// Instance fields that the class itself declares.
    pub fields: Vec<DeclaredField>,
}

/// A field that a class declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredField {
    /// Name of the field.
    pub name: String,
    /// Type of the field.
    pub kind: BasicType,
}

/// A class that matches an ambiguous pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassCandidate {
    /// Object ID of the class object.
    pub id: ObjectId,
    /// Name of the class.
    pub name: String,
    /// Object ID of the loader; 0 is the boot loader.
    pub loader: ObjectId,
}

/// Result of resolving a class pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClassFound {
    /// A single class: the object index of its class object.
    One(ObjectIndex),
    /// Several classes: the first of them by name, and their number.
    Several(Vec<ClassCandidate>, u64),
    /// The name of at least one class, none of which has a class object in the dump.
    NotDumped(String),
    /// No class.
    None,
}

/// Maximum number of ambiguous classes that are listed.
const LISTED: usize = 10;

/// Finds the class that `text` stands for; `pattern` is its parsed form. A class with exactly that name is preferred to
/// others that match.
pub fn find_class(dump: &DumpGraph<'_>, text: &str, pattern: &ClassPattern) -> ClassFound {
    let exact = hprof_values::names::java_class_name(text);
    let mut not_dumped = None;
    let (mut named, mut written, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for (number, class) in dump.summary.numbered_classes() {
        let name = dump.summary.class_name(class);
        if !pattern.matches(name) {
            continue;
        }
        let Some(object) = dump.graph.class_object(number) else {
            not_dumped.get_or_insert(name);
            continue;
        };
        let matching = match name == exact {
            true => &mut named,
            false if pattern.matches_as_written(name) => &mut written,
            false => &mut others,
        };
        matching.push((name, object, class));
    }
    // `HashMap` is java.util.HashMap, even if a class has a nested class of that name.
    let matching = [named, written, others];
    let mut classes = matching.into_iter().find(|classes| !classes.is_empty()).unwrap_or_default();
    match (classes.as_slice(), not_dumped) {
        ([(_, object, _)], _) => ClassFound::One(*object),
        ([], Some(name)) => ClassFound::NotDumped(name.to_owned()),
        ([], None) => ClassFound::None,
        _ => {
            classes.sort_rows_by_key(|(name, object, _)| (*name, *object));
            let total = classes.len() as u64;
            let listed = classes.iter().take(LISTED).map(|(name, _, class)| ClassCandidate {
                id: class.id.into(),
                name: (*name).to_owned(),
                loader: class.loader.into(),
            });
            ClassFound::Several(listed.collect(), total)
        }
    }
}

impl Shower<'_> {
    /// Returns the details of the class that a class object represents; `None` for other objects.
    pub(super) fn class(&self, object: ObjectIndex) -> Option<ShownClass> {
        let summary = self.objects.summary;
        let number = self.view.edges.class_of_class_object(object)?;
        let class = summary.class(number)?;
        let sizes = Sizes::new(summary, None);
        let name = summary.class_name(class);
        let is_array = class.kind() != ClassKind::Instance || name.ends_with("[]");
        // Class objects vary in size too.
        let is_fixed = !is_array && summary.java_lang_class() != Some(number);
        let fields = summary.fields(class);
        Some(ShownClass {
            name: name.to_owned(),
            superclass: ObjectId::from(class.super_id).non_null().map(|id| self.refer(id)),
            loader: self.loader_of(class.loader.into()),
            instances: histogram::instances(summary, number, class),
            shallow_bytes: sizes.total(number),
            instance_bytes: is_fixed.then(|| sizes.instance(number).0),
            fields: fields.map(|(name, kind)| DeclaredField { name: name.to_owned(), kind }).collect(),
        })
    }
}
