//! Columns for an object, its fields and elements, and its referrers.

use std::sync::Arc;

use crate::cli::prelude::*;
use hprof_query::frameworks::FrameworkDescription;
use hprof_query::objects::collections;
use hprof_query::objects::hiding::HIDDEN;
use hprof_query::objects::meaning;
use hprof_query::show::{
    ContentEntry, Contents, DeclaredField, Dominator, ReferencedObject, Referrer, RootShown, ShownClass,
    ShownLoader, ShownObject, ShownPart, ShownValue,
};
use hprof_report::value::{LazyList, id, list};
use hprof_values::ObjectId;

use crate::cli::shared::{frameworks, object};

/// An object with everything that is shown about it.
pub(super) struct Object<'a> {
    /// The object without its fields and elements.
    pub(super) shown: ShownObject,
    /// Fields, followed by elements.
    pub(super) parts: LazyItems<'a, PartLine>,
    /// Referrers, with `--incoming`.
    pub(super) referrers: Option<LazyItems<'a, Referrer>>,
    /// Array as a text, with `--as`.
    pub(super) data: Option<ArrayText>,
    /// Description by a framework's rule, if one matches.
    pub(super) known: Option<FrameworkDescription>,
}

/// Function that returns items, which are computed as they are needed.
pub(super) type LazyItems<'a, T> = &'a (dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + Sync);

/// A row in the table of fields or elements.
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

/// The bytes of an array, formatted as one text.
#[derive(Debug, Clone)]
pub(super) struct ArrayText {
    pub(super) text: String,
    /// Form of the text: `hex`, or the detected encoding.
    pub(super) form: &'static str,
}

/// Converts a UTF-16 code unit to text; an unpaired surrogate becomes an escape.
fn character(unit: u16) -> String {
    char::from_u32(u32::from(unit)).map_or_else(|| format!("\\u{unit:04x}"), String::from)
}

/// Converts a value for programs: a reference becomes the class of the object, with its label in quotes.
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
pub(super) fn describe(to: &ReferencedObject) -> String {
    object::describe(to.class.as_deref(), to.object, to.label.as_deref())
}

/// Returns the ID of the object that a value references.
fn referenced_id(shows: &ShownValue) -> Value<'static> {
    match shows {
        ShownValue::Reference(Some(to)) => id(to.object),
        _ => Value::Null,
    }
}

/// Formats a class loader as in `histo`.
pub(super) fn loader_text(loader: &ShownLoader) -> String {
    match loader {
        ShownLoader::Boot => object::loader(ObjectId::NULL, None),
        ShownLoader::Object(to) => object::loader(to.object, to.class.as_deref()),
    }
}

fn loader_object(loader: &ShownLoader) -> Value<'static> {
    match loader {
        ShownLoader::Boot => Value::Null,
        ShownLoader::Object(to) => id(to.object),
    }
}

/// Returns a JSON list of records that are computed while they are written.
fn lazy_records<'a, T: 'a>(columns: &Arc<Columns<'static, T>>, items: LazyItems<'a, T>) -> Value<'a> {
    let columns = columns.clone();
    Value::LazyList(LazyList::new(move || {
        let columns = columns.clone();
        items().map(move |item| columns.record(&item))
    }))
}

