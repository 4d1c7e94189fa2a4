//! Conventional names of fields of nodes and entries.
//!
//! A dump has neither declared types nor interfaces. If a node has references of one kind only, the shape shows which are links
//! and which are elements; an entry without a successor (a hash table without collisions) looks like any object, and keys look
//! like values. In these cases names of fields decide.

/// Names of fields for values or elements.
const VALUES: &[&str] = &[
    "value", "val", "v", "item", "element", "elem", "data", "payload", "object", "obj", "_2", "first",
    "head", "car",
];
/// Names of fields for a key.
const KEYS: &[&str] = &["key", "k", "_1"];
/// Name of a field that contains a key if there is a value as well, and otherwise a value.
pub(super) const REFERENT: &str = "referent";
/// Names of numeric fields with the hash of an entry.
const HASHES: &[&str] = &["hash", "h", "hashcode", "keyhash", "hc"];
/// Names of fields that link nodes, or refer to their owner.
const LINKS: &[&str] = &[
    "next",
    "prev",
    "previous",
    "before",
    "after",
    "left",
    "right",
    "parent",
    "child",
    "children",
    "sibling",
    "tail",
    "rest",
    "entry",
    "cdr",
    "up",
    "down",
    "forward",
    "backward",
    "root",
    "owner",
    "queue",
    "map",
    "table",
    "bucket",
    "succ",
    "pred",
    "successor",
    "predecessor",
];
/// Names of numeric fields for the order or size of a structure.
const COUNTS: &[&str] = &[
    "color",
    "red",
    "black",
    "isred",
    "isblack",
    "height",
    "level",
    "size",
    "count",
    "cnt",
    "length",
    "shift",
    "index",
    "bitmap",
    "datamap",
    "nodemap",
    "edit",
    "capacity",
    "mask",
    "threshold",
    "modcount",
    "priority",
    "len",
    "balance",
    "rank",
    "weight",
    "depth",
    "degree",
    "order",
    "n",
    "used",
    "deleted",
    "marked",
];

/// Names of numeric fields for the ends of a ring buffer or a stack.
const POSITIONS: &[&str] = &[
    "start", "end", "head", "tail", "top", "front", "rear", "position", "pos", "cursor", "limit", "offset",
    "first", "last",
];
/// Suffixes of names of numeric fields for the order or size of a structure.
const COUNT_ENDS: &[&str] = &["index", "size", "count", "capacity", "mask", "length"];

/// Maximum length in bytes of a name that is compared.
const MAX_NAME: usize = 256;

/// Returns a field's name in normalized form: `_hash$1` and `mHash` are `hash`.
fn plain(name: &str) -> String {
    if name.len() > MAX_NAME {
        return String::new();
    }
    let name = name.rsplit('$').find(|part| part.chars().any(|c| c.is_alphabetic())).unwrap_or(name);
    let mut chars = name.chars();
    let is_prefixed = chars.next() == Some('m') && chars.next().is_some_and(char::is_uppercase);
    let name = if is_prefixed { name.get(1..).unwrap_or(name) } else { name };
    let plain = name.trim_matches('_').to_lowercase();
    let unnumbered = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = if unnumbered.is_empty() { plain } else { unnumbered.to_owned() };
    if plain.chars().all(|c| c.is_ascii_digit()) { name.to_lowercase() } else { plain }
}

fn is_among(names: &[&str], name: &str) -> bool {
    names.contains(&plain(name).as_str())
}

/// Returns whether a field's name is one for stored objects.
pub(super) fn is_value(name: &str) -> bool {
    is_among(VALUES, name)
}

/// Returns whether a field's name is one for keys.
pub(super) fn is_key(name: &str) -> bool {
    let plain = plain(name);
    KEYS.contains(&plain.as_str()) || plain.ends_with("key")
}

/// Returns whether a field's name is one for links between nodes.
pub(super) fn is_link(name: &str) -> bool {
    is_among(LINKS, name)
}

/// Returns whether a numeric field's name is one for positions within an array.
pub(super) fn is_position(name: &str) -> bool {
    is_among(POSITIONS, name)
}

/// Returns whether a numeric field's name is one for hashes of keys.
pub(super) fn is_hash(name: &str) -> bool {
    is_among(HASHES, name)
}

/// Returns whether a numeric field's name is one for the order or size of a structure.
pub(super) fn is_count(name: &str) -> bool {
    let plain = plain(name);
    COUNTS.contains(&plain.as_str())
        || HASHES.contains(&plain.as_str())
        || COUNT_ENDS.iter().any(|end| plain.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_what_compilers_and_habits_add() {
        assert!(is_value("value") && is_value("_value") && is_value("mValue"));
        assert!(is_key("key") && is_key("hashKey") && is_key("k"));
        assert!(is_link("scala$collection$immutable$List$$tail") && is_link("next$1") && is_value("_first"));
        assert!(is_count("hash") && is_count("_size"));
        assert!(!is_value("customer") && !is_key("monkeys") && !is_link("order") && !is_count("price"));
    }
}
