//! Names of fields for the maximum number of elements that something may have.

/// Words of which the name of a bound contains one. Not `size`, `count`, `threshold` or `mask`: these are current values.
const BOUNDS: [&str; 6] = ["max", "maximum", "limit", "capacity", "bound", "maxsize"];
/// Other words in the name of a bound on the number of elements. Not `active`: `maxActive` is the maximum that was reached.
const OF_ELEMENTS: [&str; 28] = [
    "size",
    "sized",
    "entries",
    "entry",
    "elements",
    "element",
    "items",
    "item",
    "count",
    "number",
    "num",
    "of",
    "total",
    "objects",
    "keys",
    "values",
    "weight",
    "pages",
    "page",
    "sessions",
    "connections",
    "pool",
    "cache",
    "cached",
    "queue",
    "length",
    "rows",
    "records",
];
/// Maximum length of a name that is split into words.
const MAX_NAME: usize = 64;

/// Returns whether a field is named for the maximum number of elements: `maxSize`, `maximumSize`, `capacity`, `val$limit`.
pub fn is_bound(field: &str) -> bool {
    // Constants of a class are not about one container.
    if field.len() > MAX_NAME || !field.contains(|letter: char| letter.is_lowercase()) {
        return false;
    }
    let words = words(field);
    let is_of_bound = |word: &String| BOUNDS.contains(&word.as_str());
    words.iter().any(is_of_bound)
        && words.iter().all(|word| is_of_bound(word) || OF_ELEMENTS.contains(&word.as_str()))
}

/// Splits a name into its words in lower case: `val$maxCacheSize`, `max_entries`.
fn words(name: &str) -> Vec<String> {
    let name = name.strip_prefix("val$").unwrap_or(name).trim_start_matches("m_");
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        let starts = character.is_uppercase() && was_lower;
        if starts || !character.is_alphabetic() {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character.is_alphabetic()) {
            word.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_told_by_their_names() {
        for name in ["maxSize", "maximumSize", "capacity", "limit", "maxEntries", "val$maxEntries", "max"] {
            assert!(is_bound(name), "{name}");
        }
        for name in [
            "size",
            "count",
            "threshold",
            "mask",
            "maxRetries",
            "maxMessageBytes",
            "limitMillis",
            "LIMIT",
            "index",
        ] {
            assert!(!is_bound(name), "{name}");
        }
    }
}
