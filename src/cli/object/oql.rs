//! `oql`: queries in Eclipse MAT's query language.

use std::path::PathBuf;

use hprof_query::dictionary::ColumnKey;
use hprof_query::objects::meaning;
use hprof_query::oql::{Evaluator, MAX_LEN, ObjectRow, OqlResult, OqlRow, OqlValue, Query, QueryError};
use hprof_report::column::ValueKind;
use hprof_report::value::{id, list, record};

use crate::cli::prelude::*;
use crate::cli::shared::hiding;
use crate::cli::shared::session::KEPT;
use crate::cli::shared::unreachable::{self, ReachableScope};
use crate::cli::shared::{object, query_text};

pub(crate) const EXAMPLES: &str = r#"Examples:
  hprof-cli oql heap.hprof 'SELECT * FROM java.lang.String s WHERE s.@retainedHeapSize > 10kB'
  hprof-cli oql heap.hprof 'SELECT toString(t.name), t.@retainedHeapSize FROM INSTANCEOF java.lang.Thread t'
  hprof-cli oql heap.hprof 'SELECT classof(s).@name AS class, count(*) FROM "com\.acme\..*" s
      GROUP BY classof(s) ORDER BY count(*) DESC LIMIT 10'
  hprof-cli oql heap.hprof --file leaks.oql --format csv"#;

/// Default number of rows in a table.
const DEFAULT_TOP: usize = 25;
/// Maximum number of list elements in a table cell.
const TABLE_ELEMENTS: usize = 5;
/// Maximum number of characters in a table cell.
const TABLE_TEXT: usize = 200;
/// Maximum size in bytes of the rows that are computed before anything is shown; [`KEPT`] rows with long texts would take
/// more.
const KEPT_BYTES: usize = 16 << 20;

/// Help text. It is not a doc comment, as text in brackets would be a link.
const ABOUT: &str = r#"Run an OQL query

SELECT [DISTINCT] [AS RETAINED SET] [OBJECTS] items FROM [OBJECTS] [INSTANCEOF]
class|"regex"|0xaddress|(query) alias [WHERE ...] [UNION (...)]

OQL is the query language of Eclipse MAT; queries of jhat and VisualVM run as well. Extensions:
GROUP BY, ORDER BY, LIMIT, count, sum, min, max, avg, and sizes such as 1MB. docs/oql.md is the
reference. Builds the index on first use."#;

/// Arguments of `oql`.
#[derive(Debug, clap::Args)]
#[command(about = "Run an OQL query", long_about = ABOUT)]
#[command(arg = hiding::no_values())]
pub(crate) struct OqlArgs {
    #[command(flatten)]
    input: Input,

    /// Query to run
    #[arg(value_name = "QUERY", required_unless_present = "file", help_heading = "Filter")]
    query: Option<String>,

    /// Read the query from FILE; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "query", help_heading = "Filter")]
    file: Option<PathBuf>,

    /// Only reachable objects
    #[arg(long, help_heading = "Filter")]
    live: bool,

