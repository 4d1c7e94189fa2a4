//! CSV (RFC 4180): a header line, then one line a row, with the JSON's keys as columns.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::column::Columns;
use super::escape;
use super::value::Value as CellValue;

/// Writes rows by declared columns. Returns how many there were.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<R>(
    out: &mut dyn Write,
    columns: &Columns<'_, R>,
    rows: impl IntoIterator<Item = R>,
) -> io::Result<u64> {
    let mut writer = Writer::new(out);
    let mut count = 0;
    let mut rows = rows.into_iter().peekable();
    writer.header(columns, rows.peek())?;
    for row in rows {
        writer.row(columns, &row)?;
        count += 1;
    }
    writer.finish()?;
    Ok(count)
}

/// Writes rows one by one: several can write parts of one answer side by side.
pub struct Writer<W: Write> {
    csv: csv::Writer<W>,
    digits: itoa::Buffer,
    text: String,
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        let csv = csv::WriterBuilder::new().has_headers(false).flexible(true).from_writer(out);
        Self { csv, digits: itoa::Buffer::new(), text: String::new() }
    }

    /// Writes the line of titles. A record becomes a column for each of its values, which the first row tells.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn header<R>(&mut self, columns: &Columns<'_, R>, first: Option<&R>) -> io::Result<()> {
        for column in columns.programs() {
            let key = column.key().unwrap_or_default();
            let value = first.map_or(CellValue::Null, |row| column.csv_value(row));
            self.titles(key, &value)?;
        }
        self.end_of_row()
    }

    fn titles(&mut self, key: &str, value: &CellValue<'_>) -> io::Result<()> {
        match value {
            CellValue::Record(values) => {
                values.iter().try_for_each(|(inner, value)| self.titles(&format!("{key}.{inner}"), value))
            }
            _ => self.csv.write_field(escape::cell(key).as_bytes()).map_err(io_error),
        }
    }

    /// Writes a row.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn row<R>(&mut self, columns: &Columns<'_, R>, row: &R) -> io::Result<()> {
        columns.programs().try_for_each(|column| self.cell(&column.csv_value(row)))?;
        self.end_of_row()
    }

    fn cell(&mut self, value: &CellValue<'_>) -> io::Result<()> {
        use std::fmt::Write;
        let written = match value {
            CellValue::Null => self.csv.write_field(b""),
            CellValue::Boolean(value) => self.csv.write_field(if *value { "true" } else { "false" }),
            CellValue::Integer(number) => self.csv.write_field(self.digits.format(*number)),
            CellValue::Signed(number) => self.csv.write_field(self.digits.format(*number)),
            CellValue::Id(id) => {
                self.text.clear();
                // Writing to a String cannot fail.
                let _ = write!(self.text, "{id:#x}");
                self.csv.write_field(&self.text)
            }
            CellValue::Text(text) => self.csv.write_field(escape::cell(text).as_bytes()),
            CellValue::Verbatim(text) => self.csv.write_field(text.as_bytes()),
            CellValue::Record(values) => {
                return values.iter().try_for_each(|(_, value)| self.cell(value));
            }
            CellValue::Float(_) => self.csv.write_field(serde_json::to_string(value)?),
            CellValue::List(_) | CellValue::Each(_) => {
                self.csv.write_field(escape::cell(&serde_json::to_string(value)?).as_bytes())
            }
        };
        written.map_err(io_error)
    }

    fn end_of_row(&mut self) -> io::Result<()> {
        self.csv.write_record(None::<&[u8]>).map_err(io_error)
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.csv.flush()
    }
}

/// Writes rows that are flat: each field is a text or a number. `columns` are the names of the fields, in order; they
/// are written even if there is no row.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_flat<R: Serialize>(
    out: &mut dyn Write,
    columns: &[&str],
    rows: impl IntoIterator<Item = R>,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    writer.write_record(columns).map_err(io_error)?;
    for row in rows {
        writer.serialize(row).map_err(io_error)?;
    }
    writer.flush()
}

/// Writes rows that hold objects and lists: an object's keys become columns `outer.inner`, a list stays JSON.
///
/// All rows must have the same keys.
///
/// # Errors
/// If `out` cannot be written, or a row cannot be serialized.
pub fn write_nested<R: Serialize>(out: &mut dyn Write, rows: impl IntoIterator<Item = R>) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for (number, row) in rows.into_iter().enumerate() {
        let mut cells = Vec::new();
        flatten("", &serde_json::to_value(row)?, &mut cells);
        if number == 0 {
            writer
                .write_record(cells.iter().map(|(key, _)| escape::cell(key).into_owned()))
                .map_err(io_error)?;
        }
        writer
            .write_record(cells.iter().map(|(_, value)| escape::cell(value).into_owned()))
            .map_err(io_error)?;
    }
    writer.flush()
}

fn flatten(key: &str, value: &Value, cells: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                flatten(&key, value, cells);
            }
        }
        Value::Null => cells.push((key.to_owned(), String::new())),
        Value::String(text) => cells.push((key.to_owned(), text.clone())),
        other => cells.push((key.to_owned(), other.to_string())),
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nested_rows_become_columns() {
        let row = serde_json::json!({ "a": 1, "b": { "c": "=x", "d": null }, "e": [1, 2] });
        let mut out = Vec::new();
        write_nested(&mut out, [row]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,b.c,b.d,e\n1,'=x,,\"[1,2]\"\n");
    }
}
