//! `refs`: what an object refers to, or what refers to it.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::model::summary::Summary;
use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::classes::suggestions;
use crate::query::objects::refs::{Direction, GroupRow, Refs, Row};
use crate::query::objects::selection::{Selection, What};
use crate::query::objects::strength::Strength;
use crate::query::paths::steps::View;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, escape, json::object_id};

use crate::cli::Outcome;
use crate::cli::retention::dominators::all;
use crate::cli::retention::paths_to_root;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli refs heap.hprof 0x7c00012a8
  hprof-cli refs heap.hprof 0x7c00012a8 --incoming
  hprof-cli refs heap.hprof 0x7c00012a8 --incoming --group-by class
  hprof-cli refs heap.hprof com.acme.Registry
  hprof-cli refs heap.hprof 0x7c00012a8 --format json | jq -r '.rows[] | [.reference, .object] | @tsv'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 20;
/// Rows that are made before anything is shown. Longer answers are made while they are written.
const KEPT: usize = 10_000;
/// Classes that are named when several match.
const NAMED: usize = 5;

/// What an object refers to, or what refers to it, and by which field
///
/// Of a class object static fields, superclass and loader; of a thread also what its stack holds. Objects refer to the
/// class object of their class: of a class object these are counted and not listed, `instances` lists them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// The object's id, `0x7c00012a8`; or a class, for its class object
    #[arg(value_name = "OBJECT", help_heading = "Filter")]
    object: Selection,

    /// What refers to the object
    #[arg(long, help_heading = "Filter")]
    incoming: bool,

    /// What the object refers to; this is the default
    #[arg(long, conflicts_with = "incoming", help_heading = "Filter")]
    outgoing: bool,

    /// Add up the objects by their class
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    group_by: Option<GroupArg>,

    /// Only the first N; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GroupArg {
    /// Objects of a class
    Class,
}

impl Args {
    fn direction(&self) -> Direction {
        if self.incoming { Direction::Incoming } else { Direction::Outgoing }
    }

    fn most(&self) -> usize {
        args::top(self.top, self.output.format(), USUAL_TOP).unwrap_or(usize::MAX)
    }
}

/// The object that was meant.
enum Target {
    Object(u32),
    /// None; with what is like it, in words.
    None(String),
}

/// What was found.
struct Answer {
    target: Target,
    total: u64,
    /// The first of the rows.
    rows: Vec<Row>,
    groups: Vec<GroupRow>,
    /// Why the object is a root, in words.
    root: Option<String>,
    /// Objects that refer to it as their class.
    instances: Option<u64>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (heap, graph, answer) = args.input.with_graph(|heap, graph| ask(args, heap, graph))?;
    let mut out = output::stdout();
    let damaged = heap.summary().is_damaged();
    let object = match &answer.target {
        Target::Object(object) => *object,
        Target::None(text) => {
            messages::line("error", text);
            nothing(&mut out, args, &heap)?;
            output::finish(out)?;
            return Ok(Outcome::No);
        }
    };
    let view = View::new(&heap, &graph, heap.bytes(&Quiet)?);
    if args.group_by.is_some() {
        write_groups(&mut out, args, &heap, &view, object, &answer)?;
    } else {
        write_rows(&mut out, args, &heap, &view, object, &answer)?;
    }
    all::ensure_right(&graph)?;
    output::finish(out)?;
    Ok(match (damaged, answer.total) {
        (true, _) => Outcome::Damaged,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Fine,
    })
}

fn ask(args: &Args, heap: &Heap, graph: &ObjectGraph) -> anyhow::Result<Answer> {
    let mut answer = Answer {
        target: target(args, heap, graph),
        total: 0,
        rows: Vec::new(),
        groups: Vec::new(),
        root: None,
        instances: None,
    };
    let Target::Object(object) = answer.target else { return Ok(answer) };
    let view = View::new(heap, graph, heap.bytes(&Quiet)?);
    let refs = Refs::new(&view);
    let direction = args.direction();
    if args.group_by.is_some() {
        answer.groups = refs.groups(object, direction);
        answer.total = answer.groups.len() as u64;
    } else {
        answer.total = refs.count(object, direction);
        answer.rows = refs.rows(object, direction).take(args.most().min(KEPT)).collect();
    }
    if args.incoming {
        answer.instances = refs.instances(object);
        let is_root = view.edges.roots.contains(object);
        answer.root = is_root.then(|| paths_to_root::describe_root(&view.root(object)));
    }
    Ok(answer)
}

