//! `strings`: what Strings say, which say the same, and who holds those.

use std::fmt::Write as _;
use std::io::Write;

use clap::ValueEnum;
use rayon::prelude::*;
use regex::Regex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::index::{Heap, ObjectGraph, Quiet};
use crate::query::strings::holders::Holder;
use crate::query::strings::{self, Answer, Question, Reader, Row, Rows, STRING, SortBy};
use crate::report::stream::Streamed;
use crate::report::table::{Align, Builder, grouped, human_bytes, percent};
use crate::report::{Format, csv, json::object_id};

use crate::cli::Outcome;
use crate::cli::shared::args::{self, Input, Output};
use crate::cli::shared::object::{self, AsText};
use crate::cli::shared::session::ensure_right;
use crate::cli::shared::{messages, output};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli strings heap.hprof
  hprof-cli strings heap.hprof --duplicates
  hprof-cli strings heap.hprof --pattern '(?i)password' --max-chars 0
  hprof-cli strings heap.hprof --min-length 10000 --sort length
  hprof-cli strings heap.hprof --duplicates --sort count --format json | jq '.rows[0].holders'";

/// Rows of a table when nothing is said.
const USUAL_TOP: usize = 30;
/// Characters of a text in a table when nothing is said.
const USUAL_CHARS: usize = 200;
/// Answers of more rows are not kept in memory, but made while they are written.
const KEPT: usize = 10_000;
/// Rows that are made at a time, and characters of their texts.
const CHUNK: usize = 1 << 10;
const CHUNK_CHARS: usize = 1 << 24;

/// What Strings say: texts, duplicates, the bytes that these waste, and who holds them
///
/// All objects of java.lang.String are looked at, unreachable ones too unless --live says otherwise, in every form that
/// Java has stored them: bytes or chars, parts of arrays (JDK 6), Android's. A String's bytes are its own and those of
/// its array; an array that several Strings share counts for the first of them by address. Lengths are those that
/// String.length() gives.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,

    /// Only texts of which a part matches this regular expression; ^ and $ are the ends, (?i) ignores case
    #[arg(long, value_name = "REGEX", value_parser = regex, help_heading = "Filter")]
    pattern: Option<Regex>,

    /// Only texts of at least N characters
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Filter")]
    min_length: u64,

    /// Only texts of at most N characters
    #[arg(long, value_name = "N", help_heading = "Filter")]
    max_length: Option<u64>,

    /// Only objects that a root leads to
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Texts that several Strings have, with the bytes that could be saved and the classes and fields that hold them
    #[arg(long, help_heading = "Output")]
    duplicates: bool,

    /// Order of the rows [default: bytes, or wasted with --duplicates]
    #[arg(long, value_name = "KEY", help_heading = "Output")]
    sort: Option<SortArg>,

    /// Only the first N rows; 0 for all [default: 30 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    top: Option<usize>,

    /// Only the first N characters of each text; 0 for all [default: 200 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    max_chars: Option<usize>,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Most bytes first: Strings with their arrays
    Bytes,
    /// Most copies first; with --duplicates
    Count,
    /// Longest first
    Length,
    /// Most wasted bytes first; with --duplicates
    Wasted,
    /// By object id; of the first copy
    Address,
    /// By text
    Text,
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

impl Args {
    fn rows(&self) -> Rows {
        if self.duplicates { Rows::Duplicates } else { Rows::Strings }
    }

    fn max_chars(&self) -> usize {
        args::top(self.max_chars, self.output.format(), USUAL_CHARS).unwrap_or(usize::MAX)
    }

