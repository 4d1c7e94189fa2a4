//! Comparison of threads by name: new and gone threads, sizes of pools, changed stacks.
//!
//! Threads whose names differ only in numbers share a row, with `*` for the numbers that differ: `pool-1-thread-*` is a pool
//! whose numbers increase while it runs, `pool-*-thread-*` are pools created again and again. A name that is the only one of
//! its form in both dumps has a row of its own. Which case applies is known only once both dumps have been read, so a
//! [`ThreadCensus`] counts by form.

use std::cmp::Reverse;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use hprof_base::sorting::SortRows;
use hprof_index::Dump;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_model::dominators::retained_of_set::retained_by_tree;
use hprof_model::threads::fingerprints::Fingerprints;
use hprof_model::threads::{JavaThread, ThreadKind, ThreadQuery, ThreadState, Threads};

use hprof_base::change::{Change, Status};
use hprof_base::naming::stable_names::{fold_numbers, in_common};

/// Number of threads read at a time.
const CHUNK: usize = 1 << 12;

/// Key of a compared row of threads, the same in every dump.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ThreadKey {
    /// Form of the name: `*` for each number; `None` for threads without a name.
    form: Option<Arc<str>>,
    is_virtual: bool,
}

/// Value that is common to all threads added so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum CommonValue<T> {
    /// No thread was added.
    #[default]
    Nothing,
    /// The same value for all.
    One(T),
    /// Different values.
    Several,
}

impl<T: PartialEq> CommonValue<T> {
    fn add(&mut self, said: T) {
        *self = match std::mem::take(self) {
            Self::Nothing => Self::One(said),
            Self::One(known) if known == said => Self::One(known),
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    fn get(&self) -> Option<&T> {
        match self {
            Self::One(said) => Some(said),
            Self::Nothing | Self::Several => None,
        }
    }
}

/// Figures of the threads of one form in one dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ThreadFigures {
    /// Name, with `*` for the numbers in which the names differ.
    name: Option<String>,
    threads: u64,
    /// Retained size of the reachable threads, by the dominator tree.
    retained_bytes: u64,
    state: CommonValue<Option<ThreadState>>,
    group: CommonValue<Option<Arc<str>>>,
    is_daemon: CommonValue<Option<bool>>,
    /// Distinct stacks of the threads, ascending.
    stacks: Vec<u128>,
}

/// Threads of one dump, by form of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadCensus {
    rows: FxHashMap<ThreadKey, ThreadFigures>,
    /// Number of threads in the dump.
    pub threads: u64,
}

/// Result of comparing the stacks of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// The sets of distinct stacks (class, method and line of all frames) are equal.
    Same,
    /// The stacks are different.
    Other,
}

impl Stack {
    /// Returns the name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Other => "other",
        }
    }
}

/// Row of a comparison of threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadChange {
    /// Name, with `*` for the numbers in which the names differ.
    pub name: Option<String>,
    /// `true` for virtual threads.
    pub is_virtual: bool,
    /// Status of the row: new, gone, changed or the same.
    pub status: Status,
    /// Number of threads.
    pub threads: Change,
    /// Joint retained size of the threads; a thread that another one dominates counts once.
    pub retained_bytes: Change,
    /// State in the old dump, if it is the same for all threads.
    pub state_old: Option<ThreadState>,
    /// State in the new dump, if it is the same for all threads.
    pub state_new: Option<ThreadState>,
    /// Comparison of the threads' stacks, if both dumps have stacks.
    pub stack: Option<Stack>,
    /// Name of the thread group, if it is the same for all threads; from the new dump if it has the threads.
    pub group: Option<Arc<str>>,
    /// `true` for daemon threads; `None` if only some are.
    pub is_daemon: Option<bool>,
}

impl ThreadCensus {
    /// Reads the threads of a dump. Stacks are compared by hashes, so `seed` must be the same for both dumps.
    pub fn new(dump: &Dump<'_>, seed: u64) -> Self {
        let threads = Threads::new(dump);
        // Stacks are read separately, without the objects that they hold.
        let found = threads.find(&ThreadQuery { depth: Some(0), ..ThreadQuery::default() });
        let mut stacks = Fingerprints::new(&threads, seed);
        let mut texts = FxHashSet::default();
        let mut rows: FxHashMap<ThreadKey, (ThreadFigures, Vec<ObjectIndex>)> = FxHashMap::default();
        for chunk in found.rows.chunks(CHUNK) {
            let read: Vec<JavaThread> = chunk.par_iter().map(|row| threads.thread(row)).collect();
            for (row, thread) in chunk.iter().zip(read) {
                let JavaThread { name, kind, doing, group, is_daemon, .. } = thread;
                let form = name.as_deref().map(|name| intern(&mut texts, &fold_numbers(name)));
                let group = group.map(|group| intern(&mut texts, &group));
                let key = ThreadKey { form, is_virtual: kind == ThreadKind::Virtual };
                let (figures, objects) = rows.entry(key).or_default();
                figures.name = in_common(figures.name.take(), name);
                figures.threads += 1;
                figures.state.add(doing.state);
                figures.group.add(group);
                figures.is_daemon.add(is_daemon);
                figures.stacks.extend(stacks.fingerprint(row));
                objects.push(row.object());
            }
        }
        let rows = rows.into_iter().map(|(key, (mut figures, objects))| {
            figures.retained_bytes = retained_by_tree(&dump.graph.tree, objects);
            figures.stacks.sort_unstable();
            figures.stacks.dedup();
            (key, figures)
        });
        Self { rows: rows.collect(), threads: found.threads }
    }

