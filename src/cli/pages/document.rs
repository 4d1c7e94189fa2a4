//! Access to the JSON documents that pages are built from, by the names in the dictionary of keys.

use hprof_query::dictionary::Name;
use serde_json::Value as Json;

/// Lookup in JSON documents of commands. Reading a name that the document lacks is a bug in the page, and fails in tests.
pub(crate) trait JsonLookup {
    /// Returns the value of a key; `None` if it is `null`.
    fn value(&self, name: Name) -> Option<&Json>;
    /// Returns the value of a key that only some kinds of rows have.
    fn maybe(&self, name: Name) -> Option<&Json>;
    /// Returns the rows of a document.
    fn rows(&self) -> &[Json];
    /// Returns the description of the dump in a document; `null` if there is none.
    fn dump(&self) -> &Json;

    /// Returns the text of a key; empty if it is `null`.
    fn text(&self, name: Name) -> &str {
        self.value(name).and_then(Json::as_str).unwrap_or_default()
    }

    /// Returns the number of a key; `None` if it is `null`.
    fn number(&self, name: Name) -> Option<u64> {
        self.value(name).and_then(Json::as_u64)
    }

    /// Returns the elements of a key that contains a list.
    fn list(&self, name: Name) -> &[Json] {
        self.value(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether the value of a key is `true`.
    fn is(&self, name: Name) -> bool {
        self.value(name).and_then(Json::as_bool) == Some(true)
    }

    /// Returns the first row of a document.
    fn row(&self) -> Option<&Json> {
        self.rows().first()
    }
}

impl JsonLookup for Json {
    fn value(&self, name: Name) -> Option<&Json> {
        debug_assert!(
            self.get(name.key).is_some() || !self.is_object(),
            "a page asks for `{}`, which the answer lacks",
            name.key
        );
        self.maybe(name)
    }

    fn maybe(&self, name: Name) -> Option<&Json> {
        self.get(name.key).filter(|value| !value.is_null())
    }

    fn rows(&self) -> &[Json] {
        self.get("rows").and_then(Self::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn dump(&self) -> &Json {
        self.get("dump").unwrap_or(&Self::Null)
    }
}
