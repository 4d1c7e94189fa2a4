//! `export`: writes the tables of dumps to files for other engines. [`directory_names`] builds directory names, [`partition`]
//! creates the directories, [`rows`] shows the result.

mod directory_names;
mod partition;
mod rows;
mod schema;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::builder::ArgPredicate;

use crate::cli::prelude::*;
use crate::cli::shared::args::DATA_FORMATS;
use crate::cli::shared::color::ColorArg;
use crate::cli::shared::frameworks::FrameworksArgs;
use crate::cli::shared::hiding;
use crate::cli::shared::key_file;
use crate::cli::shared::messages;
use crate::cli::shared::session::ensure_right;
use crate::cli::shared::several::{DumpOutcome, SeveralInput};
use crate::cli::shared::terminal::progress_bar::Bar;
use hprof_index::storage::open_dir::OpenDir;
use hprof_index::{Dump, DumpGraph, Heap, Progress};
use hprof_query::frameworks::Frameworks;
use hprof_query::strings::TextKey;
use hprof_query::tables::{About, Table, Tables, definitions};
use hprof_report::number::format_count;
use hprof_report::tables::{TableFormat, TableSource, WrittenAmount, WrittenColumns};

use partition::Partitions;
use rows::{ExportResult, ExportedTable};

pub(crate) use rows::row_schema;

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli export heap.hprof --output-dir lake --format csv
  hprof-cli export pods/*.hprof.zst --output-dir lake --label service=cart --label release=41
  hprof-cli export heap.hprof --output-dir lake --tables classes,objects,com.acme.Session
  hprof-cli export --schema
  duckdb -c \"SELECT class, count(*), sum(shallow_bytes) FROM 'lake/objects/*/*.csv' GROUP BY 1\"";

/// Values of `--format`.
const FORMAT: &[Keyword<ExportFormat>] = &[
    ("parquet", ExportFormat::Parquet, "Compressed Parquet: smallest, and engines read only what they need"),
    ("csv", ExportFormat::Csv, "Comma-separated values with a header line"),
    ("ndjson", ExportFormat::NdJson, "One JSON object per line"),
];

/// Default format, depending on the build.
const DEFAULT_FORMAT: &str = if cfg!(feature = "parquet") { "parquet" } else { "csv" };

/// Values of `--strings`.
const STRINGS: &[Keyword<Strings>] = &[
    ("none", Strings::None, "No values: these columns are null"),
    (
        "hash",
        Strings::Hash,
        "A keyed hash of each String, the same for equal texts in all dumps with this key",
    ),
    ("text", Strings::Text, "Everything, including secrets"),
];

/// File that marks the directory as complete.
const SUCCESS: &str = "_SUCCESS";

/// Name of the column of hashes, which `--strings none` hides.
const HASH: &str = "hash";
/// Tables that have the column of hashes.
const WITH_HASHES: [&str; 2] = ["strings", "properties"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportFormat {
    Parquet,
    Csv,
    NdJson,
}

/// How texts and values of the heap are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strings {
    None,
    Hash,
    Text,
}

