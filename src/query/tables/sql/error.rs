//! Errors of queries: message, position and hint.

use rusqlite::ffi::ErrorCode;

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The query is invalid.
    Wrong,
    /// The query names an unknown table, column or class.
    Unknown,
    /// The query contains a forbidden action.
    Refused,
    /// The query exceeds the time limit.
    Time,
    /// The query exceeds the memory limit.
    Memory,
    /// The query exceeds another limit.
    Limit,
    /// The dump or its index cannot be read.
    Unreadable,
}

/// Error of a query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}{}", if hint.is_empty() { "" } else { "; " }, hint)]
pub struct SqlError {
    /// Kind of error.
    pub kind: ErrorKind,
    /// Message.
    pub message: String,
    /// Hint for the user; may be empty.
    pub hint: String,
    /// Byte offset of the error in the query.
    pub offset: Option<usize>,
}

impl SqlError {
    /// Creates an error without an offset.
    #[cold]
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), offset: None }
    }

    /// Converts an error of SQLite.
    #[cold]
    pub(super) fn from_sqlite(error: &rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqlInputError { msg, offset, error, .. } => {
                let offset = usize::try_from(*offset).ok();
                Self { offset, ..Self::of_message(error.code, msg) }
            }
            rusqlite::Error::SqliteFailure(error, message) => {
                Self::of_message(error.code, message.as_deref().unwrap_or_default())
            }
            rusqlite::Error::MultipleStatement => Self::new(
                ErrorKind::Refused,
                "the query has more than one statement",
                "run the statements one at a time",
            ),
            rusqlite::Error::NulError(_) => {
                Self::new(ErrorKind::Wrong, "the query contains a NUL character", "")
            }
            other => Self::new(ErrorKind::Wrong, other.to_string(), ""),
        }
    }

    fn of_message(code: ErrorCode, message: &str) -> Self {
        match code {
            ErrorCode::OutOfMemory => {
                Self::new(ErrorKind::Memory, "the query exceeds the memory limit", "select less data")
            }
            ErrorCode::TooBig => Self::new(
                ErrorKind::Limit,
                format!("{}: a text or a row exceeds the size limit", plain(message, "too big")),
                "use substr(), or fewer columns",
            ),
            ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Self::new(
                ErrorKind::Limit,
                format!("cannot write the temporary file of a sort: {}", plain(message, "I/O error")),
                "free disk space, or set SQLITE_TMPDIR to another directory",
            ),
            ErrorCode::DatabaseCorrupt => {
                Self::new(ErrorKind::Unreadable, plain(message, "the dump cannot be read").to_owned(), "")
            }
            _ if message.starts_with("no such table") || message.starts_with("no such column") => {
                Self::new(ErrorKind::Unknown, message, "")
            }
            _ => Self::new(ErrorKind::Wrong, plain(message, "the query cannot be run").to_owned(), ""),
        }
    }

    /// Returns the line of the query that contains the offset, and the number of characters before it.
    pub fn line<'q>(&self, query: &'q str) -> Option<(&'q str, usize)> {
        let offset = self.offset?;
        let (before, _) = query.split_at_checked(offset)?;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = query.get(start..)?.lines().next().unwrap_or_default();
        Some((line, before.get(start..)?.chars().count()))
    }
}

fn plain<'a>(message: &'a str, other: &'a str) -> &'a str {
    if message.is_empty() { other } else { message }
}
