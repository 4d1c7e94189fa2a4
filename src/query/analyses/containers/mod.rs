//! Containers: lists, maps, queues or trees of nodes, however they are implemented, with the number and the classes
//! of their elements.
//!
//! JDK collections are read as `show` reads them (`known`). Any other structure that refers to itself is found from
//! the references: by the classes that are on short circles (`circles`, `structures`), by the nodes and arrays that
//! one object owns (`instances`), and by the references that leave these (`slots`, `elements`). Names of classes of
//! libraries are not needed. docs/mat.md describes the limits.
//!
//! A search needs two numbers per object, passes over the dominator tree and over the references of all objects, and
//! one over the records of nodes and arrays. Its result is stored in the index.

mod circles;
mod element_classes;
mod elements;
mod facts;
mod field_names;
mod instances;
mod known;
mod nested;
mod roles;
mod slots;
mod structures;

use std::cmp::Reverse;
use std::io;

use hprof_base::share::is_share;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::{ClassNumber, Summary};
use hprof_index::objects::reader::ObjectReader;
use hprof_index::storage::store::Stage;
use hprof_index::{Dump, Heap, ObjectGraph};
use hprof_values::ObjectId;

use hprof_base::kept::StoredResult;
use hprof_base::parallel;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::collections::CollectionKind;
use hprof_model::objects::reference_names::Edges;

use elements::MapHints;
pub use facts::ContainerRow;
use instances::{Instance, Instances, MAX_TOPS};
use known::CollectionReader;
pub use nested::NestedElements;
pub(crate) use roles::is_primitive;
use roles::{ClassRole, Owners, Roles};
use slots::{SlotCounter, SlotKey, Tally};
use structures::Structures;

/// Version of the stored form, incremented with each change of the search.
pub(crate) const VERSION: u32 = 7;
/// Maximum number of classes of nodes and arrays that are stored for a container.
const MAX_PARTS: usize = 64;
/// Minimum number of elements that make a container worth a row.
const MIN_ELEMENTS: u64 = 10;
/// Minimum part of the heap that a container or its elements must retain, as 1/N.
const PART: u64 = 1000;
/// Maximum number of containers that are stored, largest first.
const MAX_CONTAINERS: usize = 2048;
/// Minimum percentage of the nodes that must be of one class, if the nodes are the elements and have no common superclass.
const MIN_OF_NODES: u64 = 95;
/// Maximum number of fields and arrays with elements, if no class has most of the elements.
const MAX_SLOTS_OF_SEVERAL: usize = 2;
/// Minimum number of elements per class if the elements have no common class: a registry has one or a few objects of each
/// class.
const MANY_OF_EACH: u64 = 50;
/// Minimum percentage of an owner's retained size in its nodes for the owner to represent them.
const MOST_OF_OWNER: u64 = 80;
/// Maximum number of objects whose sizes are added one by one.
const FEW: u32 = 16;
/// Maximum number of references of a header that are examined.
const MAX_FIELDS: usize = 64;
/// Objects per chunk.
const CHUNK: u32 = 1 << 16;

/// Family of containers, as users see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerFamily {
    /// Elements with an order.
    List,
    /// Elements without order.
    Set,
    /// Pairs of a key and a value.
    Map,
    /// Elements that wait to be processed.
    Queue,
    /// Nodes, some of which refer to several others.
    Tree,
    /// Nodes, each of which refers to the next.
    Chain,
    /// An array without a header.
    Array,
}

impl ContainerFamily {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Set => "set",
            Self::Map => "map",
            Self::Queue => "queue",
            Self::Tree => "tree",
            Self::Chain => "chain",
            Self::Array => "array",
        }
    }

    fn of_collection(kind: CollectionKind, class: &str) -> Self {
        match kind {
            CollectionKind::Map => Self::Map,
            CollectionKind::Set => Self::Set,
            _ if is_queue(class) => Self::Queue,
            _ => Self::List,
        }
    }
}

/// Returns whether a field's name is one for keys.
pub fn is_key_field(name: &str) -> bool {
    field_names::is_key(name)
}

