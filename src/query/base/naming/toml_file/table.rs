//! Tables and texts of a rules file: access to values, with errors about those of the wrong type.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::source::{TomlSource, position, quoted};
use crate::naming::suggestions;

/// A table of a file. Values of a wrong type are reported and then read as if their key were missing.
#[derive(Debug)]
pub struct TomlTable<'r> {
    pub(super) source: &'r TomlSource<'r>,
    pub(super) table: &'r DeTable<'r>,
    pub(super) at: usize,
    /// Keys that lead to the table: `class.says`.
    pub(super) path: String,
    /// Name in messages: `[[class.says]]`.
    pub(super) place: String,
}

impl<'r> TomlTable<'r> {
    /// Reports an error at the start of the table.
    pub fn report(&self, message: impl Into<String>) {
        self.source.report(self.at, message);
    }

    /// Reports an error at the value of a key, or of the table if it does not have the key.
    pub fn report_at(&self, key: &str, message: impl Into<String>) {
        self.source.report(self.get(key).map_or(self.at, |value| value.span().start), message);
    }

    /// Returns `true` if an error of the file was reported.
    pub fn has_errors(&self) -> bool {
        !self.source.errors.borrow().is_empty()
    }

    /// Returns the line of the table, from 1.
    pub fn line(&self) -> u64 {
        position(self.source.text, self.at).0
    }

    /// Reports keys that are not known.
    pub fn check_keys(&self, known: &[&str]) {
        let all = format!("the valid keys of {} are", self.place);
        for (key, _) in self.table.iter().filter(|(key, _)| !known.contains(&&**key.get_ref())) {
            let hint = suggestions::did_you_mean_one_of(key.get_ref(), known, known.len(), &all);
            self.source.report(key.span().start, format!("unknown key `{}`; {hint}", quoted(key.get_ref())));
        }
    }

    /// Returns `true` if the table has a key; otherwise reports it with a hint that says what to write.
    pub fn require(&self, key: &str, hint: &str) -> bool {
        let has_key = self.table.contains_key(key);
        if !has_key {
            self.report(format!("{} has no `{key}`; {hint}", self.place));
        }
        has_key
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&'r Spanned<DeValue<'r>>> {
        self.table.get(key)
    }

    /// Returns `true` if the value of a key is an array without elements.
    pub fn has_empty_array(&self, key: &str) -> bool {
        self.get(key).and_then(|value| value.get_ref().as_array()).is_some_and(|array| array.is_empty())
    }

    /// Returns the text of a key.
    pub fn text(&self, key: &str) -> Option<TomlText<'r>> {
        self.text_like(key, "a string in quotes")
    }

