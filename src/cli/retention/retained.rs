//! `retained`: what some objects retain together.

use std::io::Write;

use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::json;

use crate::index::model::summary::Summary;
use crate::query::classes::suggestions;
use crate::query::dominators::retained::{self, Retained};
use crate::query::objects::selection::{Selection, What};
use crate::report::table::{Align, Builder, grouped, percent};
use crate::report::{Format, csv};

use crate::cli::Outcome;
use crate::cli::shared::args::{Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli retained heap.hprof 'com.acme.cache.**'
  hprof-cli retained heap.hprof com.acme.Session com.acme.User
  hprof-cli retained heap.hprof 0x7c00012a8 0x7c00013f0 --format json | jq .total.retained_bytes";

/// What would be freed if some objects all went together
///
/// Exact: the heap is walked from the roots without stepping on the objects. Two caches that share their values retain
/// them together, though neither does alone. If several selections are given, the last row is of all together.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Objects by id, or all objects of a class: `0x7c00012a8`, `java.util.HashMap$Node`, `byte[]`, `com.acme.**`
    #[arg(value_name = "SELECTION", required = true, help_heading = "Filter")]
    selections: Vec<Selection>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (heap, graph, (rows, total)) = args.input.with_graph(|heap, graph| {
        let sets = args.selections.iter().map(|selection| selection.objects(heap.summary(), graph));
        let sets: Vec<RoaringBitmap> = sets.collect();
        let rows: Vec<Retained> = sets.iter().map(|set| retained::retained(graph, set)).collect();
        let total = match rows.as_slice() {
            [one] => *one,
            _ => retained::retained(graph, &sets.iter().fold(RoaringBitmap::new(), |all, set| all | set)),
        };
        Ok((rows, total))
    })?;
    let mut out = output::stdout();
    let rows: Vec<(&Selection, Retained)> = args.selections.iter().zip(rows).collect();
    let shown =
        |text: AsText| rows.iter().map(move |(selection, row)| RowOut::new(Some(text(&selection.text)), row));
    match args.output.format() {
        Format::Table => table(&mut out, &rows, &total, graph.tree.reachable_bytes(), args)?,
        Format::Csv => {
            // What they retain together does not follow from the rows.
            let together = (rows.len() > 1).then(|| RowOut::new(None, &total));
            csv::write_flat(&mut out, RowOut::COLUMNS, shown(object::cell).chain(together))?;
        }
        Format::Json => {
            let rows: Vec<RowOut> = shown(str::to_owned).collect();
            let more = json!({ "total": RowOut::new(None, &total) });
            output::json(&mut out, "retained", &heap, rows, more)?;
        }
    }
    output::finish(out)?;
    for (selection, row) in &rows {
        notes(heap.summary(), selection, row, args.input.quiet);
    }
    Ok(match (heap.summary().is_damaged(), total.objects) {
        (true, _) => Outcome::Damaged,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Fine,
    })
}

/// Says what a row cannot.
fn notes(summary: &Summary, selection: &Selection, row: &Retained, quiet: bool) {
    if quiet {
        return;
    }
    let text = &selection.text;
    if row.objects == 0 {
        match selection.what {
            What::Object(_) => messages::line("note", &format!("there is no object {text} in the dump")),
            What::Classes(_) => {
                messages::line("note", &format!("no class with objects matches {text}"));
                let near = suggestions::class_names(summary, text);
                if !near.is_empty() {
                    messages::line("hint", &format!("there are {}", near.join(", ")));
                }
            }
        }
    } else if row.unreachable_objects > 0 {
        let (some, all) = (grouped(row.unreachable_objects), grouped(row.objects));
        messages::line(
            "note",
            &format!("{text}: {some} of {all} objects are unreachable: they are freed anyway"),
        );
    }
}

#[derive(Serialize)]
struct RowOut {
    /// `None` for all together.
    selection: Option<String>,
    objects: u64,
    shallow_bytes: u64,
    retained_bytes: u64,
    retained_objects: u64,
    unreachable_objects: u64,
}

impl RowOut {
    const COLUMNS: &[&str] = &[
        "selection",
        "objects",
        "shallow_bytes",
        "retained_bytes",
        "retained_objects",
        "unreachable_objects",
    ];

    fn new(selection: Option<String>, row: &Retained) -> Self {
        Self {
            selection,
            objects: row.objects,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
            retained_objects: row.retained_objects,
            unreachable_objects: row.unreachable_objects,
        }
    }
}

fn table(
    out: &mut dyn Write,
    rows: &[(&Selection, Retained)],
    total: &Retained,
    whole: u64,
    args: &Args,
) -> anyhow::Result<()> {
    let mut table = Builder::new(&[
        ("objects", Align::Right),
        ("shallow", Align::Right),
        ("retained", Align::Right),
        ("%", Align::Right),
        ("retained objects", Align::Right),
        ("selection", Align::Left),
    ]);
    let cells = |row: &Retained, name: &str| {
        [
            grouped(row.objects),
            grouped(row.shallow_bytes),
            grouped(row.retained_bytes),
            percent(row.retained_bytes, whole),
            grouped(row.retained_objects),
            name.to_owned(),
        ]
    };
    for (selection, row) in rows {
        table.row(cells(row, &selection.text));
    }
    if rows.len() > 1 {
        table.total(cells(total, "all together"));
    }
    Ok(table.write(out, output::style(&args.output))?)
}
