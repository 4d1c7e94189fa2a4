//! The tables `dumps`, `properties` and `labels`.

use std::io;

use super::super::{Column, Context, Definition, Kind};
use super::Rows;
use crate::dump::info;
use crate::objects::reader::Characters;
use crate::recordings::profile::rfc3339;
use crate::strings::contents::hash;
use crate::tables::strings::SEED;
use hprof_index::model::problem::Severity;

/// What `dumps` has.
pub(super) fn definition() -> Definition {
    let unknown = "the dump does not say";
    Definition {
        name: "dumps".into(),
        meaning: "The dump: one row".into(),
        order: "there is one row".into(),
        columns: vec![
            Column::new(
                "name",
                Kind::Text,
                "what it is called among others, as in the directories of an export",
            ),
            Column::new("file", Kind::Text, "the name of its file, without directories"),
            Column::new("created", Kind::Text, "when it was made: RFC 3339, UTC").or_null(unknown),
            Column::new("created_ms", Kind::Integer, "the same in milliseconds since 1970").or_null(unknown),
            Column::new("jvm", Kind::Text, "the JVM in one line: name, version and vendor").or_null(unknown),
            Column::new("jvm_name", Kind::Text, "java.vm.name").or_null(unknown),
            Column::new("jvm_version", Kind::Text, "java.runtime.version, java.version or java.vm.version")
                .or_null(unknown),
            Column::new("jvm_vendor", Kind::Text, "java.vendor or java.vm.vendor").or_null(unknown),
            Column::new("format", Kind::Text, "the format's version, as in `info`"),
            Column::new("id_bytes", Kind::Integer, "bytes of an identifier"),
            Column::new("file_bytes", Kind::Integer, "length of the file as it lies on disk"),
            Column::new("dump_bytes", Kind::Integer, "length of the dump, unpacked"),
            Column::new("compression", Kind::Text, "how the file is compressed").or_null("it is not"),
            Column::new("reference_bytes", Kind::Integer, "bytes of a reference in an object: 4 or 8"),
            Column::new("header_bytes", Kind::Integer, "bytes of an object's header"),
            Column::new("alignment_bytes", Kind::Integer, "sizes are multiples of this"),
            Column::new("objects", Kind::Integer, "all objects, class objects among them"),
            Column::new("instances", Kind::Integer, "objects that are instances"),
            Column::new("object_arrays", Kind::Integer, "arrays of references"),
            Column::new("primitive_arrays", Kind::Integer, "arrays of primitives"),
            Column::new("class_objects", Kind::Integer, "class objects"),
            Column::new("roots", Kind::Integer, "GC roots"),
            Column::new("shallow_bytes", Kind::Integer, "what all objects take"),
            Column::new("reachable_objects", Kind::Integer, "objects that GC roots lead to"),
            Column::new("reachable_bytes", Kind::Integer, "what they take"),
            Column::new("is_damaged", Kind::Boolean, "whether part of it is missing or unreadable"),
            Column::new("problems", Kind::Integer, "what is wrong or odd, as `info` lists it"),
            Column::new("damages", Kind::Integer, "those of the problems that are damage"),
            Column::new("skipped_bytes", Kind::Integer, "bytes that could not be read"),
            Column::new("labels", Kind::Text, "its labels as a JSON object; also in the table `labels`"),
        ],
    }
}

/// The one row of `dumps`.
pub(super) fn make(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    let Context { heap, summary, graph, sizes, about, .. } = context;
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
        .text(info.version.name())
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

/// What `properties` has.
pub(super) fn properties() -> Definition {
    Definition {
        name: "properties".into(),
        meaning: "A system property of the JVM that the index keeps: those that are usually no secret".into(),
        order: "by name".into(),
        columns: vec![
            Column::new("name", Kind::Text, "its key"),
            Column::new("value", Kind::Text, "its value").secret(),
            Column::new(
                "hash",
                Kind::Integer,
                "hash of the value, as of a String of the same text in `strings`",
            ),
        ],
    }
}

/// The rows of `properties`.
pub(super) fn make_properties(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    for (key, value) in context.summary.properties() {
        let units: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let hash = hash(&Characters::Utf16Le(&units), SEED);
        rows.text(key).text(value).integer(hash.cast_signed()).end();
    }
    Ok(())
}

/// What `labels` has.
pub(super) fn labels() -> Definition {
    Definition {
        name: "labels".into(),
        meaning: "A label that the user gave the dump".into(),
        order: "as they were given".into(),
        columns: vec![
            Column::new("name", Kind::Text, "its name: `service`"),
            Column::new("value", Kind::Text, "its value: `cart`"),
        ],
    }
}

/// The rows of `labels`.
pub(super) fn make_labels(context: &Context<'_>, rows: &mut Rows) -> io::Result<()> {
    for (name, value) in &context.about.labels {
        rows.text(&**name).text(&**value).end();
    }
    Ok(())
}