pub(super) fn object_columns<'a>() -> Columns<'a, Object<'a>> {
    let (parts, referrers) = (Arc::new(part_columns("field")), Arc::new(referrer_columns()));
    let (roots, contents, class) = (root_columns(), content_columns(), class_columns());
    fn dominator<'r>(object: &'r Object<'_>) -> Option<&'r ReferencedObject> {
        match &object.shown.dominator {
            Some(Dominator::Object(to)) => Some(to),
            _ => None,
        }
    }
    const NO_RULE: &str = "no framework rule describes it; in text reports";
    const NOT_IN_TEXTS: &str = "it is unreachable; in text reports";
    Columns::new([
        Column::new(names::OBJECT, |object: &Object<'a>| id(object.shown.object)),
        Column::new(names::CLASS, |object: &Object<'a>| object.shown.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |object: &Object<'a>| object.shown.label.as_ref().into())
            .or_null("it has none; in text reports"),
        Column::new(names::KIND, |object: &Object<'a>| object.shown.kind.name().into()),
        Column::new(names::SHALLOW_BYTES, |object: &Object<'a>| object.shown.shallow_bytes.into())
            .or_null("in text reports"),
        Column::new(names::RETAINED_BYTES, |object: &Object<'a>| object.shown.retained_bytes.into())
            .or_null(NOT_IN_TEXTS),
        Column::new(names::FRAMEWORK, |object: &Object<'a>| {
            object.known.as_ref().map(|known| &*known.framework).into()
        })
        .or_null(NO_RULE),
        Column::new(names::CALLED, |object: &Object<'a>| {
            object.known.as_ref().and_then(|known| known.called.as_ref()).into()
        })
        .or_null(NO_RULE),
        Column::new(names::FRAMEWORK_FACTS, |object: &Object<'a>| {
            object.known.as_ref().map(|known| frameworks::facts(&known.facts)).into()
        })
        .or_null(NO_RULE),
        Column::new(names::TEXT, |object: &Object<'a>| {
            object.known.as_ref().and_then(|known| known.text.as_ref()).into()
        })
        .or_null("its rule has no sentence for it, or no rule describes it; in text reports"),
        Column::new(names::TRACE, |object: &Object<'a>| object.shown.trace.into()),
        Column::new(names::LENGTH, |object: &Object<'a>| object.shown.length.into()).or_null("not an array"),
        Column::new(names::CLASS_OBJECT, |object: &Object<'a>| id(object.shown.class_object))
            .or_null(nulls::UNKNOWN),
        Column::with_fields(names::ROOTS, roots.fields(), move |object: &Object<'a>| {
            list(object.shown.roots.iter().map(|root| roots.record(root)))
        }),
        Column::with_fields(names::FIELDS, parts.fields(), move |object: &Object<'a>| {
            lazy_records(&parts, object.parts)
        }),
        Column::with_fields(names::CONTENTS, contents.fields(), move |object: &Object<'a>| {
            object.shown.contents.as_ref().map(|held| contents.record(held)).into()
        })
        .or_null("not a known collection; in text reports"),
        Column::with_fields(names::INCOMING, referrers.fields(), move |object: &Object<'a>| {
            object.referrers.map(|items| lazy_records(&referrers, items)).into()
        })
        .or_null("without `--incoming`"),
        Column::new(names::VALUE, |object: &Object<'a>| {
            object.shown.value.as_ref().map(|value| &value.text).into()
        })
        .or_null("its class is not known; for arrays and class objects; in text reports"),
        Column::new(names::IS_VALUE_TRUNCATED, |object: &Object<'a>| {
            object.shown.value.as_ref().map(|value| value.is_cut).into()
        })
        .or_null("no `value`"),
        Column::new(names::STACK, |object: &Object<'a>| {
            object.shown.stack.as_ref().map(|stack| list(&stack.frames)).into()
        })
        .or_null("it is none, or has none; in text reports"),
        Column::new(names::DOMINATOR_OR_ROOT, |object: &Object<'a>| match &object.shown.dominator {
            Some(Dominator::Roots) => "root".into(),
            Some(Dominator::Object(to)) => id(to.object),
            None => Value::Null,
        })
        .or_null(NOT_IN_TEXTS),
        Column::new(names::DOMINATOR_CLASS, |object: &Object<'a>| {
            dominator(object).map(|to| to.class.as_ref()).into()
        })
        .or_null("`dominator` is not an ID, or its class is not known"),
        Column::new(names::DOMINATOR_LABEL, |object: &Object<'a>| {
            dominator(object).map(|to| to.label.as_ref()).into()
        })
        .or_null("`dominator` is not an ID, or has no label"),
        Column::new(names::LOADER, |object: &Object<'a>| {
            object.shown.loader.as_ref().map(loader_text).into()
        })
        .or_null("the class has no class object in the dump; in text reports"),
        Column::new(names::LOADER_OBJECT, |object: &Object<'a>| {
            object.shown.loader.as_ref().map(loader_object).into()
        })
        .or_null(nulls::BOOT_LOADER_OR_UNKNOWN),
        Column::with_fields(names::DESCRIBES, class.fields(), move |object: &Object<'a>| {
            object.shown.of_class.as_ref().map(|of| class.record(of)).into()
        })
        .or_null("it is none; in text reports"),
        Column::new(names::DATA, |object: &Object<'a>| object.data.as_ref().map(|data| &data.text).into())
            .or_null("without `--as`"),
        Column::new(names::DATA_FORM, |object: &Object<'a>| {
            object.data.as_ref().map(|data| data.form).into()
        })
        .or_null("without `--as`"),
    ])
}

