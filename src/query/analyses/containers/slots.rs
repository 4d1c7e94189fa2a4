//! Slots: the references of a container's nodes and arrays to other objects, by class and field.
//!
//! One pass over the records of all nodes and arrays, in parallel. References within a container and back to its dominators are
//! its structure; all other references are counted, without sampling.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::graph_view::Labels;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::objects::address_index::AddressFinder;
use hprof_index::objects::object_table::BLOCK;
use hprof_index::objects::reader::ObjectReader;
use hprof_values::ObjectId;

use super::instances::Instances;
use super::roles::{ClassRole, Owners, Roles};
use super::structures::Structures;
use super::{class_behind, retained_bytes};
use hprof_base::parallel;
use hprof_model::objects::class_set::ClassSet;
use hprof_model::objects::reference_kind::ReferenceKind;
use hprof_model::objects::reference_names::Edges;

/// Objects per chunk: a multiple of the objects of a block.
const CHUNK: u32 = 1 << 16;
/// Maximum number of slots and classes that are counted per chunk. A hostile dump has more.
const MAX_TALLIES: usize = 1 << 16;
/// Maximum total number of slots that are counted.
const MAX_ALL: usize = 1 << 20;

/// Number of chunks whose counts are in memory at once.
const BATCH: usize = 64;
/// Maximum total number of elements that are read of arrays that headers share.
const MAX_SHARED: usize = 1 << 24;
/// Maximum number of references of an owner whose record is read for each of its arrays.
const MAX_FIELDS: usize = 64;
/// Maximum number of objects in a collection that are examined to find a node.
const LOOKED_INTO: u32 = 64;

/// A slot of the nodes or arrays of a container, and the class of its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SlotKey<'a> {
    /// Number of the container's instance.
    pub(super) instance: u32,
    /// Field of a node; for an array, the field of the header that holds the array.
    pub(super) field: &'a str,
    /// Class of the node; for an array, the class of its owner.
    pub(super) class: Option<ClassNumber>,
    /// For a slot of an array, `true` if its index is odd.
    pub(super) odd: Option<bool>,
    /// Class of the target.
    pub(super) target: Option<ClassNumber>,
}

/// Counts of the references in a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    /// Number of non-null references.
    pub(super) references: u64,
    /// Retained size of the targets that the container dominates, in bytes.
    pub(super) bytes: u64,
    /// Retained size of the largest target that the container dominates, in bytes.
    pub(super) largest_bytes: u64,
    /// Lowest and highest object index of the targets; equal if all targets are the same object.
    pub(super) range: (u32, u32),
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.references += other.references;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest_bytes = self.largest_bytes.max(other.largest_bytes);
        self.range = (self.range.0.min(other.range.0), self.range.1.max(other.range.1));
    }
}

/// Counts by slot.
pub(super) type Tallies<'a> = FxHashMap<SlotKey<'a>, Tally>;

/// Adds counts, unless the slot is new and there are already `most` slots. Returns whether the counts were added.
fn add<'a>(all: &mut Tallies<'a>, most: usize, key: SlotKey<'a>, tally: Tally) -> bool {
    let is_full = all.len() >= most;
    match all.get_mut(&key) {
        Some(known) => known.add(tally),
        None if is_full => return false,
        None => {
            all.insert(key, tally);
        }
    }
    true
}

/// Counter of the slots of the wanted instances.
pub(super) struct SlotCounter<'s, 'a> {
    pub(super) graph: &'a ObjectGraph,
    pub(super) labels: Labels<'a>,
    pub(super) finder: AddressFinder<'a>,
    pub(super) objects: &'s ObjectReader<'a>,
    pub(super) edges: &'s Edges<'a>,
    pub(super) roles: &'s Roles,
    pub(super) owners: &'s Owners,
    pub(super) structures: &'s Structures,
    pub(super) instances: &'s Instances,
    /// `SoftReference` and its subclasses: their referents are the elements.
    pub(super) soft: ClassSet,
    pub(super) wanted: Vec<bool>,
}

