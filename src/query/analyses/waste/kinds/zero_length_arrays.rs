//! Arrays of length 0.

use std::io;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::waste::WasteSearch;
use crate::waste::findings::{Findings, Saving};
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::ClassNumber;
use hprof_values::{BasicType, ObjectId};

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "zero_length_arrays",
    summary: "Arrays of length 0",
    meaning: "Arrays of length 0. Freed: all but one of each type, which can be shared.",
    harmless: "If they are few: each takes 16 bytes.",
    remedy: "Store one in a static final field and return it.",
    frees: WasteEffect::Objects,
    is_sampled: true,
    finds: WasteFinder::AfterPasses(find),
};

/// Finds the arrays, except for one array of each class, which could replace the others: the first by object ID that a static
/// field holds, otherwise the last. Objects of the JDK, which a program could use, are at the end of the heap.
fn find(search: &WasteSearch<'_>, passes: &mut Passes) -> io::Result<Findings> {
    let held = held_by_statics(search);
    let all = || passes.zero_length.iter().flat_map(|savings| savings.iter());
    let class = |saving: &Saving| search.class(ObjectIndex(saving.object));
    let mut stays: FxHashMap<ClassNumber, (bool, u32)> = FxHashMap::default();
    for saving in all() {
        let Some(class) = class(saving) else { continue };
        let stay = stays.entry(class).or_default();
        if !stay.0 {
            *stay = (held.contains(&saving.object), saving.object);
        }
    }
    let goes = |saving: &&Saving| {
        let stays = class(saving).and_then(|class| stays.get(&class));
        stays.is_none_or(|(_, object)| *object != saving.object)
    };
    let rest: Vec<Saving> = all().filter(goes).copied().collect();
    Ok(Findings::by_class(search.room.copy(&rest)?, |object| search.class(object)))
}

fn held_by_statics(search: &WasteSearch<'_>) -> FxHashSet<u32> {
    let statics = search.dump.summary.classes().iter().flat_map(|class| search.dump.summary.statics(class));
    let objects = statics.filter(|(_, kind, _)| *kind == BasicType::Object);
    objects
        .filter_map(|(_, _, id)| search.dump.graph.objects.addresses.index_of(ObjectId(id)))
        .map(|object| object.0)
        .collect()
}
