//! Columns for suspects in JSON and CSV.

use crate::cli::prelude::*;
use hprof_query::containers::{Container, ContainerRow};
use hprof_query::leaks::collection::CollectionFacts;
use hprof_query::leaks::contents::{ContentsLevel, Reason};
use hprof_query::leaks::evidence::{ClassShare, Owner, Path, RetainedPart};
use hprof_query::leaks::loader_holders::LoaderHolder;
use hprof_query::leaks::thread_locals::ThreadLocalUse;
use hprof_query::leaks::{LeakVerdict, NamedObject, Suspect, SuspectSubject};
use hprof_report::column::JsonField;
use hprof_report::number::hundredths;
use hprof_report::value::{id, list, record};

use crate::cli::shared::{containers, facts, frameworks, paths};

use super::beside::{path_fields, step};
use super::{LeaksReport, allocated, beside, loaders, parts, words};

/// A suspect, and the report that contains it, as a row of the result.
pub(super) struct SuspectLine<'a> {
    told: &'a LeaksReport,
    suspect: &'a Suspect,
}

impl<'a> SuspectLine<'a> {
    /// Returns the suspect with this index, if there is one.
    pub(super) fn new(told: &'a LeaksReport, at: usize) -> Option<Self> {
        Some(Self { told, suspect: told.leaks.suspects.get(at)? })
    }

    /// Returns the holders of the class loaders, if the suspect consists of class loaders.
    fn loader_holders(&self) -> &'a [LoaderHolder] {
        let group = self.suspect.loader_group.and_then(|group| self.told.leaks.loaders.get(group));
        group.map_or(&[], |group| &group.holders)
    }
}

impl ContainerRow for SuspectLine<'_> {
    fn container(&self) -> Option<&Container> {
        self.suspect.container.as_ref()
    }
}

