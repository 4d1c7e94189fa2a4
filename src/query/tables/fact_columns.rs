//! Columns of tables that are built from facts, which are declared with the row types.

use hprof_base::dictionary::Name;
use hprof_base::fact::{Fact, FactValue};

use hprof_index::model::summary::Summary;

use super::batch::Batch;
use super::definition::Column;

type GetFact<'l, L> = Box<dyn for<'r> Fn(&'r L) -> FactValue<'r> + Send + Sync + 'l>;

/// A column of a table with rows `L`.
pub(crate) struct FactColumn<'l, L> {
    column: Column,
    value: GetFact<'l, L>,
}

/// The columns of a table with rows `L`.
pub(crate) struct FactColumns<'l, L>(Vec<FactColumn<'l, L>>);

impl<'l, L> FactColumns<'l, L> {
    /// Creates columns from the facts with these names; columns in `few` have few distinct texts.
    pub(crate) fn new(names: &[Name], few: &[Name], mut facts: Vec<FactColumn<'l, L>>) -> Self {
        let find = |name: &Name| {
            let at = facts.iter().position(|fact| fact.column.name == name.key);
            debug_assert!(at.is_some(), "no fact is called {}", name.key);
            let FactColumn { mut column, value } = facts.remove(at?);
            if few.contains(name) {
                column = column.few();
            }
            Some(FactColumn { column, value })
        };
        Self(names.iter().filter_map(find).collect())
    }

    /// Creates a column for each fact, in the given order.
    pub(crate) fn from_facts(facts: Vec<Fact<L>>) -> Self
    where
        L: 'l,
    {
        Self(own_columns(facts))
    }

    /// Marks the columns with these names as non-null in every row of this table.
    pub(crate) fn never_null(mut self, names: &[Name]) -> Self {
        for FactColumn { column, .. } in &mut self.0 {
            if names.iter().any(|name| name.key == column.name) {
                column.null = None;
            }
        }
        self
    }

    /// Returns the declarations of the columns.
    pub(crate) fn definitions(&self) -> Vec<Column> {
        self.0.iter().map(|fact| fact.column.clone()).collect()
    }

    /// Adds a row to a batch whose names are the class names by class number.
    pub(crate) fn add(&self, line: &L, batch: &mut Batch) {
        self.write(line, batch, |value| value);
    }

    /// Adds a row to a batch whose names are collected from its rows; classes are added by name.
    pub(crate) fn add_with_names<'r>(&self, line: &'r L, summary: &'r Summary, batch: &mut Batch) {
        self.write(line, batch, |value| match value {
            FactValue::Class(class) => summary.class(class).map(|row| summary.class_name(row)).into(),
            value => value,
        });
    }

    fn write<'r>(&self, line: &'r L, batch: &mut Batch, convert: impl Fn(FactValue<'r>) -> FactValue<'r>) {
        for (number, fact) in self.0.iter().enumerate() {
            batch.column(number).fact(&convert((fact.value)(line)));
        }
        batch.rows += 1;
    }
}

/// Returns columns for facts about a row type `R`, which `row` gets from a line `L`.
pub(crate) fn columns<'l, R: 'static, L: 'l>(
    facts: Vec<Fact<R>>,
    row: for<'r> fn(&'r L) -> &'r R,
) -> Vec<FactColumn<'l, L>> {
    let column = |fact: Fact<R>| {
        let value = fact.value;
        FactColumn { column: definition(&fact), value: Box::new(move |line: &L| value(row(line))) }
    };
    facts.into_iter().map(column).collect()
}

/// Returns columns for facts about the line type itself.
pub(crate) fn own_columns<'l, L: 'l>(facts: Vec<Fact<L>>) -> Vec<FactColumn<'l, L>> {
    let column = |fact: Fact<L>| FactColumn { column: definition(&fact), value: Box::new(fact.value) };
    facts.into_iter().map(column).collect()
}

fn definition<R>(fact: &Fact<R>) -> Column {
    let column = Column::new(fact.name);
    Column { null: fact.null.map(Into::into), is_secret: fact.is_secret, ..column }
}

/// Returns the definitions of the columns with these names, for a table that is filled column by column.
pub(crate) fn definitions<R>(facts: Vec<Fact<R>>, names: &[Name], few: &[Name]) -> Vec<Column> {
    FactColumns::new(names, few, own_columns(facts)).definitions()
}
