//! What a FROM clause means: objects of the dump, or rows of a table; and who answers the queries inside a query.

use std::sync::Arc;

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

impl std::convert::From<Table> for Objects {
    fn from(table: Table) -> Self {
        let rows = (0u32..).take(table.rows.len()).collect();
        Self::Rows(Arc::new(table), rows)
    }
}
