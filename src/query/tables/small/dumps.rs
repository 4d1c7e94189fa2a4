//! The tables `dumps`, `properties` and `labels`.

use std::io;

use super::super::context::About;
use super::super::fact_columns::FactColumns;
use super::super::{Batch, Definition, TableContext};
use hprof_base::dictionary::{names, nulls};
use hprof_base::fact::Fact;
use hprof_index::DumpGraph;
use hprof_index::graph::tree::Tree;
use hprof_index::layout::object_layout::Layout;
use hprof_index::model::problem::Severity;
use hprof_index::model::summary::Summary;
use hprof_model::dump::info::{self, DumpInfo};
use hprof_model::objects::reader::Characters;
use hprof_recordings::profile::rfc3339;

/// Row of `dumps`.
struct DumpEntry<'d> {
    about: &'d About,
    info: DumpInfo,
    file: String,
    summary: &'d Summary,
    tree: &'d Tree,
    layout: &'d Layout,
}

impl DumpEntry<'_> {
    fn property(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.summary.property(key))
    }

    fn damages(&self) -> u64 {
        self.info.problems.iter().filter(|problem| problem.severity == Severity::Damage).count() as u64
    }

    /// Returns the labels as JSON.
    fn labels(&self) -> String {
        let labels = self.about.labels.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        serde_json::Value::Object(labels.collect()).to_string()
    }

    /// Returns the facts about a dump; each is a column, in this order.
    fn facts() -> Vec<Fact<Self>> {
        const UNKNOWN: &str = "not in the dump";
        vec![
            Fact::new(names::NAME, |entry: &Self| entry.about.name.as_str().into()),
            Fact::new(names::FILE, |entry: &Self| (&entry.file).into()),
            Fact::new(names::CREATED, |entry: &Self| rfc3339(entry.info.created_ms, 0).into())
                .or_null(UNKNOWN),
            Fact::new(names::CREATED_MS, |entry: &Self| {
                (entry.info.created_ms > 0).then_some(entry.info.created_ms).into()
            })
            .or_null(UNKNOWN),
            Fact::new(names::JVM_TEXT, |entry: &Self| entry.info.jvm().into()).or_null(UNKNOWN),
            Fact::new(names::JVM_NAME, |entry: &Self| entry.property(&["java.vm.name"]).into())
                .or_null(UNKNOWN),
            Fact::new(names::JVM_VERSION, |entry: &Self| {
                entry.property(&["java.runtime.version", "java.version", "java.vm.version"]).into()
            })
            .or_null(UNKNOWN),
            Fact::new(names::JVM_VENDOR, |entry: &Self| {
                entry.property(&["java.vendor", "java.vm.vendor"]).into()
            })
            .or_null(UNKNOWN),
            Fact::new(names::FORMAT, |entry: &Self| entry.info.format.into()),
            Fact::new(names::ID_BYTES, |entry: &Self| u64::from(entry.info.id_bytes).into()),
            Fact::new(names::FILE_BYTES, |entry: &Self| entry.info.file_bytes.into()),
            Fact::new(names::DUMP_BYTES, |entry: &Self| entry.info.dump_bytes.into()),
            Fact::new(names::COMPRESSION, |entry: &Self| entry.info.compression.into())
                .or_null(nulls::UNCOMPRESSED),
            Fact::new(names::REFERENCE_BYTES, |entry: &Self| u64::from(entry.layout.reference_bytes).into()),
            Fact::new(names::HEADER_BYTES, |entry: &Self| u64::from(entry.layout.header_bytes).into()),
            Fact::new(names::ALIGNMENT_BYTES, |entry: &Self| u64::from(entry.layout.alignment_bytes).into()),
            Fact::new(names::OBJECTS, |entry: &Self| entry.info.objects.iter().sum::<u64>().into()),
            Fact::new(names::INSTANCES, |entry: &Self| entry.info.objects[0].into()),
            Fact::new(names::OBJECT_ARRAYS, |entry: &Self| entry.info.objects[1].into()),
            Fact::new(names::PRIMITIVE_ARRAYS, |entry: &Self| entry.info.objects[2].into()),
            Fact::new(names::CLASS_OBJECTS, |entry: &Self| entry.info.objects[3].into()),
            Fact::new(names::ROOT_COUNT, |entry: &Self| (entry.summary.roots().len() as u64).into()),
            Fact::new(names::SHALLOW_BYTES, |entry: &Self| entry.info.shallow_bytes.into()),
            Fact::new(names::REACHABLE_OBJECTS, |entry: &Self| entry.tree.reachable().into()),
            Fact::new(names::REACHABLE_BYTES, |entry: &Self| entry.tree.reachable_bytes().into()),
            Fact::new(names::IS_DAMAGED, |entry: &Self| entry.summary.is_damaged().into()),
            Fact::new(names::PROBLEM_COUNT, |entry: &Self| (entry.info.problems.len() as u64).into()),
            Fact::new(names::DAMAGE_COUNT, |entry: &Self| entry.damages().into()),
            Fact::new(names::SKIPPED_BYTES, |entry: &Self| entry.summary.account().skipped_bytes.into()),
            Fact::new(names::LABELS, |entry: &Self| entry.labels().into()),
        ]
    }
}