/// Write dumps as tables for other engines: Parquet, CSV, NDJSON
///
/// Writes the tables of `sql` as files that DuckDB, Spark and others read: DIR/TABLE/dump=NAME/part-N.parquet. An
/// existing partition is replaced. Each has a temporary name until its dump is complete; DIR/_SUCCESS is written last,
/// if all dumps were exported. A dump that cannot be read does not stop the others: the exit code is then 2, else 3 if
/// a dump is damaged. The same dump always produces the same bytes. Dumps contain secrets: without --strings text,
/// columns that contain values of the heap are null; names of threads are written unless --no-values is given.
/// `--schema` describes the tables.
#[derive(Debug, clap::Args)]
#[command(
    arg = hiding::no_values(),
    mut_arg("dump", |dump| dump
        .required(false)
        .required_unless_present("schema")
        .default_value_if("schema", ArgPredicate::IsPresent, Some("-"))
        .hide_default_value(true))
)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: SeveralInput,

    #[command(flatten)]
    frameworks: FrameworksArgs,

    /// Only these tables; a class name selects the table of its instances [default: all tables except those of classes]
    #[arg(long, value_name = "TABLE,...", value_delimiter = ',', help_heading = "Filter")]
    tables: Vec<String>,

    /// How to write strings and values from the heap
    #[arg(long, value_name = "WHAT", value_parser = keys(STRINGS), default_value = "hash", help_heading = "Filter")]
    strings: Strings,

    /// Read the key of the hashes from KEYFILE, or write a new one to it [default: hprof-cli/export.key in your data
    /// directory]
    ///
    /// Only someone who has the key can confirm a guessed text. Exports with the same key can be joined by `hash`. The
    /// key file is readable only by its owner, and must not be in DIR.
    #[arg(long, value_name = "KEYFILE", value_hint = clap::ValueHint::FilePath, help_heading = "Filter")]
    hash_key: Option<PathBuf>,

    /// Write to this directory, which is created if it does not exist
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        required_unless_present = "schema",
        help_heading = "Output"
    )]
    output_dir: Option<PathBuf>,

    /// Output format of the files [default: parquet; csv where Parquet is not built in]
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        value_parser = keys(FORMAT),
        default_value = DEFAULT_FORMAT,
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: ExportFormat,

    /// Name of the dump in the tables [default: the file name without extensions such as .hprof; dumps with the same
    /// name get -2, -3 and so on]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    name: Option<String>,

    /// Label to add to all dumps, in the tables `labels` and `dumps`; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label, help_heading = "Output")]
    labels: Vec<(String, String)>,

    /// Print the tables with types and meaning as Markdown
    #[arg(long, conflicts_with_all = ["output_dir", "tables", "name", "labels"], help_heading = "Output")]
    schema: bool,

    /// Format in which to list the written files
    #[arg(long, value_name = "FORMAT", value_parser = keys(DATA_FORMATS), default_value = "table", help_heading = "Output")]
    report: OutputFormat,

    /// When to use color; `auto` respects NO_COLOR
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    color: ColorArg,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, for example service=cart".to_owned()),
    }
}

impl ExportFormat {
    fn format(self) -> anyhow::Result<TableFormat> {
        match self {
            #[cfg(feature = "parquet")]
            Self::Parquet => Ok(TableFormat::Parquet),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet => anyhow::bail!(
                "this hprof-cli was built without Parquet; use --format csv or ndjson, or build it with the cargo \
                 feature `parquet`: `cargo install --path . --features parquet` in its source directory"
            ),
            Self::Csv => Ok(TableFormat::Csv),
            Self::NdJson => Ok(TableFormat::NdJson),
        }
    }
}

