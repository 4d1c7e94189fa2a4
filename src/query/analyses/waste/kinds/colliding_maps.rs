//! Maps in which most entries collide with other entries.

use crate::waste::findings::{FindingSink, PartKey, Saving};
use crate::waste::kind::{WasteEffect, WasteFinder, WasteKind};
use crate::waste::visited::VisitedTable;
use hprof_values::be_ids;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "colliding_maps",
    summary: "Maps in which most entries collide",
    meaning: "Hash maps of 8 or more entries in which more than half of the entries share a bucket with an \
        earlier entry. `ratio` is the collision ratio, as in Eclipse MAT. Freed: the additional size of \
        tree nodes compared with plain nodes. The larger cost is time.",
    harmless: "If the map is small and seldom read.",
    remedy: "Improve hashCode() of the keys: keys that are not equal should rarely have the same hash code.",
    frees: WasteEffect::Part,
    is_sampled: true,
    finds: WasteFinder::Tables(look),
};

/// Minimum number of entries of a map that is checked for collisions.
const MIN_ENTRIES: u64 = 8;

fn look(table: &VisitedTable<'_, '_>, sink: &mut FindingSink) {
    let elements = table.elements;
    if !table.usage.is_hash || elements < MIN_ENTRIES {
        return;
    }
    let ids = be_ids(table.ids, table.search.dump.summary.id_size());
    let used = ids.filter(|id| !id.is_null()).count() as u64;
    let collisions = elements.saturating_sub(used);
    if collisions * 2 > elements {
        let saving = Saving::new(table.collection, table.look.tree_bytes(table.collection, elements));
        sink.push(saving, Some(PartKey::Class(table.class)), (collisions, elements));
    }
}
