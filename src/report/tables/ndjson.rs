//! Tables of a dump as NDJSON: one JSON object per line, with all columns of the table as keys.
//!
//! Object IDs are signed 64-bit numbers, as in all formats of tables. Numbers that JSON cannot express are texts: `"NaN"`,
//! `"Infinity"`, `"-Infinity"`.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::{WrittenColumns, column};
use crate::{digits, json};
use hprof_query::tables::{Batch, Cell, ColumnType};

/// Keys of a table, formatted as in each line.
pub(super) struct JsonKeys {
    shape: Arc<WrittenColumns>,
    /// Text before the value of each column, such as `{"id":` or `,"name":`.
    before: Vec<Vec<u8>>,
}

impl JsonKeys {
    /// Formats the keys of a table.
    pub(super) fn new(shape: &Arc<WrittenColumns>) -> io::Result<Self> {
        let before = shape.fields.iter().enumerate().map(|(at, field)| {
            let mut before = vec![if at == 0 { b'{' } else { b',' }];
            json::push_text(&mut before, &field.name)?;
            before.push(b':');
            Ok(before)
        });
        Ok(Self { before: before.collect::<io::Result<_>>()?, shape: shape.clone() })
    }

    /// Appends the given range of rows as lines.
    pub(super) fn push_rows(&self, out: &mut Vec<u8>, batch: &Batch, rows: Range<usize>) -> io::Result<()> {
        let fields = self.shape.fields.iter().enumerate().zip(&self.before);
        let columns: Vec<_> =
            fields.map(|((at, field), before)| (before, field.kind, column(batch, at, field))).collect();
        for row in rows {
            for (before, kind, values) in &columns {
                out.extend_from_slice(before);
                match values.cell(row) {
                    Cell::Null => out.extend_from_slice(b"null"),
                    Cell::Integer(value) if *kind == ColumnType::Boolean => {
                        out.extend_from_slice(if value != 0 { b"true" } else { b"false" });
                    }
                    Cell::Integer(value) => digits::push_decimal(out, value),
                    Cell::Real(value) if value.is_finite() => serde_json::to_writer(&mut *out, &value)?,
                    Cell::Real(value) if value.is_nan() => out.extend_from_slice(b"\"NaN\""),
                    Cell::Real(value) => {
                        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
                    }
                    Cell::Text(text) => json::push_text(out, text)?,
                }
            }
            out.extend_from_slice(b"}\n");
        }
        Ok(())
    }
}
