//! Suspects in JSON and CSV.

use hprof_query::leaks::contents::{Level, Reason};
use hprof_query::leaks::evidence::{ClassShare, Owner, Part, Path};
use hprof_query::leaks::thread_locals::ThreadLocalUse;
use hprof_query::leaks::{Kind as SuspectKind, Named, Suspect, What};
use hprof_query::paths::steps::Step;
use hprof_report::column::{Column, Columns, Field, Kind};
use hprof_report::number::hundredths;
use hprof_report::value::{Value, id, list, record};

use crate::cli::shared::paths;

use super::{Told, words};

/// A suspect.
pub(super) struct Row<'a> {
    told: &'a Told,
    suspect: &'a Suspect,
}

impl<'a> Row<'a> {
    pub(super) fn new(told: &'a Told, at: usize) -> Option<Self> {
        Some(Self { told, suspect: told.leaks.suspects.get(at)? })
    }
}

pub(super) fn columns<'a>() -> Columns<'a, Row<'a>> {
    Columns::new([
        Column::text("kind", "`single`: one object; `group`: objects of one class", |row: &Row<'a>| {
            row.suspect.kind.name().into()
        }),
        Column::text(
            "verdict",
            "`accumulation`: at least 80 percent of what is retained at the accumulation point is in many children of one \
             class, in one chain, in one buffer, or in many like threads or loaders; `holder`: it stands above parts of \
             different kinds",
            |row: &Row<'a>| row.suspect.verdict.name().into(),
        ),
        Column::text("what", "`instance`, `class`, `class_loader` or `thread`", |row: &Row<'a>| {
            row.suspect.what.name().into()
        }),
        Column::text(
            "class",
            "its class; of a class object, the class it stands for; of a group, that of its members",
            |row: &Row<'a>| row.suspect.group_class.as_ref().or(row.suspect.object.class.as_ref()).into(),
        )
        .or_null("the dump does not say"),
        Column::id("object", "the object", |row: &Row<'a>| {
            id((row.suspect.kind == SuspectKind::Single).then_some(row.suspect.object.object))
        })
        .or_null("it is a group"),
        Column::text("label", "a few words that tell it from others: a thread's name", |row: &Row<'a>| {
            row.suspect.object.label.as_ref().filter(|_| row.suspect.kind == SuspectKind::Single).into()
        })
        .or_null("there are none, or it is a group"),
        Column::integer("objects", "how many objects", |row: &Row<'a>| row.suspect.objects.into()),
        Column::integer("shallow_bytes", "what they take themselves", |row: &Row<'a>| {
            row.suspect.shallow_bytes.into()
        }),
        Column::integer("retained_bytes", "what would be freed with them", |row: &Row<'a>| {
            row.suspect.retained_bytes.into()
        }),
        Column::new("percent", Kind::Float, "that in percent of the reachable bytes", |row: &Row<'a>| {
            Value::Float(hundredths(row.suspect.retained_bytes, row.told.leaks.reachable_bytes))
        }),
        Column::new(
            "accumulation_point",
            Kind::Record(named_fields()),
            "where its memory accumulates; in CSV the ID",
            |row: &Row<'a>| row.suspect.point.as_ref().map_or(Value::Null, named),
        )
        .csv(|row| id(row.suspect.point.as_ref().map(|point| point.object)))
        .or_null("the members of the group have no path in common"),
        Column::integer(
            "accumulated_bytes",
            "what is retained there: by the accumulation point, by the chain that leads to it, by the group",
            |row: &Row<'a>| row.suspect.accumulated_bytes.into(),
        ),
        Column::new(
            "reason",
            Kind::Record(reason_fields()),
            "how it accumulates; in CSV the first word",
            |row: &Row<'a>| row.suspect.reason.as_ref().map_or(Value::Null, reason),
        )
        .csv(|row| row.suspect.reason.as_ref().map(Reason::name).into())
        .or_null("it is a holder"),
        Column::new(
            "path",
            Kind::Records(path_fields()),
            "the shortest path from a GC root to the accumulation point, or to the first link of a chain that leads there, \
             weak references aside, that does not start in a thread's frame if there is such a path. Of a group the path that \
             most members have in common, or that to the member that retains most; of threads whose values of a \
             ThreadLocal are most of it, that to the largest value. Of a path of more than 400 objects the middle is left out. In CSV the fields",
            |row: &Row<'a>| row.suspect.paths.as_ref().map_or(Value::List(Vec::new()), |paths| path(&paths.path)),
        )
        .csv(|row| joined(row.suspect.paths.iter().flat_map(|paths| &paths.path.steps).map(paths::describe_held))),
        Column::text("root", "why the path starts there, in words", |row: &Row<'a>| {
            row.suspect.paths.as_ref().map(|paths| paths::describe_root(&paths.path.root)).into()
        })
        .or_null("there is no path"),
        Column::new(
            "frame_path",
            Kind::Records(path_fields()),
            "a path that starts in a thread's frame, if `path` does not; in CSV the fields",
            |row: &Row<'a>| {
                let paths = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
                paths.map_or(Value::Null, path)
            },
        )
        .csv(|row| {
            let path = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
            joined(path.iter().flat_map(|path| &path.steps).map(paths::describe_held))
        })
        .or_null("there is none"),
        Column::boolean("only_frames", "whether all paths start in threads' frames", |row: &Row<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.only_frames).into()
        }),
        Column::boolean(
            "only_weak",
            "whether all paths lead over weak, soft, phantom or finalizer references",
            |row: &Row<'a>| row.suspect.paths.as_ref().is_some_and(|paths| paths.is_weak).into(),
        ),
        Column::boolean("only_soft", "`only_weak`, and the path leads over a soft reference", |row: &Row<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.is_soft).into()
        }),
        Column::new(
            "owner",
            Kind::Record(owner_fields()),
            "the last object on the path whose class is not the JDK's; in CSV class and field",
            |row: &Row<'a>| {
                let owner = row.suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref());
                owner.map_or(Value::Null, owner_record)
            },
        )
        .csv(|row| {
            let owner = row.suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref());
            owner.map(|owner| format!("{}.{}", owner.class, owner.field)).into()
        })
        .or_null("there is none"),
        Column::new(
            "accumulated",
            Kind::Records(level_fields()),
            "what it consists of, from the accumulation point down the dominator tree, merged by class: on each level the \
             class that retains most; in CSV in words",
            |row: &Row<'a>| list(row.suspect.accumulated.iter().map(level)),
        )
        .csv(|row| words::accumulated(row.suspect).into()),
        Column::new(
            "parts",
            Kind::Records(part_fields()),
            "of a holder: the largest parts, five at most; in CSV in words",
            |row: &Row<'a>| list(row.suspect.parts.iter().map(|part| part_record(part, row.told))),
        )
        .csv(|row| joined(row.suspect.parts.iter().map(words::part_text))),
        Column::new(
            "contents",
            Kind::Records(vec![
                Field::new("class", Kind::Text, "the class"),
                Field::new("objects", Kind::Integer, "its objects"),
                Field::new("shallow_bytes", Kind::Integer, "what they take themselves"),
            ]),
            "the three classes whose objects take most of what is retained; in CSV their names",
            |row: &Row<'a>| list(row.suspect.contents.iter().map(share)),
        )
        .csv(|row| joined(row.suspect.contents.iter().map(|share| share.class.clone()))),
        Column::new(
            "members",
            Kind::Records(named_fields()),
            "of a group: the members that retain most, ten at most; in CSV their IDs",
            |row: &Row<'a>| list(row.suspect.members.iter().map(named)),
        )
        .csv(|row| joined(row.suspect.members.iter().map(|member| format!("{:#x}", member.object)))),
        Column::id("class_loader", "the loader of the class; 0x0 is the boot loader", |row: &Row<'a>| {
            Value::Id(row.suspect.loader)
        }),
        Column::new(
            "collection",
            Kind::Record(collection_fields()),
            "the collection that the accumulation point is of; in CSV its class",
            |row: &Row<'a>| collection(row.suspect),
        )
        .csv(|row| row.suspect.collection.as_ref().map(|collection| collection.class.as_str()).into())
        .or_null("there is none"),
        Column::new(
            "thread_locals",
            Kind::Records(local_fields()),
            "of threads: the ThreadLocals whose values retain most, three at most; in CSV their fields",
            |row: &Row<'a>| list(row.suspect.thread_locals.iter().map(local)),
        )
        .csv(|row| {
            joined(row.suspect.thread_locals.iter().filter_map(|local| local.field.clone()))
        }),
        Column::boolean(
            "oom_thread",
            "whether the thread that ran into an OutOfMemoryError is it, or is in the group",
            |row: &Row<'a>| row.suspect.is_oom_thread.into(),
        ),
        Column::text(
            "frame",
            "of threads: the innermost frame of the one that retains most that is not the JDK's",
            |row: &Row<'a>| row.suspect.frame.as_ref().map(ToString::to_string).into(),
        )
        .or_null("it is no thread, or there is none"),
        Column::new(
            "other_threads",
            Kind::List(Box::new(Kind::Text)),
            "other threads at which paths through fields start; not all of them are sought",
            |row: &Row<'a>| {
                let paths = row.suspect.paths.iter();
                list(paths.flat_map(|paths| &paths.other_threads).map(String::as_str))
            },
        )
        .csv(|row| joined(row.suspect.paths.iter().flat_map(|paths| paths.other_threads.clone()))),
        Column::new(
            "related",
            Kind::List(Box::new(Kind::Integer)),
            "other rows, from 0, whose paths have a beginning in common that is not the JDK's",
            |row: &Row<'a>| list(row.suspect.related.iter().map(|at| *at as u64)),
        )
        .csv(|row| joined(row.suspect.related.iter().map(ToString::to_string))),
        Column::text(
            "sentence",
            "all that in words; for people: can change in any version",
            |row: &Row<'a>| words::sentence(&row.told.leaks, row.suspect).into(),
        ),
        Column::text(
            "allocated_class",
            "the class of what accumulates, whose objects' allocation traces were looked at",
            |row: &Row<'a>| row.suspect.allocation.as_ref().map(|found| found.class.as_str()).into(),
        )
        .or_null("the dump has no allocation traces"),
        Column::new(
            "allocated_objects",
            Kind::Integer,
            "how many of them were looked at: at most 10,000",
            |row: &Row<'a>| row.suspect.allocation.as_ref().map(|found| found.objects).into(),
        )
        .or_null("the dump has no allocation traces"),
        Column::new(
            "allocated_in_trace",
            Kind::Integer,
            "how many of these have the trace that most have",
            |row: &Row<'a>| row.suspect.allocation.as_ref().map(|found| found.of_trace).into(),
        )
        .or_null("the dump has no allocation traces"),
        Column::new(
            "allocation_trace",
            Kind::Integer,
            "its serial number",
            |row: &Row<'a>| row.suspect.allocation.as_ref().map(|found| u64::from(found.trace.0)).into(),
        )
        .or_null("the dump has no allocation traces"),
        Column::new(
            "allocated_at",
            Kind::List(Box::new(Kind::Text)),
            "its frames, innermost first",
            |row: &Row<'a>| {
                let frames = row.suspect.allocation.iter().flat_map(|found| &found.frames);
                list(frames.map(ToString::to_string))
            },
        )
        .csv(|row| {
            joined(row.suspect.allocation.iter().flat_map(|found| found.frames.iter().map(ToString::to_string)))
        }),
    ])
}

