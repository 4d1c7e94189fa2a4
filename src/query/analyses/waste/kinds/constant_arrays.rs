//! Primitive arrays in which all elements are equal.

use crate::waste::findings::FindingSink;
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedArray;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "constant_arrays",
    summary: "Primitive arrays with one repeated value",
    meaning: "Primitive arrays of two or more elements that all have the same value, usually zero because \
        nothing was ever written to them. Freed: the arrays.",
    harmless: "If they are buffers that wait for data, or if zero is a real measurement.",
    remedy: "Allocate an array only when there is something to put into it. If all values are the same, \
        store a single number.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::PrimitiveArrays(look),
};

fn look(array: &VisitedArray<'_, '_>, sink: &mut FindingSink) {
    if array.is_constant {
        sink.push(array.saving(array.bytes), array.part(), (0, 0));
    }
}