pub(super) fn columns<'a>() -> Columns<'a, SuspectLine<'a>> {
    let facts = facts::columns(Suspect::facts(), None, |row: &SuspectLine<'a>| row.suspect);
    let before = [
        Column::new(names::RETAINED_PERCENT, |row: &SuspectLine<'a>| {
            Value::Float(hundredths(row.suspect.retained_bytes, row.told.leaks.reachable_bytes))
        }),
        Column::record(names::ACCUMULATION_POINT, named_object_columns(), |row: &SuspectLine<'a>| {
            row.suspect.point.clone()
        })
        .csv(|row| id(row.suspect.point.as_ref().map(|point| point.object)))
        .or_null(nulls::NO_COMMON_PATH),
        Column::new(names::ACCUMULATED_BYTES, |row: &SuspectLine<'a>| row.suspect.accumulated_bytes.into()),
        Column::with_fields(names::REASON, reason_fields(), |row: &SuspectLine<'a>| {
            row.suspect.reason.as_ref().map_or(Value::Null, reason)
        })
        .csv(|row| row.suspect.reason.as_ref().map(Reason::name).into())
        .or_null(nulls::IS_HOLDER),
        Column::new(names::MAT_VERDICT, |row: &SuspectLine<'a>| {
            row.suspect.mat_verdict.map(LeakVerdict::name).into()
        })
        .or_null("it is not one of MAT's"),
        Column::new(names::VERDICT_EVIDENCE, |row: &SuspectLine<'a>| list(row.suspect.evidence.iter())),
    ];
    let after = [
        Column::with_fields(names::PATH_TO_ROOT, path_fields(), |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().map_or(Value::List(Vec::new()), |paths| path(&paths.path))
        })
        .csv(|row| {
            join_texts(row.suspect.paths.iter().flat_map(|paths| &paths.path.steps).map(paths::describe_held))
        }),
        Column::new(names::ROOT_TEXT, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().map(|paths| paths::describe_root(&paths.path.root)).into()
        })
        .or_null(nulls::NO_PATH),
        Column::with_fields(names::FRAME_PATH, path_fields(), |row: &SuspectLine<'a>| {
            let paths = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
            paths.map_or(Value::Null, path)
        })
        .csv(|row| {
            let path = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
            join_texts(path.iter().flat_map(|path| &path.steps).map(paths::describe_held))
        })
        .or_null(nulls::NONE),
        Column::new(names::IS_ONLY_FRAMES, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.only_frames).into()
        }),
        Column::new(names::IS_ONLY_WEAK, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.is_weak).into()
        }),
        Column::new(names::IS_ONLY_SOFT, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.is_soft).into()
        }),
        Column::record(names::OWNER, owner(), |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref()?.owner.clone()
        })
        .csv(|row| {
            let owner = row.suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref());
            owner.map(|owner| format!("{}.{}", owner.class, owner.field)).into()
        })
        .or_null(nulls::NONE),
        Column::records(names::ACCUMULATED, levels(), |row: &SuspectLine<'a>| &row.suspect.accumulated)
            .csv(|row| parts::accumulation_text(row.suspect).into()),
        Column::with_fields(names::PARTS, part_fields(), |row: &SuspectLine<'a>| {
            list(row.suspect.parts.iter().map(|part| part_record(part, row.told)))
        })
        .csv(|row| join_texts(row.suspect.parts.iter().map(parts::part_text))),
        Column::records(names::CONTENT_CLASSES, shares(), |row: &SuspectLine<'a>| &row.suspect.contents)
            .csv(|row| join_texts(row.suspect.contents.iter().map(|share| share.class.clone()))),
        Column::records(names::MEMBERS, named_object_columns(), |row: &SuspectLine<'a>| &row.suspect.members)
            .csv(|row| join_texts(row.suspect.members.iter().map(|member| format!("{:#x}", member.object)))),
        Column::new(names::LOADER_OBJECT, |row: &SuspectLine<'a>| Value::Id(row.suspect.loader)),
        Column::record(names::COLLECTION, collection(), |row: &SuspectLine<'a>| {
            row.suspect.collection.clone()
        })
        .csv(|row| row.suspect.collection.as_ref().map(|collection| collection.class.as_str()).into())
        .or_null(nulls::NONE),
        Column::records(names::THREAD_LOCALS, locals(), |row: &SuspectLine<'a>| &row.suspect.thread_locals)
            .csv(|row| join_texts(row.suspect.thread_locals.iter().filter_map(|local| local.field.clone()))),
        Column::records(names::LOADER_HOLDERS, beside::loader_holders(), |row: &SuspectLine<'a>| {
            row.loader_holders()
        })
        .csv(|row| join_texts(row.loader_holders().iter().map(loaders::holder_text))),
        Column::new(names::ALSO_HELD_BY, |row: &SuspectLine<'a>| {
            list(row.suspect.also_held_by.iter().map(words::other_holder))
        })
        .csv(|row| join_texts(row.suspect.also_held_by.iter().map(words::other_holder))),
        Column::new(names::FRAMEWORK, |row: &SuspectLine<'a>| {
            row.suspect.framework.as_ref().map(|known| &*known.framework).into()
        })
        .or_null("no rule describes it"),
        Column::new(names::FRAMEWORK_FACTS, |row: &SuspectLine<'a>| {
            row.suspect.framework.as_ref().map_or(Value::Null, |known| frameworks::facts(&known.facts))
        })
        .or_null("no rule describes it"),
        Column::new(names::IS_OOM_THREAD, |row: &SuspectLine<'a>| row.suspect.is_oom_thread.into()),
        Column::new(names::FRAME, |row: &SuspectLine<'a>| {
            row.suspect.frame.as_ref().map(ToString::to_string).into()
        })
        .or_null("not a thread, or it has none"),
        Column::new(names::OTHER_THREADS, |row: &SuspectLine<'a>| {
            let paths = row.suspect.paths.iter();
            list(paths.flat_map(|paths| &paths.other_threads).map(String::as_str))
        })
        .csv(|row| join_texts(row.suspect.paths.iter().flat_map(|paths| paths.other_threads.clone()))),
        Column::new(names::RELATED, |row: &SuspectLine<'a>| {
            list(row.suspect.related.iter().map(|at| *at as u64))
        })
        .csv(|row| join_texts(row.suspect.related.iter().map(ToString::to_string))),
        Column::new(names::SENTENCE, |row: &SuspectLine<'a>| {
            words::sentence(&row.told.leaks, row.suspect).into()
        }),
        Column::new(names::ALLOCATED_CLASS, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.class.as_str()).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::new(names::ALLOCATED_OBJECTS, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.objects).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::new(names::ALLOCATED_IN_TRACE, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.of_trace).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::new(names::ALLOCATION_TRACE, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| u64::from(found.trace.0)).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::new(names::ALLOCATED_AT, |row: &SuspectLine<'a>| {
            let frames = row.suspect.allocation.iter().flat_map(|found| &found.frames);
            list(frames.map(ToString::to_string))
        })
        .csv(|row| {
            join_texts(
                row.suspect.allocation.iter().flat_map(|found| found.frames.iter().map(ToString::to_string)),
            )
        }),
        Column::with_fields(names::ALLOCATED_IN, allocated::columns().fields(), |row: &SuspectLine<'a>| {
            let columns = allocated::columns();
            list(allocated::lines(row.suspect).iter().map(|line| columns.record(line)))
        })
        .csv(|row| allocated::cell(row.suspect)),
        Column::record(names::RECORDED_ALLOCATION, allocated::sample_columns(), |row: &SuspectLine<'a>| {
            row.suspect.allocated_in.clone()
        })
        .csv(|row| row.suspect.allocated_in.as_ref().map(|of| of.status.name()).into())
        .or_null("there is no recording, or nothing accumulates"),
    ];
    Columns::new(facts.into_iter().chain(before).chain(containers::columns()).chain(after))
}

