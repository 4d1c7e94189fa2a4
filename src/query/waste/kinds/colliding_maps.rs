//! Maps in which most entries collide with others.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::waste::arrays::VisitedTable;
use crate::waste::findings::{PartKey, Saving, Sink};
use crate::waste::kind::{Finds, Frees, WasteKind};
use crate::waste::{WasteSearch, collections::CollectionLook};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_parser::be_ids;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "colliding_maps",
    summary: "Maps in which most entries collide",
    meaning: "Hash maps of 8 or more entries of which more than half follow another one in their bucket. `ratio` \
        is the collision ratio, as in Eclipse MAT. Freed: what tree nodes take beyond plain ones. \
        The larger cost is time.",
    harmless: "If the map is small and seldom read.",
    remedy: "Fix hashCode() of the keys: it must differ where equals() does.",
    frees: Frees::Part,
    is_sampled: true,
    finds: Finds::Tables(look),
};

/// Minimum number of entries of a map that is checked for collisions.
const MIN_ENTRIES: u64 = 8;

/// Tree nodes in hash tables, by class of the map: tree node and plain node.
const TREES: [(&str, &str, &str); 3] = [
    ("java.util.HashMap", "java.util.HashMap$TreeNode", "java.util.HashMap$Node"),
    ("java.util.LinkedHashMap", "java.util.HashMap$TreeNode", "java.util.LinkedHashMap$Entry"),
    (
        "java.util.concurrent.ConcurrentHashMap",
        "java.util.concurrent.ConcurrentHashMap$TreeNode",
        "java.util.concurrent.ConcurrentHashMap$Node",
    ),
];

/// Extra size of tree nodes.
pub(in crate::waste) struct Trees {
    /// Extra size of a tree node over a plain one, by class number of the map.
    more: Vec<Option<u64>>,
    /// Number of nodes that may still be examined. Maps of a malicious dump may share them.
    nodes_left: AtomicU64,
}

impl Trees {
    pub(in crate::waste) fn new(search: &WasteSearch<'_>) -> Self {
        let size = |name: &str| search.boot_size(name);
        let more = TREES.map(|(_, tree, plain)| Some(size(tree)?.saturating_sub(size(plain)?)));
        let own: Vec<Option<u64>> = (search.summary.classes().iter())
            .map(|row| {
                let name = search.summary.class_name(row);
                *more.get(TREES.iter().position(|(map, ..)| *map == name)?)?
            })
            .collect();
        Self {
            more: search.summary.class_table().inherit(&own),
            nodes_left: AtomicU64::new(u64::from(search.graph.objects.len()).saturating_mul(2)),
        }
    }
}

fn look(table: &VisitedTable<'_, '_>, sink: &mut Sink) {
    let elements = table.elements;
    if !table.usage.is_hash || elements < MIN_ENTRIES {
        return;
    }
    let ids = be_ids(table.ids, table.search.summary.id_size());
    let used = ids.filter(|id| !id.is_null()).count() as u64;
    let collisions = elements.saturating_sub(used);
    if collisions * 2 > elements {
        let saving = Saving::of(table.collection, tree_bytes(table.look, table.collection, elements));
        sink.push(saving, Some(PartKey::Class(table.class)), (collisions, elements));
    }
}

/// Returns the extra size of the tree nodes of a map over plain ones.
fn tree_bytes(look: &CollectionLook<'_, '_>, map: ObjectIndex, entries: u64) -> u64 {
    let Some(collection) = look.collections.collection(map) else { return 0 };
    let more =
        look.search.class(map).and_then(|class| look.trees.more.get(class.0 as usize).copied().flatten());
    let Some(more) = more else { return 0 };
    let nodes = look.collections.nodes(&collection, "table");
    let nodes = nodes.take(usize::try_from(entries).unwrap_or(usize::MAX)).take_while(|_| {
        let left = look.trees.nodes_left.load(Ordering::Relaxed);
        look.trees.nodes_left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    });
    let is_tree = |node: &ObjectIndex| {
        let class = look.search.class(*node).and_then(|class| look.search.summary.class(class));
        class.is_some_and(|class| look.search.summary.class_name(class).ends_with("$TreeNode"))
    };
    (nodes.filter(is_tree).count() as u64).saturating_mul(more)
}
