//! Collections without elements.

use crate::waste::collection_look::{CollectionLook, FewElements, MAX_OBJECTS};
use crate::waste::findings::{FindingSink, PartKey, Saving};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use hprof_index::model::tables::ClassKind;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "empty_collections",
    summary: "Collections without elements",
    meaning: "Lists, sets, maps and deques without elements, with or without a table. Freed: the collection \
        with all that it retains.",
    harmless: "If they are few, or about to be filled.",
    remedy: "Create a collection only when its first element is added. Use Collections.emptyList() and the \
        like if nothing is ever added. Set the field to null when the last element is removed: remove() \
        and clear() do not shrink the table.",
    frees: WasteEffect::Retained,
    is_sampled: true,
    finds: WasteFinder::Collections(look),
};

fn look(look: &CollectionLook<'_, '_>, collection: &FewElements, sink: &mut FindingSink) {
    if collection.elements > 0 {
        return;
    }
    let search = look.search;
    let (tree, summary) = (&search.dump.graph.tree, search.dump.summary);
    let outer = look.outermost(collection.object);
    let Some(position) = tree.reachable_position(outer) else { return };
    if tree.retained_objects(position) > MAX_OBJECTS {
        return;
    }
    let is_array = |object| {
        let class = search.class(object).and_then(|class| summary.class(class));
        class.is_some_and(|class| class.kind() != ClassKind::Instance)
    };
    let has_table = tree.objects_at(position..tree.end(position)).any(is_array);
    let part = if has_table { PartKey::Table } else { PartKey::NoTable };
    sink.push(Saving::new(outer, tree.retained_bytes(position)), Some(part), (0, 0));
}
