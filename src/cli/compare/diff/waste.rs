//! `diff --group-by waste`.

use crate::cli::Outcome;
use crate::cli::compare::pair::{ChangeColumns, Old, Pair};
use crate::cli::shared::args::Input;
use crate::cli::shared::session::Session;
use hprof_index::Quiet;
use hprof_query::compare::Change;
use hprof_query::compare::waste::{Census, Row};
use hprof_query::dictionary::names;
use hprof_query::waste::{self, GroupBy, Question};
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns};
use hprof_report::number::signed;

use super::Args;
use super::shown::{self, Beside, Counts};

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary()?;
    let ((old, before), (new, after)) = (census(&old)?, census(&new)?);
    let rows = Census::compare(&before, &after);
    let counts = Counts::of(rows.iter().map(|row| row.status));
    let wasted_bytes = Change { old: before.wasted_bytes, new: after.wasted_bytes };
    let all = All { beside: Beside { old: Old::of(&old), changed: counts.changed }, wasted_bytes };
    let answer =
        Answer::new(columns(), shown::rows(args, &rows, |row| row.status)).beside(&beside(), &all).total([
            ("wasted +/-", signed(wasted_bytes.delta())),
            ("kind", "total, no byte counted twice".to_owned()),
        ]);
    shown::show(args, &Pair { old, new }, answer, counts, &[])
}

fn census(input: &Input) -> anyhow::Result<(Session, Census)> {
    let question = Question { kinds: Vec::new(), group_by: GroupBy::Package, examples: 0 };
    Session::ask(input, |heap, graph| {
        Ok(Census::new(&waste::waste(heap, graph, heap.bytes(&Quiet)?, &question)?))
    })
}

/// What stands beside the rows.
struct All {
    beside: Beside,
    wasted_bytes: Change,
}

fn columns<'a>() -> Columns<'a, &'a Row> {
    let mut columns = vec![
        Column::of(names::KIND, |row: &&Row| row.kind.name.into()).header("kind"),
        shown::status(|row: &&Row| row.status, 90),
    ];
    columns.extend(
        ChangeColumns::new(names::OBJECTS, ["count +/-", "count"]).columns(2, |row: &&Row| Some(row.count)),
    );
    columns.extend(
        ChangeColumns::new(names::WASTED_BYTES, ["wasted +/-", "wasted"])
            .columns(0, |row: &&Row| Some(row.wasted_bytes)),
    );
    Columns::new(columns)
}

fn beside<'c>() -> Columns<'c, All> {
    let mut columns = shown::beside(|all: &All| &all.beside, |all| &all.beside.old);
    let total = ChangeColumns::new(names::TOTAL.dot(names::WASTED_BYTES), ["", ""]);
    columns.extend(total.columns(0, |all: &All| Some(all.wasted_bytes)));
    Columns::new(columns)
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "diff",
        variant: "`--group-by waste`",
        about: "A row is a kind of waste; [waste.md](waste.md) defines the kinds.",
        rows: columns().fields(),
        beside: beside().fields(),
    }
}
