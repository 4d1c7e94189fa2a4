//! What is shown of an object, its parts and its referrers.

use std::sync::Arc;

use hprof_parser::ObjectId;
use hprof_query::objects::collections;
use hprof_query::objects::meaning;
use hprof_query::objects::show::{
    ClassShown, ContentEntry, Contents, Declared as DeclaredField, Dominator, Loader, Part, Referred,
    Referrer, RootShown, Shown, Value as Shows,
};
use hprof_report::answer::Declared;
use hprof_report::column::{Align, Column, Columns, Fit, Kind};
use hprof_report::value::{Each, Value, id, list};

use crate::cli::shared::object;

/// An object.
pub(super) struct Object<'a> {
    /// Without its elements.
    pub(super) shown: Shown,
    /// Its fields, then its elements.
    pub(super) parts: Items<'a, Line>,
    /// With `--incoming`.
    pub(super) referrers: Option<Items<'a, Referrer>>,
    /// With `--as`.
    pub(super) data: Option<Encoded>,
}

/// Makes items while they are written.
pub(super) type Items<'a, T> = &'a (dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + Sync);

/// A row of parts.
pub(super) enum Line {
    /// A field, an element, or what else an object holds.
    Part(Part),
    /// In a table, above fields of a superclass: its name.
    Superclass(String),
}

impl Line {
    fn part(&self) -> Option<&Part> {
        match self {
            Self::Part(part) => Some(part),
            Self::Superclass(_) => None,
        }
    }
}

/// Bytes of an array as one text.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) text: String,
    /// `hex`, or the encoding that they were taken for.
    pub(super) form: &'static str,
}

/// A UTF-16 unit; half of a character becomes an escape.
fn character(unit: u16) -> String {
    char::from_u32(u32::from(unit)).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

/// A value as programs read it: of a reference its class, and its label in quotes.
fn value(shows: &Shows) -> Value<'static> {
    match shows {
        Shows::Boolean(value) => (*value).into(),
        Shows::Integer(value) => (*value).into(),
        Shows::Char(unit) => character(*unit).into(),
        Shows::Float(value) => object::float(*value),
        Shows::Double(value) => object::double(*value),
        Shows::Reference(None) => Value::Null,
        Shows::Reference(Some(to)) => {
            object::describe_without_id(to.class.as_deref(), to.label.as_deref()).into()
        }
    }
}

/// A value as people read it.
fn value_text(shows: &Shows) -> String {
    match shows {
        Shows::Boolean(value) => value.to_string(),
        Shows::Integer(value) => value.to_string(),
        Shows::Char(unit) => character(*unit),
        Shows::Float(value) => meaning::float(*value),
        Shows::Double(value) => meaning::double(*value),
        Shows::Reference(None) => "null".to_owned(),
        Shows::Reference(Some(to)) => describe(to),
    }
}

/// An object that is referred to, in a table.
pub(super) fn describe(to: &Referred) -> String {
    object::describe(to.class.as_deref(), to.object, to.label.as_deref())
}

/// The ID of the object that a value refers to.
fn referred(shows: &Shows) -> Value<'static> {
    match shows {
        Shows::Reference(Some(to)) => id(to.object),
        _ => Value::Null,
    }
}

/// A class loader as `histo` names it.
pub(super) fn loader_text(loader: &Loader) -> String {
    match loader {
        Loader::Boot => object::loader(ObjectId::NULL, None),
        Loader::Object(to) => object::loader(to.object, to.class.as_deref()),
    }
}

fn loader_object(loader: &Loader) -> Value<'static> {
    match loader {
        Loader::Boot => Value::Null,
        Loader::Object(to) => id(to.object),
    }
}

/// A list of records that are made while they are written.
fn each<'a, T: 'a>(columns: &Arc<Columns<'static, T>>, items: Items<'a, T>) -> Value<'a> {
    let columns = columns.clone();
    Value::Each(Each::new(move || {
        let columns = columns.clone();
        items().map(move |item| columns.record(&item))
    }))
}

