//! Columns of an object, its parts and its referrers.

use std::sync::Arc;

use crate::cli::prelude::*;
use hprof_query::frameworks::FrameworkDescription;
use hprof_query::objects::collections;
use hprof_query::objects::hiding::HIDDEN;
use hprof_query::objects::meaning;
use hprof_query::show::{
    ClassShown, ContentEntry, Contents, DeclaredField, Dominator, Loader, Referred, Referrer, RootShown,
    Shown, ShownPart, ShownValue,
};
use hprof_report::value::{Each, id, list};
use hprof_values::ObjectId;

use crate::cli::shared::{frameworks, object};

/// An object.
pub(super) struct Object<'a> {
    /// The object without its elements.
    pub(super) shown: Shown,
    /// Fields, then elements.
    pub(super) parts: Items<'a, PartLine>,
    /// Referrers, with `--incoming`.
    pub(super) referrers: Option<Items<'a, Referrer>>,
    /// Encoded array, with `--as`.
    pub(super) data: Option<Encoded>,
    /// If a rule of a framework is about it.
    pub(super) known: Option<FrameworkDescription>,
}

/// Lazily computed items.
pub(super) type Items<'a, T> = &'a (dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + Sync);

/// A row of the table of parts.
pub(super) enum PartLine {
    /// A field, an element, or other contents of an object.
    Part(ShownPart),
    /// In a table, the superclass name above its fields.
    Superclass(String),
}

impl PartLine {
    fn part(&self) -> Option<&ShownPart> {
        match self {
            Self::Part(part) => Some(part),
            Self::Superclass(_) => None,
        }
    }
}

/// The bytes of an array as one text.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) text: String,
    /// `hex`, or the detected encoding.
    pub(super) form: &'static str,
}

/// Converts a UTF-16 unit; an unpaired surrogate becomes an escape.
fn character(unit: u16) -> String {
    char::from_u32(u32::from(unit)).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

/// Converts a value for programs: a reference becomes its class, with the label in quotes.
fn value(shows: &ShownValue) -> Value<'static> {
    match shows {
        ShownValue::Boolean(value) => (*value).into(),
        ShownValue::Integer(value) => (*value).into(),
        ShownValue::Char(unit) => character(*unit).into(),
        ShownValue::Float(value) => object::float(*value),
        ShownValue::Double(value) => object::double(*value),
        ShownValue::Reference(None) => Value::Null,
        ShownValue::Reference(Some(to)) => {
            object::describe_without_id(to.class.as_deref(), to.label.as_deref()).into()
        }
        ShownValue::Hidden => HIDDEN.into(),
    }
}

/// Formats a value for people.
fn value_text(shows: &ShownValue) -> String {
    match shows {
        ShownValue::Boolean(value) => value.to_string(),
        ShownValue::Integer(value) => value.to_string(),
        ShownValue::Char(unit) => character(*unit),
        ShownValue::Float(value) => meaning::float(*value),
        ShownValue::Double(value) => meaning::double(*value),
        ShownValue::Reference(None) => "null".to_owned(),
        ShownValue::Reference(Some(to)) => describe(to),
        ShownValue::Hidden => HIDDEN.to_owned(),
    }
}

/// Describes a referenced object in a table.
pub(super) fn describe(to: &Referred) -> String {
    object::describe(to.class.as_deref(), to.object, to.label.as_deref())
}

/// Returns the ID of the object that a value references.
fn referred(shows: &ShownValue) -> Value<'static> {
    match shows {
        ShownValue::Reference(Some(to)) => id(to.object),
        _ => Value::Null,
    }
}

/// Formats a class loader as in `histo`.
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

