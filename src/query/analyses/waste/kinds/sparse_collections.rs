//! Collections that use at most half of their table.

use crate::waste::findings::{FindingSink, PartKey, Saving};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedTable;
use hprof_model::objects::collections::usage::SlotRule;
use hprof_values::BasicType;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "sparse_collections",
    summary: "Collections that need at most half of their table",
    meaning: "Collections that need at most half of their table. `ratio` is the fill ratio: elements \
        divided by slots. Freed: the difference to a table of the required size.",
    harmless: "If they are about to be filled, because capacity was reserved on purpose.",
    remedy: "Pass the expected number of elements to the constructor, and no more. Call trimToSize() on an \
        ArrayList that is complete. Copy a map that has shrunk.",
    frees: WasteEffect::Part,
    is_sampled: true,
    finds: WasteFinder::Tables(look),
};

fn look(table: &VisitedTable<'_, '_>, sink: &mut FindingSink) {
    let VisitedTable { usage, length, elements, .. } = *table;
    if usage.needs == SlotRule::All {
        return;
    }
    let needed = usage.needs.slots(elements, usage.load.map(|_| table.load));
    if needed <= length / 2 {
        let size = |length| table.search.sizes.layout().array_size(BasicType::Object, length);
        let bytes = size(length).saturating_sub(size(needed));
        if bytes > 0 {
            let saving = Saving { bytes, object: table.collection.0, other: table.object.0 };
            sink.push(saving, Some(PartKey::Class(table.class)), (elements, length));
        }
    }
}
