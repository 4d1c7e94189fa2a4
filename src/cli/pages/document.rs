//! Looking into the JSON documents that pages are made of.

use serde_json::Value as Json;

/// Looking into JSON documents.
pub(crate) trait Look {
    /// The text of a key; empty if there is none.
    fn text(&self, key: &str) -> &str;
    /// The number of a key.
    fn number(&self, key: &str) -> Option<u64>;
    /// The values of a list.
    fn list(&self, key: &str) -> &[Json];
    /// Whether a key is true.
    fn is(&self, key: &str) -> bool;
    /// The first row of a document.
    fn row(&self) -> Option<&Json>;
}

impl Look for Json {
    fn text(&self, key: &str) -> &str {
        self.get(key).and_then(Self::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.get(key).and_then(Self::as_u64)
    }

    fn list(&self, key: &str) -> &[Json] {
        self.get(key).and_then(Self::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    fn is(&self, key: &str) -> bool {
        self.get(key).and_then(Self::as_bool) == Some(true)
    }

    fn row(&self) -> Option<&Json> {
        self.list("rows").first()
    }
}
