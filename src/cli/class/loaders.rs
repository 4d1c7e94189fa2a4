//! `loaders`: the class loaders, and classes that several of them define.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::model::summary::Summary;
use crate::index::{Heap, Quiet};
use crate::query::classes::loaders::{self, Duplicate, Row, SortBy};
use crate::query::objects::label::Labels;
use crate::query::objects::reader::Objects;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli loaders heap.hprof
  hprof-cli loaders heap.hprof --sort classes --top 0
  hprof-cli loaders heap.hprof --duplicates
  hprof-cli loaders heap.hprof --format json | jq '.rows[] | select(.classes == 0)'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// The class loaders: what they define, and what would be freed with each
///
/// A loader that retains much and should be gone is a leak of classes: `paths-to-root` says what holds it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Classes of the same name that several loaders define, instead of loaders
    #[arg(long, conflicts_with = "sort", help_heading = "Filter")]
    duplicates: bool,

    /// Order of the loaders
    #[arg(long, value_name = "KEY", default_value = "retained", help_heading = "Output")]
    sort: SortArg,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Those that retain most first
    Retained,
    /// Those that define most classes first
    Classes,
    /// Most instances of their classes first
    Instances,
    /// Most bytes in instances of their classes first
    Bytes,
}

/// What was found.
enum Answer {
    Loaders(Vec<Row>),
    Duplicates(Vec<Duplicate>),
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sort_by = match args.sort {
        SortArg::Retained => SortBy::Retained,
        SortArg::Classes => SortBy::Classes,
        SortArg::Instances => SortBy::Instances,
        SortArg::Bytes => SortBy::Shallow,
    };
    let (heap, _, answer) = args.input.with_graph(|heap, graph| {
        let (summary, bytes) = (heap.summary(), heap.bytes(&Quiet)?);
        let labels = Labels::new(heap, graph, bytes);
        Ok(if args.duplicates {
            Answer::Duplicates(loaders::duplicates(summary, graph, &labels))
        } else {
            Answer::Loaders(loaders::loaders(&Objects::new(summary, graph, bytes), &labels, sort_by))
        })
    })?;
    let most = args::top(args.top, args.output.format(), USUAL_TOP).unwrap_or(usize::MAX);
    let mut out = output::stdout();
    let is_empty = match &answer {
        Answer::Loaders(rows) => {
            write_loaders(&mut out, args, &heap, rows, most)?;
            rows.is_empty()
        }
        Answer::Duplicates(rows) => {
            write_duplicates(&mut out, args, &heap, rows, most)?;
            rows.is_empty()
        }
    };
    output::finish(out)?;
    if is_empty && !args.input.quiet {
        messages::line("note", "no class was loaded by several loaders");
    }
    Ok(match (heap.summary().is_damaged(), is_empty) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

/// A loader in words, as `histo` names it.
pub(crate) fn loader_text(summary: &Summary, id: u64) -> String {
    object::loader(id, summary.loader_class(id))
}

/// A loader's object id; `None` for the boot loader.
fn loader_id(id: u64) -> Option<String> {
    (id != 0).then(|| object_id(id))
}

#[derive(Serialize)]
struct RowOut {
    object: Option<String>,
    class: Option<String>,
    label: Option<String>,
    parent: Option<String>,
    classes: u64,
    instances: u64,
    shallow_bytes: u64,
    retained_bytes: Option<u64>,
}

impl RowOut {
    const COLUMNS: &[&str] =
        &["object", "class", "label", "parent", "classes", "instances", "shallow_bytes", "retained_bytes"];

    fn new(summary: &Summary, row: &Row, text: AsText) -> Self {
        let class =
            if row.id == 0 { Some(object::BOOT_LOADER) } else { object::class_name(summary, row.class) };
        Self {
            object: loader_id(row.id),
            class: class.map(text),
            label: row.label.as_deref().map(text),
            parent: row
                .parent
                .map(|parent| loader_id(parent).unwrap_or_else(|| object::BOOT_LOADER.to_owned())),
            classes: row.classes,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

fn write_loaders(
    out: &mut dyn Write,
    args: &Args,
    heap: &Heap,
    all: &[Row],
    most: usize,
) -> anyhow::Result<()> {
    let summary = heap.summary();
    let rows = all.iter().take(most);
    match args.output.format() {
        Format::Csv => {
            let rows = rows.map(|row| RowOut::new(summary, row, object::cell));
            return Ok(csv::write_flat(out, RowOut::COLUMNS, rows)?);
        }
        Format::Json => {
            let rows: Vec<RowOut> = rows.map(|row| RowOut::new(summary, row, str::to_owned)).collect();
            let more = json!({ "total": { "loaders": all.len() } });
            return output::json(out, "loaders", heap, rows, more);
        }
        Format::Table => {}
    }
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("classes", Align::Right),
        ("instances", Align::Right),
        ("shallow", Align::Right),
        ("parent", Align::Left),
        ("id", Align::Left),
        ("loader", Align::Left),
    ]);
    for row in rows {
        let row = RowOut::new(summary, row, str::to_owned);
        let name = match (&row.object, &row.class) {
            (Some(_), None) => "not in the dump".to_owned(),
            (_, class) => object::describe_without_id(class.as_deref(), row.label.as_deref()),
        };
        table.row([
            row.retained_bytes.map(grouped).unwrap_or_default(),
            grouped(row.classes),
            grouped(row.instances),
            grouped(row.shallow_bytes),
            row.parent.unwrap_or_default(),
            row.object.unwrap_or_default(),
            name,
        ]);
    }
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, most, all.len() as u64, "loaders")?)
}

#[derive(Serialize)]
struct DuplicateOut {
    class: Option<String>,
    class_object: Option<String>,
    loader: String,
    loader_object: Option<String>,
    loader_label: Option<String>,
    loaders: u64,
    instances: u64,
    shallow_bytes: u64,
    retained_bytes: Option<u64>,
}

impl DuplicateOut {
    const COLUMNS: &[&str] = &[
        "class",
        "class_object",
        "loader",
        "loader_object",
        "loader_label",
        "loaders",
        "instances",
        "shallow_bytes",
        "retained_bytes",
    ];