/// Joins several texts into one CSV cell.
fn join_texts(texts: impl IntoIterator<Item = String>) -> Value<'static> {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("; ").into()
}

fn named_object_columns<'c>() -> Columns<'c, NamedObject> {
    let what = |named_object_columns: &NamedObject| {
        if named_object_columns.is_class_object { SuspectSubject::Class } else { SuspectSubject::Instance }
    };
    Columns::new([
        Column::new(names::OBJECT, |named: &NamedObject| id(named.object)),
        Column::new(names::CLASS, |named: &NamedObject| named.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::WHAT, move |named: &NamedObject| what(named).name().into()),
        Column::new(names::LABEL, |named: &NamedObject| named.label.as_ref().into())
            .or_null(nulls::NONE_LISTED),
        Column::new(names::RETAINED_BYTES, |named: &NamedObject| named.retained_bytes.into()),
    ])
}

fn reason_fields() -> Vec<JsonField> {
    vec![
        JsonField::new(names::HOW),
        JsonField::new(names::CLASS).or_null("of threads and members"),
        JsonField::new(names::OBJECTS).or_null("of a buffer and of members"),
        JsonField::new(names::CHAINS).or_null("it is not a chain"),
        JsonField::new(names::POOL).or_null(nulls::NONE),
        JsonField::new(names::LOADER_CLASS).or_null(nulls::NONE_LISTED),
    ]
}

fn reason(reason: &Reason) -> Value<'_> {
    let mut in_chains = None;
    let (class, objects, pool, loader) = match reason {
        Reason::Children { class, objects, .. } => (Some(class), Some(*objects), None, None),
        Reason::Chain { class, chains, objects, .. } => {
            in_chains = Some(*chains);
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
        (names::HOW, reason.name().into()),
        (names::CLASS, class.into()),
        (names::OBJECTS, objects.into()),
        (names::CHAINS, in_chains.into()),
        (names::POOL, pool.into()),
        (names::LOADER_CLASS, loader.into()),
    ])
}

fn path(path: &Path) -> Value<'_> {
    list(path.steps.iter().map(step))
}

fn owner<'c>() -> Columns<'c, Owner> {
    Columns::new([
        Column::new(names::OBJECT, |owner: &Owner| id(owner.object)),
        Column::new(names::CLASS, |owner: &Owner| (&owner.class).into()),
        Column::new(names::FIELD, |owner: &Owner| (&owner.field).into()),
        Column::new(names::IS_STATIC, |owner: &Owner| owner.is_static.into()),
    ])
}

