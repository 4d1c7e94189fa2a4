//! Instances: the nodes and arrays that one object owns are one container.
//!
//! A pass over the dominator tree in preorder gives each node and array the number of its container: that of its
//! owner if it is a node, otherwise one for all nodes and arrays of the owner. Several kinds of nodes and arrays
//! below one header are one container: the last elements of a Clojure vector are in a separate array, a Scala vector
//! has up to six.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;

use hprof_base::share::is_share;
use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::graph::tree::Tree;
use hprof_index::model::summary::ClassNumber;
use hprof_index::storage::prefetch::prefetch;
use hprof_index::storage::scratch::Array;

use super::retained_bytes;
use super::roles::{ClassRole, Owners, Roles};
use super::structures::Structures;
use hprof_model::dominators::preorder::Preorder;
use hprof_model::objects::object_set::Bits;

/// Maximum number of nodes that are stored for a container without a dominating header, largest first.
pub(super) const MAX_TOPS: usize = 1024;

/// Prefetch distance, in positions.
const AHEAD: u32 = 32;

/// Nodes and arrays with the same owner.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// Position of the object that owns the nodes and arrays; `None` if only roots dominate them.
    pub(super) owner: Option<TreePosition>,
    /// Object index of `owner`.
    pub(super) owner_object: Option<ObjectIndex>,
    /// Nodes and arrays that no other node or array dominates, largest first, at most [`MAX_TOPS`].
    pub(super) tops: Vec<TreePosition>,
    /// Number of nodes and arrays that no other node or array dominates.
    pub(super) all_tops: u64,
    /// Total retained size of the nodes and arrays that no other node or array dominates.
    pub(super) top_bytes: u64,
    /// Number of nodes.
    pub(super) nodes: u64,
    /// Number of arrays.
    pub(super) arrays: u64,
    /// Number of nodes that another node dominates immediately.
    pub(super) following: u64,
}

/// Instances of containers, and the instance of each node and array.
pub(super) struct Instances {
    pub(super) all: Vec<Instance>,
    /// By object: number of the instance plus 1; 0 for objects that are neither nodes nor arrays.
    by_object: Array<u32>,
}

impl Instances {
    /// Finds the instances that retain at least `least` bytes.
    ///
    /// # Errors
    /// If there is neither memory nor disk space for a number for each object.
    pub(super) fn find(
        graph: &ObjectGraph,
        roles: &Roles,
        owners: &Owners,
        structures: &Structures,
        least: u64,
    ) -> io::Result<Self> {
        let by_object = graph.room().zeroed_array::<u32>(graph.objects.len() as usize)?;
        let mut search = InstanceSearch {
            graph,
            roles,
            owners,
            structures,
            least,
            found: Self { all: Vec::new(), by_object },
            of_owner: FxHashMap::default(),
            last_owner: None,
        };
        search.pass();
        Ok(search.found)
    }

    /// Returns the number of the instance to which a node or an array belongs.
    #[inline]
    pub(super) fn number_of(&self, object: ObjectIndex) -> Option<u32> {
        self.by_object.get(object.at())?.checked_sub(1)
    }

    /// Prefetches the instance number of an object.
    #[inline]
    pub(super) fn prefetch(&self, object: ObjectIndex) {
        prefetch(&self.by_object, object.at());
    }
}

/// Data about an open object of the pass, which dominates the next object.
#[derive(Debug, Clone, Copy)]
struct InstanceDominator {
    role: ClassRole,
    /// `true` if the object is a part of a JDK collection.
    is_of_jdk: bool,
    /// Number of the object's instance plus 1, or 0.
    number: u32,
}

/// An object that the pass visits.
#[derive(Debug, Clone, Copy)]
struct VisitedObject {
    object: ObjectIndex,
    position: TreePosition,
    class: ClassNumber,
    role: ClassRole,
    is_of_jdk: bool,
    is_small: bool,
}

/// Returns the positions that retain at least `least` bytes.
///
/// One pass: sizes are in preorder, so an object is known to be large as soon as the sum since its position is. Only
/// open objects not yet known to be large are stored; their sizes add up to less than `least`.
fn large_positions(tree: &Tree, least: u64) -> Bits<TreePosition> {
    let mut large = Bits::new(tree.reachable());
    let mut open: VecDeque<(TreePosition, u64)> = VecDeque::new();
    let mut bytes = 0u64;
    tree.visit(tree.positions(), |position, ends, size| {
        open.push_back((position, bytes));
        bytes = bytes.saturating_add(size);
        while let Some((first, _)) = open.front().filter(|(_, before)| bytes - before >= least) {
            large.insert(*first);
            open.pop_front();
        }
        // Closed objects that are no longer stored were already found to be large.
        open.truncate(open.len().saturating_sub(usize::try_from(ends).unwrap_or(usize::MAX)));
    });
    large
}

