//! Suggestions: class names and object IDs similar to one that was not found.

use strsim::osa_distance;

use hprof_index::ObjectGraph;
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::summary::Summary;
use hprof_values::ObjectId;

use crate::naming::object_id::with_digits_of;

/// Maximum number of suggested names.
const MAX_NAMES: usize = 5;
/// Maximum length of a suggested name: a hostile dump can have one of 64 KB, or of 300 MB.
const MAX_BYTES: usize = 1 << 10;
/// Maximum length of names compared letter by letter.
const LONGEST: usize = 64;

/// Returns class names similar to `text`, most similar first.
pub fn class_names<'a>(summary: &'a Summary, text: &str) -> Vec<&'a str> {
    let classes = summary.classes().iter().filter(|class| class.objects.get() > 0 || class.is_dumped());
    class_names_of(classes.map(|class| summary.class_name(class)), text)
}

/// Returns class names of `names` similar to `text`, most similar first.
pub fn class_names_of<'a>(names: impl Iterator<Item = &'a str>, text: &str) -> Vec<&'a str> {
    let wanted = last_part(text.trim_matches('*')).to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let names = names.filter(|name| name.len() <= MAX_BYTES);
    let mut names: Vec<(usize, &str)> =
        names.filter_map(|name| Some((class_distance(&wanted, name)?, name))).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|(_, name)| name).take(MAX_NAMES).collect()
}

/// Returns strings of `names` similar to `text`, most similar first.
pub fn names_like<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = text.to_lowercase();
    if wanted.is_empty() {
        return Vec::new();
    }
    let names = names.filter(|name| name.len() <= MAX_BYTES);
    let mut found: Vec<(usize, &str)> =
        names.filter_map(|name| Some((distance(&wanted, &name.to_lowercase())?, name))).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, name)| name).take(MAX_NAMES).collect()
}

/// Suggests names: `did you mean a, b or c?`; empty without names.
pub fn did_you_mean(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("did you mean {one}?"),
        [others @ .., last] => format!("did you mean {} or {last}?", others.join(", ")),
    }
}

/// Suggests the strings of `names` similar to `text`; if none is similar, lists the first `limit` after the words
/// `all`.
pub fn did_you_mean_one_of(text: &str, names: &[&str], limit: usize, all: &str) -> String {
    match names_like(text, names.iter().copied()).as_slice() {
        [] => {
            let listed: Vec<&str> = names.iter().copied().take(limit).collect();
            format!("{all} {}", listed.join(", "))
        }
        like => did_you_mean(like),
    }
}

/// Returns the IDs of the objects nearest to an ID that does not exist, ascending.
pub fn object_ids(graph: &ObjectGraph, id: ObjectId) -> Vec<ObjectId> {
    let addresses = &graph.objects.addresses;
    // The best suggestion is the same digits with `0x`, which was omitted.
    if let Some(meant) = with_digits_of(id).filter(|other| addresses.index_of(*other).is_some()) {
        return vec![meant];
    }
    // IDs are in ascending order of indices.
    let (mut low, mut high) = (0, addresses.objects());
    while low < high {
        let middle = low + (high - low) / 2;
        match addresses.id_of(ObjectIndex(middle)) {
            Some(found) if found < id => low = middle + 1,
            _ => high = middle,
        }
    }
    let near = (low.saturating_sub(IDS)..low.saturating_add(IDS)).map(ObjectIndex);
    near.filter_map(|object| addresses.id_of(object)).collect()
}

/// Number of IDs suggested on each side.
pub const IDS: u32 = 2;

/// Returns the name without packages and outer classes; for an anonymous class, whose number identifies nothing, with the
/// enclosing class: `FileDescriptor$1`.
fn last_part(name: &str) -> &str {
    let named = name.trim_end_matches(|c: char| c == '$' || c.is_ascii_digit());
    let is_anonymous = name.get(named.len()..).is_some_and(|number| number.starts_with('$'));
    let whole = if is_anonymous { named } else { name };
    name.get(whole.rfind(['.', '/', '$']).map_or(0, |at| at + 1)..).unwrap_or(name)
}

/// Returns the distance between the last parts of two class names. The name of a class does not stand for classes
/// nested in it.
fn class_distance(wanted: &str, name: &str) -> Option<usize> {
    let name = last_part(name).to_lowercase();
    let is_meant = wanted.contains('$') || !name.contains('$');
    distance(wanted, &name).filter(|_| is_meant)
}

/// Returns the distance between two names; `None` if they are too different.
fn distance(wanted: &str, name: &str) -> Option<usize> {
    // `hashmap` is similar to `concurrenthashmap`, but more so to `hasmap`.
    let contained = (wanted.len() >= 3 && name.contains(wanted)).then(|| 2 + (name.len() - wanted.len()));
    // A third of the letters at most: one edit turns any name of one letter into any other.
    let most = (wanted.len() / 4).clamp(1, 3).min(wanted.len() / 3);
    let different = wanted.len().abs_diff(name.len()) > most || wanted.len() > LONGEST || !name.is_ascii();
    let letters = if different { None } else { Some(osa_distance(wanted, name)) };
    letters.filter(|edits| *edits <= most).or(contained)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_what_was_meant() {
        assert_eq!(distance("hasmap", "hashmap"), Some(1));
        assert_eq!(distance("mian", "main"), Some(1));
        assert_eq!(distance("hashmap", "concurrenthashmap"), Some(12));
        assert_eq!(distance("hashmap", "string"), None);
    }

    #[test]
    fn what_is_short_is_near_to_itself() {
        let names = ["java.io.FileDescriptor$1", "com.acme.Y", "com.acme.Xy", "com.acme.Foo"];
        let like = |text| class_names_of(names.into_iter(), text);
        for far in ["com.nope.X", "com.nope.Z1", "com.nope.1", "com.nope.A$1"] {
            assert!(like(far).is_empty(), "{far}: {:?}", like(far));
        }
        assert_eq!(like("com.nope.Y"), ["com.acme.Y"]);
        assert_eq!(like("com.nope.Fo"), [""; 0]);
        assert_eq!(like("com.nope.Fop"), ["com.acme.Foo"]);
        assert_eq!(like("java.io.FileDescriptr$1"), ["java.io.FileDescriptor$1"]);
        assert_eq!(like("com.nope.FileDescriptor"), [""; 0]);
    }
}
