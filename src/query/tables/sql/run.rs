//! Execution of a query on a separate thread, which sends the rows while they are produced.
//!
//! This way a query can be cancelled at any time, and rows are produced while earlier ones are written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rusqlite::types::ValueRef;

use super::MAX_LEN;
use super::dump::SqlDump;
use super::error::{ErrorKind, SqlError};
use super::guard::{QueryDeadline, SqlLimits};
use super::open::SqlConnection;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlColumn {
    /// Name, unique in the result: a second column of the same name gets the suffix `_2`.
    pub name: String,
    /// Format of its values.
    pub kind: ColumnKind,
}

/// Format of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers are object IDs.
    Id,
    /// Integers are booleans.
    Boolean,
    /// Values are shown unchanged.
    Other,
}

/// A value of a query result.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// Null.
    Null,
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A row of a result.
pub type SqlRow = Vec<SqlValue>;

/// A message from the query's thread.
enum Message {
    Rows(RowBatch),
    Failed(SqlError),
}

/// Rows sent in one message: waking the receiver takes longer than finding a row.
#[derive(Debug, Default)]
struct RowBatch {
    /// Columns; only in the first message.
    columns: Vec<SqlColumn>,
    rows: Vec<SqlRow>,
    is_last: bool,
}

/// Result of a query; its rows are produced while they are read.
#[derive(Debug)]
pub struct SqlResult {
    /// Columns.
    pub columns: Vec<SqlColumn>,
    messages: Receiver<Message>,
    made: VecDeque<SqlRow>,
    /// `true` if no more rows follow.
    is_over: bool,
    clock: Arc<QueryDeadline>,
    cancelled: Arc<AtomicBool>,
}

/// Time that the thread may take to notice the deadline: it may be in a single function of SQLite.
const GRACE: Duration = Duration::from_secs(2);
/// Maximum number of rows sent together.
const MAX_ROWS: usize = 512;
/// Maximum size of texts sent together in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of messages in the channel.
const WAITING: usize = 4;
/// Stack size of the thread: SQLite's parser and expressions are recursive, within limits.
const STACK: usize = 16 << 20;

/// Runs a query; names without a schema refer to the first dump.
///
/// # Errors
/// If the query is invalid or not allowed.
pub fn ask(dumps: &[Arc<SqlDump>], query: &str, limits: SqlLimits) -> Result<SqlResult, SqlError> {
    if query.len() > MAX_LEN {
        let message = format!("the query is longer than {MAX_LEN} bytes");
        return Err(SqlError::new(ErrorKind::Limit, message, ""));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let (sender, messages) = sync_channel(WAITING);
    let clock = Arc::new(QueryDeadline::new(limits.time, cancelled.clone()));
    let work =
        QueryTask { dumps: dumps.into(), query: query.to_owned(), limits, clock: clock.clone(), sender };
    let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK);
    thread
        .spawn(move || work.run())
        .map_err(|error| SqlError::new(ErrorKind::Limit, format!("cannot start a thread: {error}"), ""))?;
    let made = VecDeque::new();
    let mut answer = SqlResult { columns: Vec::new(), messages, made, is_over: false, clock, cancelled };
    answer.columns = answer.receive()?;
    Ok(answer)
}

