//! Threads that were started while the profiler was running.

use super::profile::StartedThread;
use hprof_base::sorting::SortRows;
use hprof_model::objects::selection::ThreadPattern;

/// Query for started threads.
#[derive(Debug, Clone, Default)]
pub struct StartedThreadQuery {
    /// Pattern of the thread's name, or an object ID.
    pub name: Option<ThreadPattern>,
    /// Order of the rows; that of the file by default.
    pub sort_by: Option<StartedThreadOrder>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Order of started threads. Equal rows stay in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartedThreadOrder {
    /// By serial number.
    Serial,
    /// By name.
    Name,
}

/// Started threads that match a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartedThreads<'a> {
    /// Threads, at most `top`.
    pub rows: Vec<&'a StartedThread>,
    /// Number of matching threads before `top` was applied.
    pub matching: u64,
}

/// Returns the threads that match a query.
pub fn threads<'a>(threads: &'a [StartedThread], question: &StartedThreadQuery) -> StartedThreads<'a> {
    let is_meant = |thread: &&StartedThread| {
        question.name.as_ref().is_none_or(|wanted| wanted.matches(thread.object, Some(&thread.name)))
    };
    let mut rows: Vec<&StartedThread> = threads.iter().filter(is_meant).collect();
    match question.sort_by {
        None => {}
        Some(StartedThreadOrder::Serial) => rows.sort_rows_by_key(|thread| thread.serial),
        Some(StartedThreadOrder::Name) => rows.sort_rows_by(|a, b| a.name.cmp(&b.name)),
    }
    let matching = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    StartedThreads { rows, matching }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hprof_values::ObjectId;

    #[test]
    fn threads_by_name_and_in_order() {
        let thread = |serial, object, name: &str| StartedThread {
            serial,
            object,
            name: name.into(),
            ..StartedThread::default()
        };
        let all = [
            thread(3, ObjectId(16), "main"),
            thread(1, ObjectId(17), "worker"),
            thread(2, ObjectId(18), "main"),
        ];
        let serials = |question: StartedThreadQuery| -> Vec<u32> {
            super::threads(&all, &question).rows.iter().map(|thread| thread.serial).collect()
        };
        assert_eq!(serials(StartedThreadQuery::default()), [3, 1, 2]);
        assert_eq!(
            serials(StartedThreadQuery {
                sort_by: Some(StartedThreadOrder::Serial),
                ..StartedThreadQuery::default()
            }),
            [1, 2, 3]
        );
        assert_eq!(
            serials(StartedThreadQuery {
                sort_by: Some(StartedThreadOrder::Name),
                ..StartedThreadQuery::default()
            }),
            [3, 2, 1]
        );
        assert_eq!(
            serials(StartedThreadQuery {
                name: Some("work".parse().unwrap()),
                ..StartedThreadQuery::default()
            }),
            [1]
        );
        assert_eq!(
            serials(StartedThreadQuery {
                name: Some("0x12".parse().unwrap()),
                ..StartedThreadQuery::default()
            }),
            [2]
        );
        let answer =
            super::threads(&all, &StartedThreadQuery { top: Some(1), ..StartedThreadQuery::default() });
        assert_eq!((answer.rows.len(), answer.matching), (1, 3));
    }
}
