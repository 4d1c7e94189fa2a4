//! `diff --group-by place`: growth by place (path of fields to the memory).

use crate::cli::compare::pair::{ChangeColumns, ComparedFiles, Old};
use crate::cli::compare::place_lines;
use crate::cli::prelude::*;
use crate::cli::shared::commands::{self, Commands, NextCommand};
use crate::cli::shared::output;
use hprof_index::Dump;
use hprof_query::compare::places::{Changes, DumpPlaces, PlaceChange};
use hprof_query::dictionary::ComparedValue;
use hprof_report::grid::RowLine;
use hprof_report::number::{format_signed, signed_bytes};
use hprof_report::value::{id, list};

use super::kind::DiffKind;
use super::{DiffArgs, shown};

/// Definition of the kind `place`.
pub(super) const DEFINITION: DiffKind = DiffKind {
    name: "place",
    summary: "Places in the program: chains of fields, from static fields and threads down",
    about: "A row is a place that explains a change, most growth first. No place contains another.",
    unit: "places",
    options: &["--min-change"],
    compare: run,
    rows: || columns(None).fields(),
    summary_fields: || Columns::new(summary_columns()).fields(),
};

fn run(cx: &RunContext, args: &DiffArgs) -> anyhow::Result<Outcome> {
    let [old_input, new_input] = args.input.binary(cx)?;
    let frameworks = args.frameworks.rules(cx)?;
    let places = |dump: &Dump<'_>| Ok(DumpPlaces::with_frameworks(dump, &frameworks, None)?);
    let (old, before) = Session::ask(cx, &old_input, places)?;
    let (new, after) = Session::ask(cx, &new_input, places)?;
    let is_cut = before.is_cut || after.is_cut;
    let changes = Changes::new(before, after, args.min_change);
    let summary = PlacesDiffSummary { old: Old::from_source(&old), changes: &changes };
    let grown = changes.all_grown_bytes();
    let least = human_bytes(changes.least);
    let nothing = format!("no place has changed by {least} or more (--min-change)");
    let width = place_lines::width(cx, &args.output);
    let steps = next(&new_input, &changes);
    let source = ComparedFiles { old, new };
    cx.for_each_format(args.output.format(), |cx, format| {
        let rows = changes.rows.iter().take(args.rows(format)).map(|change| PlaceDiffLine { change, grown });
        let mut answer = Answer::new(columns(width), rows)
            .with_summary(&Columns::new(summary_columns()), &summary)
            .matching(changes.rows.len() as u64, args.group_by.unit)
            .if_empty(args.output.no_rows(nothing.clone()));
        if format == Format::Table {
            answer = answer
                .with_section_above(Section::Line(headline(&changes)))
                .with_lines_below(|row: &PlaceDiffLine<'_>| row.lines(width));
            if !steps.is_empty() {
                let whole = output::style(cx, &args.output).width.map_or(usize::MAX, usize::from);
                answer = answer.with_section_below(Section::Unwrapped(commands::lines(&steps, whole)));
            }
        }
        source.show_in(cx, "diff", &args.output, format, answer)?;
        Ok(())
    })?;
    if !args.input.quiet() {
        if is_cut {
            cx.emit("note", "too many distinct places: those omitted count towards the place above them");
        }
        if changes.rows.is_empty() {
            cx.emit("note", &nothing);
        }
    }
    Ok(source.outcome(!changes.rows.is_empty()))
}

/// Growth of a place, and the total growth.
struct PlaceDiffLine<'a> {
    change: &'a PlaceChange,
    grown: u64,
}

impl PlaceDiffLine<'_> {
    /// Returns the growth in percent of the total growth, to two decimals; negative for places that shrank.
    fn growth_percent(&self) -> f64 {
        let delta = self.change.retained_bytes.delta();
        #[allow(clippy::cast_precision_loss)]
        let share = if self.grown == 0 { 0.0 } else { delta as f64 / self.grown as f64 };
        (share * 10_000.0).round() / 100.0
    }

    /// Returns the lines below the row: the place if it has no column, and the growth of the map that contains it.
    fn lines(&self, width: Option<usize>) -> Vec<RowLine> {
        let mut lines = place_lines::lines(&self.change.text, width);
        let own = self.change.retained_bytes.delta();
        if let Some(map) = self.change.map.as_ref().filter(|map| map.retained_bytes.delta() != own) {
            let whole = format_signed(map.retained_bytes.delta());
            let text = format!("of {whole} in {}", map.text);
            lines.extend(place_lines::lines(&text, Some(width.unwrap_or(usize::MAX))));
        }
        lines
    }
}

