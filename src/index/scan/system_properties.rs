//! The JVM's own system properties, read from the heap: `java.lang.System.props`.
//!
//! A `Properties` holds a `ConcurrentHashMap` since JDK 9 and is a `Hashtable` before; strings hold bytes since JDK 9,
//! chars before, and part of an array in JDK 6.

use crate::index::storage::id_map::{IdMap, IdSet};

use crate::hprof::{BasicType, be_u16};

use super::find_objects::{Found, Lookup};
use crate::index::model::summary::{ClassIds, Summary};
use crate::index::objects::field_values;

/// The properties that are kept: those that tell what JVM it was and what it ran. Others may be secret.
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

/// Longer strings are cut: a class path of megabytes helps nobody.
const MAX_CHARS: usize = 4096;
/// Entries of the hash table, and links of a bucket, that are followed.
const MAX_ENTRIES: usize = 100_000;
const MAX_LINKS: usize = 64;

/// Reads the properties that are kept, ascending by key.
pub(crate) fn properties(
    summary: &Summary,
    lookup: &Lookup<'_>,
    classes: &ClassIds,
) -> Vec<(String, String)> {
    read(summary, lookup, classes).unwrap_or_default()
}

fn read(summary: &Summary, lookup: &Lookup<'_>, classes: &ClassIds) -> Option<Vec<(String, String)>> {
    let get = |class, fields, name| field_values::reference(summary, classes, class, fields, name);
    let system = summary.classes().iter().find(|class| {
        class.loader.get() == 0 && class.is_dumped() && summary.class_name(class) == "java.lang.System"
    })?;
    let props =
        summary.statics(system).find(|(name, kind, _)| *name == "props" && *kind == BasicType::Object);
    let Found::Instance { class, fields } = lookup.one(props?.2)? else {
        return None;
    };
    let table = match get(class, fields, "map").and_then(|map| lookup.one(map)) {
        Some(Found::Instance { class, fields }) => get(class, fields, "table")?,
        _ => get(class, fields, "table")?,
    };
    let Found::Objects { elements } = lookup.one(table)? else {
        return None;
    };
    let mut level: IdSet<u64> = lookup.ids_in(elements).filter(|id| *id != 0).take(MAX_ENTRIES).collect();
    let mut pairs = Vec::new();
    for _ in 0..MAX_LINKS {
        if level.is_empty() || pairs.len() > MAX_ENTRIES {
            break;
        }
        let mut next = IdSet::default();
        for found in lookup.find(&level).into_values() {
            let Found::Instance { class, fields } = found else {
                continue;
            };
            let key = get(class, fields, "key");
            let value = get(class, fields, "val").or_else(|| get(class, fields, "value"));
            pairs.extend(key.zip(value));
            // A tree bin's nodes are linked from `first`.
            next.extend(get(class, fields, "next"));
            next.extend(get(class, fields, "first"));
        }
        level = next;
    }
    let wanted = pairs.iter().flat_map(|(key, value)| [*key, *value]).collect();
    let texts = strings(summary, lookup, classes, &wanted);
    let mut properties: Vec<(String, String)> = (pairs.iter())
        .filter_map(|(key, value)| Some((texts.get(key)?.clone(), texts.get(value)?.clone())))
        .filter(|(key, _)| KEPT.contains(&key.as_str()))
        .collect();
    properties.sort();
    properties.dedup_by(|a, b| a.0 == b.0);
    Some(properties)
}

/// The texts of java.lang.Strings.
fn strings(
    summary: &Summary,
    lookup: &Lookup<'_>,
    classes: &ClassIds,
    ids: &IdSet<u64>,
) -> IdMap<u64, String> {
    struct Place {
        string: u64,
        array: u64,
        utf16: bool,
        part: Option<(usize, usize)>,
    }
    let number = |class, fields, name| {
        let (_, value) = field_values::field(summary, classes, class, fields, name)?;
        usize::try_from(value).ok()
    };
    let places: Vec<Place> = (lookup.find(ids).into_iter())
        .filter_map(|(string, found)| {
            let Found::Instance { class, fields } = found else {
                return None;
            };
            let array = field_values::reference(summary, classes, class, fields, "value")?;
            let utf16 = number(class, fields, "coder").is_some_and(|coder| coder == 1);
            let part = number(class, fields, "offset").zip(number(class, fields, "count"));
            Some(Place { string, array, utf16, part })
        })
        .collect();
    let arrays = lookup.find(&places.iter().map(|place| place.array).collect());
    (places.into_iter())
        .filter_map(|Place { string, array, utf16, part }| {
            let Found::Primitives { element, elements } = arrays.get(&array)? else {
                return None;
            };
            let text = match element {
                BasicType::Char => {
                    let (offset, count) = part.unwrap_or((0, elements.len() / 2));
                    let units = (offset..offset.checked_add(count)?)
                        .map_while(|at| be_u16(elements, at.checked_mul(2)?));
                    decode_utf16(units)
                }
                // The bytes of a UTF-16 string are in the JVM's own order: little-endian nearly everywhere.
                BasicType::Byte if utf16 => {
                    let units = elements.chunks_exact(2);
                    decode_utf16(units.filter_map(|unit| Some(u16::from_le_bytes(*unit.first_chunk()?))))
                }
                BasicType::Byte => elements.iter().take(MAX_CHARS).map(|byte| char::from(*byte)).collect(),
                _ => return None,
            };
            Some((string, text))
        })
        .collect()
}

fn decode_utf16(units: impl Iterator<Item = u16>) -> String {
    char::decode_utf16(units.take(MAX_CHARS))
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}
