//! What threads are in and hold, and chains of references.

use rustc_hash::FxHashSet;

use hprof_index::graph::numbers::ObjectIndex;

use super::evaluate::Evaluator;
use super::stacks::Stacks;
use super::value::ExpressionValue;

/// Objects of a chain at most.
const MAX_CHAIN: usize = 1 << 20;

impl Evaluator<'_, '_> {
    /// The method that a thread is in.
    pub(super) fn frame(&self, thread: ObjectIndex) -> Option<String> {
        let new = || Stacks::new(self.summary, self.graph, self.objects.bytes());
        self.stacks.get_or_init(new).method(thread)
    }

    /// The objects that a thread's stack holds, each once, in address order, without the thread itself.
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

    /// The object, the one in this field of it, the one in that field of that, and so on, each once.
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
