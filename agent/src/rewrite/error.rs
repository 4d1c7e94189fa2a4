//! What is wrong with a class file, and where.

use std::fmt;

/// A class file that cannot be rewritten because it is damaged, or of a version that is not known. The class is to be
/// left as it is: the JVM reports what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset in the class file, in bytes.
    pub offset: usize,
    /// What the class file format requires there.
    pub expected: &'static str,
    /// What is there.
    pub found: Unexpected,
}

/// What is at an offset where something else was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unexpected {
    /// This number: a tag, an index, an offset, a length.
    Number(i64),
    /// The end of the file, or of the attribute.
    End,
}

impl Error {
    /// An error about a number in the file.
    pub(super) fn number(offset: usize, expected: &'static str, found: impl Into<i64>) -> Error {
        Error { offset, expected, found: Unexpected::Number(found.into()) }
    }

    /// An error about bytes that are missing.
    pub(super) fn end(offset: usize, expected: &'static str) -> Error {
        Error { offset, expected, found: Unexpected::End }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "class file, offset {:#x}: expected {}, found ", self.offset, self.expected)?;
        match self.found {
            Unexpected::Number(number) => write!(f, "{number}"),
            Unexpected::End => f.write_str("the end"),
        }
    }
}

impl std::error::Error for Error {}
