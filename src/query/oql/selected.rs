//! What a FROM clause means: objects of the dump, or rows of a table; who answers the queries inside a query; and names
//! that are bound to values.

use std::sync::Arc;

use hprof_index::graph::numbers::ObjectIndex;
use roaring::RoaringBitmap;

use super::code::{Found, Table};
use super::error::Wrong;
use super::tree::Union;
use super::value::Value;

/// The objects that a FROM clause means.
#[derive(Debug)]
pub(super) enum Objects {
    /// Those of these classes, by class number.
    Classes(Vec<bool>),
    /// These.
    Set(RoaringBitmap),
    /// These rows of a table.
    Rows(Arc<Table>, RoaringBitmap),
}

impl Objects {
    /// The table that rows are of, if they are no objects.
    pub(super) fn table(&self) -> Option<&Arc<Table>> {
        match self {
            Self::Rows(table, _) => Some(table),
            _ => None,
        }
    }

    /// Some of these.
    pub(super) fn only(&self, rows: RoaringBitmap) -> Self {
        match self {
            Self::Rows(table, _) => Self::Rows(table.clone(), rows),
            _ => Self::Set(rows),
        }
    }
}

/// Answers the queries inside a query.
pub(super) trait Ask {
    /// What a query gives that is selected from: objects, or rows of columns.
    fn rows(&self, query: &Union) -> Result<Objects, Wrong>;
    /// The objects and values that a query gives.
    fn found(&self, query: &Union) -> Result<Arc<Found>, Wrong>;
    /// What a query in an expression gives: a value, or several.
    fn value(&self, query: &Union) -> Result<Value, Wrong>;
    /// The value of a name that is bound, the same for all rows.
    fn bound(&self, name: &str) -> Option<Value>;
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
pub(crate) struct BoundValue(pub(super) Value);

impl BoundValue {
    /// An object.
    pub(crate) fn of(object: ObjectIndex) -> Self {
        Self(Value::Object(object))
    }

    /// Returns whether the value counts as true in a condition.
    pub(crate) fn is_true(&self) -> bool {
        self.0.is_true()
    }

    /// The value, if it is a truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        if let Value::Boolean(value) = self.0 { Some(value) } else { None }
    }

    /// The value, if it is a whole number.
    pub(crate) fn whole(&self) -> Option<i64> {
        if let Value::Whole(value) = self.0 { Some(value) } else { None }
    }

    /// The value, if it is a number with a fraction.
    pub(crate) fn double(&self) -> Option<f64> {
        match self.0 {
            Value::Float(value) => Some(value.into()),
            Value::Double(value) => Some(value),
            _ => None,
        }
    }
}

impl std::convert::From<Table> for Objects {
    fn from(table: Table) -> Self {
        let rows = (0u32..).take(table.rows.len()).collect();
        Self::Rows(Arc::new(table), rows)
    }
}
