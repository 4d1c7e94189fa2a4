//! Any text as a query in SQL.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::{DUMP, Place};
use hprof_index::{Heap, Quiet};
use hprof_query::frameworks::Frameworks;
use hprof_query::sql::{self, SqlDump, SqlError, SqlLimits, SqlSource};

/// Rows that are taken.
const ROWS: usize = 500;
/// Limits of a query: low, as most long ones never end.
const LIMITS: SqlLimits = SqlLimits { time: Some(Duration::from_secs(1)), memory: Some(64 << 20) };

/// The dump, opened once.
fn opened() -> &'static [Arc<SqlDump>] {
    static OPENED: OnceLock<[Arc<SqlDump>; 1]> = OnceLock::new();
    OPENED.get_or_init(|| {
        let place = Place::new(DUMP);
        let opened = Heap::open_graph(&place.file(), &place.options("index"), &Quiet);
        let (heap, graph) = opened.expect("the dump opens");
        // The files go when this returns; what is mapped of them stays.
        let (heap, graph) = (Arc::new(heap), Arc::new(graph));
        let source = SqlSource {
            schema: "main".to_owned(),
            heap,
            graph,
            frameworks: Frameworks::builtin(),
            recording: None,
        };
        [Arc::new(SqlDump::new(source).expect("the dump has tables"))]
    })
}

/// Asks a small dump.
pub fn sql(bytes: &[u8]) {
    let Ok(query) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = ask(query) {
        check(query, &error);
    }
}

fn ask(query: &str) -> Result<(), SqlError> {
    let mut answer = sql::ask(opened(), query, LIMITS)?;
    let names: std::collections::HashSet<&str> =
        answer.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names.len(), answer.columns.len(), "two columns of one name");
    let columns = answer.columns.len();
    for _ in 0..ROWS {
        let Some(row) = answer.next_row()? else { break };
        assert_eq!(row.len(), columns, "a row with other columns");
    }
    Ok(())
}

/// Checks the invariants of an error.
fn check(query: &str, error: &SqlError) {
    assert!(!error.message.is_empty() && !error.to_string().is_empty());
    // A thread that panics says nothing.
    assert_ne!(error.message, "the query ended before its last row");
    if let Some((line, column)) = error.line(query) {
        assert!(query.contains(line) && column <= line.chars().count(), "{error:?}");
    }
    assert!(error.offset.is_none_or(|offset| offset <= query.len()), "{error:?}");
}
