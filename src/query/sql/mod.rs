//! SQL over the tables of one dump, or of several: SQLite, with virtual tables over the mapped index.
//!
//! Nothing is copied or loaded first: `virtual_table` hands SQLite the rows of [`crate::tables`], and what its
//! conditions look up. [`SqlDump`] keeps an opened dump and its tables together; [`ask`] runs a query on a thread of its own,
//! within limits (`guard`), and hands over its rows while they are made. Read only: what a query may do is decided by an
//! authorizer, and there is no file behind the connection.

mod ahead;
mod dump;
mod error;
mod functions;
mod guard;
mod like;
mod open;
mod path_text;
mod real_text;
mod run;
mod virtual_table;

pub use dump::{SqlDump, SqlSource};
pub use error::{ErrorKind, SqlError};
pub use functions::{FUNCTIONS, Function};
pub use guard::SqlLimits;
pub use run::{ColumnKind, SqlColumn, SqlResult, SqlRow, SqlValue, ask};
pub use virtual_table::quoted;

/// The longest query, in bytes.
pub const MAX_LEN: usize = 1_000_000;

/// Dumps that can be asked at once beside the first: SQLite attaches no more.
pub const MAX_ATTACHED: usize = 10;
