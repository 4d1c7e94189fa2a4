//! Threads in expressions: the current method of a thread, objects that its stack references, and chains of references.

use crate::threads::frames::{Frame, Frames};
use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_index::model::tables::NONE;
use hprof_index::storage::id_map::IdMap;
use hprof_parser::{RootKind, TraceSerial, names};

const MAX_FRAMES: usize = 1 << 12;

/// Stack traces of the threads of a dump.
#[derive(Debug)]
pub(super) struct Stacks<'a> {
    frames: Frames<'a>,
    of_thread: IdMap<ObjectIndex, TraceSerial>,
}

impl<'a> Stacks<'a> {
    /// Looks at the threads among the roots; `bytes` are the dump's.
    pub(super) fn new(summary: &'a Summary, graph: &ObjectGraph, bytes: &'a [u8]) -> Self {
        let roots = &graph.roots;
        let mut of_thread = IdMap::default();
        for root in roots.rows.iter().filter(|root| root.kind == RootKind::ThreadObject) {
            let (Some(thread), Some(serial)) = (root.thread, root.thread_serial) else { continue };
            let trace = roots.trace_of_thread(serial).filter(|trace| trace.0 != NONE);
            if let Some(trace) = trace.filter(|_| thread == root.object) {
                of_thread.entry(thread).or_insert(trace);
            }
        }
        Self { frames: Frames::new(summary, bytes), of_thread }
    }

    /// Returns class and method of the innermost frame of a thread outside the JDK; of the innermost frame if there is none.
    pub(super) fn method(&self, thread: ObjectIndex) -> Option<String> {
        let trace = self.of_thread.get(&thread)?;
        let all = || self.frames.of_trace(*trace).take(MAX_FRAMES).filter_map(|id| self.frames.frame(id));
        let is_own = |frame: &Frame| frame.class.as_deref().is_some_and(|class| !names::is_of_jdk(class));
        all().find(is_own).or_else(|| all().next()).map(|frame| frame.qualified_method())
    }
}