/// Several texts in one cell of CSV.
fn joined(texts: impl IntoIterator<Item = String>) -> Value<'static> {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("; ").into()
}

fn named_fields() -> Vec<Field> {
    vec![
        Field::new("object", Kind::Id, "the object"),
        Field::new("class", Kind::Text, "its class; of a class object, the class it stands for")
            .or_null("the dump does not say"),
        Field::new("what", Kind::Text, "`class` if it is a class object, else `instance`"),
        Field::new("label", Kind::Text, "a few words that tell it from others").or_null("there are none"),
        Field::new("retained_bytes", Kind::Integer, "what would be freed with it"),
    ]
}

fn named(named: &Named) -> Value<'_> {
    let what = if named.is_class_object { What::Class } else { What::Instance };
    record([
        ("object", id(named.object)),
        ("class", named.class.as_ref().into()),
        ("what", what.name().into()),
        ("label", named.label.as_ref().into()),
        ("retained_bytes", named.retained_bytes.into()),
    ])
}

fn reason_fields() -> Vec<Field> {
    vec![
        Field::new("how", Kind::Text, "`children`, `chain`, `buffer`, `threads`, `loaders`, `members`"),
        Field::new(
            "class",
            Kind::Text,
            "the class of the children, links, array; of loaders, the class that each defines",
        )
        .or_null("of threads and members"),
        Field::new(
            "objects",
            Kind::Integer,
            "how many; of a chain whose links take turns with others, at least",
        )
        .or_null("of a buffer and of members"),
        Field::new(
            "pool",
            Kind::Text,
            "the name of the pool of threads, with `*` for the numbers in which their names differ",
        )
        .or_null("there is none"),
        Field::new("loader_class", Kind::Text, "the class of the loaders").or_null("there are none"),
    ]
}

