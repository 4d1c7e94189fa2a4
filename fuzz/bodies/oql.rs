//! Any text as a query.

use std::sync::OnceLock;

use super::answers::Sum;
use super::{DUMP, Place, with_threads};
use hprof_index::{Dump, Heap, ObjectGraph, Quiet};
use hprof_query::oql::{Evaluator, Query};

/// Rows that are taken.
const ROWS: usize = 500;

/// The dump, opened once.
struct Opened {
    heap: Heap,
    graph: ObjectGraph,
}

fn opened() -> &'static Opened {
    static OPENED: OnceLock<Opened> = OnceLock::new();
    OPENED.get_or_init(|| {
        let place = Place::new(DUMP);
        let opened = Heap::open_graph(&place.file(), &place.options("index"), &Quiet);
        let (heap, graph) = opened.expect("the dump opens");
        // The files go when this returns; what is mapped of them stays.
        Opened { heap, graph }
    })
}

/// Parses a text as a query and, if it is one, asks a small dump: with one thread and with two the same.
pub fn oql(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let query: Query = match text.parse() {
        Ok(query) => query,
        Err(error) => {
            let error: hprof_query::oql::QueryError = error;
            // The position is in the query, or just after its end.
            assert!(error.column >= 1 && error.column <= error.query.chars().count() + 1, "{error:?}");
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let first = with_threads(false, || ask(&query));
    let second = with_threads(true, || ask(&query));
    assert_eq!(first, second, "one thread and two answer differently");
}

fn ask(query: &Query) -> u64 {
    let Opened { heap, graph } = opened();
    let mut sum = Sum::of_truth();
    let Ok(dump) = Dump::new(heap, graph) else { return 0 };
    let evaluator = Evaluator::new(&dump);
    match evaluator.run(query, Some(ROWS)) {
        Ok(answer) => {
            sum.add(&answer.columns);
            let rows: Vec<_> = answer.rows(&evaluator).take(ROWS).collect();
            let total = answer.total();
            assert!(total.is_none_or(|total| total >= rows.len() as u64), "{} of {total:?} rows", rows.len());
            sum.add(&(total, rows));
        }
        Err(error) => sum.add(&error.to_string()),
    }
    sum.end()
}
