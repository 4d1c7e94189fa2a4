//! `dominators`: the dominator tree.

pub(crate) mod all;

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::classes::histogram::GroupBy;
use crate::query::dominators::listing::{self, GroupRow, Listing, Question, Row};
use crate::query::dominators::preorder::Start;
use crate::query::objects::condition::size;
use crate::query::objects::label::Labels;
use crate::query::objects::selection;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, Style, grouped, percent};
use crate::report::{Format, csv, json::object_id, tree};

use crate::cli::Outcome;
use crate::cli::class::histo;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli dominators heap.hprof
  hprof-cli dominators heap.hprof --depth 3 --top 5 --min-retained 1MB
  hprof-cli dominators heap.hprof --of 0x7c00012a8
  hprof-cli dominators heap.hprof --group-by package
  hprof-cli dominators heap.hprof --all --format csv | sort -t, -k4,4nr | head";

/// Objects of each level of a table when nothing is said.
const USUAL_TOP: usize = 20;
/// Terminals of fewer columns get no bars: names need the room.
const ROOM_FOR_BARS: u16 = 100;
/// Rows that are made before anything is shown. Longer answers are made while they are written.
const KEPT: usize = 10_000;

/// The biggest objects, by what would be freed with each: the dominator tree
///
/// An object dominates another if every path from the roots to the other leads through it: then the other is freed with
/// it. The retained size of an object is the shallow size of all that it dominates, itself included.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Start from this object and show what it dominates
    #[arg(long, value_name = "OBJECT", value_parser = selection::object_id, help_heading = "Filter")]
    of: Option<u64>,

    /// Only objects that retain at least so much: 4096, 512KB, 10MB, 1.5GB (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "0", hide_default_value = true, help_heading = "Filter")]
    min_retained: u64,

    /// Levels of the tree
    #[arg(long, value_name = "D", default_value = "1", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Output")]
    depth: u32,

    /// Only the N largest of each level; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// Add up the objects of one level by class, package or loader
    #[arg(long, value_name = "KEY", conflicts_with_all = ["depth", "min_retained"], help_heading = "Output")]
    group_by: Option<GroupArg>,

    /// Every reachable object with its retained size and its dominator, in preorder; JSON and CSV only
    #[arg(long, conflicts_with_all = ["of", "top", "depth", "min_retained", "group_by"], help_heading = "Output")]
    all: bool,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GroupArg {
    /// Objects of a class
    Class,
    /// Objects of all classes of a package
    Package,
    /// Objects of all classes of a loader
    Loader,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    if args.all {
        anyhow::ensure!(
            format != Format::Table,
            "--all is for programs: give --format csv or --format json (--top 0 --depth N is a table of all)"
        );
        return all::run(&args.input, format);
    }
    match args.group_by {
        Some(group_by) => groups(args, group_by),
        None => objects(args),
    }
}

/// Where the listing starts; `None` if the object is unreachable, or not in the dump.
fn start(graph: &ObjectGraph, of: Option<u64>) -> Option<Start> {
    let Some(id) = of else { return Some(Start::Roots) };
    graph.tree.reachable_position(graph.objects.addresses.index_of(id)?).map(Start::Object)
}

/// Says why there is no answer, and which exit code that makes.
fn outcome(args: &Args, heap: &Heap, graph: &ObjectGraph, start: Option<Start>, is_empty: bool) -> Outcome {
    if let (Some(id), None, false) = (args.of, start, args.input.quiet) {
        let text = match graph.objects.addresses.index_of(id) {
            None => format!("there is no object {id:#x} in the dump"),
            Some(_) => format!("{id:#x} is unreachable: nothing dominates it, and it retains nothing"),
        };
        messages::line("note", &text);
    }
    match (heap.summary().is_damaged(), is_empty) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    }
}

fn objects(args: &Args) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let (heap, graph, (start, listing, rows)) = args.input.with_graph(|heap, graph| {
        let Some(start) = start(graph, args.of) else { return Ok((None, Listing::default(), Vec::new())) };
        let question = Question {
            start,
            levels: args.depth,
            top: args::top(args.top, format, USUAL_TOP),
            min_retained_bytes: args.min_retained,
        };
        let listing = listing::list(&graph.tree, &question);
        let labels = Labels::new(heap, graph, heap.bytes(&Quiet)?);
        let kept = listing.positions.iter().take(KEPT);
        let rows: Vec<Row> = kept.filter_map(|place| listing::row(graph, &labels, *place)).collect();
        Ok((Some(start), listing, rows))
    })?;
    let labels = Labels::new(&heap, &graph, heap.bytes(&Quiet)?);
    let rest = listing.positions.iter().skip(KEPT);
    let rows = rows.into_iter().chain(rest.filter_map(|place| listing::row(&graph, &labels, *place)));
    let mut out = output::stdout();
    match format {
        Format::Table => {
            let rows: Vec<Row> = rows.collect();
            if let Some(start) = start {
                table(&mut out, &heap, &graph, start, &listing, &rows, args)?;
            }
        }
        Format::Csv => {
            let rows = rows.map(|row| RowOut::new(&heap, &row, object::cell));
            csv::write_flat(&mut out, RowOut::COLUMNS, rows)?;
        }
        Format::Json => {
            let rows = Streamed::new(rows.map(|row| RowOut::new(&heap, &row, str::to_owned)));
            output::json(&mut out, "dominators", &heap, rows, reachable(&graph))?;
        }
    }
    all::ensure_right(&graph)?;
    output::finish(out)?;
    Ok(outcome(args, &heap, &graph, start, listing.positions.is_empty()))
}