fn headline(changes: &Changes) -> String {
    let reachable = changes.reachable_bytes;
    let heap = format!(
        "reachable heap {} -> {} ({})",
        human_bytes(reachable.old),
        human_bytes(reachable.new),
        signed_bytes(reachable.delta()),
    );
    let grown = changes.grown_bytes();
    if grown == 0 {
        return heap;
    }
    // The sum of the shares in the rows below.
    format!("{heap}; places that explain {} of the growth:", percent(grown, changes.all_grown_bytes()))
}

/// Returns the suggested commands about the largest growth.
fn next(new: &Input, changes: &Changes) -> Vec<NextCommand> {
    let commands = Commands::new(new);
    let grew = |row: &&PlaceChange| row.retained_bytes.delta() > 0 && !row.example.is_null();
    let Some(row) = changes.rows.iter().find(grew) else { return Vec::new() };
    let id = || format!("{:#x}", row.example);
    vec![
        commands.step("paths-to-root", [id()], "what keeps one of these objects alive"),
        commands.step("show", [id()], "its contents"),
    ]
}

/// Returns the columns; `width` is the maximum width of a place below its row, `None` if places are in a column.
fn columns<'a>(width: Option<usize>) -> Columns<'a, PlaceDiffLine<'a>> {
    let objects = ChangeColumns::new(names::OBJECTS, |row: &PlaceDiffLine<'a>| Some(row.change.objects));
    let retained =
        ChangeColumns::new(names::RETAINED_BYTES, |row: &PlaceDiffLine<'a>| Some(row.change.retained_bytes));
    let mut columns = vec![
        Column::new(names::PLACE, |row: &PlaceDiffLine<'a>| list(row.change.labels.iter())),
        Column::new(names::TEXT, |row: &PlaceDiffLine<'a>| Value::from(&*row.change.text)),
        shown::status(|row: &PlaceDiffLine<'a>| row.change.status),
    ];
    columns.extend([&objects, &retained].into_iter().flat_map(ChangeColumns::columns));
    columns.extend([
        Column::new(names::GROWTH_PERCENT, |row: &PlaceDiffLine<'a>| row.growth_percent().into()),
        Column::new(names::MAP, |row: &PlaceDiffLine<'a>| {
            row.change.map.as_ref().map(|map| &*map.text).into()
        })
        .or_null("it is in none"),
        Column::new(names::MAP_RETAINED_BYTES.for_side(ComparedValue::Delta), |row: &PlaceDiffLine<'a>| {
            row.change.map.as_ref().map(|map| map.retained_bytes.delta()).into()
        })
        .or_null("it is in none"),
        Column::new(names::OBJECT, |row: &PlaceDiffLine<'a>| {
            id(Some(row.change.example).filter(|id| !id.is_null()))
        })
        .or_null(nulls::NONE),
    ]);
    let mut shown = Vec::from(retained.in_table(["retained +/-", "retained"]));
    shown.push(TableColumn::table_only(
        "share",
        Align::Right,
        |row: &PlaceDiffLine<'a>| match u64::try_from(row.change.retained_bytes.delta()) {
            Ok(delta) if delta > 0 => percent(delta, row.grown),
            _ => String::new(),
        },
    ));
    shown.extend(objects.in_table(["objects +/-", "objects"]));
    shown.push(shown::status_in_table(|row: &PlaceDiffLine<'a>| row.change.status));
    if width.is_none() {
        shown.push(TableColumn::new(names::TEXT, "place").fit(Fit::Wrap));
    }
    Columns::new(columns).table(shown)
}

struct PlacesDiffSummary<'a> {
    old: Old,
    changes: &'a Changes,
}

fn summary_columns<'c, 'a: 'c>() -> Vec<Column<'c, PlacesDiffSummary<'a>>> {
    let mut columns = Vec::from(Old::columns(|summary: &PlacesDiffSummary<'a>| &summary.old));
    let reachable =
        ChangeColumns::new(names::TOTAL.dot(names::REACHABLE_BYTES), |summary: &PlacesDiffSummary<'a>| {
            Some(summary.changes.reachable_bytes)
        });
    columns.extend(reachable.columns());
    columns.push(Column::new(names::TOTAL.dot(names::GROWN_BYTES), |summary: &PlacesDiffSummary<'a>| {
        summary.changes.grown_bytes().into()
    }));
    columns.push(Column::new(names::TOTAL.dot(names::ALL_GROWN_BYTES), |summary: &PlacesDiffSummary<'a>| {
        summary.changes.all_grown_bytes().into()
    }));
    columns
        .push(Column::new(names::TOTAL.dot(names::MIN_CHANGE_BYTES), |summary: &PlacesDiffSummary<'a>| {
            summary.changes.least.into()
        }));
    columns
}
