//! CSV (RFC 4180): a header line, then one line per row. Columns are named like the keys in JSON.
//!
//! A declared record has one column for each of its fields, such as `holder.daemon`. Any other value is one cell of plain text,
//! never JSON: the values of a list are joined by `; `, the fields of a record in the list are `key=value`, joined by `, `.
//! Lists and records inside these are in parentheses. Null is empty.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::column::{Columns, JsonField, Schema};
use super::rows::{Cells, ColumnRows, RowCursor};
use super::value::Value;
use super::{digits, escape};
use hprof_values::ObjectId;

/// Writes rows with declared columns. Returns the number of rows.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<R>(
    out: &mut dyn Write,
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
) -> io::Result<u64> {
    write_rows(out, columns.schema(), &mut ColumnRows::new(columns, rows.into_iter(), None))
}

/// Writes rows from a type-erased cursor. Returns the number of rows.
pub(super) fn write_rows(out: &mut dyn Write, schema: &Schema, rows: &mut dyn RowCursor) -> io::Result<u64> {
    let mut writer = Writer::new(out);
    let mut count = 0;
    let mut is_there = rows.advance();
    writer.header(schema, rows)?;
    while is_there {
        writer.row(schema, rows)?;
        count += 1;
        is_there = rows.advance();
    }
    Ok(count)
}

/// Writer of single rows. Several writers can write chunks of one result in parallel.
///
/// Has the same output as the csv crate, but is faster: `dominators --all` writes a row for each of 10^8 objects, and most of
/// their cells are numbers, which need no quotes.
#[derive(Debug)]
pub(super) struct Writer<W: Write> {
    out: W,
    /// Current row; a comma follows each cell.
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `out`.
    pub(super) fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Writes the header line. A record has one column for each of its declared fields. If it declares none, the record in the
    /// first row determines them.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn header(&mut self, schema: &Schema, first: &dyn Cells) -> io::Result<()> {
        for (at, column) in schema.programs() {
            let key = column.key().unwrap_or_default();
            self.titles(key, column.csv_record(), &first.csv_value(at));
        }
        self.end_of_row()
    }

    fn titles(&mut self, key: &str, record: Option<&[JsonField]>, value: &Value<'_>) {
        match (record, value) {
            (Some([]), Value::Record(values)) => {
                values
                    .iter()
                    .for_each(|(inner, value)| self.titles(&format!("{key}.{inner}"), record, value));
            }
            (Some(fields @ [_, ..]), _) => {
                for field in fields {
                    let inner = &field.key.text;
                    self.titles(&format!("{key}.{inner}"), field.record(), value.at(inner));
                }
            }
            _ => self.text(key),
        }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn row(&mut self, schema: &Schema, row: &dyn Cells) -> io::Result<()> {
        schema.programs().try_for_each(|(at, column)| self.cells(column.csv_record(), &row.csv_value(at)))?;
        self.end_of_row()
    }

    /// Writes the cells of a column: for a record one cell for each field, including records that are `null` in this row.
    fn cells(&mut self, record: Option<&[JsonField]>, value: &Value<'_>) -> io::Result<()> {
        match (record, value) {
            (Some([]), Value::Record(values)) => {
                values.iter().try_for_each(|(_, value)| self.cells(record, value))
            }
            (Some(fields @ [_, ..]), _) => {
                fields.iter().try_for_each(|field| self.cells(field.record(), value.at(&field.key.text)))
            }
            _ => self.cell(value),
        }
    }

    fn cell(&mut self, value: &Value<'_>) -> io::Result<()> {
        match value {
            Value::Null => self.plain(b""),
            Value::Boolean(value) => self.plain(if *value { b"true" } else { b"false" }),
            Value::Integer(number) => self.number(*number),
            Value::Signed(number) => self.number(*number),
            Value::Float(_) => self.plain(&serde_json::to_vec(value)?),
            Value::Id(id) => self.id(*id),
            Value::Text(text) => self.text(text),
            Value::Verbatim(text) => self.write_escaped(text),
            Value::List(_) | Value::LazyList(_) | Value::Record(_) => {
                let mut text = String::new();
                push_value(&mut text, value)?;
                // Numbers, of any sign, are not formulas.
                if is_numbers(value) { self.write_escaped(&text) } else { self.text(&text) }
            }
        }
        Ok(())
    }

    /// Writes a cell that needs neither escapes nor quotes.
    fn plain(&mut self, cell: &[u8]) {
        self.line.extend_from_slice(cell);
        self.line.push(b',');
    }

    fn number(&mut self, number: impl digits::Integer) {
        digits::push_decimal(&mut self.line, number);
        self.line.push(b',');
    }

    /// Writes an object ID: `0x7c00012a8`.
    fn id(&mut self, id: ObjectId) {
        self.line.extend_from_slice(b"0x");
        digits::push_hex(&mut self.line, id.0);
        self.line.push(b',');
    }

    /// Writes a text from the dump, escaped and quoted if necessary.
    fn text(&mut self, text: &str) {
        // Nearly all texts are plain. Examining all bytes without branches takes a few vector instructions.
        let is_plain =
            |plain: bool, byte: u8| plain & matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b',');
        if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().fold(true, is_plain)
        {
            return self.plain(text.as_bytes());
        }
        self.write_escaped(&escape::cell(text));
    }

    /// Writes an escaped text, which has no line breaks, quoted if necessary.
    fn write_escaped(&mut self, text: &str) {
        if memchr::memchr2(b'"', b',', text.as_bytes()).is_some() {
            self.plain(format!("\"{}\"", text.replace('"', "\"\"")).as_bytes());
        } else {
            self.plain(text.as_bytes());
        }
    }

    fn end_of_row(&mut self) -> io::Result<()> {
        if self.line == b"," {
            // A row of one empty cell would be an empty line, which readers skip.
            self.line.splice(..0, *b"\"\"");
        }
        self.line.pop();
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// Returns the underlying writer.
    pub(super) fn get_ref(&self) -> &W {
        &self.out
    }
}

