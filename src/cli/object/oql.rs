//! `oql`: queries in the language of Eclipse MAT.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::objects::meaning;
use crate::query::objects::reader::Objects;
use crate::query::oql::{Answer, Cell, Evaluator, MAX_LEN, ObjectRow, Query, QueryError, Row};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped};
use crate::report::{Format, csv, escape, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = r#"Examples:
  hprof-cli oql heap.hprof 'SELECT * FROM java.lang.String s WHERE s.@retainedHeapSize > 10kB'
  hprof-cli oql heap.hprof 'SELECT toString(t.name), t.@retainedHeapSize FROM INSTANCEOF java.lang.Thread t'
  hprof-cli oql heap.hprof 'SELECT classof(s).@name AS class, count(*) FROM "com\.acme\..*" s
      GROUP BY classof(s) ORDER BY count(*) DESC LIMIT 10'
  hprof-cli oql heap.hprof --file leaks.oql --format csv"#;

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 25;
/// Elements of a list in a cell of a table.
const TABLE_ELEMENTS: usize = 5;
/// Characters of a text in a cell of a table.
const TABLE_TEXT: usize = 200;

/// Ask a question in OQL, the query language of Eclipse MAT
///
/// SELECT [DISTINCT] [AS RETAINED SET] [OBJECTS] items FROM [OBJECTS] [INSTANCEOF] class|"regex"|0xaddress|(query) alias
/// [WHERE ...] [UNION (...)], and beyond MAT: GROUP BY, ORDER BY, LIMIT, count, sum, min, max, avg, sizes (1MB).
/// docs/oql.md is the reference.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// The query
    #[arg(value_name = "QUERY", required_unless_present = "file", help_heading = "Filter")]
    query: Option<String>,

    /// Read the query from this file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "query", help_heading = "Filter")]
    file: Option<PathBuf>,

    /// Only the first N rows; 0 for all [default: 25 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let text = match (&args.query, &args.file) {
        (Some(query), _) => query.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => anyhow::bail!("there is no query; `hprof-cli oql --help` shows some"),
    };
    let query: Query = match text.parse() {
        Ok(query) => query,
        Err(error) => return Err(say(&error)),
    };
    let format = args.output.format();
    let top = args::top(args.top, format, USUAL_TOP);
    let (heap, graph, answer) = args.input.with_graph(|heap, graph| {
        let bytes = heap.bytes(&Quiet)?;
        let objects = Objects::new(heap.summary(), graph, bytes);
        Ok(Evaluator::new(heap, &objects, bytes).run(&query, top))
    })?;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.is_unknown => {
            let _ = say(&error);
            messages::line("error", &error.to_string());
            return Ok(Outcome::No);
        }
        Err(error) => return Err(say(&error)),
    };
    show(args, &heap, &graph, &answer, top)
}

/// The query of a file, or of stdin.
fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let most = u64::try_from(MAX_LEN).unwrap_or(u64::MAX).saturating_add(1);
    if file == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(most)
            .read_to_string(&mut text)
            .context("cannot read the query on stdin")?;
    } else {
        let opened = std::fs::File::open(file);
        let read = opened.and_then(|file| file.take(most).read_to_string(&mut text));
        read.with_context(|| format!("cannot read the query in {}", file.display()))?;
    }
    Ok(text)
}

/// Shows where an error is, and gives it back.
fn say(error: &QueryError) -> anyhow::Error {
    let plain = |text: String| text.replace('\t', " ");
    let before: String = error.query.chars().take(error.column.saturating_sub(1)).collect();
    // Of a long line only what is around the place.
    let cut = before.chars().count().saturating_sub(60);
    let around: String = error.query.chars().skip(cut).take(100).collect();
    let before = plain(before.chars().skip(cut).collect());
    messages::line("note", &plain(around));
    messages::line("note", &format!("{}^", " ".repeat(escape::text(&before).width())));
    error.clone().into()
}