/// Finds the object that is meant.
fn target(args: &Args, heap: &Heap, graph: &ObjectGraph) -> Target {
    let (summary, text) = (heap.summary(), &args.object.text);
    let path = heap.path().display();
    match &args.object.what {
        What::Object(id) => match graph.objects.addresses.index_of(*id) {
            Some(object) => Target::Object(object),
            None => {
                let near: Vec<String> =
                    suggestions::object_ids(graph, *id).into_iter().map(object_id).collect();
                let none = format!("there is no object {id:#x} in {path}");
                let near = if near.is_empty() {
                    String::new()
                } else {
                    format!("; objects next to it are {}", near.join(", "))
                };
                Target::None(none + &near)
            }
        },
        What::Classes(pattern) => {
            let matching =
                summary.numbered_classes().filter(|(_, class)| pattern.matches(summary.class_name(class)));
            let found: Vec<(u32, &str)> = matching
                .filter_map(|(number, class)| Some((graph.class_object(number)?, summary.class_name(class))))
                .collect();
            match found.as_slice() {
                [(object, _)] => Target::Object(*object),
                [] => Target::None(no_class(summary, text)),
                several => {
                    let named = several.iter().take(NAMED).map(|(object, name)| {
                        format!("{name} {:#x}", graph.objects.addresses.id_of(*object).unwrap_or(0))
                    });
                    let named: Vec<String> = named.collect();
                    let more = if several.len() > NAMED { ", ..." } else { "" };
                    Target::None(format!(
                        "{} classes match {text}: give one, or the id of its class object: {}{more}",
                        grouped(several.len() as u64),
                        named.join(", ")
                    ))
                }
            }
        }
    }
}

fn no_class(summary: &Summary, text: &str) -> String {
    let near = suggestions::class_names(summary, text);
    let near = if near.is_empty() { String::new() } else { format!("; there are {}", near.join(", ")) };
    format!("no class object of the dump matches {text}, and ids of objects look like 0x7c00012a8{near}")
}

/// The empty answer.
fn nothing(out: &mut dyn Write, args: &Args, heap: &Heap) -> anyhow::Result<()> {
    match args.output.format() {
        Format::Table => Ok(()),
        Format::Json => output::json(out, "refs", heap, [(); 0], json!({ "of": null })),
        Format::Csv => {
            let columns = if args.group_by.is_some() { GroupOut::COLUMNS } else { RowOut::COLUMNS };
            Ok(csv::write_flat(out, columns, std::iter::empty::<()>())?)
        }
    }
}

/// The keys beside the rows.
fn more(args: &Args, view: &View<'_>, object: u32, answer: &Answer) -> Value {
    let of = view.step(object, None);
    json!({
        "of": { "object": object_id(of.id), "class": of.class, "label": of.label },
        "direction": if args.incoming { "incoming" } else { "outgoing" },
        "total": { "rows": answer.total },
        "root": answer.root,
        "instances_of_class": answer.instances,
    })
}

fn write_rows(
    out: &mut dyn Write,
    args: &Args,
    heap: &Heap,
    view: &View<'_>,
    object: u32,
    answer: &Answer,
) -> anyhow::Result<()> {
    let refs = Refs::new(view);
    let made = answer.rows.len();
    // What was made is taken up again where it ended.
    let rest = if made < KEPT { None } else { Some(refs.rows(object, args.direction()).skip(made)) };
    let rows = (answer.rows.iter().cloned()).chain(rest.into_iter().flatten()).take(args.most());
    match args.output.format() {
        Format::Table => row_table(out, args, view, object, answer, rows),
        Format::Csv => {
            Ok(csv::write_flat(out, RowOut::COLUMNS, rows.map(|row| RowOut::new(&row, object::cell)))?)
        }
        Format::Json => {
            let rows = Streamed::new(rows.map(|row| RowOut::new(&row, str::to_owned)));
            output::json(out, "refs", heap, rows, more(args, view, object, answer))
        }
    }
}

#[derive(Serialize)]
struct RowOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    reference: Option<String>,
    #[serde(rename = "static")]
    is_static: bool,
    strength: &'static str,
    shallow_bytes: Option<u64>,
    retained_bytes: Option<u64>,
}

impl RowOut {
    const COLUMNS: &[&str] =
        &["object", "class", "label", "reference", "static", "strength", "shallow_bytes", "retained_bytes"];

