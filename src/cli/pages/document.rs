//! Access to the JSON documents that pages are built from, by the names of the dictionary.

use hprof_query::dictionary::Name;
use serde_json::Value as Json;

/// Reads answers of commands. Reading a name that the answer lacks is a bug in the page: tests fail then.
pub(crate) trait Look {
    /// Returns the value of a name; `None` if it is `null`.
    fn value(&self, name: Name) -> Option<&Json>;
    /// Returns the value of a name that only some kinds of rows have.
    fn maybe(&self, name: Name) -> Option<&Json>;
    /// Returns the rows of a document.
    fn rows(&self) -> &[Json];
    /// Returns the dump of a document; `null` if there is none.
    fn dump(&self) -> &Json;

    /// Returns the text of a name; empty if it is `null`.
    fn text(&self, name: Name) -> &str {
        self.value(name).and_then(Json::as_str).unwrap_or_default()
    }

    /// Returns the number of a name.
    fn number(&self, name: Name) -> Option<u64> {
        self.value(name).and_then(Json::as_u64)
    }

    /// Returns the values of a list.
    fn list(&self, name: Name) -> &[Json] {
        self.value(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether a name is true.
    fn is(&self, name: Name) -> bool {
        self.value(name).and_then(Json::as_bool) == Some(true)
    }

    /// Returns the first row of a document.
    fn row(&self) -> Option<&Json> {
        self.rows().first()
    }
}

impl Look for Json {
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
