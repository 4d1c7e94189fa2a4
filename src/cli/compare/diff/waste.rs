//! `diff --group-by waste`: differences between the wasted memory of each kind.

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old};
use crate::cli::prelude::*;
use hprof_query::change::Change;
use hprof_query::compare::waste::{WasteCensus, WasteChange};
use hprof_query::waste::{self, FieldGroupBy, WasteQuery};
use hprof_report::number::format_signed;

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts, DiffSummary, DiffTotal};

/// Definition of the kind `waste`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "waste",
    summary: "Wasted memory, by kind; see `waste`",
    about: "A row is a kind of waste; [waste.md](waste.md) defines the kinds.",
    unit: "rows",
    options: &[],
    compare: run,
    rows: || columns().fields(),
    summary_fields: || DiffTotal::columns(names::WASTED_BYTES).fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary(cx)?;
    let ((old, before), (new, after)) = (census(cx, &old)?, census(cx, &new)?);
    let rows = WasteCensus::compare(&before, &after);
    let counts = Counts::from_statuses(rows.iter().map(|row| row.status));
    let wasted_bytes = Change { old: before.wasted_bytes, new: after.wasted_bytes };
    let summary = DiffSummary { old: Old::from_source(&old), changed: counts.changed };
    let summary = DiffTotal { summary, total: wasted_bytes };
    shown::show(cx, args, &ComparedFiles { old, new }, counts, &[], |format| {
        Answer::new(columns(), shown::rows(args, format, &rows, |row| row.status))
            .with_summary(&DiffTotal::columns(names::WASTED_BYTES), &summary)
            .total([
                ("wasted +/-", format_signed(wasted_bytes.delta())),
                ("kind", "total, no byte counted twice".to_owned()),
            ])
    })
}

fn census(cx: &RunContext, input: &Input) -> anyhow::Result<(Session, WasteCensus)> {
    let question = WasteQuery { kinds: Vec::new(), group_by: FieldGroupBy::Package, examples: 0 };
    Session::ask(cx, input, |dump| Ok(WasteCensus::new(&waste::waste(dump, &question)?)))
}

fn columns<'a>() -> Columns<'a, &'a WasteChange> {
    let count = ChangeColumns::new(names::OBJECTS, |row: &&WasteChange| Some(row.count));
    let wasted = ChangeColumns::new(names::WASTED_BYTES, |row: &&WasteChange| Some(row.wasted_bytes));
    let mut columns = vec![
        Column::new(names::KIND, |row: &&WasteChange| row.kind.name.into()),
        shown::status(|row: &&WasteChange| row.status),
    ];
    columns.extend([&count, &wasted].into_iter().flat_map(ChangeColumns::columns));
    let mut shown = Vec::from(wasted.in_table(["wasted +/-", "wasted"]));
    shown.extend(count.in_table(["count +/-", "count"]));
    shown.extend([
        shown::status_in_table(|row: &&WasteChange| row.status),
        TableColumn::new(names::KIND, "kind"),
    ]);
    Columns::new(columns).table(shown)
}
