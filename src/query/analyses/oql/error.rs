//! Errors in a query, with their position.

/// An error in a query, with its line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OQL, line {line}, column {column}: {text}")]
pub struct QueryError {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the error, with an alternative if there is one.
    pub text: String,
    /// Text of the line with the error.
    pub query: Box<str>,
    /// `true` if the query names a class or an object that is not in the dump.
    pub is_unknown: bool,
    /// `true` if the query needs more memory than the budget has left.
    pub is_memory: bool,
    /// Name of a jhat function in lower case, if the error is a call of one that has no equivalent.
    pub unknown_function: Option<&'static str>,
}

/// An error at a byte offset of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OqlError {
    /// Byte offset in the query.
    pub(super) at: usize,
    /// Description of the error.
    pub(super) text: String,
    is_unknown: bool,
    is_memory: bool,
    unknown_function: Option<&'static str>,
}

impl OqlError {
    /// Creates an error at a byte offset.
    pub(super) fn new(at: usize, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), is_unknown: false, is_memory: false, unknown_function: None }
    }

    /// Creates an error for something that is not in the dump.
    pub(super) fn unknown(at: usize, text: impl Into<String>) -> Self {
        Self { is_unknown: true, ..Self::new(at, text) }
    }

    /// Creates an error for a query that needs more memory than the budget has left.
    pub(super) fn memory(at: usize, text: impl Into<String>) -> Self {
        Self { is_memory: true, ..Self::new(at, text) }
    }

    /// Creates an error for a call of a jhat function that has no equivalent.
    pub(super) fn function(at: usize, text: impl Into<String>, name: &'static str) -> Self {
        Self { unknown_function: Some(name), ..Self::new(at, text) }
    }

    /// Returns the error at an offset of the query, if it was found in a part that begins at `base`.
    pub(super) fn relocate(self, base: usize) -> Self {
        Self { at: self.at.saturating_add(base), ..self }
    }

    /// Converts the byte offset to line and column in the query's text.
    pub(super) fn locate(self, query: &str) -> QueryError {
        let before = query.get(..self.at).unwrap_or(query);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.get(start..).unwrap_or_default();
        let source = query.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        QueryError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            text: self.text,
            query: source.into(),
            is_unknown: self.is_unknown,
            is_memory: self.is_memory,
            unknown_function: self.unknown_function,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let found = OqlError::new(10, "x").locate("ab\nüü cd ef\nnext");
        assert_eq!((found.line, found.column, &*found.query), (2, 6, "üü cd ef"));
        let end = OqlError::new(99, "x").locate("ab");
        assert_eq!((end.line, end.column), (1, 3));
    }
}