impl<'a> SlotCounter<'_, 'a> {
    /// Counts the references by slot. Returns the counts, and whether all slots were counted.
    pub(super) fn count(&self) -> (Tallies<'a>, bool) {
        let chunks = ObjectIndex::chunks(self.graph.objects.indices(), CHUNK);
        let (mut all, mut is_exact) = (Tallies::default(), true);
        // A few at a time: the counts of a chunk take memory until they are added.
        for batch in chunks.chunks(BATCH) {
            for (part, is_whole) in parallel::map(batch, |chunk| self.count_chunk(chunk)) {
                is_exact &= is_whole;
                for (key, tally) in part {
                    is_exact &= add(&mut all, MAX_ALL, key, tally);
                }
            }
        }
        is_exact &= self.add_shared_arrays(&mut all);
        (all, is_exact)
    }

    /// Counts the slots of arrays that a header refers to but does not own, as an older version of a persistent collection also
    /// refers to them. Returns whether all slots were counted.
    fn add_shared_arrays(&self, all: &mut Tallies<'a>) -> bool {
        let (graph, tree) = (self.graph, &self.graph.tree);
        let (mut left, mut is_whole) = (MAX_SHARED, true);
        let wanted = (0u32..).zip(&self.instances.all).zip(&self.wanted).filter(|(_, is_wanted)| **is_wanted);
        for ((number, instance), _) in wanted {
            let Some(owner) = instance.owner.and_then(|owner| tree.object_at(owner)) else { continue };
            let class = graph.objects.class(owner);
            if class.is_none_or(|class| !self.roles.is_header(class)) || self.has_many_fields(owner) {
                continue;
            }
            let mut arrays: Vec<(ObjectIndex, TreePosition, &'a str)> = Vec::new();
            self.edges.for_each_reference(owner, |kind, id| {
                let array = graph.objects.addresses.index_of(id);
                let array = array.filter(|array| self.roles.role_of(graph, *array) == ClassRole::Array);
                let position = array.and_then(|array| tree.reachable_position(array));
                if let (ReferenceKind::Field { name, .. }, Some(array), Some(position)) =
                    (kind, array, position)
                    && self.instances.number_of(array) != Some(number)
                    && arrays.iter().all(|(known, ..)| *known != array)
                {
                    arrays.push((array, position, name));
                }
            });
            for (object, position, field) in arrays {
                let length = graph.references(object).take(left).count();
                left -= length;
                if left == 0 {
                    return false;
                }
                let source = SlotSource { position, end: OnceCell::new(), instance: number, field, class };
                self.edges.for_each_reference(object, |kind, id| {
                    let (place, target) = (source.place(kind), graph.objects.addresses.index_of(id));
                    let found = place.zip(target);
                    let found = found.and_then(|(place, target)| self.target(&source, place, target));
                    if let Some((key, tally)) = found {
                        is_whole &= add(all, MAX_ALL, key, tally);
                    }
                });
            }
        }
        is_whole
    }

    /// Returns whether an object has so many references that its record is not read for each of its arrays.
    fn has_many_fields(&self, object: ObjectIndex) -> bool {
        self.graph.references(object).nth(MAX_FIELDS).is_some()
    }

    fn count_chunk(&self, chunk: std::ops::Range<ObjectIndex>) -> (Tallies<'a>, bool) {
        let mut counter = ChunkCounter::new(self);
        for block in ObjectIndex::chunks(chunk, BLOCK) {
            let mut mask = 0u64;
            for (at, object) in (0u32..).zip(ObjectIndex::range(block.clone())) {
                let is_wanted = |number: u32| self.wanted.get(number as usize).copied().unwrap_or(false);
                if self.instances.number_of(object).is_some_and(is_wanted) {
                    mask |= 1u64.checked_shl(at).unwrap_or(0);
                }
            }
            if mask != 0 {
                self.edges
                    .for_each_in_block(block.start, mask, |from, kind, id| counter.take(from, kind, id));
            }
        }
        counter.finish()
    }

    /// Returns whether the first objects that a collection dominates include a node of a container.
    fn has_nodes(&self, collection: TreePosition, instance: u32) -> bool {
        let end = self.graph.tree.end(collection).0.min(collection.0.saturating_add(LOOKED_INTO));
        let mut objects = self.graph.tree.objects_at(collection..TreePosition(end));
        objects.any(|object| self.instances.number_of(object) == Some(instance))
    }

    /// Returns the data of a node or an array of a container.
    fn source(&self, object: ObjectIndex) -> Option<SlotSource<'a>> {
        let tree = &self.graph.tree;
        let position = tree.reachable_position(object)?;
        let instance = self.instances.number_of(object)?;
        let role = self.roles.role_of(self.graph, object);
        let mut source = SlotSource {
            position,
            end: OnceCell::new(),
            instance,
            field: "",
            class: self.graph.objects.class(object),
        };
        if role == ClassRole::Array {
            let owner = self.owners.owner_of(object);
            source.class = owner.and_then(|owner| self.graph.objects.class(owner));
            // The field distinguishes keys from values.
            let has_few_fields = owner.is_some_and(|owner| !self.has_many_fields(owner));
            let dominator = || tree.dominator(position).and_then(|position| tree.object_at(position));
            if has_few_fields && dominator() == owner {
                let holding = owner.map(|owner| self.edges.holding(owner, object));
                if let Some(ReferenceKind::Field { name, .. }) =
                    holding.and_then(|holding| holding.meanings.first().copied())
                {
                    source.field = name;
                }
            }
        }
        Some(source)
    }

    /// Returns the slot and the counts of one reference, if its target is outside of the container.
    fn target(
        &self,
        source: &SlotSource<'a>,
        place: SlotPlace<'a>,
        target: ObjectIndex,
    ) -> Option<(SlotKey<'a>, Tally)> {
        let (graph, tree) = (self.graph, &self.graph.tree);
        let SlotPlace { field, odd } = place;
        let of_target = self.instances.number_of(target);
        if of_target == Some(source.instance) {
            return None;
        }
        let class = graph.objects.class(target);
        let role = class.map_or(ClassRole::Leaf, |class| self.roles.of_class(class));
        // Class objects of classes are not elements.
        let is_of_class = class.is_some() && class == self.edges.dump.summary.java_lang_class();
        if is_of_class && graph.class_of_class_object(target).is_some() {
            return None;
        }
        let position = tree.reachable_position(target)?;
        if position <= source.position && tree.dominates(position, source.position) {
            return None;
        }
        let owner = self.owners.owner_of(target);
        let instance = self.instances.all.get(source.instance as usize)?;
        let is_of_owner = |owner| {
            self.instances.number_of(owner) == Some(source.instance) || instance.owner_object == Some(owner)
        };
        // An array without a header is not an owner.
        let is_within = owner.is_some_and(is_of_owner)
            || position >= source.position
                && position < *source.end.get_or_init(|| tree.end(source.position));
        // Children in a list of the JDK.
        if role == ClassRole::Collection
            && is_within
            && source.class.is_some_and(|class| self.structures.is_through_collections(class))
            && self.has_nodes(position, source.instance)
        {
            return None;
        }
        // A node of another container of the same class is an element only if it is the first one.
        if role == ClassRole::Plain && !is_within && of_target.is_some() && class == source.class {
            return None;
        }
        let bytes = if is_within { retained_bytes(tree, position) } else { 0 };
        let class = class_behind(self.objects, &self.soft, target);
        let key = SlotKey { instance: source.instance, field, class: source.class, odd, target: class };
        Some((key, Tally { references: 1, bytes, largest_bytes: bytes, range: (target.0, target.0) }))
    }
}