    #[command(flatten)]
    top: Top<DEFAULT_TOP>,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(cx: &RunContext, args: &OqlArgs) -> anyhow::Result<Outcome> {
    let text = match (&args.query, &args.file) {
        (Some(query), _) => query.clone(),
        (None, Some(file)) => query_text::read(cx, file, MAX_LEN)?,
        (None, None) => anyhow::bail!("no query is given; `hprof-cli oql --help` shows examples"),
    };
    let query: Query = match text.parse() {
        Ok(query) => query,
        Err(error) => return Err(report_error(cx, error)),
    };
    hiding::note(cx, args.input.quiet);
    let top = args.top.rows(args.output.format());
    let (session, answer) = Session::ask(cx, &args.input, |dump| {
        let evaluator = Evaluator::new(dump).only_reachable(args.live);
        Ok(evaluator.run(&query, top).and_then(|found| {
            let first = first_rows(args, &found, &evaluator);
            evaluator.check(&query).map(|()| (found, first))
        }))
    })?;
    match answer {
        Ok((found, first)) => {
            let outcome = show(cx, args, &session, &query, (&found, first))?;
            if args.live {
                unreachable::note(cx, &session, &args.input, ReachableScope::Reachable);
            }
            Ok(outcome)
        }
        Err(error) if error.is_unknown => {
            cx.emit("error", &report_error(cx, error).to_string());
            Ok(session.outcome(false))
        }
        Err(error) => Err(report_error(cx, error)),
    }
}

/// Shows the position of an error and returns the error.
fn report_error(cx: &RunContext, error: QueryError) -> anyhow::Error {
    query_text::show_place(cx, &error.query, error.column.saturating_sub(1));
    error.into()
}

/// Computes the first rows while the query runs, when a damaged index can still be noticed. Later rows are computed
/// while they are written.
fn first_rows(args: &OqlArgs, found: &OqlResult, evaluator: &Evaluator<'_, '_>) -> Vec<OqlRow> {
    let (mut rows, mut left) = (Vec::new(), KEPT_BYTES);
    for row in found.rows(evaluator).take(max_first_rows(args)) {
        left = left.saturating_sub(row_bytes(&row));
        rows.push(row);
        if left == 0 {
            break;
        }
    }
    rows
}

/// Returns the maximum number of rows shown.
fn max_rows(args: &OqlArgs) -> usize {
    args.top.rows(args.output.format()).unwrap_or(usize::MAX)
}

/// Returns the maximum number of rows computed before anything is shown: for a table, one more than it shows, to know
/// whether rows were omitted.
fn max_first_rows(args: &OqlArgs) -> usize {
    let is_table = args.output.format() == Format::Table;
    max_rows(args).saturating_add(is_table.into()).min(KEPT)
}

/// Estimates the memory of a row.
fn row_bytes(row: &OqlRow) -> usize {
    fn text(text: Option<&String>) -> usize {
        text.map_or(0, String::len)
    }
    fn cell_bytes(cell: &OqlValue) -> usize {
        size_of::<OqlValue>()
            + match cell {
                OqlValue::Text(value) => value.len(),
                OqlValue::Object(_, class, label) => text(class.as_ref()) + text(label.as_ref()),
                OqlValue::Entry(entry) => cell_bytes(&entry.0) + cell_bytes(&entry.1),
                OqlValue::List(_, first) => first.iter().map(cell_bytes).sum(),
                _ => 0,
            }
    }
    match row {
        OqlRow::Object(object) => {
            size_of::<OqlRow>() + text(object.class.as_ref()) + text(object.label.as_ref())
        }
        OqlRow::Cells(cells) => cells.iter().map(cell_bytes).sum(),
    }
}

fn show(
    cx: &RunContext,
    args: &OqlArgs,
    session: &Session,
    query: &Query,
    (found, first): (&OqlResult, Vec<OqlRow>),
) -> anyhow::Result<Outcome> {
    let dump = session.dump()?;
    let evaluator = Evaluator::new(&dump).only_reachable(args.live);
    let total = found.total();
    let most = max_rows(args);
    let columns = match &found.columns {
        None => object_columns(),
        Some(names) => cell_columns(names, first.get(..most).unwrap_or(&first)),
    };
    let names = columns.fields().into_iter().map(|field| Value::Text(field.key.text)).collect();
    // The evaluation continues where the first rows ended.
    let made = first.len();
    let rows = first.into_iter().chain(found.rows_from(&evaluator, made));
    let mut answer = Answer::new(columns, rows)
        .with_summary(&summary_columns(), &OqlSummary { names, total })
        .first_of(most, "rows");
    if let Some(total) = total {
        answer = answer.matching(total, "rows");
    }
    let rows = session.show(cx, "oql", &args.output, answer)?;
    // Rows after the first ones are evaluated while they are written.
    evaluator.check(query).map_err(|error| report_error(cx, error))?;
    if rows == 0 && !args.input.quiet {
        cx.emit("note", "no rows");
    }
    Ok(session.outcome(rows > 0))
}

/// Returns the columns for rows that are objects.
fn object_columns() -> Columns<'static, OqlRow> {
    fn object(row: &OqlRow) -> Option<&ObjectRow> {
        match row {
            OqlRow::Object(object) => Some(object),
            OqlRow::Cells(_) => None,
        }
    }
    let columns = Columns::new([
        Column::new(names::OBJECT, |row: &OqlRow| id(object(row).map(|object| object.object))),
        Column::new(names::CLASS, |row: &OqlRow| object(row).map(|object| object.class.as_ref()).into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |row: &OqlRow| object(row).map(|object| object.label.as_ref()).into())
            .or_null(nulls::NO_LABEL),
        Column::new(names::SHALLOW_BYTES, |row: &OqlRow| {
            object(row).map(|object| object.shallow_bytes).into()
        })
        .or_null(nulls::UNKNOWN),
        Column::new(names::RETAINED_BYTES, |row: &OqlRow| {
            object(row).map(|object| object.retained_bytes).into()
        })
        .or_null(nulls::UNREACHABLE),
    ]);
    columns.table([
        TableColumn::new(names::SHALLOW_BYTES, "shallow").fit(Fit::Secondary { priority: 0 }),
        TableColumn::new(names::RETAINED_BYTES, "retained"),
        TableColumn::new(names::OBJECT, "id"),
        TableColumn::table_only("object", Align::Left, |row: &OqlRow| {
            let object = object(row);
            let text = |of: fn(&ObjectRow) -> Option<&str>| object.and_then(of);
            object::describe_without_id(text(|row| row.class.as_deref()), text(|row| row.label.as_deref()))
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

/// Returns the columns for the values that a query selects. In a table, columns whose first rows contain only numbers are
/// right-aligned.
fn cell_columns(names: &[String], first: &[OqlRow]) -> Columns<'static, OqlRow> {
    fn cell(row: &OqlRow, at: usize) -> &OqlValue {
        match row {
            OqlRow::Cells(cells) => cells.get(at).unwrap_or(&OqlValue::Null),
            OqlRow::Object(_) => &OqlValue::Null,
        }
    }
    let is_number = |cell: &OqlValue| {
        matches!(cell, OqlValue::Whole(_) | OqlValue::Float(_) | OqlValue::Double(_) | OqlValue::Null)
    };
    let column = |(at, name): (usize, &String)| {
        let is_right = !first.is_empty() && first.iter().all(|row| is_number(cell(row, at)));
        // For objects the class name at the end matters most, for texts the start.
        let is_object = first.iter().any(|row| matches!(cell(row, at), OqlValue::Object(..)));
        Column::new(ColumnKey::chosen(name.clone(), ValueKind::Any), move |row: &OqlRow| value(cell(row, at)))
            .csv(move |row| csv(cell(row, at)))
            .header(name.clone())
            .cell(move |row| plain(cell(row, at), TABLE_TEXT))
            .align(if is_right { Align::Right } else { Align::Left })
            .fit(if is_object { Fit::Shorten { priority: 0 } } else { Fit::Cut { priority: 0 } })
    };
    Columns::new(names.iter().enumerate().map(column)).flat()
}

/// Converts a cell to a JSON value.
fn value(cell: &OqlValue) -> Value<'_> {
    match cell {
        OqlValue::Null => Value::Null,
        OqlValue::Boolean(value) => (*value).into(),
        OqlValue::Whole(value) => (*value).into(),
        OqlValue::Float(value) => object::float(*value),
        OqlValue::Double(value) => object::double(*value),
        OqlValue::Text(text) => text.into(),
        OqlValue::Object(object, class, label) => record([
            (names::OBJECT, id(*object)),
            (names::CLASS, class.as_ref().into()),
            (names::LABEL, label.as_ref().into()),
        ]),
        OqlValue::Entry(entry) => record([(names::KEY, value(&entry.0)), (names::VALUE, value(&entry.1))]),
        OqlValue::List(size, first) => {
            record([(names::SIZE, (*size).into()), (names::FIRST, list(first.iter().map(value)))])
        }
    }
}

/// Converts a cell to a CSV value.
fn csv(cell: &OqlValue) -> Value<'_> {
    match cell {
        OqlValue::Text(text) => text.into(),
        OqlValue::Object(id, ..) => Value::Id(*id),
        OqlValue::Entry(entry) => Value::Record(vec![(plain_key(&entry.0).into(), csv(&entry.1))]),
        OqlValue::List(_, first) => list(first.iter().map(csv)),
        OqlValue::Null => Value::Null,
        number => Value::Verbatim(plain(number, usize::MAX).into()),
    }
}

/// Formats the key of a map entry in a cell.
fn plain_key(key: &OqlValue) -> String {
    match key {
        OqlValue::Object(id, ..) => format!("{id:#x}"),
        key => plain(key, usize::MAX),
    }
}

/// Formats a cell for a table.
fn plain(cell: &OqlValue, longest: usize) -> String {
    match cell {
        OqlValue::Null => String::new(),
        OqlValue::Boolean(value) => value.to_string(),
        OqlValue::Whole(value) => value.to_string(),
        OqlValue::Float(value) => meaning::float(*value),
        OqlValue::Double(value) => meaning::double(*value),
        OqlValue::Text(text) if text.chars().count() <= longest => text.clone(),
        OqlValue::Text(text) => text.chars().take(longest.saturating_sub(1)).chain(['…']).collect(),
        OqlValue::Object(id, class, label) => object::describe(class.as_deref(), *id, label.as_deref()),
        OqlValue::Entry(entry) => format!("{}={}", plain(&entry.0, longest), plain(&entry.1, longest)),
        OqlValue::List(size, first) => {
            let shown: Vec<String> = first.iter().take(TABLE_ELEMENTS).map(|cell| plain(cell, 40)).collect();
            let more = if *size > shown.len() as u64 { ", …" } else { "" };
            format!("{size}: {}{more}", shown.join(", "))
        }
    }
}

/// Keys of the JSON document in addition to its rows.
struct OqlSummary {
    names: Vec<Value<'static>>,
    total: Option<u64>,
}

fn summary_columns() -> Columns<'static, OqlSummary> {
    Columns::new([
        Column::new(names::COLUMNS, |summary: &OqlSummary| summary.names.clone().into()),
        Column::new(names::TOTAL.dot(names::ROWS), |summary: &OqlSummary| summary.total.into())
            .or_null("known only after all rows are computed"),
    ])
}

pub(crate) fn row_schema() -> Vec<ResultSchema> {
    let schema = |variant, about, columns: Columns<'static, OqlRow>| ResultSchema {
        command: "oql",
        variant,
        about,
        rows: columns.fields(),
        summary: summary_columns().fields(),
    };
    vec![
        schema("queries for objects", "A row is an object.", object_columns()),
        schema(
            "queries for values",
            "A row has a key for each column of the query, named as it is written or by `AS`; a second column of the same \
             name gets ` 2`.",
            cell_columns(&["NAME".to_owned()], &[]),
        ),
    ]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_of_csv_is_a_formula() {
        let entry = |key, value| OqlValue::Entry(Box::new((key, value)));
        let formula = OqlValue::Text("cmd|'/C calc'!A0".to_owned());
        let cells =
            [entry(OqlValue::Null, formula.clone()), OqlValue::List(1, vec![entry(OqlValue::Null, formula)])];
        let columns =
            Columns::new([Column::new(ColumnKey::chosen("c", ValueKind::Any), |cell: &OqlValue| csv(cell))]);
        let mut out = Vec::new();
        hprof_report::csv::write(&mut out, &columns, cells).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "c\n'=cmd|'/C calc'!A0\n'=cmd|'/C calc'!A0\n");
    }
}
