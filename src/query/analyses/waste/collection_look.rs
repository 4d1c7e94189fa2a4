//! Data about collections that kinds of waste need: wrappers, sizes, tree nodes.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::WasteSearch;
use super::findings::{Findings, NO_OBJECT, Saving};
use super::instances::{LooseCollection, UNKNOWN, Wrapper};
use super::plan::{Plan, Plans};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::objects::collections::Collections;
use hprof_model::objects::collections::usage::Usage;

/// Maximum number of objects of a collection with at most one element: table, nodes, views, a lock. A collection with more
/// states a wrong size.
pub(super) const MAX_OBJECTS: u32 = 64;
/// Maximum depth of nested wrappers.
const MAX_WRAPPERS: usize = 32;

/// A collection with few elements, and its saving if it consists only of an array.
pub(super) struct FewElements {
    pub(super) object: ObjectIndex,
    /// Number of elements; more than one only for linked lists.
    pub(super) elements: u32,
    /// Saving of a list that consists only of an array: size of the array in bytes, list, array.
    pub(super) plain: Option<Saving>,
}

impl FewElements {
    pub(super) fn plain(list: Saving) -> Self {
        Self { object: ObjectIndex(list.object), elements: 1, plain: Some(list) }
    }
}

/// Reader of data about collections.
pub(super) struct CollectionLook<'v, 'a> {
    pub(super) search: &'v WasteSearch<'a>,
    pub(super) plans: &'v Plans,
    pub(super) collections: Collections<'v, 'a>,
    /// Instance sizes of LinkedList, its node and ArrayList.
    pub(super) linked: Option<[u64; 3]>,
    trees: TreeNodeSizes,
}

impl<'v, 'a> CollectionLook<'v, 'a> {
    pub(super) fn new(search: &'v WasteSearch<'a>, plans: &'v Plans) -> Self {
        Self {
            search,
            plans,
            collections: Collections::with(&search.dump.objects, search.forms.clone()),
            linked: sizes_of_lists(search),
            trees: TreeNodeSizes::new(search),
        }
    }

