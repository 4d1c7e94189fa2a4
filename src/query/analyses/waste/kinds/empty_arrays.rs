//! Arrays of nulls.

use crate::waste::findings::FindingSink;
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedArray;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "empty_arrays",
    summary: "Arrays that contain only null",
    meaning: "Arrays of references in which all elements are null, except tables of collections. Freed: \
        the arrays.",
    harmless: "If they are about to be filled.",
    remedy: "Allocate an array only when there is something to put into it.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::ReferenceArrays(look),
};

fn look(array: &VisitedArray<'_, '_>, sink: &mut FindingSink) {
    if array.references == 0 {
        sink.push(array.saving(array.bytes), array.part(), (0, array.length));
    }
}
