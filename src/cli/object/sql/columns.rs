//! Columns of the result of a query.

use crate::cli::prelude::*;
use crate::cli::shared::object;
use hprof_query::dictionary::ColumnKey;
use hprof_query::objects::meaning;
use hprof_query::sql::{ColumnKind, SqlColumn, SqlRow, SqlValue};
use hprof_report::column::{JsonField, ValueKind};
use hprof_report::value::{list, record};
use hprof_values::ObjectId;

/// Maximum number of characters in a table cell.
const TABLE_TEXT: usize = 200;

/// Returns the columns for rows. In a table, columns whose first rows contain only numbers are right-aligned.
pub(super) fn of_rows(named: &[SqlColumn], first: &[SqlRow]) -> Columns<'static, SqlRow> {
    let column = |(at, named): (usize, &SqlColumn)| {
        let kind = named.kind;
        let is_number =
            |row: &SqlRow| matches!(cell(row, at), SqlValue::Null | SqlValue::Integer(_) | SqlValue::Real(_));
        let is_right = kind == ColumnKind::Other && !first.is_empty() && first.iter().all(is_number);
        Column::new(ColumnKey::chosen(named.name.clone(), ValueKind::Any), move |row: &SqlRow| {
            value(cell(row, at), kind)
        })
        .csv(move |row| csv(cell(row, at), kind))
        .header(named.name.clone())
        .cell(move |row| plain(cell(row, at), kind))
        .align(if is_right { Align::Right } else { Align::Left })
        .fit(Fit::Cut { priority: 0 })
    };
    Columns::new(named.iter().enumerate().map(column)).flat()
}

/// Returns a sample column for the reference.
pub(super) fn example() -> SqlColumn {
    SqlColumn { name: "NAME".to_owned(), kind: ColumnKind::Other }
}

fn cell(row: &SqlRow, at: usize) -> &SqlValue {
    row.get(at).unwrap_or(&SqlValue::Null)
}

/// Converts a cell to a JSON value.
fn value(cell: &SqlValue, kind: ColumnKind) -> Value<'_> {
    match (cell, kind) {
        (SqlValue::Null, _) => Value::Null,
        (SqlValue::Integer(id), ColumnKind::Id) => Value::Id(ObjectId(id.cast_unsigned())),
        (SqlValue::Integer(truth @ (0 | 1)), ColumnKind::Boolean) => (*truth == 1).into(),
        (SqlValue::Integer(value), _) => (*value).into(),
        (SqlValue::Real(value), _) => object::double(*value),
        (SqlValue::Text(text), _) => text.into(),
        (SqlValue::Blob(bytes), _) => hexadecimal(bytes).into(),
    }
}

/// Converts a cell to a CSV value.
fn csv(cell: &SqlValue, kind: ColumnKind) -> Value<'_> {
    match cell {
        SqlValue::Real(value) => Value::Verbatim(meaning::double(*value).into()),
        _ => value(cell, kind),
    }
}

/// Formats a cell for a table.
fn plain(cell: &SqlValue, kind: ColumnKind) -> String {
    match (cell, kind) {
        (SqlValue::Null, _) => String::new(),
        (SqlValue::Integer(id), ColumnKind::Id) => format!("{:#x}", ObjectId(id.cast_unsigned())),
        (SqlValue::Integer(0), ColumnKind::Boolean) => "no".to_owned(),
        (SqlValue::Integer(1), ColumnKind::Boolean) => "yes".to_owned(),
        (SqlValue::Integer(value), _) => value.to_string(),
        (SqlValue::Real(value), _) => meaning::double(*value),
        (SqlValue::Text(text), _) => cut(text),
        (SqlValue::Blob(bytes), _) => cut(&hexadecimal(bytes.get(..TABLE_TEXT).unwrap_or(bytes))),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TABLE_TEXT) {
        None => text.to_owned(),
        Some(_) => text.chars().take(TABLE_TEXT - 1).chain(['…']).collect(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keys of the JSON document in addition to its rows.
pub(super) struct SqlSummary {
    names: Vec<Value<'static>>,
    attached: Vec<Value<'static>>,
}

impl SqlSummary {
    /// Creates the keys from the columns and the further dumps.
    pub(super) fn new(columns: &[SqlColumn], others: &[(String, Session)]) -> Self {
        let attached = |(name, session): &(String, Session)| {
            let dump = session.header();
            record([
                (names::NAME, name.as_str().into()),
                (names::PATH, dump.path.clone().into_owned().into()),
                (names::CREATED, dump.created.as_deref().map(str::to_owned).into()),
                (names::IS_DAMAGED, dump.is_damaged.into()),
            ])
            .into_owned()
        };
        Self {
            names: columns.iter().map(|column| column.name.clone().into()).collect(),
            attached: others.iter().map(attached).collect(),
        }
    }
}

/// Returns the keys in addition to the rows.
pub(super) fn summary_columns() -> Columns<'static, SqlSummary> {
    let attached = vec![
        JsonField::new(names::NAME),
        JsonField::new(names::PATH),
        JsonField::new(names::CREATED).or_null(nulls::UNSTATED),
        JsonField::new(names::IS_DAMAGED),
    ];
    Columns::new([
        Column::new(names::COLUMNS, |summary: &SqlSummary| list(summary.names.iter().cloned())),
        Column::with_fields(names::ATTACHED, attached, |summary: &SqlSummary| {
            list(summary.attached.iter().cloned())
        }),
    ])
}