/// State of the search for instances.
struct InstanceSearch<'s> {
    graph: &'s ObjectGraph,
    roles: &'s Roles,
    owners: &'s Owners,
    structures: &'s Structures,
    least: u64,
    found: Instances,
    /// Number of the instance by owner; for owners that are not headers, also by structure, since static fields of a class have
    /// nothing in common.
    of_owner: FxHashMap<(ObjectIndex, Option<u32>), u32>,
    /// The owner whose size was looked up last, and whether it retains less than the minimum of an instance.
    last_owner: Option<(ObjectIndex, bool)>,
}

impl InstanceSearch<'_> {
    /// Visits all objects except those below small objects, whose owners are too small for an instance. Most objects of a heap
    /// are skipped.
    fn pass(&mut self) {
        let (graph, tree, labels) = (self.graph, &self.graph.tree, self.graph.labels());
        let mut above: Vec<InstanceDominator> = Vec::new();
        let mut skipped = None;
        let large = large_positions(tree, self.least);
        let all = tree.positions();
        let mut ahead = tree.objects_at(TreePosition(all.end.0.min(AHEAD))..all.end);
        let mut objects = tree.objects_at(all.clone());
        for (position, depth) in Preorder::new(tree, all) {
            let (object, ahead) = (objects.next(), ahead.next());
            if skipped.is_some_and(|skipped| depth > skipped) {
                continue;
            }
            skipped = None;
            let Some(object) = object else { break };
            if let Some(ahead) = ahead {
                labels.prefetch(ahead.0);
                self.owners.prefetch(ahead);
                self.found.prefetch(ahead);
            }
            above.truncate(depth as usize);
            let is_small = !large.contains(position);
            let dominator = above.last().copied();
            let class = graph.objects.class(object);
            let role = class.map_or(ClassRole::Leaf, |class| self.roles.of_class(class));
            let is_of_jdk = role == ClassRole::Collection
                || role == ClassRole::Array && dominator.is_some_and(|above| above.is_of_jdk);
            let number = match class {
                Some(class) if matches!(role, ClassRole::Plain | ClassRole::Array) => {
                    let visited = VisitedObject { object, position, class, role, is_of_jdk, is_small };
                    self.take(visited, dominator).unwrap_or(0)
                }
                _ => 0,
            };
            if is_small && number == 0 && matches!(role, ClassRole::Plain | ClassRole::Leaf) {
                skipped = Some(depth);
            }
            above.push(InstanceDominator { role, is_of_jdk, number });
        }
    }

    /// Returns the number of an object's instance plus 1, or 0.
    fn instance_number(&self, object: Option<ObjectIndex>) -> u32 {
        object.and_then(|object| self.found.by_object.get(object.at())).copied().unwrap_or(0)
    }

    /// Returns whether an owner retains less than the minimum of an instance.
    fn is_small(&mut self, owner: ObjectIndex) -> bool {
        match self.last_owner {
            Some((known, is_small)) if known == owner => is_small,
            _ => {
                let bytes = self.graph.tree.retained_bytes_of(owner);
                let is_small = bytes.is_none_or(|bytes| bytes < self.least);
                self.last_owner = Some((owner, is_small));
                is_small
            }
        }
    }

    /// Adds an object to its instance, if the object is a node or an array. Returns the instance's number plus 1.
    fn take(&mut self, visited: VisitedObject, dominator: Option<InstanceDominator>) -> Option<u32> {
        let VisitedObject { object, position, class, role, is_of_jdk, is_small } = visited;
        let (graph, tree, roles, structures) = (self.graph, &self.graph.tree, self.roles, self.structures);
        let owner = self.owners.owner_of(object);
        let owner_class = owner.and_then(|owner| graph.objects.class(owner));
        let is_by_jdk = dominator.is_some_and(|above| above.is_of_jdk);
        // Nodes of another structure are another container, as is each node in a collection, unless the collection
        // links them.
        let own_structure = structures.structure_of(class);
        let is_alike = role == ClassRole::Array
            || own_structure.is_none()
            || owner_class.is_none_or(|owner| {
                let of_owner = structures.structure_of(owner);
                of_owner == own_structure || of_owner.is_none()
            });
        let is_linked =
            !is_by_jdk || owner_class.is_some_and(|class| structures.is_through_collections(class));
        // The nodes of a vector are below the vector's object, which can be an element of other containers.
        let is_below_top = || {
            let instance = self.found.all.get((self.instance_number(owner) as usize).wrapping_sub(1));
            let is_top = |one: &Instance| one.tops.first().and_then(|top| tree.object_at(*top)) == owner;
            instance.is_some_and(|one| one.nodes == 1 && is_top(one))
                && owner_class.is_some_and(|owner| roles.are_nested_alike(owner, class))
        };
        let within = if is_linked && (is_alike || is_below_top()) { self.instance_number(owner) } else { 0 };
        let is_array_of_none = role == ClassRole::Array && !is_of_jdk;
        let is_node = role == ClassRole::Plain
            && (own_structure.is_some()
                || dominator.is_some_and(|above| {
                    let is_in_array = above.role == ClassRole::Array && !above.is_of_jdk;
                    // An entry in two arrays of a map belongs to neither.
                    let is_in_header = above.role == ClassRole::Plain
                        && owner_class.is_some_and(|owner| roles.is_header(owner));
                    let is_in_node = within > 0 && above.role == ClassRole::Plain;
                    roles.is_entry(class) && (is_in_array || is_in_header || is_in_node)
                        || is_in_node && roles.is_wrapper(class)
                        || is_in_array && owner_class.is_some_and(|owner| roles.is_part(class, owner))
                }));
        if !is_node && !is_array_of_none {
            return None;
        }
        let number = if within > 0 {
            within
        } else {
            // An array whose owner is not a header is a container itself, with the arrays in it.
            let is_header = owner_class.is_some_and(|class| roles.is_header(class));
            let is_in_array = |above: &InstanceDominator| above.role == ClassRole::Array && !above.is_of_jdk;
            let outer =
                dominator.filter(|above| is_in_array(above) && role == ClassRole::Array && !is_header);
            let owner = owner.filter(|_| !is_by_jdk && (is_node || is_header));
            let kind = if is_header { None } else { Some(own_structure.unwrap_or(class.0)) };
            let key = (owner.unwrap_or(object), kind);
            match (outer.map_or(0, |outer| outer.number), self.of_owner.get(&key).copied()) {
                (0, Some(known)) => known,
                // Small owners, of which a dump has millions, get no number.
                (0, None) if owner.map_or(is_small, |owner| self.is_small(owner)) => return None,
                (0, None) => {
                    let of_owner = owner.and_then(|owner| tree.reachable_position(owner));
                    let instance = Instance { owner: of_owner, owner_object: owner, ..Instance::default() };
                    self.found.all.push(instance);
                    let number = u32::try_from(self.found.all.len()).unwrap_or(u32::MAX);
                    self.of_owner.insert(key, number);
                    number
                }
                (outer, _) => outer,
            }
        };
        if let Some(place) = self.found.by_object.get_mut(object.at()) {
            *place = number;
        }
        let Some(instance) = self.found.all.get_mut((number as usize).wrapping_sub(1)) else {
            return Some(number);
        };
        match role {
            ClassRole::Array => instance.arrays += 1,
            _ => instance.nodes += 1,
        }
        if dominator.is_some_and(|above| above.number == number) {
            let is_following = is_node && dominator.is_some_and(|above| above.role == ClassRole::Plain);
            instance.following += u64::from(is_following);
            return Some(number);
        }
        instance.all_tops += 1;
        let bytes = retained_bytes(tree, position);
        instance.top_bytes = instance.top_bytes.saturating_add(bytes);
        if instance.tops.len() < MAX_TOPS {
            instance.tops.push(position);
        }
        Some(number)
    }
}

impl Instance {
    /// Returns the object that represents an instance: the owner, if it is a header and most of its size is in nodes and arrays
    /// or in elements (`element_bytes`); otherwise the largest node or array.
    pub(super) fn header(
        &self,
        graph: &ObjectGraph,
        roles: &Roles,
        element_bytes: u64,
    ) -> Option<TreePosition> {
        let class = |position| graph.objects.class(graph.tree.object_at(position)?);
        let first =
            self.tops.iter().copied().max_by_key(|top| (graph.tree.retained_bytes(*top), Reverse(*top)));
        let owner = self.owner.filter(|owner| {
            class(*owner).is_some_and(|class| {
                let is_most =
                    is_share(self.top_bytes.max(element_bytes), graph.tree.retained_bytes(*owner), 50);
                is_most && (roles.is_header(class) || self.all_tops > 1 && roles.can_be_header(class))
            })
        });
        owner.or(first)
    }
}
