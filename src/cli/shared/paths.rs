//! Formatting of GC roots and of steps on paths.

use hprof_query::dictionary::{Name, names, nulls};
use hprof_query::objects::strength::Strength;
use hprof_query::paths::steps::{ObjectStep, RootView};
use hprof_report::column::{Column, Columns, JsonField};
use hprof_report::escape;
use hprof_report::value::{Value, id, list, record};
use hprof_values::RootKind;

use super::object_columns::{self, NamedObject};

/// Returns ID, class and label of the object at a step.
pub(crate) fn named_object(step: &ObjectStep) -> NamedObject<'_> {
    NamedObject { id: step.id, class: step.class.as_deref(), label: step.label.as_deref() }
}

/// Describes a reference: `static next (weak)`; empty if the dump does not contain its name.
pub(crate) fn describe_reference(reference: Option<&str>, is_static: bool, strength: Strength) -> String {
    let prefix = if is_static { "static " } else { "" };
    let suffix = match strength {
        Strength::Strong => String::new(),
        weaker => format!(" ({})", weaker.name()),
    };
    reference.map(|reference| format!("{prefix}{reference}{suffix}")).unwrap_or_default()
}

/// Describes the reference to the object at a step.
pub(crate) fn describe_held(step: &ObjectStep) -> String {
    describe_reference(step.reference.as_deref(), step.is_static, step.strength)
}

/// Returns the kind of a root in words; names that are unclear in the file format are explained.
fn kind_text(kind: RootKind) -> &'static str {
    match kind {
        RootKind::JniGlobal => "JNI global reference of native code",
        RootKind::StickyClass => "system class",
        other => other.name(),
    }
}

/// Describes a GC root: `java frame of thread "main" in com.acme.Main.run(Main.java:12)`.
pub(crate) fn describe_root(root: &RootView) -> String {
    let kinds: Vec<&str> = root.kinds.iter().map(|kind| kind_text(*kind)).collect();
    let mut text = kinds.join(", ");
    if root.is_assumed {
        text.push_str(" (assumed)");
    }
    text.push_str(&describe_thread(root));
    if let Some(frame) = &root.frame {
        text.push_str(&format!(" in {frame}"));
    }
    if root.more_threads > 0 {
        text.push_str(&format!(", and of {} more", root.more_threads));
    }
    text
}

fn describe_thread(root: &RootView) -> String {
    let Some(thread) = &root.thread else { return String::new() };
    match (&thread.name, thread.id) {
        (Some(name), _) => format!(" of thread {}", escape::quoted(name)),
        (None, Some(id)) => format!(" of thread {id:#x}"),
        (None, None) => " of an unknown thread".to_owned(),
    }
}

/// Describes the object at a step, including whether a thread's stack references it as well: `Node[] 0x7c00012a8, also a local
/// of thread "main" (com.acme.Main.run)`.
pub(crate) fn describe_step(step: &ObjectStep) -> String {
    let object = named_object(step).describe();
    let Some(root) = step.frame_roots.first() else { return object };
    let frame = root.frame.as_ref().map(|frame| format!(" ({})", frame.qualified_method()));
    let others = if step.frame_roots.len() > 1 { ", and of others" } else { "" };
    format!("{object}, also a local{}{}{others}", describe_thread(root), frame.unwrap_or_default())
}

/// Returns the columns of an object on a path and its reference: `object`, `class`, `label`, `reference`, `strength`,
/// `frame_roots`.
pub(crate) fn step_columns<'c, R: 'c>(
    step: fn(&R) -> &ObjectStep,
    is_root: fn(&R) -> bool,
) -> [Column<'c, R>; 6] {
    let [object, class, label] = object_columns::identity_columns(move |row| named_object(step(row)));
    let reference = Column::new(names::REFERENCE, move |row: &R| step(row).reference.as_deref().into());
    let strength = Column::new(names::STRENGTH, move |row: &R| {
        (!is_root(row)).then(|| step(row).strength.name()).into()
    });
    let reference = reference.or_null("it is a root, or the dump does not say");
    let frame_root = Columns::new(holding_columns(None, |root: &RootView| root));
    let frame_roots = Column::with_fields(names::FRAME_ROOTS, frame_root.fields(), move |row: &R| {
        list(step(row).frame_roots.iter().map(|root| frame_root.record(root)))
    });
    let frame_roots = frame_roots.csv(move |row: &R| list(step(row).frame_roots.iter().map(describe_root)));
    [object, class, label, reference, strength.or_null(nulls::IS_ROOT), frame_roots]
}

/// Returns the columns for a GC root, within `record` if given.
pub(crate) fn root_columns<'c, R: 'c>(record: Option<Name>, root: fn(&R) -> &RootView) -> Vec<Column<'c, R>> {
    let key = |name: Name| name.in_record(record);
    let object = [
        Column::new(key(names::OBJECT), move |row: &R| Value::Id(root(row).id)),
        Column::new(key(names::CLASS), move |row: &R| root(row).class.as_deref().into())
            .or_null(nulls::CLASS_MISSING),
    ];
    let assumed = Column::new(key(names::IS_ASSUMED), move |row: &R| root(row).is_assumed.into());
    object.into_iter().chain(holding_columns(record, root)).chain([assumed]).collect()
}

/// Returns the columns with the reason why an object is a root, within `record` if given.
fn holding_columns<'c, R: 'c>(record: Option<Name>, root: fn(&R) -> &RootView) -> [Column<'c, R>; 4] {
    let key = |name: Name| name.in_record(record);
    [
        Column::new(key(names::KINDS), move |row: &R| list(root(row).kinds.iter().map(|kind| kind.name()))),
        Column::new(key(names::THREAD), move |row: &R| {
            id(root(row).thread.as_ref().and_then(|thread| thread.id))
        })
        .or_null("it has none, or it is not in the dump"),
        Column::new(key(names::THREAD_NAME), move |row: &R| {
            root(row).thread.as_ref().and_then(|thread| thread.name.as_deref()).into()
        })
        .or_null("likewise, or the dump does not say"),
        Column::with_fields(key(names::HELD_BY_FRAME), frame_fields(), move |row: &R| frame(root(row)))
            .csv(move |row: &R| root(row).frame.as_ref().map(ToString::to_string).into())
            .or_null("there is none, or the dump does not hold it"),
    ]
}

fn frame(root: &RootView) -> Value<'_> {
    let Some(frame) = &root.frame else { return Value::Null };
    record([
        (names::CLASS, frame.class.as_deref().into()),
        (names::METHOD, frame.method.as_deref().into()),
        (names::SOURCE, frame.source.as_deref().into()),
        (names::LINE, frame.line().into()),
    ])
}

fn frame_fields() -> Vec<JsonField> {
    [names::CLASS, names::METHOD, names::SOURCE, names::LINE]
        .map(|name| JsonField::new(name).or_null(nulls::UNKNOWN))
        .to_vec()
}
