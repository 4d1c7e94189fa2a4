//! SQL over the tables of one or several dumps: SQLite with virtual tables over the mapped index.
//!
//! Nothing is copied or loaded first: `virtual_table` passes SQLite the rows of this crate, restricted by the lookups
//! in its conditions. `SqlDump` combines an opened dump and its tables; [`ask`] runs a query on a separate thread,
//! within limits (`guard`), and returns its rows while they are produced. Read only: an authorizer decides what a
//! query may do, and the connection has no file.

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
pub use virtual_table::quoted_name;

/// Maximum length of a query in bytes.
pub const MAX_LEN: usize = 1_000_000;

/// Maximum number of dumps that can be attached to the first: the limit of SQLite.
pub const MAX_ATTACHED: usize = 10;
