//! `histo`: the class histogram.

use std::io::Write;

use clap::ValueEnum;
use serde::Serialize;
use serde_json::json;

use crate::index::Heap;
use crate::input::file::TextFile;
use crate::query::classes::histogram::{
    self, GroupBy, Histogram, Question, Row, Scope, SortBy, Totals, With,
};
use crate::query::classes::pattern::ClassPattern;
use crate::query::classes::text_histogram;
use crate::query::recordings::profile::text;
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped, percent};
use crate::report::{Format, csv, escape, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, LayoutArgs, Output};
use crate::cli::shared::object;
use crate::cli::shared::output;
use crate::cli::shared::recording::{Recorded, RecordedInput, Source};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli histo heap.hprof
  hprof-cli histo heap.hprof 'com.acme.**' --sort instances
  hprof-cli histo heap.hprof --group-by package --top 10
  hprof-cli histo heap.hprof --retained --live
  hprof-cli histo java.hprof.txt --sort instances
  hprof-cli histo heap.hprof --format json | jq '.rows[0]'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;

/// Instances and bytes of each class
///
/// Shallow sizes are those of the JVM itself, fitted to the dump's addresses (see `info`). All objects in the dump are
/// counted, unreachable ones too, unless --live says otherwise. Of a text report (java.hprof.txt) the HEAP DUMP is
/// counted, with the sizes that it states.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: RecordedInput,

    /// Only classes that match one of these: `java.util.HashMap$Node`, `byte[]`, `[B`, `com.acme.**`, `*Cache`
    #[arg(value_name = "PATTERN", help_heading = "Filter")]
    patterns: Vec<ClassPattern>,

    /// Only objects that a root leads to
    #[arg(long, conflicts_with_all = ["unreachable", "layout"], help_heading = "Filter")]
    live: bool,

    /// Only objects that no root leads to
    #[arg(long, conflicts_with_all = ["retained", "layout"], help_heading = "Filter")]
    unreachable: bool,

    /// Also what would be freed with the objects of each row, by the dominator tree
    #[arg(long, conflicts_with = "layout", help_heading = "Output")]
    retained: bool,

    /// Order of the rows [default: bytes, or retained with --retained]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    sort: Option<SortArg>,

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
    /// Most retained bytes first; with --retained
    Retained,
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

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sort = args.sort.unwrap_or(if args.retained { SortArg::Retained } else { SortArg::Bytes });
    anyhow::ensure!(sort != SortArg::Retained || args.retained, "--sort retained needs --retained");
    let format = args.output.format();
    let question = Question {
        patterns: args.patterns.clone(),
        group_by: match args.group_by {
            GroupArg::Class => GroupBy::Class,
            GroupArg::Package => GroupBy::Package,
            GroupArg::Loader => GroupBy::Loader,
        },
        sort_by: match sort {
            SortArg::Bytes => SortBy::Bytes,
            SortArg::Instances => SortBy::Instances,
            SortArg::Retained => SortBy::Retained,
            SortArg::Class => SortBy::Name,
        },
        top: args::top(args.top, format, USUAL_TOP),
    };
    if let Some((file, recorded)) = args.input.open_text()? {
        args.needs_binary(&file)?;
        return run_on_text(args, &file, recorded, &question);
    }
    let (heap, histogram) = answer(args, &question)?;
    show(args, &Of::Binary(&heap), &histogram, &question)?;
    Ok(match (heap.summary().is_damaged(), histogram.rows.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

impl Args {
    /// Refuses what a text report cannot tell.
    fn needs_binary(&self, file: &TextFile) -> anyhow::Result<()> {
        let flags = [
            ("--live", self.live),
            ("--unreachable", self.unreachable),
            ("--retained", self.retained),
            ("--layout", self.layout.is_given()),
        ];
        match flags.into_iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => anyhow::bail!(
                "{flag} needs a binary dump, and {} is a text report: leave {flag} out",
                file.path().display()
            ),
        }
    }
}

/// Counts the HEAP DUMP of a text report.
fn run_on_text(
    args: &Args,
    file: &TextFile,
    mut recorded: Recorded,
    question: &Question,
) -> anyhow::Result<Outcome> {
    let mut histogram = Histogram { rows: Vec::new(), total: Totals::default() };
    if let Source::Text { report, .. } = &mut recorded.source {
        text::find_loaders(file, report)?;
        match &report.heap {
            Some(heap) => histogram = text_histogram::histogram(heap, question),
            None => args.input.note(&format!(
                "{} holds no HEAP DUMP; `hprof-cli sites` shows what it may say of allocations",
                file.path().display()
            )),
        }
    }
    show(args, &Of::Text(&recorded), &histogram, question)?;
    Ok(recorded.outcome(!histogram.rows.is_empty()))
}

/// What a histogram is of.
enum Of<'a> {
    Binary(&'a Heap),
    Text(&'a Recorded),
}

fn show(args: &Args, of: &Of<'_>, histogram: &Histogram, question: &Question) -> anyhow::Result<()> {
    let format = args.output.format();
    let mut out = output::stdout();
    // JSON escapes by itself.
    let text = if format == Format::Json { str::to_owned } else { escaped };
    let rows = histogram.rows.iter();
    let show = Show { of, format, total: histogram.total, retained: args.retained };
    match (format, question.group_by) {
        (Format::Table, _) => table(&mut out, histogram, args)?,
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
    output::finish(out)
}

/// Opens the dump, with its graph only if that is needed.
fn answer(args: &Args, question: &Question) -> anyhow::Result<(Heap, Histogram)> {
    let scope = match (args.live, args.unreachable) {
        (true, _) => Scope::Reachable,
        (false, true) => Scope::Unreachable,
        (false, false) => Scope::All,
    };
    let with = if args.retained { With::Retained } else { With::Counts };
    if (scope, with) == (Scope::All, With::Counts) {
        let heap = args.input.input.open()?;
        let sizes = args.layout.sizes(&heap);
        let histogram = histogram::histogram(heap.summary(), &sizes, question);
        return Ok((heap, histogram));
    }
    let (heap, _, histogram) = args.input.input.with_graph(|heap, graph| {
        Ok(histogram::histogram_of(heap.summary(), graph, question, scope, with))
    })?;
    Ok((heap, histogram))
}

/// Shows rows of any kind to programs.
struct Show<'a> {
    of: &'a Of<'a>,
    format: Format,
    total: Totals,
    /// Whether rows have retained sizes.
    retained: bool,
}

impl Show<'_> {
    fn rows<R: Serialize>(
        &self,
        out: &mut dyn Write,
        columns: &[&str],
        rows: impl Iterator<Item = R>,
    ) -> anyhow::Result<()> {
        if self.format == Format::Csv {
            let is_there = |column: &&str| self.retained || *column != "retained_bytes";
            let columns: Vec<&str> = columns.iter().copied().filter(is_there).collect();
            return Ok(csv::write_flat(out, &columns, rows)?);
        }
        let Totals { rows: count, instances, shallow_bytes } = self.total;
        let total = json!({ "rows": count, "instances": instances, "shallow_bytes": shallow_bytes });
        // Made while they are written: their names can be longer than the dump.
        let (rows, more) = (Streamed::new(rows), json!({ "total": total }));
        match self.of {
            Of::Binary(heap) => output::json(out, "histo", heap, rows, more),
            Of::Text(recorded) => recorded.json(out, "histo", rows, more),
        }
    }
}

fn escaped(text: &str) -> String {
    escape::cell(text).into_owned()
}

/// A loader as it is shown: its class and object id.
pub(crate) fn loader_label(row: &Row) -> Option<String> {
    row.loader.as_ref().map(|loader| object::loader(loader.id, loader.class.as_deref()))
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
    #[serde(skip_serializing_if = "Option::is_none")]
    retained_bytes: Option<u64>,
    loader_object: Option<String>,
    class_object: Option<String>,
}

impl ClassOut {
    const COLUMNS: &[&str] =
        &["class", "loader", "instances", "shallow_bytes", "retained_bytes", "loader_object", "class_object"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            class: text(&row.name),
            loader: loader_label(row).as_deref().map(text),
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    retained_bytes: Option<u64>,
}

impl PackageOut {
    const COLUMNS: &[&str] = &["package", "classes", "instances", "shallow_bytes", "retained_bytes"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            package: text(&row.name),
            classes: row.classes,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

#[derive(Serialize)]
struct LoaderOut {
    loader: Option<String>,
    classes: u64,
    instances: u64,
    shallow_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    retained_bytes: Option<u64>,
    loader_object: Option<String>,
}

impl LoaderOut {
    const COLUMNS: &[&str] =
        &["loader", "classes", "instances", "shallow_bytes", "retained_bytes", "loader_object"];

    fn new(row: &Row, text: fn(&str) -> String) -> Self {
        Self {
            loader: loader_label(row).as_deref().map(text),
            classes: row.classes,
            instances: row.instances,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
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
    if args.retained {
        columns.push(("retained", Align::Right));
    }
    if !by_class {
        columns.push(("classes", Align::Right));
    }
    columns.push((title, Align::Left));
    let mut table = Builder::new(&columns);
    let total = &histogram.total;
    let cells = |number: String, row: (u64, u64, Option<u64>), retained: Option<u64>, name: String| {
        let (instances, bytes, classes) = row;
        let mut cells = vec![number, grouped(instances), grouped(bytes), percent(bytes, total.shallow_bytes)];
        if args.retained {
            cells.push(retained.map(grouped).unwrap_or_default());
        }
        if !by_class {
            cells.push(classes.map(grouped).unwrap_or_default());
        }
        cells.push(name);
        cells
    };
    for (number, row) in (1u64..).zip(&histogram.rows) {
        let name = match args.group_by {
            GroupArg::Loader => loader_label(row).unwrap_or_else(|| "<no class object>".to_owned()),
            GroupArg::Class | GroupArg::Package => row.name.to_string(),
        };
        let figures = (row.instances, row.shallow_bytes, Some(row.classes));
        table.row(cells(number.to_string(), figures, row.retained_bytes, name));
    }
    // The classes of rows that are left out are not counted.
    let classes = (histogram.rows.len() as u64 == total.rows)
        .then(|| histogram.rows.iter().map(|row| row.classes).sum());
    // What classes retain does not add up: an object can belong to what several retain.
    let figures = (total.instances, total.shallow_bytes, classes);
    table.total(cells(String::new(), figures, None, "total".to_owned()));
    table.write(out, output::style(&args.output))?;
    Ok(output::left_out(out, histogram.rows.len(), total.rows, "rows")?)
}
