//! Columns for rows that are objects.

use hprof_query::dictionary::{names, nulls};
use hprof_report::column::{Align, Column, Fit, TableColumn};
use hprof_report::value::Value;
use hprof_values::ObjectId;

use super::object;

/// ID, class and label of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedObject<'r> {
    /// Object ID.
    pub(crate) id: ObjectId,
    /// Class name; `None` if unknown.
    pub(crate) class: Option<&'r str>,
    /// Label that distinguishes the object from others of its class.
    pub(crate) label: Option<&'r str>,
}

impl NamedObject<'_> {
    /// Formats class, ID and label for a table.
    pub(crate) fn describe(self) -> String {
        object::describe(self.class, self.id, self.label)
    }

    /// Formats class and label for a table with an ID column.
    pub(crate) fn describe_without_id(self) -> String {
        object::describe_without_id(self.class, self.label)
    }
}

/// Returns the columns `object`, `class` and `label`.
pub(crate) fn identity_columns<'c, R>(
    of: impl for<'r> Fn(&'r R) -> NamedObject<'r> + Copy + Send + Sync + 'c,
) -> [Column<'c, R>; 3] {
    [
        object(move |row| of(row).id),
        class(move |row| of(row).class),
        Column::new(names::LABEL, move |row| of(row).label.into()).or_null(nulls::NO_LABEL),
    ]
}

/// Returns the column `object`: the object ID.
pub(crate) fn object<'c, R>(id: impl Fn(&R) -> ObjectId + Send + Sync + 'c) -> Column<'c, R> {
    Column::new(names::OBJECT, move |row| Value::Id(id(row)))
}

/// Returns the column `class`: the name of the object's class.
pub(crate) fn class<'c, R>(
    name: impl for<'r> Fn(&'r R) -> Option<&'r str> + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::new(names::CLASS, move |row| name(row).into()).or_null(nulls::CLASS_MISSING)
}

/// Returns the last column of a table: the description of the object.
pub(crate) fn description<'c, R>(cell: impl Fn(&R) -> String + Send + Sync + 'c) -> TableColumn<'c, R> {
    TableColumn::table_only("object", Align::Left, cell).fit(Fit::Shorten { priority: 0 })
}

/// Returns the column `shallow_bytes`: the object's own size.
pub(crate) fn shallow_bytes<'c, R, T: Into<Value<'static>>>(
    bytes: impl Fn(&R) -> T + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::new(names::SHALLOW_BYTES, move |row| bytes(row).into())
}

/// Returns the column `retained_bytes`: the memory that would be freed with the object.
pub(crate) fn retained_bytes<'c, R, T: Into<Value<'static>>>(
    bytes: impl Fn(&R) -> T + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::new(names::RETAINED_BYTES, move |row| bytes(row).into())
}
