//! Roles of classes: classes whose objects can be nodes, and classes whose objects are only parts of their owners.

use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::model::tables::ClassRow;
use hprof_index::storage::prefetch::prefetch;
use hprof_index::storage::scratch::Array;
use hprof_values::BasicType;

use super::field_names;
use hprof_model::dominators::preorder::Preorder;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::{CollectionKind, Forms};

/// Role of the objects of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClassRole {
    /// Always an element: text, number, array of numbers, class object.
    Leaf,
    /// An array of references, or an atomic reference: a part of its owner.
    Array,
    /// A collection of the JDK, or a part of one.
    Collection,
    /// Any other object: a node, a header, an element.
    Plain,
}

/// Classes whose objects are values.
const LEAVES: [&str; 13] = [
    "java.lang.Class",
    "java.lang.String",
    "java.lang.Object",
    "java.lang.Boolean",
    "java.lang.Character",
    "java.lang.Byte",
    "java.lang.Short",
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Float",
    "java.lang.Double",
    "java.math.BigInteger",
    "java.math.BigDecimal",
];

/// Classes with which the JVM itself lists references to be processed.
const OF_JVM: [&str; 4] = [
    "java.lang.ref.Finalizer",
    "sun.misc.Cleaner",
    "jdk.internal.ref.Cleaner",
    "jdk.internal.ref.PhantomCleanable",
];

/// Classes of the JDK for one key and one value, which entries of other libraries extend.
const PAIRS: [&str; 2] = ["java.util.AbstractMap$SimpleEntry", "java.util.AbstractMap$SimpleImmutableEntry"];

/// Types of the elements of arrays without references.
const NUMBERS: [&str; 8] = ["boolean", "byte", "char", "short", "int", "long", "float", "double"];

/// Returns whether a class is an array class of numbers.
pub(super) fn is_of_numbers(class: &str) -> bool {
    class.strip_suffix("[]").is_some_and(is_primitive)
}

/// Returns whether this is the name of a primitive type.
pub(crate) fn is_primitive(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Numbers of a class's fields by purpose, which characterize its instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ClassShape {
    /// Number of reference fields that are not links, keys or stored values by their names.
    pub(super) others: u32,
    /// Number of fields whose names indicate stored values.
    pub(super) values: u32,
    /// Number of fields whose names indicate keys.
    pub(super) keys: u32,
    /// Number of fields whose names indicate links.
    pub(super) links: u32,
    /// Number of numeric fields with data of the program.
    pub(super) numbers: u32,
    /// Number of numeric fields whose names indicate that the structure needs them.
    pub(super) counts: u32,
    /// Number of numeric fields whose names indicate positions within an array.
    positions: u32,
    /// `true` if a field's name indicates a hash.
    has_hash: bool,
}

impl ClassShape {
    /// Adds the fields that a class declares itself. `is_reference` is `true` for `java.lang.ref.Reference`.
    fn with_own(mut self, summary: &Summary, row: &ClassRow, is_reference: bool) -> Self {
        for (name, kind) in summary.fields(row).take(MAX_FIELDS) {
            self.has_hash |= kind != BasicType::Object && field_names::is_hash(name);
            self.positions += u32::from(kind != BasicType::Object && field_names::is_position(name));
            let counter = match (kind, name) {
                (BasicType::Object, name) if name.starts_with("this$") => continue,
                (BasicType::Object, "queue" | "next" | "discovered") if is_reference => continue,
                (BasicType::Object, name) if field_names::is_value(name) || name == field_names::REFERENT => {
                    &mut self.values
                }
                (BasicType::Object, name) if field_names::is_key(name) => &mut self.keys,
                (BasicType::Object, name) if field_names::is_link(name) => &mut self.links,
                (BasicType::Object, _) => &mut self.others,
                (_, name) if field_names::is_count(name) => &mut self.counts,
                _ => &mut self.numbers,
            };
            *counter = counter.saturating_add(1);
        }
        self
    }

    /// Returns the number of reference fields.
    pub(super) fn references(self) -> u32 {
        self.others + self.values + self.keys + self.links
    }

    /// Returns whether the instances only refer to stored objects, like entries of a table.
    fn is_entry(self) -> bool {
        let references = self.references();
        let is_named = self.others == 0
            && self.numbers <= 1
            && self.values + self.keys > 0
            && self.values <= 2
            && self.links + self.keys > 0;
        is_named || self.has_hash && self.counts == 1 && self.numbers == 0 && (2..=4).contains(&references)
    }
}