fn reason(reason: &Reason) -> Value<'_> {
    let (class, objects, pool, loader) = match reason {
        Reason::Children { class, objects, .. } | Reason::Chain { class, objects, .. } => {
            (Some(class), Some(*objects), None, None)
        }
        Reason::Buffer { class } => (Some(class), None, None, None),
        Reason::Threads { place, threads, .. } => (None, Some(*threads), place.name.as_ref(), None),
        Reason::Loaders { class, loader_class, loaders, .. } => {
            (Some(class), Some(*loaders), None, loader_class.as_ref())
        }
        Reason::Members => (None, None, None, None),
    };
    record([
        ("how", reason.name().into()),
        ("class", class.into()),
        ("objects", objects.into()),
        ("pool", pool.into()),
        ("loader_class", loader.into()),
    ])
}

pub(super) fn path_fields() -> Vec<Field> {
    vec![
        Field::new("object", Kind::Id, "the object"),
        Field::new("class", Kind::Text, "its class; of a class object, the class it stands for")
            .or_null("the dump does not say"),
        Field::new("field", Kind::Text, "the field of the object before that holds it; `[7]` for an element")
            .or_null("it is the root, or the dump does not say"),
        Field::new("static", Kind::Boolean, "whether that is static"),
        Field::new("label", Kind::Text, "a few words that tell it from others").or_null("there are none"),
        Field::new("retained_bytes", Kind::Integer, "what would be freed with it"),
    ]
}