    /// Returns a text; `expected` describes it in the message about another type.
    pub fn text_like(&self, key: &str, expected: &str) -> Option<TomlText<'r>> {
        self.to_text(key, self.get(key)?, expected)
    }

    /// Returns a text that is required; `hint` says what to write.
    pub fn required_text(&self, key: &str, hint: &str) -> Option<TomlText<'r>> {
        self.require(key, hint);
        self.text(key)
    }

    /// Returns the texts in the array of a key.
    pub fn texts(&self, key: &str) -> Vec<TomlText<'r>> {
        let elements = self.elements(key, "an array of strings").into_iter();
        elements.filter_map(|value| self.to_text(key, value, "strings in quotes")).collect()
    }

    /// Returns the texts in the array of a key, or its single text.
    pub fn text_or_texts(&self, key: &str) -> Vec<TomlText<'r>> {
        match self.get(key) {
            Some(value) if !value.get_ref().is_array() => self.text(key).into_iter().collect(),
            _ => self.texts(key),
        }
    }

    /// Returns the value that the keyword of a key stands for.
    pub fn keyword<T: Copy>(&self, key: &str, keywords: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = keywords.iter().map(|(name, _)| *name).collect();
        let text = self.text_like(key, &format!("one of {}, in quotes", names.join(", ")))?;
        let found = keywords.iter().find(|(name, _)| *name == text.text);
        if found.is_none() {
            let hint = suggestions::did_you_mean_one_of(text.text, &names, names.len(), "expected one of");
            text.report(format!("unknown {key} `{}`; {hint}", quoted(text.text)));
        }
        found.map(|(_, value)| *value)
    }

    /// Returns the number of a key, which must not be negative.
    pub fn number(&self, key: &str) -> Option<f64> {
        let value = self.get(key)?;
        let written = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return self.report_type(key, value, "a number"),
        };
        let number = written.parse().ok().filter(|number| *number >= 0.0);
        if number.is_none() {
            self.report_at(key, format!("`{key}` is {}; expected a number of 0 or more", quoted(written)));
        }
        number
    }

    /// Returns the boolean of a key.
    pub fn boolean(&self, key: &str) -> Option<bool> {
        let value = self.get(key)?;
        value.get_ref().as_bool().or_else(|| self.report_type(key, value, "true or false"))
    }

    /// Returns the table of a key.
    pub fn table(&self, key: &str) -> Option<TomlTable<'r>> {
        let (path, value) = (self.path_to(key), self.get(key)?);
        match value.get_ref().as_table() {
            Some(table) => Some(self.child(table, value, format!("[{path}]"), path)),
            None => self.report_type(key, value, &format!("a table: [{path}]")),
        }
    }

    /// Returns the tables in the array of a key.
    pub fn tables(&self, key: &str) -> Vec<TomlTable<'r>> {
        let path = self.path_to(key);
        let expected = format!("tables, each after [[{path}]]");
        let table = |value: &'r Spanned<DeValue<'r>>| match value.get_ref().as_table() {
            Some(table) => Some(self.child(table, value, format!("[[{path}]]"), path.clone())),
            None => self.report_type(key, value, &expected),
        };
        self.elements(key, &expected).into_iter().filter_map(table).collect()
    }

    /// Returns the keys of the table with their texts, in the order of the file.
    pub fn entries(&self) -> Vec<(TomlText<'r>, Option<TomlText<'r>>)> {
        let entry = |(key, value): (&'r Spanned<DeString<'r>>, &'r Spanned<DeValue<'r>>)| {
            let name = TomlText { source: self.source, text: key.get_ref(), span: key.span() };
            (name, self.to_text(key.get_ref(), value, "a string in quotes"))
        };
        let mut entries: Vec<_> = self.table.iter().map(entry).collect();
        entries.sort_by_key(|(name, _)| name.span.start);
        entries
    }

    fn path_to(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn child(
        &self,
        table: &'r DeTable<'r>,
        value: &Spanned<DeValue<'_>>,
        place: String,
        path: String,
    ) -> TomlTable<'r> {
        TomlTable { source: self.source, table, at: value.span().start, path, place }
    }

    fn elements(&self, key: &str, expected: &str) -> Vec<&'r Spanned<DeValue<'r>>> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let array = value.get_ref().as_array().or_else(|| self.report_type(key, value, expected));
        array.into_iter().flat_map(|array| array.iter()).collect()
    }

    fn to_text(&self, key: &str, value: &'r Spanned<DeValue<'r>>, expected: &str) -> Option<TomlText<'r>> {
        match value.get_ref().as_str() {
            Some(text) => Some(TomlText { source: self.source, text, span: value.span() }),
            None => self.report_type(key, value, expected),
        }
    }

    /// Reports a value of the wrong type; returns `None`.
    fn report_type<T>(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        let (key, found) = (quoted(key), value.get_ref().type_str());
        self.source.report(value.span().start, format!("`{key}` is of type {found}; expected {expected}"));
        None
    }
}

/// A text of a file.
#[derive(Debug)]
pub struct TomlText<'r> {
    source: &'r TomlSource<'r>,
    /// The text, without quotes and escapes.
    pub text: &'r str,
    /// Range in the file, with quotes.
    span: Range<usize>,
}

impl TomlText<'_> {
    /// Reports an error at the start of the text.
    pub fn report(&self, message: impl Into<String>) {
        self.source.report(self.span.start, message);
    }

    /// Reports an error at a byte of the text; at its start if it is written with escapes.
    pub fn report_within(&self, at: usize, message: impl Into<String>) {
        let written = self.source.text.get(self.span.clone()).unwrap_or_default();
        let start = written.find(self.text).map_or(0, |start| start + at);
        self.source.report(self.span.start + start, message);
    }

    /// Returns `true` if the text is not too long; otherwise reports it.
    pub fn check_length(&self, key: &str, max_bytes: usize) -> bool {
        let length = self.text.len();
        if length > max_bytes {
            self.report(format!("`{key}` is {length} bytes long; expected at most {max_bytes}"));
        }
        length <= max_bytes
    }
}
