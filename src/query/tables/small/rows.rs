//! Copying of rows from one batch to another.

use std::ops::Range;
use std::sync::Arc;

use super::super::batch::{Cell, Values};

/// Copies a range of a column's values to another batch that has the same names ([`super::Table::names`]).
pub(super) fn copy(from: &Values, rows: Range<usize>, to: &mut Values) {
    if let (Values::Names { names, numbers, .. }, Values::Names { names: known, .. }) = (from, &*to)
        && Arc::ptr_eq(names, known)
    {
        let numbers = numbers.get(rows).unwrap_or_default();
        numbers.iter().for_each(|number| to.name(Some(*number)));
        return;
    }
    for row in rows {
        match (from.cell(row), &*to) {
            (Cell::Integer(value), _) => to.integer(Some(value)),
            (Cell::Real(value), _) => to.real(Some(value)),
            (Cell::Text(value), _) => to.text(Some(value)),
            (Cell::Null, Values::Integers { .. }) => to.integer(None),
            (Cell::Null, Values::Reals { .. }) => to.real(None),
            (Cell::Null, _) => to.text(None),
        }
    }
}