fn path(path: &Path) -> Value<'_> {
    list(path.steps.iter().map(step))
}

pub(super) fn step(step: &Step) -> Value<'_> {
    let is_class_object = step.class.as_deref() == Some("java.lang.Class");
    let (class, label) = match (&step.class, &step.label) {
        (_, Some(label)) if is_class_object => (Some(label), None),
        (class, label) => (class.as_ref(), label.as_ref()),
    };
    record([
        ("object", id(step.id)),
        ("class", class.into()),
        ("field", step.reference.as_ref().into()),
        ("static", step.is_static.into()),
        ("label", label.into()),
        ("retained_bytes", step.retained_bytes.into()),
    ])
}

fn owner_fields() -> Vec<Field> {
    vec![
        Field::new("object", Kind::Id, "the object; of a static field the class object"),
        Field::new("class", Kind::Text, "its class; of a static field the class itself"),
        Field::new("field", Kind::Text, "the field by which the path goes on"),
        Field::new("static", Kind::Boolean, "whether that is static"),
    ]
}

fn owner_record(owner: &Owner) -> Value<'_> {
    record([
        ("object", id(owner.object)),
        ("class", (&owner.class).into()),
        ("field", (&owner.field).into()),
        ("static", owner.is_static.into()),
    ])
}

fn level_fields() -> Vec<Field> {
    vec![
        Field::new("class", Kind::Text, "the class; of class objects, the class they stand for"),
        Field::new("what", Kind::Text, "`class` of class objects, else `instance`"),
        Field::new("objects", Kind::Integer, "how many objects"),
        Field::new("retained_bytes", Kind::Integer, "what would be freed with them"),
        Field::new("chain", Kind::Integer, "objects that dominate one another, one after the other, at most"),
    ]
}

