//! Objects that wait for the finalizer, classes that are loaded more than once, unreachable objects.

use std::io;

use rustc_hash::FxHashSet;

use super::findings::{Findings, Frees, Saving};
use super::{WasteKind, WasteSearch};
use crate::dominators::retained_of_set::tops;
use crate::leaks::heap_facts::finalizers;
use crate::sorting::SortRows;
use hprof_index::graph::numbers::{ObjectIndex, TreePosition};
use hprof_index::model::summary::ClassNumber;
use hprof_index::model::tables::ClassKind;
use hprof_parser::ObjectId;

/// Name parts of classes generated at run time: different classes of different loaders may have the same name.
const MADE: [&str; 4] = [
    "$Proxy",
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
];

/// Returns whether a class is generated at run time.
pub(crate) fn is_made(name: &str) -> bool {
    let simple = hprof_parser::names::simple(name);
    MADE.iter().any(|made| simple.starts_with(made))
}

/// Class that links the objects in a queue.
const REFERENCE: &str = "java.lang.ref.Reference";

/// Finds the remaining kinds.
pub(super) fn find(search: &WasteSearch<'_>, unreachable_bytes: u64) -> io::Result<Vec<Findings>> {
    Ok(vec![finalizable(search)?, duplicate_classes(search)?, unreachable(search, unreachable_bytes)?])
}

/// Finds objects that wait for `finalize`: the chain of a `java.lang.ref.ReferenceQueue`.
fn finalizable(search: &WasteSearch<'_>) -> io::Result<Findings> {
    let objects = &search.objects;
    // A Finalizer has a `next` of its own, for those that do not wait.
    let Some(reference) = search.summary.boot_class(REFERENCE) else {
        return Ok(Findings::new(WasteKind::Finalizable, Frees::Retained));
    };
    let field = |object, name| objects.object(objects.field_of(object, reference, name)?);
    let mut next = finalizers(objects).and_then(|queue| objects.reference(queue, "head"));
    let (mut waiting, mut seen) = (Vec::new(), FxHashSet::default());
    // The last one refers to itself.
    while let Some(finalizer) = next.filter(|finalizer| seen.insert(finalizer.0)) {
        waiting.push(finalizer);
        next = field(finalizer, "next");
    }
    retained(search, WasteKind::Finalizable, &waiting, |finalizer| {
        field(finalizer, "referent").and_then(|referent| search.class(referent))
    })
}

/// Finds classes of the same name that other class loaders have defined.
fn duplicate_classes(search: &WasteSearch<'_>) -> io::Result<Findings> {
    let summary = search.summary;
    let dumped = summary.numbered_classes().filter(|(_, row)| {
        let name = summary.class_name(row);
        row.is_dumped() && row.kind() == ClassKind::Instance && !name.ends_with("[]") && !is_made(name)
    });
    let mut classes: Vec<(&str, ObjectId, ObjectIndex)> = dumped
        .filter_map(|(number, row)| {
            let object = search.graph.class_object(number)?;
            let is_reachable = search.reachable.contains(object);
            is_reachable.then(|| (summary.class_name(row), row.loader.into(), object))
        })
        .collect();
    // The first by object ID stays.
    classes.sort_rows_by_key(|(name, _, object)| (*name, *object));
    let mut others = Vec::new();
    for same_name in classes.chunk_by(|a, b| a.0 == b.0) {
        let Some(((_, loader, _), rest)) = same_name.split_first() else { continue };
        others.extend(rest.iter().filter(|(_, other, _)| other != loader).map(|(_, _, object)| *object));
    }
    retained(search, WasteKind::DuplicateClasses, &others, |object| {
        search.graph.class_of_class_object(object)
    })
}

/// Returns what some objects retain by the dominator tree; objects that several of them hold together do not count.
fn retained(
    search: &WasteSearch<'_>,
    kind: WasteKind,
    objects: &[ObjectIndex],
    class: impl Fn(ObjectIndex) -> Option<ClassNumber>,
) -> io::Result<Findings> {
    let tree = &search.graph.tree;
    let tops: FxHashSet<TreePosition> = tops(tree, objects.iter().copied()).into_iter().collect();
    let saving = |object: &ObjectIndex| {
        // If another one retains it, it counts there.
        let position = tree.reachable_position(*object).filter(|position| tops.contains(position));
        Saving::of(*object, position.map_or(0, |position| tree.retained_bytes(position)))
    };
    let savings: Vec<Saving> = objects.iter().map(saving).collect();
    Ok(Findings::by_class(kind, Frees::Retained, search.room.copy(&savings)?, class))
}

fn unreachable(search: &WasteSearch<'_>, bytes: u64) -> io::Result<Findings> {
    let tree = &search.graph.tree;
    let mut findings = Findings::new(WasteKind::Unreachable, Frees::Unreachable);
    findings.count = u64::from(tree.objects().saturating_sub(tree.reachable()));
    findings.bytes = bytes;
    Ok(findings)
}
