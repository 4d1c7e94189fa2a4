//! What answers have in common whose rows are new, gone, changed, or the same in both dumps.

use crate::cli::Outcome;
use crate::cli::compare::pair::Old;
use crate::cli::shared::context::RunContext;
use crate::cli::shared::session::Source;
use hprof_query::compare::Status;
use hprof_query::dictionary::names;
use hprof_report::answer::Answer;
use hprof_report::column::{Column, Columns};

use super::Args;

/// How many rows there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) all: u64,
    /// Those that are not the same in both dumps.
    pub(super) changed: u64,
}

impl Counts {
    /// Of these rows.
    pub(super) fn of(statuses: impl IntoIterator<Item = Status>) -> Self {
        statuses.into_iter().fold(Self { all: 0, changed: 0 }, |counts, status| Self {
            all: counts.all + 1,
            changed: counts.changed + u64::from(status != Status::Same),
        })
    }

    /// The rows that an answer has without `--top`.
    pub(super) fn matching(self, args: &Args) -> u64 {
        if args.leaves_out_same() { self.changed } else { self.all }
    }
}

/// The rows that are shown.
pub(super) fn rows<'r, R>(
    args: &Args,
    rows: &'r [R],
    status: fn(&R) -> Status,
) -> impl Iterator<Item = &'r R> {
    let leaves_out_same = args.leaves_out_same();
    rows.iter().filter(move |row| !leaves_out_same || status(row) != Status::Same).take(args.rows())
}

/// Said of dumps that are the same.
pub(super) const NOTHING: &str = "nothing has changed";

/// Shows an answer, says on stderr `notes` and if nothing has changed, and how the run ends.
pub(super) fn show<R>(
    cx: &RunContext,
    args: &Args,
    source: &impl Source,
    answer: Answer<'_, R>,
    counts: Counts,
    notes: &[String],
) -> anyhow::Result<Outcome> {
    let answer = answer.matching(counts.matching(args), "rows").without_rows(args.output.no_rows(NOTHING));
    source.show(cx, "diff", &args.output, answer)?;
    if !args.input.quiet() {
        let nothing = (counts.changed == 0).then_some(NOTHING);
        let notes = notes.iter().map(String::as_str).chain(nothing);
        notes.for_each(|note| cx.say("note", note));
    }
    Ok(source.outcome(counts.changed > 0))
}

/// What became of a row. Tables only say what figures do not; `place` is that of the column there.
pub(super) fn status<'c, R: 'c>(of: fn(&R) -> Status, place: usize) -> Column<'c, R> {
    Column::of(names::STATUS, move |row: &R| of(row).name().into()).header("").place(place).cell(move |row| {
        match of(row) {
            status @ (Status::New | Status::Gone) => status.name().to_owned(),
            Status::Changed | Status::Same => String::new(),
        }
    })
}

/// What stands beside the rows.
pub(super) struct Beside {
    pub(super) old: Old,
    pub(super) changed: u64,
}

/// The keys beside the rows, of what has a [`Beside`].
pub(super) fn beside<'c, B: 'c>(of: fn(&B) -> &Beside, old: fn(&B) -> &Old) -> Vec<Column<'c, B>> {
    let mut columns = Vec::from(Old::columns(old));
    columns.push(Column::of(names::TOTAL.dot(names::ROWS), move |beside: &B| of(beside).changed.into()));
    columns
}

/// As [`beside`], where nothing else stands beside the rows.
pub(super) fn only_beside<'c>() -> Columns<'c, Beside> {
    Columns::new(beside(|beside: &Beside| beside, |beside| &beside.old))
}
