//! Tables of a dump as CSV (RFC 4180) for other engines. Texts are as in the dump, not escaped for people as in [`crate::csv`].
//!
//! Null is an empty cell, an empty text is `""`. Object IDs are signed 64-bit numbers, as in all formats of tables.

use std::io;
use std::ops::Range;

use super::{WrittenColumn, WrittenColumns, column};
use crate::digits;
use hprof_query::tables::{Batch, Cell, ColumnType};

/// Appends the header line.
pub(super) fn push_header(out: &mut Vec<u8>, shape: &WrittenColumns) {
    for (at, field) in shape.fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_text(out, &field.name);
    }
    out.push(b'\n');
}

/// Appends the given range of rows as lines.
pub(super) fn push_rows(
    out: &mut Vec<u8>,
    shape: &WrittenColumns,
    batch: &Batch,
    rows: Range<usize>,
) -> io::Result<()> {
    let columns: Vec<_> =
        shape.fields.iter().enumerate().map(|(at, field)| (field, column(batch, at, field))).collect();
    for row in rows {
        let start = out.len();
        for (at, (field, values)) in columns.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            push_cell(out, field, values.cell(row))?;
        }
        // A row of one empty cell would be an empty line, which readers skip.
        if out.len() == start {
            out.extend_from_slice(b"\"\"");
        }
        out.push(b'\n');
    }
    Ok(())
}

fn push_cell(out: &mut Vec<u8>, field: &WrittenColumn, cell: Cell<'_>) -> io::Result<()> {
    match cell {
        Cell::Null => {}
        Cell::Integer(value) if field.kind == ColumnType::Boolean => {
            out.extend_from_slice(if value != 0 { b"true" } else { b"false" });
        }
        Cell::Integer(value) => digits::push_decimal(out, value),
        Cell::Real(value) if value.is_finite() => serde_json::to_writer(&mut *out, &value)?,
        // Spark and DuckDB read NaN and infinities in this form.
        Cell::Real(value) if value.is_nan() => out.extend_from_slice(b"NaN"),
        Cell::Real(value) => out.extend_from_slice(if value > 0.0 { b"Inf" } else { b"-Inf" }),
        Cell::Text(text) => push_text(out, text),
    }
    Ok(())
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    // Nearly all texts are plain. Examining all bytes without branches takes a few vector instructions. Texts with
    // other bytes are quoted: readers disagree about spaces at the ends, signs and line breaks.
    let is_plain = |plain: bool, byte: u8| {
        plain
            & ((byte > b' ') & (byte != b'"') & (byte != b'\'') & (byte != b',') & (byte != 0x7f)
                | (byte == b' '))
    };
    let is_bare = text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.as_bytes().last() != Some(&b' ')
        && text.bytes().fold(true, is_plain);
    if is_bare {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('"') {
        out.extend_from_slice(before.as_bytes());
        out.extend_from_slice(b"\"\"");
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
    out.push(b'"');
}
