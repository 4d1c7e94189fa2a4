//! `diff --group-by roots`: differences between the numbers of GC roots of each kind.

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old};
use crate::cli::prelude::*;
use hprof_query::compare::root_counts::{RootCensus, RootChange};

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts, DiffSummary};

/// Definition of the kind `roots`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "roots",
    summary: "GC roots, by kind",
    about: "A row is a kind of GC root, with the figures of `counts_by_kind` of [`roots`](#roots).",
    unit: "rows",
    options: &[],
    compare: run,
    rows: || columns().fields(),
    summary_fields: || shown::only_summary_columns().fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary(cx)?;
    let (old, before) = Session::ask_graph(cx, &old, |dump| Ok(RootCensus::new(dump.graph)))?;
    let (new, after) = Session::ask_graph(cx, &new, |dump| Ok(RootCensus::new(dump.graph)))?;
    let rows = RootCensus::compare(&before, &after);
    let counts = Counts::from_statuses(rows.iter().map(|row| row.status));
    let summary = DiffSummary { old: Old::from_source(&old), changed: counts.changed };
    shown::show(cx, args, &ComparedFiles { old, new }, counts, &[], |format| {
        Answer::new(columns(), shown::rows(args, format, &rows, |row| row.status))
            .with_summary(&shown::only_summary_columns(), &summary)
    })
}

fn columns<'a>() -> Columns<'a, &'a RootChange> {
    let roots = ChangeColumns::new(names::ROOT_COUNT, |row: &&RootChange| Some(row.roots));
    let objects = ChangeColumns::new(names::OBJECTS, |row: &&RootChange| Some(row.objects));
    let retained = ChangeColumns::new(names::RETAINED_BYTES, |row: &&RootChange| Some(row.retained_bytes));
    let mut columns = vec![
        Column::new(names::KIND, |row: &&RootChange| row.kind.name().into()),
        shown::status(|row: &&RootChange| row.status),
    ];
    columns.extend([&roots, &objects, &retained].into_iter().flat_map(ChangeColumns::columns));
    let mut shown = Vec::from(retained.in_table(["retained +/-", "retained"]));
    shown.extend(roots.in_table(["roots +/-", "roots"]));
    shown.extend(objects.in_table(["objects +/-", "objects"]));
    shown.extend([
        shown::status_in_table(|row: &&RootChange| row.status),
        TableColumn::new(names::KIND, "kind").fit(Fit::Shorten { priority: 0 }),
    ]);
    Columns::new(columns).table(shown)
}