    fn question(&self) -> anyhow::Result<Question> {
        let sort = self.sort.unwrap_or(if self.duplicates { SortArg::Wasted } else { SortArg::Bytes });
        let is_of_duplicates = matches!(sort, SortArg::Count | SortArg::Wasted);
        anyhow::ensure!(
            self.duplicates || !is_of_duplicates,
            "--sort count and --sort wasted need --duplicates: without it each row is one String"
        );
        Ok(Question {
            pattern: self.pattern.clone(),
            lengths: self.min_length..=self.max_length.unwrap_or(u64::MAX),
            live: self.live,
            rows: self.rows(),
            sort_by: match sort {
                SortArg::Bytes => SortBy::Bytes,
                SortArg::Count => SortBy::Count,
                SortArg::Length => SortBy::Length,
                SortArg::Wasted => SortBy::Wasted,
                SortArg::Address => SortBy::Address,
                SortArg::Text => SortBy::Text,
            },
            top: args::top(self.top, self.output.format(), USUAL_TOP),
        })
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let question = args.question()?;
    // Few rows are made here, where a damaged index is noticed and the question asked again. Many are made while they are
    // written: all that they need is checked before.
    let (heap, graph, (answer, kept)) = args.input.with_graph(|heap, graph| {
        let bytes = heap.bytes(&Quiet)?;
        let answer = strings::strings(heap.summary(), graph, bytes, &question)?;
        let reader = Reader::new(heap.summary(), graph, bytes, &answer, (args.rows(), args.max_chars()));
        let kept = if reader.chunk(0, KEPT, CHUNK_CHARS) == answer.len() {
            Some(make(&reader, 0..answer.len()))
        } else {
            graph.check_tree();
            None
        };
        Ok((answer, kept))
    })?;
    args.input.with_threads(|| show(args, &heap, &graph, &answer, kept))??;
    if !args.input.quiet && answer.totals.unreadable > 0 {
        messages::line(
            "note",
            &format!(
                "{} Strings have no text: their value is null, no array of characters, or not in the dump",
                grouped(answer.totals.unreadable)
            ),
        );
    }
    Ok(match (heap.summary().is_damaged(), answer.is_empty()) {
        (true, _) => Outcome::Damaged,
        (false, true) => Outcome::No,
        (false, false) => Outcome::Fine,
    })
}

/// Makes some rows, with all threads.
fn make(reader: &Reader<'_>, rows: std::ops::Range<usize>) -> Vec<Row> {
    rows.into_par_iter().filter_map(|row| reader.row(row)).collect()
}

fn show(
    args: &Args,
    heap: &Heap,
    graph: &ObjectGraph,
    answer: &Answer,
    kept: Option<Vec<Row>>,
) -> anyhow::Result<()> {
    let bytes = heap.bytes(&Quiet)?;
    let reader = Reader::new(heap.summary(), graph, bytes, answer, (args.rows(), args.max_chars()));
    let mut start = if kept.is_some() { answer.len() } else { 0 };
    let chunks = std::iter::from_fn(|| {
        let end = reader.chunk(start, CHUNK, CHUNK_CHARS);
        let chunk = start..end;
        start = end;
        (!chunk.is_empty()).then_some(chunk)
    });
    let rows = kept.into_iter().chain(chunks.map(|chunk| make(&reader, chunk))).flatten();
    let mut out = output::stdout();
    match (args.output.format(), args.duplicates) {
        (Format::Table, _) => table(&mut out, rows, answer, args)?,
        (Format::Csv, true) => {
            let rows = rows.map(|row| DuplicateOut::new(&row, object::cell));
            csv::write_flat(&mut out, DuplicateOut::COLUMNS, rows)?;
        }
        (Format::Csv, false) => {
            let rows = rows.map(|row| StringOut::new(&row, object::cell));
            csv::write_flat(&mut out, StringOut::COLUMNS, rows)?;
        }
        (Format::Json, true) => {
            let rows = Streamed::new(rows.map(|row| duplicate(&row)));
            output::json(&mut out, "strings", heap, rows, more(answer))?;
        }
        (Format::Json, false) => {
            let rows = Streamed::new(rows.map(|row| StringOut::new(&row, str::to_owned)));
            output::json(&mut out, "strings", heap, rows, more(answer))?;
        }
    }
    ensure_right(graph)?;
    output::finish(out)
}

/// The keys beside the rows.
fn more(answer: &Answer) -> Value {
    let totals = &answer.totals;
    json!({
        "total": {
            "rows": totals.rows,
            "strings": totals.strings,
            "distinct": totals.distinct,
            "duplicated": totals.duplicated,
            "characters": totals.characters,
            "total_bytes": totals.bytes,
            "wasted_bytes": totals.wasted_bytes,
            "unreadable": totals.unreadable,
        },
    })
}

#[derive(Serialize)]
struct StringOut {
    object: String,
    class: &'static str,
    label: String,
    length: u64,
    shallow_bytes: u64,
    retained_bytes: Option<u64>,
    total_bytes: u64,
    cut: bool,
}

impl StringOut {
    const COLUMNS: &[&str] =
        &["object", "class", "label", "length", "shallow_bytes", "retained_bytes", "total_bytes", "cut"];

