//! Primitive arrays in which all elements are equal.

use crate::waste::findings::Sink;
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedArray;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "constant_arrays",
    summary: "Primitive arrays of one value",
    meaning: "Primitive arrays of two or more elements, all of one value: mostly zero, so nothing was ever \
        written to them. Freed: the arrays.",
    harmless: "If they are buffers that wait for data, or if zero is a real measurement.",
    remedy: "Allocate an array when there is something to put into it; keep one number where all are the \
        same.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::PrimitiveArrays(look),
};

fn look(array: &VisitedArray<'_, '_>, sink: &mut Sink) {
    if array.is_constant {
        sink.push(array.saving(array.bytes), array.part(), (0, 0));
    }
}
