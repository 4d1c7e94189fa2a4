//! `diff --group-by threads`: new, ended and changed threads.

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old};
use crate::cli::prelude::*;
use hprof_query::change::Change;
use hprof_query::compare;
use hprof_query::compare::threads::{ThreadCensus, ThreadChange};
use hprof_query::dictionary::ComparedValue;
use hprof_query::threads::ThreadState;
use hprof_report::number::format_signed;

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts, DiffSummary, DiffTotal};

/// Definition of the kind `threads`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "threads",
    summary: "Threads, by name; names that differ only in numbers are one row",
    about: "A row is the threads of one name, or those whose names differ only in numbers, such as a pool; platform and \
            virtual threads are never one row. Those whose number grew most come first. `thread_group` and `is_daemon` are those of the new dump, if it has such threads.",
    unit: "rows",
    options: &[],
    compare: run,
    rows: || columns().fields(),
    summary_fields: || DiffTotal::columns(names::THREADS).fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary(cx)?;
    let seed = compare::random_seed();
    let ((old, before), (new, after)) = (census(cx, &old, seed)?, census(cx, &new, seed)?);
    let rows = ThreadCensus::compare(&before, &after);
    let counts = Counts::from_statuses(rows.iter().map(|row| row.status));
    let threads = Change { old: before.threads, new: after.threads };
    let summary = DiffSummary { old: Old::from_source(&old), changed: counts.changed };
    let summary = DiffTotal { summary, total: threads };
    let without: Vec<String> = [(&old, &before), (&new, &after)]
        .into_iter()
        .filter(|(_, census)| census.threads == 0)
        .map(|(session, _)| format!("{} contains no threads", session.header().path))
        .collect();
    shown::show(cx, args, &ComparedFiles { old, new }, counts, &without, |format| {
        Answer::new(columns(), shown::rows(args, format, &rows, |row| row.status))
            .with_summary(&DiffTotal::columns(names::THREADS), &summary)
            .total([("threads +/-", format_signed(threads.delta())), ("name", "total".to_owned())])
    })
}

fn census(cx: &RunContext, input: &Input, seed: u64) -> anyhow::Result<(Session, ThreadCensus)> {
    Session::ask(cx, input, |dump| Ok(ThreadCensus::new(dump, seed)))
}

fn columns<'a>() -> Columns<'a, &'a ThreadChange> {
    let state = |side, of: fn(&ThreadChange) -> Option<ThreadState>| {
        Column::new(names::STATE.for_side(side), move |row: &&ThreadChange| {
            of(row).map(ThreadState::name).into()
        })
        .or_null("there are none, it is not known, or they are in several")
    };
    let threads = ChangeColumns::new(names::THREADS, |row: &&ThreadChange| Some(row.threads));
    let retained = ChangeColumns::new(names::RETAINED_BYTES, |row: &&ThreadChange| Some(row.retained_bytes));
    let mut columns = vec![
        Column::new(names::NAME, |row: &&ThreadChange| row.name.as_deref().into())
            .or_null("the dump has none"),
        shown::status(|row: &&ThreadChange| row.status),
    ];
    columns.extend([&threads, &retained].into_iter().flat_map(ChangeColumns::columns));
    columns.extend([
        state(ComparedValue::Old, |row| row.state_old),
        state(ComparedValue::New, |row| row.state_new),
        Column::new(names::STACK_STATUS, |row: &&ThreadChange| {
            row.stack.map(compare::threads::Stack::name).into()
        })
        .or_null("one of the dumps has no stack of these threads"),
        Column::new(names::THREAD_GROUP, |row: &&ThreadChange| row.group.as_deref().into())
            .or_null("they are of several, or the dump does not say"),
        Column::new(names::IS_DAEMON, |row: &&ThreadChange| row.is_daemon.into())
            .or_null("only some are daemons, or the dump does not say"),
        Column::new(names::IS_VIRTUAL, |row: &&ThreadChange| Value::from(row.is_virtual)),
    ]);
    let mut shown = Vec::from(threads.in_table(["threads +/-", "threads"]));
    shown.extend(retained.in_table(["retained +/-", "retained"]));
    shown.extend([
        TableColumn::table_only("state", Align::Left, |row: &&ThreadChange| states(row))
            .fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::STACK_STATUS, "stack").fit(Fit::Secondary { priority: 1 }),
        shown::status_in_table(|row: &&ThreadChange| row.status),
        TableColumn::new(names::NAME, "name").fit(Fit::Cut { priority: 0 }).cell(|row: &&ThreadChange| {
            match row.name.as_deref() {
                Some("") => "<empty name>".to_owned(),
                Some(name) => name.to_owned(),
                None => "<no name>".to_owned(),
            }
        }),
    ]);
    Columns::new(columns).table(shown)
}

/// Formats the old and the new state of a thread.
fn states(row: &ThreadChange) -> String {
    match (row.state_old, row.state_new) {
        (Some(old), Some(new)) if old != new => format!("{} -> {}", old.name(), new.name()),
        (Some(state), None) if row.threads.new == 0 => state.name().to_owned(),
        (_, Some(state)) => state.name().to_owned(),
        (_, None) => String::new(),
    }
}
