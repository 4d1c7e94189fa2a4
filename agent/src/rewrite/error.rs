//! Errors in class files, with their offsets.

use std::fmt;

/// Error for a class file that cannot be rewritten because it is damaged, or has an unknown version. The class should be left
/// unchanged, so that the JVM reports the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewriteError {
    /// Offset in the class file, in bytes.
    pub offset: usize,
    /// Content that the format of class files requires at this offset.
    pub expected: &'static str,
    /// Content found at this offset.
    pub found: UnexpectedContent,
}

/// Content at an offset where something else was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnexpectedContent {
    /// A number, such as a tag, an index, an offset or a length.
    Number(i64),
    /// The end of the file or of the attribute.
    End,
}

impl RewriteError {
    /// Returns an error about an unexpected number in the file.
    pub(super) fn number(offset: usize, expected: &'static str, found: impl Into<i64>) -> RewriteError {
        RewriteError { offset, expected, found: UnexpectedContent::Number(found.into()) }
    }

    /// Returns an error about missing bytes.
    pub(super) fn end(offset: usize, expected: &'static str) -> RewriteError {
        RewriteError { offset, expected, found: UnexpectedContent::End }
    }
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {:#x} of the class file: expected {}, found ", self.offset, self.expected)?;
        match self.found {
            UnexpectedContent::Number(number) => write!(f, "{number}"),
            UnexpectedContent::End => f.write_str("the end of the data"),
        }
    }
}

impl std::error::Error for RewriteError {}
