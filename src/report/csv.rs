//! CSV (RFC 4180): a header line, then one line a row, with the JSON's keys as columns.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use super::column::Columns;
use super::value::Value as CellValue;
use super::{digits, escape};

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

/// Writes rows one by one: several can write chunks of one answer side by side.
///
/// It writes by itself what the csv crate would write: `dominators --all` has a row for each of 10^8 objects, and most of
/// their cells are numbers, which need no quotes.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// The row so far; a comma follows each cell.
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// Writes the line of titles. A record becomes a column for each of its values, which the first row tells.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn header<R>(&mut self, columns: &Columns<'_, R>, first: Option<&R>) -> io::Result<()> {
        for column in columns.programs() {
            let key = column.key().unwrap_or_default();
            let value = first.map_or(CellValue::Null, |row| column.csv_value(row));
            self.titles(key, &value);
        }
        self.end_of_row()
    }

    fn titles(&mut self, key: &str, value: &CellValue<'_>) {
        match value {
            CellValue::Record(values) => {
                values.iter().for_each(|(inner, value)| self.titles(&format!("{key}.{inner}"), value));
            }
            _ => self.text(key),
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
        match value {
            CellValue::Null => self.plain(b""),
            CellValue::Boolean(value) => self.plain(if *value { b"true" } else { b"false" }),
            CellValue::Integer(number) => self.number(*number),
            CellValue::Signed(number) => self.number(*number),
            CellValue::Float(_) => self.plain(&serde_json::to_vec(value)?),
            CellValue::Id(id) => self.id(*id),
            CellValue::Text(text) => self.text(text),
            CellValue::Verbatim(text) => self.escaped(text),
            CellValue::List(_) | CellValue::Each(_) => self.text(&serde_json::to_string(value)?),
            CellValue::Record(values) => values.iter().try_for_each(|(_, value)| self.cell(value))?,
        }
        Ok(())
    }

    /// A cell that needs neither escapes nor quotes.
    fn plain(&mut self, cell: &[u8]) {
        self.line.extend_from_slice(cell);
        self.line.push(b',');
    }

    fn number(&mut self, number: impl itoa::Integer) {
        digits::push_decimal(&mut self.line, number);
        self.line.push(b',');
    }

    /// `0x7c00012a8`
    fn id(&mut self, id: u64) {
        self.line.extend_from_slice(b"0x");
        digits::push_hex(&mut self.line, id);
        self.line.push(b',');
    }

    /// A text of a dump.
    fn text(&mut self, text: &str) {
        // Nearly all texts. To look at all bytes without a branch for each takes a few vector instructions.
        let is_plain =
            |plain: bool, byte: u8| plain & matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b',');
        if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().fold(true, is_plain)
        {
            return self.plain(text.as_bytes());
        }
        self.escaped(&escape::cell(text));
    }

    /// A text that was escaped, so that it has no line breaks.
    fn escaped(&mut self, text: &str) {
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

    /// Writes out what is left, and gives back what was written to.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::report::column::{Column, Kind};
    use crate::report::value::list;

    #[test]
    fn cells_are_as_the_csv_crate_writes_them() {
        let columns = Columns::new([
            Column::new("a,b", Kind::Any, "", |row: &[CellValue<'static>; 2]| row[0].clone()),
            Column::new("c", Kind::Any, "", |row: &[CellValue<'static>; 2]| row[1].clone()),
        ]);
        let ids = [0, 1, 0xf, 0x10, 0x7_c000_12a8, u64::MAX].map(|id| [CellValue::Id(id), id.into()]);
        let texts =
            ["", "=x", "a,b", "say \"a\"", "\n", "\u{202e}é"].map(|text| [text.into(), (-1i32).into()]);
        let others = [[list(["a", "b"]), CellValue::Float(0.5)], [CellValue::Null, true.into()]];
        let rows = ids.into_iter().chain(texts).chain(others);
        let text = |value: &CellValue<'_>| match value {
            CellValue::Null => String::new(),
            CellValue::Text(text) => escape::cell(text).into_owned(),
            CellValue::Id(id) => format!("{id:#x}"),
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
        let one = Columns::new([Column::text("a", "", |row: &&'static str| (*row).into())]);
        let mut out = Vec::new();
        write(&mut out, &one, ["", "b"]).unwrap();
        assert_eq!(out, b"a\n\"\"\nb\n");
    }

    #[test]
    fn nested_rows_become_columns() {
        let row = serde_json::json!({ "a": 1, "b": { "c": "=x", "d": null }, "e": [1, 2] });
        let mut out = Vec::new();
        write_nested(&mut out, [row]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a,b.c,b.d,e\n1,'=x,,\"[1,2]\"\n");
    }

    #[test]
    fn cells_are_quoted_if_they_must() {
        let cells = ["", "a.B", "a,b", "a\"b", "=a\nb"].map(cell);
        assert_eq!(cells, [&b""[..], b"a.B", b"\"a,b\"", b"\"a\"\"b\"", b"'=a\\nb"]);
    }
}