pub(crate) fn run(cx: &RunContext, args: &ExportArgs) -> anyhow::Result<Outcome> {
    // clap requires one of them.
    let Some(to) = args.output_dir.as_deref().filter(|_| !args.schema) else { return schema::print(cx) };
    let format = args.format.format()?;
    let inputs = args.input.inputs();
    anyhow::ensure!(
        args.name.is_none() || inputs.len() == 1,
        "--name names one dump, but {} were given; omit it, or export them one by one",
        inputs.len()
    );
    let names = match &args.name {
        Some(name) if name.is_empty() => {
            anyhow::bail!("--name is empty; omit it, or give a name")
        }
        Some(name) => vec![name.clone()],
        None => directory_names::of_dumps(inputs.iter().map(Input::path)),
    };
    let mut given = HashSet::new();
    if let Some((name, _)) = args.labels.iter().find(|(name, _)| !given.insert(name)) {
        anyhow::bail!("--label {name} is given twice; a label has one value per dump");
    }
    let dir = begin(to)?;
    let (frameworks, text_key) = (args.frameworks.rules(cx)?, args.text_key(cx, to)?);
    let run = ExportRun { dumps: inputs.len(), args, to: &dir, format, frameworks, text_key };
    let mut exported = ExportResult { to: to.to_string_lossy().into_owned(), dumps: Vec::new(), heap: None };
    let mut errors = Vec::new();
    for (input, name) in inputs.iter().zip(names) {
        match run.export(cx, input, &name) {
            Ok((heap, rows)) => {
                let one = DumpOutcome::from_source(&heap, heap.summary().facts().created_ms.get());
                exported.dumps.push(rows::ExportedDump { one, name, error: None, rows });
                exported.heap = Some(heap);
            }
            Err(error) => {
                // Only some errors contain the path of the dump.
                let path = input.path().display().to_string();
                let text = format!("{error:#}");
                let error = if text.contains(&path) {
                    error
                } else {
                    error.context(format!("{path} was not exported"))
                };
                let (one, error_text) = (DumpOutcome::unread(input.path()), Some(format!("{error:#}")));
                exported.dumps.push(rows::ExportedDump { one, name, error: error_text, rows: Vec::new() });
                errors.push(error);
            }
        }
    }
    if errors.is_empty() {
        match dir.create_new(SUCCESS.as_ref(), 0o666) {
            // Another export into the same directory is complete.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => drop(made.with_context(|| format!("cannot write {}", to.join(SUCCESS).display()))?),
        }
    }
    if let (1, Some(error)) = (inputs.len(), errors.pop_if(|_| inputs.len() == 1)) {
        return Err(error);
    }
    rows::show(cx, &exported, args.report.of_rows(), args.color)?;
    if errors.is_empty() {
        return Ok(exported.outcome(true));
    }
    errors.iter().for_each(|error| messages::error(cx, error));
    anyhow::bail!(
        "{} of {} not exported, so {} was not written; the others are complete",
        errors.len(),
        format_count(inputs.len() as u64, "dump") + if errors.len() == 1 { " was" } else { " were" },
        to.join(SUCCESS).display()
    )
}

impl ExportArgs {
    /// Returns the key for hashes of texts. The key file is read or created only if hashes are written.
    fn text_key(&self, cx: &RunContext, to: &Path) -> anyhow::Result<TextKey> {
        let has_hashes = |table: &String| WITH_HASHES.iter().any(|with| table.eq_ignore_ascii_case(with));
        let is_needed = self.strings != Strings::None
            && !cx.hides_values
            && (self.tables.is_empty() || self.tables.iter().any(has_hashes));
        if !is_needed && self.hash_key.is_none() {
            return Ok(TextKey::default());
        }
        Ok(TextKey::new(&key_file::of_hashes(self.hash_key.as_deref(), to)?))
    }
}

/// Creates the directory, or opens it, and marks it as incomplete.
fn begin(to: &Path) -> anyhow::Result<Arc<OpenDir>> {
    let dir = OpenDir::create_all(to, 0o777).with_context(|| {
        format!("cannot create the directory {}; name a writable directory with --output-dir", to.display())
    })?;
    match dir.remove_file(SUCCESS.as_ref()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", to.join(SUCCESS).display()))
        }
        _ => Ok(Arc::new(dir)),
    }
}

/// A requested table.
enum RequestedTable<'a> {
    Named(String),
    OfClass(Box<dyn Table + 'a>),
}

impl RequestedTable<'_> {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Named(known) => known == name,
            Self::OfClass(table) => table.definition().name == name,
        }
    }

    fn of_class(&self) -> Option<&dyn Table> {
        match self {
            Self::Named(_) => None,
            Self::OfClass(table) => Some(&**table),
        }
    }
}

/// State of an export, shared by all dumps.
struct ExportRun<'a> {
    dumps: usize,
    args: &'a ExportArgs,
    to: &'a Arc<OpenDir>,
    format: TableFormat,
    frameworks: Frameworks,
    text_key: TextKey,
}

