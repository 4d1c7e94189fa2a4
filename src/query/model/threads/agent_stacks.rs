//! Stacks in dumps of HotSpot's serviceability agent (`jhsdb jmap`, also of core files).
//!
//! Its `HeapHprofBinWriter` numbers the threads of STACK TRACE records from 1, without threads that are hidden from tools, and
//! those of roots with them: the k-th visible thread of the roots has the stacks of thread k. A dump does not say which threads
//! are hidden, but only threads of the JVM itself are, which have no Java frames.

use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::TraceSerial;

/// Number of bytes of a thread's name that [`may_be_hidden`] looks at.
pub(super) const EXAMINED: usize = 32;
/// Starts of the names of threads that the agent may hide (its subclasses of `JavaThread` that override
/// `isHiddenFromExternalView`).
const HIDDEN_THREADS: [&str; 8] = [
    "C1 CompilerThread",
    "C2 CompilerThread",
    "JVMCI CompilerThread",
    "Service Thread",
    "Monitor Deflation Thread",
    "Notification Thread",
    "Sweeper thread",
    "StringDedup",
];

/// Stack of a thread, as a STACK TRACE record states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedStack {
    /// Serial number of the thread.
    pub(super) thread: u32,
    /// Serial number of the trace.
    pub(super) trace: TraceSerial,
    /// `true` if it has frames.
    pub(super) has_frames: bool,
}

/// Returns `true` if the agent may hide a thread with this name.
pub(super) fn may_be_hidden(name: &str) -> bool {
    HIDDEN_THREADS.iter().any(|start| name.starts_with(start))
}

/// Returns the stack of each thread, for threads in the order of their roots, each with whether it may be hidden; `None` if the
/// numbers of threads and stacks do not fit.
pub(super) fn assign(
    threads: &[(ObjectIndex, bool)],
    mut stacks: Vec<RecordedStack>,
) -> Option<Vec<(ObjectIndex, Option<TraceSerial>)>> {
    stacks.retain(|stack| stack.thread > 0);
    stacks.sort_unstable_by_key(|stack| (stack.thread, stack.trace));
    let is_numbered = stacks.iter().zip(1..).all(|(stack, number)| stack.thread == number);
    let of_jvm = threads.iter().filter(|(_, may_hide)| *may_hide).count();
    let hidden = threads.len().checked_sub(stacks.len()).filter(|hidden| is_numbered && *hidden <= of_jvm)?;
    // Which of the JVM's threads are visible does not matter: none has frames, and they start one after another.
    let mut visible = of_jvm - hidden;
    let mut next = stacks.iter().peekable();
    let mut assigned = Vec::with_capacity(threads.len());
    for (thread, may_hide) in threads {
        let is_hidden = *may_hide && (visible == 0 || next.peek().is_none_or(|stack| stack.has_frames));
        let stack = if is_hidden { None } else { Some(next.next()?) };
        visible -= usize::from(*may_hide && !is_hidden);
        assigned.push((*thread, stack.map(|stack| stack.trace)));
    }
    next.next().is_none().then_some(assigned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(frames: &[bool]) -> Vec<RecordedStack> {
        let stack = |(has_frames, thread): (&bool, u32)| RecordedStack {
            thread,
            trace: TraceSerial(thread + 1),
            has_frames: *has_frames,
        };
        frames.iter().zip(1..).map(stack).collect()
    }

    fn traces_of_threads(names: &[&str], frames: &[bool]) -> Option<Vec<Option<u32>>> {
        let threads: Vec<(ObjectIndex, bool)> =
            (0..).zip(names).map(|(at, name)| (ObjectIndex(at), may_be_hidden(name))).collect();
        let all = assign(&threads, stacks(frames))?;
        Some(all.into_iter().map(|(_, trace)| trace.map(|trace| trace.0)).collect())
    }

    #[test]
    fn visible_threads_have_the_stacks_in_their_order() {
        let names = ["main", "Signal Dispatcher", "Service Thread", "C2 CompilerThread0", "worker"];
        assert_eq!(
            traces_of_threads(&names, &[true, false, true]),
            Some(vec![Some(2), Some(3), None, None, Some(4)])
        );
        // One of the JVM's threads is visible.
        assert_eq!(
            traces_of_threads(&names, &[true, false, false, true]),
            Some(vec![Some(2), Some(3), Some(4), None, Some(5)])
        );
        assert_eq!(traces_of_threads(&["main"], &[true]), Some(vec![Some(2)]));
    }

    #[test]
    fn numbers_that_do_not_fit_assign_nothing() {
        assert_eq!(traces_of_threads(&["main", "worker"], &[true]), None);
        assert_eq!(traces_of_threads(&["main"], &[true, true]), None);
        assert_eq!(traces_of_threads(&["Service Thread", "main"], &[true, true]), None);
        let threads = [(ObjectIndex(0), false)];
        let stack = RecordedStack { thread: 7, trace: TraceSerial(1), has_frames: true };
        assert_eq!(assign(&threads, vec![stack]), None);
    }
}