/// The key beside the rows.
pub(crate) fn reachable(graph: &ObjectGraph) -> serde_json::Value {
    json!({ "reachable": { "objects": graph.tree.reachable(), "shallow_bytes": graph.tree.reachable_bytes() } })
}

#[derive(Serialize)]
struct RowOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    shallow_bytes: u64,
    retained_bytes: u64,
    retained_objects: u64,
    dominated: u64,
    depth: u32,
}

impl RowOut {
    const COLUMNS: &[&str] = &[
        "object",
        "class",
        "label",
        "shallow_bytes",
        "retained_bytes",
        "retained_objects",
        "dominated",
        "depth",
    ];

    fn new(heap: &Heap, row: &Row, text: AsText) -> Self {
        Self {
            object: object_id(row.id),
            class: object::class_name(heap.summary(), row.class).map(text),
            label: row.label.as_deref().map(text),
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
            retained_objects: row.retained_objects,
            dominated: row.dominated,
            depth: row.depth,
        }
    }
}

fn table(
    out: &mut dyn Write,
    heap: &Heap,
    graph: &ObjectGraph,
    start: Start,
    listing: &Listing,
    rows: &[Row],
    args: &Args,
) -> anyhow::Result<()> {
    let style = output::style(&args.output);
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("%", Align::Right),
        ("", Align::Left),
        ("objects", Align::Right),
        ("shallow", Align::Right),
        ("id", Align::Left),
        ("object", Align::Left),
    ]);
    let whole = graph.tree.reachable_bytes();
    let first_depth = rows.first().map_or(0, |row| row.depth);
    let depths: Vec<u32> = rows.iter().map(|row| row.depth.saturating_sub(first_depth)).collect();
    let last_level = args.depth - u32::from(start == Start::Roots);
    for ((row, branch), below) in rows.iter().zip(tree::branches(&depths)).zip(tree::children(&depths)) {
        let class = object::class_name(heap.summary(), row.class);
        let is_opened = row.depth - first_depth < last_level && below < row.dominated;
        let cut = if is_opened { format!(" ({below} of {})", grouped(row.dominated)) } else { String::new() };
        let name = object::describe_without_id(class, row.label.as_deref());
        table.row([
            grouped(row.retained_bytes),
            percent(row.retained_bytes, whole),
            bar(row.retained_bytes, whole, style),
            grouped(row.retained_objects),
            grouped(row.shallow_bytes),
            object_id(row.id),
            format!("{branch}{name}{cut}"),
        ]);
    }
    let mut total = |bytes: u64, objects: String, name: String| {
        let empty = String::new;
        table.total([grouped(bytes), percent(bytes, whole), empty(), objects, empty(), empty(), name]);
    };
    if listing.others > 0 && start == Start::Roots {
        total(listing.others_bytes, String::new(), format!("{} others", grouped(listing.others)));
    }
    total(whole, grouped(graph.tree.reachable().into()), "all reachable objects".to_owned());
    table.write(out, style)?;
    if listing.others > 0 && args.min_retained == 0 {
        let deeper = if args.depth == 1 { "; --depth 2 shows what they dominate" } else { "" };
        writeln!(out, "--top 0 shows all{deeper}")?;
    }
    Ok(())
}

/// A bar, if the terminal has room for it.
fn bar(part: u64, whole: u64, style: Style) -> String {
    if style.width.is_some_and(|width| width < ROOM_FOR_BARS) {
        String::new()
    } else {
        tree::bar(part, whole)
    }
}