fn level(level: &Level) -> Value<'_> {
    let what = if level.is_class_object { What::Class } else { What::Instance };
    record([
        ("class", (&level.class).into()),
        ("what", what.name().into()),
        ("objects", level.objects.into()),
        ("retained_bytes", level.retained_bytes.into()),
        ("chain", u64::from(level.chain).into()),
    ])
}

fn part_fields() -> Vec<Field> {
    vec![
        Field::new("class", Kind::Text, "the class; of class objects, the class they stand for"),
        Field::new("objects", Kind::Integer, "how many objects"),
        Field::new("retained_bytes", Kind::Integer, "what would be freed with them"),
        Field::new("percent", Kind::Float, "that in percent of the reachable bytes"),
        Field::new("object", Kind::Id, "the object").or_null("it is several"),
        Field::new("text", Kind::Text, "what it is known by; for people: can change in any version"),
    ]
}

fn part_record<'a>(part: &'a Part, told: &Told) -> Value<'a> {
    record([
        ("class", (&part.class).into()),
        ("objects", part.objects.into()),
        ("retained_bytes", part.retained_bytes.into()),
        ("percent", Value::Float(hundredths(part.retained_bytes, told.leaks.reachable_bytes))),
        ("object", id(part.object)),
        ("text", words::part_text(part).into()),
    ])
}

fn share(share: &ClassShare) -> Value<'_> {
    record([
        ("class", (&share.class).into()),
        ("objects", share.objects.into()),
        ("shallow_bytes", share.shallow_bytes.into()),
    ])
}

fn collection_fields() -> Vec<Field> {
    vec![
        Field::new("object", Kind::Id, "the collection"),
        Field::new("class", Kind::Text, "its class"),
        Field::new("size", Kind::Integer, "its elements").or_null("it does not say"),
        Field::new("limit", Kind::Integer, "of a queue: elements that it takes at most")
            .or_null("there is no limit"),
        Field::new("array_length", Kind::Integer, "the length of its array of elements")
            .or_null("it has none"),
        Field::new(
            "threads",
            Kind::List(Box::new(Kind::Text)),
            "of a queue: threads that have it in a frame",
        ),
        Field::new("threads_total", Kind::Integer, "how many they are; ten at most are listed"),
    ]
}

fn collection(suspect: &Suspect) -> Value<'_> {
    let Some(facts) = &suspect.collection else { return Value::Null };
    record([
        ("object", id(facts.object)),
        ("class", (&facts.class).into()),
        ("size", facts.size.into()),
        ("limit", facts.limit.into()),
        ("array_length", facts.array_length.into()),
        ("threads", list(facts.threads.iter().map(|thread| thread.name.as_str()))),
        ("threads_total", facts.all_threads.into()),
    ])
}

fn local_fields() -> Vec<Field> {
    vec![
        Field::new("object", Kind::Id, "the ThreadLocal; of several the one whose values retain most")
            .or_null("it is gone; only values are left"),
        Field::new(
            "keys",
            Kind::Integer,
            "ThreadLocals of that field: several class loaders may define its class",
        ),
        Field::new("field", Kind::Text, "the field that holds it").or_null("none that is known"),
        Field::new("value_class", Kind::Text, "the class of most values").or_null("they are null"),
        Field::new("threads", Kind::Integer, "threads that keep a value"),
        Field::new("values", Kind::Integer, "values"),
        Field::new("retained_bytes", Kind::Integer, "what the values retain, with their entries"),
    ]
}

fn local(local: &ThreadLocalUse) -> Value<'_> {
    record([
        ("object", id(local.key.non_null())),
        ("keys", local.keys.into()),
        ("field", local.field.as_ref().into()),
        ("value_class", local.value_class.as_ref().into()),
        ("threads", local.threads.into()),
        ("values", local.values.into()),
        ("retained_bytes", local.retained_bytes.into()),
    ])
}