fn levels<'c>() -> Columns<'c, ContentsLevel> {
    let what = |level: &ContentsLevel| {
        if level.is_class_object { SuspectSubject::Class } else { SuspectSubject::Instance }
    };
    Columns::new([
        Column::new(names::CLASS, |level: &ContentsLevel| (&level.class).into()),
        Column::new(names::WHAT, move |level: &ContentsLevel| what(level).name().into()),
        Column::new(names::OBJECTS, |level: &ContentsLevel| level.objects.into()),
        Column::new(names::RETAINED_BYTES, |level: &ContentsLevel| level.retained_bytes.into()),
        Column::new(names::CHAIN, |level: &ContentsLevel| u64::from(level.chain).into()),
    ])
}

fn part_fields() -> Vec<JsonField> {
    vec![
        JsonField::new(names::CLASS),
        JsonField::new(names::OBJECTS),
        JsonField::new(names::RETAINED_BYTES),
        JsonField::new(names::RETAINED_PERCENT),
        JsonField::new(names::OBJECT).or_null("it is several"),
        JsonField::new(names::TEXT),
    ]
}

fn part_record<'a>(part: &'a RetainedPart, told: &LeaksReport) -> Value<'a> {
    record([
        (names::CLASS, (&part.class).into()),
        (names::OBJECTS, part.objects.into()),
        (names::RETAINED_BYTES, part.retained_bytes.into()),
        (names::RETAINED_PERCENT, Value::Float(hundredths(part.retained_bytes, told.leaks.reachable_bytes))),
        (names::OBJECT, id(part.object)),
        (names::TEXT, parts::part_text(part).into()),
    ])
}

fn shares<'c>() -> Columns<'c, ClassShare> {
    Columns::new([
        Column::new(names::CLASS, |share: &ClassShare| (&share.class).into()),
        Column::new(names::OBJECTS, |share: &ClassShare| share.objects.into()),
        Column::new(names::SHALLOW_BYTES, |share: &ClassShare| share.shallow_bytes.into()),
    ])
}

fn collection<'c>() -> Columns<'c, CollectionFacts> {
    Columns::new([
        Column::new(names::OBJECT, |facts: &CollectionFacts| id(facts.object)),
        Column::new(names::CLASS, |facts: &CollectionFacts| (&facts.class).into()),
        Column::new(names::SIZE, |facts: &CollectionFacts| facts.size.into()).or_null("it does not say"),
        Column::new(names::CAPACITY, |facts: &CollectionFacts| facts.limit.into()).or_null("it is unlimited"),
        Column::new(names::ARRAY_LENGTH, |facts: &CollectionFacts| facts.array_length.into())
            .or_null(nulls::NONE),
        Column::new(names::THREAD_NAMES, |facts: &CollectionFacts| {
            list(facts.threads.iter().map(|thread| thread.name.as_str()))
        }),
        Column::new(names::THREAD_COUNT, |facts: &CollectionFacts| facts.all_threads.into()),
    ])
}

fn locals<'c>() -> Columns<'c, ThreadLocalUse> {
    Columns::new([
        Column::new(names::OBJECT, |local: &ThreadLocalUse| id(local.key.non_null()))
            .or_null("it is gone; only values are left"),
        Column::new(names::KEY_COUNT, |local: &ThreadLocalUse| local.keys.into()),
        Column::new(names::FIELD, |local: &ThreadLocalUse| local.field.as_ref().into())
            .or_null("none that is known"),
        Column::new(names::VALUE_CLASS, |local: &ThreadLocalUse| local.value_class.as_ref().into())
            .or_null("they are null"),
        Column::new(names::THREADS, |local: &ThreadLocalUse| local.threads.into()),
        Column::new(names::VALUES, |local: &ThreadLocalUse| local.values.into()),
        Column::new(names::RETAINED_BYTES, |local: &ThreadLocalUse| local.retained_bytes.into()),
    ])
}
