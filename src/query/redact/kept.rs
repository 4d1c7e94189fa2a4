//! Texts and counters that are kept. Arrays with a kept text as their contents are not mapped.

use std::collections::HashMap;
use std::sync::Arc;

use hprof_parser::mutf8;
use hprof_values::BasicType;

use super::counters::KeptCounters;
use super::renames::ClassRenames;

/// Reason for keeping a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeptReason {
    /// Name of a class, in one of its spellings.
    ClassName,
    /// Name of a field, including enum constants.
    FieldName,
    /// Name of a method, its signature, or a source file, in a stack frame.
    FrameName,
    /// Name or value of a system property that identifies the JVM.
    Property,
    /// Name that the JDK gives to one of its class loaders.
    LoaderName,
    /// Name of a thread or thread group.
    ThreadName,
    /// Text that `--keep` matches.
    Requested,
}

impl KeptReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::ClassName,
        Self::FieldName,
        Self::FrameName,
        Self::Property,
        Self::LoaderName,
        Self::ThreadName,
        Self::Requested,
    ];

    /// Returns the name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClassName => "class_name",
            Self::FieldName => "field_name",
            Self::FrameName => "frame_name",
            Self::Property => "property",
            Self::LoaderName => "loader_name",
            Self::ThreadName => "thread_name",
            Self::Requested => "requested",
        }
    }
}

/// Maximum length of a kept text in bytes.
const MAX_TEXT: usize = 1 << 12;

/// Patterns of texts: `*` matches any text, other characters match themselves.
#[derive(Debug, Clone, Default)]
pub struct TextPatterns(Vec<regex::Regex>);

impl TextPatterns {
    /// Adds a pattern.
    ///
    /// # Errors
    /// If the pattern is too large.
    pub fn add(&mut self, pattern: &str) -> Result<(), regex::Error> {
        let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
        self.0.push(regex::Regex::new(&format!("(?s)^{}$", parts.join(".*")))?);
        Ok(())
    }

    fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern.is_match(text))
    }
}

/// Texts and counters that are kept.
#[derive(Debug, Default)]
pub struct KeptValues {
    /// Reasons by text in UTF-8.
    texts: HashMap<Box<[u8]>, KeptReason>,
    /// Reasons by text, for texts that are not ASCII, as a `byte[]` stores them: Latin-1, or UTF-16 in either order.
    encoded: HashMap<Box<[u8]>, KeptReason>,
    /// Set bits for the hashes of all texts: one lookup excludes most arrays.
    seen: Box<[u64]>,
    patterns: TextPatterns,
    longest: usize,
    /// Renamed classes: texts with their old names are not kept.
    renames: Arc<ClassRenames>,
    pub(super) counters: KeptCounters,
}

/// Number of bits of `seen`.
const SEEN: usize = 1 << 18;

/// Returns the index of the word and the bit in `seen` for a text.
#[inline(always)]
fn bit_of(text: &[u8]) -> (usize, u64) {
    let ends =
        [text.first_chunk(), text.last_chunk()].map(|end| end.map_or(0, |end| u64::from_le_bytes(*end)));
    let short = || text.iter().rfold(0, |word, byte| word << 8 | u64::from(*byte));
    let word = if text.len() < 8 { short() } else { ends[0] ^ ends[1].rotate_left(29) };
    let hash = (word ^ text.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    #[allow(clippy::cast_possible_truncation)] // The upper 18 bits.
    let at = (hash >> 46) as usize;
    (at / 64, 1 << (at % 64))
}

impl KeptValues {
    /// Creates a set with the texts that patterns match.
    pub fn new(patterns: TextPatterns, renames: Arc<ClassRenames>) -> Self {
        let longest = if patterns.0.is_empty() { 0 } else { MAX_TEXT };
        Self { patterns, longest, seen: vec![0; SEEN / 64].into(), renames, ..Self::default() }
    }

    /// Adds a text. If it was added before, the first reason counts.
    pub fn add(&mut self, text: &str, reason: KeptReason) {
        if text.is_empty() || text.len() > MAX_TEXT || self.renames.mentions(text) {
            return;
        }
        let units = || text.encode_utf16();
        self.longest = self.longest.max(units().count() * 2);
        if !text.is_ascii() {
            let mut encoded = |bytes: Vec<u8>| {
                self.encoded.entry(bytes.into()).or_insert(reason);
            };
            if let Some(latin) = units().map(|unit| u8::try_from(unit).ok()).collect() {
                encoded(latin);
            } else {
                encoded(units().flat_map(u16::to_le_bytes).collect());
                encoded(units().flat_map(u16::to_be_bytes).collect());
            }
        }
        let (word, bit) = bit_of(text.as_bytes());
        if let Some(word) = self.seen.get_mut(word) {
            *word |= bit;
        }
        self.texts.entry(text.as_bytes().into()).or_insert(reason);
    }

    /// Adds a name in the encoding of the dump.
    pub fn add_name(&mut self, name: &[u8], reason: KeptReason) {
        self.add(&mutf8::decode(name), reason);
    }

    /// Returns `true` if an array with these contents is kept.
    #[inline]
    pub fn contains(&self, kind: BasicType, data: &[u8]) -> bool {
        self.reason(kind, data).is_some()
    }

    /// Returns `true` if an array with this text is kept, in any encoding.
    pub(super) fn contains_text(&self, text: &str) -> bool {
        self.of_text(text.as_bytes()).is_some()
    }

    /// Returns `true` if no other array may be mapped to these contents. Long contents that only patterns match are not
    /// collisions: some patterns match nearly all of them, and a collision with a text of the dump is improbable.
    #[inline]
    pub fn collides(&self, kind: BasicType, data: &[u8]) -> bool {
        const SHORT: usize = 24;
        match self.reason(kind, data) {
            Some(KeptReason::Requested) => data.len() <= SHORT,
            reason => reason.is_some(),
        }
    }

    /// Returns the reason for keeping an array with these contents, if it is kept.
    pub fn reason(&self, kind: BasicType, data: &[u8]) -> Option<KeptReason> {
        if data.len() > self.longest {
            return None;
        }
        match kind {
            BasicType::Byte if data.is_ascii() => self.of_text(data),
            BasicType::Byte => self.encoded.get(data).copied().or_else(|| self.of_latin_pattern(data)),
            BasicType::Char => {
                let units = data.as_chunks().0.iter().map(|unit| u16::from_be_bytes(*unit));
                let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
                self.of_text(text.as_bytes())
            }
            _ => None,
        }
    }

    fn of_text(&self, text: &[u8]) -> Option<KeptReason> {
        let (word, bit) = bit_of(text);
        let may_be_known = self.seen.get(word).is_none_or(|word| word & bit != 0);
        let known = if may_be_known { self.texts.get(text).copied() } else { None };
        known.or_else(|| self.of_pattern(|| std::str::from_utf8(text).ok().map(str::to_owned)))
    }

    fn of_latin_pattern(&self, data: &[u8]) -> Option<KeptReason> {
        self.of_pattern(|| Some(data.iter().map(|byte| char::from(*byte)).collect()))
    }

    fn of_pattern(&self, text: impl FnOnce() -> Option<String>) -> Option<KeptReason> {
        if self.patterns.0.is_empty() {
            return None;
        }
        let text = text()?;
        (self.patterns.matches(&text) && !self.renames.mentions(&text)).then_some(KeptReason::Requested)
    }

    /// Calls `visit` with all texts, except those that only patterns match.
    pub fn visit(&self, visit: &mut dyn FnMut(&[u8])) {
        self.texts.keys().for_each(|text| visit(text));
    }
}
