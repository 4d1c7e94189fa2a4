//! Suspects in JSON and CSV.

use crate::cli::prelude::*;
use hprof_query::containers::{Container, ContainerRow};
use hprof_query::leaks::collection::CollectionFacts;
use hprof_query::leaks::contents::{Level, Reason};
use hprof_query::leaks::evidence::{ClassShare, Owner, Path, RetainedPart};
use hprof_query::leaks::loader_holders::LoaderHolder;
use hprof_query::leaks::thread_locals::ThreadLocalUse;
use hprof_query::leaks::{NamedObject, Suspect, SuspectObject, Verdict};
use hprof_report::column::JsonField;
use hprof_report::number::hundredths;
use hprof_report::value::{id, list, record};

use crate::cli::shared::{containers, facts, frameworks, paths};

use super::beside::{path_fields, step};
use super::{LeaksReport, allocated, beside, loaders, parts, words};

/// A suspect.
pub(super) struct SuspectLine<'a> {
    told: &'a LeaksReport,
    suspect: &'a Suspect,
}

impl<'a> SuspectLine<'a> {
    pub(super) fn new(told: &'a LeaksReport, at: usize) -> Option<Self> {
        Some(Self { told, suspect: told.leaks.suspects.get(at)? })
    }

    /// Returns the holders of the class loaders that the suspect is.
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
        Column::of(names::RETAINED_PERCENT, |row: &SuspectLine<'a>| {
            Value::Float(hundredths(row.suspect.retained_bytes, row.told.leaks.reachable_bytes))
        }),
        Column::record(names::ACCUMULATION_POINT, named(), |row: &SuspectLine<'a>| row.suspect.point.clone())
            .csv(|row| id(row.suspect.point.as_ref().map(|point| point.object)))
            .or_null("the members of the group have no path in common"),
        Column::of(names::ACCUMULATED_BYTES, |row: &SuspectLine<'a>| row.suspect.accumulated_bytes.into()),
        Column::nested(names::REASON, reason_fields(), |row: &SuspectLine<'a>| {
            row.suspect.reason.as_ref().map_or(Value::Null, reason)
        })
        .csv(|row| row.suspect.reason.as_ref().map(Reason::name).into())
        .or_null("it is a holder"),
        Column::of(names::MAT_VERDICT, |row: &SuspectLine<'a>| {
            row.suspect.mat_verdict.map(Verdict::name).into()
        })
        .or_null("it is not one of MAT's"),
        Column::of(names::VERDICT_EVIDENCE, |row: &SuspectLine<'a>| list(row.suspect.evidence.iter())),
    ];
    let after = [
        Column::nested(names::PATH_TO_ROOT, path_fields(), |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().map_or(Value::List(Vec::new()), |paths| path(&paths.path))
        })
        .csv(|row| {
            joined(row.suspect.paths.iter().flat_map(|paths| &paths.path.steps).map(paths::describe_held))
        }),
        Column::of(names::ROOT_TEXT, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().map(|paths| paths::describe_root(&paths.path.root)).into()
        })
        .or_null("there is no path"),
        Column::nested(names::FRAME_PATH, path_fields(), |row: &SuspectLine<'a>| {
            let paths = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
            paths.map_or(Value::Null, path)
        })
        .csv(|row| {
            let path = row.suspect.paths.as_ref().and_then(|paths| paths.through_frame.as_ref());
            joined(path.iter().flat_map(|path| &path.steps).map(paths::describe_held))
        })
        .or_null("there is none"),
        Column::of(names::IS_ONLY_FRAMES, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.only_frames).into()
        }),
        Column::of(names::IS_ONLY_WEAK, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.is_weak).into()
        }),
        Column::of(names::IS_ONLY_SOFT, |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref().is_some_and(|paths| paths.is_soft).into()
        }),
        Column::record(names::OWNER, owner(), |row: &SuspectLine<'a>| {
            row.suspect.paths.as_ref()?.owner.clone()
        })
        .csv(|row| {
            let owner = row.suspect.paths.as_ref().and_then(|paths| paths.owner.as_ref());
            owner.map(|owner| format!("{}.{}", owner.class, owner.field)).into()
        })
        .or_null("there is none"),
        Column::records(names::ACCUMULATED, levels(), |row: &SuspectLine<'a>| &row.suspect.accumulated)
            .csv(|row| parts::accumulated(row.suspect).into()),
        Column::nested(names::PARTS, part_fields(), |row: &SuspectLine<'a>| {
            list(row.suspect.parts.iter().map(|part| part_record(part, row.told)))
        })
        .csv(|row| joined(row.suspect.parts.iter().map(parts::part_text))),
        Column::records(names::CONTENT_CLASSES, shares(), |row: &SuspectLine<'a>| &row.suspect.contents)
            .csv(|row| joined(row.suspect.contents.iter().map(|share| share.class.clone()))),
        Column::records(names::MEMBERS, named(), |row: &SuspectLine<'a>| &row.suspect.members)
            .csv(|row| joined(row.suspect.members.iter().map(|member| format!("{:#x}", member.object)))),
        Column::of(names::LOADER_OBJECT, |row: &SuspectLine<'a>| Value::Id(row.suspect.loader)),
        Column::record(names::COLLECTION, collection(), |row: &SuspectLine<'a>| {
            row.suspect.collection.clone()
        })
        .csv(|row| row.suspect.collection.as_ref().map(|collection| collection.class.as_str()).into())
        .or_null("there is none"),
        Column::records(names::THREAD_LOCALS, locals(), |row: &SuspectLine<'a>| &row.suspect.thread_locals)
            .csv(|row| joined(row.suspect.thread_locals.iter().filter_map(|local| local.field.clone()))),
        Column::records(names::LOADER_HOLDERS, beside::loader_holders(), |row: &SuspectLine<'a>| {
            row.loader_holders()
        })
        .csv(|row| joined(row.loader_holders().iter().map(loaders::holder_text))),
        Column::of(names::ALSO_HELD_BY, |row: &SuspectLine<'a>| {
            list(row.suspect.also_held_by.iter().map(words::other_holder))
        })
        .csv(|row| joined(row.suspect.also_held_by.iter().map(words::other_holder))),
        Column::of(names::FRAMEWORK, |row: &SuspectLine<'a>| {
            row.suspect.framework.as_ref().map(|known| &*known.framework).into()
        })
        .or_null("no rule describes it"),
        Column::of(names::FRAMEWORK_FACTS, |row: &SuspectLine<'a>| {
            row.suspect.framework.as_ref().map_or(Value::Null, |known| frameworks::facts(&known.facts))
        })
        .or_null("no rule describes it"),
        Column::of(names::IS_OOM_THREAD, |row: &SuspectLine<'a>| row.suspect.is_oom_thread.into()),
        Column::of(names::FRAME, |row: &SuspectLine<'a>| {
            row.suspect.frame.as_ref().map(ToString::to_string).into()
        })
        .or_null("not a thread, or it has none"),
        Column::of(names::OTHER_THREADS, |row: &SuspectLine<'a>| {
            let paths = row.suspect.paths.iter();
            list(paths.flat_map(|paths| &paths.other_threads).map(String::as_str))
        })
        .csv(|row| joined(row.suspect.paths.iter().flat_map(|paths| paths.other_threads.clone()))),
        Column::of(names::RELATED, |row: &SuspectLine<'a>| {
            list(row.suspect.related.iter().map(|at| *at as u64))
        })
        .csv(|row| joined(row.suspect.related.iter().map(ToString::to_string))),
        Column::of(names::SENTENCE, |row: &SuspectLine<'a>| {
            words::sentence(&row.told.leaks, row.suspect).into()
        }),
        Column::of(names::ALLOCATED_CLASS, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.class.as_str()).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::of(names::ALLOCATED_OBJECTS, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.objects).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::of(names::ALLOCATED_IN_TRACE, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| found.of_trace).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::of(names::ALLOCATION_TRACE, |row: &SuspectLine<'a>| {
            row.suspect.allocation.as_ref().map(|found| u64::from(found.trace.0)).into()
        })
        .or_null("the dump has no allocation traces"),
        Column::of(names::ALLOCATED_AT, |row: &SuspectLine<'a>| {
            let frames = row.suspect.allocation.iter().flat_map(|found| &found.frames);
            list(frames.map(ToString::to_string))
        })
        .csv(|row| {
            joined(
                row.suspect.allocation.iter().flat_map(|found| found.frames.iter().map(ToString::to_string)),
            )
        }),
        Column::nested(names::ALLOCATED_IN, allocated::columns().fields(), |row: &SuspectLine<'a>| {
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
fn joined(texts: impl IntoIterator<Item = String>) -> Value<'static> {
    let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join("; ").into()
}

