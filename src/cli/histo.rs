//! `histo`: the class histogram.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::Heap;
use crate::query::histogram::{self, GroupBy, Histogram, Question, Row, SortBy, Totals};
use crate::query::pattern::ClassPattern;
use crate::report::table::{Align, Builder, grouped, percent};
use crate::report::{Format, csv, escape, json::object_id};

use super::args::{self, Input, LayoutArgs, Output};
use super::{Outcome, output};

pub(super) const EXAMPLES: &str = "Examples:
  hprof-cli histo heap.hprof
  hprof-cli histo heap.hprof 'com.acme.**' --sort instances
  hprof-cli histo heap.hprof --group-by package --top 10
  hprof-cli histo heap.hprof --format json | jq '.rows[0]'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// Instances and bytes of each class
///
/// Shallow sizes are those of the JVM itself, fitted to the dump's addresses (see `info`). All objects in the dump are
/// counted, unreachable ones too.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    input: Input,

    /// Only classes that match one of these: `java.util.HashMap$Node`, `byte[]`, `[B`, `com.acme.**`, `*Cache`
    #[arg(value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Order of the rows
    #[arg(long, value_name = "KEY", default_value = "bytes", help_heading = "Output")]
    sort: SortArg,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// What a row stands for
    #[arg(long, value_name = "KEY", default_value = "class", help_heading = "Output")]
    group_by: GroupArg,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most bytes first
    Bytes,
    /// Most instances first
    Instances,
    /// By name
    Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GroupArg {
    /// A class; classes of the same name from several loaders are several
    Class,
    /// All classes of a package
    Package,
    /// All classes of a loader
    Loader,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let heap = args.input.open()?;
    let sizes = args.layout.sizes(&heap);
    let format = args.output.format();
    let question = Question {
        patterns: args.patterns.clone(),
        group_by: match args.group_by {
            GroupArg::Class => GroupBy::Class,
            GroupArg::Package => GroupBy::Package,
            GroupArg::Loader => GroupBy::Loader,
        },
        sort_by: match args.sort {
            SortArg::Bytes => SortBy::Bytes,
            SortArg::Instances => SortBy::Instances,
            SortArg::Class => SortBy::Name,
        },
        top: args::top(args.top, format, USUAL_TOP),
    };
    let histogram = histogram::histogram(heap.summary(), &sizes, &question);
    let mut out = output::stdout();
    // JSON escapes by itself.
    let text = if format == Format::Json { str::to_owned } else { escaped };
    let rows = histogram.rows.iter();
    let show = Show { heap: &heap, format, total: histogram.total };
    match (format, question.group_by) {
        (Format::Table, _) => table(&mut out, &histogram, args)?,
        (_, GroupBy::Class) => {
            show.rows(&mut out, ClassOut::COLUMNS, rows.map(|row| ClassOut::new(row, text)))?
        }
        (_, GroupBy::Package) => {
            show.rows(&mut out, PackageOut::COLUMNS, rows.map(|row| PackageOut::new(row, text)))?;
        }
        (_, GroupBy::Loader) => {
            show.rows(&mut out, LoaderOut::COLUMNS, rows.map(|row| LoaderOut::new(row, text)))?;
        }
    }
    output::finish(out)?;
    Ok(match (heap.summary().is_damaged(), histogram.rows.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

/// Shows rows of any kind to programs.
struct Show<'a> {
    heap: &'a Heap,
    format: Format,
    total: Totals,
}

impl Show<'_> {
    fn rows<R: Serialize>(
        &self,
        out: &mut dyn Write,
        columns: &[&str],
        rows: impl Iterator<Item = R>,
    ) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            return Ok(csv::write_flat(out, columns, rows)?);
        }
        let Totals { rows: count, instances, shallow_bytes } = self.total;
        let total = json!({ "rows": count, "instances": instances, "shallow_bytes": shallow_bytes });
        output::json(out, "histo", self.heap, rows.collect::<Vec<_>>(), json!({ "total": total }))
    }
}

