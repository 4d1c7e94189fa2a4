//! Threads in expressions: the current method of a thread, objects that its stack references, and chains of references.

use rustc_hash::FxHashSet;

use hprof_index::graph::numbers::ObjectIndex;

use hprof_model::threads::Threads;

use super::evaluate::Evaluator;
use super::value::ExpressionValue;

/// Maximum number of objects of a chain.
const MAX_CHAIN: usize = 1 << 20;

impl Evaluator<'_, '_> {
    /// Returns class and method of the innermost frame of a thread outside the JDK; of the innermost frame if there is none.
    pub(super) fn frame(&self, thread: ObjectIndex) -> Option<String> {
        let new = || Threads::new(self.dump);
        let threads = self.threads.get_or_init(new);
        let frame = threads.own_frame(thread).or_else(|| threads.frames_of(thread).next());
        frame.map(|frame| frame.qualified_method())
    }

    /// Returns the objects that a thread's stack holds, without duplicates, in address order; the thread itself is omitted.
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

    /// Returns the object, the target of its field with this name, the target of that object's field, and so on, without
    /// duplicates.
    pub(super) fn chain(&self, first: ObjectIndex, field: &str) -> ExpressionValue {
        let most = self.bound.unwrap_or(MAX_CHAIN).min(MAX_CHAIN);
        let mut seen = FxHashSet::default();
        let next = |object: &ObjectIndex| self.dump.objects.reference(*object, field);
        let objects = std::iter::successors(Some(first), next).take(most.saturating_add(1));
        let objects: Vec<ExpressionValue> =
            objects.take_while(|object| seen.insert(*object)).map(ExpressionValue::Object).collect();
        match objects.len() > most {
            true if self.bound.is_some() => ExpressionValue::Null,
            _ => ExpressionValue::from_values(objects.into_iter().take(most).collect()),
        }
    }
}
