//! Collections of one element.

use crate::waste::collection_look::{CollectionLook, FewElements, MAX_OBJECTS};
use crate::waste::findings::{FindingSink, PartKey, Saving};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "single_element_collections",
    summary: "Collections with a single element",
    meaning: "Collections of one element, or of one key and value. Freed: the collection, its table and \
        node, as if the field referred directly to the element.",
    harmless: "If most of them grow later.",
    remedy: "Store the first element in a field of its own. If nothing is added later, List.of(x), \
        Set.of(x), Map.of(k, v) and Collections.singletonList(x) need far less memory.",
    frees: WasteEffect::Listed,
    is_sampled: true,
    finds: WasteFinder::Collections(look),
};

/// Maximum number of retained objects of a collection that are examined.
const MAX_STEPS: u32 = 1 << 10;

fn look(look: &CollectionLook<'_, '_>, collection: &FewElements, sink: &mut FindingSink) {
    match collection.plain {
        _ if collection.elements != 1 => {}
        Some(list) => plain(look, &list, sink),
        None => report_single_element(look, collection.object, sink),
    }
}

/// Examines a list of one element and its array.
fn plain(look: &CollectionLook<'_, '_>, list: &Saving, sink: &mut FindingSink) {
    let [object, array] = [list.object, list.other].map(ObjectIndex);
    if !look.search.is_dominated_by(array, object) {
        return;
    }
    let (class, before) = (look.search.class(object), sink.freed.len());
    let mut bytes = list.bytes.saturating_add(class.map_or(0, |class| look.search.sizes.instance(class).0));
    sink.freed.extend([object.0, array.0]);
    let outer = look.outermost(object);
    let mut above = object;
    while above != outer {
        let Some(wrapper) = look.search.dominator(above) else { break };
        above = wrapper;
        bytes = bytes.saturating_add(look.search.shallow_bytes(above));
        sink.freed.push(above.0);
        if sink.freed.len() - before > MAX_OBJECTS as usize {
            break;
        }
    }
    let class = look.search.class(outer).map(PartKey::Class);
    sink.push(Saving::new(outer, bytes), class, (0, 0));
}

fn report_single_element(look: &CollectionLook<'_, '_>, object: ObjectIndex, sink: &mut FindingSink) {
    let tree = &look.search.dump.graph.tree;
    let objects = &look.search.dump.objects;
    // A table that another collection shares is not freed.
    let table =
        look.usage(object).and_then(|usage| objects.value_at(objects.instance(object)?, usage.array?));
    let table = table.and_then(|table| objects.object(table));
    if table.is_some_and(|table| !look.search.is_dominated_by(table, object)) {
        return;
    }
    let Some(entry) = look.collections.only_entry(object) else { return };
    let of_entry = [entry.key, Some(entry.value)].map(|value| objects.object(value?));
    let outer = look.outermost(object);
    let Some(position) = tree.reachable_position(outer) else { return };
    let end = tree.end(position);
    let (mut here, mut bytes, mut steps) = (position, 0u64, 0);
    let before = sink.freed.len();
    while here < end {
        steps += 1;
        let Some(part) = tree.object_at(here) else { break };
        if of_entry.contains(&Some(part)) || !is_of_collection(look, part) {
            here = tree.end(here);
            continue;
        }
        bytes = bytes.saturating_add(tree.shallow_bytes(here));
        sink.freed.push(part.0);
        here = TreePosition(here.0 + 1);
        if steps > MAX_STEPS || sink.freed.len() - before > MAX_OBJECTS as usize {
            sink.freed.truncate(before);
            return;
        }
    }
    let class = look.search.class(outer).map(PartKey::Class);
    sink.push(Saving::new(outer, bytes), class, (0, 0));
}

/// Returns whether an object can be a part of a collection: a table, a node, a view, a lock.
fn is_of_collection(look: &CollectionLook<'_, '_>, object: ObjectIndex) -> bool {
    let summary = look.search.dump.summary;
    let class = look.search.class(object).and_then(|class| summary.class(class));
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