pub(super) fn object_columns<'a>() -> Columns<'a, Object<'a>> {
    let (parts, referrers) = (Arc::new(part_columns("field")), Arc::new(referrer_columns()));
    let (roots, contents, class) = (root_columns(), content_columns(), class_columns());
    fn dominator<'r>(object: &'r Object<'_>) -> Option<&'r Referred> {
        match &object.shown.dominator {
            Some(Dominator::Object(to)) => Some(to),
            _ => None,
        }
    }
    const NOT_IN_TEXTS: &str = "it is unreachable; in texts";
    Columns::new([
        Column::id("object", "the object", |object: &Object<'a>| id(object.shown.object)),
        Column::text("class", "its class; of a class object `java.lang.Class`", |object: &Object<'a>| {
            object.shown.class.as_ref().into()
        })
        .or_null("the dump does not name it"),
        Column::text(
            "label",
            "what tells it from others: a class object's class, the start of a String, a thread's name",
            |object: &Object<'a>| object.shown.label.as_ref().into(),
        )
        .or_null("it has none; in texts"),
        Column::text(
            "kind",
            "`instance`, `object array`, `primitive array` or `class object`",
            |object: &Object<'a>| object.shown.kind.name().into(),
        ),
        Column::integer("shallow_bytes", "its shallow size", |object: &Object<'a>| {
            object.shown.shallow_bytes.into()
        })
        .or_null("a text does not state it"),
        Column::integer("retained_bytes", "its retained size", |object: &Object<'a>| {
            object.shown.retained_bytes.into()
        })
        .or_null(NOT_IN_TEXTS),
        Column::integer(
            "trace",
            "serial number of the trace where it was allocated; 0 for none",
            |object: &Object<'a>| object.shown.trace.into(),
        ),
        Column::integer("length", "number of elements", |object: &Object<'a>| object.shown.length.into())
            .or_null("it is no array"),
        Column::id("class_object", "the class object of its class", |object: &Object<'a>| {
            id(object.shown.class_object)
        })
        .or_null("not known"),
        Column::new(
            "roots",
            Kind::Records(roots.fields()),
            "why it is a root; empty if it is none",
            move |object: &Object<'a>| list(object.shown.roots.iter().map(|root| roots.record(root))),
        ),
        Column::new(
            "fields",
            Kind::Records(parts.fields()),
            "its fields with those of superclasses, the static fields of a class object, or the elements of an array. \
             Texts have only references that are not null",
            move |object: &Object<'a>| each(&parts, object.parts),
        ),
        Column::new(
            "contents",
            Kind::Record(contents.fields()),
            "the elements of a collection",
            move |object: &Object<'a>| {
                object.shown.contents.as_ref().map(|held| contents.record(held)).into()
            },
        )
        .or_null("it is no known collection; in texts"),
        Column::new(
            "incoming",
            Kind::Records(referrers.fields()),
            "with `--incoming`, its referrers",
            move |object: &Object<'a>| object.referrers.map(|items| each(&referrers, items)).into(),
        )
        .or_null("without `--incoming`"),
        Column::text(
            "value",
            "what the object means: the text of a String, a number, a date (ISO 8601, UTC), a path, a buffer's position; \
             up to 1,048,576 characters. Half of a surrogate pair is `\\udXXX`",
            |object: &Object<'a>| object.shown.value.as_ref().map(|value| &value.text).into(),
        )
        .or_null("its class is not known; arrays and class objects; in texts"),
        Column::boolean("value_cut", "whether `value` is only the start", |object: &Object<'a>| {
            object.shown.value.as_ref().map(|value| value.is_cut).into()
        })
        .or_null("no `value`"),
        Column::new(
            "stack",
            Kind::List(Box::new(Kind::Text)),
            "of a Throwable, where it was created: `CLASS.METHOD(FILE:LINE)`, or classes alone if the program never asked \
             for the stack; the first 10,000 frames",
            |object: &Object<'a>| object.shown.stack.as_ref().map(|stack| list(&stack.frames)).into(),
        )
        .or_null("it is none, or has none; in texts"),
        Column::new(
            "dominator",
            Kind::Any,
            "the ID of its immediate dominator, or `root`",
            |object: &Object<'a>| match &object.shown.dominator {
                Some(Dominator::Roots) => "root".into(),
                Some(Dominator::Object(to)) => id(to.object),
                None => Value::Null,
            },
        )
        .or_null(NOT_IN_TEXTS),
        Column::text("dominator_class", "the dominator's class", |object: &Object<'a>| {
            dominator(object).map(|to| to.class.as_ref()).into()
        })
        .or_null("`dominator` is no ID, or its class is not known"),
        Column::text("dominator_label", "the dominator's label", |object: &Object<'a>| {
            dominator(object).map(|to| to.label.as_ref()).into()
        })
        .or_null("`dominator` is no ID, or has no label"),
        Column::text(
            "loader",
            "the loader of its class, of a class object that of the class itself; as in `histo`",
            |object: &Object<'a>| object.shown.loader.as_ref().map(loader_text).into(),
        )
        .or_null("the class has no class object in the dump; in texts"),
        Column::id("loader_object", "that loader's ID", |object: &Object<'a>| {
            object.shown.loader.as_ref().map(loader_object).into()
        })
        .or_null("the boot loader, or `loader` is null"),
        Column::new(
            "describes",
            Kind::Record(class.fields()),
            "of a class object, its class",
            move |object: &Object<'a>| object.shown.of_class.as_ref().map(|of| class.record(of)).into(),
        )
        .or_null("it is none; in texts"),
        Column::text(
            "data",
            "with `--as hex` or `--as text` the elements as one text, up to 16 MiB of bytes; `fields` is then empty",
            |object: &Object<'a>| object.data.as_ref().map(|data| &data.text).into(),
        )
        .or_null("without `--as`"),
        Column::text("data_form", DATA_FORM, |object: &Object<'a>| {
            object.data.as_ref().map(|data| data.form).into()
        })
        .or_null("without `--as`"),
    ])
}

