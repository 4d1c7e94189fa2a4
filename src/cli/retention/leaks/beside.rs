//! What stands beside the suspects in JSON: class loaders, finalizers, memory outside of the heap.

use hprof_query::leaks::loaders::LoaderGroup;
use hprof_query::leaks::off_heap::BufferOwner;
use hprof_query::leaks::{Cause, Conclusion};
use hprof_report::column::{Column, Columns, Field, Kind};
use hprof_report::value::{Value, id, list, record};

use crate::cli::shared::paths;

use super::columns::{path_fields, step};
use super::{Told, facts, loaders, words};

pub(super) fn columns<'a>() -> Columns<'a, &'a Told> {
    let lines = |told: &&'a Told| facts::lines(told);
    Columns::new([
        Column::integer("total.reachable_bytes", "what all reachable objects take", |told: &&'a Told| {
            told.leaks.reachable_bytes.into()
        }),
        Column::integer("total.threshold_bytes", "what a suspect retains more than", |told: &&'a Told| {
            told.leaks.threshold_bytes.into()
        }),
        Column::integer(
            "total.accumulations",
            "rows whose verdict is `accumulation`, without those that retain less than 1 percent of all objects",
            |told: &&'a Told| told.leaks.accumulations().count().into(),
        ),
        Column::text(
            "headline",
            "what is wrong with the heap, in a line; for people: can change in any version",
            |told: &&'a Told| words::headline(&told.leaks).into(),
        ),
        Column::new(
            "conclusions",
            Kind::Records(conclusion_fields()),
            "what is concluded, that whose cause retains most first; the headline says how many, and the first",
            |told: &&'a Told| list(told.leaks.conclusions.iter().map(|one| conclusion(told, one))),
        ),
        Column::new(
            "loaders",
            Kind::Records(loader_fields()),
            "class loaders that define classes of the same names, three or more of them: deployments of one application; \
             those that retain 1 percent of the reachable bytes or more by the dominator tree alone, three groups at most",
            |told: &&'a Told| list(told.leaks.loaders.iter().map(loader_group)),
        ),
        Column::integer("finalizer_queue", "objects that wait for the finalizer", |told: &&'a Told| {
            told.facts.finalizer_queue.into()
        })
        .or_null("the dump does not say"),
        Column::new(
            "off_heap",
            Kind::Record(off_heap_fields()),
            "memory outside of the heap, each piece counted once; not what the JDK maps for itself",
            |told: &&'a Told| off_heap(told),
        ),
        Column::integer("unreachable_bytes", "what unreachable objects take", |told: &&'a Told| {
            told.unreachable.0.into()
        }),
        Column::new(
            "facts",
            Kind::List(Box::new(Kind::Text)),
            "what is said beside the suspects; for people: can change in any version",
            move |told: &&'a Told| list(lines(told)),
        ),
    ])
}

fn conclusion_fields() -> Vec<Field> {
    vec![
        Field::new("sentence", Kind::Text, "the conclusion; for people: can change in any version"),
        Field::new(
            "retained_bytes",
            Kind::Integer,
            "what accumulates there, or what the class loaders retain",
        ),
        Field::new("loaders", Kind::Integer, "the group of `loaders` that it is about, from 1")
            .or_null("it is a suspect"),
        Field::new(
            "suspects",
            Kind::List(Box::new(Kind::Integer)),
            "the rows that it is about, from 1; of class loaders those that are parts of it",
        ),
    ]
}

fn conclusion<'a>(told: &Told, one: &Conclusion) -> Value<'a> {
    let number = |at: &usize| Value::from(*at as u64 + 1);
    let (group, suspects) = match &one.cause {
        Cause::Suspect(at) => (None, std::slice::from_ref(at)),
        Cause::Loaders { group, suspects } => (Some(*group as u64 + 1), suspects.as_slice()),
    };
    record([
        ("sentence", words::conclusion(&told.leaks, one).into()),
        ("retained_bytes", one.retained_bytes.into()),
        ("loaders", group.into()),
        ("suspects", list(suspects.iter().map(number))),
    ])
}

fn loader_fields() -> Vec<Field> {
    vec![
        Field::new("class", Kind::Text, "the loaders' class").or_null("the dump does not say"),
        Field::new("loaders", Kind::Integer, "how many"),
        Field::new("defines", Kind::Text, "a class that each defines").or_null("the dump does not say"),
        Field::new("classes", Kind::Integer, "classes that each defines"),
        Field::new("retained_bytes", Kind::Integer, "what they retain together, with classes and instances"),
        Field::new(
            "paths",
            Kind::Records(vec![
                Field::new("loader", Kind::Id, "the loader"),
                Field::new(
                    "keeper",
                    Kind::Text,
                    "what keeps it alive, in words: `a ThreadLocal`, `a JDBC driver`",
                ),
                Field::new("root", Kind::Text, "why the path starts there, in words"),
                Field::new(
                    "path",
                    Kind::Records(path_fields()),
                    "the shortest path to it; of more than 400 objects the middle is left out",
                ),
            ]),
            "why they are alive, twenty of them at most, fewer where paths are long",
        ),
    ]
}

fn loader_group(group: &LoaderGroup) -> Value<'_> {
    let paths = group.paths.iter().map(|(loader, why)| {
        record([
            ("loader", id(*loader)),
            ("keeper", loaders::keeper(why).into()),
            ("root", paths::describe_root(&why.root).into()),
            ("path", list(why.steps.iter().map(step))),
        ])
    });
    record([
        ("class", group.class.as_ref().into()),
        ("loaders", group.loaders.into()),
        ("defines", group.defines.as_ref().into()),
        ("classes", group.classes.into()),
        ("retained_bytes", group.retained_bytes.into()),
        ("paths", list(paths)),
    ])
}

fn off_heap_fields() -> Vec<Field> {
    vec![
        Field::new("direct_buffers", Kind::Integer, "direct ByteBuffers, without views"),
        Field::new("direct_bytes", Kind::Integer, "the sum of their capacities"),
        Field::new("mapped_buffers", Kind::Integer, "mapped files"),
        Field::new("mapped_bytes", Kind::Integer, "the sum of their sizes"),
        Field::new("reserved_bytes", Kind::Integer, "what `java.nio.Bits` counts as reserved")
            .or_null("the dump does not say"),
        Field::new("limit_bytes", Kind::Integer, "what it reserves at most").or_null("the dump does not say"),
        Field::new(
            "owners",
            Kind::Records(vec![
                Field::new("field", Kind::Text, "a field of a class that is not the JDK's")
                    .or_null("there is none"),
                Field::new("buffers", Kind::Integer, "buffers below it"),
                Field::new("bytes", Kind::Integer, "their capacities"),
            ]),
            "who has most of the thousand largest of both",
        ),
    ]
}

fn off_heap(told: &Told) -> Value<'_> {
    let found = &told.facts.off_heap;
    let owner = |owner: &'_ BufferOwner| {
        record([
            ("field", owner.field.clone().into()),
            ("buffers", owner.buffers.buffers.into()),
            ("bytes", owner.buffers.bytes.into()),
        ])
    };
    record([
        ("direct_buffers", found.direct.buffers.into()),
        ("direct_bytes", found.direct.bytes.into()),
        ("mapped_buffers", found.mapped.buffers.into()),
        ("mapped_bytes", found.mapped.bytes.into()),
        ("reserved_bytes", found.reserved_bytes.into()),
        ("limit_bytes", found.limit_bytes.into()),
        ("owners", list(found.owners.iter().map(owner))),
    ])
}