/// Returns whether a class name indicates a queue.
fn is_queue(class: &str) -> bool {
    let name = simple_name(class);
    name.contains("Queue") || name.contains("Deque")
}

/// Returns the name of a class without its package and outer classes.
pub(crate) fn simple_name(class: &str) -> &str {
    class.rsplit(['.', '$']).next().unwrap_or(class)
}

/// Elements of a container that are of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementClass {
    /// Class name, without the parts that a JVM generates.
    pub class: String,
    /// Number of elements.
    pub elements: u64,
    /// Retained size of the elements that the container dominates, in bytes.
    pub retained_bytes: u64,
}

/// A collection or a structure of nodes, with its elements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The collection, or the object that represents all nodes.
    #[serde(with = "hprof_base::kept::object_id")]
    pub object: ObjectId,
    /// Class of the representing object.
    pub class: String,
    /// Family of the container.
    pub family: ContainerFamily,
    /// Number of elements; for a map, number of entries.
    pub elements: u64,
    /// `false` if there may be more elements.
    pub is_exact: bool,
    /// Class of the elements: the only one, or the nearest common superclass. If none is informative, the class of
    /// more than half of them.
    pub element_class: Option<String>,
    /// `true` if only most of the elements are of `element_class`.
    pub is_mostly: bool,
    /// Classes of the elements, most elements first; at most 64.
    pub element_classes: Vec<ElementClass>,
    /// Number of classes of the elements.
    pub classes: u64,
    /// Classes of the keys of a map.
    pub keys: Vec<ElementClass>,
    /// Number of nodes; 0 for JDK collections and arrays.
    pub nodes: u64,
    /// Sorted names of the classes of the nodes and arrays, if the object owns them and they are not the elements.
    pub parts: Vec<String>,
    /// `true` if the nodes themselves are the elements.
    pub are_nodes: bool,
    /// `true` if most of the elements are held elsewhere as well.
    pub is_shared: bool,
    /// Retained size of the container, in bytes.
    pub retained_bytes: u64,
    /// Retained size of the largest element that the container dominates, in bytes.
    pub largest_bytes: u64,
    /// Elements of the inner collections: those that are the container's elements, or that its elements have in fields.
    pub nested: Option<NestedElements>,
    /// Objects that together retain `retained_bytes`: the collection, or the nodes if no header owns them.
    pub tops: Vec<TreePosition>,
}

impl Container {
    /// Returns whether the elements make up most of the container's retained size and no single element has most of it. `false`
    /// for lists of classes, which do not contain the targets of the classes' static fields.
    pub fn accumulates(&self) -> bool {
        let are_many =
            self.element_class.is_some() || self.elements >= self.element_classes.len() as u64 * MANY_OF_EACH;
        are_many
            && !self.element_classes.is_empty()
            && !self.is_shared
            && self.element_class.as_deref() != Some("java.lang.Class")
            && self.largest_bytes <= self.retained_bytes / 2
    }

    /// Returns the number of elements; if these are parts of one collection, the number of elements in all parts.
    pub fn all_elements(&self) -> u64 {
        let nested = self.nested.as_ref().filter(|nested| nested.are_parts);
        nested.map_or(self.elements, |nested| nested.elements)
    }

    /// Returns the number of elements of `element_class`, including its subclasses.
    pub fn elements_of_class(&self) -> u64 {
        let of_class =
            self.element_classes.iter().filter(|row| Some(&row.class) == self.element_class.as_ref());
        if self.is_mostly {
            of_class.fold(0, |sum, row| sum.saturating_add(row.elements))
        } else {
            self.elements
        }
    }
}

/// Containers of a heap, largest retained size first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containers {
    /// The containers, which may be nested in one another.
    pub all: Vec<Container>,
}

impl Containers {
    /// Finds the containers that retain a thousandth of the heap, or whose elements do, or reads them from the index.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for two numbers for each object.
    pub fn find(dump: &Dump<'_>) -> io::Result<Self> {
        let kept = StoredResult::new(dump, Stage::Containers, &VERSION.to_le_bytes());
        if let Some(known) = kept.read::<Self>().filter(|known| known.is_valid(dump.graph)) {
            return Ok(known);
        }
        let found = Self::search(dump)?;
        kept.write(&found);
        Ok(found)
    }