fn escaped(text: &str) -> String {
    escape::cell(text).into_owned()
}

/// A loader as it is shown: its class and object id.
fn loader_label(row: &Row) -> Option<String> {
    row.loader.as_ref().map(|loader| match (&loader.class, loader.id) {
        (_, 0) => "<boot loader>".to_owned(),
        (Some(class), id) => format!("{class} @ {id:#x}"),
        (None, id) => format!("{id:#x}"),
    })
}

/// The object id of a loader that is an object.
fn loader_object(row: &Row) -> Option<String> {
    row.loader.as_ref().filter(|loader| loader.id != 0).map(|loader| object_id(loader.id))
}

#[derive(Serialize)]
struct ClassOut {
    class: String,
    loader: Option<String>,
    instances: u64,
    shallow_bytes: u64,
    loader_object: Option<String>,
    class_object: Option<String>,
}

impl ClassOut {
    const COLUMNS: &[&str] =
        &["class", "loader", "instances", "shallow_bytes", "loader_object", "class_object"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            class: text(&row.name),
            loader: loader_label(row).as_deref().map(text),
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            loader_object: loader_object(row),
            class_object: row.class_object.map(object_id),
        }
    }
}

#[derive(Serialize)]
struct PackageOut {
    package: String,
    classes: u64,
    instances: u64,
    shallow_bytes: u64,
}

impl PackageOut {
    const COLUMNS: &[&str] = &["package", "classes", "instances", "shallow_bytes"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            package: text(&row.name),
            classes: row.classes,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
        }
    }
}

#[derive(Serialize)]
struct LoaderOut {
    loader: Option<String>,
    classes: u64,
    instances: u64,
    shallow_bytes: u64,
    loader_object: Option<String>,
}

impl LoaderOut {
    const COLUMNS: &[&str] = &["loader", "classes", "instances", "shallow_bytes", "loader_object"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            loader: loader_label(row).as_deref().map(text),
            classes: row.classes,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            loader_object: loader_object(row),
        }
    }
}

fn table(out: &mut dyn Write, histogram: &Histogram, args: &Args) -> anyhow::Result<()> {
    let by_class = args.group_by == GroupArg::Class;
    let title = match args.group_by {
        GroupArg::Class => "class",
        GroupArg::Package => "package",
        GroupArg::Loader => "loader",
    };
    let mut columns =
        vec![("#", Align::Right), ("instances", Align::Right), ("bytes", Align::Right), ("%", Align::Right)];
    if !by_class {
        columns.push(("classes", Align::Right));
    }
    columns.push((title, Align::Left));
    let mut table = Builder::new(&columns);
    let total = &histogram.total;
    let cells = |number: String, row: (u64, u64, Option<u64>), name: String| {
        let (instances, bytes, classes) = row;
        let mut cells = vec![number, grouped(instances), grouped(bytes), percent(bytes, total.shallow_bytes)];
        if !by_class {
            cells.push(classes.map(grouped).unwrap_or_default());
        }
        cells.push(name);
        cells
    };
    for (number, row) in (1u64..).zip(&histogram.rows) {
        let name = match args.group_by {
            GroupArg::Loader => loader_label(row).unwrap_or_else(|| "<no class object>".to_owned()),
            GroupArg::Class | GroupArg::Package => row.name.clone(),
        };
        table.row(cells(number.to_string(), (row.instances, row.shallow_bytes, Some(row.classes)), name));
    }
    let left_out = total.rows - histogram.rows.len() as u64;
    // The classes of rows that are left out are not counted.
    let classes = (left_out == 0).then(|| histogram.rows.iter().map(|row| row.classes).sum());
    table.total(cells(String::new(), (total.instances, total.shallow_bytes, classes), "total".to_owned()));
    table.write(out, output::style(&args.output))?;
    if left_out > 0 {
        writeln!(
            out,
            "{} of {} rows are not shown; --top 0 shows all",
            grouped(left_out),
            grouped(total.rows)
        )?;
    }
    Ok(())
}
