//! An object as JSON and CSV show it.

use serde::Serialize;
use serde_json::json;

use crate::hprof::BasicType;
use crate::query::objects::meaning;
use crate::query::objects::show::{ClassShown, Contents, Dominator, Loader, Part, Referrer, Shown, Value};
use crate::report::{escape, json::object_id};

use super::{Encoded, character};
use crate::cli::shared::object::{self, AsText};

/// A value as programs read it: of a reference its class, and its label in quotes.
fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Boolean(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Char(unit) => character(*unit).into(),
        // What JSON has no number for is a text. A float has the digits that Java gives it, not those of the double.
        Value::Float(value) if value.is_finite() => json!(value.to_string().parse::<f64>().unwrap_or(0.0)),
        Value::Double(value) if value.is_finite() => json!(value),
        Value::Float(value) => meaning::float(*value).into(),
        Value::Double(value) => meaning::double(*value).into(),
        Value::Reference(None) => serde_json::Value::Null,
        Value::Reference(Some(to)) => {
            object::describe_without_id(to.class.as_deref(), to.label.as_deref()).into()
        }
    }
}

#[derive(Serialize)]
pub(super) struct ObjectOut<'a, P, R> {
    object: String,
    class: Option<&'a str>,
    label: Option<&'a str>,
    kind: &'static str,
    shallow_bytes: Option<u64>,
    retained_bytes: Option<u64>,
    trace: u32,
    length: Option<u64>,
    class_object: Option<String>,
    roots: Vec<RootOut<'a>>,
    fields: P,
    contents: Option<ContentsOut>,
    incoming: Option<R>,
    value: Option<&'a str>,
    value_cut: Option<bool>,
    stack: Option<&'a [String]>,
    dominator: Option<String>,
    dominator_class: Option<&'a str>,
    dominator_label: Option<&'a str>,
    loader: Option<String>,
    loader_object: Option<String>,
    describes: Option<ClassOut<'a>>,
    data: Option<String>,
    data_form: Option<&'static str>,
}

/// The class of a class object.
#[derive(Serialize)]
struct ClassOut<'a> {
    class: &'a str,
    superclass: Option<&'a str>,
    superclass_object: Option<String>,
    loader: String,
    loader_object: Option<String>,
    instances: u64,
    shallow_bytes: u64,
    instance_bytes: Option<u64>,
    fields: Vec<DeclaredOut<'a>>,
}

#[derive(Serialize)]
struct DeclaredOut<'a> {
    name: &'a str,
    r#type: &'static str,
}

