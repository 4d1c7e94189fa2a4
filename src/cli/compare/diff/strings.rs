//! `diff --group-by strings`: differences between String contents.

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old};
use crate::cli::object::strings::DEFAULT_CHARS;
use crate::cli::prelude::*;
use crate::cli::shared::limit::limit;
use crate::cli::shared::messages;
use hprof_index::Dump;
use hprof_query::change::Change;
use hprof_query::compare::strings::{ChangeReader, Keep, StringCensus, StringChange, StringComparison, Text};
use hprof_query::dictionary::Name;
use hprof_query::strings::StringTotals;
use hprof_report::escape;
use hprof_report::number::format_signed;

use super::DiffArgs;
use super::kind::DiffKind;
use super::shown::{self, Counts, DiffSummary};

/// Definition of the kind `strings`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "strings",
    summary: "Duplicate strings, by number of copies",
    about: "A row is a text that several Strings have in at least one of the dumps, reachable or not; those that grew \
            most come first. Texts are truncated as in [`strings`](#strings).",
    unit: "rows",
    options: &[],
    compare: run,
    rows: || columns().fields(),
    summary_fields: || summary_columns().fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old_input, new_input] = args.input.binary(cx)?;
    let (old, before) = census(cx, &old_input, None)?;
    let (new, after) = census(cx, &new_input, Some(&before))?;
    let format = args.output.format();
    let keep = if shown::leaves_out_same(format) { Keep::Changed } else { Keep::All };
    let source = ComparedFiles { old, new };
    let shown = new_input.with_threads(|| {
        let dumps = (source.old.dump()?, source.new.dump()?);
        for session in [&source.old, &source.new] {
            messages::about_contents(cx, &session.heap, new_input.quiet);
        }
        let found = StringCensus::compare((before, dumps.0), (after, dumps.1), keep, args.top.rows(format))?;
        show(cx, args, &source, &found, dumps)
    });
    shown?
}

fn census(
    cx: &RunContext,
    input: &Input,
    other: Option<&StringCensus>,
) -> anyhow::Result<(Session, StringCensus)> {
    Session::ask(cx, input, |dump| {
        let census = StringCensus::new(*dump, other)?;
        // Texts are read again once both dumps are open; damage to the index must be noticed here.
        dump.graph.check_tree();
        Ok(census)
    })
}

fn show(
    cx: &RunContext,
    args: &DiffArgs,
    source: &ComparedFiles<Session, Session>,
    found: &StringComparison,
    (old, new): (Dump<'_>, Dump<'_>),
) -> anyhow::Result<Outcome> {
    let texts = |format| {
        let most = limit(None, format, DEFAULT_CHARS).unwrap_or(usize::MAX);
        ChangeReader::new(found, old, new, most)
    };
    let counts = Counts { all: found.matching, changed: found.changed };
    let all = All {
        summary: DiffSummary { old: Old::from_source(&source.old), changed: counts.changed },
        totals: found.totals,
    };
    let change = |of: fn(&StringTotals) -> u64| format_signed(all.change(of).delta());
    shown::show(cx, args, source, counts, &[], |format| {
        let texts = texts(format);
        let rows = shown::rows(args, format, &found.rows, |row| row.status)
            .map(move |row| StringDiffLine { row: *row, text: texts.text(row) });
        Answer::new(columns(), rows).with_summary(&summary_columns(), &all).total([
            ("bytes +/-", change(|totals| totals.bytes)),
            ("copies +/-", change(|totals| totals.strings)),
            ("text", "all Strings".to_owned()),
        ])
    })
}

/// A row of the comparison, and the text of the Strings.
struct StringDiffLine {
    row: StringChange,
    text: Text,
}

/// Source of the JSON keys in addition to the rows: totals over all Strings.
struct All {
    summary: DiffSummary,
    totals: [StringTotals; 2],
}

impl All {
    fn change(&self, of: fn(&StringTotals) -> u64) -> Change {
        let [old, new] = &self.totals;
        Change { old: of(old), new: of(new) }
    }
}

fn columns<'a>() -> Columns<'a, StringDiffLine> {
    let copies = ChangeColumns::new(names::STRINGS, |line: &StringDiffLine| Some(line.row.count));
    let bytes = ChangeColumns::new(names::TOTAL_BYTES, |line: &StringDiffLine| Some(line.row.total_bytes));
    let mut columns = vec![
        Column::new(names::TEXT, |line: &StringDiffLine| Value::from(&line.text.text)),
        shown::status(|line: &StringDiffLine| line.row.status),
        Column::new(names::LENGTH, |line: &StringDiffLine| line.text.length.into()),
        Column::new(names::IS_TRUNCATED, |line: &StringDiffLine| line.text.is_cut.into()),
    ];
    columns.extend([&copies, &bytes].into_iter().flat_map(ChangeColumns::columns));
    let mut shown = Vec::from(bytes.in_table(["bytes +/-", "bytes"]));
    shown.extend(copies.in_table(["copies +/-", "copies"]));
    shown.extend([
        TableColumn::new(names::LENGTH, "length").fit(Fit::Secondary { priority: 0 }),
        shown::status_in_table(|line: &StringDiffLine| line.row.status),
        TableColumn::new(names::TEXT, "text").fit(Fit::Cut { priority: 0 }).cell(|line: &StringDiffLine| {
            let more = if line.text.is_cut { "…" } else { "" };
            escape::quoted(&format!("{}{more}", line.text.text))
        }),
    ]);
    Columns::new(columns).table(shown)
}

/// A total over all Strings: its name and the function that returns it.
type Total = (Name, fn(&All) -> Option<Change>);

fn summary_columns<'c>() -> Columns<'c, All> {
    let mut columns = shown::summary_columns(|all: &All| &all.summary, |all| &all.summary.old);
    let totals: [Total; 4] = [
        (names::STRINGS, |all| Some(all.change(|totals| totals.strings))),
        (names::DISTINCT, |all| Some(all.change(|totals| totals.distinct))),
        (names::TOTAL_BYTES, |all| Some(all.change(|totals| totals.bytes))),
        (names::WASTED_BYTES, |all| Some(all.change(|totals| totals.wasted_bytes))),
    ];
    for (name, of) in totals {
        columns.extend(ChangeColumns::new(names::TOTAL.dot(name), of).columns());
    }
    Columns::new(columns)
}