    fn new(row: &Row, text: AsText) -> Self {
        Self {
            object: object_id(row.id),
            class: row.class.as_deref().map(text),
            label: row.label.as_deref().map(text),
            reference: row.reference.as_deref().map(text),
            is_static: row.is_static,
            strength: row.strength.name(),
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

/// What a table is of.
fn title(out: &mut dyn Write, args: &Args, view: &View<'_>, object: u32) -> anyhow::Result<()> {
    let of = view.step(object, None);
    let of = object::describe(of.class.as_deref(), of.id, of.label.as_deref());
    let what = if args.incoming { "references to" } else { "references of" };
    Ok(writeln!(out, "{what} {}", escape::text(&of))?)
}

/// Writes a table of so many rows, and what stands below it.
fn finish(
    out: &mut dyn Write,
    args: &Args,
    table: Builder,
    (shown, what): (usize, &str),
    answer: &Answer,
) -> anyhow::Result<()> {
    if shown == 0 {
        writeln!(out, "none")?;
    } else {
        table.write(out, output::style(&args.output))?;
    }
    output::left_out(out, shown, answer.total, what)?;
    if let Some(root) = &answer.root {
        writeln!(out, "it is a root: {}", escape::text(root))?;
    }
    if let Some(instances) = answer.instances.filter(|instances| *instances > 0) {
        writeln!(out, "{} objects more refer to it as their class", grouped(instances))?;
    }
    Ok(())
}

fn row_table(
    out: &mut dyn Write,
    args: &Args,
    view: &View<'_>,
    object: u32,
    answer: &Answer,
    rows: impl Iterator<Item = Row>,
) -> anyhow::Result<()> {
    title(out, args, view, object)?;
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("shallow", Align::Right),
        ("by", Align::Left),
        ("id", Align::Left),
        ("object", Align::Left),
    ]);
    let mut shown = 0;
    for row in rows {
        shown += 1;
        let prefix = if row.is_static { "static " } else { "" };
        let suffix = match row.strength {
            Strength::Strong => String::new(),
            other => format!(" ({})", other.name()),
        };
        let what = if row.shallow_bytes.is_none() {
            "not in the dump".to_owned()
        } else {
            object::describe_without_id(row.class.as_deref(), row.label.as_deref())
        };
        table.row([
            row.retained_bytes.map(grouped).unwrap_or_default(),
            row.shallow_bytes.map(grouped).unwrap_or_default(),
            format!("{prefix}{}{suffix}", row.reference.as_deref().unwrap_or_default()),
            object_id(row.id),
            what,
        ]);
    }
    finish(out, args, table, (shown, "references"), answer)
}

#[derive(Serialize)]
struct GroupOut {
    class: Option<String>,
    objects: u64,
    shallow_bytes: u64,
    retained_bytes: u64,
}

impl GroupOut {
    const COLUMNS: &[&str] = &["class", "objects", "shallow_bytes", "retained_bytes"];
}

fn write_groups(
    out: &mut dyn Write,
    args: &Args,
    heap: &Heap,
    view: &View<'_>,
    object: u32,
    answer: &Answer,
) -> anyhow::Result<()> {
    let summary = heap.summary();
    let shown = answer.groups.iter().take(args.most());
    let row = |row: &GroupRow, text: AsText| GroupOut {
        class: object::class_name(summary, row.class).map(text),
        objects: row.objects,
        shallow_bytes: row.shallow_bytes,
        retained_bytes: row.retained_bytes,
    };
    match args.output.format() {
        Format::Csv => {
            let rows = shown.map(|group| row(group, object::cell));
            return Ok(csv::write_flat(out, GroupOut::COLUMNS, rows)?);
        }
        Format::Json => {
            let rows: Vec<GroupOut> = shown.map(|group| row(group, str::to_owned)).collect();
            return output::json(out, "refs", heap, rows, more(args, view, object, answer));
        }
        Format::Table => {}
    }
    title(out, args, view, object)?;
    let mut table = Builder::new(&[
        ("retained", Align::Right),
        ("shallow", Align::Right),
        ("objects", Align::Right),
        ("class", Align::Left),
    ]);
    let mut rows = 0;
    for group in shown {
        rows += 1;
        table.row([
            grouped(group.retained_bytes),
            grouped(group.shallow_bytes),
            grouped(group.objects),
            object::class_name(summary, group.class).unwrap_or("<unknown class>").to_owned(),
        ]);
    }
    finish(out, args, table, (rows, "classes"), answer)
}
