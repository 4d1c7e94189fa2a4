//! `diff --group-by roots`.

use crate::cli::Outcome;
use crate::cli::compare::pair::{ChangeColumns, Old, Pair};
use crate::cli::shared::session::Session;
use hprof_query::compare::roots::{Census, Row};
use hprof_report::answer::{Answer, Declared};
use hprof_report::column::{Column, Columns, Fit};

use super::Args;
use super::shown::{self, Beside, Counts};

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let [old, new] = args.input.binary()?;
    let (old, before) = Session::ask(&old, |_, graph| Ok(Census::new(graph)))?;
    let (new, after) = Session::ask(&new, |_, graph| Ok(Census::new(graph)))?;
    let rows = Census::compare(&before, &after);
    let counts = Counts::of(rows.iter().map(|row| row.status));
    let beside = Beside { old: Old::of(&old), changed: counts.changed };
    let answer = Answer::new(columns(), shown::rows(args, &rows, |row| row.status))
        .beside(&shown::only_beside(), &beside);
    shown::show(args, &Pair { old, new }, answer, counts, &[])
}

fn columns<'a>() -> Columns<'a, &'a Row> {
    let counted = |key, meaning, titles| ChangeColumns { key, meaning, null: None, titles };
    let mut columns = vec![
        Column::text("kind", "the kind of root, as in `gc_roots` of [`info`](#info)", |row: &&Row| {
            row.kind.name().into()
        })
        .header("kind")
        .fit(Fit::Shorten { priority: 0 }),
        shown::status(|row: &&Row| row.status, 90),
    ];
    columns.extend(
        counted("roots", "roots of the kind in the old dump", ["roots +/-", "roots"])
            .columns(2, |row: &&Row| Some(row.roots)),
    );
    columns.extend(
        counted("objects", "objects that these are", ["objects +/-", "objects"])
            .columns(4, |row: &&Row| Some(row.objects)),
    );
    let retained = counted(
        "retained_bytes",
        "what the objects retain by the dominator tree, nothing counted twice",
        ["retained +/-", "retained"],
    );
    columns.extend(retained.columns(0, |row: &&Row| Some(row.retained_bytes)));
    Columns::new(columns)
}

pub(super) fn declared() -> Declared {
    Declared {
        command: "diff",
        variant: "`--group-by roots`",
        about: "A row is a kind of GC root, with the figures of `kinds` of [`roots`](#roots).",
        rows: columns().fields(),
        beside: shown::only_beside().fields(),
    }
}
