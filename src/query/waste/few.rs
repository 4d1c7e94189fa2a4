//! Collections of zero or one element, and linked lists: the objects freed with them.
//!
//! A set backed by a map, and a wrapper that alone holds a collection, form one collection with it: the outermost
//! counts.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::arrays::Colliding;
use super::findings::{Findings, Frees, NO_OBJECT, PartKey, Saving, Sink};
use super::instances::{Loose, UNKNOWN, Wrapper};
use super::plan::{Plan, Plans};
use super::{WasteKind, WasteSearch};
use crate::objects::collections::Collections;
use crate::objects::collections::usage::Usage;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::tables::ClassKind;
use hprof_index::storage::scratch::Array;
use hprof_parser::BasicType;

/// Maximum number of objects of a collection with at most one element: table, nodes, views, a lock. One with more
/// states a wrong size.
const MAX_OBJECTS: u32 = 64;
/// Maximum number of retained objects of a collection that are examined.
const MAX_STEPS: u32 = 1 << 10;
/// Maximum depth of nested wrappers.
const MAX_WRAPPERS: usize = 32;

/// Candidates.
pub(super) struct Few {
    /// Collections found in instances.
    pub(super) loose: Vec<Array<Loose>>,
    /// Wrappers with the collection in each.
    pub(super) wrappers: Vec<Array<Wrapper>>,
    /// Collections found in arrays.
    pub(super) tables: Vec<Array<Loose>>,
    /// Lists of one element that have nothing but an array.
    pub(super) plain: Vec<Array<Saving>>,
}

/// Findings in some of them, of the kinds `EmptyCollections`, `SingleElementCollections`, `LinkedLists`.
#[derive(Default)]
struct Sinks {
    empty: Sink,
    single: Sink,
    /// Objects of the collections of one element.
    freed: Vec<u32>,
    linked: Sink,
}

impl Sinks {
    /// Collects the findings of `look` in some of them.
    fn of<T>(some: &[T], look: impl Fn(&T, &mut Self)) -> Self {
        let mut sinks = Self::default();
        some.iter().for_each(|one| look(one, &mut sinks));
        sinks
    }
}

impl Few {
    /// Finds the collections. `sparse` are collections that were found before.
    pub(super) fn find(
        self,
        search: &WasteSearch<'_>,
        plans: &Plans,
        colliding: &[Colliding],
        sparse: Option<&mut Findings>,
    ) -> io::Result<Vec<Findings>> {
        let look = Look::new(search, plans);
        let room = &search.room;
        let mut found = [
            Findings::new(WasteKind::EmptyCollections, Frees::Retained),
            Findings::new(WasteKind::SingleElementCollections, Frees::Listed(Vec::new())),
            Findings::new(WasteKind::LinkedLists, Frees::Part),
        ];
        let lists = self.loose.into_par_iter().chain(self.tables);
        let lists = lists.map(|lists| Sinks::of(&lists, |loose, sinks| look.collection(*loose, sinks)));
        let plain = self.plain.into_par_iter();
        let plain = plain.map(|plain| Sinks::of(&plain, |list, sinks| look.plain(list, sinks)));
        let wrappers = self.wrappers.into_par_iter();
        let wrappers = wrappers.map(|wrappers| Sinks::of(&wrappers, |one, sinks| look.wrapper(one, sinks)));
        let into_room = |sinks: Sinks| {
            let Sinks { empty, single, freed, linked } = sinks;
            Ok((
                [empty.into_room(room)?, single.into_room(room)?, linked.into_room(room)?],
                room.copy(&freed)?,
            ))
        };
        let all: Vec<_> = lists.chain(plain).chain(wrappers).map(into_room).collect::<io::Result<_>>()?;
        let mut all_freed = Vec::new();
        for (sinks, freed) in all {
            all_freed.push(freed);
            for (findings, (savings, parts)) in found.iter_mut().zip(sinks) {
                findings.take(savings, &parts);
            }
        }
        let [empty, mut single, linked] = found;
        single.frees = Frees::Listed(all_freed);
        let mut found = vec![empty, single, linked, look.colliding(colliding)?];
        for findings in sparse.into_iter().chain(&mut found) {
            if matches!(
                findings.kind,
                WasteKind::SparseCollections | WasteKind::CollidingMaps | WasteKind::LinkedLists
            ) {
                look.outermost_of(findings);
            }
        }
        Ok(found)
    }
}

/// Examiner of collections.
struct Look<'v, 'a> {
    search: &'v WasteSearch<'a>,
    plans: &'v Plans,
    collections: Collections<'v, 'a>,
    /// Sizes of a LinkedList, its node and an ArrayList.
    linked: Option<[u64; 3]>,
    /// Extra size of a tree node over a plain one, by class number of the map.
    trees: Vec<Option<u64>>,
    /// Number of nodes that may still be examined. Maps of a malicious dump may share them.
    nodes_left: AtomicU64,
}

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