    pub(super) fn usage(&self, object: ObjectIndex) -> Option<&'v Usage> {
        match self.plans.plan_of(self.search.class(object)) {
            Plan::Collection(usage) => Some(usage),
            _ => None,
        }
    }

    /// Returns the collection in a wrapper.
    fn wrapped_object(&self, wrapper: ObjectIndex) -> Option<ObjectIndex> {
        let wraps = self.usage(wrapper)?.wraps?;
        let objects = &self.search.dump.objects;
        objects.object(objects.value_at(objects.instance(wrapper)?, wraps)?)
    }

    /// Returns the outermost wrapper around a collection that nothing else holds.
    pub(super) fn outermost(&self, collection: ObjectIndex) -> ObjectIndex {
        let mut outer = collection;
        for _ in 0..MAX_WRAPPERS {
            match self.search.dominator(outer).filter(|above| self.wrapped_object(*above) == Some(outer)) {
                Some(above) => outer = above,
                None => break,
            }
        }
        outer
    }

    pub(super) fn collection(
        &self,
        LooseCollection { object, elements }: LooseCollection,
    ) -> Option<FewElements> {
        let object = ObjectIndex(object);
        let elements = match elements {
            UNKNOWN => self.collections.at_most_one(object)?,
            elements => elements,
        };
        Some(FewElements { object, elements, plain: None })
    }

    /// Examines a wrapper that does not own its content: otherwise the collection in it counts.
    pub(super) fn wrapper(&self, wrapper: &Wrapper) -> Option<FewElements> {
        let [object, inner] = [wrapper.object, wrapper.inner].map(ObjectIndex);
        let is_counted = self.usage(inner).is_some_and(|usage| usage.is_counted);
        if is_counted && self.search.is_dominated_by(inner, object) {
            return None;
        }
        let mut base = inner;
        for _ in 0..MAX_WRAPPERS {
            match self.wrapped_object(base) {
                Some(inner) => base = inner,
                None => break,
            }
        }
        let is_empty = self.collections.at_most_one(base) == Some(0);
        is_empty.then_some(FewElements { object, elements: 0, plain: None })
    }

    /// Replaces collections in the findings by their outermost wrappers.
    pub(super) fn outermost_of(&self, findings: &mut Findings) {
        let lists = findings.savings.par_iter_mut();
        lists.for_each(|savings| {
            for saving in savings.iter_mut() {
                // The object that shrinks remains the same.
                saving.other = if saving.other == NO_OBJECT { saving.object } else { saving.other };
                saving.object = self.outermost(ObjectIndex(saving.object)).0;
            }
        });
    }

    /// Returns the size of a map's tree nodes minus the size of plain nodes, in bytes.
    pub(super) fn tree_bytes(&self, map: ObjectIndex, entries: u64) -> u64 {
        let Some(collection) = self.collections.collection(map) else { return 0 };
        let more =
            self.search.class(map).and_then(|class| self.trees.more.get(class.0 as usize).copied().flatten());
        let Some(more) = more else { return 0 };
        let nodes = self.collections.nodes(&collection, "table");
        let nodes = nodes.take(usize::try_from(entries).unwrap_or(usize::MAX)).take_while(|_| {
            let left = self.trees.nodes_left.load(Ordering::Relaxed);
            self.trees.nodes_left.store(left.saturating_sub(1), Ordering::Relaxed);
            left > 0
        });
        let is_tree = |node: &ObjectIndex| {
            let class = self.search.class(*node).and_then(|class| self.search.dump.summary.class(class));
            class.is_some_and(|class| self.search.dump.summary.class_name(class).ends_with("$TreeNode"))
        };
        (nodes.filter(is_tree).count() as u64).saturating_mul(more)
    }
}

/// Classes of hash tables with tree nodes: map, tree node and plain node.
const TREES: [(&str, &str, &str); 3] = [
    ("java.util.HashMap", "java.util.HashMap$TreeNode", "java.util.HashMap$Node"),
    ("java.util.LinkedHashMap", "java.util.HashMap$TreeNode", "java.util.LinkedHashMap$Entry"),
    (
        "java.util.concurrent.ConcurrentHashMap",
        "java.util.concurrent.ConcurrentHashMap$TreeNode",
        "java.util.concurrent.ConcurrentHashMap$Node",
    ),
];

/// Sizes of tree nodes in hash tables.
struct TreeNodeSizes {
    /// Size of a tree node minus the size of a plain node, by class number of the map.
    more: Vec<Option<u64>>,
    /// Number of nodes that may still be examined. Maps of a malicious dump may share them.
    nodes_left: AtomicU64,
}

impl TreeNodeSizes {
    fn new(search: &WasteSearch<'_>) -> Self {
        let size = |name: &str| search.boot_size(name);
        let more = TREES.map(|(_, tree, plain)| Some(size(tree)?.saturating_sub(size(plain)?)));
        let own: Vec<Option<u64>> = (search.dump.summary.classes().iter())
            .map(|row| {
                let name = search.dump.summary.class_name(row);
                *more.get(TREES.iter().position(|(map, ..)| *map == name)?)?
            })
            .collect();
        Self {
            more: search.dump.summary.class_table().inherit(&own),
            nodes_left: AtomicU64::new(u64::from(search.dump.graph.objects.len()).saturating_mul(2)),
        }
    }
}

/// Returns the sizes of a LinkedList, its node and an ArrayList.
fn sizes_of_lists(search: &WasteSearch<'_>) -> Option<[u64; 3]> {
    let size = |name: &str| search.boot_size(name);
    let node = size("java.util.LinkedList$Node").or_else(|| size("java.util.LinkedList$Entry"));
    Some([size("java.util.LinkedList")?, node?, size("java.util.ArrayList")?])
}
