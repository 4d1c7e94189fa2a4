//! Columns for facts that are declared together with the type of their rows.

use hprof_index::model::summary::Summary;
use hprof_query::fact::{Fact, FactValue};
use hprof_report::column::Column;
use hprof_report::value::Value;

use super::object;

/// Returns the columns for facts, in the order of the facts; `row` returns the facts' row of a line. `summary` contains the
/// names of classes; the set of columns does not depend on it.
pub(crate) fn columns<'c, R: 'static, L: 'c>(
    facts: Vec<Fact<R>>,
    summary: Option<&'c Summary>,
    row: for<'r> fn(&'r L) -> &'r R,
) -> Vec<Column<'c, L>> {
    let column = |fact: Fact<R>| {
        let value = fact.value;
        let column = Column::new(fact.name, move |line: &L| match value(row(line)) {
            FactValue::Class(class) => {
                let name = summary.and_then(|summary| object::class_name(summary, Some(class)));
                // A value may borrow only from its row.
                name.map(str::to_owned).into()
            }
            value => Value::from(value),
        });
        or_null(column, fact.null)
    };
    facts.into_iter().map(column).collect()
}

/// Returns the columns for facts of the lines themselves. No fact may be a class number.
pub(crate) fn own_columns<'c, L: 'c>(facts: Vec<Fact<L>>) -> Vec<Column<'c, L>> {
    let column = |fact: Fact<L>| {
        let value = fact.value;
        or_null(Column::new(fact.name, move |line: &L| Value::from(value(line))), fact.null)
    };
    facts.into_iter().map(column).collect()
}

fn or_null<'c, L>(column: Column<'c, L>, when: Option<&'static str>) -> Column<'c, L> {
    match when {
        Some(when) => column.or_null(when),
        None => column,
    }
}
