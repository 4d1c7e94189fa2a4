//! Threads grouped by pool and equal stacks, or by their frame, for `threads --group`.

use hprof_index::model::summary::Summary;
use hprof_query::threads::groups::{LocalsOfClass, ThreadGroup, ThreadGroups};
use hprof_query::threads::{ThreadQuery, ThreadState, Threads};
use hprof_report::answer::RowLine;
use hprof_report::column::CellTarget;
use hprof_report::number::format_count;
use hprof_report::stacks::thread_dump::Locals;
use hprof_report::table::Style;
use hprof_report::value::{id, list};

use crate::cli::prelude::*;
use crate::cli::shared::{object, stack};

use super::heap::{INDENT, INDENT_LOCAL, class_name};

/// Maximum number of lines about the local variables of a group in a table.
const SHOWN_LOCALS: usize = 10;

/// Opens the dump and groups its threads.
pub(super) fn ask(
    cx: &RunContext,
    input: &Input,
    question: &ThreadQuery,
) -> anyhow::Result<(Session, ThreadGroups)> {
    Session::ask(cx, input, |dump| Ok(Threads::new(dump).groups(question)))
}

/// Shows the groups; a table with at most `most_frames` of each stack.
pub(super) fn show(
    cx: &RunContext,
    session: &Session,
    found: &ThreadGroups,
    format: OutputFormat,
    style: Style,
    (shown, most_frames, filters): (Locals, usize, String),
) -> anyhow::Result<()> {
    let summary = session.heap.summary();
    let held = |group: &ThreadGroup| if shown == Locals::Shown { locals(summary, group) } else { Vec::new() };
    let answer = Answer::new(columns(Some(summary), filters), found.rows.iter().cloned())
        .with_summary(&summary_columns(), found)
        .matching(found.matching, "groups")
        .with_lines_below(|group| frames(group, most_frames).into_iter().chain(held(group)).collect())
        .total([
            ("retained", group_digits(found.retained_bytes)),
            ("threads", group_digits(found.threads)),
            ("name", "all".to_owned()),
        ])
        // Explained by a note.
        .if_empty(NoRows::Nothing);
    session.show_as(cx, "threads", format, style, answer)?;
    Ok(())
}

fn frames(group: &ThreadGroup, most: usize) -> Vec<RowLine> {
    let line = |text: String| RowLine { indent: INDENT, text };
    let mut lines: Vec<RowLine> =
        group.frames.iter().take(most).map(|frame| line(frame.to_string())).collect();
    let left_out = group.frames_left_out + (group.frames.len() - lines.len()) as u64;
    if left_out > 0 && !lines.is_empty() {
        lines.push(line(format!("… {}", format_count(left_out, "more frame"))));
    }
    lines
}

/// Returns the lines about local variables: `12,268,432  5,000 x vt.RequestContext in vt.Server.handle`.
fn locals(summary: &Summary, group: &ThreadGroup) -> Vec<RowLine> {
    let one = |held: &LocalsOfClass| {
        let class = object::class_name(summary, held.class).unwrap_or(object::UNKNOWN);
        let more = held.methods.len().saturating_sub(1) as u64;
        let more =
            if more > 0 { format!(" and {}", format_count(more, "other method")) } else { String::new() };
        let place = held.methods.first().map(|method| format!(" in {method}{more}")).unwrap_or_default();
        let text =
            format!("{}  {} x {class}{place}", group_digits(held.retained_bytes), group_digits(held.objects));
        RowLine { indent: INDENT_LOCAL, text }
    };
    let mut lines: Vec<RowLine> = group.locals.iter().take(SHOWN_LOCALS).map(one).collect();
    let more = group.locals.len().saturating_sub(SHOWN_LOCALS) as u64;
    if more > 0 {
        let what = if more == 1 { "class" } else { "classes" };
        let text = format!("… {} more {what} (in --format json)", group_digits(more));
        lines.push(RowLine { indent: INDENT_LOCAL, text });
    }
    lines
}