/// Returns the columns of fields or elements; `title` is the table's title of the name column.
pub(super) fn part_columns(title: &'static str) -> Columns<'static, PartLine> {
    Columns::new([
        Column::new(names::NAME, |line: &PartLine| line.part().map(|part| &part.name).into())
            .header(title)
            .fit(Fit::Shorten { priority: 1 })
            .cell(|line| match line {
                PartLine::Part(part) => part.name.clone(),
                PartLine::Superclass(class) => format!("of {class}:"),
            }),
        Column::new(names::CLASS, |line: &PartLine| line.part().map(|part| part.class.as_ref()).into())
            .or_null("for elements, and for values that no class declares; in text reports"),
        Column::new(names::TYPE, |line: &PartLine| line.part().map(|part| part.kind.java_name()).into())
            .header("type"),
        Column::new(names::VALUE, |line: &PartLine| line.part().map(|part| value(&part.value)).into())
            .or_null("a null reference; elements that the dump omits")
            .header("value")
            .cell(|line| line.part().map(|part| value_text(&part.value)).unwrap_or_default())
            .fit(Fit::Shorten { priority: 0 }),
        Column::new(names::OBJECT, |line: &PartLine| {
            line.part().map(|part| referenced_id(&part.value)).into()
        })
        .or_null("it refers to none"),
    ])
}

/// Returns the columns of CSV with `--as`.
pub(super) fn data_columns() -> Columns<'static, ArrayText> {
    Columns::new([
        Column::new(names::DATA_FORM, |data: &ArrayText| data.form.into()),
        Column::new(names::DATA, |data: &ArrayText| Value::from(&data.text)),
    ])
}

fn root_columns() -> Columns<'static, RootShown> {
    Columns::new([
        Column::new(names::KIND, |root: &RootShown| root.kind.name().into()),
        Column::new(names::THREAD_NAME, |root: &RootShown| root.thread.as_ref().into())
            .or_null("it belongs to none"),
        Column::new(names::FRAME, |root: &RootShown| root.frame.as_ref().into())
            .or_null("it belongs to none"),
    ])
}

fn content_columns() -> Columns<'static, Contents> {
    let entries = entry_columns(collections::CollectionKind::Map);
    Columns::new([
        Column::new(names::KIND, |held: &Contents| held.kind.name().into()),
        Column::new(names::SIZE, |held: &Contents| held.size.into()).or_null("it states none"),
        Column::with_fields(names::ENTRIES, entries.fields(), move |held: &Contents| {
            list(held.entries.iter().map(|entry| entries.record(entry)))
        }),
    ])
}

/// Returns the columns for the elements of a collection of the given kind.
pub(super) fn entry_columns(kind: collections::CollectionKind) -> Columns<'static, ContentEntry> {
    let is_map = kind == collections::CollectionKind::Map;
    let key = Column::new(names::KEY, |entry: &ContentEntry| entry.key.as_ref().map(value).into())
        .or_null("no map; a null key");
    let key_text = |entry: &ContentEntry| entry.key.as_ref().map(value_text).unwrap_or_default();
    Columns::new([
        Column::new(names::INDEX, |entry: &ContentEntry| entry.index.into())
            .header("")
            .cell(|entry| entry.index.to_string()),
        if is_map { key.header("key").fit(Fit::Shorten { priority: 1 }).cell(key_text) } else { key },
        Column::new(names::KEY_OBJECT, |entry: &ContentEntry| entry.key.as_ref().map(referenced_id).into())
            .or_null("no map; a null key"),
        Column::new(names::VALUE, |entry: &ContentEntry| value(&entry.value))
            .or_null("null")
            .header(if is_map { "value" } else { "element" })
            .cell(|entry| value_text(&entry.value))
            .fit(Fit::Shorten { priority: 0 }),
        Column::new(names::OBJECT, |entry: &ContentEntry| referenced_id(&entry.value)).or_null("it is none"),
    ])
}

