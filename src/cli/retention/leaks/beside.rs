//! JSON keys in addition to the suspects: class loaders, finalizers, memory outside the heap.

use crate::cli::prelude::*;
use hprof_query::leaks::loader_holders::{LoaderHolder, LoaderHolderKind};
use hprof_query::leaks::loaders::LoaderGroup;
use hprof_query::leaks::off_heap::BufferOwner;
use hprof_query::leaks::{Cause, Conclusion};
use hprof_query::loaders::loader_sets::RootPath;
use hprof_query::paths::steps::ObjectStep;
use hprof_report::column::JsonField;
use hprof_report::value::{id, list, record};
use hprof_values::ObjectId;

use crate::cli::shared::beside_recording::ComparedRecording;
use crate::cli::shared::paths;

use super::{LeaksReport, facts, loaders, words};

/// Returns the keys in addition to the suspects.
pub(super) fn columns<'a>() -> Columns<'a, &'a LeaksReport> {
    let lines = |told: &&'a LeaksReport| facts::lines(told);
    Columns::new([
        Column::new(names::TOTAL.dot(names::REACHABLE_BYTES), |told: &&'a LeaksReport| {
            told.leaks.reachable_bytes.into()
        }),
        Column::new(names::TOTAL.dot(names::THRESHOLD_BYTES), |told: &&'a LeaksReport| {
            told.leaks.threshold_bytes.into()
        }),
        Column::new(names::TOTAL.dot(names::ACCUMULATIONS), |told: &&'a LeaksReport| {
            told.leaks.accumulations().count().into()
        }),
        Column::new(names::HEADLINE, |told: &&'a LeaksReport| words::headline(&told.leaks).into()),
        Column::with_fields(names::CONCLUSIONS, conclusion_fields(), |told: &&'a LeaksReport| {
            list(told.leaks.conclusions.iter().map(|one| conclusion(told, one)))
        }),
        Column::records(names::LOADER_GROUPS, loader_groups(), |told: &&'a LeaksReport| &told.leaks.loaders),
        Column::new(names::FINALIZER_QUEUE, |told: &&'a LeaksReport| told.facts.finalizer_queue.into())
            .or_null(nulls::UNSTATED),
        Column::record(names::OFF_HEAP, off_heap(), |told: &&'a LeaksReport| Some(*told)),
        Column::new(names::UNREACHABLE_BYTES, |told: &&'a LeaksReport| told.unreachable.0.into()),
        Column::record(names::RECORDING, ComparedRecording::columns(), |told: &&'a LeaksReport| {
            told.recording.clone()
        })
        .or_null(nulls::NONE),
        Column::new(names::FACTS, move |told: &&'a LeaksReport| list(lines(told))),
    ])
}

fn conclusion_fields() -> Vec<JsonField> {
    vec![
        JsonField::new(names::SENTENCE),
        JsonField::new(names::RETAINED_BYTES),
        JsonField::new(names::LOADER_GROUP).or_null("it is a suspect"),
        JsonField::new(names::SUSPECT_RANKS),
    ]
}

fn conclusion<'a>(told: &LeaksReport, one: &Conclusion) -> Value<'a> {
    let number = |at: &usize| Value::from(*at as u64 + 1);
    let (group, parts) = match &one.cause {
        Cause::Suspect(_) => (None, [].as_slice()),
        Cause::Loaders { group, suspects, .. } => (Some(*group as u64 + 1), suspects.as_slice()),
    };
    let own = one.suspect();
    let suspects = std::iter::once(&own).chain(parts);
    record([
        (names::SENTENCE, words::conclusion(&told.leaks, one).into()),
        (names::RETAINED_BYTES, one.retained_bytes.into()),
        (names::LOADER_GROUP, group.into()),
        (names::SUSPECT_RANKS, list(suspects.map(number))),
    ])
}

fn loader_groups<'c>() -> Columns<'c, LoaderGroup> {
    Columns::new([
        Column::new(names::CLASS, |group: &LoaderGroup| group.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LOADERS, |group: &LoaderGroup| group.loaders.into()),
        Column::new(names::DEFINES, |group: &LoaderGroup| group.defines.as_ref().into())
            .or_null(nulls::UNSTATED),
        Column::new(names::CLASSES, |group: &LoaderGroup| group.classes.into()),
        Column::new(names::RETAINED_BYTES, |group: &LoaderGroup| group.retained_bytes.into()),
        Column::new(names::APPLICATION, |group: &LoaderGroup| group.application.as_ref().into())
            .or_null("no other deployment of it is known to run"),
        Column::new(names::IS_CLOSED, |group: &LoaderGroup| group.are_closed.into()),
        Column::records(names::LOADER_HOLDERS, loader_holders(), |group: &LoaderGroup| &group.holders),
        Column::records(names::PATHS, loader_paths(), |group: &LoaderGroup| &group.paths),
    ])
}

/// Returns the columns for the holders of class loaders.
pub(super) fn loader_holders<'c>() -> Columns<'c, LoaderHolder> {
    Columns::new([
        Column::new(names::HOLDER_KIND, |holder: &LoaderHolder| holder.kind.name().into()),
        Column::new(names::LOADERS, |holder: &LoaderHolder| holder.loaders.into()),
        Column::new(names::HOLDER_NAMES, |holder: &LoaderHolder| list(holder.names.iter())),
        Column::new(names::HOLDER_NAME_COUNT, |holder: &LoaderHolder| holder.name_count.into()),
        Column::new(names::LOADER_OBJECT, |holder: &LoaderHolder| {
            id(holder.example.as_ref().map(|(loader, _)| *loader))
        })
        .or_null(nulls::NO_PATH),
        Column::new(names::ROOT_TEXT, |holder: &LoaderHolder| {
            holder.example.as_ref().map(|(_, why)| paths::describe_root(&why.root)).into()
        })
        .or_null(nulls::NO_PATH),
        Column::with_fields(names::PATH_TO_ROOT, path_fields(), |holder: &LoaderHolder| {
            list(holder.example.iter().flat_map(|(_, why)| &why.steps).map(step))
        }),
    ])
}

fn loader_paths<'c>() -> Columns<'c, (ObjectId, LoaderHolderKind, RootPath)> {
    /// A class loader, the kind of its holder, and a path from a GC root to it.
    type LoaderPath = (ObjectId, LoaderHolderKind, RootPath);
    Columns::new([
        Column::new(names::LOADER_OBJECT, |(loader, ..): &LoaderPath| id(*loader)),
        Column::new(names::KEEPER, |(_, kind, _): &LoaderPath| loaders::keeper(*kind).into()),
        Column::new(names::ROOT_TEXT, |(.., why): &LoaderPath| paths::describe_root(&why.root).into()),
        Column::with_fields(names::PATH_TO_ROOT, path_fields(), |(.., why): &LoaderPath| {
            list(why.steps.iter().map(step))
        }),
    ])
}

fn off_heap<'c>() -> Columns<'c, &'c LeaksReport> {
    Columns::new([
        Column::new(names::DIRECT_BUFFERS, |told: &&LeaksReport| told.leaks.off_heap.direct.buffers.into()),
        Column::new(names::DIRECT_BYTES, |told: &&LeaksReport| told.leaks.off_heap.direct.bytes.into()),
        Column::new(names::MAPPED_BUFFERS, |told: &&LeaksReport| told.leaks.off_heap.mapped.buffers.into()),
        Column::new(names::MAPPED_BYTES, |told: &&LeaksReport| told.leaks.off_heap.mapped.bytes.into()),
        Column::new(names::RESERVED_BYTES, |told: &&LeaksReport| told.leaks.off_heap.reserved_bytes.into())
            .or_null(nulls::UNSTATED),
        Column::new(names::LIMIT_BYTES, |told: &&LeaksReport| told.leaks.off_heap.limit_bytes.into())
            .or_null(nulls::UNSTATED),
        Column::records(names::OWNERS, buffer_owners(), |told: &&LeaksReport| &told.leaks.off_heap.owners),
    ])
}

