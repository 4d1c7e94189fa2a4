//! Instances: the nodes and arrays that one object owns are one container.
//!
//! A pass over the dominator tree in preorder gives each node and array the number of its container: that of its owner if
//! it is a node, otherwise one for all that the owner has. Several kinds of nodes and arrays below one header are one
//! container: the last elements of a Clojure vector are in an array of their own, a Scala vector has up to six.

use std::cmp::Reverse;
use std::io;

use rustc_hash::FxHashMap;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::TreePosition;
use hprof_index::storage::scratch::Array;

use super::roles::{ClassRole, Owners, Roles};
use super::structures::Structures;
use crate::dominators::preorder;

/// Maximum number of the largest nodes of a container that are kept where no header dominates them.
pub(super) const MAX_TOPS: usize = 1024;

/// Nodes and arrays with one owner.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// Object that owns them; `None` if only roots dominate them.
    pub(super) owner: Option<TreePosition>,
    /// Largest of the nodes and arrays that no other node or array dominates.
    pub(super) tops: Vec<TreePosition>,
    /// Number of them.
    pub(super) all_tops: u64,
    /// Retained size of all of them.
    pub(super) top_bytes: u64,
    /// Number of nodes.
    pub(super) nodes: u64,
    /// Number of arrays.
    pub(super) arrays: u64,
    /// Number of nodes that another node dominates immediately.
    pub(super) following: u64,
}

/// Instances, by number, and the number of each node's and array's.
pub(super) struct Instances {
    pub(super) all: Vec<Instance>,
    /// By position: number of the instance plus 1; 0 for others. Empty if there are no instances.
    by_position: Array<u32>,
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
        let tree = &graph.tree;
        let mut by_position = graph.room().zeroed::<u32>(tree.reachable() as usize)?;
        let mut all: Vec<Instance> = Vec::new();
        // By owner, and by kind of nodes below what is no header: static fields of a class have nothing in common.
        let mut of_owner: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
        let mut objects = tree.objects_at(tree.all());
        // By depth: role of the object, whether it is a part of a JDK collection, and its number.
        let mut above: Vec<(ClassRole, bool, u32)> = Vec::new();
        preorder::visit(tree, tree.all(), |position, depth, _| {
            above.truncate(depth as usize);
            let dominator = above.last().copied();
            let class = objects.next().and_then(|object| graph.objects.class(object));
            let role = class.map_or(ClassRole::Leaf, |class| roles.of_class(class));
            let is_of_jdk = role == ClassRole::Collection
                || role == ClassRole::Array && dominator.is_some_and(|(_, is, _)| is);
            above.push((role, is_of_jdk, 0));
            let Some(class) = class.filter(|_| matches!(role, ClassRole::Plain | ClassRole::Array)) else {
                return;
            };
            let of = |at: Option<TreePosition>| {
                at.and_then(|at| by_position.get(at.0 as usize)).copied().unwrap_or(0)
            };
            let owner = owners.owner_of(position);
            let owner_class = owner.and_then(|owner| graph.objects.class(tree.object_at(owner)?));
            let is_by_jdk = dominator.is_some_and(|(_, is_of_jdk, _)| is_of_jdk);
            // Another kind of nodes is another container, as is each in a collection, unless that links them.
            let own_structure = structures.structure_of(class);
            let is_alike = role == ClassRole::Array
                || own_structure.is_none()
                || owner_class.is_none_or(|owner| {
                    let of_owner = structures.structure_of(owner);
                    of_owner == own_structure || of_owner.is_none()
                });
            let is_linked =
                !is_by_jdk || owner_class.is_some_and(|class| structures.is_through_collections(class));
            // The nodes of a vector are below a vector, which can be an element of others.
            let is_below_top = || {
                let instance = all.get((of(owner) as usize).wrapping_sub(1));
                instance.is_some_and(|one| one.nodes == 1 && one.tops.first().copied() == owner)
                    && owner_class.is_some_and(|owner| roles.are_nested_alike(owner, class))
            };
            let within = if is_linked && (is_alike || is_below_top()) { of(owner) } else { 0 };
            let is_array_of_none = role == ClassRole::Array && !is_of_jdk;
            let is_node = role == ClassRole::Plain
                && (own_structure.is_some()
                    || dominator.is_some_and(|(above, is_of_jdk, _)| {
                        let is_in_array = above == ClassRole::Array && !is_of_jdk;
                        // An entry in two arrays of a map belongs to neither.
                        let is_in_header = above == ClassRole::Plain
                            && owner_class.is_some_and(|owner| roles.is_header(owner));
                        let is_in_node = within > 0 && above == ClassRole::Plain;
                        roles.is_entry(class) && (is_in_array || is_in_header || is_in_node)
                            || is_in_node && roles.is_wrapper(class)
                            || is_in_array && owner_class.is_some_and(|owner| roles.is_part(class, owner))
                    }));
            if !is_node && !is_array_of_none {
                return;
            }
            let number = if within > 0 {
                within
            } else {
                // An array of what is no header is a container itself, with the arrays within it.
                let is_header = owner_class.is_some_and(|class| roles.is_header(class));
                let own = || match dominator {
                    Some((ClassRole::Array, false, _)) if role == ClassRole::Array && !is_header => {
                        of(tree.dominator(position))
                    }
                    _ => 0,
                };
                let owner = owner.filter(|_| !is_by_jdk && (is_node || is_header));
                let kind = if is_header { None } else { Some(own_structure.unwrap_or(class.0)) };
                let key = (owner.unwrap_or(position).0, kind);
                match own() {
                    0 => match of_owner.get(&key) {
                        Some(known) => *known,
                        // What is small together needs no number, of which a dump has millions.
                        None if tree.retained_bytes(TreePosition(key.0)) < least => return,
                        None => {
                            all.push(Instance { owner, ..Instance::default() });
                            let number = u32::try_from(all.len()).unwrap_or(u32::MAX);
                            of_owner.insert(key, number);
                            number
                        }
                    },
                    outer => outer,
                }
            };
            if let Some(place) = by_position.get_mut(position.0 as usize) {
                *place = number;
            }
            if let Some(here) = above.last_mut() {
                here.2 = number;
            }
            let Some(instance) = all.get_mut((number as usize).wrapping_sub(1)) else { return };
            match role {
                ClassRole::Array => instance.arrays += 1,
                _ => instance.nodes += 1,
            }
            if dominator.is_some_and(|(.., above)| above == number) {
                let is_following = is_node && dominator.is_some_and(|(role, ..)| role == ClassRole::Plain);
                instance.following += u64::from(is_following);
                return;
            }
            instance.all_tops += 1;
            let bytes = tree.retained_bytes(position);
            instance.top_bytes = instance.top_bytes.saturating_add(bytes);
            if instance.tops.len() < MAX_TOPS {
                instance.tops.push(position);
            }
        });
        Ok(Self { all, by_position })
    }

    /// Returns the number of the instance that an object is a node or an array of.
    #[inline]
    pub(super) fn number_of(&self, position: TreePosition) -> Option<u32> {
        self.by_position.get(position.0 as usize)?.checked_sub(1)
    }
}

impl Instance {
    /// Returns the object that stands for all: the owner if it is a header, otherwise the largest node or array. Elements in two
    /// arrays, of this many bytes, are the owner's.
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
                let is_most = u128::from(self.top_bytes.max(element_bytes)) * 100
                    >= u128::from(graph.tree.retained_bytes(*owner)) * 50;
                is_most && (roles.is_header(class) || self.all_tops > 1 && roles.can_be_header(class))
            })
        });
        owner.or(first)
    }
}