    /// Returns whether these containers are valid for a heap, since they are read from a file.
    fn is_valid(&self, graph: &ObjectGraph) -> bool {
        let tree = &graph.tree;
        let is_known = |one: &Container| {
            let mut end = TreePosition(0);
            let are_apart = one.tops.iter().all(|top| {
                let is_behind = *top >= end && top.0 < tree.reachable();
                end = if is_behind { tree.end(*top) } else { end };
                is_behind
            });
            are_apart && !one.tops.is_empty() && graph.objects.addresses.index_of(one.object).is_some()
        };
        self.all.len() <= MAX_CONTAINERS && self.all.iter().all(is_known)
    }

    fn search(dump: &Dump<'_>) -> io::Result<Self> {
        let summary = dump.summary;
        let least = (dump.graph.tree.reachable_bytes() / PART).max(1);
        let roles = Roles::new(summary);
        let objects = dump.objects;
        let collections = CollectionReader::new(&objects, least);
        // The owners are found on one thread, as are the contents of a list of nodes.
        let (mut all, owners) =
            rayon::join(|| known::collections(&collections, &roles), || Owners::new(dump.graph, &roles));
        let owners = owners?;
        let structures = Structures::find(dump, &roles, &owners);
        let instances = Instances::find(dump.graph, &roles, &owners, &structures, least)?;
        let edges = Edges::new(dump);
        let is_header = |position| {
            let class =
                dump.graph.tree.object_at(position).and_then(|object| dump.graph.objects.class(object));
            class.is_some_and(|class| roles.is_header(class))
        };
        let is_wanted = |one: &Instance| {
            one.nodes + one.arrays > 0 && (one.top_bytes >= least || one.owner.is_some_and(is_header))
        };
        let wanted = instances.all.iter().map(is_wanted).collect();
        let slots = SlotCounter {
            graph: dump.graph,
            objects: &objects,
            labels: dump.graph.labels(),
            finder: dump.graph.objects.addresses.finder(),
            edges: &edges,
            roles: &roles,
            owners: &owners,
            structures: &structures,
            instances: &instances,
            soft: ClassSet::of_name_and_below(summary, "java.lang.ref.SoftReference"),
            wanted,
        };
        all.extend(own_structures(dump.heap, &slots));
        all.sort_by_key(|one| (Reverse(one.retained_bytes), one.object));
        all.truncate(MAX_CONTAINERS);
        collections.add_nested(&roles, &mut all);
        Ok(Self { all })
    }

    /// Returns the containers by the object that represents each.
    pub fn by_object(&self) -> FxHashMap<ObjectId, &Container> {
        self.all.iter().rev().map(|one| (one.object, one)).collect()
    }

    /// Returns the container that an object represents.
    pub fn of_object(&self, object: ObjectId) -> Option<&Container> {
        self.all.iter().find(|one| one.object == object)
    }
}

