//! Columns that all answers have whose rows are objects.

use hprof_parser::ObjectId;
use hprof_report::column::{Align, Column, Fit};
use hprof_report::value::Value;

use super::object;

/// What an object is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'r> {
    /// Object ID.
    pub(crate) id: ObjectId,
    /// Its class; `None` if the dump does not say.
    pub(crate) class: Option<&'r str>,
    /// A few words that tell it from others of its class.
    pub(crate) label: Option<&'r str>,
}

impl Named<'_> {
    /// In a table: class, ID and label.
    pub(crate) fn describe(self) -> String {
        object::describe(self.class, self.id, self.label)
    }

    /// In a table whose IDs have a column of their own.
    pub(crate) fn describe_without_id(self) -> String {
        object::describe_without_id(self.class, self.label)
    }
}

/// `object`, `class` and `label`.
pub(crate) fn named<'c, R>(
    of: impl for<'r> Fn(&'r R) -> Named<'r> + Copy + Send + Sync + 'c,
) -> [Column<'c, R>; 3] {
    [
        object(move |row| of(row).id),
        class(move |row| of(row).class),
        Column::text(
            "label",
            "a few words that tell it from others of its class: a thread's name, a string's text, the class that a class \
             object is of, a file's path. At most 120 characters, for people: can change in any version",
            move |row| of(row).label.into(),
        )
        .or_null("there is none"),
    ]
}

/// `object`: the ID.
pub(crate) fn object<'c, R>(id: impl Fn(&R) -> ObjectId + Send + Sync + 'c) -> Column<'c, R> {
    Column::id("object", "the object's ID", move |row| Value::Id(id(row)))
}

/// `class`: the name of its class.
pub(crate) fn class<'c, R>(
    name: impl for<'r> Fn(&'r R) -> Option<&'r str> + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::text("class", "its class; of a class object `java.lang.Class`", move |row| name(row).into())
        .or_null("the dump does not say")
}

/// The objects in words, in a table: its last column.
pub(crate) fn described<'c, R>(cell: impl Fn(&R) -> String + Send + Sync + 'c) -> Column<'c, R> {
    Column::table("object", Align::Left, cell).fit(Fit::Shorten { priority: 0 })
}

/// `shallow_bytes`: the object's own size.
pub(crate) fn shallow_bytes<'c, R, T: Into<Value<'static>>>(
    bytes: impl Fn(&R) -> T + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::integer("shallow_bytes", "its own size", move |row| bytes(row).into())
}

/// `retained_bytes`: what would be freed with the object.
pub(crate) fn retained_bytes<'c, R, T: Into<Value<'static>>>(
    bytes: impl Fn(&R) -> T + Send + Sync + 'c,
) -> Column<'c, R> {
    Column::integer("retained_bytes", "what would be freed with it, itself included", move |row| {
        bytes(row).into()
    })
}