/// Maximum number of fields of a class that are examined.
const MAX_FIELDS: usize = 256;

/// Roles and shapes of the classes of a dump.
#[derive(Debug)]
pub(super) struct Roles {
    by_class: Vec<ClassRole>,
    shapes: Vec<ClassShape>,
    /// By class: `true` if its objects are entries of a table.
    entries: Vec<bool>,
    /// By class: number of the name of its outermost class.
    outer: Vec<u32>,
    /// Class loaders, threads and class objects, which own too much to be headers.
    runtime: ClassSet,
}

impl Roles {
    pub(super) fn new(summary: &Summary) -> Self {
        let forms = Forms::for_summary(summary);
        let pairs = PAIRS.map(|name| ClassSet::of_name_and_below(summary, name));
        let role = |(number, row)| {
            let name = summary.class_name(row);
            if pairs.iter().any(|pairs| pairs.contains(number)) {
                return ClassRole::Plain;
            }
            if LEAVES.contains(&name) || OF_JVM.contains(&name) {
                return ClassRole::Leaf;
            }
            if is_of_numbers(name) {
                return ClassRole::Leaf;
            }
            if name.ends_with("[]") {
                return ClassRole::Array;
            }
            // Only a reference, or an array of them.
            if name.starts_with("java.util.concurrent.atomic.") {
                return ClassRole::Array;
            }
            let is_of_jdk = name.starts_with("java.util.");
            let is_known = forms.of_class(number).is_some_and(|of| of.kind != CollectionKind::Holder);
            let is_part = is_of_jdk && name.contains('$');
            if is_known || is_part { ClassRole::Collection } else { ClassRole::Plain }
        };
        let by_class: Vec<ClassRole> = summary.numbered_classes().map(role).collect();
        // From superclasses down: a hostile dump has long chains of classes.
        let shapes = summary.class_table().derive(|class, above: Option<&ClassShape>| {
            let inherited = above.copied().unwrap_or_default();
            let row =
                summary.class(class).filter(|_| by_class.get(class.0 as usize) == Some(&ClassRole::Plain));
            let is_reference = row.is_some_and(|row| summary.is_named(row, "java.lang.ref.Reference"));
            row.map_or(inherited, |row| inherited.with_own(summary, row, is_reference))
        });
        let shape_of = |class: ClassNumber| shapes.get(class.0 as usize).copied().unwrap_or_default();
        // A subclass of entries has one more link.
        let entries = summary.class_table().derive(|class, above: Option<&bool>| {
            let shape = shape_of(class);
            shape.is_entry() || above == Some(&true) && shape.numbers <= 1 && shape.others <= 2
        });
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
        let outer = summary.classes().iter().map(|row| {
            let name = summary.class_name(row);
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(name.split('$').next().unwrap_or(name)).or_insert(next)
        });
        let outer = outer.collect();
        let mut runtime: Vec<ClassNumber> = summary.java_lang_class().into_iter().collect();
        for name in ["java.lang.Thread", "java.lang.ClassLoader"] {
            runtime.extend(ClassSet::of_name_and_below(summary, name).classes());
        }
        Self { by_class, shapes, entries, outer, runtime: ClassSet::from_classes(summary, &runtime) }
    }

    /// Returns the role of a class's objects.
    #[inline]
    pub(super) fn of_class(&self, class: ClassNumber) -> ClassRole {
        self.by_class.get(class.0 as usize).copied().unwrap_or(ClassRole::Leaf)
    }

    /// Returns the role of an object by its label in the graph.
    #[inline]
    pub(super) fn of_label(&self, label: usize) -> ClassRole {
        self.by_class.get(label).copied().unwrap_or(ClassRole::Leaf)
    }

    /// Returns the role of an object.
    #[inline]
    pub(super) fn role_of(&self, graph: &ObjectGraph, object: ObjectIndex) -> ClassRole {
        graph.objects.class(object).map_or(ClassRole::Leaf, |class| self.of_class(class))
    }

    /// Returns the numbers of a class's fields by purpose.
    pub(super) fn shape(&self, class: ClassNumber) -> ClassShape {
        self.shapes.get(class.0 as usize).copied().unwrap_or_default()
    }

    /// Returns whether objects of a class only refer to stored objects, like entries of a table.
    pub(super) fn is_entry(&self, class: ClassNumber) -> bool {
        self.entries.get(class.0 as usize).copied().unwrap_or(false)
    }

