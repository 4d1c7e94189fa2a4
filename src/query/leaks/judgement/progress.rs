//! Work in progress: what a running thread holds by its stack.

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

use crate::leaks::{Suspect, SuspectObject};
use crate::threads::frames::Frame;

use super::LeakJudge;

/// Native methods in which a thread that the JVM calls runnable waits for others.
const WAITING_NATIVES: [&str; 18] = [
    "accept",
    "accept0",
    "connect0",
    "epollWait",
    "forkAndExec",
    "implAccept",
    "kevent",
    "poll",
    "poll0",
    "read0",
    "readBytes",
    "receive0",
    "socketAccept",
    "socketConnect",
    "socketRead0",
    "take",
    "wait",
    "waitForProcessExit0",
];
/// More of them: those that wait for the collector, and for an event of the system.
const WAITING_INSIDE: [&str; 4] =
    ["waitForReferencePendingList", "getQueuedCompletionStatus", "select", "park"];
/// Maximum number of objects of a suspect whose threads are looked for.
const MAX_TOPS: usize = 1 << 10;
/// Maximum number of dominators that are looked at to find a thread.
const MAX_STEPS: usize = 1 << 12;

impl LeakJudge<'_, '_> {
    /// Returns the threads whose stacks hold a suspect: those that dominate it without a static field above, or the one at
    /// the root of all paths.
    pub(super) fn holding_threads(&self, suspect: &Suspect, positions: &[TreePosition]) -> Vec<ObjectIndex> {
        let tree = &self.graph.tree;
        if suspect.what == SuspectObject::Thread {
            return positions.iter().take(MAX_TOPS).filter_map(|at| tree.object_at(*at)).collect();
        }
        let Some(paths) = &suspect.paths else { return Vec::new() };
        let top = |position: TreePosition| {
            let above = std::iter::successors(Some(position), |at| tree.dominator(*at)).take(MAX_STEPS);
            tree.object_at(above.last()?)
        };
        let mut tops: Vec<Option<ObjectIndex>> = positions.iter().take(MAX_TOPS).map(|at| top(*at)).collect();
        tops.sort_unstable();
        tops.dedup();
        // A field of the thread's own class is a place of the program.
        let are_by_stack = paths.only_frames || paths.local.is_some() || paths.path.root.frame.is_some();
        let are_threads = tops.iter().all(|top| top.is_some_and(|top| self.threads.is_running(top)));
        if are_by_stack && are_threads {
            return tops.into_iter().flatten().collect();
        }
        let of_paths = paths.path.root.thread.as_ref().and_then(|thread| self.object(thread.id?));
        of_paths.filter(|_| paths.only_frames || paths.local.is_some()).into_iter().collect()
    }

    /// Returns what a thread does if it is at work, or waits for the result of one that is.
    pub(super) fn progress(&self, thread: ObjectIndex) -> Option<String> {
        if self.threads.is_out_of_memory(thread) {
            return None;
        }
        if self.is_at_work(thread) {
            return Some(format!("{} runs, and only its stack holds it", self.name(thread)));
        }
        let task = self.threads.blocker(thread)?;
        let runner = self.objects.reference(task, "runner")?;
        let is_at_work = !self.threads.is_out_of_memory(runner) && self.is_at_work(runner);
        is_at_work
            .then(|| format!("{} waits for a result that {} computes", self.name(thread), self.name(runner)))
    }

    /// Returns whether a thread is runnable and not in a native method that waits.
    fn is_at_work(&self, thread: ObjectIndex) -> bool {
        let waits = |frame: Frame| {
            let method = frame.method.as_deref().unwrap_or_default();
            !frame.is_own() && WAITING_NATIVES.iter().chain(&WAITING_INSIDE).any(|native| *native == method)
        };
        self.threads.is_runnable(thread) && !self.threads.frames_of(thread).next().is_none_or(waits)
    }

    fn name(&self, thread: ObjectIndex) -> String {
        match self.threads.name_of(thread) {
            Some(name) => format!("thread \"{name}\""),
            None => "a thread".to_owned(),
        }
    }
}
