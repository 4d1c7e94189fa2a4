//! Waits, sleeps and exits of threads at monitors, summed up. [`super::cputime::times`] over MONITOR TIME reports contention.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::profile::{Wait, WaitKind};
use hprof_base::naming::pattern::{self, ClassPattern};
use hprof_base::sorting::SortRows;

/// Summed events of one thread at the monitors of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitRow {
    /// Class of the monitors; `None` for sleeping.
    pub monitor: Option<String>,
    /// Serial number of the thread, if the agent knew it.
    pub thread: Option<u32>,
    /// Number of WAIT lines: the thread began to wait.
    pub waits: u64,
    /// Number of WAIT lines with a timeout.
    pub timed: u64,
    /// Number of WAITED lines: the thread finished waiting.
    pub waited: u64,
    /// Sum of the times in WAITED lines, as the file states them.
    pub time_waited: i64,
    /// Number of SLEEP lines.
    pub sleeps: u64,
    /// Sum of the times in SLEEP lines, as the file states them.
    pub time_slept: i64,
    /// Number of EXIT lines.
    pub exits: u64,
}

/// Query for events of threads at monitors.
#[derive(Debug, Clone, Default)]
pub struct WaitQuery {
    /// Patterns of the monitors' classes; all classes and sleeps if empty.
    pub monitors: Vec<ClassPattern>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Sums up lines by class of the monitor and by thread: most lines first, equal rows in the order of the file. Returns at most
/// `top` rows, and the number of all rows.
pub fn waits(lines: &[Wait], question: &WaitQuery) -> (Vec<WaitRow>, u64) {
    let mut rows: Vec<WaitRow> = Vec::new();
    let mut numbers: HashMap<(Option<&str>, Option<u32>), usize> = HashMap::new();
    let is_meant = |line: &&Wait| {
        question.monitors.is_empty()
            || line.monitor.as_ref().is_some_and(|class| pattern::any_matches(&question.monitors, class))
    };
    for line in lines.iter().filter(is_meant) {
        let number = *numbers.entry((line.monitor.as_deref(), line.thread)).or_insert_with(|| {
            rows.push(WaitRow { monitor: line.monitor.clone(), thread: line.thread, ..WaitRow::default() });
            rows.len() - 1
        });
        let Some(row) = rows.get_mut(number) else { continue };
        let time = line.time.unwrap_or(0);
        match line.kind {
            WaitKind::Wait => {
                row.waits += 1;
                // A timeout of 0 means no timeout.
                row.timed += u64::from(time != 0);
            }
            WaitKind::Waited => {
                row.waited += 1;
                row.time_waited = row.time_waited.saturating_add(time);
            }
            WaitKind::Sleep => {
                row.sleeps += 1;
                row.time_slept = row.time_slept.saturating_add(time);
            }
            WaitKind::Exit => row.exits += 1,
        }
    }
    let matching = rows.len() as u64;
    rows.sort_rows_by_key(|row| Reverse(row.waits + row.waited + row.sleeps + row.exits));
    rows.truncate(question.top.unwrap_or(usize::MAX));
    (rows, matching)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_up_by_class_and_thread() {
        use WaitKind::{Exit, Sleep, Wait as Begin, Waited};
        let line = |kind, monitor: Option<&str>, time, thread| Wait {
            kind,
            monitor: monitor.map(str::to_owned),
            time,
            thread,
        };
        let lines = [
            line(Sleep, None, Some(300), Some(1)),
            line(Begin, Some("a.Lock"), Some(0), Some(1)),
            line(Waited, Some("a.Lock"), Some(-5), Some(1)),
            line(Begin, Some("a.Lock"), Some(100), Some(1)),
            line(Waited, Some("a.Lock"), Some(7), Some(1)),
            line(Begin, Some("a.Lock"), Some(0), Some(2)),
            line(Exit, Some("a.Lock"), None, None),
        ];
        let (rows, matching) = waits(&lines, &WaitQuery::default());
        assert_eq!(matching, 4);
        let first = WaitRow {
            monitor: Some("a.Lock".to_owned()),
            thread: Some(1),
            waits: 2,
            timed: 1,
            waited: 2,
            time_waited: 2,
            ..WaitRow::default()
        };
        assert_eq!(rows.first(), Some(&first));
        let order: Vec<_> =
            rows.iter().map(|row| (row.thread, row.sleeps, row.time_slept, row.exits)).collect();
        assert_eq!(order, [(Some(1), 0, 0, 0), (Some(1), 1, 300, 0), (Some(2), 0, 0, 0), (None, 0, 0, 1)]);
        let some = WaitQuery { monitors: vec!["a.*".parse().unwrap()], top: Some(1) };
        assert_eq!((waits(&lines, &some).0.len(), waits(&lines, &some).1), (1, 3));
        assert_eq!(waits(&[], &WaitQuery::default()).1, 0);
    }
}
