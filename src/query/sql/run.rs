//! Running a query: on a thread of its own, which hands over the rows while they are made.
//!
//! So a query can be given up whatever SQLite is at, and rows are made while the ones before are written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rusqlite::types::ValueRef;

use super::MAX_LEN;
use super::dump::SqlDump;
use super::error::{ErrorKind, SqlError};
use super::guard::{Clock, SqlLimits};
use super::open::SqlConnection;

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlColumn {
    /// Its name, which no other column has: a second one of the same name gets `_2`.
    pub name: String,
    /// How its values are shown.
    pub kind: ColumnKind,
}

/// How the values of a column are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Integers are object IDs.
    Id,
    /// Integers are truth.
    Boolean,
    /// As they are.
    Other,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum SqlValue {
    /// Null.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A row of an answer.
pub type SqlRow = Vec<SqlValue>;

/// What the thread says.
enum Message {
    Rows(RowBatch),
    Failed(SqlError),
}

/// Rows that are handed over at once: to wake who waits for them takes longer than to find one.
#[derive(Debug, Default)]
struct RowBatch {
    /// With the first rows: the columns.
    columns: Vec<SqlColumn>,
    rows: Vec<SqlRow>,
    is_last: bool,
}

/// The answer to a query: its rows are made while they are taken.
#[derive(Debug)]
pub struct SqlResult {
    /// The columns.
    pub columns: Vec<SqlColumn>,
    messages: Receiver<Message>,
    made: VecDeque<SqlRow>,
    /// `true` if no more rows come.
    is_over: bool,
    clock: Arc<Clock>,
    cancelled: Arc<AtomicBool>,
}

/// How long the thread may take to notice that time is over: a single function of SQLite may be at it.
const GRACE: Duration = Duration::from_secs(2);
/// Rows that are handed over at once, at most.
const MAX_ROWS: usize = 512;
/// Bytes of texts that are handed over at once.
const MAX_BYTES: usize = 1 << 20;
/// Hand-overs that wait.
const WAITING: usize = 4;
/// The stack of the thread: SQLite's parser and expressions are recursive, within limits.
const STACK: usize = 16 << 20;

/// Asks dumps, of which the first is asked if a query names no schema.
///
/// # Errors
/// If the query is wrong or may not be run.
pub fn ask(dumps: &[Arc<SqlDump>], query: &str, limits: SqlLimits) -> Result<SqlResult, SqlError> {
    if query.len() > MAX_LEN {
        let message = format!("the query is longer than {MAX_LEN} bytes");
        return Err(SqlError::new(ErrorKind::Limit, message, ""));
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let (sender, messages) = sync_channel(WAITING);
    let clock = Arc::new(Clock::new(limits.time, cancelled.clone()));
    let work = Work { dumps: dumps.into(), query: query.to_owned(), limits, clock: clock.clone(), sender };
    let thread = std::thread::Builder::new().name("sql".to_owned()).stack_size(STACK);
    thread.spawn(move || work.run()).map_err(|error| {
        SqlError::new(ErrorKind::Limit, format!("no thread could be started: {error}"), "")
    })?;
    let made = VecDeque::new();
    let mut answer = SqlResult { columns: Vec::new(), messages, made, is_over: false, clock, cancelled };
    answer.columns = answer.receive()?;
    Ok(answer)
}

impl SqlResult {
    /// Waits for more rows, and takes them. Gives back the columns, if they are the first.
    fn receive(&mut self) -> Result<Vec<SqlColumn>, SqlError> {
        // Behind an error there are none.
        self.is_over = true;
        loop {
            let received = match self.clock.left() {
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
                    return Err(SqlError::new(ErrorKind::Wrong, "the query ended before its last row", ""));
                }
                Err(RecvTimeoutError::Timeout) if self.clock.is_late() => return Err(self.clock.error()),
                // The clock may have stood still for a moment.
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// The next row; `None` if there is none.
    ///
    /// # Errors
    /// If the query fails on the way: then the rows before are not the answer.
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

/// What the thread does.
struct Work {
    dumps: Arc<[Arc<SqlDump>]>,
    query: String,
    limits: SqlLimits,
    clock: Arc<Clock>,
    sender: SyncSender<Message>,
}

impl Work {
    fn run(self) {
        if let Err(error) = self.answer() {
            // Nobody may listen any more.
            let _ = self.sender.send(Message::Failed(error));
        }
    }

    fn answer(&self) -> Result<(), SqlError> {
        let opened = SqlConnection::new(&self.dumps, &self.query, &self.limits, self.clock.clone())?;
        let mut statement = opened.prepare().map_err(|error| self.reason(error))?;
        let columns = columns(&statement);
        let count = columns.len();
        let said = |error: rusqlite::Error| self.reason(SqlError::of(&error));
        let mut rows = statement.raw_query();
        // The first row is handed over as soon as it is there.
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

    /// Time is over: SQLite only says that it was interrupted.
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

/// The columns of a query; names that it has already get a number.
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
