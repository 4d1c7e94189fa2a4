//! Buffers that are longer than their used part.

use crate::waste::findings::{FindingSink, PartKey};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::plan::Plan;
use crate::waste::visited::VisitedArray;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::array_contents::zeros_at_end;
use hprof_index::model::summary::ClassNumber;
use hprof_values::BasicType;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "unused_array_ends",
    summary: "Buffers longer than their used part",
    meaning: "Buffers longer than their used part. Its length is in a field (StringBuilder.count, \
        ByteArrayOutputStream.count and so on); in other byte[] and char[], the unused part is zeros in at \
        least the second half. Freed: the unused part.",
    harmless: "If the buffer is about to be filled, as those of open streams are. Zeros can be data.",
    remedy: "Release a StringBuilder after toString(), trim with trimToSize() or Arrays.copyOf(), or \
        choose an initial capacity that fits.",
    frees: WasteEffect::Part,
    is_sampled: true,
    finds: WasteFinder::PrimitiveArrays(look),
};

fn look(array: &VisitedArray<'_, '_>, sink: &mut FindingSink) {
    let VisitedArray { search, length, elements, .. } = *array;
    let mut by_class: Option<(u32, ClassNumber)> = None;
    for held in array.held {
        if let Plan::Buffer(buffer) = array.plans.plan_of(search.class(ObjectIndex(held.holder))) {
            let used = by_class.map_or(0, |(used, _)| used).max(held.says[0]);
            by_class = Some((used, by_class.map_or(buffer.class, |(_, class)| class)));
        }
    }
    let (used, part) = match by_class {
        Some((used, class)) => (u64::from(used).min(length), PartKey::Buffer(class)),
        None if array.is_constant || !array.has_contents => return,
        None => {
            let width = match array.element {
                BasicType::Byte => 1,
                BasicType::Char => 2,
                _ => return,
            };
            let used = (elements.len() - zeros_at_end(elements)).div_ceil(width) as u64;
            if (length - used.min(length)) * 2 < length {
                return;
            }
            (used, PartKey::Zeros(array.class))
        }
    };
    let used_bytes = search.sizes.layout().array_size(array.element, used);
    let bytes = array.bytes.saturating_sub(used_bytes);
    if bytes > 0 {
        sink.push(array.saving(bytes), Some(part), (used, length));
    }
}