fn groups(args: &Args, group_by: GroupArg) -> anyhow::Result<Outcome> {
    let format = args.output.format();
    let key = match group_by {
        GroupArg::Class => GroupBy::Class,
        GroupArg::Package => GroupBy::Package,
        GroupArg::Loader => GroupBy::Loader,
    };
    let (heap, graph, (start, rows)) = args.input.with_graph(|heap, graph| {
        let Some(start) = start(graph, args.of) else { return Ok((None, Vec::new())) };
        Ok((Some(start), listing::group(heap.summary(), graph, start, key)))
    })?;
    let total = rows.len();
    let is_empty = rows.is_empty();
    let shown = args::top(args.top, format, USUAL_TOP).unwrap_or(usize::MAX).min(total);
    let mut out = output::stdout();
    match format {
        Format::Table => {
            group_table(&mut out, &graph, group_by, &rows, shown, args)?;
            if shown < total {
                let (hidden, total) = (grouped((total - shown) as u64), grouped(total as u64));
                writeln!(out, "{hidden} of {total} rows are not shown; --top 0 shows all")?;
            }
        }
        Format::Csv => {
            let columns = GroupOut::columns(group_by);
            let rows = rows.iter().take(shown).map(|row| GroupOut::new(row, group_by, object::cell));
            csv::write_flat(&mut out, columns, rows)?;
        }
        Format::Json => {
            let rows = rows.iter().take(shown);
            let rows: Vec<GroupOut> = rows.map(|row| GroupOut::new(row, group_by, str::to_owned)).collect();
            output::json(&mut out, "dominators", &heap, rows, reachable(&graph))?;
        }
    }
    output::finish(out)?;
    Ok(outcome(args, &heap, &graph, start, is_empty))
}

/// The name of a group.
fn group_name(row: &GroupRow, group_by: GroupArg) -> Option<String> {
    match group_by {
        GroupArg::Class | GroupArg::Package => {
            Some(row.group.name.to_string()).filter(|_| row.group.classes > 0 || !row.group.name.is_empty())
        }
        GroupArg::Loader => histo::loader_label(&row.group),
    }
}

#[derive(Serialize)]
struct GroupOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loader: Option<Option<String>>,
    objects: u64,
    shallow_bytes: u64,
    retained_bytes: u64,
    retained_objects: u64,
}

impl GroupOut {
    fn columns(group_by: GroupArg) -> &'static [&'static str] {
        match group_by {
            GroupArg::Class => {
                &["class", "loader", "objects", "shallow_bytes", "retained_bytes", "retained_objects"]
            }
            GroupArg::Package => {
                &["package", "objects", "shallow_bytes", "retained_bytes", "retained_objects"]
            }
            GroupArg::Loader => &["loader", "objects", "shallow_bytes", "retained_bytes", "retained_objects"],
        }
    }

    fn new(row: &GroupRow, group_by: GroupArg, text: AsText) -> Self {
        let name = group_name(row, group_by).as_deref().map(text);
        let loader = histo::loader_label(&row.group).as_deref().map(text);
        let (class, package, loader) = match group_by {
            GroupArg::Class => (Some(name), None, Some(loader)),
            GroupArg::Package => (None, Some(name), None),
            GroupArg::Loader => (None, None, Some(name)),
        };
        Self {
            class,
            package,
            loader,
            objects: row.group.instances,
            shallow_bytes: row.group.shallow_bytes,
            retained_bytes: row.group.retained_bytes.unwrap_or(0),
            retained_objects: row.retained_objects,
        }
    }
}

fn group_table(
    out: &mut dyn Write,
    graph: &ObjectGraph,
    group_by: GroupArg,
    rows: &[GroupRow],
    shown: usize,
    args: &Args,
) -> anyhow::Result<()> {
    let title = match group_by {
        GroupArg::Class => "class",
        GroupArg::Package => "package",
        GroupArg::Loader => "loader",
    };
    let style = output::style(&args.output);
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("%", Align::Right),
        ("", Align::Left),
        ("objects", Align::Right),
        ("shallow", Align::Right),
        (title, Align::Left),
    ]);
    let whole = graph.tree.reachable_bytes();
    let cells = |bytes: u64, objects: u64, shallow_bytes: u64, name: String| {
        let (part, bar) = (percent(bytes, whole), bar(bytes, whole, style));
        [grouped(bytes), part, bar, grouped(objects), grouped(shallow_bytes), name]
    };
    let bytes = |row: &GroupRow| row.group.retained_bytes.unwrap_or(0);
    for row in rows.iter().take(shown) {
        let name = group_name(row, group_by).unwrap_or_else(|| "<unknown>".to_owned());
        table.row(cells(bytes(row), row.group.instances, row.group.shallow_bytes, name));
    }
    let sum = |of: &dyn Fn(&GroupRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    let (objects, shallow_bytes) = (sum(&|row| row.group.instances), sum(&|row| row.group.shallow_bytes));
    table.total(cells(sum(&bytes), objects, shallow_bytes, "total".to_owned()));
    Ok(table.write(out, style)?)
}