fn named<'c>() -> Columns<'c, NamedObject> {
    let what = |named: &NamedObject| {
        if named.is_class_object { SuspectObject::Class } else { SuspectObject::Instance }
    };
    Columns::new([
        Column::of(names::OBJECT, |named: &NamedObject| id(named.object)),
        Column::of(names::CLASS, |named: &NamedObject| named.class.as_ref().into())
            .or_null("the dump does not say"),
        Column::of(names::WHAT, move |named: &NamedObject| what(named).name().into()),
        Column::of(names::LABEL, |named: &NamedObject| named.label.as_ref().into()).or_null("there are none"),
        Column::of(names::RETAINED_BYTES, |named: &NamedObject| named.retained_bytes.into()),
    ])
}

fn reason_fields() -> Vec<JsonField> {
    vec![
        JsonField::of(names::HOW),
        JsonField::of(names::CLASS).or_null("of threads and members"),
        JsonField::of(names::OBJECTS).or_null("of a buffer and of members"),
        JsonField::of(names::CHAINS).or_null("it is not a chain"),
        JsonField::of(names::POOL).or_null("there is none"),
        JsonField::of(names::LOADER_CLASS).or_null("there are none"),
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
        Column::of(names::OBJECT, |owner: &Owner| id(owner.object)),
        Column::of(names::CLASS, |owner: &Owner| (&owner.class).into()),
        Column::of(names::FIELD, |owner: &Owner| (&owner.field).into()),
        Column::of(names::IS_STATIC, |owner: &Owner| owner.is_static.into()),
    ])
}

