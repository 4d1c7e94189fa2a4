//! JSON: one document a command.
//!
//! `{"schema_version": 2, "command": ..., "dump": {...}, "rows": [...], ...}`, described in `docs/json-schema.md`. A key
//! means the same everywhere (`docs/names.md`). Object ids are hex strings, sizes are integers in bytes.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::escape;

/// The version of the schema.
pub const SCHEMA_VERSION: u32 = 2;

/// The document.
#[derive(Serialize)]
struct Document<'a, R, E> {
    schema_version: u32,
    command: &'a str,
    dump: &'a DumpHeader<'a>,
    rows: R,
    #[serde(flatten)]
    more: E,
}

/// What every document says of the dump.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DumpHeader<'a> {
    /// The path as it was given.
    pub path: Cow<'a, str>,
    /// Length of the file, if it was looked at.
    pub file_bytes: Option<u64>,
    /// The format's name and version, if it was read.
    pub format: Option<&'a str>,
    /// Bytes of an identifier, if it was read.
    pub id_bytes: Option<u8>,
    /// When it was made, RFC 3339, if it says.
    pub created: Option<Cow<'a, str>>,
    /// The heap dump that was read, from 1; 0 if the file holds none.
    pub heap_dump: Option<u32>,
    /// Whether part of the dump is missing or unreadable, if it was read.
    pub is_damaged: Option<bool>,
    /// Shallow bytes of unreachable objects, if the command reads the graph.
    pub unreachable_bytes: Option<u64>,
}

/// Writes a document; `more` are keys beside `rows`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write<R: Serialize, E: Serialize>(
    out: &mut dyn Write,
    command: &str,
    dump: &DumpHeader<'_>,
    rows: R,
    more: E,
) -> io::Result<()> {
    let document = Document { schema_version: SCHEMA_VERSION, command, dump, rows, more };
    // The serializer writes a few bytes at a time.
    let mut out = BufWriter::with_capacity(BUFFER, out);
    document.serialize(&mut Serializer::with_formatter(&mut out, Pretty::default()))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// A document that is put together from those of several commands, as text: escaped as every other.
///
/// # Errors
/// If it cannot be serialized.
pub fn document(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Pretty::default()))?;
    out.push(b'\n');
    Ok(out)
}

/// A document without its rows, for rows that several threads write: what comes before and after them.
#[derive(Debug)]
pub(super) struct DocumentFrame {
    document: Vec<u8>,
    rows_at: usize,
}

impl DocumentFrame {
    /// The document that [`write()`] writes.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub(super) fn new<E: Serialize>(command: &str, dump: &DumpHeader<'_>, more: E) -> io::Result<Self> {
        let mut document = Vec::new();
        write(&mut document, command, dump, [(); 0], more)?;
        // A line break of the document itself: in a string it is escaped. What is nested has more spaces.
        let rows_at =
            memchr::memmem::find(&document, NO_ROWS).map_or(document.len(), |at| at + NO_ROWS.len());
        Ok(Self { document, rows_at })
    }

    /// What comes before the first row.
    pub(super) fn head(&self) -> &[u8] {
        self.document.get(..self.rows_at - 1).unwrap_or_default()
    }

    /// What comes after the last of `rows` rows.
    pub(super) fn tail(&self, rows: u64) -> impl Iterator<Item = &[u8]> {
        let end_of_line = if rows > 0 { LINE.get(1..2 + ROWS_DEPTH - 1) } else { None };
        [end_of_line, self.document.get(self.rows_at - 1..)].into_iter().flatten()
    }
}

/// Appends a row, behind a comma unless the list begins right before it.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn push_row(out: &mut Vec<u8>, row: &impl Serialize) -> io::Result<()> {
    let mut formatter = Pretty { depth: ROWS_DEPTH, ..Pretty::default() };
    let is_first = out.last() == Some(&b'[');
    formatter.begin_array_value(out, is_first)?;
    Ok(row.serialize(&mut Serializer::with_formatter(out, formatter))?)
}

/// Appends a text in quotes.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    Ok(text.serialize(&mut Serializer::with_formatter(out, Pretty::default()))?)
}

/// Bytes that the serializer fills before they are passed on. What is held back of a wrong answer is more than that.
const BUFFER: usize = 1 << 13;
/// Rows that are not there, in a document.
const NO_ROWS: &[u8] = b"\n \"rows\": []";
/// The depth of rows.
const ROWS_DEPTH: usize = 2;
/// A comma, a line break, and indentation.
const LINE: &[u8] = b",\n                                ";

/// Each value on a line of its own, indented by one space a level. Escapes also what JSON itself would let pass:
/// bidirectional marks, DEL, C1 controls. A parser gets the same text.
///
/// It writes what [`serde_json::ser::PrettyFormatter`] writes, but each line break with its indentation at once.
#[derive(Debug, Default)]
struct Pretty {
    depth: usize,
    /// Whether the list or record has a value.
    has_value: bool,
}

impl Pretty {
    #[inline]
    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        writer.write_all(&[bracket])
    }

    #[inline]
    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: u8) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.has_value {
            self.line(writer, 1)?;
        }
        writer.write_all(&[bracket])
    }

    /// Starts a line; from 0 in [`LINE`] ends the value before it.
    #[inline]
    fn line<W: ?Sized + Write>(&self, writer: &mut W, from: usize) -> io::Result<()> {
        match LINE.get(from..2 + self.depth) {
            Some(line) => writer.write_all(line),
            None => {
                writer.write_all(LINE.get(from..).unwrap_or_default())?;
                (LINE.len()..2 + self.depth).try_for_each(|_| writer.write_all(b" "))
            }
        }
    }
}

impl Formatter for Pretty {
    #[inline]
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // Nearly all texts. To look at all bytes without a branch for each takes a few vector instructions.
        let is_plain = fragment.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
        if is_plain || !fragment.contains(escape::is_harmful) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut out = String::new();
        for c in fragment.chars() {
            if escape::is_harmful(c) { escape::push_escaped(&mut out, c) } else { out.push(c) }
        }
        writer.write_all(out.as_bytes())
    }

    #[inline]
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b'[')
    }

    #[inline]
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b']')
    }

    #[inline]
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.line(writer, first.into())
    }

    #[inline]
    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    #[inline]
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b'{')
    }

    #[inline]
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b'}')
    }

    #[inline]
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.line(writer, first.into())
    }

    #[inline]
    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    #[inline]
    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_comes_back_from_a_parser_and_is_harmless_in_the_file() {
        let name = "a\u{1b}[2J\u{202e}\u{7f}\u{85}\"\\";
        let dump = DumpHeader { path: "x".into(), ..DumpHeader::default() };
        let mut out = Vec::new();
        write(
            &mut out,
            "histo",
            &dump,
            vec![serde_json::json!({ "class": name })],
            serde_json::json!({ "total": 1 }),
        )
        .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.chars().any(|c| c != '\n' && escape::is_harmful(c)));
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["rows"][0]["class"], name);
        assert_eq!((&value["total"], &value["schema_version"]), (&1.into(), &2.into()));
    }
}