fn show(
    args: &Args,
    heap: &Heap,
    graph: &ObjectGraph,
    answer: &Answer,
    top: Option<usize>,
) -> anyhow::Result<Outcome> {
    let bytes = heap.bytes(&Quiet)?;
    let objects = Objects::new(heap.summary(), graph, bytes);
    let evaluator = Evaluator::new(heap, &objects, bytes);
    let total = answer.total();
    let mut shown = 0u64;
    let mut rows = answer.rows(&evaluator);
    let taken = rows.by_ref().take(top.unwrap_or(usize::MAX)).inspect(|_| shown += 1);
    let mut out = output::stdout();
    match args.output.format() {
        Format::Table => table(&mut out, answer.columns.as_deref(), taken, args)?,
        Format::Csv => csv_rows(&mut out, answer.columns.as_deref(), taken)?,
        Format::Json => {
            let columns = answer.columns.as_deref();
            let rows = Streamed::new(taken.map(|row| RowOut { row, columns }));
            let more = json!({ "columns": columns.unwrap_or(&object_columns()), "total": { "rows": total } });
            output::json(&mut out, "oql", heap, rows, more)?;
        }
    }
    if args.output.format() == Format::Table {
        match total {
            Some(total) if total > shown => {
                let left_out = grouped(total - shown);
                writeln!(out, "{left_out} of {} rows are not shown; --top 0 shows all", grouped(total))?;
            }
            None if rows.next().is_some() => writeln!(out, "more rows are not shown; --top 0 shows all")?,
            _ => {}
        }
    }
    drop(rows);
    output::finish(out)?;
    // What was shown was made while it was read.
    anyhow::ensure!(!graph.is_damaged(), "the index is damaged, and this answer may be wrong: run it again");
    if shown == 0 && !args.input.quiet {
        messages::line("note", "no rows");
    }
    Ok(match (heap.summary().is_damaged(), shown) {
        (true, _) => Outcome::Damaged,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Fine,
    })
}

const COLUMNS: [&str; 5] = ["object", "class", "label", "shallow_bytes", "retained_bytes"];

fn object_columns() -> Vec<String> {
    COLUMNS.map(str::to_owned).to_vec()
}

/// An object as a row.
#[derive(Serialize)]
struct ObjectOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    shallow_bytes: Option<u64>,
    retained_bytes: Option<u64>,
}

impl ObjectOut {
    fn new(row: &ObjectRow, text: AsText) -> Self {
        Self {
            object: object_id(row.object),
            class: row.class.as_deref().map(text),
            label: row.label.as_deref().map(text),
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
        }
    }
}

/// A row of JSON: a key for each column.
struct RowOut<'c> {
    row: Row,
    columns: Option<&'c [String]>,
}

impl Serialize for RowOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.row {
            Row::Object(row) => ObjectOut::new(row, str::to_owned).serialize(serializer),
            Row::Cells(cells) => {
                let mut map = serializer.serialize_map(Some(cells.len()))?;
                for (name, cell) in self.columns.unwrap_or_default().iter().zip(cells) {
                    map.serialize_entry(name, &cell_json(cell))?;
                }
                map.end()
            }
        }
    }
}

fn cell_json(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Boolean(value) => json!(value),
        Cell::Whole(value) => json!(value),
        // What JSON has no number for is a text. A float has the digits that Java gives it, not those of the double.
        Cell::Float(value) if value.is_finite() => json!(value.to_string().parse::<f64>().unwrap_or(0.0)),
        Cell::Double(value) if value.is_finite() => json!(value),
        Cell::Float(value) => meaning::float(*value).into(),
        Cell::Double(value) => meaning::double(*value).into(),
        Cell::Text(text) => text.as_str().into(),
        Cell::Object(id, class, label) => json!({ "object": object_id(*id), "class": class, "label": label }),
        Cell::Entry(entry) => json!({ "key": cell_json(&entry.0), "value": cell_json(&entry.1) }),
        Cell::List(size, first) => {
            json!({ "size": size, "first": first.iter().map(cell_json).collect::<Vec<_>>() })
        }
    }
}

