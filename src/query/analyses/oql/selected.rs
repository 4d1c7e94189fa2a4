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
    /// Returns the table that rows belong to, if they are not objects.
    pub(super) fn table(&self) -> Option<&Arc<ValueTable>> {
        match self {
            Self::Rows(table, _) => Some(table),
            _ => None,
        }
    }

    /// Returns a subset of the rows.
    pub(super) fn subset(&self, rows: RoaringBitmap) -> Self {
        match self {
            Self::Rows(table, _) => Self::Rows(table.clone(), rows),
            _ => Self::Set(rows),
        }
    }
}

/// Evaluation of nested queries.
pub(super) trait SubqueryEvaluator {
    /// Returns the rows of a query in FROM: objects, or rows of columns.
    fn rows(&self, query: &Union) -> Result<Objects, OqlError>;
    /// Returns the objects and values that a query finds.
    fn query_set(&self, query: &Union) -> Result<Arc<QuerySet>, OqlError>;
    /// Returns the value, or the values, of a query in an expression.
    fn value(&self, query: &Union) -> Result<ExpressionValue, OqlError>;
    /// The value of a name that is bound, the same for all rows.
    fn bound(&self, name: &str) -> Option<ExpressionValue>;
}

/// What is the same for a query and all queries inside it.
#[derive(Clone, Copy)]
pub(super) struct Around<'r> {
    /// The text.
    pub(super) text: &'r str,
    /// Names that mean a value.
    pub(super) bindings: Option<&'r dyn Bindings>,
}

/// The values of names.
pub(crate) trait Bindings {
    /// The value of a name; `None` if it is not bound.
    fn binding(&self, name: &str) -> Option<BoundValue>;
}

/// A value of a bound expression.
#[derive(Debug, Clone)]
pub(crate) struct BoundValue(pub(super) ExpressionValue);

impl BoundValue {
    /// An object.
    pub(crate) fn from_object(object: ObjectIndex) -> Self {
        Self(ExpressionValue::Object(object))
    }

    /// Returns whether the value counts as true in a condition.
    pub(crate) fn is_true(&self) -> bool {
        self.0.is_true()
    }

    /// The value, if it is a truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        if let ExpressionValue::Boolean(value) = self.0 { Some(value) } else { None }
    }

    /// The value, if it is a whole number.
    pub(crate) fn integer(&self) -> Option<i64> {
        if let ExpressionValue::Whole(value) = self.0 { Some(value) } else { None }
    }

    /// The value, if it is a number with a fraction.
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
