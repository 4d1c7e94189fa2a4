//! Code shared by comparisons whose rows are new, gone, changed, or the same in both dumps.

use crate::cli::compare::pair::{ChangeColumns, Old};
use crate::cli::prelude::*;
use hprof_query::change::{Change, Status};
use hprof_query::dictionary::Name;

use super::DiffArgs;

/// Numbers of compared rows, by whether they differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) all: u64,
    /// Number of rows that are not the same in both dumps.
    pub(super) changed: u64,
}

impl Counts {
    /// Counts rows by their statuses.
    pub(super) fn from_statuses(statuses: impl IntoIterator<Item = Status>) -> Self {
        statuses.into_iter().fold(Self { all: 0, changed: 0 }, |counts, status| Self {
            all: counts.all + 1,
            changed: counts.changed + u64::from(status != Status::Same),
        })
    }

    /// Returns the number of rows that a format shows without `--top`.
    pub(super) fn matching(self, format: Format) -> u64 {
        if leaves_out_same(format) { self.changed } else { self.all }
    }
}

/// Returns whether rows that are the same in both dumps are omitted: they are noise in a table.
pub(super) fn leaves_out_same(format: Format) -> bool {
    format == Format::Table
}

/// Returns the rows that are shown in a format, limited by `--top`.
pub(super) fn rows<'r, R>(
    args: &DiffArgs,
    format: Format,
    rows: &'r [R],
    status: fn(&R) -> Status,
) -> impl Iterator<Item = &'r R> {
    let leaves_out_same = leaves_out_same(format);
    rows.iter().filter(move |row| !leaves_out_same || status(row) != Status::Same).take(args.rows(format))
}

/// Note if the dumps are the same.
pub(super) const NOTHING: &str = "nothing has changed";

/// Shows the result in each of its formats, and returns the outcome. Prints `notes` even if nothing has changed.
pub(super) fn show<'a, R>(
    cx: &RunContext,
    args: &DiffArgs,
    source: &impl AnswerSource,
    counts: Counts,
    notes: &[String],
    answer: impl Fn(Format) -> Answer<'a, R>,
) -> anyhow::Result<Outcome> {
    cx.for_each_format(args.output.format(), |cx, format| {
        let answer = answer(format).matching(counts.matching(format), args.group_by.unit);
        let answer = answer.if_empty(args.output.no_rows(NOTHING));
        source.show_in(cx, "diff", &args.output, format, answer).map(drop)
    })?;
    if !args.input.quiet() {
        let nothing = (counts.changed == 0).then_some(NOTHING);
        let notes = notes.iter().map(String::as_str).chain(nothing);
        notes.for_each(|note| cx.emit("note", note));
    }
    Ok(source.outcome(counts.changed > 0))
}

/// Returns the column with the status of a row.
pub(super) fn status<'c, R: 'c>(of: fn(&R) -> Status) -> Column<'c, R> {
    Column::new(names::STATUS, move |row: &R| of(row).name().into())
}

/// Returns the status column of a table, which contains only what the numbers do not show.
pub(super) fn status_in_table<'c, R: 'c>(of: fn(&R) -> Status) -> TableColumn<'c, R> {
    TableColumn::new(names::STATUS, "").cell(move |row| match of(row) {
        status @ (Status::New | Status::Gone) => status.name().to_owned(),
        Status::Changed | Status::Same => String::new(),
    })
}

/// Source of the JSON keys in addition to the rows.
pub(super) struct DiffSummary {
    pub(super) old: Old,
    pub(super) changed: u64,
}

/// Source of the JSON keys in addition to the rows, for a comparison with a total.
pub(super) struct DiffTotal {
    pub(super) summary: DiffSummary,
    pub(super) total: Change,
}

impl DiffTotal {
    /// Returns the keys in addition to the rows, with the total of `name`.
    pub(super) fn columns<'c>(name: Name) -> Columns<'c, Self> {
        let mut columns = summary_columns(|all: &Self| &all.summary, |all| &all.summary.old);
        columns.extend(ChangeColumns::new(names::TOTAL.dot(name), |all: &Self| Some(all.total)).columns());
        Columns::new(columns)
    }
}

/// Returns the keys in addition to the rows, for a source that contains a [`DiffSummary`].
pub(super) fn summary_columns<'c, B: 'c>(
    of: fn(&B) -> &DiffSummary,
    old: fn(&B) -> &Old,
) -> Vec<Column<'c, B>> {
    let mut columns = Vec::from(Old::columns(old));
    columns.push(Column::new(names::TOTAL.dot(names::ROWS), move |summary: &B| of(summary).changed.into()));
    columns
}

/// Returns the keys in addition to the rows, for a source that is a [`DiffSummary`].
pub(super) fn only_summary_columns<'c>() -> Columns<'c, DiffSummary> {
    Columns::new(summary_columns(|summary: &DiffSummary| summary, |summary| &summary.old))
}