fn csv_rows(
    out: &mut dyn Write,
    columns: Option<&[String]>,
    rows: impl Iterator<Item = Row>,
) -> anyhow::Result<()> {
    let Some(columns) = columns else {
        let objects = rows.filter_map(|row| match row {
            Row::Object(row) => Some(ObjectOut::new(&row, object::cell)),
            Row::Cells(_) => None,
        });
        return Ok(csv::write_flat(out, &COLUMNS, objects)?);
    };
    let escaped: Vec<String> = columns.iter().map(|name| object::cell(name)).collect();
    let names: Vec<&str> = escaped.iter().map(String::as_str).collect();
    let cells = rows.map(|row| match row {
        Row::Object(_) => Vec::new(),
        Row::Cells(cells) => cells.iter().map(cell_csv).collect::<Vec<String>>(),
    });
    Ok(csv::write_flat(out, &names, cells)?)
}

fn cell_csv(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => object::cell(text),
        Cell::Object(id, ..) => object_id(*id),
        Cell::Entry(entry) => format!("{}={}", cell_csv(&entry.0), cell_csv(&entry.1)),
        Cell::List(_, first) => first.iter().map(cell_csv).collect::<Vec<_>>().join(" "),
        cell => plain(cell, usize::MAX),
    }
}

/// A cell of a table.
fn plain(cell: &Cell, longest: usize) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Whole(value) => value.to_string(),
        Cell::Float(value) => meaning::float(*value),
        Cell::Double(value) => meaning::double(*value),
        Cell::Text(text) if text.chars().count() <= longest => text.clone(),
        Cell::Text(text) => text.chars().take(longest.saturating_sub(1)).chain(['…']).collect(),
        Cell::Object(id, class, label) => object::describe(class.as_deref(), *id, label.as_deref()),
        Cell::Entry(entry) => format!("{}={}", plain(&entry.0, longest), plain(&entry.1, longest)),
        Cell::List(size, first) => {
            let shown: Vec<String> = first.iter().take(TABLE_ELEMENTS).map(|cell| plain(cell, 40)).collect();
            let more = if *size > shown.len() as u64 { ", …" } else { "" };
            format!("{size}: {}{more}", shown.join(", "))
        }
    }
}

fn table(
    out: &mut dyn Write,
    columns: Option<&[String]>,
    rows: impl Iterator<Item = Row>,
    args: &Args,
) -> anyhow::Result<()> {
    let style = output::style(&args.output);
    let Some(columns) = columns else {
        let right = |name| (name, Align::Right);
        let left = |name| (name, Align::Left);
        let mut table = Builder::new(&[right("shallow"), right("retained"), left("id"), left("object")]);
        for row in rows {
            let Row::Object(row) = row else { continue };
            let size = |bytes: Option<u64>| bytes.map(grouped).unwrap_or_default();
            table.row([
                size(row.shallow_bytes),
                size(row.retained_bytes),
                object_id(row.object),
                object::describe_without_id(row.class.as_deref(), row.label.as_deref()),
            ]);
        }
        return Ok(table.write(out, style)?);
    };
    // Titles are what the query says, so they are a row of their own: a table's are known when it is compiled.
    let cells: Vec<Vec<Cell>> = rows
        .filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Object(_) => None,
        })
        .collect();
    let is_number = |column: usize| {
        let number =
            |cell: &Cell| matches!(cell, Cell::Whole(_) | Cell::Float(_) | Cell::Double(_) | Cell::Null);
        cells.iter().all(|row| row.get(column).is_some_and(number))
    };
    let aligned: Vec<(&'static str, Align)> = (0..columns.len())
        .map(|column| ("", if is_number(column) && !cells.is_empty() { Align::Right } else { Align::Left }))
        .collect();
    let mut table = Builder::new(&aligned);
    table.row(columns);
    for row in &cells {
        table.row(row.iter().map(|cell| plain(cell, TABLE_TEXT)));
    }
    Ok(table.write(out, style)?)
}
