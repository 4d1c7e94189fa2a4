//! The table `suspects`.

use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_analyses::leaks::heap_places::HeapPlaces;
use hprof_analyses::leaks::{self, DEFAULT_THRESHOLD, LeakEvidence, Suspect, SuspectKind, Verdict};
use hprof_base::dictionary::names;
use hprof_base::share::hundredths;

/// Returns the definition of the table.
pub(crate) fn definition() -> Definition {
    let no_path = "no path to it has such a field";
    let no_traces = "the dump has no allocation traces";
    Definition {
        name: "suspects".into(),
        meaning: "A leak suspect, as `leaks` shows: an object that only GC roots dominate and that retains more than 10 percent \
                  of the reachable bytes, or all other such objects of a class; or a store within a holder, or what a rule about a \
                  framework finds (`rule`)"
            .into(),
        order: "those by MAT's rules, most retained bytes first; then those that rules about frameworks find; then those within \
                holders"
            .into(),
        columns: vec![
            Column::of(names::RANK),
            Column::of(names::OBJECT).or_null("it is a group"),
            Column::of(names::CLASS).few()
                .or_null("the dump does not say"),
            Column::of(names::KIND).few(),
            Column::of(names::RULE).few(),
            Column::of(names::VERDICT).few().or_null("it is one of MAT's"),
            Column::of(names::WHAT).few(),
            Column::of(names::LABEL)
                .or_null("there are none, or it is a group")
                .secret(),
            Column::of(names::OBJECTS),
            Column::of(names::SHALLOW_BYTES),
            Column::of(names::RETAINED_BYTES),
            Column::of(names::RETAINED_PERCENT),
            Column::of(names::ACCUMULATION_POINT_OBJECT)
                .or_null("the members of the group have no path in common"),
            Column::of(names::ACCUMULATION_POINT_CLASS).few().or_null("as `accumulation_point_object`, or the dump does not say"),
            Column::of(names::ACCUMULATED_BYTES),
            Column::of(names::HOW).few()
                .or_null("it is a holder"),
            Column::of(names::OWNER_CLASS).few()
                .or_null(no_path),
            Column::of(names::OWNER_FIELD).few().or_null(no_path),
            Column::of(names::IS_OWNER_STATIC).or_null(no_path),
            Column::of(names::IS_OOM_THREAD),
            Column::of(names::CONTENT_CLASS).few()
                .or_null("it retains nothing known"),
            Column::of(names::ALLOCATED_CLASS).few().or_null(no_traces),
            Column::of(names::ALLOCATION_SITE)
                .or_null(no_traces),
        ],
    }
}

/// Makes the rows.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let dump = &context.dump;
    let places = HeapPlaces::new(dump, &context.frameworks, DEFAULT_THRESHOLD)?;
    let found = leaks::leaks(dump, DEFAULT_THRESHOLD, &places, LeakEvidence::All)?;
    for (rank, suspect) in (1u64..).zip(&found.suspects) {
        let Suspect { object, point, paths, allocation, .. } = suspect;
        let is_single = suspect.kind == SuspectKind::Single;
        let class = suspect.group_class.as_deref().or(object.class.as_deref());
        let owner = paths.as_ref().and_then(|paths| paths.owner.as_ref());
        let allocated_at = allocation.as_ref().and_then(|found| found.frame()).map(ToString::to_string);
        rows.count(rank)
            .id(is_single.then_some(object.object))
            .text(class)
            .text(suspect.kind.name())
            .text(suspect.rule.name())
            .text(suspect.own_verdict().map(Verdict::name))
            .text(suspect.what.name())
            .text(object.label.as_deref().filter(|_| is_single))
            .count(suspect.objects)
            .count(suspect.shallow_bytes)
            .count(suspect.retained_bytes)
            .real(hundredths(suspect.retained_bytes, found.reachable_bytes))
            .id(point.as_ref().map(|point| point.object))
            .text(point.as_ref().and_then(|point| point.class.as_deref()))
            .count(suspect.accumulated_bytes)
            .text(suspect.reason.as_ref().map(|reason| reason.name()))
            .text(owner.map(|owner| &*owner.class))
            .text(owner.map(|owner| &*owner.field))
            .boolean(owner.map(|owner| owner.is_static))
            .boolean(suspect.is_oom_thread)
            .text(suspect.contents.first().map(|share| &*share.class))
            .text(allocation.as_ref().map(|found| &*found.class))
            .text(allocated_at.as_deref())
            .end();
    }
    Ok(())
}