const DATA_FORM: &str = "`hex`, `utf-8`, `iso-8859-1` or `utf-16`";

/// The columns of fields or elements; `title` is that of their names in a table.
pub(super) fn part_columns(title: &'static str) -> Columns<'static, Line> {
    Columns::new([
        Column::text(
            "name",
            "the field's name; `[3]` of an element; `<super>`, `<loader>` and the like of a class object",
            |line: &Line| line.part().map(|part| &part.name).into(),
        )
        .header(title)
        .fit(Fit::Shorten { priority: 1 })
        .cell(|line| match line {
            Line::Part(part) => part.name.clone(),
            Line::Superclass(class) => format!("of {class}:"),
        }),
        Column::text("class", "the class that declares it", |line: &Line| {
            line.part().map(|part| part.class.as_ref()).into()
        })
        .or_null("of elements, and what no class declares; in texts"),
        Column::text("type", "`int`, `byte`, ... or `Object` for references", |line: &Line| {
            line.part().map(|part| part.kind.java_name()).into()
        })
        .header("type"),
        Column::new(
            "value",
            Kind::Any,
            "a number, a boolean, a character as a text; of a reference what the object is. Numbers that JSON cannot hold \
             are `NaN`, `Infinity` and `-Infinity`; a float has the digits that Java gives it",
            |line: &Line| line.part().map(|part| value(&part.value)).into(),
        )
        .or_null("a null reference; an element that the dump leaves out")
        .header("value")
        .cell(|line| line.part().map(|part| value_text(&part.value)).unwrap_or_default())
        .fit(Fit::Shorten { priority: 0 }),
        Column::id("object", "the object that it refers to", |line: &Line| {
            line.part().map(|part| referred(&part.value)).into()
        })
        .or_null("it refers to none"),
    ])
}

/// The columns of CSV with `--as`.
pub(super) fn data_columns() -> Columns<'static, Encoded> {
    Columns::new([
        Column::text("data_form", DATA_FORM, |data: &Encoded| data.form.into()),
        Column::text("data", "the elements as one text", |data: &Encoded| Value::from(&data.text)),
    ])
}

fn root_columns() -> Columns<'static, RootShown> {
    Columns::new([
        Column::text("kind", "the kind of root", |root: &RootShown| root.kind.name().into()),
        Column::text("thread", "the thread's name or serial number", |root: &RootShown| {
            root.thread.as_ref().into()
        })
        .or_null("it belongs to none"),
        Column::text("frame", "the frame, or its number", |root: &RootShown| root.frame.as_ref().into())
            .or_null("it belongs to none"),
    ])
}

fn content_columns() -> Columns<'static, Contents> {
    let entries = entry_columns(collections::Kind::Map);
    Columns::new([
        Column::text("kind", "`list`, `set`, `map` or `holder`", |held: &Contents| held.kind.name().into()),
        Column::integer("size", "the number of elements that it states", |held: &Contents| held.size.into())
            .or_null("it states none"),
        Column::new(
            "entries",
            Kind::Records(entries.fields()),
            "the elements: the first 10,000, or those of `--range`",
            move |held: &Contents| list(held.entries.iter().map(|entry| entries.record(entry))),
        ),
    ])
}