/// Appends a value as part of a cell. The value is not escaped here, because the entire cell is.
fn push_value(out: &mut String, value: &Value<'_>) -> io::Result<()> {
    fn push_list<'v>(out: &mut String, values: impl Iterator<Item = Cow<'v, Value<'v>>>) -> io::Result<()> {
        for (at, value) in values.enumerate() {
            out.push_str(if at > 0 { "; " } else { "" });
            match &*value {
                // The list is delimited by parentheses.
                inner @ (Value::List(_) | Value::LazyList(_)) => push_nested(out, inner)?,
                inner => push_value(out, inner)?,
            }
        }
        Ok(())
    }
    match value {
        Value::Null => {}
        Value::Id(id) => write!(out, "{id:#x}").map_err(io::Error::other)?,
        Value::Text(text) | Value::Verbatim(text) => out.push_str(text),
        Value::List(values) => push_list(out, values.iter().map(Cow::Borrowed))?,
        Value::LazyList(each) => push_list(out, each.values().map(Cow::Owned))?,
        Value::Record(fields) => {
            let is_there = |value: &Value<'_>| match value {
                Value::Null => false,
                Value::List(values) => !values.is_empty(),
                _ => true,
            };
            let fields = fields.iter().filter(|(_, value)| is_there(value));
            for (at, (key, value)) in fields.enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(key);
                out.push('=');
                match value {
                    inner @ (Value::List(_) | Value::LazyList(_) | Value::Record(_)) => {
                        push_nested(out, inner)?
                    }
                    inner => push_value(out, inner)?,
                }
            }
        }
        Value::Boolean(_) | Value::Integer(_) | Value::Signed(_) | Value::Float(_) => {
            out.push_str(&serde_json::to_string(value)?);
        }
    }
    Ok(())
}

/// Appends a value that is nested in another value, in parentheses.
fn push_nested(out: &mut String, value: &Value<'_>) -> io::Result<()> {
    out.push('(');
    push_value(out, value)?;
    out.push(')');
    Ok(())
}

