//! Threads in expressions: the current method of a thread, objects that its stack references, and chains of references.

use rustc_hash::FxHashSet;

use crate::threads::frames::{Frame, Frames};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::NONE;
use hprof_index::storage::id_map::IdMap;
use hprof_parser::{RootKind, TraceSerial, names};

use super::evaluate::Evaluator;
use super::value::ExpressionValue;

/// Maximum number of objects of a chain.
const MAX_CHAIN: usize = 1 << 20;
/// Maximum number of frames searched for one of the application.
const MAX_FRAMES: usize = 1 << 12;

/// Stack traces of the threads of a dump.
#[derive(Debug)]
pub(super) struct Stacks<'a> {
    frames: Frames<'a>,
    of_thread: IdMap<ObjectIndex, TraceSerial>,
}

impl<'a> Evaluator<'_, 'a> {
    fn stacks(&self) -> &Stacks<'a> {
        self.stacks.get_or_init(|| {
            let roots = &self.graph.roots;
            let mut of_thread = IdMap::default();
            for root in roots.rows.iter().filter(|root| root.kind == RootKind::ThreadObject) {
                let (Some(thread), Some(serial)) = (root.thread, root.thread_serial) else { continue };
                let trace = roots.trace_of_thread(serial).filter(|trace| trace.0 != NONE);
                if let Some(trace) = trace.filter(|_| thread == root.object) {
                    of_thread.entry(thread).or_insert(trace);
                }
            }
            Stacks { frames: Frames::new(self.summary, self.objects.bytes()), of_thread }
        })
    }

    /// Returns class and method of the innermost frame of a thread outside the JDK; of the innermost frame if there is none.
    pub(super) fn frame(&self, thread: ObjectIndex) -> Option<String> {
        let Stacks { frames, of_thread } = self.stacks();
        let trace = of_thread.get(&thread)?;
        let all = || frames.of_trace(*trace).take(MAX_FRAMES).filter_map(|id| frames.frame(id));
        let is_own = |frame: &Frame| frame.class.as_deref().is_some_and(|class| !names::is_of_jdk(class));
        all().find(is_own).or_else(|| all().next()).map(|frame| frame.qualified_method())
    }

    /// Returns the objects that a thread's stack references, each once, in address order, without the thread itself.
    pub(super) fn locals(&self, thread: ObjectIndex) -> Vec<ObjectIndex> {
        let mut objects: Vec<ObjectIndex> = self
            .roots()
            .locals_of(thread)
            .map(|root| root.object)
            .filter(|object| *object != thread)
            .collect();
        objects.sort_unstable();
        objects.dedup();
        objects
    }

    /// Returns the chain of objects that starts with `first` and follows `field`, each object once.
    pub(super) fn chain(&self, first: ObjectIndex, field: &str) -> ExpressionValue {
        let most = self.bound.unwrap_or(MAX_CHAIN).min(MAX_CHAIN);
        let mut seen = FxHashSet::default();
        let next = |object: &ObjectIndex| self.objects.reference(*object, field);
        let objects = std::iter::successors(Some(first), next).take(most.saturating_add(1));
        let objects: Vec<ExpressionValue> =
            objects.take_while(|object| seen.insert(*object)).map(ExpressionValue::Object).collect();
        match objects.len() > most {
            true if self.bound.is_some() => ExpressionValue::Null,
            _ => ExpressionValue::Many(objects.into_iter().take(most).collect()),
        }
    }
}
