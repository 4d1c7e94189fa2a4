//! Contents of Strings, compared: a text is the same in every encoding.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher, RandomState};

use regex::Regex;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::objects::reader::{Characters, ObjectReader, ObjectRecord, PrimitiveArray};
use hprof_index::graph::numbers::ObjectIndex;
use hprof_index::model::array_contents::MissingContents;
use hprof_index::objects::strings::StringPart;

/// Number of units converted at a time.
const CHUNK: usize = 1 << 12;

/// Maximum number of characters to match, for texts that are not ASCII and must be copied for it.
const MAX_CHARACTERS: usize = 1 << 24;

/// Maximum number of times that overlapping parts of one array are read (JDK 6).
const OVERLAP: u64 = 256;
/// Number of characters that are always read.
const FREE: u64 = 1 << 20;

/// Encoding of a String's characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringEncoding {
    /// One byte for each character.
    Latin1 = 0,
    /// Two bytes, the low one first.
    Utf16Le = 1,
    /// Two bytes, the high one first.
    Utf16Be = 2,
    /// A part of an array.
    Part = 3,
}

impl StringEncoding {
    /// Returns the characters of a String in its array; `None` if the array contains none, or too few, or if some were removed
    /// from the dump.
    pub fn decode<'a>(
        part: StringPart,
        array: &PrimitiveArray<'a>,
        missing: MissingContents,
    ) -> Option<(Self, Characters<'a>)> {
        let elements = array.elements.filter(|_| !missing.has_lost(array.element, array.length))?;
        let characters = part.characters(array.element, elements)?;
        let form = match characters {
            Characters::Latin1(_) => Self::Latin1,
            Characters::Utf16Le(_) => Self::Utf16Le,
            Characters::Utf16Be(_) if part.is_part_of(array.element) => Self::Part,
            Characters::Utf16Be(_) => Self::Utf16Be,
            Characters::Removed(_) => return None,
        };
        Some((form, characters))
    }
}

/// Returns the characters of a String given their location: the offset of the array's record, shifted left by two, and the
/// [`StringEncoding`]. `None` only if the dump has changed since.
pub fn characters_at<'a>(
    objects: &ObjectReader<'a>,
    place: u64,
    string: ObjectIndex,
) -> Option<Characters<'a>> {
    if place & 3 == StringEncoding::Part as u64 {
        return objects.string(string);
    }
    let ObjectRecord::PrimitiveArray(array) = objects.record_at(place >> 2)? else { return None };
    let array = array.elements?;
    Some(match place & 3 {
        0 => Characters::Latin1(array),
        1 => Characters::Utf16Le(array),
        _ => Characters::Utf16Be(array),
    })
}

/// Hashes of the Strings of one array. Many Strings may share it; equal parts are hashed once.
#[derive(Debug)]
pub struct Hashes {
    /// Hash of the whole array, by form.
    known: [Option<Option<u64>>; 3],
    /// Number of characters that may still be read. In a malicious dump Strings may overlap in one array without limit.
    left: u64,
}

impl Hashes {
    /// Creates the hashes for an array of `length` elements.
    pub fn new(length: u32) -> Self {
        Self { known: [None; 3], left: OVERLAP.saturating_mul(length.into()).saturating_add(FREE) }
    }

    /// Returns the result of `make` for these characters, computed once; `None` if too much was read.
    pub fn get(
        &mut self,
        form: StringEncoding,
        characters: &Characters<'_>,
        make: impl FnOnce() -> Option<u64>,
    ) -> Option<Option<u64>> {
        let known = self.known.get_mut(form as usize);
        let Some(known) = known else {
            self.left = self.left.checked_sub(characters.len() as u64)?;
            return Some(make());
        };
        Some(*known.get_or_insert_with(make))
    }
}

