//! Values of fields and of entries: texts (possibly wrapped) and keys.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use hprof_index::graph::numbers::ObjectIndex;
use hprof_values::{BasicType, ObjectId};

use super::SecretQuery;
use hprof_model::objects::reader::{Characters, ObjectReader, ObjectRecord, PrimitiveArray};
use hprof_model::secret_rules::mask;
use hprof_model::secret_rules::rules::HeldKind;

/// Maximum number of characters of a value that are read.
const MAX_CHARACTERS: usize = 1 << 13;
/// Maximum depth of nested objects around a value.
const MAX_DEPTH: u32 = 3;
/// Maximum number of fields of a class that are examined.
const MAX_FIELDS: usize = 256;
/// Fields of objects that wrap a value, such as `OriginTrackedValue`, `AtomicReference` and `ProcessEnvironment.Value`.
const WRAPPED: [&str; 9] = ["value", "val", "str", "password", "secret", "chars", "data", "text", "mag"];
/// Fields of lists that hold the elements or the only element.
const LISTED: [&str; 5] = ["elementData", "e0", "a", "element", "elements"];
/// Maximum length of the array of a list with one element.
const MAX_ELEMENTS: usize = 64;

/// Value of a field or an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HeldValue {
    /// A text.
    Text(String),
    /// Bytes of a key.
    Key(Vec<u8>),
}

impl HeldValue {
    /// Returns the number of characters of a text, or of bytes of a key.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.chars().count(),
            Self::Key(bytes) => bytes.len(),
        }
    }

    /// Returns the hash of the value.
    pub(super) fn hash(&self, seed: u64) -> u64 {
        match self {
            Self::Text(text) => xxh3_64_with_seed(text.as_bytes(), seed),
            Self::Key(bytes) => xxh3_64_with_seed(bytes, !seed),
        }
    }

    /// Returns the text; for a key, its hexadecimal digits.
    pub(super) fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Key(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Data about a value, without the value itself unless it is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownValue {
    pub(super) hash: u64,
    pub(super) masked: String,
    /// Number of characters, or of bytes of a key.
    pub(super) length: usize,
    /// The value, if requested.
    pub(super) shown: Option<String>,
}

impl KnownValue {
    pub(super) fn new(value: &HeldValue, query: SecretQuery) -> Self {
        let masked = match value {
            HeldValue::Text(text) => mask::mask(text),
            HeldValue::Key(_) => mask::HIDDEN.to_owned(),
        };
        let shown = query.with_values.then(|| value.to_text());
        Self { hash: value.hash(query.seed), masked, length: value.len(), shown }
    }
}

/// Reads the value of an object, and returns it with the object that contains it. `None` if there is no value, or if it appears
/// to be overwritten, since it consists of a single repeated element.
pub(super) fn value(
    objects: &ObjectReader<'_>,
    object: ObjectIndex,
    kind: HeldKind,
) -> Option<(ObjectIndex, HeldValue)> {
    let mut here = object;
    for _ in 0..=MAX_DEPTH {
        if let Some(characters) = text_of(objects, here) {
            let text = candidate_text(&characters)?;
            // Keys are hidden entirely, even if they are texts.
            let is_key = kind == HeldKind::Key;
            let value = if is_key { HeldValue::Key(text.into_bytes()) } else { HeldValue::Text(text) };
            return Some((here, value));
        }
        match objects.record(here)? {
            ObjectRecord::PrimitiveArray(array) => return Some((here, of_array(array, kind)?)),
            ObjectRecord::Instance(_) => {
                let class = objects.graph.objects.class(here)?;
                let fields = objects.instance(here)?;
                let reference = |name: &str| {
                    let mut slots = objects.slots(class).take(MAX_FIELDS);
                    let slot = slots.find(|slot| slot.name == name && slot.kind == BasicType::Object)?;
                    objects.object(objects.value(fields, &slot)?)
                };
                here = WRAPPED.into_iter().chain(LISTED).find_map(reference)?;
            }
            // The array of a list with one element.
            ObjectRecord::ObjectArray(array) => {
                let mut elements = objects
                    .elements(&array)
                    .take(MAX_ELEMENTS)
                    .filter_map(|element| object_of(objects, element.0));
                let only = elements.next()?;
                if elements.next().is_some() {
                    return None;
                }
                here = only;
            }
            ObjectRecord::Class(_) => return None,
        }
    }
    None
}

/// Returns the characters of a String or of a builder.
fn text_of<'a>(objects: &ObjectReader<'a>, object: ObjectIndex) -> Option<Characters<'a>> {
    let class = objects.summary.class(objects.graph.objects.class(object)?)?;
    let is = |name| objects.summary.is_named(class, name);
    if !TEXT_CLASSES.into_iter().any(is) {
        return None;
    }
    objects.string(object)
}

/// Classes of objects with a separate array for their text.
pub(super) const TEXT_CLASSES: [&str; 3] =
    ["java.lang.String", "java.lang.StringBuilder", "java.lang.StringBuffer"];

fn candidate_text(characters: &Characters<'_>) -> Option<String> {
    if matches!(characters, Characters::Removed(_)) {
        return None;
    }
    let text = characters.text(MAX_CHARACTERS);
    // The unused end of a builder.
    let text = text.trim_end_matches('\0');
    let mut all = text.chars();
    let first = all.next()?;
    all.any(|other| other != first).then(|| text.to_owned())
}

fn of_array(array: PrimitiveArray<'_>, kind: HeldKind) -> Option<HeldValue> {
    let elements = array.elements?;
    let bytes = elements.get(..MAX_CHARACTERS.min(elements.len())).unwrap_or_default();
    match (array.element, kind) {
        (BasicType::Char, _) => candidate_text(&Characters::Utf16Be(elements)).map(HeldValue::Text),
        (BasicType::Byte, HeldKind::Text) if is_printable(bytes) => {
            candidate_text(&Characters::Latin1(bytes)).map(HeldValue::Text)
        }
        (BasicType::Byte | BasicType::Int | BasicType::Long, _) => {
            let first = bytes.first()?;
            bytes.iter().any(|other| other != first).then(|| HeldValue::Key(bytes.to_vec()))
        }
        _ => None,
    }
}

fn is_printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, 0x20..=0x7e))
}

/// Returns the object with an ID.
pub(super) fn object_of(objects: &ObjectReader<'_>, id: u64) -> Option<ObjectIndex> {
    objects.graph.objects.addresses.index_of(ObjectId(id).non_null()?)
}