impl ExportRun<'_> {
    fn export(
        &self,
        cx: &RunContext,
        input: &Input,
        name: &str,
    ) -> anyhow::Result<(Arc<Heap>, Vec<ExportedTable>)> {
        let write = |graph: &DumpGraph<'_>| {
            let bar = Bar::new(cx, input.quiet);
            let dump = graph.with_records(&bar)?;
            let labels = self.args.labels.clone();
            let about = About { name: name.to_owned(), labels, recording: None, text_key: self.text_key };
            self.write(cx, &dump, about, &bar)
        };
        let (heap, graph, (partitions, rows)) = input.with_graph(cx, write)?;
        ensure_right(&graph)?;
        partitions.publish()?;
        Ok((heap, rows))
    }

    fn write(
        &self,
        cx: &RunContext,
        dump: &Dump<'_>,
        about: About,
        bar: &Bar,
    ) -> anyhow::Result<(Partitions, Vec<ExportedTable>)> {
        let name = about.name.clone();
        let tables = Tables::with_frameworks(dump, about, self.frameworks.clone());
        let asked = self.tables(cx, &tables)?;
        let named = |asked: &'_ RequestedTable<'_>| match asked {
            RequestedTable::Named(name) => tables.find(name),
            RequestedTable::OfClass(_) => None,
        };
        let tables: Vec<&dyn Table> = match asked.as_slice() {
            [] if self.args.tables.is_empty() => tables.all().map(|table| table as &dyn Table).collect(),
            asked => asked
                .iter()
                .filter_map(|asked| named(asked).map(|table| table as &dyn Table).or(asked.of_class()))
                .collect(),
        };
        let sources: Vec<TableSource<'_>> = tables.iter().map(|table| self.source(*table)).collect();
        let table_names = || tables.iter().map(|table| &*table.definition().name);
        let mut partitions = Partitions::new(self.to, &name, table_names(), self.format, dump.heap.path());
        let begin = |table: usize| {
            let table = tables.get(table).map(|table| table.definition().name.to_string());
            bar.begin(&format!("writing {}", table.unwrap_or_default()), 0);
        };
        let check = || {
            if dump.graph.is_damaged() { Err(io::Error::other("the index is damaged")) } else { Ok(()) }
        };
        let written = hprof_report::tables::write(&sources, self.format, &mut partitions, &begin, &check)?;
        let row = |(table, WrittenAmount { rows, bytes, parts }): (&str, WrittenAmount)| ExportedTable {
            dump: name.clone(),
            table: table.to_owned(),
            rows,
            bytes,
            parts,
        };
        let rows = table_names().zip(written).map(row).collect();
        Ok((partitions, rows))
    }

    /// Returns the requested tables, selected by class or by name.
    fn tables<'a>(&self, cx: &RunContext, tables: &Tables<'a>) -> anyhow::Result<Vec<RequestedTable<'a>>> {
        let mut asked: Vec<RequestedTable<'a>> = Vec::new();
        for name in &self.args.tables {
            if asked.iter().any(|known| known.is(name)) {
                continue;
            }
            if tables.find(name).is_some() {
                asked.push(RequestedTable::Named(name.clone()));
                continue;
            }
            match tables.of_class(name) {
                Ok(table) => asked.push(RequestedTable::OfClass(table)),
                // With several programs, a class need not exist in all of them.
                Err(none) if self.dumps > 1 => {
                    if !self.args.input.quiet() {
                        let path = tables.context().dump.heap.path().display();
                        cx.emit("note", &format!("{path}: no table {name}: {none}"));
                    }
                }
                Err(none) => {
                    let known = definitions();
                    let known: Vec<&str> = known.iter().map(|definition| &*definition.name).collect();
                    anyhow::bail!("no table {name}, and {none}; tables are {}", known.join(", "));
                }
            }
        }
        Ok(asked)
    }

    fn source<'s>(&self, table: &'s dyn Table) -> TableSource<'s> {
        let shape = WrittenColumns::new(table.definition(), |name, is_secret| match self.args.strings {
            // This includes a field of that name in a class table: too little is better than too much.
            Strings::None => is_secret || name == HASH,
            Strings::Hash => is_secret,
            Strings::Text => false,
        });
        TableSource { table, shape: Arc::new(shape) }
    }
}