/// Formats states with their number of threads if there are several: `RUNNABLE 3, WAITING 5`.
fn states(group: &ThreadGroup) -> String {
    let name = |state: Option<ThreadState>| state.map_or("unknown", ThreadState::name);
    match group.states.as_slice() {
        [(state, _)] => name(*state).to_owned(),
        several => {
            let one = |(state, threads): &(Option<ThreadState>, u64)| format!("{} {threads}", name(*state));
            several.iter().map(one).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Returns the link to the threads of a group, with the same filters; for a single thread, to its stack and local variables.
fn threads_page(group: &ThreadGroup, filters: &str) -> Option<CellTarget> {
    let first = group.objects.first()?;
    if group.threads == 1 {
        return Some(CellTarget::Page(format!("threads?thread={first:#x}&stack=1&locals=1")));
    }
    let and = if filters.is_empty() { "" } else { "&" };
    Some(CellTarget::Page(format!("threads?group-of={first:#x}{and}{filters}")))
}

/// Returns the columns for groups, whose links use the given filters. Which columns there are does not depend on
/// `summary`.
fn columns<'a>(summary: Option<&'a Summary>, filters: String) -> Columns<'a, ThreadGroup> {
    let frames = Columns::new(stack::frame(|frame| frame));
    let locals = local_columns(summary);
    let columns = Columns::new([
        Column::new(names::NAME, |group: &ThreadGroup| group.name.as_ref().into())
            .or_null("they have none, or names that differ in more than numbers"),
        Column::new(names::THREADS, |group: &ThreadGroup| group.threads.into()),
        Column::records(names::STATES, state_columns(), |group: &ThreadGroup| &group.states)
            .csv(|group| states(group).into()),
        Column::new(names::VIRTUAL_THREADS, |group: &ThreadGroup| group.virtual_threads.into()),
        Column::new(names::IS_OUT_OF_MEMORY, |group: &ThreadGroup| group.is_out_of_memory.into()),
        Column::new(names::RETAINED_BYTES, |group: &ThreadGroup| group.retained_bytes.into()),
        Column::new(names::THREAD_OBJECTS, |group: &ThreadGroup| {
            list(group.objects.iter().map(|object| id(*object)))
        })
        .csv(|group| {
            let ids: Vec<String> = group.objects.iter().map(|object| format!("{object:#x}")).collect();
            ids.join(" ").into()
        }),
        Column::new(names::FRAME, |group: &ThreadGroup| group.frame.as_ref().map(ToString::to_string).into())
            .or_null("all their frames are of the JDK"),
        Column::with_fields(names::FRAMES, frames.fields(), move |group: &ThreadGroup| {
            list(group.frames.iter().map(|frame| frames.record(frame)))
        })
        .csv(|group| group.frames.iter().map(ToString::to_string).collect::<Vec<_>>().join(" < ").into()),
        Column::new(names::FRAMES_LEFT_OUT, |group: &ThreadGroup| group.frames_left_out.into()),
        Column::with_fields(names::LOCALS, locals.fields(), move |group: &ThreadGroup| {
            list(group.locals.iter().map(|held| locals.record(held)))
        })
        .csv(move |group| {
            let one = |held: &LocalsOfClass| {
                let class = summary.and_then(|summary| object::class_name(summary, held.class));
                format!("{} {} x {}", held.retained_bytes, held.objects, class.unwrap_or(object::UNKNOWN))
            };
            group.locals.iter().map(one).collect::<Vec<_>>().join("; ").into()
        }),
    ]);
    columns.table([
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::new(names::THREADS, "threads"),
        TableColumn::new(names::STATES, "state").cell(states),
        TableColumn::new(names::NAME, "name")
            .fit(Fit::Shorten { priority: 0 })
            .cell(|group: &ThreadGroup| {
                let name = group.name.clone().unwrap_or_default();
                if group.is_out_of_memory { format!("{name}  {}", super::OUT_OF_MEMORY) } else { name }
            })
            .target(move |group: &ThreadGroup| threads_page(group, &filters)),
    ])
}

fn local_columns<'a>(summary: Option<&'a Summary>) -> Columns<'a, LocalsOfClass> {
    Columns::new([
        Column::new(names::CLASS, move |held: &LocalsOfClass| class_name(summary, held.class))
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::METHODS, |held: &LocalsOfClass| list(held.methods.iter().map(String::as_str))),
        Column::new(names::OBJECTS, |held: &LocalsOfClass| held.objects.into()),
        Column::new(names::SHALLOW_BYTES, |held: &LocalsOfClass| held.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |held: &LocalsOfClass| held.retained_bytes.into()),
    ])
}

fn state_columns<'c>() -> Columns<'c, (Option<ThreadState>, u64)> {
    Columns::new([
        Column::new(names::STATE, |(state, _): &(Option<ThreadState>, u64)| {
            state.map(ThreadState::name).into()
        })
        .or_null(nulls::UNKNOWN),
        Column::new(names::THREADS, |(_, threads): &(Option<ThreadState>, u64)| (*threads).into()),
    ])
}

fn summary_columns() -> Columns<'static, ThreadGroups> {
    Columns::new([
        Column::new(names::MATCHING.dot(names::ROWS), |of: &ThreadGroups| of.matching.into()),
        Column::new(names::MATCHING.dot(names::THREADS), |of: &ThreadGroups| of.threads.into()),
        Column::new(names::MATCHING.dot(names::RETAINED_BYTES), |of: &ThreadGroups| of.retained_bytes.into()),
    ])
}

pub(super) fn row_schema() -> ResultSchema {
    ResultSchema {
        command: "threads",
        variant: "`--group`",
        about: "A row is some threads with the same stack whose names differ only in numbers; with `--locals` all \
                threads with the same innermost frame outside the JDK, `frames` are those that their stacks share \
                from it on, and `locals` are the objects that this frame and its callers outside the JDK hold.",
        rows: columns(None, String::new()).fields(),
        summary: summary_columns().fields(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof_values::ObjectId;

    #[test]
    fn the_page_of_a_group_is_filtered_as_the_groups_are() {
        let group =
            |threads: u64| ThreadGroup { threads, objects: vec![ObjectId(0x10)], ..ThreadGroup::default() };
        for (threads, filters, path) in [
            (2, "", "threads?group-of=0x10"),
            (2, "thread=a%26b&state=WAITING", "threads?group-of=0x10&thread=a%26b&state=WAITING"),
            (1, "virtual=1", "threads?thread=0x10&stack=1&locals=1"),
        ] {
            assert_eq!(threads_page(&group(threads), filters), Some(CellTarget::Page(path.to_owned())));
        }
        assert_eq!(threads_page(&ThreadGroup::default(), ""), None);
    }
}
