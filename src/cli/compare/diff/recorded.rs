//! Code shared by comparisons of recordings: notes on stderr, outcome, columns of rows that are stacks.

use crate::cli::compare::pair::ComparedFiles;
use crate::cli::prelude::*;
use crate::cli::shared::messages;
use crate::cli::shared::recording::{RecordedInput, RecordedProfile};
use hprof_query::dictionary::ComparedValue;
use hprof_query::recordings::compare::Percent;

use super::DiffArgs;
use super::shown::{Counts, NOTHING};

/// The old and the new recording.
pub(super) type Recordings = ComparedFiles<RecordedProfile, RecordedProfile>;

/// Opens the old and the new file.
pub(super) fn open(
    args: &DiffArgs,
    open: impl Fn(&RecordedInput) -> anyhow::Result<RecordedProfile>,
) -> anyhow::Result<Recordings> {
    let [old, new] = args.input.recorded_inputs();
    Ok(ComparedFiles { old: open(&old)?, new: open(&new)? })
}

/// Prints a note, unless --quiet is given.
pub(super) fn note(cx: &RunContext, args: &DiffArgs, text: &str) {
    if !args.input.quiet() {
        cx.emit("note", text);
    }
}

/// Shows the result in each of its formats, and returns the outcome. Patterns that match none of the `names` are noted.
pub(super) fn show<'a, 'n, R, N: Iterator<Item = &'n str>>(
    cx: &RunContext,
    args: &DiffArgs,
    source: &Recordings,
    counts: Counts,
    names: impl Fn() -> N,
    answer: impl Fn(Format) -> Answer<'a, R>,
) -> anyhow::Result<Outcome> {
    let is_unmatched = counts.all == 0 && !args.patterns.is_empty();
    let nothing = if is_unmatched { "nothing matches in either file" } else { NOTHING };
    cx.for_each_format(args.output.format(), |cx, format| {
        let answer = answer(format).matching(counts.matching(format), args.group_by.unit);
        let answer = answer.if_empty(args.output.no_rows(nothing));
        source.show_in(cx, "diff", &args.output, format, answer).map(drop)
    })?;
    if counts.changed == 0 {
        note(cx, args, nothing);
    }
    if is_unmatched && !args.input.quiet() {
        messages::about_patterns(cx, &args.patterns, TAKES, names);
    }
    Ok(source.outcome(counts.changed > 0))
}

/// Description of the positional arguments, for hints.
const TAKES: &str = "the command takes two files, then patterns";

/// Returns the columns of a row's share of its run: `self_percent_old`, `self_percent_new`, `self_percent_delta`.
pub(super) fn percents<'a, R: 'a>(of: fn(&R) -> Percent) -> [Column<'a, R>; 3] {
    let column = |side, value: fn(Percent) -> f64| {
        Column::new(names::SELF_PERCENT.for_side(side), move |row: &R| value(of(row)).into())
    };
    [
        column(ComparedValue::Old, |percent| percent.old),
        column(ComparedValue::New, |percent| percent.new),
        column(ComparedValue::Delta, |percent| percent.delta()),
    ]
}

/// Returns the table's columns of a row's share of its run: the difference, and the new share.
pub(super) fn percents_in_table<'a, R: 'a>(of: fn(&R) -> Percent) -> [TableColumn<'a, R>; 2] {
    let column = |side, title: &'static str| {
        TableColumn::new(names::SELF_PERCENT.for_side(side), title).align(Align::Right)
    };
    [
        column(ComparedValue::Delta, "self +/-").cell(move |row| match of(row).delta() {
            0.0 => "0.00".to_owned(),
            delta => format!("{delta:+.2}"),
        }),
        column(ComparedValue::New, "self").cell(move |row| format!("{:.2}%", of(row).new)),
    ]
}
