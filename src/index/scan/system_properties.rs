//! The JVM's own system properties, read from the heap: `java.lang.System.props`.
//!
//! A `Properties` contains a `ConcurrentHashMap` since JDK 9 and is a `Hashtable` before.

use crate::storage::id_map::IdSet;

use hprof_values::{BasicType, ObjectId};

use super::find_objects::{FoundObject, Lookup};
use crate::model::summary::{ClassIds, Summary};
use crate::objects::fields::Fields;

/// Properties that are stored: those that identify the JVM and the program it ran. Others may be secret.
const KEPT: &[&str] = &[
    "file.encoding",
    "java.class.path",
    "java.class.version",
    "java.home",
    "java.io.tmpdir",
    "java.runtime.name",
    "java.runtime.version",
    "java.specification.version",
    "java.vendor",
    "java.vendor.version",
    "java.version",
    "java.version.date",
    "java.vm.info",
    "java.vm.name",
    "java.vm.vendor",
    "java.vm.version",
    "jdk.debug",
    "os.arch",
    "os.name",
    "os.version",
    "sun.arch.data.model",
    "sun.java.command",
    "user.dir",
    "user.timezone",
];

/// Length at which strings are truncated: a class path of megabytes is of no use.
const MAX_CHARS: usize = 4096;
/// Maximum number of entries of the hash table that are followed.
const MAX_ENTRIES: usize = 100_000;
/// Maximum number of links of a bucket that are followed.
const MAX_LINKS: usize = 64;

/// Returns the stored properties, ascending by key.
pub(crate) fn properties(
    summary: &Summary,
    lookup: &Lookup<'_>,
    classes: &ClassIds,
) -> Vec<(String, String)> {
    read(summary, lookup, classes).unwrap_or_default()
}

fn read(summary: &Summary, lookup: &Lookup<'_>, classes: &ClassIds) -> Option<Vec<(String, String)>> {
    let fields_of = |found| match found {
        FoundObject::Instance { class, fields } => Some(Fields::new(summary, *classes.get(&class)?, fields)),
        _ => None,
    };
    let system = summary.classes().iter().find(|class| {
        class.loader.get() == 0 && class.is_dumped() && summary.is_named(class, "java.lang.System")
    })?;
    let props =
        summary.statics(system).find(|(name, kind, _)| *name == "props" && *kind == BasicType::Object);
    let props = fields_of(lookup.find_one(ObjectId(props?.2))?)?;
    let map = props.reference("map").and_then(|map| fields_of(lookup.find_one(map)?));
    let table = map.unwrap_or(props).reference("table")?;
    let FoundObject::Objects { elements } = lookup.find_one(table)? else {
        return None;
    };
    let mut level: IdSet<ObjectId> =
        lookup.ids_in(elements).filter(|id| !id.is_null()).take(MAX_ENTRIES).collect();
    let mut pairs = Vec::new();
    for _ in 0..MAX_LINKS {
        if level.is_empty() || pairs.len() > MAX_ENTRIES {
            break;
        }
        let mut next = IdSet::default();
        for node in lookup.find(&level).into_values().filter_map(fields_of) {
            let value = node.reference("val").or_else(|| node.reference("value"));
            pairs.extend(node.reference("key").zip(value));
            // A tree bin's nodes are linked from `first`.
            next.extend(node.reference("next"));
            next.extend(node.reference("first"));
        }
        level = next;
    }
    let wanted = pairs.iter().flat_map(|(key, value)| [*key, *value]).collect();
    let texts = lookup.strings(summary, classes, &wanted, MAX_CHARS);
    let mut properties: Vec<(String, String)> = (pairs.iter())
        .filter_map(|(key, value)| Some((texts.get(key)?.clone(), texts.get(value)?.clone())))
        .filter(|(key, _)| KEPT.contains(&key.as_str()))
        .collect();
    properties.sort();
    properties.dedup_by(|a, b| a.0 == b.0);
    Some(properties)
}