/// The columns of the elements of a collection of this kind.
pub(super) fn entry_columns(kind: collections::Kind) -> Columns<'static, ContentEntry> {
    let is_map = kind == collections::Kind::Map;
    let key =
        Column::new("key", Kind::Any, "the key in a map, as `value` of a field", |entry: &ContentEntry| {
            entry.key.as_ref().map(value).into()
        })
        .or_null("no map; a null key");
    let key_text = |entry: &ContentEntry| entry.key.as_ref().map(value_text).unwrap_or_default();
    Columns::new([
        Column::integer(
            "index",
            "its place in the order of the collection, from 0",
            |entry: &ContentEntry| entry.index.into(),
        )
        .header("")
        .cell(|entry| entry.index.to_string()),
        if is_map { key.header("key").fit(Fit::Shorten { priority: 1 }).cell(key_text) } else { key },
        Column::id("key_object", "the object that the key is", |entry: &ContentEntry| {
            entry.key.as_ref().map(referred).into()
        })
        .or_null("no map; a null key"),
        Column::new("value", Kind::Any, "the element, or the value in a map", |entry: &ContentEntry| {
            value(&entry.value)
        })
        .or_null("null")
        .header(if is_map { "value" } else { "element" })
        .cell(|entry| value_text(&entry.value))
        .fit(Fit::Shorten { priority: 0 }),
        Column::id("object", "the object that it is", |entry: &ContentEntry| referred(&entry.value))
            .or_null("it is none"),
    ])
}

pub(super) fn referrer_columns() -> Columns<'static, Referrer> {
    Columns::new([
        Column::id("object", "the referrer", |referrer: &Referrer| id(referrer.object)).header("referrer"),
        Column::text("class", "its class", |referrer: &Referrer| referrer.class.as_ref().into())
            .or_null("the dump does not name it"),
        Column::text("label", "what tells it from others", |referrer: &Referrer| {
            referrer.label.as_ref().into()
        })
        .or_null("it has none; in texts"),
        Column::text("reference", "by what it refers: `next`, `[5]`", |referrer: &Referrer| {
            referrer.reference.as_ref().into()
        })
        .or_null("not known")
        .header("field")
        .fit(Fit::Shorten { priority: 1 }),
        Column::table("class", Align::Left, |referrer: &Referrer| {
            object::describe_without_id(referrer.class.as_deref(), referrer.label.as_deref())
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

fn class_columns() -> Columns<'static, ClassShown> {
    let fields = declared_columns();
    Columns::new([
        Column::text("class", "its name", |class: &ClassShown| Value::from(&class.name)),
        Column::text("superclass", "its superclass", |class: &ClassShown| {
            class.superclass.as_ref().map(|to| to.label.as_ref()).into()
        })
        .or_null("it has none"),
        Column::id("superclass_object", "the superclass's class object", |class: &ClassShown| {
            id(class.superclass.as_ref().map(|to| to.object))
        })
        .or_null("it has none"),
        Column::text("loader", "its loader, as in `histo`", |class: &ClassShown| {
            loader_text(&class.loader).into()
        }),
        Column::id("loader_object", "the loader's ID", |class: &ClassShown| loader_object(&class.loader))
            .or_null("the boot loader"),
        Column::integer("instances", "its instances", |class: &ClassShown| class.instances.into()),
        Column::integer("shallow_bytes", "the shallow size of all instances", |class: &ClassShown| {
            class.shallow_bytes.into()
        }),
        Column::integer("instance_bytes", "the shallow size of one instance", |class: &ClassShown| {
            class.instance_bytes.into()
        })
        .or_null("arrays and java.lang.Class, whose instances differ"),
        Column::new(
            "fields",
            Kind::Records(fields.fields()),
            "the instance fields that it declares itself",
            move |class: &ClassShown| list(class.fields.iter().map(|field| fields.record(field))),
        ),
    ])
}

pub(super) fn declared_columns() -> Columns<'static, DeclaredField> {
    Columns::new([
        Column::text("name", "the field's name", |field: &DeclaredField| Value::from(&field.name))
            .header("declared field"),
        Column::text("type", "its type", |field: &DeclaredField| field.kind.java_name().into())
            .header("type")
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

/// What stands beside the rows if there is no such object: IDs or names instead.
pub(super) fn suggestion_columns() -> Columns<'static, Vec<String>> {
    Columns::new([Column::new(
        "near",
        Kind::List(Box::new(Kind::Text)),
        "only if there is no row: IDs next to the one asked for, names of classes like the one asked for, or, if several \
         classes match, the IDs of their class objects (the first ten by name)",
        |near: &Vec<String>| list(near),
    )])
}

pub(super) fn declared() -> Vec<Declared> {
    let declared = |variant, about, rows, beside| Declared { command: "show", variant, about, rows, beside };
    vec![
        declared(
            "",
            "The row is the object or class object; there is none if it does not exist.",
            object_columns().fields(),
            suggestion_columns().fields(),
        ),
        declared("CSV", "A row is a field or element.", part_columns("field").fields(), Vec::new()),
        declared("CSV with `--as hex` or `--as text`", "One row.", data_columns().fields(), Vec::new()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_characters() {
        assert_eq!((character(0x41), character(0xd800)), ("A".to_owned(), "\\ud800".to_owned()));
    }
}
