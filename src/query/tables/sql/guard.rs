//! Limits and permissions of a query: only reading is permitted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;

use super::error::{ErrorKind, SqlError};

/// Maximum size of a text, a blob or a row in bytes.
const MAX_BYTES: i32 = 64 << 20;
/// Maximum depth of expressions.
const MAX_DEPTH: i32 = 200;
/// Maximum number of SELECTs in a compound query, such as UNION.
const MAX_PARTS: i32 = 100;
/// Maximum number of instructions of a prepared query: SQLite's measure of its length.
const MAX_INSTRUCTIONS: i32 = 1_000_000;
/// Maximum length of a pattern of LIKE and GLOB in bytes.
const MAX_PATTERN: i32 = 1000;
/// Instructions between two checks of the clock: a few microseconds.
const STEPS: i32 = 1000;
/// Size in KiB at which a sort spills to a temporary file.
const SORT_KIB: i32 = 64 << 10;

/// SQLite's message for a query that was interrupted, also used here.
pub(super) const INTERRUPTED: &str = "interrupted";

/// Description of the refused action: SQLite reports only that it was refused.
pub(super) type RefusalMessage = Arc<Mutex<Option<String>>>;

/// Flag that permits this module's own statements, which queries must not contain.
pub(super) type UnlockFlag = Arc<AtomicBool>;

/// Limits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlLimits {
    /// Maximum time; `None` for no limit.
    pub time: Option<Duration>,
    /// Maximum memory of SQLite, for sorts and intermediate results; `None` for no limit.
    pub memory: Option<u64>,
}

/// Deadline of a query. The time in which it waits for the consumer of its rows, such as a pager, does not count.
#[derive(Debug)]
pub(super) struct QueryDeadline {
    begin: Instant,
    limit: Option<Duration>,
    cancelled: Arc<AtomicBool>,
    waits: Mutex<Waits>,
}

/// Time that a query has spent waiting.
#[derive(Debug, Default)]
struct Waits {
    /// Total duration of finished waits.
    before: Duration,
    /// Start of the current wait.
    since: Option<Instant>,
}

impl QueryDeadline {
    /// Starts the clock.
    pub(super) fn new(limit: Option<Duration>, cancelled: Arc<AtomicBool>) -> Self {
        Self { begin: Instant::now(), limit, cancelled, waits: Mutex::default() }
    }

    /// Returns whether the query has to end now.
    pub(super) fn is_over(&self) -> bool {
        self.is_late() || self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns whether the time limit is exceeded.
    pub(super) fn is_late(&self) -> bool {
        self.time_left().is_some_and(|left| left.is_zero())
    }

    /// Returns the time left; `None` if there is no limit.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let limit = self.limit?;
        let waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock stops while the query waits.
        let now = waits.since.unwrap_or_else(Instant::now);
        let taken = now.saturating_duration_since(self.begin).saturating_sub(waits.before);
        Some(limit.saturating_sub(taken))
    }

    /// Runs a function that waits for other threads; the clock is stopped meanwhile.
    pub(super) fn waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).since = Some(begin);
        let done = wait();
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.before = waits.before.saturating_add(begin.elapsed());
        waits.since = None;
        done
    }

    /// Returns the error of a query that took too long.
    #[cold]
    pub(super) fn error(&self) -> SqlError {
        let seconds = self.limit.unwrap_or_default().as_secs_f64();
        SqlError::new(
            ErrorKind::Time,
            format!("the query took longer than the time limit of {seconds} s"),
            "",
        )
    }
}

/// Configures SQLite, before tables are created.
pub(super) fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    let configs = [
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        // "name" is a column and never a text: a misspelled name is an error.
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ];
    for (config, value) in configs {
        connection.set_db_config(config, value)?;
    }
    let limits = [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, i32::try_from(super::MAX_LEN).unwrap_or(i32::MAX)),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, MAX_DEPTH),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, MAX_PARTS),
        (Limit::SQLITE_LIMIT_VDBE_OP, MAX_INSTRUCTIONS),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_PATTERN),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ];
    for (limit, value) in limits {
        connection.set_limit(limit, value)?;
    }
    connection.pragma_update(None, "cache_size", -SORT_KIB)
}

/// Restricts queries, after tables are created.
pub(super) fn lock(
    connection: &mut Connection,
    unlocked: UnlockFlag,
    refused: RefusalMessage,
    clock: Arc<QueryDeadline>,
) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.progress_handler(STEPS, Some(move || clock.is_over()))?;
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if unlocked.load(Ordering::Relaxed) {
            return Authorization::Allow;
        }
        match refusal(&context.action) {
            None => Authorization::Allow,
            Some(what) => {
                *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
                Authorization::Deny
            }
        }
    }))
}

/// Functions with side effects.
const FUNCTIONS: [&str; 3] = ["load_extension", "fts3_tokenizer", "sqlite_log"];
/// Read-only pragmas.
const PRAGMAS: [&str; 3] = ["table_info", "table_xinfo", "table_list"];

/// Returns the description of a refused action; `None` if a query may perform it.
fn refusal(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => None,
        AuthAction::Function { function_name }
            if !FUNCTIONS.iter().any(|name| name.eq_ignore_ascii_case(function_name)) =>
        {
            None
        }
        AuthAction::Function { function_name } => Some(format!("the function {function_name}")),
        AuthAction::Pragma { pragma_name, .. }
            if PRAGMAS.iter().any(|name| name.eq_ignore_ascii_case(pragma_name)) =>
        {
            None
        }
        AuthAction::Pragma { pragma_name, .. } => Some(format!("PRAGMA {pragma_name}")),
        AuthAction::Attach { .. } => Some("ATTACH".to_owned()),
        AuthAction::Detach { .. } => Some("DETACH".to_owned()),
        AuthAction::Insert { .. } => Some("INSERT or CREATE".to_owned()),
        AuthAction::Update { .. } => Some("UPDATE".to_owned()),
        AuthAction::Delete { .. } => Some("DELETE or DROP".to_owned()),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Some("a transaction".to_owned()),
        _ => Some("a statement other than SELECT".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_takes_no_time() {
        let clock = QueryDeadline::new(Some(Duration::from_secs(60)), Arc::default());
        let before = clock.time_left();
        clock.waiting(|| {
            let left = clock.time_left();
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(clock.time_left(), left);
        });
        let taken = before.unwrap_or_default().saturating_sub(clock.time_left().unwrap_or_default());
        assert!(taken < clock.begin.elapsed().saturating_sub(Duration::from_millis(19)));
        assert!(!clock.is_over() && QueryDeadline::new(Some(Duration::ZERO), Arc::default()).is_late());
        assert_eq!(QueryDeadline::new(None, Arc::default()).time_left(), None);
    }
}
