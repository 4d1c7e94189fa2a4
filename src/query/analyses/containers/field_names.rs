//! What fields of nodes and entries are called, whoever wrote them.
//!
//! A dump has neither declared types nor interfaces. Where a node refers to one thing only, the shape says what is linked
//! and what is stored; an entry that nothing follows (a hash table without collisions) looks like any object, and keys look
//! like values. There the names decide.

/// Names of fields for what is stored under a key, or as an element.
const VALUES: &[&str] = &[
    "value", "val", "v", "item", "element", "elem", "data", "payload", "object", "obj", "_2", "first",
    "head", "car",
];
/// Names of fields for a key.
const KEYS: &[&str] = &["key", "k", "_1"];
/// Field of a reference: a key beside a value, otherwise a value.
pub(super) const REFERENT: &str = "referent";
/// Names of numbers by which a table finds an entry.
const HASHES: &[&str] = &["hash", "h", "hashcode", "keyhash", "hc"];
/// Names of fields that link nodes, or refer to what they belong to.
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
/// Names of numbers by which a structure keeps order or count.
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

/// Names of numbers by which a ring or a stack knows where it begins and ends.
const POSITIONS: &[&str] = &[
    "start", "end", "head", "tail", "top", "front", "rear", "position", "pos", "cursor", "limit", "offset",
    "first", "last",
];
/// Ends of such names.
const COUNT_ENDS: &[&str] = &["index", "size", "count", "capacity", "mask", "length"];

/// Maximum length in bytes of a name that is compared.
const MAX_NAME: usize = 256;

/// Returns a field's name as it is compared: `_hash$1` and `mHash` are `hash`.
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

/// Returns whether a field is named like one with a stored object.
pub(super) fn is_value(name: &str) -> bool {
    is_among(VALUES, name)
}

/// Returns whether a field is named like one with a key.
pub(super) fn is_key(name: &str) -> bool {
    let plain = plain(name);
    KEYS.contains(&plain.as_str()) || plain.ends_with("key")
}

/// Returns whether a field is named like one that links nodes.
pub(super) fn is_link(name: &str) -> bool {
    is_among(LINKS, name)
}

/// Returns whether a number is named like a position within an array.
pub(super) fn is_position(name: &str) -> bool {
    is_among(POSITIONS, name)
}

/// Returns whether a number is named like the hash of a key.
pub(super) fn is_hash(name: &str) -> bool {
    is_among(HASHES, name)
}

/// Returns whether a number is named like one that a structure needs, rather than the program.
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
