//! Result of a FROM clause: objects of the dump, or rows of a table; and the evaluation of nested queries.

use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use roaring::RoaringBitmap;

use super::code::{QuerySet, ValueTable};
use super::error::OqlError;
use super::tree::Union;
use super::value::ExpressionValue;

/// Objects or rows that a FROM clause selects.
#[derive(Debug)]
pub(super) enum Objects {
    /// Objects of these classes, by class number.
    Classes(Vec<bool>),
    /// Listed objects.
    Set(RoaringBitmap),
    /// Listed rows of a table.
    Rows(Arc<ValueTable>, RoaringBitmap),
}

impl Objects {
    /// Returns the table to which the rows belong, if they are not objects.
    pub(super) fn table(&self) -> Option<&Arc<ValueTable>> {
        match self {
            Self::Rows(table, _) => Some(table),
            _ => None,
        }
    }

    /// Returns a source with only the given rows.
    pub(super) fn subset(&self, rows: RoaringBitmap) -> Self {
        match self {
            Self::Rows(table, _) => Self::Rows(table.clone(), rows),
            _ => Self::Set(rows),
        }
    }
}

/// Evaluator of nested queries.
pub(super) trait SubqueryEvaluator {
    /// Returns the rows of a query in FROM: objects, or rows with columns.
    fn rows(&self, query: &Union) -> Result<Objects, OqlError>;
    /// Returns the objects and values that a query returns, as a set.
    fn query_set(&self, query: &Union) -> Result<Arc<QuerySet>, OqlError>;
    /// Returns the value or the values of a query that is part of an expression.
    fn value(&self, query: &Union) -> Result<ExpressionValue, OqlError>;
    /// Returns the value of a bound name, the same for all rows.
    fn bound(&self, name: &str) -> Option<ExpressionValue>;
}

/// Context of a query and all queries nested in it.
#[derive(Clone, Copy)]
pub(super) struct QueryContext<'r> {
    /// Text of the outermost query.
    pub(super) text: &'r str,
    /// Values of bound names.
    pub(super) bindings: Option<&'r dyn Bindings>,
}

/// Values of bound names.
pub(crate) trait Bindings {
    /// Returns the value of a name; `None` if it is not bound.
    fn binding(&self, name: &str) -> Option<BoundValue>;
}

/// Value of a bound expression.
#[derive(Debug, Clone)]
pub(crate) struct BoundValue(pub(super) ExpressionValue);

impl BoundValue {
    /// Creates a value that is an object.
    pub(crate) fn from_object(object: ObjectIndex) -> Self {
        Self(ExpressionValue::Object(object))
    }

    /// Returns whether the value counts as true in a condition.
    pub(crate) fn is_true(&self) -> bool {
        self.0.is_true()
    }

    /// Returns the value, if it is a boolean.
    pub(crate) fn truth(&self) -> Option<bool> {
        if let ExpressionValue::Boolean(value) = self.0 { Some(value) } else { None }
    }

    /// Returns the value, if it is a whole number.
    pub(crate) fn integer(&self) -> Option<i64> {
        if let ExpressionValue::Whole(value) = self.0 { Some(value) } else { None }
    }

    /// Returns the value, if it is a floating-point number.
    pub(crate) fn double(&self) -> Option<f64> {
        match self.0 {
            ExpressionValue::Float(value) => Some(value.into()),
            ExpressionValue::Double(value) => Some(value),
            _ => None,
        }
    }
}

impl std::convert::From<ValueTable> for Objects {
    fn from(table: ValueTable) -> Self {
        let rows = (0u32..).take(table.rows.len()).collect();
        Self::Rows(Arc::new(table), rows)
    }
}