    /// Returns whether objects of a class only wrap another object: an optional value, a reference of a cache.
    pub(super) fn is_wrapper(&self, class: ClassNumber) -> bool {
        let ClassShape { others, values, keys, numbers, .. } = self.shape(class);
        (others, values, keys, numbers) == (0, 1, 0, 0)
    }

    /// Returns whether the objects of a class are class objects, class loaders or threads.
    pub(super) fn is_of_runtime(&self, class: ClassNumber) -> bool {
        self.runtime.contains(class)
    }

    /// Returns whether objects of a class can be the header of a container.
    pub(super) fn can_be_header(&self, class: ClassNumber) -> bool {
        !self.is_of_runtime(class) && self.of_class(class) == ClassRole::Plain
    }

    /// Returns whether objects of a class are parts of objects of the class `owner`: segments of a map, for example, which
    /// count their own elements and are nested in the class of the map.
    pub(super) fn is_part(&self, class: ClassNumber, owner: ClassNumber) -> bool {
        self.is_header(class)
            && self.can_be_header(owner)
            && class != owner
            && self.are_nested_alike(class, owner)
    }

    /// Returns whether two classes have the same outermost class.
    pub(super) fn are_nested_alike(&self, a: ClassNumber, b: ClassNumber) -> bool {
        let outer = |class: ClassNumber| self.outer.get(class.0 as usize).copied();
        outer(a) == outer(b)
    }

    /// Returns whether objects of a class are headers, which count the objects that they own.
    pub(super) fn is_header(&self, class: ClassNumber) -> bool {
        let shape = self.shape(class);
        self.can_be_header(class) && shape.counts + shape.positions > 0
    }
}

/// Owners of the reachable objects. An owner is the nearest dominator that is neither an array nor a part of a JDK collection.
///
/// An array belongs to its owner's type, and an array within an array to the owner of the outer one, so that `Node` → `Node[]`
/// → `Node` is a reference from `Node` to itself. 4 bytes per object, by object rather than by position: a referrer is known by
/// its object index, and looking up its position takes two more reads.
pub(super) struct Owners {
    /// By object: object index of the owner plus [`OWNER`], or another code.
    by_object: Array<u32>,
}

/// Code of an unreachable object.
const UNREACHABLE: u32 = 0;
/// Code of a reachable object without an owner.
const FREE: u32 = 1;
/// Code of object 0 as an owner. A dump has at most 2^32 - 2 objects.
const OWNER: u32 = 2;

/// Prefetch distance, in positions.
const AHEAD: u32 = 32;

impl Owners {
    /// Finds the owners of the reachable objects.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub(super) fn new(graph: &ObjectGraph, roles: &Roles) -> std::io::Result<Self> {
        let (tree, labels) = (&graph.tree, graph.labels());
        let mut by_object = graph.room().zeroed_array::<u32>(graph.objects.len() as usize)?;
        // By depth: owner code for the children of the object at that depth.
        let mut above: Vec<u32> = Vec::new();
        let all = tree.positions();
        let mut objects = tree.objects_at(all.clone());
        let mut ahead = tree.objects_at(TreePosition(all.end.0.min(AHEAD))..all.end);
        for (_, depth) in Preorder::new(tree, all) {
            let Some(object) = objects.next() else { break };
            if let Some(ahead) = ahead.next() {
                labels.prefetch(ahead.0);
                prefetch(&by_object, ahead.at());
            }
            above.truncate(depth as usize);
            let own = above.last().copied().unwrap_or(FREE);
            if let Some(place) = by_object.get_mut(object.at()) {
                *place = own;
            }
            let is_owner =
                matches!(roles.of_label(labels.label_of(object.0)), ClassRole::Plain | ClassRole::Leaf);
            above.push(if is_owner { object.0.saturating_add(OWNER) } else { own });
        }
        Ok(Self { by_object })
    }

    /// Returns the owner of an object.
    #[inline]
    pub(super) fn owner_of(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        self.by_object.get(object.at())?.checked_sub(OWNER).map(ObjectIndex)
    }

    #[inline]
    pub(super) fn is_reachable(&self, object: ObjectIndex) -> bool {
        self.by_object.get(object.at()).is_some_and(|code| *code != UNREACHABLE)
    }

    /// Prefetches the owner of an object.
    #[inline]
    pub(super) fn prefetch(&self, object: ObjectIndex) {
        prefetch(&self.by_object, object.at());
    }
}
