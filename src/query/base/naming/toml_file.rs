//! Values of rules files: TOML without unknown keys, and errors with line and column.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::naming::suggestions;

/// Maximum size of a file in bytes.
const MAX_BYTES: usize = 1 << 20;

/// A value, and where it is in the file.
pub type TomlValue<'i> = Spanned<DeValue<'i>>;

/// An error at a byte of a file.
pub struct Wrong {
    /// Offset in the file, in bytes.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl Wrong {
    /// Creates the error at an offset.
    pub fn new(at: usize, what: impl Into<String>) -> Self {
        Self { at, what: what.into() }
    }
}

/// Returns the line and the column (in characters) of a byte, both from 1.
pub fn position(text: &str, at: usize) -> (u64, u64) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u64 + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() as u64 + 1)
}

/// Parses a file of limited size.
pub fn parse(text: &str) -> Result<Spanned<DeTable<'_>>, Wrong> {
    if text.len() > MAX_BYTES {
        return Err(Wrong::new(0, "the file is larger than 1 MiB"));
    }
    DeTable::parse(text).map_err(|error| {
        let said: String = error.message().replace('\n', ", ").chars().take(300).collect();
        Wrong::new(error.span().map_or(0, |span| span.start), format!("this is not TOML: {said}"))
    })
}

/// Checks that a table has known keys only.
///
/// # Errors
/// The first key that is not known.
pub fn keys(table: &DeTable<'_>, known: &[&str], place: &str) -> Result<(), Wrong> {
    let unknown = table.iter().find(|(key, _)| !known.contains(&&**key.get_ref()));
    let Some((key, _)) = unknown else { return Ok(()) };
    let name: &str = key.get_ref();
    let all = format!("the keys of {place} are");
    let hint = suggestions::did_you_mean_one_of(name, known, known.len(), &all);
    let name: String = name.chars().take(60).collect();
    Err(Wrong::new(key.span().start, format!("unknown key `{}`; {hint}", name.escape_debug())))
}

/// Returns the text that a value is.
///
/// # Errors
/// If it is none.
pub fn text_of<'v>(value: &'v TomlValue<'_>, key: &str) -> Result<&'v str, Wrong> {
    let found = value.get_ref().type_str();
    let what =
        || Wrong::new(value.span().start, format!("`{key}` is of type {found}; expected a text in quotes"));
    value.get_ref().as_str().ok_or_else(what)
}

/// Returns a text and its range in the file.
pub fn string<'v>(table: &'v DeTable<'_>, key: &str) -> Result<Option<(&'v str, Range<usize>)>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(None) };
    Ok(Some((text_of(value, key)?, value.span())))
}

/// Returns the texts under a key, one or a list of them, each with its range in the file.
///
/// # Errors
/// If one is no text.
pub fn strings<'v>(table: &'v DeTable<'_>, key: &str) -> Result<Vec<(&'v str, Range<usize>)>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let what = || Wrong::new(value.span().start, format!("`{key}` is a list of texts"));
    let array = value.get_ref().as_array().ok_or_else(what)?;
    array.iter().map(|value| Ok((text_of(value, key)?, value.span()))).collect()
}

/// Returns a number that is not negative.
pub fn number(table: &DeTable<'_>, key: &str) -> Result<Option<f64>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let written = match value.get_ref() {
        DeValue::Integer(number) => Some(number.as_str()),
        DeValue::Float(number) => Some(number.as_str()),
        _ => None,
    };
    let number = written.and_then(|text| text.parse::<f64>().ok()).filter(|number| *number >= 0.0);
    let what = || Wrong::new(value.span().start, format!("`{key}` is a number, 0 or greater"));
    number.map(Some).ok_or_else(what)
}

/// Returns the boolean under a key; `false` without it.
///
/// # Errors
/// If it is none.
pub fn boolean(table: &DeTable<'_>, key: &str) -> Result<bool, Wrong> {
    let Some(value) = table.get(key) else { return Ok(false) };
    let what = || Wrong::new(value.span().start, format!("`{key}` is true or false"));
    value.get_ref().as_bool().ok_or_else(what)
}

/// Returns the tables of a list under a key, each with its offset in the file.
///
/// # Errors
/// If it is no list of tables.
pub fn tables<'v>(table: &'v DeTable<'v>, key: &str) -> Result<Vec<(&'v DeTable<'v>, usize)>, Wrong> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let what = |at| Wrong::new(at, format!("`{key}` is a list of tables, each after [[...{key}]]"));
    let array = value.get_ref().as_array().ok_or_else(|| what(value.span().start))?;
    let tables = array.iter().map(|value| {
        let at = value.span().start;
        value.get_ref().as_table().map(|table| (table, at)).ok_or_else(|| what(at))
    });
    tables.collect()
}