fn buffer_owners<'c>() -> Columns<'c, BufferOwner> {
    Columns::new([
        Column::new(names::FIELD, |owner: &BufferOwner| owner.field.as_ref().into()).or_null(nulls::NONE),
        Column::new(names::BUFFERS, |owner: &BufferOwner| owner.buffers.buffers.into()),
        Column::new(names::CAPACITY_BYTES, |owner: &BufferOwner| owner.buffers.bytes.into()),
    ])
}

/// Returns the fields of a step of a path.
pub(super) fn path_fields() -> Vec<JsonField> {
    vec![
        JsonField::new(names::OBJECT),
        JsonField::new(names::CLASS).or_null(nulls::CLASS_MISSING),
        JsonField::new(names::FIELD).or_null("it is the root, or the dump does not say"),
        JsonField::new(names::IS_STATIC),
        JsonField::new(names::LABEL).or_null(nulls::NONE_LISTED),
        JsonField::new(names::RETAINED_BYTES),
    ]
}

/// Converts a step of a path to a JSON record.
pub(super) fn step(step: &ObjectStep) -> Value<'_> {
    let is_class_object = step.class.as_deref() == Some("java.lang.Class");
    let (class, label) = match (&step.class, &step.label) {
        (_, Some(label)) if is_class_object => (Some(label), None),
        (class, label) => (class.as_ref(), label.as_ref()),
    };
    record([
        (names::OBJECT, id(step.id)),
        (names::CLASS, class.into()),
        (names::FIELD, step.reference.as_ref().into()),
        (names::IS_STATIC, step.is_static.into()),
        (names::LABEL, label.into()),
        (names::RETAINED_BYTES, step.retained_bytes.into()),
    ])
}
