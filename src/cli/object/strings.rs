//! `strings`: String contents, duplicates, and the fields that reference them.

use rayon::prelude::*;
use regex::Regex;

use hprof_index::model::array_contents::DumpContents;
use hprof_query::dictionary::Name;
use hprof_query::strings::holders::Holder;
use hprof_query::strings::{
    self, STRING, StringOrder, StringQuery, StringReader, StringReport, StringRow, StringRows, StringTotals,
};
use hprof_report::escape;
use hprof_report::value::{id, list};
use hprof_values::names as class_names;

use crate::cli::prelude::*;
use crate::cli::shared::limit::limit;
use crate::cli::shared::messages;
use crate::cli::shared::session::KEPT;
use crate::cli::shared::session::ensure_values;
use crate::cli::shared::unreachable::{self, ReachableScope};

pub(crate) const EXAMPLES: &str = "Examples:
  hprof-cli strings heap.hprof
  hprof-cli strings heap.hprof --duplicates
  hprof-cli strings heap.hprof --pattern '(?i)password' --max-chars 0
  hprof-cli strings heap.hprof --min-length 10000 --sort length
  hprof-cli strings heap.hprof --duplicates --sort count --format json | jq '.rows[0].holders'";

/// Default number of characters of a text in a table.
pub(crate) const DEFAULT_CHARS: usize = 200;
/// Number of rows computed at a time, unless their texts exceed [`CHUNK_CHARS`].
const CHUNK: usize = 1 << 10;
/// Maximum number of characters of the texts of rows that are computed at a time.
const CHUNK_CHARS: usize = 1 << 24;

/// Values of `--sort`.
const SORT: &[Keyword<StringOrder>] = &[
    ("bytes", StringOrder::Bytes, "Most bytes first, including arrays"),
    ("count", StringOrder::Count, "Most copies first; with --duplicates"),
    ("length", StringOrder::Length, "Longest first"),
    ("wasted", StringOrder::Wasted, "Most wasted bytes first; with --duplicates"),
    ("address", StringOrder::Address, "By object ID of the first copy"),
    ("text", StringOrder::Text, "By text"),
];

/// List strings and find duplicates
///
/// Reads all java.lang.String objects in any of Java's encodings, including unreachable ones unless
/// --live is given. The bytes of a String include its array; an array that several Strings share counts
/// for the first one by object ID. Lengths are those of String.length(). --duplicates shows equal
/// strings, the bytes they waste and the fields that reference them.
#[derive(Debug, clap::Args)]
pub(crate) struct StringsArgs {
    #[command(flatten)]
    input: Input,

    /// Only strings that contain a match of this regular expression; (?i) ignores case
    #[arg(long, value_name = "REGEX", value_parser = regex, help_heading = "Filter")]
    pattern: Option<Regex>,

    /// Only strings of at least N characters
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, help_heading = "Filter")]
    min_length: u64,

    /// Only strings of at most N characters
    #[arg(long, value_name = "N", help_heading = "Filter")]
    max_length: Option<u64>,

    /// Only reachable objects
    #[arg(long, help_heading = "Filter")]
    live: bool,

    /// Show only duplicates, with the bytes they waste and the classes and fields that reference them
    #[arg(long, help_heading = "Output")]
    duplicates: bool,

    /// Sort order [default: bytes, or wasted with --duplicates]
    #[arg(long, value_name = "KEY", value_parser = keys(SORT), help_heading = "Output")]
    sort: Option<StringOrder>,

    #[command(flatten)]
    top: Top,

    /// Show only the first N characters of each string; 0 for all [default: 200 in a table, all in JSON and CSV]
    #[arg(long, value_name = "N", help_heading = "Output")]
    max_chars: Option<usize>,

    #[command(flatten)]
    output: Output,
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

impl StringsArgs {
    fn rows(&self) -> StringRows {
        if self.duplicates { StringRows::Duplicates } else { StringRows::Strings }
    }

    fn max_chars(&self) -> usize {
        limit(self.max_chars, self.output.format(), DEFAULT_CHARS).unwrap_or(usize::MAX)
    }

    /// Returns the reason why there are no rows.
    fn why_nothing(&self) -> &'static str {
        let is_any = self.pattern.is_none() && self.min_length == 0 && self.max_length.is_none();
        match (self.duplicates, is_any, self.live) {
            (true, true, _) => "no String has duplicates",
            (true, false, _) => "no matching String has duplicates",
            (false, true, true) => "the dump contains no reachable String",
            (false, true, false) => "the dump contains no String",
            (false, false, true) => "no reachable String matches",
            (false, false, false) if self.pattern.is_some() => {
                "no String matches; (?i) in front of a pattern ignores case"
            }
            (false, false, false) => "no String matches",
        }
    }

    fn question(&self) -> anyhow::Result<StringQuery> {
        let sort_by =
            self.sort.unwrap_or(if self.duplicates { StringOrder::Wasted } else { StringOrder::Bytes });
        anyhow::ensure!(
            self.duplicates || !matches!(sort_by, StringOrder::Count | StringOrder::Wasted),
            "--sort count and --sort wasted need --duplicates: without it each row is one String"
        );
        Ok(StringQuery {
            pattern: self.pattern.clone(),
            lengths: self.min_length..=self.max_length.unwrap_or(u64::MAX),
            live: self.live,
            rows: self.rows(),
            sort_by,
            top: self.top.rows(self.output.format()),
        })
    }
}