    fn new(summary: &Summary, row: &Duplicate, text: AsText) -> Self {
        let class = summary.class(row.class);
        Self {
            class: class.map(|class| text(summary.class_name(class))),
            class_object: class.map(|class| object_id(class.id.get())),
            loader: text(&loader_text(summary, row.loader)),
            loader_object: loader_id(row.loader),
            loader_label: row.loader_label.as_deref().map(text),
            loaders: row.loaders,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

fn write_duplicates(
    out: &mut dyn Write,
    args: &Args,
    heap: &Heap,
    all: &[Duplicate],
    most: usize,
) -> anyhow::Result<()> {
    let summary = heap.summary();
    let rows = all.iter().take(most);
    match args.output.format() {
        Format::Csv => {
            let rows = rows.map(|row| DuplicateOut::new(summary, row, object::cell));
            return Ok(csv::write_flat(out, DuplicateOut::COLUMNS, rows)?);
        }
        Format::Json => {
            let rows: Vec<DuplicateOut> =
                rows.map(|row| DuplicateOut::new(summary, row, str::to_owned)).collect();
            let more = json!({ "total": { "rows": all.len() } });
            return output::json(out, "loaders", heap, rows, more);
        }
        Format::Table if all.is_empty() => return Ok(()),
        Format::Table => {}
    }
    let mut table = Builder::new(&[
        ("instances", Align::Right),
        ("shallow", Align::Right),
        ("class object", Align::Left),
        ("loader", Align::Left),
        ("class", Align::Left),
    ]);
    for row in rows {
        let row = DuplicateOut::new(summary, row, str::to_owned);
        let label = row.loader_label.map(|label| format!(" \"{label}\"")).unwrap_or_default();
        table.row([
            grouped(row.instances),
            grouped(row.shallow_bytes),
            row.class_object.unwrap_or_default(),
            format!("{}{label}", row.loader),
            row.class.unwrap_or_default(),
        ]);
    }
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, most, all.len() as u64, "classes")?)
}
