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
        let column = Column::of(fact.name, move |line: &L| match value(row(line)) {
            FactValue::Class(class) => {
                let name = summary.and_then(|summary| object::class_name(summary, Some(class)));
                // A value may borrow only from its row.
                name.map(str::to_owned).into()
            }
            value => Value::from(value),
        });
        match fact.null {
            Some(when) => column.or_null(when),
            None => column,
        }
    };
    facts.into_iter().map(column).collect()
}
