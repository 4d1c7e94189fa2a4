//! Classes with the same name that several class loaders define.

use std::io;

use crate::waste::WasteSearch;
use crate::waste::findings::Findings;
use crate::waste::kind::{Passes, WasteEffect, WasteFinder, WasteKind};
use hprof_base::sorting::SortRows;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::ClassKind;
use hprof_values::ObjectId;

pub(super) const DEFINITION: WasteKind = WasteKind {
    name: "duplicate_classes",
    summary: "Classes that several class loaders define",
    meaning: "Classes with the same name as a class that another class loader has already defined. Freed: \
        what the class objects retain, mainly their static fields; metaspace is not in the dump.",
    harmless: "If the applications are separate on purpose.",
    remedy: "Put shared libraries into a parent loader. Several loaders of one application are a leak \
        after a redeployment: see `hprof-cli loaders --duplicates`.",
    frees: WasteEffect::Retained,
    is_sampled: false,
    finds: WasteFinder::AfterPasses(find),
};

/// Parts of names of classes that are generated at run time. Different generated classes of different loaders may have the same
/// name.
const MADE: [&str; 4] = [
    "$Proxy",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
];

/// Returns whether a class is generated at run time.
pub(crate) fn is_made(name: &str) -> bool {
    let simple = hprof_values::names::simple(name);
    MADE.iter().any(|made| simple.starts_with(made))
}

fn find(search: &WasteSearch<'_>, _: &mut Passes) -> io::Result<Findings> {
    let summary = search.dump.summary;
    let dumped = summary.numbered_classes().filter(|(_, row)| {
        let name = summary.class_name(row);
        row.is_dumped() && row.kind() == ClassKind::Instance && !name.ends_with("[]") && !is_made(name)
    });
    let mut classes: Vec<(&str, ObjectId, ObjectIndex)> = dumped
        .filter_map(|(number, row)| {
            let object = search.dump.graph.class_object(number)?;
            let is_reachable = search.reachable.contains(object);
            is_reachable.then(|| (summary.class_name(row), row.loader.into(), object))
        })
        .collect();
    // The first by object ID is not freed.
    classes.sort_rows_by_key(|(name, _, object)| (*name, *object));
    let mut others = Vec::new();
    for same_name in classes.chunk_by(|a, b| a.0 == b.0) {
        let Some(((_, loader, _), rest)) = same_name.split_first() else { continue };
        others.extend(rest.iter().filter(|(_, other, _)| other != loader).map(|(_, _, object)| *object));
    }
    Findings::from_retained(search, &others, |object| search.dump.graph.class_of_class_object(object))
}
