//! Values of keys whose names indicate secrets: entries of maps, properties, variables, headers, cookies.
//!
//! The names are Strings that the pass over the arrays found. An object with such a String in a field like `key` has the value
//! in a field like `value`, whatever map or property source it belongs to.

use rustc_hash::FxHashMap;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::tables::ClassKind;
use hprof_values::BasicType;

use super::values::{self, HeldValue, KnownValue};
use super::{MAX_ROWS, SecretCandidate, SecretQuery};
use hprof_model::objects::reader::{ObjectReader, ObjectRecord};
use hprof_model::secret_rules::mask;
use hprof_model::secret_rules::rules::{HeldKind, SecretRules};

/// Maximum number of referrers of a name that are examined.
const MAX_REFERRERS: usize = 1 << 12;
/// Maximum number of referrers of all names that are examined.
const MAX_ALL: usize = 1 << 20;
/// Maximum number of fields of a referrer that are examined.
const MAX_FIELDS: usize = 64;
/// Maximum number of elements of an array of keys and values.
const MAX_ELEMENTS: usize = 1 << 16;
/// Names of fields that contain keys.
const KEYS: [&str; 9] = ["key", "k", "name", "k0", "str", "propertyName", "headerName", "referent", "attrID"];
/// Names of fields that contain values.
const VALUES: [&str; 7] = ["value", "val", "v", "v0", "propertyValue", "headerValue", "values"];
/// Class of names of environment variables, which are keys themselves.
const VARIABLE: &str = "java.lang.ProcessEnvironment$Variable";
/// Parts of names of classes that have alternating keys and values in one array.
const IN_TURN: [&str; 2] = ["$MapN", "IdentityHashMap"];
/// Parts of names of passwords, whose value may be any text.
const PASSWORDS: [&str; 6] = ["pass", "pwd", "secret", "kennwort", "psk", "security.credentials"];
/// Minimum number of characters of a value that a name indicates.
const SHORTEST: usize = 4;
/// Minimum number of characters of a token.
const SHORTEST_TOKEN: usize = 12;

/// Returns whether a text may be the value that a name indicates. If the value is in a known field (not `is_general`), any text
/// may.
pub(super) fn is_value(rules: &SecretRules, name: &str, text: &str, is_general: bool) -> bool {
    let bytes = text.as_bytes();
    if mask::is_placeholder(bytes) {
        return false;
    }
    if !is_general {
        return true;
    }
    let name = name.to_ascii_lowercase();
    // The value "BASIC" of `BASIC_AUTH` is the name of a scheme.
    let is_auth = name.ends_with("auth") && !name.contains(&text.to_ascii_lowercase());
    let is_password = PASSWORDS.into_iter().any(|part| name.contains(part)) || is_auth;
    let is_long = if is_password {
        bytes.len() >= SHORTEST
    } else {
        bytes.len() >= SHORTEST_TOKEN && mask::is_mixed(bytes)
    };
    // A text such as `password` is the label of a field, a parameter, or another name; these have no digits.
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    let is_name = !has_digit && rules.names.as_ref().is_some_and(|names| names.contain(bytes));
    // Only passwords contain spaces.
    let is_plain =
        if is_password { mask::is_password(bytes) } else { !bytes.iter().any(u8::is_ascii_whitespace) };
    is_long && is_plain && !is_name && !mask::is_name(bytes) && !mask::is_example(bytes)
}

/// Finds the values of these names, which are given as arrays. Returns the values, and the number of names of which not all
/// referrers were examined.
pub(super) fn find(
    objects: &ObjectReader<'_>,
    rules: &SecretRules,
    query: SecretQuery,
    names: &[ObjectIndex],
) -> (Vec<SecretCandidate>, u64) {
    let graph = objects.graph;
    let mut search = NamedSearch {
        objects,
        rules,
        query,
        left: MAX_ALL,
        names: Vec::new(),
        arrays: FxHashMap::default(),
        found: Vec::new(),
        omitted: 0,
    };
    for array in names {
        let mut strings = graph.referrers(*array);
        for string in strings.by_ref().take(MAX_REFERRERS) {
            let Some(text) = objects.string(string) else { continue };
            search.of_key(string, &text.text(MAX_FIELDS * 4), true);
        }
        search.omitted += u64::from(strings.next().is_some());
    }
    search.arrays();
    (search.found, search.omitted)
}

/// Search for the values of names.
struct NamedSearch<'s, 'a> {
    objects: &'s ObjectReader<'a>,
    rules: &'s SecretRules,
    query: SecretQuery,
    /// Number of referrers that may still be examined.
    left: usize,
    /// Names that are keys in arrays.
    names: Vec<String>,
    /// For each array of alternating keys and values that contains a wanted key: the indices in `names`, by ID of the key.
    /// `None` for other arrays. Each array is read once.
    arrays: FxHashMap<ObjectIndex, Option<FxHashMap<u64, usize>>>,
    found: Vec<SecretCandidate>,
    /// Number of names of which not all referrers were examined.
    omitted: u64,
}

