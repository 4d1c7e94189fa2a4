//! `instances`: the objects of some classes.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::objects::condition::{Condition, Filter};
use crate::query::objects::instances::{self, ClassSet, Found, Question, Row, SortBy};
use crate::query::objects::label::Labels;
use crate::query::objects::reader::Objects;
use crate::query::objects::selection::{Selection, What};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped, percent};
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::retention::dominators::all;
use crate::cli::retention::paths_to_root;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli instances heap.hprof java.lang.Thread
  hprof-cli instances heap.hprof java.util.AbstractMap --subclasses --where 'size > 10000'
  hprof-cli instances heap.hprof 'com.acme.**' --sort shallow --top 50
  hprof-cli instances heap.hprof java.lang.Thread --where 'name ~ worker' --where 'holder.daemon = true'
  hprof-cli instances heap.hprof 'byte[]' --where 'length >= 1048576' --format csv";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 20;
/// Rows that are made before anything is shown. Longer answers are made while they are written.
const KEPT: usize = 10_000;

/// The objects of a class, those that retain most first
///
/// Conditions compare a field of each object: numbers, booleans, chars, Strings, null. Other objects in a field compare
/// by their label, as it is shown: the name of an enum, the number in a box.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Which classes: `java.util.HashMap$Node`, `byte[]`, `com.acme.**`, or one class by the id of its class object
    #[arg(value_name = "CLASS", required = true, help_heading = "Filter")]
    classes: Vec<Selection>,

    /// Also objects of all classes that extend them
    #[arg(long, help_heading = "Filter")]
    subclasses: bool,

    /// Only objects whose field is like that: 'size > 100', 'name ~ worker' (contains), 'next != null', 'holder.daemon =
    /// true', 'length = 0' (arrays); = != < <= > >= ~; of several all must hold
    #[arg(long = "where", value_name = "CONDITION", help_heading = "Filter")]
    conditions: Vec<Condition>,

    /// Only objects that a root leads to
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Order of the rows
    #[arg(long, value_name = "KEY", default_value = "retained", help_heading = "Output")]
    sort: SortArg,

    /// Only the first N; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Those that retain most first, unreachable ones last
    Retained,
    /// The largest first
    Shallow,
    /// By address
    Address,
}

/// What was found.
#[derive(Debug, Default)]
struct Answer {
    found: Found,
    /// The first of the rows.
    rows: Vec<Row>,
    /// Selections, by number, that no class matches.
    unmatched: Vec<usize>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let (heap, graph, answer) = args.input.with_graph(|heap, graph| ask(args, heap, graph))?;
    let labels = Labels::new(&heap, &graph, heap.bytes(&Quiet)?);
    let Answer { found, rows, unmatched } = answer;
    let rest = found.objects.iter().skip(rows.len());
    let rows = rows.into_iter().chain(rest.map(|object| instances::row(&graph, &labels, *object)));
    let mut out = output::stdout();
    match format {
        Format::Table => {
            let rows: Vec<Row> = rows.collect();
            table(&mut out, &heap, &rows, found.total, graph.tree.reachable_bytes(), args)?;
        }
        Format::Csv => {
            let rows = rows.map(|row| RowOut::new(&heap, &row, object::cell));
            csv::write_flat(&mut out, RowOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = Streamed::new(rows.map(|row| RowOut::new(&heap, &row, str::to_owned)));
            let more = json!({ "total": { "objects": found.total } });
            output::json(&mut out, "instances", &heap, rows, more)?;
        }
    }
    all::ensure_right(&graph)?;
    output::finish(out)?;
    if !args.input.quiet {
        notes(args, &heap, &unmatched, found.total);
    }
    Ok(match (heap.summary().is_damaged(), found.total) {
        (true, _) => Outcome::Damaged,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Fine,
    })
}

fn ask(args: &Args, heap: &Heap, graph: &ObjectGraph) -> anyhow::Result<Answer> {
    let (summary, bytes) = (heap.summary(), heap.bytes(&Quiet)?);
    let classes = ClassSet::new(summary, graph, &args.classes, args.subclasses);
    let labels = Labels::new(heap, graph, bytes);
    let objects = Objects::new(summary, graph, bytes);
    let filter = if args.conditions.is_empty() || classes.is_empty() {
        None
    } else {
        Some(Filter::new(&objects, &labels, &args.conditions, &classes)?)
    };
    let found = if classes.is_empty() {
        Found::default()
    } else {
        let question = Question {
            classes: &classes,
            filter: filter.as_ref(),
            live: args.live,
            sort_by: match args.sort {
                SortArg::Retained => SortBy::Retained,
                SortArg::Shallow => SortBy::Shallow,
                SortArg::Address => SortBy::Address,
            },
            top: args::top(args.top, args.output.format(), USUAL_TOP),
        };
        instances::find(graph, &question)
    };
    let first = found.objects.iter().take(KEPT);
    let rows = first.map(|object| instances::row(graph, &labels, *object)).collect();
    Ok(Answer { found, rows, unmatched: classes.unmatched })
}

/// Says what rows cannot.
fn notes(args: &Args, heap: &Heap, unmatched: &[usize], total: u64) {
    for selection in unmatched.iter().filter_map(|at| args.classes.get(*at)) {
        match selection.what {
            What::Object(_) => messages::line(
                "note",
                &format!(
                    "{0} is no class object of the dump; `hprof-cli show {1} {0}` shows what it is",
                    selection.text,
                    heap.path().display()
                ),
            ),
            What::Classes(_) => paths_to_root::note_no_class(heap, selection),
        }
    }
    if total == 0 && unmatched.len() < args.classes.len() {
        let which = match (args.conditions.is_empty(), args.live) {
            (true, true) => " that a root leads to",
            (true, false) => "",
            (false, _) => " for which that holds",
        };
        let hint = if args.subclasses { "" } else { "; --subclasses takes those that extend it" };
        messages::line("note", &format!("there is no object of the class{which}{hint}"));
    }
}

#[derive(Serialize)]
struct RowOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    shallow_bytes: u64,
    retained_bytes: Option<u64>,
}

impl RowOut {
    const COLUMNS: &[&str] = &["object", "class", "label", "shallow_bytes", "retained_bytes"];

    fn new(heap: &Heap, row: &Row, text: AsText) -> Self {
        Self {
            object: object_id(row.id),
            class: object::class_name(heap.summary(), row.class).map(text),
            label: row.label.as_deref().map(text),
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

fn table(
    out: &mut dyn Write,
    heap: &Heap,
    rows: &[Row],
    total: u64,
    whole: u64,
    args: &Args,
) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("%", Align::Right),
        ("shallow", Align::Right),
        ("id", Align::Left),
        ("object", Align::Left),
    ]);
    for row in rows {
        let class = object::class_name(heap.summary(), row.class);
        table.row([
            row.retained_bytes.map_or_else(|| "unreachable".to_owned(), grouped),
            row.retained_bytes.map(|bytes| percent(bytes, whole)).unwrap_or_default(),
            grouped(row.shallow_bytes),
            object_id(row.id),
            object::describe_without_id(class, row.label.as_deref()),
        ]);
    }
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, rows.len(), total, "objects")?)
}
