//! Columns of facts that are declared with their rows.

use hprof_index::model::summary::Summary;
use hprof_query::fact::{Fact, FactValue};
use hprof_report::column::Column;
use hprof_report::value::Value;

use super::object;

/// Returns the columns of facts, in their order, of rows that `row` finds in a line. The names of classes are in `summary`;
/// the list of columns itself does not depend on it.
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

/// Returns the columns of facts of lines themselves, none of which is a class by its number.
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
