//! Errors in a query, with their position.

/// An error in a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("OQL, line {line}, column {column}: {text}")]
pub struct QueryError {
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters, from 1.
    pub column: usize,
    /// Description of the error, and what to write instead.
    pub text: String,
    /// The line of the query.
    pub query: Box<str>,
    /// `true` if it names a class or an object that is not in the dump.
    pub is_unknown: bool,
}

/// An error at a byte of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The byte.
    pub(super) at: usize,
    /// Description of the error.
    pub(super) text: String,
    is_unknown: bool,
}

impl Wrong {
    pub(super) fn new(at: usize, text: impl Into<String>) -> Self {
        Self { at, text: text.into(), is_unknown: false }
    }

    /// Something that is not in the dump.
    pub(super) fn unknown(at: usize, text: impl Into<String>) -> Self {
        Self { is_unknown: true, ..Self::new(at, text) }
    }

    /// With line and column in the query's text.
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let found = Wrong::new(10, "x").locate("ab\nüü cd ef\nnext");
        assert_eq!((found.line, found.column, &*found.query), (2, 6, "üü cd ef"));
        let end = Wrong::new(99, "x").locate("ab");
        assert_eq!((end.line, end.column), (1, 3));
    }
}
