//! Arrays of one reference.

use crate::waste::findings::FindingSink;
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedArray;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "single_element_arrays",
    summary: "Arrays with a single reference",
    meaning: "Arrays of references of which exactly one is not null, except tables of collections. Freed: \
        the arrays, as if the field referred directly to the element.",
    harmless: "If they are about to be filled, or if an interface requires an array.",
    remedy: "Store the first element in a field of its own, or shorten the array.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::ReferenceArrays(look),
};

fn look(array: &VisitedArray<'_, '_>, sink: &mut FindingSink) {
    if array.references == 1 {
        sink.push(array.saving(array.bytes), array.part(), (1, array.length));
    }
}
