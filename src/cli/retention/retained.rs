//! `retained`: the retained size of a set of objects.

use roaring::RoaringBitmap;

use hprof_query::dominators::retained_of_set::{self, RetainedTotals};
use hprof_query::objects::selection::{Selection, SelectionKind};

use crate::cli::prelude::*;
use crate::cli::shared::messages;
use crate::cli::shared::unreachable::{self, ReachableScope};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli retained heap.hprof 'com.acme.cache.**'
  hprof-cli retained heap.hprof com.acme.Session com.acme.User
  hprof-cli retained heap.hprof 0x7c00012a8 0x7c00013f0 --format json | jq .total.retained_bytes";

/// Compute the retained size of a set of objects
///
/// The retained size is what is freed if all objects of the set are freed together. Two caches that share their values
/// retain the values together, although neither retains them alone; `dominators` and `histo --retained` do not count
/// such values. With several selections, the last row is the retained size of all of them together. The sizes are
/// exact: they count what would be unreachable without the set.
#[derive(Debug, clap::Args)]
pub(crate) struct RetainedArgs {
    #[command(flatten)]
    input: Input,

    /// Object ID, or a class to select all of its instances, for example `0x7c00012a8`, `byte[]`, `com.acme.**`
    #[arg(value_name = "SELECTION", required = true, help_heading = "Filter")]
    selections: Vec<Selection>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &RetainedArgs) -> anyhow::Result<Outcome> {
    let selections = args.input.resolve_selections(cx, &args.selections)?;
    let (session, (rows, total)) = Session::ask_graph(cx, &args.input, |dump| {
        let sets = selections.iter().map(|selection| selection.objects(dump));
        let sets: Vec<RoaringBitmap> = sets.collect();
        let rows: Vec<RetainedTotals> =
            sets.iter().map(|set| retained_of_set::retained(dump.graph, set)).collect();
        let total = match rows.as_slice() {
            [one] => *one,
            _ => retained_of_set::retained(
                dump.graph,
                &sets.iter().fold(RoaringBitmap::new(), |all, set| all | set),
            ),
        };
        Ok((rows, total))
    })?;
    show(cx, args, &session, &rows, total)?;
    for (selection, row) in selections.iter().zip(&rows) {
        notes(cx, &session, selection, row, args.input.quiet);
    }
    unreachable::note(cx, &session, &args.input, ReachableScope::RetainedSizes);
    Ok(session.outcome(total.objects > 0))
}

fn show(
    cx: &RunContext,
    args: &RetainedArgs,
    session: &Session,
    rows: &[RetainedTotals],
    total: RetainedTotals,
) -> anyhow::Result<u64> {
    let whole = session.graph.tree.reachable_bytes();
    let together = || RetainedLine { selection: None, retained: total };
    // The retained size of several selections together cannot be computed from their rows.
    let last = (rows.len() > 1 && args.output.format() == Format::Csv).then(together);
    let lines = args.selections.iter().zip(rows);
    let lines =
        lines.map(|(selection, row)| RetainedLine { selection: Some(&selection.text), retained: *row });
    let mut answer =
        Answer::new(columns(whole), lines.chain(last)).with_summary(&summary_columns(), &together());
    if rows.len() > 1 {
        answer = answer.total([
            ("objects", group_digits(total.objects)),
            ("shallow", group_digits(total.shallow_bytes)),
            ("retained", group_digits(total.retained_bytes)),
            ("%", percent(total.retained_bytes, whole)),
            ("retained objects", group_digits(total.retained_objects)),
            ("selection", "all together".to_owned()),
        ]);
    }
    session.show(cx, "retained", &args.output, answer)
}

/// Prints notes about what a row cannot show.
fn notes(cx: &RunContext, session: &Session, selection: &Selection, row: &RetainedTotals, quiet: bool) {
    if quiet {
        return;
    }
    let text = &selection.text;
    if row.objects == 0 {
        match selection.what {
            SelectionKind::Object(id) => {
                messages::about_no_object(cx, session.heap.path(), &session.graph, id)
            }
            SelectionKind::Classes(_) => messages::about_no_class(cx, session.heap.summary(), selection),
        }
    } else if row.unreachable_objects > 0 {
        let (some, all) = (group_digits(row.unreachable_objects), group_digits(row.objects));
        cx.emit("note", &format!("{text}: {some} of {all} objects are already unreachable"));
    }
}

/// Retained set of a selection; if the selection is `None`, of all selections together.
struct RetainedLine<'a> {
    selection: Option<&'a str>,
    retained: RetainedTotals,
}

fn columns<'a>(whole: u64) -> Columns<'a, RetainedLine<'a>> {
    let columns = Columns::new([
        Column::new(names::SELECTION, |line: &RetainedLine<'a>| line.selection.into()).or_null("in `total`"),
        Column::new(names::OBJECTS, |line: &RetainedLine<'a>| line.retained.objects.into()),
        Column::new(names::SHALLOW_BYTES, |line: &RetainedLine<'a>| line.retained.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |line: &RetainedLine<'a>| line.retained.retained_bytes.into()),
        Column::new(names::RETAINED_OBJECTS, |line: &RetainedLine<'a>| line.retained.retained_objects.into()),
        Column::new(names::UNREACHABLE_OBJECTS, |line: &RetainedLine<'a>| {
            line.retained.unreachable_objects.into()
        }),
    ]);
    columns.table([
        TableColumn::new(names::OBJECTS, "objects"),
        TableColumn::new(names::SHALLOW_BYTES, "shallow"),
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::table_only("%", Align::Right, move |line: &RetainedLine<'a>| {
            percent(line.retained.retained_bytes, whole)
        }),
        TableColumn::new(names::RETAINED_OBJECTS, "retained objects"),
        TableColumn::new(names::SELECTION, "selection").fit(Fit::Shorten { priority: 0 }),
    ])
}

fn summary_columns<'a>() -> Columns<'a, RetainedLine<'a>> {
    let row = columns(0);
    Columns::new([Column::with_fields(names::TOTAL, row.fields(), move |total| row.record(total))])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    vec![ResultSchema {
        command: "retained",
        variant: "",
        about: "A row is a selection, in the order given: what would be freed if all its objects were freed together. In \
                CSV the last line of several selections is `total`, with an empty `selection`.",
        rows: columns(0).fields(),
        summary: summary_columns().fields(),
    }]
}
