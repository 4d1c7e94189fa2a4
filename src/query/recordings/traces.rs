//! Query for stack traces by serial number, frames or thread.

use std::collections::HashMap;
use std::str::FromStr;

use rustc_hash::FxHashSet;

use super::profile::{Profile, StartedThread, Trace};
use super::stack_filter::StackFilter;
use hprof_base::naming::object_id::NoObjectId;
use hprof_model::objects::selection::ThreadPattern;
use hprof_values::TraceSerial;

/// Query for stack traces.
#[derive(Debug, Clone, Default)]
pub struct TraceQuery {
    /// Serial numbers; all if empty.
    pub serials: Vec<TraceSerial>,
    /// Filter of traces by their frames.
    pub filter: StackFilter,
    /// Filter of traces by their thread.
    pub thread: Option<ThreadFilter>,
    /// Maximum number of rows; all by default.
    pub top: Option<usize>,
}

/// Filter of threads by serial number, name or object ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadFilter {
    /// Serial number.
    Serial(u32),
    /// Name or object ID.
    Pattern(ThreadPattern),
}

impl FromStr for ThreadFilter {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        match text.parse() {
            // Parsing alone would accept a sign.
            Ok(serial) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Self::Serial(serial)),
            _ => text.parse().map(Self::Pattern),
        }
    }
}

/// Stack traces that match a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceReport<'a> {
    /// Traces in the order of the file, at most `top`.
    pub rows: Vec<&'a Trace>,
    /// Number of matching traces before `top` was applied.
    pub matching: u64,
}

/// Returns the traces that match a query.
pub fn traces<'a>(profile: &'a Profile, question: &TraceQuery) -> TraceReport<'a> {
    let stacks = question.filter.matcher(&profile.traces);
    let serials: FxHashSet<TraceSerial> = question.serials.iter().copied().collect();
    let threads = started_threads(profile);
    let is_of_thread = |serial: u32| match &question.thread {
        None => true,
        Some(ThreadFilter::Serial(wanted)) => serial == *wanted,
        Some(ThreadFilter::Pattern(wanted)) => {
            threads.get(&serial).is_some_and(|thread| wanted.matches(thread.object, Some(&thread.name)))
        }
    };
    let mut rows: Vec<&Trace> = (profile.traces.iter())
        .filter(|trace| serials.is_empty() || serials.contains(&trace.serial))
        .filter(|trace| is_of_thread(trace.thread) && stacks.matches(trace.serial))
        .collect();
    let matching = rows.len() as u64;
    rows.truncate(question.top.unwrap_or(usize::MAX));
    TraceReport { rows, matching }
}

/// Returns the started threads by serial number. Of several threads with one serial number, the last one counts.
pub fn started_threads(profile: &Profile) -> HashMap<u32, &StartedThread> {
    profile.threads.iter().map(|thread| (thread.serial, thread)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::stack_filter::tests::frame;
    use super::*;
    use hprof_values::ObjectId;
    use hprof_writer::hostile_keys::is_seeded;

    /// The file chooses the keys: without a seed it could choose those that collide.
    #[test]
    fn the_hash_is_seeded() {
        assert!(is_seeded(&started_threads(&Profile::default())));
    }

    fn sample() -> Profile {
        let mut profile = Profile::default();
        profile.traces.add(TraceSerial(7), 1, None, [frame("a.A", "x")]);
        profile.traces.add(TraceSerial(5), 2, None, [frame("a.A", "y"), frame("b.B", "main")]);
        profile.traces.add(TraceSerial(6), 0, None, []);
        for (serial, object, name) in [(1, 16, "main"), (2, 17, "pool-1")] {
            profile.threads.push(StartedThread {
                serial,
                object: ObjectId(object),
                name: name.into(),
                ..Default::default()
            });
        }
        profile
    }

    #[test]
    fn traces_by_serial_number_thread_and_frame() {
        let profile = sample();
        let found = |question: TraceQuery| -> Vec<u32> {
            super::traces(&profile, &question).rows.iter().map(|trace| trace.serial.0).collect()
        };
        let of_thread =
            |text: &str| TraceQuery { thread: Some(text.parse().unwrap()), ..TraceQuery::default() };
        assert_eq!(found(TraceQuery::default()), [7, 5, 6]);
        assert_eq!(
            found(TraceQuery { serials: [6, 7, 7, 9].map(TraceSerial).into(), ..TraceQuery::default() }),
            [7, 6]
        );
        assert_eq!(found(of_thread("2")), [5]);
        assert_eq!(found(of_thread("main")), [7]);
        assert_eq!(found(of_thread("0x11")), [5]);
        assert_eq!(found(of_thread("*")), [7, 5]);
        let filter = StackFilter { classes: vec!["b.B".parse().unwrap()], ..StackFilter::default() };
        assert_eq!(found(TraceQuery { filter, ..TraceQuery::default() }), [5]);
        let answer = super::traces(&profile, &TraceQuery { top: Some(2), ..TraceQuery::default() });
        assert_eq!((answer.rows.len(), answer.matching), (2, 3));
        assert_eq!(super::traces(&Profile::default(), &TraceQuery::default()), TraceReport::default());
    }
}