    fn new(row: &Row, text: AsText) -> Self {
        Self {
            object: object_id(row.id),
            class: STRING,
            label: text(&row.text),
            length: row.length,
            shallow_bytes: row.shallow_bytes,
            retained_bytes: row.retained_bytes,
            total_bytes: row.total_bytes,
            cut: row.is_cut,
        }
    }
}

#[derive(Serialize)]
struct DuplicateOut {
    value: String,
    count: u64,
    length: u64,
    wasted_bytes: u64,
    total_bytes: u64,
    object: String,
    cut: bool,
    sampled: u64,
    holders: String,
}

impl DuplicateOut {
    const COLUMNS: &[&str] =
        &["value", "count", "length", "wasted_bytes", "total_bytes", "object", "cut", "sampled", "holders"];

    fn new(row: &Row, text: AsText) -> Self {
        Self {
            value: text(&row.text),
            count: row.count,
            length: row.length,
            wasted_bytes: row.wasted_bytes,
            total_bytes: row.total_bytes,
            object: object_id(row.id),
            cut: row.is_cut,
            sampled: row.sampled,
            holders: text(&holders(row)),
        }
    }
}

/// A row of JSON, whose holders are a list.
fn duplicate(row: &Row) -> Value {
    let holders: Vec<Value> = (row.holders.iter())
        .map(|holder| {
            json!({
                "class": holder.class,
                "field": holder.field,
                "static": holder.is_static,
                "copies": holder.copies,
            })
        })
        .collect();
    json!({
        "value": row.text,
        "count": row.count,
        "length": row.length,
        "wasted_bytes": row.wasted_bytes,
        "total_bytes": row.total_bytes,
        "object": object_id(row.id),
        "cut": row.is_cut,
        "sampled": row.sampled,
        "holders": holders,
    })
}

/// `com.acme.Order.currency 98.4%, java.lang.Object[][] 1.6%`: of how many of the copies that were looked at.
fn holders(row: &Row) -> String {
    let mut text = String::new();
    for holder in &row.holders {
        let Holder { class, field, copies, .. } = holder;
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = match field.as_deref() {
            Some("[]") => write!(text, "{comma}{class} element"),
            Some(field) => write!(text, "{comma}{class}.{field}"),
            None => write!(text, "{comma}{class}"),
        };
        let _ = write!(text, " {}", percent(*copies, row.sampled));
    }
    text
}

fn table(
    out: &mut dyn Write,
    rows: impl Iterator<Item = Row>,
    answer: &Answer,
    args: &Args,
) -> anyhow::Result<()> {
    let totals = &answer.totals;
    let mut columns = vec![];
    if args.duplicates {
        columns.extend([("wasted", Align::Right), ("bytes", Align::Right), ("count", Align::Right)]);
    } else {
        columns.extend([("bytes", Align::Right), ("retained", Align::Right)]);
    }
    columns.extend([("length", Align::Right), ("object", Align::Left)]);
    if args.duplicates {
        columns.push(("held by", Align::Left));
    }
    columns.push(("text", Align::Left));
    let mut table = Builder::new(&columns);
    for row in rows {
        let text = format!("\"{}{}\"", row.text, if row.is_cut { "…" } else { "" });
        let (length, id) = (grouped(row.length), object_id(row.id));
        if args.duplicates {
            // The table's last column may be shortened, this one must not be long.
            let holder = row.holders.first().map(|_| short_holder(&row)).unwrap_or_default();
            let figures = [row.wasted_bytes, row.total_bytes, row.count].map(grouped);
            table.row(figures.into_iter().chain([length, id, holder, text]));
        } else {
            let retained = row.retained_bytes.map_or_else(|| "unreachable".to_owned(), grouped);
            table.row([grouped(row.total_bytes), retained, length, id, text]);
        }
    }
    if !answer.is_empty() {
        table.write(out, output::style(&args.output))?;
    }
    writeln!(
        out,
        "{} Strings, {} different; {} characters, {}, of which duplicates waste {}",
        grouped(totals.strings),
        grouped(totals.distinct),
        grouped(totals.characters),
        human_bytes(totals.bytes),
        human_bytes(totals.wasted_bytes)
    )?;
    Ok(output::left_out(out, answer.len(), totals.rows, "rows")?)
}

/// The first holder, without the packages of its class.
fn short_holder(row: &Row) -> String {
    let Some(first) = row.holders.first() else { return String::new() };
    let class = first.class.rsplit('.').next().unwrap_or(&first.class).to_owned();
    let short = Row { holders: vec![Holder { class, ..first.clone() }], ..row.clone() };
    holders(&short)
}
