//! JSON: one document a command.
//!
//! `{"schema_version": 1, "command": ..., "dump": {...}, "rows": [...], ...}`, described in `docs/json-schema.md`. Keys
//! are only ever added. Object ids are hex strings, sizes are integers in bytes.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::escape;

/// The version of the schema.
pub const SCHEMA_VERSION: u32 = 1;

/// The document.
#[derive(Serialize)]
struct Document<'a, R, E> {
    schema_version: u32,
    command: &'a str,
    dump: &'a Dump<'a>,
    rows: R,
    #[serde(flatten)]
    more: E,
}

/// What every document says of the dump.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Dump<'a> {
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
    pub damaged: Option<bool>,
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
    dump: &Dump<'_>,
    rows: R,
    more: E,
) -> io::Result<()> {
    let document = Document { schema_version: SCHEMA_VERSION, command, dump, rows, more };
    let formatter = Harmless(PrettyFormatter::with_indent(b" "));
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, formatter);
    document.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// Escapes also what JSON itself would let pass: bidirectional marks, DEL, C1 controls. A parser gets the same text.
struct Harmless<F>(F);

macro_rules! forward {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Harmless<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if !fragment.contains(escape::is_harmful) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut out = String::new();
        for c in fragment.chars() {
            if escape::is_harmful(c) { escape::push_escaped(&mut out, c) } else { out.push(c) }
        }
        writer.write_all(out.as_bytes())
    }

    forward! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_comes_back_from_a_parser_and_is_harmless_in_the_file() {
        let name = "a\u{1b}[2J\u{202e}\u{7f}\u{85}\"\\";
        let dump = Dump { path: "x".into(), ..Dump::default() };
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