/// Returns a seed for [`hash`]. The author of a dump cannot make texts collide. No result depends on it.
pub fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the hash of a text. Latin-1 texts are hashed one byte per character, all others as UTF-16: both forms of a
/// text have the same hash. The author of a dump does not know the seed.
pub fn hash(characters: &Characters<'_>, seed: u64) -> u64 {
    match characters {
        Characters::Latin1(bytes) => xxh3_64_with_seed(bytes, seed),
        Characters::Utf16Be(bytes) if is_latin(bytes, 0) => hash_narrow(bytes, 1, seed),
        Characters::Utf16Le(bytes) if is_latin(bytes, 1) => hash_narrow(bytes, 0, seed),
        // Half a unit at the end is not a character.
        Characters::Utf16Le(bytes) => {
            let whole = bytes.get(..bytes.len() / 2 * 2).unwrap_or_default();
            xxh3_64_with_seed(whole, !seed)
        }
        Characters::Removed(units) => xxh3_64_with_seed(&units.to_le_bytes(), !seed),
        Characters::Utf16Be(bytes) => hash_chunks(bytes.chunks(CHUNK * 2), !seed, |out, chunk| {
            out.extend(chunk.chunks_exact(2).flat_map(|unit| unit.iter().rev()));
        }),
    }
}

/// Returns whether the upper byte of each unit is zero.
pub(super) fn is_latin(bytes: &[u8], upper: usize) -> bool {
    bytes.chunks_exact(2).all(|unit| unit.get(upper) == Some(&0))
}

/// Returns the hash of the lower byte of each UTF-16 unit.
fn hash_narrow(bytes: &[u8], lower: usize, seed: u64) -> u64 {
    hash_chunks(bytes.chunks(CHUNK * 2), seed, |out, chunk| {
        out.extend(chunk.chunks_exact(2).filter_map(|unit| unit.get(lower)));
    })
}

/// Returns the hash of chunks converted by `turn`.
fn hash_chunks<'a>(
    mut chunks: impl ExactSizeIterator<Item = &'a [u8]>,
    seed: u64,
    turn: impl Fn(&mut Vec<u8>, &[u8]),
) -> u64 {
    let mut out = Vec::new();
    if chunks.len() <= 1 {
        if let Some(chunk) = chunks.next() {
            turn(&mut out, chunk);
        }
        return xxh3_64_with_seed(&out, seed);
    }
    let mut hasher = Xxh3::with_seed(seed);
    for chunk in chunks {
        out.clear();
        turn(&mut out, chunk);
        hasher.update(&out);
    }
    hasher.digest()
}

/// Returns whether two texts are equal.
pub fn same(a: &Characters<'_>, b: &Characters<'_>) -> bool {
    match (a, b) {
        (Characters::Latin1(a), Characters::Latin1(b)) => equal(a, b),
        // Half a unit at the end is not a character.
        (Characters::Utf16Le(a), Characters::Utf16Le(b))
        | (Characters::Utf16Be(a), Characters::Utf16Be(b)) => equal(whole_units(a), whole_units(b)),
        _ => a.len() == b.len() && a.units().eq(b.units()),
    }
}

/// Returns whether two arrays are equal. Strings may share one, and it may be long.
fn equal(a: &[u8], b: &[u8]) -> bool {
    std::ptr::eq(a, b) || a == b
}

/// Returns the bytes of all complete UTF-16 units.
fn whole_units(bytes: &[u8]) -> &[u8] {
    bytes.get(..bytes.len() / 2 * 2).unwrap_or_default()
}

/// Orders texts by their UTF-16 units, like `String.compareTo`.
pub(super) fn compare(a: &Characters<'_>, b: &Characters<'_>) -> Ordering {
    match (a, b) {
        (Characters::Latin1(a), Characters::Latin1(b)) => a.cmp(b),
        // The upper byte comes first.
        (Characters::Utf16Be(a), Characters::Utf16Be(b)) => whole_units(a).cmp(whole_units(b)),
        _ => a.units().cmp(b.units()),
    }
}

