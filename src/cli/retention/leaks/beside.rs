//! What stands beside the suspects in JSON: class loaders, finalizers, memory outside of the heap.

use hprof_query::dictionary::names;
use hprof_query::leaks::loaders::LoaderGroup;
use hprof_query::leaks::off_heap::BufferOwner;
use hprof_query::leaks::{Cause, Conclusion};
use hprof_report::column::{Column, Columns, Field};
use hprof_report::value::{Value, id, list, record};

use crate::cli::shared::paths;

use super::columns::{path_fields, step};
use super::{Told, facts, loaders, words};

pub(super) fn columns<'a>() -> Columns<'a, &'a Told> {
    let lines = |told: &&'a Told| facts::lines(told);
    Columns::new([
        Column::of(names::TOTAL.dot(names::REACHABLE_BYTES), |told: &&'a Told| {
            told.leaks.reachable_bytes.into()
        }),
        Column::of(names::TOTAL.dot(names::THRESHOLD_BYTES), |told: &&'a Told| {
            told.leaks.threshold_bytes.into()
        }),
        Column::of(names::TOTAL.dot(names::ACCUMULATIONS), |told: &&'a Told| {
            told.leaks.accumulations().count().into()
        }),
        Column::of(names::HEADLINE, |told: &&'a Told| words::headline(&told.leaks).into()),
        Column::nested(names::CONCLUSIONS, conclusion_fields(), |told: &&'a Told| {
            list(told.leaks.conclusions.iter().map(|one| conclusion(told, one)))
        }),
        Column::nested(names::LOADER_GROUPS, loader_fields(), |told: &&'a Told| {
            list(told.leaks.loaders.iter().map(loader_group))
        }),
        Column::of(names::FINALIZER_QUEUE, |told: &&'a Told| told.facts.finalizer_queue.into())
            .or_null("the dump does not say"),
        Column::nested(names::OFF_HEAP, off_heap_fields(), |told: &&'a Told| off_heap(told)),
        Column::of(names::UNREACHABLE_BYTES, |told: &&'a Told| told.unreachable.0.into()),
        Column::of(names::FACTS, move |told: &&'a Told| list(lines(told))),
    ])
}

fn conclusion_fields() -> Vec<Field> {
    vec![
        Field::of(names::SENTENCE),
        Field::of(names::RETAINED_BYTES),
        Field::of(names::LOADER_GROUP).or_null("it is a suspect"),
        Field::of(names::SUSPECT_RANKS),
    ]
}

fn conclusion<'a>(told: &Told, one: &Conclusion) -> Value<'a> {
    let number = |at: &usize| Value::from(*at as u64 + 1);
    let (group, suspects) = match &one.cause {
        Cause::Suspect(at) => (None, std::slice::from_ref(at)),
        Cause::Loaders { group, suspects } => (Some(*group as u64 + 1), suspects.as_slice()),
    };
    record([
        (names::SENTENCE, words::conclusion(&told.leaks, one).into()),
        (names::RETAINED_BYTES, one.retained_bytes.into()),
        (names::LOADER_GROUP, group.into()),
        (names::SUSPECT_RANKS, list(suspects.iter().map(number))),
    ])
}

fn loader_fields() -> Vec<Field> {
    vec![
        Field::of(names::CLASS).or_null("the dump does not say"),
        Field::of(names::LOADERS),
        Field::of(names::DEFINES).or_null("the dump does not say"),
        Field::of(names::CLASSES),
        Field::of(names::RETAINED_BYTES),
        Field::nested(
            names::PATHS,
            vec![
                Field::of(names::LOADER_OBJECT),
                Field::of(names::KEEPER),
                Field::of(names::ROOT_TEXT),
                Field::nested(names::PATH_TO_ROOT, path_fields()),
            ],
        ),
    ]
}

fn loader_group(group: &LoaderGroup) -> Value<'_> {
    let paths = group.paths.iter().map(|(loader, why)| {
        record([
            (names::LOADER_OBJECT, id(*loader)),
            (names::KEEPER, loaders::keeper(why).into()),
            (names::ROOT_TEXT, paths::describe_root(&why.root).into()),
            (names::PATH_TO_ROOT, list(why.steps.iter().map(step))),
        ])
    });
    record([
        (names::CLASS, group.class.as_ref().into()),
        (names::LOADERS, group.loaders.into()),
        (names::DEFINES, group.defines.as_ref().into()),
        (names::CLASSES, group.classes.into()),
        (names::RETAINED_BYTES, group.retained_bytes.into()),
        (names::PATHS, list(paths)),
    ])
}

fn off_heap_fields() -> Vec<Field> {
    vec![
        Field::of(names::DIRECT_BUFFERS),
        Field::of(names::DIRECT_BYTES),
        Field::of(names::MAPPED_BUFFERS),
        Field::of(names::MAPPED_BYTES),
        Field::of(names::RESERVED_BYTES).or_null("the dump does not say"),
        Field::of(names::LIMIT_BYTES).or_null("the dump does not say"),
        Field::nested(
            names::OWNERS,
            vec![
                Field::of(names::FIELD).or_null("there is none"),
                Field::of(names::BUFFERS),
                Field::of(names::CAPACITY_BYTES),
            ],
        ),
    ]
}

fn off_heap(told: &Told) -> Value<'_> {
    let found = &told.facts.off_heap;
    let owner = |owner: &'_ BufferOwner| {
        record([
            (names::FIELD, owner.field.clone().into()),
            (names::BUFFERS, owner.buffers.buffers.into()),
            (names::CAPACITY_BYTES, owner.buffers.bytes.into()),
        ])
    };
    record([
        (names::DIRECT_BUFFERS, found.direct.buffers.into()),
        (names::DIRECT_BYTES, found.direct.bytes.into()),
        (names::MAPPED_BUFFERS, found.mapped.buffers.into()),
        (names::MAPPED_BYTES, found.mapped.bytes.into()),
        (names::RESERVED_BYTES, found.reserved_bytes.into()),
        (names::LIMIT_BYTES, found.limit_bytes.into()),
        (names::OWNERS, list(found.owners.iter().map(owner))),
    ])
}