impl SqlResult {
    /// Waits for more rows. The first message also has the columns, which are returned.
    fn receive(&mut self) -> Result<Vec<SqlColumn>, SqlError> {
        // Nothing follows an error.
        self.is_over = true;
        loop {
            let received = match self.clock.time_left() {
                None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) => self.messages.recv_timeout(left.saturating_add(GRACE)),
            };
            match received {
                Ok(Message::Rows(RowBatch { columns, rows, is_last })) => {
                    (self.made, self.is_over) = (rows.into(), is_last);
                    return Ok(columns);
                }
                Ok(Message::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(SqlError::new(
                        ErrorKind::Wrong,
                        "the query was interrupted before its last row; this is a bug",
                        "",
                    ));
                }
                Err(RecvTimeoutError::Timeout) if self.clock.is_late() => return Err(self.clock.error()),
                // The clock may have been stopped temporarily.
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns the next row; `None` at the end.
    ///
    /// # Errors
    /// If the query fails: then the rows returned so far are not its result.
    pub fn next_row(&mut self) -> Result<Option<SqlRow>, SqlError> {
        loop {
            if let Some(row) = self.made.pop_front() {
                return Ok(Some(row));
            }
            if self.is_over {
                return Ok(None);
            }
            self.receive()?;
        }
    }
}

impl Drop for SqlResult {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Work of the query's thread.
struct QueryTask {
    dumps: Arc<[Arc<SqlDump>]>,
    query: String,
    limits: SqlLimits,
    clock: Arc<QueryDeadline>,
    sender: SyncSender<Message>,
}

impl QueryTask {
    fn run(self) {
        if let Err(error) = self.answer() {
            // The receiver may be gone.
            let _ = self.sender.send(Message::Failed(error));
        }
    }

    fn answer(&self) -> Result<(), SqlError> {
        let opened = SqlConnection::new(&self.dumps, &self.query, &self.limits, self.clock.clone())?;
        let mut statement = opened.prepare().map_err(|error| self.reason(error))?;
        let columns = columns(&statement);
        let count = columns.len();
        let said = |error: rusqlite::Error| self.reason(SqlError::from_sqlite(&error));
        let mut rows = statement.raw_query();
        // The first row is sent as soon as it exists.
        let (mut made, mut bytes, mut most) = (RowBatch { columns, ..RowBatch::default() }, 0usize, 1);
        while let Some(row) = rows.next().map_err(said)? {
            let mut cells = Vec::with_capacity(count);
            for at in 0..count {
                let cell = cell(row.get_ref(at).map_err(said)?);
                bytes = bytes.saturating_add(match &cell {
                    SqlValue::Text(text) => text.len(),
                    SqlValue::Blob(blob) => blob.len(),
                    _ => 0,
                });
                cells.push(cell);
            }
            made.rows.push(cells);
            if made.rows.len() >= most || bytes >= MAX_BYTES {
                let rows = Message::Rows(std::mem::take(&mut made));
                if self.clock.waiting(|| self.sender.send(rows)).is_err() {
                    return Ok(());
                }
                (bytes, most) = (0, (most * 2).min(MAX_ROWS));
            }
        }
        let _ = self.sender.send(Message::Rows(RowBatch { is_last: true, ..made }));
        Ok(())
    }

    /// Replaces an interruption by a timeout: SQLite reports only that it was interrupted.
    fn reason(&self, error: SqlError) -> SqlError {
        if error.message.starts_with("interrupted") && self.clock.is_late() {
            self.clock.error()
        } else {
            error
        }
    }
}

fn cell(value: ValueRef<'_>) -> SqlValue {
    match value {
        ValueRef::Null => SqlValue::Null,
        ValueRef::Integer(value) => SqlValue::Integer(value),
        ValueRef::Real(value) => SqlValue::Real(value),
        ValueRef::Text(bytes) => SqlValue::Text(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => SqlValue::Blob(bytes.to_vec()),
    }
}

/// Returns the columns of a query result; repeated names get a number.
fn columns(statement: &rusqlite::Statement<'_>) -> Vec<SqlColumn> {
    let mut columns: Vec<SqlColumn> = Vec::new();
    let mut names = rustc_hash::FxHashSet::default();
    for column in statement.columns() {
        let mut name = column.name().to_owned();
        let mut number = 2u64;
        while !names.insert(name.clone()) {
            name = format!("{}_{number}", column.name());
            number = number.saturating_add(1);
        }
        let kind = match column.decl_type() {
            Some("ID") => ColumnKind::Id,
            Some("BOOLEAN") => ColumnKind::Boolean,
            _ => ColumnKind::Other,
        };
        columns.push(SqlColumn { name, kind });
    }
    columns
}