pub(crate) fn run(cx: &RunContext, args: &StringsArgs) -> anyhow::Result<Outcome> {
    let question = args.question()?;
    // A few rows are computed here, where a damaged index can be noticed and the query repeated. Many are computed
    // while they are written, after everything they need was checked.
    let (session, (found, kept)) = Session::ask(cx, &args.input, |dump| {
        ensure_values(dump.heap, "its strings are unknown")?;
        let found = strings::strings(dump, &question)?;
        let reader = StringReader::new(dump, &found, (args.rows(), args.max_chars()));
        let kept = if reader.chunk(0, KEPT, CHUNK_CHARS) == found.len() {
            Some(make(&reader, 0..found.len()))
        } else {
            dump.graph.check_tree();
            None
        };
        Ok((found, kept))
    })?;
    let rows = args.input.with_threads(|| show(cx, args, &session, &found, kept))??;
    let summary = session.heap.summary();
    messages::about_contents(cx, &session.heap, args.input.quiet);
    if !args.input.quiet && found.totals.unreadable > 0 {
        let why = match summary.missing_contents().contents() {
            DumpContents::Complete => "their value is null, not an array of characters, or not in the dump",
            _ => {
                "their text was removed or cut, or their value is null, not an array of characters, or not in the dump"
            }
        };
        cx.emit("note", &format!("{} Strings have no text: {why}", group_digits(found.totals.unreadable)));
    }
    if !args.input.quiet && rows == 0 {
        cx.emit("note", args.why_nothing());
    }
    if args.live {
        unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
    }
    Ok(session.outcome(rows > 0))
}

/// Computes the given rows on all threads.
fn make(reader: &StringReader<'_>, rows: std::ops::Range<usize>) -> Vec<StringRow> {
    rows.into_par_iter().filter_map(|row| reader.row(row)).collect()
}

fn show(
    cx: &RunContext,
    args: &StringsArgs,
    session: &Session,
    found: &StringReport,
    kept: Option<Vec<StringRow>>,
) -> anyhow::Result<u64> {
    let reader = StringReader::new(&session.dump()?, found, (args.rows(), args.max_chars()));
    let mut start = if kept.is_some() { found.len() } else { 0 };
    let chunks = std::iter::from_fn(|| {
        let end = reader.chunk(start, CHUNK, CHUNK_CHARS);
        let chunk = start..end;
        start = end;
        (!chunk.is_empty()).then_some(chunk)
    });
    let rows = kept.into_iter().chain(chunks.map(|chunk| make(&reader, chunk))).flatten();
    let totals = &found.totals;
    let line = format!(
        "{} Strings, {} distinct; {} characters, {}, of which duplicates waste {}",
        group_digits(totals.strings),
        group_digits(totals.distinct),
        group_digits(totals.characters),
        human_bytes(totals.bytes),
        human_bytes(totals.wasted_bytes)
    );
    let answer = Answer::new(columns(args.rows()), rows)
        .with_summary(&summary_columns(), totals)
        .matching(totals.rows, "rows")
        .with_section_below(Section::Line(line))
        .if_empty(NoRows::Nothing);
    session.show(cx, "strings", &args.output, answer)
}

fn columns(rows: StringRows) -> Columns<'static, StringRow> {
    match rows {
        StringRows::Strings => string_columns(),
        StringRows::Duplicates => duplicate_columns(),
    }
}

fn string_columns() -> Columns<'static, StringRow> {
    let columns = Columns::new([
        Column::new(names::OBJECT, |row: &StringRow| id(row.id)),
        Column::new(names::CLASS, |_: &StringRow| STRING.into()),
        Column::new(names::LABEL, |row: &StringRow| Value::from(&row.text)),
        Column::new(names::LENGTH, |row: &StringRow| row.length.into()),
        Column::new(names::SHALLOW_BYTES, |row: &StringRow| row.shallow_bytes.into()),
        Column::new(names::RETAINED_BYTES, |row: &StringRow| row.retained_bytes.into())
            .or_null(nulls::UNREACHABLE),
        Column::new(names::TOTAL_BYTES, |row: &StringRow| row.total_bytes.into()),
        Column::new(names::IS_TRUNCATED, |row: &StringRow| row.is_cut.into()),
    ]);
    columns.table([
        TableColumn::new(names::TOTAL_BYTES, "bytes"),
        TableColumn::new(names::RETAINED_BYTES, "retained").cell(|row: &StringRow| {
            row.retained_bytes.map_or_else(|| "unreachable".to_owned(), group_digits)
        }),
        length_in_table(),
        TableColumn::new(names::OBJECT, "object"),
        text_in_table(names::LABEL),
    ])
}

