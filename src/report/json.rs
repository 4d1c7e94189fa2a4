//! JSON: one document for each invocation of a command.
//!
//! `{"schema_version": 1, "command": ..., "dump": {...}, "rows": [...], ...}`, described in `docs/json-schema.md`. A
//! key has the same meaning everywhere. Object IDs are hex strings, sizes are integers in bytes.

use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use super::escape;

/// Version of the JSON schema.
pub const SCHEMA_VERSION: u32 = 1;

/// JSON document of a command.
#[derive(Serialize)]
struct Document<'a, R, E> {
    schema_version: u32,
    command: &'a str,
    dump: &'a DumpHeader<'a>,
    rows: R,
    #[serde(flatten)]
    more: E,
}

/// Facts about the dump that every document contains.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DumpHeader<'a> {
    /// Path as given by the user.
    pub path: Cow<'a, str>,
    /// Length of the file in bytes, if known.
    pub file_bytes: Option<u64>,
    /// Name and version of the dump's format, if read.
    pub format: Option<&'a str>,
    /// Size of an identifier in bytes, if read.
    pub id_bytes: Option<u8>,
    /// Creation time in RFC 3339, if the dump contains it.
    pub created: Option<Cow<'a, str>>,
    /// Number of the heap dump that was read, from 1; 0 if the file contains no heap dump.
    pub heap_dump: Option<u32>,
    /// `true` if part of the dump is missing or unreadable; `None` if the dump was not read.
    pub is_damaged: Option<bool>,
    /// Shallow size of unreachable objects in bytes, if the command reads the graph.
    pub unreachable_bytes: Option<u64>,
}

/// Writes a document; `more` contains the keys next to `rows`.
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
    // The serializer writes only a few bytes at a time.
    let mut out = BufWriter::with_capacity(BUFFER, out);
    document.serialize(&mut Serializer::with_formatter(&mut out, Pretty::default()))?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Serializes a document that combines documents of several commands, escaped like every other document.
///
/// # Errors
/// If it cannot be serialized.
pub fn document(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Pretty::default()))?;
    out.push(b'\n');
    Ok(out)
}

/// Document without its rows, for rows written by several threads: the text before and after the rows.
#[derive(Debug)]
pub(super) struct DocumentFrame {
    document: Vec<u8>,
    rows_at: usize,
}

impl DocumentFrame {
    /// Creates the frame of the document that [`write()`] would write.
    ///
    /// # Errors
    /// If it cannot be serialized.
    pub(super) fn new<E: Serialize>(command: &str, dump: &DumpHeader<'_>, more: E) -> io::Result<Self> {
        let mut document = Vec::new();
        write(&mut document, command, dump, [(); 0], more)?;
        // A line break outside of strings (in a string it would be escaped), at the smallest indentation.
        let rows_at =
            memchr::memmem::find(&document, NO_ROWS).map_or(document.len(), |at| at + NO_ROWS.len());
        Ok(Self { document, rows_at })
    }

    /// Returns the text before the first row.
    pub(super) fn head(&self) -> &[u8] {
        self.document.get(..self.rows_at - 1).unwrap_or_default()
    }

    /// Returns the text after the last of `rows` rows.
    pub(super) fn tail(&self, rows: u64) -> impl Iterator<Item = &[u8]> {
        let end_of_line = if rows > 0 { LINE.get(1..2 + ROWS_DEPTH - 1) } else { None };
        [end_of_line, self.document.get(self.rows_at - 1..)].into_iter().flatten()
    }
}

/// Appends a row, preceded by a comma unless it is the first row.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn push_row(out: &mut Vec<u8>, row: &impl Serialize) -> io::Result<()> {
    let mut formatter = Pretty { depth: ROWS_DEPTH, ..Pretty::default() };
    let is_first = out.last() == Some(&b'[');
    formatter.begin_array_value(out, is_first)?;
    Ok(row.serialize(&mut Serializer::with_formatter(out, formatter))?)
}

/// Appends a text as a JSON string.
///
/// # Errors
/// If it cannot be serialized.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    Ok(text.serialize(&mut Serializer::with_formatter(out, Pretty::default()))?)
}

/// Size of the serializer's buffer in bytes.
const BUFFER: usize = 1 << 13;
/// An empty list of rows, as it is written in a document.
const NO_ROWS: &[u8] = b"\n \"rows\": []";
/// Nesting depth of rows in a document.
const ROWS_DEPTH: usize = 2;
/// A comma, a line break, and indentation.
const LINE: &[u8] = b",\n                                ";

/// Formatter that writes each value on a line of its own, indented by one space per level. It also escapes some characters that
/// JSON allows in strings: bidirectional marks, DEL and C1 controls. A parser reads the same text.
///
/// The output is otherwise equal to that of [`serde_json::ser::PrettyFormatter`], but each line break is written together with
/// its indentation.
#[derive(Debug, Default)]
struct Pretty {
    depth: usize,
    /// `true` if the current list or record already has a value.
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

    /// Starts a line. With `from` 0, the previous value is ended by the comma in [`LINE`].
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
        // Nearly all texts are plain. Examining all bytes without branches takes a few vector instructions.
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
        assert_eq!((&value["total"], &value["schema_version"]), (&1.into(), &1.into()));
    }
}