/// A node or an array of a container.
struct SlotSource<'a> {
    position: TreePosition,
    /// End of the positions that the object dominates, computed on first use: for a node of a long chain it is far away.
    end: OnceCell<TreePosition>,
    instance: u32,
    field: &'a str,
    class: Option<ClassNumber>,
}

impl<'a> SlotSource<'a> {
    /// Returns the slot of a reference; `None` if it is neither in a field nor in an array.
    fn place(&self, kind: ReferenceKind<'a>) -> Option<SlotPlace<'a>> {
        match kind {
            ReferenceKind::Field { name, .. } => Some(SlotPlace { field: name, odd: None }),
            ReferenceKind::Slot(index) => Some(SlotPlace { field: self.field, odd: Some(index % 2 == 1) }),
            _ => None,
        }
    }
}

/// Slot of a reference in a node or an array.
#[derive(Debug, Clone, Copy)]
struct SlotPlace<'a> {
    field: &'a str,
    /// For a slot of an array, `true` if its index is odd.
    odd: Option<bool>,
}

/// Number of references that are buffered before they are counted.
const REFERENCES: usize = 1 << 10;

/// Counter of the slots of a chunk. Targets are anywhere in memory, so references are buffered first, and the data of their
/// targets are prefetched.
struct ChunkCounter<'c, 's, 'a> {
    counter: &'c SlotCounter<'s, 'a>,
    /// Objects whose references are buffered, and their data.
    sources: Vec<(ObjectIndex, Option<SlotSource<'a>>)>,
    /// For each buffered reference: index of its source, and its slot.
    places: Vec<(usize, SlotPlace<'a>)>,
    ids: Vec<ObjectId>,
    targets: Vec<Option<ObjectIndex>>,
    found: Tallies<'a>,
    is_whole: bool,
}

impl<'c, 's, 'a> ChunkCounter<'c, 's, 'a> {
    fn new(counter: &'c SlotCounter<'s, 'a>) -> Self {
        Self {
            counter,
            sources: Vec::new(),
            places: Vec::with_capacity(REFERENCES),
            ids: Vec::with_capacity(REFERENCES),
            targets: Vec::with_capacity(REFERENCES),
            found: Tallies::default(),
            is_whole: true,
        }
    }

    /// Adds a reference.
    fn take(&mut self, from: ObjectIndex, kind: ReferenceKind<'a>, id: ObjectId) {
        if self.sources.last().is_none_or(|(last, _)| *last != from) {
            self.sources.push((from, self.counter.source(from)));
        }
        let place = self.sources.last().and_then(|(_, source)| source.as_ref()?.place(kind));
        let Some(place) = place else { return };
        self.places.push((self.sources.len() - 1, place));
        self.ids.push(id);
        if self.ids.len() >= REFERENCES {
            self.count();
            // The last object may have more references.
            self.sources.drain(..self.sources.len() - 1);
        }
    }

    fn count(&mut self) {
        let counter = self.counter;
        counter.finder.find(&self.ids, |target| {
            target.into_iter().for_each(|target| counter.instances.prefetch(target));
            self.targets.push(target);
        });
        // Most references are within a container.
        for ((at, _), target) in self.places.iter().zip(&mut self.targets) {
            let source = self.sources.get(*at).and_then(|(_, source)| source.as_ref());
            let is_within = |target: ObjectIndex| {
                source.is_none_or(|source| counter.instances.number_of(target) == Some(source.instance))
            };
            *target = target.filter(|target| !is_within(*target));
            if let Some(target) = *target {
                counter.labels.prefetch(target.0);
                counter.owners.prefetch(target);
                counter.graph.tree.prefetch_position(target);
            }
        }
        for ((at, place), target) in self.places.drain(..).zip(self.targets.drain(..)) {
            let source = self.sources.get(at).and_then(|(_, source)| source.as_ref());
            let counted =
                source.zip(target).and_then(|(source, target)| counter.target(source, place, target));
            if let Some((key, tally)) = counted {
                self.is_whole &= add(&mut self.found, MAX_TALLIES, key, tally);
            }
        }
        self.ids.clear();
    }

    fn finish(mut self) -> (Tallies<'a>, bool) {
        self.count();
        (self.found, self.is_whole)
    }
}