impl<'a> ClassOut<'a> {
    fn new(class: &'a ClassShown) -> Self {
        let fields = class.fields.iter();
        Self {
            class: &class.name,
            superclass: class.superclass.as_ref().and_then(|to| to.label.as_deref()),
            superclass_object: class.superclass.as_ref().map(|to| object_id(to.object)),
            loader: loader_text(&class.loader),
            loader_object: loader_id(&class.loader),
            instances: class.instances,
            shallow_bytes: class.shallow_bytes,
            instance_bytes: class.instance_bytes,
            fields: fields
                .map(|field| DeclaredOut { name: &field.name, r#type: type_name(field.kind) })
                .collect(),
        }
    }
}

/// A class loader as `histo` names it.
pub(super) fn loader_text(loader: &Loader) -> String {
    match loader {
        Loader::Boot => "<boot loader>".to_owned(),
        Loader::Object(to) => match &to.class {
            Some(class) => format!("{class} @ {:#x}", to.object),
            None => object_id(to.object),
        },
    }
}

fn loader_id(loader: &Loader) -> Option<String> {
    match loader {
        Loader::Boot => None,
        Loader::Object(to) => Some(object_id(to.object)),
    }
}

#[derive(Serialize)]
struct ContentsOut {
    kind: &'static str,
    size: Option<u64>,
    entries: Vec<EntryOut>,
}

#[derive(Serialize)]
struct EntryOut {
    index: u64,
    key: Option<serde_json::Value>,
    key_object: Option<String>,
    value: serde_json::Value,
    object: Option<String>,
}

impl ContentsOut {
    fn new(contents: &Contents) -> Self {
        let entries = contents.entries.iter().map(|entry| EntryOut {
            index: entry.index,
            key: entry.key.as_ref().map(value_json),
            key_object: entry.key.as_ref().and_then(referred_id),
            value: value_json(&entry.value),
            object: referred_id(&entry.value),
        });
        Self { kind: contents.kind.name(), size: contents.size, entries: entries.collect() }
    }
}

/// The id of the object that a value refers to.
fn referred_id(value: &Value) -> Option<String> {
    match value {
        Value::Reference(Some(to)) => Some(object_id(to.object)),
        _ => None,
    }
}

impl<'a, P, R> ObjectOut<'a, P, R> {
    pub(super) fn new(shown: &'a Shown, fields: P, incoming: Option<R>, data: Option<Encoded>) -> Self {
        let (data, data_form) = data.map(|data| (data.text, data.form)).unzip();
        let dominator = match &shown.dominator {
            Some(Dominator::Object(to)) => Some(to),
            _ => None,
        };
        let roots = shown.roots.iter().map(|root| RootOut {
            kind: root.kind.name(),
            thread: root.thread.as_deref(),
            frame: root.frame.as_deref(),
        });
        Self {
            object: object_id(shown.object),
            class: shown.class.as_deref(),
            label: shown.label.as_deref(),
            kind: shown.kind.name(),
            shallow_bytes: shown.shallow_bytes,
            retained_bytes: shown.retained_bytes,
            trace: shown.trace,
            length: shown.length,
            class_object: shown.class_object.map(object_id),
            roots: roots.collect(),
            fields,
            contents: shown.contents.as_ref().map(ContentsOut::new),
            incoming,
            value: shown.value.as_ref().map(|value| value.text.as_str()),
            value_cut: shown.value.as_ref().map(|value| value.is_cut),
            stack: shown.stack.as_ref().map(|stack| stack.frames.as_slice()),
            dominator: shown.dominator.as_ref().map(|dominator| match dominator {
                Dominator::Roots => "root".to_owned(),
                Dominator::Object(to) => object_id(to.object),
            }),
            dominator_class: dominator.and_then(|to| to.class.as_deref()),
            dominator_label: dominator.and_then(|to| to.label.as_deref()),
            loader: shown.loader.as_ref().map(loader_text),
            loader_object: shown.loader.as_ref().and_then(loader_id),
            describes: shown.of_class.as_ref().map(ClassOut::new),
            data,
            data_form,
        }
    }
}

#[derive(Serialize)]
struct RootOut<'a> {
    kind: &'static str,
    thread: Option<&'a str>,
    frame: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct PartOut<V> {
    name: String,
    class: Option<String>,
    r#type: &'static str,
    value: V,
    object: Option<String>,
}

impl<V> PartOut<V> {
    pub(super) const COLUMNS: &[&str] = &["name", "class", "type", "value", "object"];

    fn new(part: &Part, value: V, text: AsText) -> Self {
        let object = referred_id(&part.value);
        Self {
            name: text(&part.name),
            class: part.class.as_deref().map(text),
            r#type: type_name(part.kind),
            value,
            object,
        }
    }
}

impl PartOut<serde_json::Value> {
    pub(super) fn json(part: &Part) -> Self {
        Self::new(part, value_json(&part.value), str::to_owned)
    }
}

impl PartOut<String> {
    pub(super) fn csv(part: &Part) -> Self {
        let value = match value_json(&part.value) {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => escape::cell(&text).into_owned(),
            // A number with a sign is no formula.
            number => number.to_string(),
        };
        Self::new(part, value, object::cell)
    }
}

fn type_name(kind: BasicType) -> &'static str {
    kind.java_name()
}

#[derive(Serialize)]
pub(super) struct ReferrerOut {
    object: String,
    class: Option<String>,
    label: Option<String>,
    reference: Option<String>,
}

impl ReferrerOut {
    pub(super) fn new(referrer: Referrer) -> Self {
        let Referrer { object, class, label, reference } = referrer;
        Self { object: object_id(object), class, label, reference }
    }
}