/// Returns whether a part of the text matches. An unpaired surrogate counts as U+FFFD. `buffer` saves allocations.
pub(super) fn matches(pattern: &Regex, characters: &Characters<'_>, buffer: &mut String) -> bool {
    if let Characters::Latin1(bytes) = characters
        && bytes.is_ascii()
        && let Ok(text) = str::from_utf8(bytes)
    {
        return pattern.is_match(text);
    }
    buffer.clear();
    buffer.extend(
        char::decode_utf16(characters.units())
            .take(MAX_CHARACTERS)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
    );
    let found = pattern.is_match(buffer);
    // Releases the memory of a long text.
    buffer.shrink_to(CHUNK * 4);
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn forms(text: &str) -> Vec<Vec<u8>> {
        let be = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let le = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let latin = text.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<_, _>>();
        [be, le].into_iter().chain(latin.ok()).collect()
    }

    fn all_characters(forms: &[Vec<u8>]) -> Vec<Characters<'_>> {
        let make: [fn(&[u8]) -> Characters<'_>; 3] = [
            |bytes| Characters::Utf16Be(bytes),
            |bytes| Characters::Utf16Le(bytes),
            |bytes| Characters::Latin1(bytes),
        ];
        forms.iter().zip(make).map(|(bytes, make)| make(bytes)).collect()
    }

    #[test]
    fn a_text_is_the_same_in_every_form() {
        let long = "Grüße ".repeat(3000);
        let longer = "日本語".repeat(3000);
        let texts = ["", "a", "Grüße", "ÿ", "Ā", "日本語テキスト", "\u{1F600}", &long, &longer];
        for (at, text) in texts.iter().enumerate() {
            let bytes = forms(text);
            let forms_of_text = all_characters(&bytes);
            for (a, b) in forms_of_text.iter().zip(forms_of_text.iter().rev()) {
                assert_eq!(hash(a, 7), hash(b, 7), "{text}");
                assert!(same(a, b) && compare(a, b) == Ordering::Equal);
            }
            assert_ne!(hash(forms_of_text.first().unwrap(), 7), hash(forms_of_text.first().unwrap(), 8));
            for other in texts.iter().skip(at + 1) {
                let other_bytes = forms(other);
                let other_forms = all_characters(&other_bytes);
                for (a, b) in forms_of_text.iter().zip(&other_forms) {
                    assert!(!same(a, b) && hash(a, 7) != hash(b, 7), "{text} {other}");
                    assert_eq!(compare(a, b), text.encode_utf16().cmp(other.encode_utf16()));
                }
            }
        }
    }

    #[test]
    fn half_a_unit_is_no_character() {
        let (odd, even) = (Characters::Utf16Le(b"a\0\x01\x01x"), Characters::Utf16Be(b"\0a\x01\x01"));
        assert!(same(&odd, &even) && hash(&odd, 1) == hash(&even, 1));
        let (odd, latin) = (Characters::Utf16Le(b"a\0b"), Characters::Latin1(b"a"));
        assert!(same(&odd, &latin) && hash(&odd, 1) == hash(&latin, 1));
    }

    #[test]
    fn bytes_that_mean_something_else_are_no_match() {
        let (latin, wide) = (Characters::Latin1(b"\x01\x02"), Characters::Utf16Le(b"\x01\x02"));
        assert!(!same(&latin, &wide) && hash(&latin, 1) != hash(&wide, 1));
    }

    #[test]
    fn patterns() {
        let mut buffer = String::new();
        let mut found =
            |pattern: &str, characters| matches(&Regex::new(pattern).unwrap(), &characters, &mut buffer);
        assert!(found("^b+$", Characters::Latin1(b"bb")) && !found("^b+$", Characters::Latin1(b"abb")));
        assert!(found("(?i)^grÜ.e$", Characters::Latin1(b"Gr\xfc\xdfe")));
        assert!(found("^a\u{fffd}$", Characters::Utf16Be(&[0, b'a', 0xd8, 0])));
    }
}