/// Returns the definition of `dumps`.
pub(crate) fn definition() -> Definition {
    Definition {
        name: "dumps".into(),
        meaning: "The dump: one row".into(),
        order: "of the dumps".into(),
        columns: FactColumns::from_facts(DumpEntry::facts()).definitions(),
    }
}

/// Adds the row of `dumps`.
pub(crate) fn make(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let TableContext { dump, sizes, about, .. } = context;
    let DumpGraph { heap, summary, graph } = **dump;
    let file = heap.path().file_name().map(|name| name.to_string_lossy().into_owned());
    let (info, layout) = (info::info(heap, sizes), sizes.layout());
    let entry = DumpEntry { about, info, file: file.unwrap_or_default(), summary, tree: &graph.tree, layout };
    FactColumns::from_facts(DumpEntry::facts()).add_with_names(&entry, summary, rows);
    Ok(())
}

/// A row of `properties`.
struct PropertyEntry<'d> {
    key: &'d str,
    value: &'d str,
    hash: i64,
}

impl PropertyEntry<'_> {
    fn facts() -> Vec<Fact<Self>> {
        vec![
            Fact::new(names::NAME, |entry: &Self| entry.key.into()),
            Fact::new(names::VALUE, |entry: &Self| entry.value.into()).secret(),
            Fact::new(names::HASH, |entry: &Self| entry.hash.into()),
        ]
    }
}

/// Returns the definition of `properties`.
pub(crate) fn properties() -> Definition {
    Definition {
        name: "properties".into(),
        meaning: "A system property of the JVM; the index stores only properties that are usually not secret"
            .into(),
        order: "by name".into(),
        columns: FactColumns::from_facts(PropertyEntry::facts()).definitions(),
    }
}

/// Adds the rows of `properties`.
pub(crate) fn make_properties(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let (columns, summary) = (FactColumns::from_facts(PropertyEntry::facts()), context.dump.summary);
    for (key, value) in context.dump.summary.properties() {
        let units: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let hash = context.about.text_key.hash(&Characters::Utf16Le(&units));
        columns.add_with_names(&PropertyEntry { key, value, hash: hash.cast_signed() }, summary, rows);
    }
    Ok(())
}

/// Returns the facts of a label: its name and its value.
fn label_facts() -> Vec<Fact<(String, String)>> {
    vec![
        Fact::new(names::NAME, |(name, _): &(String, String)| name.into()),
        Fact::new(names::VALUE, |(_, value): &(String, String)| value.into()),
    ]
}

/// Returns the definition of `labels`.
pub(crate) fn labels() -> Definition {
    Definition {
        name: "labels".into(),
        meaning: "A label that the user assigned to the dump".into(),
        order: "as they were given".into(),
        columns: FactColumns::from_facts(label_facts()).definitions(),
    }
}

/// Adds the rows of `labels`.
pub(crate) fn make_labels(context: &TableContext<'_>, rows: &mut Batch) -> io::Result<()> {
    let columns = FactColumns::from_facts(label_facts());
    for label in &context.about.labels {
        columns.add_with_names(label, context.dump.summary, rows);
    }
    Ok(())
}
