//! Work in progress: memory that the stack of a running thread holds.

use hprof_index::graph::numbers::{ObjectIndex, TreePosition};

use crate::leaks::contents::Reason;
use crate::leaks::{Suspect, SuspectKind, SuspectSubject};
use hprof_model::threads::frames::Frame;

use super::LeakJudge;

/// Native methods, without trailing digits, in which a thread waits for others although the JVM reports it as
/// runnable.
const WAITING_NATIVES: [&str; 26] = [
    "accept",
    "connect",
    "epollWait",
    "eventLoop",
    "forkAndExec",
    "getQueuedCompletionStatus",
    "implAccept",
    "kevent",
    "keventWait",
    "park",
    "peekData",
    "poll",
    "read",
    "readBytes",
    "readv",
    "receive",
    "select",
    "socketAccept",
    "socketConnect",
    "socketRead",
    "take",
    "wait",
    "waitForEvents",
    "waitForProcessExit",
    "waitForReferencePendingList",
    "write",
];
/// Words in the names of classes outside the JDK that have native methods which wait.
const NATIVE_CLASSES: [&str; 4] = ["Native", "Poll", "jni", "KQueue"];
/// Maximum number of characters of a thread's name.
const MAX_NAME: usize = 80;
/// Maximum number of a suspect's objects whose threads are searched.
const MAX_TOPS: usize = 1 << 10;
/// Maximum number of threads of a group whose locals are examined.
const MAX_LOOKED_INTO: usize = 8;
/// Maximum number of dominators that are examined to find a thread.
const MAX_STEPS: usize = 1 << 12;

impl LeakJudge<'_, '_> {
    /// Returns the threads whose stacks hold a suspect: threads that dominate it without a static field above, or the thread at
    /// the root of all paths.
    pub(super) fn holding_threads(&self, suspect: &Suspect, positions: &[TreePosition]) -> Vec<ObjectIndex> {
        let tree = &self.graph.tree;
        let Some(paths) = &suspect.paths else { return Vec::new() };
        // Fields of the thread's own class and ThreadLocals belong to the program, not to the stack.
        let are_by_stack = paths.only_frames || paths.local.is_some() || paths.path.root.frame.is_some();
        if suspect.what == SuspectSubject::Thread {
            // The threads that retain the most come first; a group has others in addition to the pool.
            let most = match &suspect.reason {
                Some(Reason::Threads { threads, .. }) => usize::try_from(*threads).unwrap_or(MAX_TOPS),
                _ => MAX_TOPS,
            };
            let threads: Vec<ObjectIndex> = match suspect.kind {
                SuspectKind::Single => self.object(suspect.object.object).into_iter().collect(),
                SuspectKind::Group => {
                    let all = positions.iter().take(most.min(MAX_TOPS));
                    all.filter_map(|at| tree.object_at(*at)).collect()
                }
            };
            let by_local = |thread: &ObjectIndex| self.reader.evidence.local_of(*thread).is_some();
            let are_by_stack =
                suspect.main_thread_local().is_none() && threads.iter().take(MAX_LOOKED_INTO).all(by_local);
            return if are_by_stack { threads } else { Vec::new() };
        }
        let top = |position: TreePosition| {
            let above = std::iter::successors(Some(position), |at| tree.dominator(*at)).take(MAX_STEPS);
            tree.object_at(above.last()?)
        };
        let mut tops: Vec<Option<ObjectIndex>> = positions.iter().take(MAX_TOPS).map(|at| top(*at)).collect();
        tops.sort_unstable();
        tops.dedup();
        let are_threads =
            tops.iter().all(|top| top.is_some_and(|top| self.reader.all_threads.is_running(top)));
        if are_by_stack && are_threads {
            return tops.into_iter().flatten().collect();
        }
        // If several threads hold it, not all of them are known.
        let root = &paths.path.root;
        let is_alone = root.more_threads == 0 && paths.other_threads.is_empty();
        let of_paths = root.thread.as_ref().and_then(|thread| self.object(thread.id?));
        of_paths.filter(|_| is_alone && paths.only_frames).into_iter().collect()
    }

    /// Describes the work of a thread if it is running, or waits for the result of a thread that is.
    pub(super) fn progress(&self, thread: ObjectIndex) -> Option<String> {
        if self.reader.all_threads.is_out_of_memory(thread) {
            return None;
        }
        if self.is_at_work(thread) {
            return Some(format!("{} is running, and only its stack holds it", self.name(thread)));
        }
        let task = self.reader.all_threads.blocker(thread)?;
        let runner = self.objects.reference(task, "runner")?;
        let is_at_work = !self.reader.all_threads.is_out_of_memory(runner) && self.is_at_work(runner);
        is_at_work.then(|| {
            format!("{} waits for a result that {} is computing", self.name(thread), self.name(runner))
        })
    }

    /// Returns whether a thread is runnable and not in a native method that waits.
    fn is_at_work(&self, thread: ObjectIndex) -> bool {
        let waits = |frame: Frame| {
            let method = frame.method.as_deref().unwrap_or_default();
            let method = method.trim_end_matches(|digit: char| digit.is_ascii_digit());
            let class = frame.class.as_deref().unwrap_or_default();
            let is_native = !frame.is_own() || NATIVE_CLASSES.iter().any(|word| class.contains(word));
            is_native && WAITING_NATIVES.contains(&method)
        };
        self.reader.all_threads.is_runnable(thread)
            && !self.reader.all_threads.frames_of(thread).next().is_none_or(waits)
    }

    fn name(&self, thread: ObjectIndex) -> String {
        match self.reader.all_threads.name_of(thread) {
            Some(name) => {
                // The name becomes part of a sentence.
                let is_plain = |letter: &char| !letter.is_control() && *letter != '"';
                format!("thread \"{}\"", name.chars().filter(is_plain).take(MAX_NAME).collect::<String>())
            }
            None => "a thread".to_owned(),
        }
    }
}
