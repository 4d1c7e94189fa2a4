//! Lists in memory: objects in ascending order as a set, other values one by one, within the memory budget.

use std::sync::Arc;

use roaring::RoaringBitmap;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::storage::scratch::ReservedMemory;

use crate::oql::error::OqlError;
use crate::oql::evaluate::Evaluator;
use crate::oql::kept;
use crate::oql::source::MAX_ROWS;
use crate::oql::value::{ExpressionValue, ValueList};

/// Values that are collected to a list.
pub(super) struct ListCollector<'e, 'o, 'a> {
    evaluator: &'e Evaluator<'o, 'a>,
    /// Offset in the query.
    at: usize,
    /// Objects, as long as they arrive in ascending order.
    set: Option<RoaringBitmap>,
    values: Vec<ExpressionValue>,
    reserved: ReservedMemory,
}

impl<'e, 'o, 'a> ListCollector<'e, 'o, 'a> {
    /// Creates an empty list. `at` is the offset of its expression in the query.
    pub(super) fn new(evaluator: &'e Evaluator<'o, 'a>, at: usize) -> Self {
        let reserved = evaluator.kept.room(evaluator.dump.graph).reserve();
        Self { evaluator, at, set: Some(RoaringBitmap::new()), values: Vec::new(), reserved }
    }

    /// Adds a value. Returns `false`, with the error recorded, if the list becomes too long.
    pub(super) fn push(&mut self, value: ExpressionValue) -> bool {
        if let Some(set) = &mut self.set {
            if let ExpressionValue::Object(object) = value
                && set.max().is_none_or(|last| last < object.0)
            {
                set.insert(object.0);
                return self.has_memory(2);
            }
            let objects = self.set.take().unwrap_or_default();
            for object in objects.iter().map(ObjectIndex) {
                if !self.add(ExpressionValue::Object(object)) {
                    return false;
                }
            }
        }
        self.add(value)
    }

    fn add(&mut self, value: ExpressionValue) -> bool {
        if self.values.len() >= MAX_ROWS {
            let text = format!("a list can have at most {MAX_ROWS} values; use SELECT ... FROM a class");
            self.evaluator.kept.record(OqlError::new(self.at, text));
            return false;
        }
        // A growing vector temporarily exists twice.
        if !self.has_memory(2 * value.bytes()) {
            return false;
        }
        self.values.push(value);
        true
    }

    fn has_memory(&mut self, bytes: u64) -> bool {
        if self.reserved.take(bytes) {
            return true;
        }
        let room = self.evaluator.kept.room(self.evaluator.dump.graph);
        self.evaluator.kept.record(kept::too_much(self.at, "the lists of this query", room));
        false
    }

    /// Returns the list.
    pub(super) fn finish(self) -> ExpressionValue {
        match self.set {
            Some(set) if !set.is_empty() => ExpressionValue::Objects(Arc::new(set)),
            Some(_) => ExpressionValue::from_values(Vec::new()),
            None => ExpressionValue::Many(Arc::new(ValueList::new(self.values, Some(self.reserved)))),
        }
    }
}