/// Returns the columns for the referrers of an object.
pub(super) fn referrer_columns() -> Columns<'static, Referrer> {
    Columns::new([
        Column::new(names::OBJECT, |referrer: &Referrer| id(referrer.object)).header("referrer"),
        Column::new(names::CLASS, |referrer: &Referrer| referrer.class.as_ref().into())
            .or_null(nulls::CLASS_MISSING),
        Column::new(names::LABEL, |referrer: &Referrer| referrer.label.as_ref().into())
            .or_null("it has none; in text reports"),
        Column::new(names::REFERENCE, |referrer: &Referrer| referrer.reference.as_ref().into())
            .or_null(nulls::UNKNOWN)
            .header("field")
            .fit(Fit::Shorten { priority: 1 }),
        Column::table("class", Align::Left, |referrer: &Referrer| {
            object::describe_without_id(referrer.class.as_deref(), referrer.label.as_deref())
        })
        .fit(Fit::Shorten { priority: 0 }),
    ])
}

fn class_columns() -> Columns<'static, ShownClass> {
    let fields = declared_columns();
    Columns::new([
        Column::new(names::CLASS, |class: &ShownClass| Value::from(&class.name)),
        Column::new(names::SUPERCLASS, |class: &ShownClass| {
            class.superclass.as_ref().map(|to| to.label.as_ref()).into()
        })
        .or_null(nulls::NONE),
        Column::new(names::SUPERCLASS_OBJECT, |class: &ShownClass| {
            id(class.superclass.as_ref().map(|to| to.object))
        })
        .or_null(nulls::NONE),
        Column::new(names::LOADER, |class: &ShownClass| loader_text(&class.loader).into()),
        Column::new(names::LOADER_OBJECT, |class: &ShownClass| loader_object(&class.loader))
            .or_null("the boot loader"),
        Column::new(names::INSTANCES, |class: &ShownClass| class.instances.into()),
        Column::new(names::SHALLOW_BYTES, |class: &ShownClass| class.shallow_bytes.into()),
        Column::new(names::INSTANCE_BYTES, |class: &ShownClass| class.instance_bytes.into())
            .or_null("for arrays and java.lang.Class, whose instances differ in size"),
        Column::with_fields(names::FIELDS, fields.fields(), move |class: &ShownClass| {
            list(class.fields.iter().map(|field| fields.record(field)))
        }),
    ])
}

/// Returns the columns for the fields that a class declares.
pub(super) fn declared_columns() -> Columns<'static, DeclaredField> {
    Columns::new([
        Column::new(names::NAME, |field: &DeclaredField| Value::from(&field.name)).header("declared field"),
        Column::new(names::TYPE, |field: &DeclaredField| field.kind.java_name().into())
            .header("type")
            .fit(Fit::Shorten { priority: 0 }),
    ])
}

/// Returns the columns for suggested IDs or names if the object does not exist.
pub(super) fn suggestion_columns() -> Columns<'static, Vec<String>> {
    Columns::new([Column::new(names::NEAR, |near: &Vec<String>| list(near))])
}

pub(super) fn row_schema() -> Vec<ResultSchema> {
    let schema =
        |variant, about, rows, summary| ResultSchema { command: "show", variant, about, rows, summary };
    vec![
        schema(
            "",
            "The row is the object or class object; there is none if it does not exist.",
            object_columns().fields(),
            suggestion_columns().fields(),
        ),
        schema("CSV", "A row is a field or element.", part_columns("field").fields(), Vec::new()),
        schema(
            "CSV of a collection",
            "A row is an element of the list, set or other collection, or an entry of the map.",
            entry_columns(collections::CollectionKind::Map).fields(),
            Vec::new(),
        ),
        schema("CSV with `--as hex` or `--as text`", "One row.", data_columns().fields(), Vec::new()),
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