/// Returns a list of records that are computed while they are written.
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
    const NO_RULE: &str = "no rule of a framework is about it; in texts";
    const NOT_IN_TEXTS: &str = "it is unreachable; in text reports";
    Columns::new([
        Column::of(names::OBJECT, |object: &Object<'a>| id(object.shown.object)),
        Column::of(names::CLASS, |object: &Object<'a>| object.shown.class.as_ref().into())
            .or_null("the dump does not name it"),
        Column::of(names::LABEL, |object: &Object<'a>| object.shown.label.as_ref().into())
            .or_null("it has none; in text reports"),
        Column::of(names::KIND, |object: &Object<'a>| object.shown.kind.name().into()),
        Column::of(names::SHALLOW_BYTES, |object: &Object<'a>| object.shown.shallow_bytes.into())
            .or_null("in text reports"),
        Column::of(names::RETAINED_BYTES, |object: &Object<'a>| object.shown.retained_bytes.into())
            .or_null(NOT_IN_TEXTS),
        Column::of(names::FRAMEWORK, |object: &Object<'a>| {
            object.known.as_ref().map(|known| &*known.framework).into()
        })
        .or_null(NO_RULE),
        Column::of(names::CALLED, |object: &Object<'a>| {
            object.known.as_ref().and_then(|known| known.called.as_ref()).into()
        })
        .or_null(NO_RULE),
        Column::of(names::FRAMEWORK_FACTS, |object: &Object<'a>| {
            object.known.as_ref().map(|known| frameworks::facts(&known.facts)).into()
        })
        .or_null(NO_RULE),
        Column::of(names::TEXT, |object: &Object<'a>| {
            object.known.as_ref().and_then(|known| known.text.as_ref()).into()
        })
        .or_null("its rule has no sentence for it, or no rule is about it; in texts"),
        Column::of(names::TRACE, |object: &Object<'a>| object.shown.trace.into()),
        Column::of(names::LENGTH, |object: &Object<'a>| object.shown.length.into()).or_null("not an array"),
        Column::of(names::CLASS_OBJECT, |object: &Object<'a>| id(object.shown.class_object))
            .or_null("not known"),
        Column::nested(names::ROOTS, roots.fields(), move |object: &Object<'a>| {
            list(object.shown.roots.iter().map(|root| roots.record(root)))
        }),
        Column::nested(names::FIELDS, parts.fields(), move |object: &Object<'a>| each(&parts, object.parts)),
        Column::nested(names::CONTENTS, contents.fields(), move |object: &Object<'a>| {
            object.shown.contents.as_ref().map(|held| contents.record(held)).into()
        })
        .or_null("not a known collection; in text reports"),
        Column::nested(names::INCOMING, referrers.fields(), move |object: &Object<'a>| {
            object.referrers.map(|items| each(&referrers, items)).into()
        })
        .or_null("without `--incoming`"),
        Column::of(names::VALUE, |object: &Object<'a>| {
            object.shown.value.as_ref().map(|value| &value.text).into()
        })
        .or_null("its class is not known; arrays and class objects; in text reports"),
        Column::of(names::IS_VALUE_TRUNCATED, |object: &Object<'a>| {
            object.shown.value.as_ref().map(|value| value.is_cut).into()
        })
        .or_null("no `value`"),
        Column::of(names::STACK, |object: &Object<'a>| {
            object.shown.stack.as_ref().map(|stack| list(&stack.frames)).into()
        })
        .or_null("it is none, or has none; in text reports"),
        Column::of(names::DOMINATOR_OR_ROOT, |object: &Object<'a>| match &object.shown.dominator {
            Some(Dominator::Roots) => "root".into(),
            Some(Dominator::Object(to)) => id(to.object),
            None => Value::Null,
        })
        .or_null(NOT_IN_TEXTS),
        Column::of(names::DOMINATOR_CLASS, |object: &Object<'a>| {
            dominator(object).map(|to| to.class.as_ref()).into()
        })
        .or_null("`dominator` is not an ID, or its class is not known"),
        Column::of(names::DOMINATOR_LABEL, |object: &Object<'a>| {
            dominator(object).map(|to| to.label.as_ref()).into()
        })
        .or_null("`dominator` is not an ID, or has no label"),
        Column::of(names::LOADER, |object: &Object<'a>| object.shown.loader.as_ref().map(loader_text).into())
            .or_null("the class has no class object in the dump; in text reports"),
        Column::of(names::LOADER_OBJECT, |object: &Object<'a>| {
            object.shown.loader.as_ref().map(loader_object).into()
        })
        .or_null("the boot loader, or `loader` is null"),
        Column::nested(names::DESCRIBES, class.fields(), move |object: &Object<'a>| {
            object.shown.of_class.as_ref().map(|of| class.record(of)).into()
        })
        .or_null("it is none; in text reports"),
        Column::of(names::DATA, |object: &Object<'a>| object.data.as_ref().map(|data| &data.text).into())
            .or_null("without `--as`"),
        Column::of(names::DATA_FORM, |object: &Object<'a>| object.data.as_ref().map(|data| data.form).into())
            .or_null("without `--as`"),
    ])
}

/// Returns the columns of fields or elements; `title` is the table's title of the name column.
pub(super) fn part_columns(title: &'static str) -> Columns<'static, PartLine> {
    Columns::new([
        Column::of(names::NAME, |line: &PartLine| line.part().map(|part| &part.name).into())
            .header(title)
            .fit(Fit::Shorten { priority: 1 })
            .cell(|line| match line {
                PartLine::Part(part) => part.name.clone(),
                PartLine::Superclass(class) => format!("of {class}:"),
            }),
        Column::of(names::CLASS, |line: &PartLine| line.part().map(|part| part.class.as_ref()).into())
            .or_null("of elements, and what no class declares; in text reports"),
        Column::of(names::TYPE, |line: &PartLine| line.part().map(|part| part.kind.java_name()).into())
            .header("type"),
        Column::of(names::VALUE, |line: &PartLine| line.part().map(|part| value(&part.value)).into())
            .or_null("a null reference; an element that the dump omits")
            .header("value")
            .cell(|line| line.part().map(|part| value_text(&part.value)).unwrap_or_default())
            .fit(Fit::Shorten { priority: 0 }),
        Column::of(names::OBJECT, |line: &PartLine| line.part().map(|part| referred(&part.value)).into())
            .or_null("it refers to none"),
    ])
}

/// Returns the columns of CSV with `--as`.
pub(super) fn data_columns() -> Columns<'static, Encoded> {
    Columns::new([
        Column::of(names::DATA_FORM, |data: &Encoded| data.form.into()),
        Column::of(names::DATA, |data: &Encoded| Value::from(&data.text)),
    ])
}

