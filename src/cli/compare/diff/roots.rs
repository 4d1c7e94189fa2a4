//! `diff --group-by roots`.

use crate::cli::Outcome;
use crate::cli::compare::pair::{ChangeColumns, Old, Pair};
use crate::cli::shared::context::RunContext;
use crate::cli::shared::session::Session;
use hprof_query::compare::roots::{Census, Row};
use hprof_query::dictionary::names;
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns, Fit};

use super::Args;
use super::shown::{self, Beside, Counts};

pub(super) fn run(cx: &RunContext, args: &Args) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary(cx)?;
    let (old, before) = Session::ask(cx, &old, |_, graph| Ok(Census::new(graph)))?;
    let (new, after) = Session::ask(cx, &new, |_, graph| Ok(Census::new(graph)))?;
    let rows = Census::compare(&before, &after);
    let counts = Counts::of(rows.iter().map(|row| row.status));
    let beside = Beside { old: Old::of(&old), changed: counts.changed };
    let answer = Answer::new(columns(), shown::rows(args, &rows, |row| row.status))
        .beside(&shown::only_beside(), &beside);
    shown::show(cx, args, &Pair { old, new }, answer, counts, &[])
}

fn columns<'a>() -> Columns<'a, &'a Row> {
    let mut columns = vec![
        Column::of(names::KIND, |row: &&Row| row.kind.name().into())
            .header("kind")
            .fit(Fit::Shorten { priority: 0 }),
        shown::status(|row: &&Row| row.status, 90),
    ];
    columns.extend(
        ChangeColumns::new(names::ROOT_COUNT, ["roots +/-", "roots"])
            .columns(2, |row: &&Row| Some(row.roots)),
    );
    columns.extend(
        ChangeColumns::new(names::OBJECTS, ["objects +/-", "objects"])
            .columns(4, |row: &&Row| Some(row.objects)),
    );
    let retained = ChangeColumns::new(names::RETAINED_BYTES, ["retained +/-", "retained"]);
    columns.extend(retained.columns(0, |row: &&Row| Some(row.retained_bytes)));
    Columns::new(columns)
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "diff",
        variant: "`--group-by roots`",
        about: "A row is a kind of GC root, with the figures of `counts_by_kind` of [`roots`](#roots).",
        rows: columns().fields(),
        beside: shown::only_beside().fields(),
    }
}
