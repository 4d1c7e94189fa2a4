//! Builder of the rows of a small table.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::batch::{Batch, Cell, NO_NAME, Values};
use super::super::column_names::{ColumnNames, NameList};
use super::super::definition::{Column, ColumnType, Wanted};
use super::super::fact_columns::FactColumns;
use hprof_base::fact::FactValue;
use hprof_index::model::summary::Summary;

/// Rows under construction. Values of a row are added from left to right, followed by [`RowWriter::end`].
pub(crate) struct RowWriter {
    batch: Batch,
    /// Numbers of the names, by column. Finding them in the batch would take a step for each name.
    names: Vec<FxHashMap<Arc<str>, u32>>,
    /// Names by number, by column.
    lists: Vec<NameList>,
    is_name: Vec<bool>,
    /// Next column.
    at: usize,
}

impl RowWriter {
    pub(super) fn new(columns: &[Column]) -> Self {
        Self {
            batch: Batch::new(columns, Wanted::ALL, |_| ColumnNames::default()),
            names: vec![FxHashMap::default(); columns.len()],
            lists: vec![NameList::default(); columns.len()],
            is_name: columns.iter().map(|column| column.kind == ColumnType::Name).collect(),
            at: 0,
        }
    }

    fn next(&mut self) -> &mut Values {
        self.at += 1;
        self.batch.column(self.at - 1)
    }

    /// Adds a count or a size.
    pub(super) fn count(&mut self, value: impl Into<Option<u64>>) -> &mut Self {
        self.next().count(value.into());
        self
    }

    /// Adds an integer.
    pub(super) fn integer(&mut self, value: impl Into<Option<i64>>) -> &mut Self {
        self.next().integer(value.into());
        self
    }

    /// Adds a boolean.
    pub(super) fn boolean(&mut self, value: impl Into<Option<bool>>) -> &mut Self {
        self.next().boolean(value.into());
        self
    }

    /// Adds a text or a name.
    pub(super) fn text<'t>(&mut self, value: impl Into<Option<&'t str>>) -> &mut Self {
        let value = value.into();
        let at = self.at;
        if self.is_name.get(at) != Some(&true) {
            self.next().text(value);
            return self;
        }
        let number = value.and_then(|name| self.name(at, name));
        self.next().name(number);
        self
    }

    fn name(&mut self, column: usize, name: &str) -> Option<u32> {
        let (names, list) = (self.names.get_mut(column)?, self.lists.get_mut(column)?);
        if let Some(number) = names.get(name) {
            return Some(*number);
        }
        let number = u32::try_from(list.len()).ok().filter(|number| *number != NO_NAME)?;
        names.insert(Arc::from(name), number);
        list.push(name);
        Some(number)
    }

    /// Adds a row of facts. Classes are written by their names.
    pub(super) fn add<L>(&mut self, columns: &FactColumns<'_, L>, line: &L, summary: &Summary) {
        for value in columns.values(line) {
            match &value {
                FactValue::Class(class) => {
                    self.text(summary.class(*class).map(|row| summary.class_name(row)));
                }
                FactValue::Text(text) => {
                    self.text(&**text);
                }
                value => self.next().fact(value),
            }
        }
        self.end();
    }

    /// Ends the row.
    pub(super) fn end(&mut self) {
        debug_assert_eq!(self.at, self.is_name.len(), "a value for each column");
        self.at = 0;
        self.batch.rows += 1;
    }

    /// Returns the rows.
    pub(super) fn finish(mut self) -> Batch {
        for (values, list) in self.batch.columns.iter_mut().zip(self.lists) {
            if let Values::Names { names, .. } = values {
                *names = Arc::new(list);
            }
        }
        self.batch
    }
}

/// Copies values of some rows to another batch that has the same names ([`super::Table::names`]).
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
