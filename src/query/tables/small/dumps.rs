//! The tables `dumps`, `properties` and `labels`.

use hprof_index::DumpGraph;
use std::io;

use super::super::{Column, Context, Definition};
use super::RowWriter;
use hprof_base::dictionary::names;
use hprof_index::model::problem::Severity;
use hprof_model::dump::info;
use hprof_model::objects::reader::Characters;
use hprof_recordings::profile::rfc3339;

/// Returns the definition of `dumps`.
pub(crate) fn definition() -> Definition {
    let unknown = "the dump does not say";
    Definition {
        name: "dumps".into(),
        meaning: "The dump: one row".into(),
        order: "of the dumps".into(),
        columns: vec![
            Column::of(names::NAME),
            Column::of(names::FILE),
            Column::of(names::CREATED).or_null(unknown),
            Column::of(names::CREATED_MS).or_null(unknown),
            Column::of(names::JVM_TEXT).or_null(unknown),
            Column::of(names::JVM_NAME).or_null(unknown),
            Column::of(names::JVM_VERSION).or_null(unknown),
            Column::of(names::JVM_VENDOR).or_null(unknown),
            Column::of(names::FORMAT),
            Column::of(names::ID_BYTES),
            Column::of(names::FILE_BYTES),
            Column::of(names::DUMP_BYTES),
            Column::of(names::COMPRESSION).or_null("it is not"),
            Column::of(names::REFERENCE_BYTES),
            Column::of(names::HEADER_BYTES),
            Column::of(names::ALIGNMENT_BYTES),
            Column::of(names::OBJECTS),
            Column::of(names::INSTANCES),
            Column::of(names::OBJECT_ARRAYS),
            Column::of(names::PRIMITIVE_ARRAYS),
            Column::of(names::CLASS_OBJECTS),
            Column::of(names::ROOT_COUNT),
            Column::of(names::SHALLOW_BYTES),
            Column::of(names::REACHABLE_OBJECTS),
            Column::of(names::REACHABLE_BYTES),
            Column::of(names::IS_DAMAGED),
            Column::of(names::PROBLEM_COUNT),
            Column::of(names::DAMAGE_COUNT),
            Column::of(names::SKIPPED_BYTES),
            Column::of(names::LABELS),
        ],
    }
}

/// Makes the row of `dumps`.
pub(crate) fn make(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    let Context { dump, sizes, about, .. } = context;
    let DumpGraph { heap, summary, graph } = **dump;
    let info = info::info(heap, sizes);
    let property = |keys: &[&str]| keys.iter().find_map(|key| summary.property(key));
    let layout = sizes.layout();
    let [instances, object_arrays, primitive_arrays, class_objects] = info.objects;
    let damages = info.problems.iter().filter(|problem| problem.severity == Severity::Damage).count();
    let labels = about.labels.iter().map(|(name, value)| (name.clone(), value.clone().into()));
    let file = heap.path().file_name().map(|name| name.to_string_lossy().into_owned());
    rows.text(&*about.name)
        .text(file.as_deref().unwrap_or_default())
        .text(rfc3339(info.created_ms, 0).as_deref())
        .count((info.created_ms > 0).then_some(info.created_ms))
        .text(info.jvm().as_deref())
        .text(property(&["java.vm.name"]))
        .text(property(&["java.runtime.version", "java.version", "java.vm.version"]))
        .text(property(&["java.vendor", "java.vm.vendor"]))
        .text(info.format)
        .count(u64::from(info.id_bytes))
        .count(info.file_bytes)
        .count(info.dump_bytes)
        .text(info.compression)
        .count(u64::from(layout.reference_bytes))
        .count(u64::from(layout.header_bytes))
        .count(u64::from(layout.alignment_bytes))
        .count(info.objects.iter().sum::<u64>())
        .count(instances)
        .count(object_arrays)
        .count(primitive_arrays)
        .count(class_objects)
        .count(summary.roots().len() as u64)
        .count(info.shallow_bytes)
        .count(u64::from(graph.tree.reachable()))
        .count(graph.tree.reachable_bytes())
        .boolean(summary.is_damaged())
        .count(info.problems.len() as u64)
        .count(damages as u64)
        .count(summary.account().skipped_bytes)
        .text(&*serde_json::Value::Object(labels.collect()).to_string())
        .end();
    Ok(())
}

/// Returns the definition of `properties`.
pub(crate) fn properties() -> Definition {
    Definition {
        name: "properties".into(),
        meaning: "A system property of the JVM that the index stores: those that are usually not secret"
            .into(),
        order: "by name".into(),
        columns: vec![Column::of(names::NAME), Column::of(names::VALUE).secret(), Column::of(names::HASH)],
    }
}

/// Makes the rows of `properties`.
pub(crate) fn make_properties(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    for (key, value) in context.dump.summary.properties() {
        let units: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let hash = context.about.text_key.hash(&Characters::Utf16Le(&units));
        rows.text(key).text(value).integer(hash.cast_signed()).end();
    }
    Ok(())
}

/// Returns the definition of `labels`.
pub(crate) fn labels() -> Definition {
    Definition {
        name: "labels".into(),
        meaning: "A label that the user gave the dump".into(),
        order: "as they were given".into(),
        columns: vec![Column::of(names::NAME), Column::of(names::VALUE)],
    }
}

/// Makes the rows of `labels`.
pub(crate) fn make_labels(context: &Context<'_>, rows: &mut RowWriter) -> io::Result<()> {
    for (name, value) in &context.about.labels {
        rows.text(&**name).text(&**value).end();
    }
    Ok(())
}
