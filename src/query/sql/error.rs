//! What is wrong with a query, where, and what to do about it.

use rusqlite::ffi::ErrorCode;

/// Of which kind an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The query is wrong.
    Wrong,
    /// It names a table, a column or a class that is not there.
    Unknown,
    /// It does what no query may do.
    Refused,
    /// It takes more time than it may.
    Time,
    /// It takes more memory than it may.
    Memory,
    /// It makes or needs more than there may be.
    Limit,
    /// The dump or its index cannot be read.
    Unreadable,
}

/// A query that cannot be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}{}", if hint.is_empty() { "" } else { "; " }, hint)]
pub struct SqlError {
    /// Of which kind it is.
    pub kind: ErrorKind,
    /// What is wrong.
    pub message: String,
    /// What to do; may be empty.
    pub hint: String,
    /// Where in the query: the byte at which it begins.
    pub offset: Option<usize>,
}

impl SqlError {
    /// An error without a place.
    #[cold]
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), offset: None }
    }

    /// What SQLite says.
    #[cold]
    pub(super) fn of(error: &rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::SqlInputError { msg, offset, error, .. } => {
                let offset = usize::try_from(*offset).ok();
                Self { offset, ..Self::of_message(error.code, msg) }
            }
            rusqlite::Error::SqliteFailure(error, message) => {
                Self::of_message(error.code, message.as_deref().unwrap_or_default())
            }
            rusqlite::Error::MultipleStatement => {
                Self::new(ErrorKind::Refused, "there is more than one statement", "ask them one by one")
            }
            rusqlite::Error::NulError(_) => {
                Self::new(ErrorKind::Wrong, "the query contains a NUL character", "")
            }
            other => Self::new(ErrorKind::Wrong, other.to_string(), ""),
        }
    }

    fn of_message(code: ErrorCode, message: &str) -> Self {
        match code {
            ErrorCode::OutOfMemory => Self::new(
                ErrorKind::Memory,
                "the query needs more memory than it may take",
                "ask for less at once",
            ),
            ErrorCode::TooBig => Self::new(
                ErrorKind::Limit,
                format!("{}: a text or a row is longer than a query may make", plain(message, "too big")),
                "use substr, or fewer columns",
            ),
            ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Self::new(
                ErrorKind::Limit,
                format!("a sort cannot be written to a temporary file: {}", plain(message, "I/O error")),
                "free space there, or name another directory in SQLITE_TMPDIR",
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

    /// The line of the query with the place, and the characters of it before the place.
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
