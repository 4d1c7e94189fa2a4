//! The table `suspects`.

use std::io;

use super::super::{Column, Context, Definition, Kind};
use super::Rows;
use crate::leaks::{self, DEFAULT_THRESHOLD, Kind as SuspectKind, Suspect};
use crate::recordings::percent::hundredths;

/// What the table has.
pub(super) fn definition() -> Definition {
    let no_path = "there is no such field on a path to it";
    let no_traces = "the dump has no allocation traces";
    Definition {
        name: "suspects".into(),
        meaning: "A leak suspect, as `leaks` tells: an object that only GC roots dominate and that retains more than 10 percent \
                  of the reachable bytes, or all other such objects of a class"
            .into(),
        order: "by retained bytes, most first".into(),
        columns: vec![
            Column::new("rank", Kind::Integer, "its place in the list, from 1"),
            Column::new("object_id", Kind::Id, "the object").or_null("it is a group"),
            Column::new("class", Kind::Name, "its class; of a class object the class it stands for; of a group that of its members")
                .or_null("the dump does not say"),
            Column::new("kind", Kind::Name, "`single` or `group`"),
            Column::new("verdict", Kind::Name, "`accumulation` or `holder`"),
            Column::new("what", Kind::Name, "`instance`, `class`, `class_loader` or `thread`"),
            Column::new("label", Kind::Text, "a few words that tell it from others")
                .or_null("there are none, or it is a group")
                .secret(),
            Column::new("objects", Kind::Integer, "how many objects"),
            Column::new("shallow_bytes", Kind::Integer, "what they take themselves"),
            Column::new("retained_bytes", Kind::Integer, "what would be freed with them"),
            Column::new("percent", Kind::Real, "that in percent of the reachable bytes"),
            Column::new("point_id", Kind::Id, "the accumulation point")
                .or_null("the members of the group have no path in common"),
            Column::new("point_class", Kind::Name, "its class").or_null("as `point_id`, or the dump does not say"),
            Column::new("accumulated_bytes", Kind::Integer, "what is retained there"),
            Column::new("reason", Kind::Name, "how it accumulates: `children`, `chain`, `buffer`, `threads`, `loaders`, `members`")
                .or_null("it is a holder"),
            Column::new("owner_class", Kind::Name, "the class of the last object on the path that is not the JDK's")
                .or_null(no_path),
            Column::new("owner_field", Kind::Name, "its field that the path follows").or_null(no_path),
            Column::new("owner_is_static", Kind::Boolean, "whether that field is static").or_null(no_path),
            Column::new("is_oom_thread", Kind::Boolean, "whether the thread that ran out of memory is it, or is in the group"),
            Column::new("content_class", Kind::Name, "the class whose objects take most of what it retains")
                .or_null("it retains nothing that is known"),
            Column::new("allocated_class", Kind::Name, "the class whose allocation traces were looked at").or_null(no_traces),
            Column::new("allocated_at", Kind::Text, "where most of its objects were allocated: the innermost frame that is not the JDK's")
                .or_null(no_traces),
        ],
    }
}

/// The rows.
pub(super) fn make(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    let found = leaks::leaks(context.heap, context.graph, context.bytes, DEFAULT_THRESHOLD.into())?;
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
            .text(suspect.verdict.name())
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