fn levels<'c>() -> Columns<'c, Level> {
    let what =
        |level: &Level| if level.is_class_object { SuspectObject::Class } else { SuspectObject::Instance };
    Columns::new([
        Column::of(names::CLASS, |level: &Level| (&level.class).into()),
        Column::of(names::WHAT, move |level: &Level| what(level).name().into()),
        Column::of(names::OBJECTS, |level: &Level| level.objects.into()),
        Column::of(names::RETAINED_BYTES, |level: &Level| level.retained_bytes.into()),
        Column::of(names::CHAIN, |level: &Level| u64::from(level.chain).into()),
    ])
}

fn part_fields() -> Vec<JsonField> {
    vec![
        JsonField::of(names::CLASS),
        JsonField::of(names::OBJECTS),
        JsonField::of(names::RETAINED_BYTES),
        JsonField::of(names::RETAINED_PERCENT),
        JsonField::of(names::OBJECT).or_null("it is several"),
        JsonField::of(names::TEXT),
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
        Column::of(names::CLASS, |share: &ClassShare| (&share.class).into()),
        Column::of(names::OBJECTS, |share: &ClassShare| share.objects.into()),
        Column::of(names::SHALLOW_BYTES, |share: &ClassShare| share.shallow_bytes.into()),
    ])
}

fn collection<'c>() -> Columns<'c, CollectionFacts> {
    Columns::new([
        Column::of(names::OBJECT, |facts: &CollectionFacts| id(facts.object)),
        Column::of(names::CLASS, |facts: &CollectionFacts| (&facts.class).into()),
        Column::of(names::SIZE, |facts: &CollectionFacts| facts.size.into()).or_null("it does not say"),
        Column::of(names::CAPACITY, |facts: &CollectionFacts| facts.limit.into())
            .or_null("there is no limit"),
        Column::of(names::ARRAY_LENGTH, |facts: &CollectionFacts| facts.array_length.into())
            .or_null("it has none"),
        Column::of(names::THREAD_NAMES, |facts: &CollectionFacts| {
            list(facts.threads.iter().map(|thread| thread.name.as_str()))
        }),
        Column::of(names::THREAD_COUNT, |facts: &CollectionFacts| facts.all_threads.into()),
    ])
}

fn locals<'c>() -> Columns<'c, ThreadLocalUse> {
    Columns::new([
        Column::of(names::OBJECT, |local: &ThreadLocalUse| id(local.key.non_null()))
            .or_null("it is gone; only values are left"),
        Column::of(names::KEY_COUNT, |local: &ThreadLocalUse| local.keys.into()),
        Column::of(names::FIELD, |local: &ThreadLocalUse| local.field.as_ref().into())
            .or_null("none that is known"),
        Column::of(names::VALUE_CLASS, |local: &ThreadLocalUse| local.value_class.as_ref().into())
            .or_null("they are null"),
        Column::of(names::THREADS, |local: &ThreadLocalUse| local.threads.into()),
        Column::of(names::VALUES, |local: &ThreadLocalUse| local.values.into()),
        Column::of(names::RETAINED_BYTES, |local: &ThreadLocalUse| local.retained_bytes.into()),
    ])
}