/// Returns the containers that consist of nodes and arrays.
fn own_structures(heap: &Heap, slots: &SlotCounter<'_, '_>) -> Vec<Container> {
    let (summary, graph, tree) = (heap.summary(), slots.graph, &slots.graph.tree);
    if !slots.wanted.contains(&true) {
        return Vec::new();
    }
    let (tallies, is_exact) = slots.count();
    let mut of_instance: FxHashMap<u32, Vec<(SlotKey<'_>, Tally)>> = FxHashMap::default();
    for (key, tally) in tallies {
        of_instance.entry(key.instance).or_default().push((key, tally));
    }
    let counted = count_members(slots);
    let container = |(number, instance): (u32, &Instance)| {
        let name_of = |object| {
            let class = graph.objects.class(object).and_then(|class| summary.class(class));
            class.map_or("", |row| summary.class_name(row)).to_owned()
        };
        let owner =
            instance.owner.or(instance.tops.first().copied()).and_then(|owner| tree.object_at(owner))?;
        let owner_name = name_of(owner);
        let of_slots = of_instance.get(&number).map_or(&[] as &[_], Vec::as_slice);
        let simple = owner_name.rsplit('.').next().unwrap_or_default();
        let map = MapHints {
            is_named: simple.contains("Map") && !simple.ends_with("[]"),
            has_numbers: has_numbers(slots.objects, owner),
        };
        let found = elements::elements(summary, slots.roles, instance, map, of_slots);
        let found = match found {
            Some(found) => found,
            None if instance.nodes > 0 => elements::nodes(&counted.get(&number)?.nodes),
            None => return None,
        };
        let header = instance.header(graph, slots.roles, found.elements.bytes())?;
        let object = tree.object_at(header)?;
        let class_name = name_of(object);
        let (count, name) = (found.elements.count(), found.elements.name(summary));
        // The table of a map that is being resized: its nodes belong to the map.
        if name.as_ref().is_some_and(|(class, _)| structures::is_jdk_node(class)) {
            return None;
        }
        // Objects of many kinds that refer to one another are program state, not a collection.
        let are_mixed = name.as_ref().is_none_or(|(_, is_mostly)| *is_mostly);
        let element_classes = found.elements.rows(summary);
        let of_most = element_classes.first().map_or(0, |row| row.elements);
        let is_graph = are_mixed && found.are_nodes && !is_share(of_most, count, MIN_OF_NODES)
            || name.is_none() && found.slots > MAX_SLOTS_OF_SEVERAL;
        if count < MIN_ELEMENTS || is_graph {
            return None;
        }
        let is_owner = instance.owner == Some(header);
        let family =
            family(instance, &found, &class_name, slots.roles.role_of(graph, object) == ClassRole::Array);
        // Many nodes whose owner is not a header: it represents them only if it has little else.
        let above = instance.owner.filter(|_| !is_owner && instance.all_tops > MAX_TOPS as u64);
        let (tops, retained_bytes) = match (is_owner, above) {
            (true, _) => (vec![header], tree.retained_bytes(header)),
            (false, None) if instance.all_tops > MAX_TOPS as u64 => return None,
            (false, None) => {
                let mut tops = instance.tops.clone();
                tops.sort_unstable();
                (tops, instance.top_bytes)
            }
            (false, Some(owner)) => {
                let all = tree.retained_bytes(owner);
                if !is_share(instance.top_bytes, all, MOST_OF_OWNER) {
                    return None;
                }
                (vec![owner], all)
            }
        };
        let within = found.elements.bytes();
        let parts = counted.get(&number).filter(|_| is_owner && !found.are_nodes);
        Some(Container {
            object: graph.objects.addresses.id_of(object)?,
            class: class_name,
            family,
            elements: count,
            is_exact,
            is_mostly: name.as_ref().is_some_and(|(_, is_mostly)| *is_mostly),
            element_class: name.map(|(name, _)| name),
            element_classes,
            classes: found.elements.classes(summary),
            keys: found.keys.as_ref().map(|keys| keys.rows(summary)).unwrap_or_default(),
            nodes: instance.nodes,
            parts: parts.map(|counted| counted.names(summary)).unwrap_or_default(),
            are_nodes: found.are_nodes,
            is_shared: within == 0 && !found.are_nodes,
            retained_bytes,
            largest_bytes: found.elements.largest_bytes(),
            nested: None,
            tops,
        })
    };
    let wanted = (0u32..).zip(&slots.instances.all).zip(&slots.wanted).filter(|(_, is_wanted)| **is_wanted);
    wanted.filter_map(|(one, _)| container(one)).collect()
}

/// Returns the retained size of an object. Most elements dominate a few objects: their sizes are added up one by one,
/// whereas the difference of two sums reads three entire blocks.
fn retained_bytes(tree: &Tree, position: TreePosition) -> u64 {
    let (mut bytes, mut open) = (0u64, 0u64);
    for at in position.0..position.0.saturating_add(FEW) {
        let at = TreePosition(at);
        bytes = bytes.saturating_add(tree.shallow_bytes(at));
        open = (open + 1).saturating_sub(tree.ends_after(at));
        if open == 0 {
            return bytes;
        }
    }
    tree.retained_bytes(position)
}

/// Returns the class of an object; for a soft reference (a class in `soft`), the class of its referent, unless that was
/// cleared.
pub(crate) fn class_behind(
    objects: &ObjectReader<'_>,
    soft: &ClassSet,
    object: ObjectIndex,
) -> Option<ClassNumber> {
    let own = objects.graph.objects.class(object)?;
    let referent = || objects.graph.objects.class(objects.reference(object, field_names::REFERENT)?);
    if soft.contains(own) { referent().or(Some(own)) } else { Some(own) }
}

/// Returns whether an object refers to an array of numbers.
fn has_numbers(objects: &ObjectReader<'_>, object: ObjectIndex) -> bool {
    objects.graph.references(object).take(MAX_FIELDS).any(|target| {
        let class = objects.graph.objects.class(target).and_then(|class| objects.summary.class(class));
        class.is_some_and(|row| roles::is_of_numbers(objects.summary.class_name(row)))
    })
}

/// Nodes and arrays of an instance, counted by class.
#[derive(Default)]
struct CountedMembers {
    /// Classes of the nodes, number of nodes of each class, and their retained size: the instance's size divided evenly among
    /// its nodes.
    nodes: Vec<(Option<ClassNumber>, u64, u64)>,
    /// Classes of nodes and arrays.
    classes: Vec<ClassNumber>,
}

impl CountedMembers {
    fn names(&self, summary: &Summary) -> Vec<String> {
        let rows = self.classes.iter().filter_map(|class| summary.class(*class));
        let mut names: Vec<String> = rows.map(|row| summary.class_name(row).to_owned()).collect();
        names.sort_unstable();
        names.truncate(MAX_PARTS);
        names
    }
}

/// Counts the nodes and arrays of the wanted instances by class.
fn count_members(slots: &SlotCounter<'_, '_>) -> FxHashMap<u32, CountedMembers> {
    let graph = slots.graph;
    let count = |chunk: std::ops::Range<ObjectIndex>| {
        let mut found: FxHashMap<(u32, ClassNumber), u64> = FxHashMap::default();
        for (object, class) in ObjectIndex::range(chunk.clone()).zip(graph.objects.classes(chunk)) {
            let Some(number) = slots.instances.number_of(object) else { continue };
            let is_wanted = slots.wanted.get(number as usize).copied().unwrap_or(false);
            if let Some(class) = class.filter(|_| is_wanted) {
                *found.entry((number, class)).or_default() += 1;
            }
        }
        found
    };
    let mut all: FxHashMap<(u32, ClassNumber), u64> = FxHashMap::default();
    let chunks = ObjectIndex::chunks(graph.objects.indices(), CHUNK);
    for (key, count) in parallel::map(&chunks, count).into_iter().flatten() {
        *all.entry(key).or_default() += count;
    }
    let mut of_instance: FxHashMap<u32, CountedMembers> = FxHashMap::default();
    for ((number, class), count) in all {
        let of = of_instance.entry(number).or_default();
        of.classes.push(class);
        if slots.roles.of_class(class) != ClassRole::Plain {
            continue;
        }
        let bytes = slots.instances.all.get(number as usize).map_or(0, |one| {
            u64::try_from(u128::from(one.top_bytes) * u128::from(count) / u128::from(one.nodes.max(1)))
                .unwrap_or(0)
        });
        of.nodes.push((Some(class), count, bytes));
    }
    of_instance
}

fn family(
    instance: &Instance,
    found: &elements::FoundElements,
    class: &str,
    is_array: bool,
) -> ContainerFamily {
    let name = simple_name(class);
    match () {
        () if found.keys.is_some() || name.ends_with("Map") => ContainerFamily::Map,
        () if name.ends_with("Set") => ContainerFamily::Set,
        () if is_queue(class) => ContainerFamily::Queue,
        () if name.ends_with("List") || name.ends_with("Vector") => ContainerFamily::List,
        () if instance.nodes == 0 && is_array => ContainerFamily::Array,
        () if instance.nodes == 0 => ContainerFamily::List,
        // With both ends in the header, the header dominates each node.
        () if instance.arrays == 0
            && instance.following.max(instance.all_tops) * 10 >= instance.nodes * 9
            && found.elements.count() > 0 =>
        {
            ContainerFamily::Chain
        }
        () => ContainerFamily::Tree,
    }
}