impl NamedSearch<'_, '_> {
    /// Examines the referrers of a key.
    fn of_key(&mut self, key: ObjectIndex, name: &str, is_string: bool) {
        let (objects, graph) = (self.objects, self.objects.graph);
        let Some(id) = graph.objects.addresses.id_of(key) else { return };
        let mut referrers = graph.referrers(key);
        if referrers.by_ref().nth(MAX_REFERRERS).is_some() {
            self.omitted += 1;
        }
        for from in graph.referrers(key).take(MAX_REFERRERS) {
            let Some(left) = self.left.checked_sub(1) else {
                self.omitted += 1;
                return;
            };
            self.left = left;
            let Some(class) = graph.objects.class(from) else { continue };
            let Some(row) = objects.summary.class(class) else { continue };
            if row.kind() != ClassKind::Instance {
                self.in_turn(from, id.0, name);
                continue;
            }
            if is_string && objects.summary.is_named(row, VARIABLE) {
                self.of_key(from, name, false);
                continue;
            }
            let Some(fields) = objects.instance(from) else { continue };
            let (mut is_key, mut value) = (false, None);
            for slot in objects.slots(class).take(MAX_FIELDS).filter(|slot| slot.kind == BasicType::Object) {
                let Some(bits) = objects.value(fields, &slot) else { continue };
                if bits.bits == id.0 {
                    is_key |= KEYS.contains(&slot.name);
                } else if VALUES.contains(&slot.name) {
                    value = value.or(objects.object(bits));
                }
            }
            if let Some(value) = value.filter(|_| is_key) {
                self.add(from, value, name);
            }
        }
    }

    /// Records a key in an array.
    fn in_turn(&mut self, array: ObjectIndex, id: u64, name: &str) {
        let (objects, graph) = (self.objects, self.objects.graph);
        let is_map = || {
            graph.referrers(array).take(4).any(|from| {
                let class = graph.objects.class(from).and_then(|class| objects.summary.class(class));
                class.is_some_and(|class| {
                    let name = objects.summary.class_name(class);
                    IN_TURN.into_iter().any(|part| name.contains(part))
                })
            })
        };
        let keys = self.arrays.entry(array).or_insert_with(|| is_map().then(FxHashMap::default));
        let Some(keys) = keys else { return };
        if self.names.last().is_none_or(|last| last != name) {
            self.names.push(name.to_owned());
        }
        keys.insert(id, self.names.len() - 1);
    }

    /// Searches arrays for the values of the keys.
    fn arrays(&mut self) {
        let names = std::mem::take(&mut self.names);
        let arrays = std::mem::take(&mut self.arrays);
        let mut arrays: Vec<_> =
            arrays.into_iter().filter_map(|(array, keys)| Some((array, keys?))).collect();
        arrays.sort_unstable_by_key(|(array, _)| *array);
        for (array, mut keys) in arrays {
            let Some(ObjectRecord::ObjectArray(record)) = self.objects.record(array) else { continue };
            let mut elements = self.objects.elements(&record).take(MAX_ELEMENTS);
            while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                let Some(value) = values::object_of(self.objects, value.0) else { continue };
                if let Some(name) = keys.remove(&key.0).and_then(|name| names.get(name)) {
                    self.add(array, value, name);
                }
            }
        }
    }

    fn add(&mut self, from: ObjectIndex, value: ObjectIndex, name: &str) {
        let Some((object, value)) = values::value(self.objects, value, HeldKind::Text) else { return };
        let HeldValue::Text(text) = &value else { return };
        if text != name && is_value(self.rules, name, text, true) {
            if self.found.len() >= MAX_ROWS {
                self.omitted += 1;
                return;
            }
            let value = KnownValue::new(&value, self.query);
            self.found.push(SecretCandidate {
                rule: None,
                object,
                value,
                from,
                holder: None,
                is_general: true,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_names_are_plausible() {
        let rules = SecretRules::builtin();
        let of = |name, text| is_value(&rules, name, text, true);
        assert!(of("REDIS_AUTH", "sesame") && of("java.naming.security.credentials", "ldapBind-9"));
        assert!(of("password", "zwei blaue Hunde") && of("apiToken", "q8Xv2LmZ91pRt4Wb"));
        assert!(!of("BASIC_AUTH", "BASIC") && !of("credentials", "include") && !of("apiToken", "bearer"));
        assert!(!of("password", "Mot de passe") && !of("password", "TODO") && !of("password", "ENC(aB3d)"));
    }
}