fn root_columns() -> Columns<'static, RootShown> {
    Columns::new([
        Column::of(names::KIND, |root: &RootShown| root.kind.name().into()),
        Column::of(names::THREAD_NAME, |root: &RootShown| root.thread.as_ref().into())
            .or_null("it belongs to none"),
        Column::of(names::FRAME, |root: &RootShown| root.frame.as_ref().into()).or_null("it belongs to none"),
    ])
}

fn content_columns() -> Columns<'static, Contents> {
    let entries = entry_columns(collections::CollectionKind::Map);
    Columns::new([
        Column::of(names::KIND, |held: &Contents| held.kind.name().into()),
        Column::of(names::SIZE, |held: &Contents| held.size.into()).or_null("it states none"),
        Column::nested(names::ENTRIES, entries.fields(), move |held: &Contents| {
            list(held.entries.iter().map(|entry| entries.record(entry)))
        }),
    ])
}

/// Returns the columns of the elements of a collection of this kind.
pub(super) fn entry_columns(kind: collections::CollectionKind) -> Columns<'static, ContentEntry> {
    let is_map = kind == collections::CollectionKind::Map;
    let key = Column::of(names::KEY, |entry: &ContentEntry| entry.key.as_ref().map(value).into())
        .or_null("no map; a null key");
    let key_text = |entry: &ContentEntry| entry.key.as_ref().map(value_text).unwrap_or_default();
    Columns::new([
        Column::of(names::INDEX, |entry: &ContentEntry| entry.index.into())
            .header("")
            .cell(|entry| entry.index.to_string()),
        if is_map { key.header("key").fit(Fit::Shorten { priority: 1 }).cell(key_text) } else { key },
        Column::of(names::KEY_OBJECT, |entry: &ContentEntry| entry.key.as_ref().map(referred).into())
            .or_null("no map; a null key"),
        Column::of(names::VALUE, |entry: &ContentEntry| value(&entry.value))
            .or_null("null")
            .header(if is_map { "value" } else { "element" })
            .cell(|entry| value_text(&entry.value))
            .fit(Fit::Shorten { priority: 0 }),
        Column::of(names::OBJECT, |entry: &ContentEntry| referred(&entry.value)).or_null("it is none"),
    ])
}

pub(super) fn referrer_columns() -> Columns<'static, Referrer> {
    Columns::new([
        Column::of(names::OBJECT, |referrer: &Referrer| id(referrer.object)).header("referrer"),
        Column::of(names::CLASS, |referrer: &Referrer| referrer.class.as_ref().into())
            .or_null("the dump does not name it"),
        Column::of(names::LABEL, |referrer: &Referrer| referrer.label.as_ref().into())
            .or_null("it has none; in text reports"),
        Column::of(names::REFERENCE, |referrer: &Referrer| referrer.reference.as_ref().into())
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
        Column::of(names::CLASS, |class: &ClassShown| Value::from(&class.name)),
        Column::of(names::SUPERCLASS, |class: &ClassShown| {
            class.superclass.as_ref().map(|to| to.label.as_ref()).into()
        })
        .or_null("it has none"),
        Column::of(names::SUPERCLASS_OBJECT, |class: &ClassShown| {
            id(class.superclass.as_ref().map(|to| to.object))
        })
        .or_null("it has none"),
        Column::of(names::LOADER, |class: &ClassShown| loader_text(&class.loader).into()),
        Column::of(names::LOADER_OBJECT, |class: &ClassShown| loader_object(&class.loader))
            .or_null("the boot loader"),
        Column::of(names::INSTANCES, |class: &ClassShown| class.instances.into()),
        Column::of(names::SHALLOW_BYTES, |class: &ClassShown| class.shallow_bytes.into()),
        Column::of(names::INSTANCE_BYTES, |class: &ClassShown| class.instance_bytes.into())
            .or_null("arrays and java.lang.Class, whose instances differ"),
        Column::nested(names::FIELDS, fields.fields(), move |class: &ClassShown| {
            list(class.fields.iter().map(|field| fields.record(field)))
        }),
    ])
}

pub(super) fn declared_columns() -> Columns<'static, DeclaredField> {
    Columns::new([
        Column::of(names::NAME, |field: &DeclaredField| Value::from(&field.name)).header("declared field"),
        Column::of(names::TYPE, |field: &DeclaredField| field.kind.java_name().into())
            .header("type")
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

/// Returns the columns of suggested IDs or names if the object does not exist.
pub(super) fn suggestion_columns() -> Columns<'static, Vec<String>> {
    Columns::new([Column::of(names::NEAR, |near: &Vec<String>| list(near))])
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
