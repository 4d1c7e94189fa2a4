//! Keyed hashes of texts, for tables that leave the machine: a guessed text can be confirmed only with the key.

use crate::objects::reader::Characters;
use crate::strings::contents::is_latin;
use hprof_base::keyed::{Absorb, KEY_BYTES, Key, Prf};

/// Purpose of the key, among those of [`Key::prf`].
const TEXTS: u64 = 16;
/// Number of UTF-16 units that are converted at once. A multiple of 8, so that all chunks but the last consist of whole words.
const CHUNK: usize = 1 << 12;

/// Key of the hashes of texts. Equal texts have the same hash in all dumps whose tables have one key.
#[derive(Debug, Clone, Copy)]
pub struct TextKey(Prf);

impl Default for TextKey {
    /// Returns the key of tables that are not written to files: zeros.
    fn default() -> Self {
        Self::new(&Key::new([0; KEY_BYTES]))
    }
}

impl TextKey {
    /// Derives the key of the hashes.
    pub fn new(key: &Key) -> Self {
        Self(key.prf(TEXTS))
    }

    /// Returns the hash of a text. Latin-1 texts are hashed one byte per character, all others as UTF-16: both forms of
    /// a text have the same hash.
    pub fn hash(&self, characters: &Characters<'_>) -> u64 {
        let mut state = self.0.start();
        let narrow = |state: &mut Absorb, bytes: &[u8], lower: usize| {
            state.word(bytes.len() as u64 / 2 * 2);
            each_chunk(state, bytes.chunks(CHUNK * 2), |out, chunk| {
                out.extend(chunk.chunks_exact(2).filter_map(|unit| unit.get(lower)));
            });
        };
        match characters {
            Characters::Latin1(bytes) => {
                state.word(bytes.len() as u64 * 2);
                absorb(&mut state, bytes);
            }
            Characters::Utf16Be(bytes) if is_latin(bytes, 0) => narrow(&mut state, bytes, 1),
            Characters::Utf16Le(bytes) if is_latin(bytes, 1) => narrow(&mut state, bytes, 0),
            // Half a unit at the end is not a character.
            Characters::Utf16Le(bytes) => {
                let whole = bytes.get(..bytes.len() / 2 * 2).unwrap_or_default();
                state.word(whole.len() as u64 | 1);
                absorb(&mut state, whole);
            }
            Characters::Removed(units) => state.word((*units as u64 * 2) | 1),
            Characters::Utf16Be(bytes) => {
                state.word((bytes.len() as u64 / 2 * 2) | 1);
                each_chunk(&mut state, bytes.chunks(CHUNK * 2), |out, chunk| {
                    out.extend(chunk.chunks_exact(2).flat_map(|unit| unit.iter().rev()));
                });
            }
        }
        state.finish().next_word()
    }
}

/// Adds chunks converted by `turn`; all but the last have whole words.
fn each_chunk<'b>(
    state: &mut Absorb,
    chunks: impl Iterator<Item = &'b [u8]>,
    turn: impl Fn(&mut Vec<u8>, &[u8]),
) {
    let mut out = Vec::new();
    for chunk in chunks {
        out.clear();
        turn(&mut out, chunk);
        absorb(state, &out);
    }
}

/// Adds bytes, eight at a time; the last word is filled with zeros: the length was added before.
fn absorb(state: &mut Absorb, bytes: &[u8]) {
    let (words, rest) = bytes.as_chunks();
    words.iter().for_each(|word| state.word(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        state.word(rest.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn all_forms_of_a_text_have_one_hash_that_depends_on_the_key() {
        let keys = [TextKey::default(), TextKey::new(&Key::new([7; KEY_BYTES]))];
        let long = "a long text, ".repeat(2000);
        let mut seen = std::collections::HashSet::new();
        for text in ["", "x", "hunter2", "Größe", "\0", "\0\0", "12345678", "123456789", &long] {
            let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(0)).collect();
            let (little, big) = (wide(text, u16::to_le_bytes), wide(text, u16::to_be_bytes));
            for key in keys {
                let hash = key.hash(&Characters::Latin1(&latin));
                assert_eq!(key.hash(&Characters::Utf16Le(&little)), hash, "{text}");
                assert_eq!(key.hash(&Characters::Utf16Be(&big)), hash, "{text}");
                assert!(seen.insert(hash), "{text}");
            }
        }
        for text in ["пароль", "パスワード", &"密码".repeat(5000)] {
            let (little, big) = (wide(text, u16::to_le_bytes), wide(text, u16::to_be_bytes));
            for key in keys {
                let hash = key.hash(&Characters::Utf16Le(&little));
                assert_eq!(key.hash(&Characters::Utf16Be(&big)), hash, "{text}");
                assert!(seen.insert(hash), "{text}");
            }
        }
    }
}
