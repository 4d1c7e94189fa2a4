//! `classes`: the classes of a dump, and what extends what.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::Heap;
use crate::index::model::summary::Summary;
use crate::query::classes::hierarchy::{self, Answer, Question, Row, SortBy};
use crate::query::classes::pattern::ClassPattern;
use crate::query::classes::suggestions;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, json::object_id, tree};

use super::loaders::loader_text;
use crate::cli::Outcome;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli classes heap.hprof
  hprof-cli classes heap.hprof 'com.acme.**' --sort class
  hprof-cli classes heap.hprof --tree --depth 3
  hprof-cli classes heap.hprof java.util.AbstractMap --tree
  hprof-cli classes heap.hprof --format json | jq '.rows[] | select(.subclasses > 10) | .class'";

/// Rows of a table when nothing is said; in a tree below each class.
const USUAL_TOP: usize = 20;
/// Levels of a tree in a table when nothing is said.
const USUAL_DEPTH: u32 = 2;

/// The classes in the dump, with their superclasses, and as a tree of what extends what
///
/// All that were loaded, those without objects too. Sizes are shallow ones, as in `histo`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Only classes that match one of these: `java.util.HashMap$Node`, `byte[]`, `com.acme.**`; a tree starts there
    #[arg(value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<String>,

    /// As a tree, from java.lang.Object on; subclasses with most instances first
    #[arg(long, conflicts_with = "sort", help_heading = "Output")]
    tree: bool,

    /// Levels of the tree; 0 for all [default: 2 in a table, all in JSON and CSV]
    #[arg(long, value_name = "D", requires = "tree", help_heading = "Output")]
    depth: Option<u32>,

    /// Order of the rows
    #[arg(long, value_name = "KEY", default_value = "instances", help_heading = "Output")]
    sort: SortArg,

    /// Only the first N, in a tree of each class's subclasses; 0 for all [default: 20 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most instances first
    Instances,
    /// Most instances first, those of subclasses included
    Total,
    /// Most bytes first
    Bytes,
    /// Most direct subclasses first
    Subclasses,
    /// By name
    Class,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let heap = args.input.open()?;
    let format = args.output.format();
    let question = Question {
        patterns: args.patterns.iter().map(|text| pattern(text)).collect(),
        sort_by: match args.sort {
            SortArg::Instances => SortBy::Instances,
            SortArg::Total => SortBy::Total,
            SortArg::Bytes => SortBy::Shallow,
            SortArg::Subclasses => SortBy::Subclasses,
            SortArg::Class => SortBy::Name,
        },
        top: args::top(args.top, format, USUAL_TOP),
        levels: match (args.depth, format) {
            (Some(0), _) | (None, Format::Json | Format::Csv) => None,
            (None, Format::Table) => Some(USUAL_DEPTH),
            (levels, _) => levels,
        },
    };
    let summary = heap.summary();
    let answer =
        if args.tree { hierarchy::tree(summary, &question) } else { hierarchy::list(summary, &question) };
    let mut out = output::stdout();
    match format {
        Format::Table if args.tree => tree_table(&mut out, summary, &answer, args)?,
        Format::Table => list_table(&mut out, summary, &answer, args)?,
        Format::Csv => {
            let rows = answer.rows.iter().map(|row| RowOut::new(summary, row, args.tree, object::cell));
            csv::write_flat(&mut out, RowOut::columns(args.tree), rows)?;
        }
        Format::Json => {
            let rows = answer.rows.iter().map(|row| RowOut::new(summary, row, args.tree, str::to_owned));
            let rows: Vec<RowOut> = rows.collect();
            output::json(&mut out, "classes", &heap, rows, json!({ "total": { "classes": answer.total } }))?;
        }
    }
    output::finish(out)?;
    if answer.total == 0 && !args.input.quiet {
        note(&heap, args);
    }
    Ok(match (summary.is_damaged(), answer.rows.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

fn pattern(text: &str) -> ClassPattern {
    // Every text is a pattern.
    let Ok(pattern) = text.parse();
    pattern
}

/// Says that nothing matches.
fn note(heap: &Heap, args: &Args) {
    messages::line("note", &format!("no class of {} matches", heap.path().display()));
    for pattern in &args.patterns {
        let near = suggestions::class_names(heap.summary(), pattern);
        if !near.is_empty() {
            messages::line("hint", &format!("there are {}", near.join(", ")));
        }
    }
}

/// The name of a class's superclass, if it has one.
fn superclass<'a>(summary: &'a Summary, row: &Row) -> Option<&'a str> {
    let above = summary.class_table().superclass(row.class)?;
    summary.class(above).map(|class| summary.class_name(class))
}