impl<'v, 'a> Look<'v, 'a> {
    fn new(search: &'v WasteSearch<'a>, plans: &'v Plans) -> Self {
        let size = |name: &str| Some(search.sizes.instance(search.summary.boot_class(name)?).0);
        let node = size("java.util.LinkedList$Node").or_else(|| size("java.util.LinkedList$Entry"));
        let linked = || Some([size("java.util.LinkedList")?, node?, size("java.util.ArrayList")?]);
        let more = TREES.map(|(_, tree, plain)| Some(size(tree)?.saturating_sub(size(plain)?)));
        let own: Vec<Option<u64>> = (search.summary.classes().iter())
            .map(|row| {
                let name = search.summary.class_name(row);
                *more.get(TREES.iter().position(|(map, ..)| *map == name)?)?
            })
            .collect();
        Self {
            search,
            plans,
            collections: Collections::with(&search.objects, search.forms.clone()),
            linked: linked(),
            trees: search.summary.class_table().inherit(&own),
            nodes_left: AtomicU64::new(u64::from(search.graph.objects.len()).saturating_mul(2)),
        }
    }

    fn usage(&self, object: ObjectIndex) -> Option<&'v Usage> {
        match self.plans.of(self.search.class(object)) {
            Plan::Collection(usage) => Some(usage),
            _ => None,
        }
    }

    /// Returns the object in a wrapper.
    fn wrapped(&self, wrapper: ObjectIndex) -> Option<ObjectIndex> {
        let wraps = self.usage(wrapper)?.wraps?;
        let objects = &self.search.objects;
        objects.object(objects.value_at(objects.instance(wrapper)?, wraps)?)
    }

    /// Returns the outermost wrapper that alone holds a collection.
    fn outermost(&self, collection: ObjectIndex) -> ObjectIndex {
        let mut outer = collection;
        for _ in 0..MAX_WRAPPERS {
            match self.search.dominator(outer).filter(|above| self.wrapped(*above) == Some(outer)) {
                Some(above) => outer = above,
                None => break,
            }
        }
        outer
    }

    fn collection(&self, Loose { object, elements }: Loose, sinks: &mut Sinks) {
        let object = ObjectIndex(object);
        let elements = match elements {
            UNKNOWN => self.collections.at_most_one(object),
            elements => Some(elements),
        };
        let Some(elements) = elements else { return };
        match elements {
            0 => self.empty(self.outermost(object), sinks),
            1 => self.single(object, sinks),
            _ => {}
        }
        if elements > 0 && self.usage(object).is_some_and(|usage| usage.is_linked) {
            self.linked(object, elements.into(), sinks);
        }
    }

    fn empty(&self, outer: ObjectIndex, sinks: &mut Sinks) {
        let tree = &self.search.graph.tree;
        let Some(position) = tree.reachable_position(outer) else { return };
        if tree.retained_objects(position) > MAX_OBJECTS {
            return;
        }
        let summary = self.search.summary;
        let is_array = |object| {
            let class = self.search.class(object).and_then(|class| summary.class(class));
            class.is_some_and(|class| class.kind() != ClassKind::Instance)
        };
        let has_table = tree.objects_at(position..tree.end(position)).any(is_array);
        let part = if has_table { PartKey::Table } else { PartKey::NoTable };
        sinks.empty.push(Saving::of(outer, tree.retained_bytes(position)), Some(part), (0, 0));
    }

    /// Examines a wrapper that does not own its content: otherwise the collection in it counts.
    fn wrapper(&self, wrapper: &Wrapper, sinks: &mut Sinks) {
        let [object, inner] = [wrapper.object, wrapper.inner].map(ObjectIndex);
        let is_counted = self.usage(inner).is_some_and(|usage| usage.is_counted);
        if is_counted && self.search.is_dominated_by(inner, object) {
            return;
        }
        let mut base = inner;
        for _ in 0..MAX_WRAPPERS {
            match self.wrapped(base) {
                Some(inner) => base = inner,
                None => break,
            }
        }
        if self.collections.at_most_one(base) == Some(0) {
            self.empty(self.outermost(object), sinks);
        }
    }

    /// Examines a list of one element and its array.
    fn plain(&self, list: &Saving, sinks: &mut Sinks) {
        let [object, array] = [list.object, list.other].map(ObjectIndex);
        if !self.search.is_dominated_by(array, object) {
            return;
        }
        let (class, before) = (self.search.class(object), sinks.freed.len());
        let mut bytes =
            list.bytes.saturating_add(class.map_or(0, |class| self.search.sizes.instance(class).0));
        sinks.freed.extend([object.0, array.0]);
        let outer = self.outermost(object);
        let mut above = object;
        while above != outer {
            let Some(wrapper) = self.search.dominator(above) else { break };
            above = wrapper;
            bytes = bytes.saturating_add(self.search.shallow_bytes(above));
            sinks.freed.push(above.0);
            if sinks.freed.len() - before > MAX_OBJECTS as usize {
                break;
            }
        }
        let class = self.search.class(outer).map(PartKey::Class);
        sinks.single.push(Saving::of(outer, bytes), class, (0, 0));
    }

    fn single(&self, object: ObjectIndex, sinks: &mut Sinks) {
        let tree = &self.search.graph.tree;
        let objects = &self.search.objects;
        // A table that another collection shares stays.
        let table =
            self.usage(object).and_then(|usage| objects.value_at(objects.instance(object)?, usage.array?));
        let table = table.and_then(|table| objects.object(table));
        if table.is_some_and(|table| !self.search.is_dominated_by(table, object)) {
            return;
        }
        let Some(entry) = self.collections.only_entry(object) else { return };
        let of_entry = [entry.key, Some(entry.value)].map(|value| objects.object(value?));
        let outer = self.outermost(object);
        let Some(position) = tree.reachable_position(outer) else { return };
        let end = tree.end(position);
        let (mut here, mut bytes, mut steps) = (position, 0u64, 0);
        let before = sinks.freed.len();
        while here < end {
            steps += 1;
            let Some(part) = tree.object_at(here) else { break };
            if of_entry.contains(&Some(part)) || !self.is_of_collection(part) {
                here = tree.end(here);
                continue;
            }
            bytes = bytes.saturating_add(tree.shallow_bytes(here));
            sinks.freed.push(part.0);
            here = TreePosition(here.0 + 1);
            if steps > MAX_STEPS || sinks.freed.len() - before > MAX_OBJECTS as usize {
                sinks.freed.truncate(before);
                return;
            }
        }
        let class = self.search.class(outer).map(PartKey::Class);
        sinks.single.push(Saving::of(outer, bytes), class, (0, 0));
    }

    /// Returns whether an object can be a part of a collection: a table, a node, a view, a lock.
    fn is_of_collection(&self, object: ObjectIndex) -> bool {
        let summary = self.search.summary;
        let class = self.search.class(object).and_then(|class| summary.class(class));
        class.is_some_and(|class| {
            let name = summary.class_name(class);
            let element = name.trim_end_matches("[]");
            element.starts_with("java.util.")
                || element.starts_with("android.util.")
                || name == "java.lang.Object"
                || name.starts_with("java.lang.ref.ReferenceQueue")
                || element != name && (element == "java.lang.Object" || element == "int" || element == "long")
        })
    }

    fn linked(&self, object: ObjectIndex, elements: u64, sinks: &mut Sinks) {
        let tree = &self.search.graph.tree;
        let (Some([list, node, array_list]), Some(position)) = (self.linked, tree.reachable_position(object))
        else {
            return;
        };
        // The stated size of a list may exceed its number of elements.
        let elements = elements.min(u64::from(tree.retained_objects(position)) - 1);
        let array = self.search.sizes.layout().array_size(BasicType::Object, elements);
        let now = elements.saturating_mul(node).saturating_add(list);
        let bytes = now.saturating_sub(array.saturating_add(array_list));
        if bytes > 0 {
            sinks.linked.push(Saving::of(object, bytes), None, (0, 0));
        }
    }

    /// Replaces collections in the findings by the outermost ones that hold them.
    fn outermost_of(&self, findings: &mut Findings) {
        let lists = findings.savings.par_iter_mut();
        lists.for_each(|savings| {
            for saving in savings.iter_mut() {
                // The object that gets smaller stays the same.
                saving.other = if saving.other == NO_OBJECT { saving.object } else { saving.other };
                saving.object = self.outermost(ObjectIndex(saving.object)).0;
            }
        });
    }

    fn colliding(&self, all: &[Colliding]) -> io::Result<Findings> {
        let one = |colliding: &Colliding| {
            let map = ObjectIndex(colliding.map);
            (Saving::of(map, self.trees(map, colliding.entries)), *colliding)
        };
        let savings: Vec<(Saving, Colliding)> = all.par_iter().map(one).collect();
        let mut sink = Sink::default();
        for (saving, Colliding { map, entries, collisions }) in savings {
            let class = self.search.class(ObjectIndex(map)).map(PartKey::Class);
            sink.push(saving, class, (collisions, entries));
        }
        let mut findings = Findings::new(WasteKind::CollidingMaps, Frees::Part);
        let (savings, parts) = sink.into_room(&self.search.room)?;
        findings.take(savings, &parts);
        Ok(findings)
    }

    /// Returns the extra size of the tree nodes of a map over plain ones.
    fn trees(&self, map: ObjectIndex, entries: u64) -> u64 {
        let Some(collection) = self.collections.collection(map) else { return 0 };
        let more =
            self.search.class(map).and_then(|class| self.trees.get(class.0 as usize).copied().flatten());
        let Some(more) = more else { return 0 };
        let nodes = self.collections.nodes(&collection, "table");
        let nodes = nodes.take(usize::try_from(entries).unwrap_or(usize::MAX)).take_while(|_| {
            let left = self.nodes_left.load(Ordering::Relaxed);
            self.nodes_left.store(left.saturating_sub(1), Ordering::Relaxed);
            left > 0
        });
        let is_tree = |node: &ObjectIndex| {
            let class = self.search.class(*node).and_then(|class| self.search.summary.class(class));
            class.is_some_and(|class| self.search.summary.class_name(class).ends_with("$TreeNode"))
        };
        (nodes.filter(is_tree).count() as u64).saturating_mul(more)
    }
}
