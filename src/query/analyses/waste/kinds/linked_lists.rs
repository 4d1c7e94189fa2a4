//! LinkedLists, which need more memory than ArrayLists.

use crate::waste::collection_look::{CollectionLook, FewElements};
use crate::waste::findings::{FindingSink, Saving};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use hprof_values::BasicType;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "linked_lists",
    summary: "LinkedLists, which need more memory than ArrayLists",
    meaning: "LinkedLists, which store each element in a node of 24 bytes or more. Freed: the additional \
        size compared with an ArrayList of exact capacity.",
    harmless: "If they are few.",
    remedy: "Use ArrayList for lists and ArrayDeque for queues: they are also faster.",
    frees: WasteEffect::Part,
    is_sampled: true,
    finds: WasteFinder::Collections(look),
};

fn look(look: &CollectionLook<'_, '_>, collection: &FewElements, sink: &mut FindingSink) {
    let object = collection.object;
    if collection.elements == 0 || !look.usage(object).is_some_and(|usage| usage.is_linked) {
        return;
    }
    let tree = &look.search.dump.graph.tree;
    let (Some([list, node, array_list]), Some(position)) = (look.linked, tree.reachable_position(object))
    else {
        return;
    };
    // The stated size of a list may exceed its number of elements.
    let elements = u64::from(collection.elements.min(tree.retained_objects(position) - 1));
    let array = look.search.sizes.layout().array_size(BasicType::Object, elements);
    let now = elements.saturating_mul(node).saturating_add(list);
    let bytes = now.saturating_sub(array.saturating_add(array_list));
    if bytes > 0 {
        sink.push(Saving::new(object, bytes), None, (0, 0));
    }
}