/// Returns whether a value is a list of numbers only.
fn is_numbers(value: &Value<'_>) -> bool {
    let is_number = |value: &Value<'_>| match value {
        Value::Integer(_) | Value::Signed(_) | Value::Float(_) | Value::Id(_) => true,
        Value::Verbatim(text) => text.parse::<f64>().is_ok(),
        _ => false,
    };
    matches!(value, Value::List(values) if values.iter().all(is_number))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::column::{Column, ColumnKey, ValueKind};
    use crate::value::{LazyList, list};

    fn record<'a, const N: usize>(values: [(&'a str, Value<'a>); N]) -> Value<'a> {
        Value::Record(values.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    #[test]
    fn cells_are_as_the_csv_crate_writes_them() {
        let columns = Columns::new([
            Column::new(ColumnKey::chosen("a,b", ValueKind::Any), |row: &[Value<'static>; 2]| row[0].clone()),
            Column::new(ColumnKey::chosen("c", ValueKind::Any), |row: &[Value<'static>; 2]| row[1].clone()),
        ]);
        let ids = [0, 1, 0xf, 0x10, 0x7_c000_12a8, u64::MAX].map(|id| [Value::Id(ObjectId(id)), id.into()]);
        let texts =
            ["", "=x", "a,b", "say \"a\"", "\n", "\u{202e}é"].map(|text| [text.into(), (-1i32).into()]);
        let others = [[list(["a", "b"]), Value::Float(0.5)], [Value::Null, true.into()]];
        let rows = ids.into_iter().chain(texts).chain(others);
        let text = |value: &Value<'_>| match value {
            Value::Null => String::new(),
            Value::Text(text) => escape::cell(text).into_owned(),
            Value::Id(id) => format!("{id:#x}"),
            Value::List(_) => "a; b".to_owned(),
            other => serde_json::to_string(other).unwrap(),
        };
        let mut expected = csv::Writer::from_writer(Vec::new());
        expected.write_record(["a,b", "c"]).unwrap();
        rows.clone().for_each(|row| expected.write_record(row.iter().map(text)).unwrap());
        let mut out = Vec::new();
        write(&mut out, &columns, rows).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            String::from_utf8(expected.into_inner().unwrap()).unwrap()
        );
        let one =
            Columns::new([Column::new(ColumnKey::chosen("a", ValueKind::Text), |row: &&'static str| {
                (*row).into()
            })]);
        let mut out = Vec::new();
        write(&mut out, &one, ["", "b"]).unwrap();
        assert_eq!(out, b"a\n\"\"\nb\n");
    }

    #[test]
    fn nested_rows_become_columns() {
        let fields = ["c", "d"].map(|key| JsonField::new(ColumnKey::chosen(key, ValueKind::Text)));
        let columns = Columns::new([
            Column::new(ColumnKey::chosen("a", ValueKind::Integer), |_: &()| 1u64.into()),
            Column::with_fields(ColumnKey::chosen("b", ValueKind::Record), fields.to_vec(), |_: &()| {
                record([("c", "=x".into()), ("d", Value::Null)])
            }),
            Column::new(ColumnKey::chosen("e", ValueKind::Any), |_: &()| list([1u64, 2])),
        ]);
        let mut out = Vec::new();
        write(&mut out, &columns, [()]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,b.c,b.d,e\n1,'=x,,1; 2\n");
    }

    #[test]
    fn no_cell_is_json() {
        let cell = |value: Value<'static>| {
            let columns =
                Columns::new([Column::new(ColumnKey::chosen("a", ValueKind::Any), move |_: &()| {
                    value.clone()
                })]);
            let mut out = Vec::new();
            write(&mut out, &columns, [()]).unwrap();
            String::from_utf8(out).unwrap().strip_prefix("a\n").unwrap().trim_end_matches('\n').to_owned()
        };
        let object =
            |id| record([("object", Value::Id(ObjectId(id))), ("label", Value::Null), ("n", 1u64.into())]);
        assert_eq!(cell(list(["a", "b c", ""])), "a; b c; ");
        assert_eq!(cell(list([-1i64, 2])), "-1; 2");
        assert_eq!(cell(Value::List(Vec::new())), "\"\"");
        assert_eq!(cell(Value::List(vec![object(16), object(17)])), "\"object=0x10, n=1; object=0x11, n=1\"");
        assert_eq!(cell(list([Value::Null, true.into(), Value::Float(0.5)])), "; true; 0.5");
        assert_eq!(cell(list(["say \"a\"", "x\ny"])), "\"say \"\"a\"\"; x\\ny\"");
        assert_eq!(cell(list(["=1", "2"])), "'=1; 2");
        assert_eq!(cell(record([("", "=1".into())])), "'==1");
        let frame = record([("m", "f".into()), ("l", list(["a", "b"])), ("e", Value::List(Vec::new()))]);
        assert_eq!(cell(Value::List(vec![frame, list([1u64, 2])])), "\"m=f, l=(a; b); (1; 2)\"");
        assert_eq!(cell(LazyList::new(|| [Value::Integer(1), "x".into()].into_iter()).into()), "1; x");
    }

    #[test]
    fn titles_are_declared_and_not_those_of_the_first_row() {
        let inner = Columns::new([
            Column::new(ColumnKey::chosen("x.y", ValueKind::Integer), |n: &u64| (*n).into()),
            Column::new(ColumnKey::chosen("x.z", ValueKind::Integer), |n: &u64| (*n + 1).into()),
        ]);
        let columns = Columns::new([
            Column::record(ColumnKey::chosen("a", ValueKind::Record), inner, |row: &Option<u64>| *row),
            Column::with_fields(
                ColumnKey::chosen("b", ValueKind::Record),
                Vec::new(),
                |row: &Option<u64>| (*row).into(),
            ),
        ]);
        let text = |rows: &[Option<u64>]| {
            let mut out = Vec::new();
            write(&mut out, &columns, rows.iter().copied()).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(&[]), "a.x.y,a.x.z,b\n");
        assert_eq!(text(&[None, Some(7)]), "a.x.y,a.x.z,b\n,,\n7,8,7\n");
        assert_eq!(text(&[Some(7), None]), "a.x.y,a.x.z,b\n7,8,7\n,,\n");
    }

    #[test]
    fn a_record_without_declared_fields_has_the_keys_of_the_first_row() {
        let columns = Columns::new([Column::with_fields(
            ColumnKey::chosen("a", ValueKind::Record),
            Vec::new(),
            |key: &&str| record([(key, 1u64.into()), ("e", record([("f.g", 2u64.into())]))]),
        )]);
        let mut out = Vec::new();
        write(&mut out, &columns, ["b.c"]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a.b.c,a.e.f.g\n1,2\n");
    }
}