    /// Matches an old dump and a new one; largest growth of the number of threads first.
    pub fn compare(old: &Self, new: &Self) -> Vec<ThreadChange> {
        let mut rows: Vec<ThreadChange> = super::join_by_key(&old.rows, &new.rows)
            .map(|(key, before, after)| ThreadChange::new(key, before, after))
            .collect();
        rows.sort_rows_by(|a, b| {
            let growth = |row: &ThreadChange| Reverse((row.threads.delta(), row.retained_bytes.delta()));
            let by_name = || a.name.cmp(&b.name).then(a.is_virtual.cmp(&b.is_virtual));
            growth(a).cmp(&growth(b)).then_with(by_name)
        });
        rows
    }
}

impl ThreadChange {
    fn new(key: &ThreadKey, old: Option<&ThreadFigures>, new: Option<&ThreadFigures>) -> Self {
        let change = |figure| Change::from_rows(old, new, figure);
        let name = |figures: Option<&ThreadFigures>| figures.and_then(|figures| figures.name.clone());
        let latest = new.or(old);
        let state = |figures: Option<&ThreadFigures>| figures.and_then(|figures| *figures.state.get()?);
        let stacks = |figures: Option<&ThreadFigures>| figures.map_or(0, |figures| figures.stacks.len());
        let stack = (stacks(old) > 0 && stacks(new) > 0).then(|| {
            let is_same = old.map(|old| &old.stacks) == new.map(|new| &new.stacks);
            if is_same { Stack::Same } else { Stack::Other }
        });
        // The current numbers in the names of a pool are irrelevant.
        let told = |figures: &ThreadFigures| (figures.threads, figures.retained_bytes, figures.state.clone());
        let is_same = old.map(told) == new.map(told) && stack != Some(Stack::Other);
        Self {
            name: in_common(name(old), name(new)),
            is_virtual: key.is_virtual,
            status: Status::from_presence(old.is_some(), new.is_some(), is_same),
            threads: change(|figures| figures.threads),
            retained_bytes: change(|figures| figures.retained_bytes),
            state_old: state(old),
            state_new: state(new),
            stack,
            group: latest.and_then(|latest| latest.group.get()?.clone()),
            is_daemon: latest.and_then(|latest| *latest.is_daemon.get()?),
        }
    }
}

/// Returns a shared copy of a text.
fn intern(texts: &mut FxHashSet<Arc<str>>, text: &str) -> Arc<str> {
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    let text: Arc<str> = text.into();
    texts.insert(text.clone());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a census of threads, each given as name, state, stack and retained size.
    fn census(threads: &[(&str, ThreadState, u128, u64)]) -> ThreadCensus {
        let mut census = ThreadCensus::default();
        for (name, state, stack, retained_bytes) in threads {
            let key = ThreadKey { form: Some(fold_numbers(name).into()), is_virtual: false };
            let figures = census.rows.entry(key).or_default();
            figures.name = in_common(figures.name.take(), Some((*name).to_owned()));
            figures.threads += 1;
            figures.retained_bytes += retained_bytes;
            figures.state.add(Some(*state));
            figures.stacks.push(*stack);
            figures.stacks.sort_unstable();
            figures.stacks.dedup();
        }
        census
    }

    fn told(rows: &[ThreadChange]) -> Vec<(&str, Status, u64, u64, Option<Stack>)> {
        let row = |row: &ThreadChange| (row.status, row.threads.old, row.threads.new, row.stack);
        rows.iter()
            .map(|of| {
                let (status, old, new, stack) = row(of);
                (of.name.as_deref().unwrap_or("-"), status, old, new, stack)
            })
            .collect()
    }

    #[test]
    fn names_that_differ_in_numbers_are_a_pool() {
        use ThreadState::{Runnable, Waiting};
        let old = census(&[
            ("main", Runnable, 1, 100),
            ("pool-1-thread-1", Waiting, 2, 10),
            ("worker-3", Waiting, 3, 10),
            ("Reference Handler", Waiting, 4, 10),
            ("C1 Thread", Runnable, 5, 10),
        ]);
        let new = census(&[
            ("main", Runnable, 9, 100),
            ("pool-1-thread-1", Waiting, 2, 10),
            ("pool-2-thread-1", Waiting, 2, 10),
            ("pool-2-thread-2", Waiting, 2, 10),
            ("worker-17", Waiting, 3, 10),
            ("C1 Thread", Runnable, 5, 10),
            ("Timer-0", Waiting, 6, 10),
        ]);
        let rows = ThreadCensus::compare(&old, &new);
        assert_eq!(
            told(&rows),
            [
                ("pool-*-thread-*", Status::Changed, 1, 3, Some(Stack::Same)),
                ("Timer-0", Status::New, 0, 1, None),
                ("C1 Thread", Status::Same, 1, 1, Some(Stack::Same)),
                ("main", Status::Changed, 1, 1, Some(Stack::Other)),
                ("worker-*", Status::Same, 1, 1, Some(Stack::Same)),
                ("Reference Handler", Status::Gone, 1, 0, None),
            ]
        );
        assert!(ThreadCensus::compare(&old, &old).iter().all(|row| row.status == Status::Same));
    }

    #[test]
    fn a_state_is_that_of_all_threads() {
        use ThreadState::{Blocked, Runnable};
        let old = census(&[("w-1", Runnable, 1, 0), ("w-2", Runnable, 1, 0)]);
        let new = census(&[("w-1", Runnable, 1, 0), ("w-2", Blocked, 2, 0)]);
        let rows = ThreadCensus::compare(&old, &new);
        let states: Vec<_> = rows.iter().map(|row| (row.state_old, row.state_new, row.stack)).collect();
        assert_eq!(states, [(Some(Runnable), None, Some(Stack::Other))]);
    }
}