fn duplicate_columns() -> Columns<'static, StringRow> {
    let holders = holder_columns();
    let columns = Columns::new([
        Column::new(names::TEXT, |row: &StringRow| Value::from(&row.text)),
        Column::new(names::STRINGS, |row: &StringRow| row.count.into()),
        Column::new(names::LENGTH, |row: &StringRow| row.length.into()),
        Column::new(names::WASTED_BYTES, |row: &StringRow| row.wasted_bytes.into()),
        Column::new(names::TOTAL_BYTES, |row: &StringRow| row.total_bytes.into()),
        Column::new(names::OBJECT, |row: &StringRow| id(row.id)),
        Column::new(names::IS_TRUNCATED, |row: &StringRow| row.is_cut.into()),
        Column::new(names::SAMPLED, |row: &StringRow| row.sampled.into()),
        Column::with_fields(names::HOLDERS, holders.fields(), move |row: &StringRow| {
            list(row.holders.iter().map(|holder| holders.record(holder)))
        })
        .csv(|row| holders_text(row).into()),
    ]);
    columns.table([
        TableColumn::new(names::WASTED_BYTES, "wasted"),
        TableColumn::new(names::TOTAL_BYTES, "bytes").fit(Fit::Secondary { priority: 1 }),
        TableColumn::new(names::STRINGS, "count"),
        length_in_table(),
        TableColumn::new(names::OBJECT, "object"),
        // The last column of the table may be shortened, but this one must be short.
        TableColumn::new(names::HOLDERS, "field, % of copies")
            .fit(Fit::Shorten { priority: 1 })
            .cell(short_holder),
        text_in_table(names::TEXT),
    ])
}

fn length_in_table() -> TableColumn<'static, StringRow> {
    TableColumn::new(names::LENGTH, "length").fit(Fit::Secondary { priority: 0 })
}

fn text_in_table(name: Name) -> TableColumn<'static, StringRow> {
    TableColumn::new(name, "text")
        .fit(Fit::Cut { priority: 0 })
        .cell(|row: &StringRow| escape::quoted(&format!("{}{}", row.text, if row.is_cut { "…" } else { "" })))
}

fn holder_columns() -> Columns<'static, Holder> {
    Columns::new([
        Column::new(names::CLASS, |holder: &Holder| Value::from(&holder.class)),
        Column::new(names::FIELD, |holder: &Holder| holder.field.as_ref().into())
            .or_null("a thread's stack, or not known"),
        Column::new(names::IS_STATIC, |holder: &Holder| holder.is_static.into()),
        Column::new(names::COPIES, |holder: &Holder| holder.copies.into()),
    ])
}

fn summary_columns() -> Columns<'static, StringTotals> {
    let figure = |name: Name, of: fn(&StringTotals) -> u64| {
        Column::new(names::TOTAL.dot(name), move |totals: &StringTotals| of(totals).into())
    };
    Columns::new([
        figure(names::ROWS, |totals| totals.rows),
        figure(names::STRINGS, |totals| totals.strings),
        figure(names::DISTINCT, |totals| totals.distinct),
        figure(names::DUPLICATED, |totals| totals.duplicated),
        figure(names::CHARACTERS, |totals| totals.characters),
        figure(names::TOTAL_BYTES, |totals| totals.bytes),
        figure(names::WASTED_BYTES, |totals| totals.wasted_bytes),
        figure(names::UNREADABLE, |totals| totals.unreadable),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |(variant, rows, about)| ResultSchema {
        command: "strings",
        variant,
        about,
        rows: columns(rows).fields(),
        summary: summary_columns().fields(),
    };
    let variants = [
        (
            "",
            StringRows::Strings,
            "A row is a String. Texts are truncated to `--max-chars` and to 2^24 characters. They are truncated to \
             256 characters if earlier rows show the same array, and such repetitions exceed both 2^24 characters and \
             the length of the dump in bytes.",
        ),
        (
            "`--duplicates`",
            StringRows::Duplicates,
            "A row is a text that several Strings have. Texts are truncated as above.",
        ),
    ];
    variants.map(schema).to_vec()
}

/// Formats the holders, with the share of the sampled copies that each references: `com.acme.Order.currency 98.4%,
/// java.lang.Object[][] 1.6%`.
fn holders_text(row: &StringRow) -> String {
    let texts = row.holders.iter().map(|holder| holder_text(&holder.class, holder, row.sampled));
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the first holder, without the package of its class.
fn short_holder(row: &StringRow) -> String {
    let Some(first) = row.holders.first() else { return String::new() };
    holder_text(class_names::simple(&first.class), first, row.sampled)
}

/// Formats a holder, with its class shown as `class`.
fn holder_text(class: &str, holder: &Holder, sampled: u64) -> String {
    let copies = percent(holder.copies, sampled);
    match holder.field.as_deref() {
        Some("[]") => format!("{class} element {copies}"),
        Some(field) => format!("{class}.{field} {copies}"),
        None => format!("{class} {copies}"),
    }
}