/// The loader of a class; `None` if the class is not dumped.
fn loader(summary: &Summary, row: &Row) -> Option<String> {
    let class = summary.class(row.class).filter(|class| class.is_dumped())?;
    Some(loader_text(summary, class.loader.get()))
}

fn class_object(summary: &Summary, row: &Row) -> Option<String> {
    let class = summary.class(row.class).filter(|class| class.is_dumped())?;
    Some(object_id(class.id.get()))
}

#[derive(Serialize)]
struct RowOut {
    class: Option<String>,
    loader: Option<String>,
    superclass: Option<String>,
    class_object: Option<String>,
    instances: u64,
    shallow_bytes: u64,
    subclasses: u64,
    total_instances: u64,
    total_shallow_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
}

impl RowOut {
    const COLUMNS: &[&str] = &[
        "class",
        "loader",
        "superclass",
        "class_object",
        "instances",
        "shallow_bytes",
        "subclasses",
        "total_instances",
        "total_shallow_bytes",
        "depth",
    ];

    fn columns(is_tree: bool) -> &'static [&'static str] {
        match Self::COLUMNS.split_last() {
            Some((_, columns)) if !is_tree => columns,
            _ => Self::COLUMNS,
        }
    }

    fn new(summary: &Summary, row: &Row, is_tree: bool, text: AsText) -> Self {
        Self {
            class: object::class_name(summary, Some(row.class)).map(text),
            loader: loader(summary, row).as_deref().map(text),
            superclass: superclass(summary, row).map(text),
            class_object: class_object(summary, row),
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            subclasses: row.subclasses,
            total_instances: row.total_instances,
            total_shallow_bytes: row.total_shallow_bytes,
            depth: is_tree.then_some(row.depth),
        }
    }
}

fn list_table(out: &mut dyn Write, summary: &Summary, answer: &Answer, args: &Args) -> anyhow::Result<()> {
    if answer.rows.is_empty() {
        return Ok(());
    }
    let mut table = Builder::new(&[
        ("instances", Align::Right),
        ("shallow", Align::Right),
        ("subclasses", Align::Right),
        ("with subclasses", Align::Right),
        ("class object", Align::Left),
        ("class", Align::Left),
    ]);
    for row in &answer.rows {
        let name = object::class_name(summary, Some(row.class)).unwrap_or_default();
        let above = superclass(summary, row).map(|above| format!(" extends {above}")).unwrap_or_default();
        table.row([
            grouped(row.instances),
            grouped(row.shallow_bytes),
            grouped(row.subclasses),
            grouped(row.total_instances),
            class_object(summary, row).unwrap_or_default(),
            format!("{name}{above}"),
        ]);
    }
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, answer.rows.len(), answer.total, "classes")?)
}

fn tree_table(out: &mut dyn Write, summary: &Summary, answer: &Answer, args: &Args) -> anyhow::Result<()> {
    if answer.rows.is_empty() {
        return Ok(());
    }
    let mut table = Builder::new(&[
        ("with subclasses", Align::Right),
        ("shallow", Align::Right),
        ("instances", Align::Right),
        ("class", Align::Left),
    ]);
    let depths: Vec<u32> = answer.rows.iter().map(|row| row.depth).collect();
    for ((row, branch), below) in answer.rows.iter().zip(tree::branches(&depths)).zip(tree::children(&depths))
    {
        let name = object::class_name(summary, Some(row.class)).unwrap_or_default();
        let cut = if below < row.subclasses {
            let what = if row.subclasses == 1 { "subclass" } else { "subclasses" };
            let of = if below == 0 { String::new() } else { format!("{below} of ") };
            format!(" ({of}{} {what})", grouped(row.subclasses))
        } else {
            String::new()
        };
        table.row([
            grouped(row.total_instances),
            grouped(row.total_shallow_bytes),
            grouped(row.instances),
            format!("{branch}{name}{cut}"),
        ]);
    }
    table.write(out, output::style(&args.output))?;
    let shown = answer.rows.len() as u64;
    if shown < answer.total {
        let (shown, total) = (grouped(shown), grouped(answer.total));
        writeln!(out, "{shown} of {total} classes; --depth 0 --top 0 shows all")?;
    }
    Ok(())
}
