//! `diff --group-by properties`: differences between the system properties.

use crate::cli::compare::pair::{ComparedFiles, Old};
use crate::cli::prelude::*;
use hprof_query::compare::properties::{PropertyCensus, PropertyChange};
use hprof_query::dictionary::ComparedValue;

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts, DiffSummary};

/// Definition of the kind `properties`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "properties",
    summary: "System properties of the JVM",
    about: "A row is a system property of the JVM, by key. Only those that identify the JVM and its program, as in \
            [`info`](#info): others may be secret.",
    unit: "rows",
    options: &[],
    compare: run,
    rows: || columns().fields(),
    summary_fields: || shown::only_summary_columns().fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary(cx)?;
    let (old, new) = (old.open(cx)?, new.open(cx)?);
    let (before, after) = (PropertyCensus::new(old.summary()), PropertyCensus::new(new.summary()));
    let rows = PropertyCensus::compare(&before, &after);
    let counts = Counts::from_statuses(rows.iter().map(|row| row.status));
    let summary = DiffSummary { old: Old::from_source(&old), changed: counts.changed };
    let without: Vec<String> = [(&old, &before), (&new, &after)]
        .into_iter()
        .filter(|(_, census)| census.is_empty())
        .map(|(heap, _)| format!("{} contains no system properties", heap.path().display()))
        .collect();
    shown::show(cx, args, &ComparedFiles { old, new }, counts, &without, |format| {
        Answer::new(columns(), shown::rows(args, format, &rows, |row| row.status))
            .with_summary(&shown::only_summary_columns(), &summary)
    })
}

fn columns<'a>() -> Columns<'a, &'a PropertyChange> {
    const ABSENT: &str = "not in that dump";
    let columns = Columns::new([
        Column::new(names::NAME, |row: &&PropertyChange| (&row.key).into()),
        shown::status(|row: &&PropertyChange| row.status),
        Column::new(names::VALUE.for_side(ComparedValue::Old), |row: &&PropertyChange| {
            row.old.as_ref().into()
        })
        .or_null(ABSENT),
        Column::new(names::VALUE.for_side(ComparedValue::New), |row: &&PropertyChange| {
            row.new.as_ref().into()
        })
        .or_null(ABSENT),
    ]);
    columns.table([
        TableColumn::new(names::NAME, "property"),
        TableColumn::new(names::VALUE.for_side(ComparedValue::Old), "old").fit(Fit::Cut { priority: 0 }),
        TableColumn::new(names::VALUE.for_side(ComparedValue::New), "new").fit(Fit::Cut { priority: 0 }),
        shown::status_in_table(|row: &&PropertyChange| row.status),
    ])
}
